//! Child processes of the process kubelet: waited for without blocking, ended with SIGTERM and a grace, gone with their owner.

use std::io;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use crate::servers::process::{signal_group, spawn_child};

/// How often a child is looked at while somebody waits for its end.
const LOOK: Duration = Duration::from_millis(20);

/// A running child, leader of its own group. Dropping it kills the group.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// Once it is reaped its id may belong to somebody else: nothing is signalled any more.
    ended: Option<ExitStatus>,
}

impl Process {
    /// Starts `command` with no standard input. It dies with this process, however that ends.
    pub fn spawn(mut command: Command) -> io::Result<Self> {
        command.stdin(Stdio::null());
        Ok(Process {
            child: spawn_child(command)?,
            ended: None,
        })
    }

    /// The process id while it runs.
    pub fn id(&self) -> Option<u32> {
        self.ended.is_none().then(|| self.child.id())
    }

    fn signal(&self, signal: i32) {
        if let Some(pid) = self.id() {
            signal_group(pid, signal);
        }
    }

    /// Waits for the end.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.ended {
                return Ok(status);
            }
            if let Some(status) = self.child.try_wait()? {
                // What it left in its group ends with it; the group's id is not reused while a member lives.
                signal_group(self.child.id(), libc::SIGKILL);
                self.ended = Some(status);
                return Ok(status);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// SIGTERM; SIGKILL after `grace`.
    pub async fn terminate(mut self, grace: Duration) -> io::Result<ExitStatus> {
        self.signal(libc::SIGTERM);
        if let Ok(status) = tokio::time::timeout(grace, self.wait()).await {
            return status;
        }
        self.signal(libc::SIGKILL);
        self.wait().await
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.ended.is_none() {
            self.signal(libc::SIGKILL);
            let _ = self.child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn alive(pid: u32) -> bool {
        let stat =
            std::fs::read_to_string(PathBuf::from(format!("/proc/{pid}/stat"))).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    }

    async fn gone(pid: u32) -> bool {
        for _ in 0..100 {
            if !alive(pid) {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        false
    }

    #[tokio::test]
    async fn a_child_that_ignores_sigterm_is_killed_after_its_grace() {
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' TERM; while :; do sleep 0.1; done"]);
        let process = Process::spawn(command).unwrap();
        tokio::time::sleep(Duration::from_millis(200)).await;
        let pid = process.id().unwrap();
        let status = process.terminate(Duration::from_millis(300)).await.unwrap();
        assert!(!status.success());
        assert!(gone(pid).await);
    }

    #[tokio::test]
    async fn a_dropped_child_takes_its_whole_group_with_it() {
        let mut command = Command::new("sh");
        let file = tempfile::NamedTempFile::new().unwrap();
        command.args([
            "-c",
            &format!("sleep 600 & echo $! > {}; wait", file.path().display()),
        ]);
        let process = Process::spawn(command).unwrap();
        let mut grandchild = None;
        for _ in 0..100 {
            grandchild = std::fs::read_to_string(file.path())
                .unwrap()
                .trim()
                .parse::<u32>()
                .ok();
            if grandchild.is_some() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let (pid, grandchild) = (process.id().unwrap(), grandchild.unwrap());
        assert!(alive(grandchild));
        drop(process);
        assert!(gone(grandchild).await);
        assert!(gone(pid).await);
    }
}
