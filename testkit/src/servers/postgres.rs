//! Two small PostgreSQL servers: blue's database and green's. Two processes, since a subscription to a database of
//! the same server waits for itself.

use std::net::SocketAddr;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tokio_postgres::NoTls;

use super::kube::Side;
use super::paths;
use super::ports::Port;
use super::process::{Process, Stop};
use crate::error::{Context, Error, Result};

/// The database of the fixture.
pub const DATABASE: &str = "orders";
/// The owner of everything in it.
pub const SUPERUSER: &str = "postgres";
/// The bench's own password for the owner; it protects nothing.
pub const SUPERUSER_PASSWORD: &str = "bench-postgres";
/// The role of the application.
pub const APP_ROLE: &str = "orders";

/// A running database server.
pub struct Postgres {
    side: Side,
    process: Process,
    port: Port,
    app_password: String,
}

impl Postgres {
    /// Makes a fresh server with an empty database `orders` and the application's role.
    pub async fn start(side: Side, dir: &Path, app_password: &str) -> Result<Self> {
        let name = format!("{}'s PostgreSQL", side.name());
        let home = dir.join(format!("postgres-{}", side.name()));
        let data = home.join("data");
        std::fs::create_dir_all(&home).context(|| format!("could not make {}", home.display()))?;
        let account = Account::choose()?;
        let secret = home.join("password");
        std::fs::write(&secret, SUPERUSER_PASSWORD)
            .context(|| format!("could not write {}", secret.display()))?;
        if let Some(account) = &account {
            for path in [&home, &secret] {
                chown(path, Some(account.uid), Some(account.gid))
                    .context(|| format!("could not give {} away", path.display()))?;
            }
            // The bench's folder belongs to root: let the server pass through it to its own.
            let mut folder: Option<&Path> = home.parent();
            while let Some(path) =
                folder.filter(|p| *p != std::env::temp_dir() && p.starts_with(std::env::temp_dir()))
            {
                allow_passage(path)?;
                folder = path.parent();
            }
        }
        let mut init = Command::new(paths::postgres("initdb")?);
        init.arg("-D")
            .arg(&data)
            .args([
                "-U",
                SUPERUSER,
                "-A",
                "scram-sha-256",
                "--no-sync",
                "-E",
                "UTF8",
                "--locale=C",
            ])
            .arg(format!("--pwfile={}", secret.display()))
            .current_dir(&home);
        become_account(&mut init, account.as_ref());
        // Through the same door as the servers: it may not outlive the bench either.
        let mut init = Process::spawn(
            &format!("{name} (initdb)"),
            init,
            &dir.join(format!("initdb-{}.log", side.name())),
            Stop::Kill,
        )?;
        let marker = data.join("global/pg_control");
        init.wait_finished(Duration::from_secs(120)).await?;
        if !marker.is_file() {
            return Err(Error::new(format!(
                "{name}: initdb left no {}",
                marker.display()
            )));
        }

        let port = Port::reserve()?;
        let mut command = Command::new(paths::postgres("postgres")?);
        command.arg("-D").arg(&data).current_dir(&home);
        for setting in [
            format!("port={}", port.number()),
            "listen_addresses=127.0.0.1".into(),
            // A socket's path may be 107 bytes long; temporary folders are longer on some machines.
            "unix_socket_directories=".into(),
            "wal_level=logical".into(),
            "max_wal_senders=8".into(),
            "max_replication_slots=8".into(),
            "fsync=off".into(),
            "shared_buffers=16MB".into(),
            "max_connections=60".into(),
            // SIGKILL leaves no segment in /dev/shm behind.
            "dynamic_shared_memory_type=mmap".into(),
        ] {
            command.arg("-c").arg(setting);
        }
        become_account(&mut command, account.as_ref());
        // Immediate shutdown: no checkpoint, but its shared memory is given back.
        let mut process = Process::spawn(
            &name,
            command,
            &dir.join(format!("postgres-{}.log", side.name())),
            Stop::Signal(libc::SIGQUIT, Duration::from_secs(5)),
        )?;
        let admin = url(SUPERUSER, SUPERUSER_PASSWORD, port.number(), SUPERUSER);
        process
            .wait_until(Duration::from_secs(60), || async {
                connect(&admin).await.is_ok()
            })
            .await?;
        let server = Postgres {
            side,
            process,
            port,
            app_password: app_password.to_owned(),
        };
        let client = connect(&admin).await?;
        let quoted = app_password.replace('\'', "''");
        for statement in [
            format!("CREATE ROLE {APP_ROLE} LOGIN PASSWORD '{quoted}'"),
            format!("CREATE DATABASE {DATABASE}"),
        ] {
            client
                .batch_execute(&statement)
                .await
                .context(|| format!("{name}: could not prepare role and database"))?;
        }
        Ok(server)
    }

