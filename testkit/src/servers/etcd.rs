//! One etcd for both clusters: each API server has its own prefix. `bench.md` 3

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::http;
use super::paths;
use super::ports::Port;
use super::process::{Process, Stop};
use crate::error::{Context, Result};

/// A running etcd.
pub struct Etcd {
    process: Process,
    url: String,
    _ports: [Port; 2],
}

impl Etcd {
    /// Starts it with its data under `dir`.
    pub async fn start(dir: &Path) -> Result<Self> {
        let data = dir.join("etcd");
        std::fs::create_dir_all(&data).context(|| "could not make etcd's folder".into())?;
        let ports = [Port::reserve()?, Port::reserve()?];
        let url = format!("http://127.0.0.1:{}", ports[0].number());
        let peer = format!("http://127.0.0.1:{}", ports[1].number());
        let mut command = Command::new(paths::binary("etcd", "etcd")?);
        command
            .arg(format!("--data-dir={}", data.join("data").display()))
            .arg(format!("--listen-client-urls={url}"))
            .arg(format!("--advertise-client-urls={url}"))
            .arg(format!("--listen-peer-urls={peer}"))
            .arg(format!("--initial-advertise-peer-urls={peer}"))
            .arg(format!("--initial-cluster=default={peer}"))
            // Nothing has to survive the machine: a bench that stops is thrown away.
            .args(["--unsafe-no-fsync", "--log-level=warn"]);
        let mut process = Process::spawn("etcd", command, &dir.join("etcd.log"), Stop::Kill)?;
        let health = format!("{url}/health");
        process
            .wait_until(Duration::from_secs(30), || http::answers(&health))
            .await?;
        Ok(Etcd {
            process,
            url,
            _ports: ports,
        })
    }

    /// Where API servers find it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The process id of the server.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }
}
