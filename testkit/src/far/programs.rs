//! Stand-ins for `ssh` and for `aws` with the session-manager-plugin: programs that take the same words and really forward TCP.

use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tokio::net::{TcpListener, TcpStream};

use super::Names;
use crate::error::{Context, Error, Result};

/// How the stand-ins behave; a file, so that a test changes it while they are used.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Script {
    /// What the far side resolves.
    pub names: Names,
    /// Say this on standard error and end with 255 instead of logging in.
    pub refuse: Option<String>,
    /// Each start appends a line here: process id, tab, the words.
    pub log: PathBuf,
}

/// A folder with `ssh` and `aws` in it.
pub struct Programs {
    dir: PathBuf,
    script: Script,
}

impl Programs {
    /// Writes the programs into `dir`; `bench` is the `crossfade-bench` that they are.
    pub fn write(dir: &Path, bench: &Path, names: Names) -> Result<Programs> {
        std::fs::create_dir_all(dir).context(|| format!("could not make {}", dir.display()))?;
        let programs = Programs {
            dir: dir.to_owned(),
            script: Script {
                names,
                refuse: None,
                log: dir.join("starts.log"),
            },
        };
        programs.save()?;
        for name in ["ssh", "aws"] {
            let path = programs.path(name);
            let text = format!(
                "#!/bin/sh\nexec {:?} stand-in {:?} {name} \"$@\"\n",
                bench.display().to_string(),
                programs.dir.join("script.json").display().to_string(),
            );
            std::fs::write(&path, text)
                .context(|| format!("could not write {}", path.display()))?;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))
                .context(|| format!("could not make {} a program", path.display()))?;
        }
        Ok(programs)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// From now on nobody can log in, with these words (or, with `None`, everybody can).
    pub fn refuse(&mut self, words: Option<&str>) -> Result<()> {
        self.script.refuse = words.map(str::to_owned);
        self.save()
    }

    fn save(&self) -> Result<()> {
        let path = self.dir.join("script.json");
        let text = serde_json::to_string(&self.script).context(|| "no script".into())?;
        std::fs::write(&path, text).context(|| format!("could not write {}", path.display()))
    }

    /// Every start so far: process id and words.
    pub fn starts(&self) -> Vec<(u32, String)> {
        std::fs::read_to_string(&self.script.log)
            .unwrap_or_default()
            .lines()
            .filter_map(|l| {
                let (pid, words) = l.split_once('\t')?;
                Some((pid.parse().ok()?, words.to_owned()))
            })
            .collect()
    }
}

/// Whether a process of this id lives (a zombie does not).
pub fn lives(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|s| {
        s.rsplit(") ")
            .next()
            .is_some_and(|rest| !rest.starts_with(['Z', 'X']))
    })
}

/// Runs as `ssh`, `aws` or the plugin that `aws` starts.
pub async fn stand_in(script: &Path, name: &str, words: &[String]) -> Result<()> {
    let text = std::fs::read_to_string(script)
        .context(|| format!("could not read {}", script.display()))?;
    let script_file = script;
    let script: Script =
        serde_json::from_str(&text).context(|| "the script is no script".into())?;
    let mut log = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&script.log)
        .context(|| format!("could not open {}", script.log.display()))?;
    writeln!(log, "{}\t{name} {}", std::process::id(), words.join(" "))
        .context(|| "could not write the log".into())?;
    if let Some(words) = script.refuse.filter(|_| name != "plugin") {
        eprintln!("{words}");
        std::process::exit(255);
    }
    match name {
        "ssh" => {
            let (local, target) = ssh_words(words)?;
            forward(local, target, script.names).await
        }
        "aws" => {
            let (local, target) = aws_words(words)?;
            println!("Starting session with SessionId: stand-in");
            // As the CLI does: the plugin is a process of its own, and its end is the session's.
            let me = std::env::current_exe().context(|| "who am I".into())?;
            let mut plugin = tokio::process::Command::new(me)
                .arg("stand-in")
                .arg(script_file)
                .args(["plugin", &local.to_string(), &target])
                .spawn()
                .context(|| "SessionManagerPlugin is not found".into())?;
            let _ = plugin.wait().await;
            Ok(())
        }
        "plugin" => match words {
            [local, target] => {
                let local = local.parse().context(|| format!("no address: {local}"))?;
                forward(local, target.clone(), script.names).await
            }
            _ => Err(Error::new("usage: plugin ADDRESS TARGET")),
        },
        other => Err(Error::new(format!(
            "{other} is no program that is stood in for"
        ))),
    }
}

/// `-L address:port:host:port`, and the host to log in at after `--`.
fn ssh_words(words: &[String]) -> Result<(SocketAddr, String)> {
    let usage = || {
        Error::new(format!(
            "usage: ssh -N -L 127.0.0.1:PORT:HOST:PORT -- HOST; got {words:?}"
        ))
    };
    if !words.iter().any(|w| w == "-N") || !words.iter().any(|w| w == "BatchMode=yes") {
        return Err(usage());
    }
    let spec = words
        .iter()
        .position(|w| w == "-L")
        .and_then(|n| words.get(n + 1))
        .ok_or_else(usage)?;
    if words.iter().rev().nth(1).map(String::as_str) != Some("--") {
        return Err(usage());
    }
    let mut parts = spec.splitn(3, ':');
    let (Some(address), Some(port), Some(target)) = (parts.next(), parts.next(), parts.next())
    else {
        return Err(usage());
    };
    let local = format!("{address}:{port}")
        .parse()
        .context(|| format!("no address: {spec}"))?;
    Ok((local, target.to_owned()))
}

/// `ssm start-session` with the document that forwards to a remote host.
fn aws_words(words: &[String]) -> Result<(SocketAddr, String)> {
    let after = |key: &str| {
        words
            .iter()
            .position(|w| w == key)
            .and_then(|n| words.get(n + 1))
            .ok_or_else(|| Error::new(format!("aws: error: {key} is missing in {words:?}")))
    };
    if words.first().map(String::as_str) != Some("ssm") || after("--target")?.is_empty() {
        return Err(Error::new(format!(
            "aws: error: argument command: Invalid choice {words:?}"
        )));
    }
    if after("--document-name")? != "AWS-StartPortForwardingSessionToRemoteHost" {
        return Err(Error::new(
            "An error occurred (InvalidDocument) when calling the StartSession operation",
        ));
    }
    let p: serde_json::Value = serde_json::from_str(after("--parameters")?)
        .context(|| "aws: error: parameters are no JSON".into())?;
    let of = |key: &str| p[key][0].as_str().unwrap_or_default().to_owned();
    let local = format!("127.0.0.1:{}", of("localPortNumber"))
        .parse()
        .context(|| "aws: error: no port".into())?;
    Ok((local, format!("{}:{}", of("host"), of("portNumber"))))
}

/// Listens, and carries each connection to the far side. A target that the far side does not know is said on standard error, as ssh does.
async fn forward(local: SocketAddr, target: String, names: Names) -> Result<()> {
    let listener = TcpListener::bind(local)
        .await
        .context(|| format!("bind [{local}]: cannot listen"))?;
    loop {
        let (mut near, _) = listener.accept().await.context(|| "accept".into())?;
        let to = names.resolve(&target);
        let target = target.clone();
        tokio::spawn(async move {
            let far = match to {
                Some(to) => TcpStream::connect(to).await.ok(),
                None => None,
            };
            match far {
                Some(mut far) => {
                    let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                }
                None => eprintln!(
                    "channel 2: open failed: connect failed: Name or service not known ({target})"
                ),
            }
        });
    }
}