    /// Blue or green.
    pub fn side(&self) -> Side {
        self.side
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// The real socket.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port()))
    }

    /// Connection URL of the owner (superuser).
    pub fn superuser_url(&self) -> String {
        url(SUPERUSER, SUPERUSER_PASSWORD, self.port(), DATABASE)
    }

    /// Connection URL of the application's role.
    pub fn app_url(&self) -> String {
        url(APP_ROLE, &self.app_password, self.port(), DATABASE)
    }

    /// Runs SQL as the owner.
    pub async fn execute(&self, sql: &str) -> Result<()> {
        connect(&self.superuser_url())
            .await?
            .batch_execute(sql)
            .await
            .context(|| format!("{}'s database", self.side.name()))
    }

    /// An error with the end of the log if it has ended.
    pub fn check_alive(&mut self) -> Result<()> {
        self.process.check_alive()
    }
}

/// A connection whose driver runs on its own task.
pub async fn connect(url: &str) -> Result<tokio_postgres::Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls)
        .await
        .context(|| "could not connect to PostgreSQL".into())?;
    tokio::spawn(connection);
    Ok(client)
}

fn url(user: &str, password: &str, port: u16, database: &str) -> String {
    format!("postgresql://{user}:{password}@127.0.0.1:{port}/{database}")
}

/// Whom the server runs as when the bench is root: PostgreSQL refuses to be root.
struct Account {
    uid: u32,
    gid: u32,
}

impl Account {
    fn choose() -> Result<Option<Self>> {
        #[allow(unsafe_code)]
        // SAFETY: geteuid cannot fail and touches no memory.
        let root = unsafe { libc::geteuid() } == 0;
        if !root {
            return Ok(None);
        }
        let users = std::fs::read_to_string("/etc/passwd")
            .context(|| "could not read /etc/passwd".into())?;
        // Debian's package makes "postgres"; any other ordinary account would do as well.
        ["postgres", "nobody"]
            .iter()
            .find_map(|wanted| {
                users.lines().find_map(|line| {
                    let fields: Vec<&str> = line.split(':').collect();
                    match fields.as_slice() {
                        [name, _, uid, gid, ..] if name == wanted => Some(Account {
                            uid: uid.parse().ok()?,
                            gid: gid.parse().ok()?,
                        }),
                        _ => None,
                    }
                })
            })
            .map(Some)
            .ok_or_else(|| {
                Error::new("PostgreSQL refuses to run as root and there is no account \"postgres\": run the bench as an ordinary user")
            })
    }
}

/// The credentials change before the death signal is set (std does it so), which a later change would clear.
fn become_account(command: &mut Command, account: Option<&Account>) {
    if let Some(account) = account {
        command.uid(account.uid).gid(account.gid);
    }
}

fn allow_passage(folder: &Path) -> Result<()> {
    let doing = || {
        format!(
            "could not open {} for PostgreSQL's account",
            folder.display()
        )
    };
    let mode = std::fs::metadata(folder)
        .context(doing)?
        .permissions()
        .mode();
    std::fs::set_permissions(
        PathBuf::from(folder),
        std::fs::Permissions::from_mode(mode | 0o111),
    )
    .context(doing)
}
