//! Where the built servers and the emulator's environment are, and how they get there.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::error::{Context, Error, Result};

/// The servers a bench needs, in the order in which they are built.
pub const SERVERS: [&str; 7] = [
    "etcd",
    "kwok",
    "kube-1.21",
    "kube-1.36",
    "external-dns-0.10.2",
    "external-dns-0.14.2",
    "external-dns-0.21.0",
];

/// `$CROSSFADE_CACHE`, else `~/.cache/crossfade`: outside the checkout, so that a second clone starts in seconds.
pub fn cache() -> Result<PathBuf> {
    let set = |name: &str| {
        std::env::var_os(name)
            .filter(|v| !v.is_empty())
            .map(PathBuf::from)
    };
    set("CROSSFADE_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|home| home.join("crossfade")))
        .or_else(|| set("HOME").map(|home| home.join(".cache/crossfade")))
        .ok_or_else(|| {
            Error::new("HOME is not set: set CROSSFADE_CACHE to a folder with 2 GB of room")
        })
}

/// The folder with the pins and the build script.
pub fn pins() -> PathBuf {
    home().join("servers")
}

/// The folder of the fixture `shop`.
pub fn shop_fixture() -> PathBuf {
    home().join("fixtures/shop")
}

/// This crate's folder: the bench only ever runs from a checkout.
fn home() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The program `program` of server `server`, e.g. `("kube-1.21", "kube-apiserver")`.
pub fn binary(server: &str, program: &str) -> Result<PathBuf> {
    let path = cache()?.join("servers").join(server).join(program);
    // `.key` is written last: a build that is still running is not taken for a finished one.
    let done = path.with_file_name(".key").is_file();
    if path.is_file() && done {
        return Ok(path);
    }
    Err(Error::new(format!(
        "{} is not built: run `crossfade-bench build` (needs Go; minutes the first time, seconds afterwards)",
        path.display()
    )))
}

/// Builds the servers that are missing or whose pins changed, one after the other; the script prints the seconds of each.
pub fn build(names: &[String]) -> Result<()> {
    let out = cache()?.join("servers");
    std::fs::create_dir_all(&out).context(|| format!("could not create {}", out.display()))?;
    let script = pins().join("build");
    let status = Command::new(&script)
        .arg(&out)
        .args(if names.is_empty() {
            SERVERS.map(String::from).to_vec()
        } else {
            names.to_vec()
        })
        .status()
        .context(|| format!("could not run {}", script.display()))?;
    if status.success() {
        Ok(())
    } else {
        Err(Error::new(format!(
            "{} failed ({status}): its output above says why; Go 1.26 or newer and the Go module proxy are needed",
            script.display()
        )))
    }
}

/// The emulator's program; makes its virtual environment when it is missing (`setup-emulator` holds the version).
pub fn ministack() -> Result<PathBuf> {
    static READY: OnceLock<()> = OnceLock::new();
    let venv = cache()?.join("venv");
    if READY.get().is_none() {
        std::fs::create_dir_all(cache()?).context(|| "could not make the bench's cache".into())?;
        // Two tests may start the first bench at once.
        let lock = std::fs::File::create(cache()?.join("venv.lock"))
            .context(|| "could not make the lock of the virtual environment".into())?;
        lock.lock()
            .context(|| "could not lock the virtual environment".into())?;
        run(Command::new(home().join("setup-emulator")).arg(&venv))?;
        let _ = READY.set(());
    }
    Ok(venv.join("bin/ministack"))
}

fn run(command: &mut Command) -> Result<()> {
    let output = command
        .output()
        .context(|| format!("could not run {:?}", command.get_program()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Error::new(format!(
        "{command:?} failed ({}): {}",
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    )))
}

/// A PostgreSQL program: on `PATH`, else where Debian keeps it.
pub fn postgres(program: &str) -> Result<PathBuf> {
    let on_path = std::env::var_os("PATH")
        .map(|path| std::env::split_paths(&path).collect::<Vec<_>>())
        .unwrap_or_default();
    let debian = std::fs::read_dir("/usr/lib/postgresql")
        .map(|entries| {
            let mut versions: Vec<PathBuf> =
                entries.flatten().map(|e| e.path().join("bin")).collect();
            versions.sort();
            versions.reverse();
            versions
        })
        .unwrap_or_default();
    on_path
        .into_iter()
        .chain(debian)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
        .ok_or_else(|| {
            Error::new(format!(
                "{program} was found neither on PATH nor under /usr/lib/postgresql: install PostgreSQL 15 or newer (Debian: apt-get install postgresql)"
            ))
        })
}
