//! MiniStack, the AWS emulator. Only the strict layer and the fixture's loader talk to it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::http;
use super::paths;
use super::ports::Port;
use super::process::{Process, Stop};
use crate::error::{Context, Result};

/// The account of the bench. 12 digits
pub const ACCOUNT: &str = "000000000000";
/// The region of the bench.
pub const REGION: &str = "eu-west-1";

/// A running emulator.
pub struct MiniStack {
    process: Process,
    endpoint: String,
    _port: Port,
}

impl MiniStack {
    /// Starts it; makes its virtual environment the first time.
    pub async fn start(dir: &Path) -> Result<Self> {
        let program = tokio::task::spawn_blocking(paths::ministack)
            .await
            .context(|| "the task that makes the emulator's environment failed".into())??;
        let data = dir.join("ministack");
        std::fs::create_dir_all(&data).context(|| "could not make the emulator's folder".into())?;
        let port = Port::reserve()?;
        let endpoint = format!("http://127.0.0.1:{}", port.number());
        let mut command = Command::new(program);
        command
            .env("GATEWAY_PORT", port.number().to_string())
            .env("BIND_HOST", "127.0.0.1")
            .env("MINISTACK_REGION", REGION)
            .env("MINISTACK_ACCOUNT_ID", ACCOUNT)
            // Nothing is kept, and whatever it writes all the same goes away with the bench.
            .env("S3_DATA_DIR", data.join("s3"))
            .env("TMPDIR", &data)
            // Its MQTT and SFTP listeners have fixed ports: two benches would meet there. `bench.md` 3
            .env("IOT_MTLS_ENABLED", "0")
            .env("SFTP_ENABLED", "0")
            .env("LOG_LEVEL", "WARNING")
            // No containers, and no proxy between it and itself.
            .env("DOCKER_HOST", "unix:///nonexistent.sock")
            .env_remove("HTTP_PROXY")
            .env_remove("HTTPS_PROXY")
            .current_dir(&data);
        let mut process =
            Process::spawn("ministack", command, &dir.join("ministack.log"), Stop::Kill)?;
        let health = format!("{endpoint}/_ministack/health");
        process
            .wait_until(Duration::from_secs(60), || http::answers(&health))
            .await?;
        Ok(MiniStack {
            process,
            endpoint,
            _port: port,
        })
    }

    /// `http://127.0.0.1:PORT`
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// An error with the end of the log if it has ended.
    pub fn check_alive(&mut self) -> Result<()> {
        self.process.check_alive()
    }
}
