//! Child processes that never outlive the bench: own process group, killed with their owner, killed by the kernel when the
//! bench's process dies however it dies.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc;
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// A running child.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// The process id, which is the group's id too; `None` once it is reaped.
    pid: Option<u32>,
}

type Errand = Box<dyn FnOnce() + Send>;

/// PR_SET_PDEATHSIG fires when the *thread* that forked ends, so all forks come from one thread that lives as long as
/// this process.
fn spawner() -> &'static mpsc::Sender<Errand> {
    static SPAWNER: OnceLock<mpsc::Sender<Errand>> = OnceLock::new();
    SPAWNER.get_or_init(|| {
        let (sender, errands) = mpsc::channel::<Errand>();
        std::thread::Builder::new()
            .name("bench-spawner".to_owned())
            .spawn(move || errands.into_iter().for_each(|errand| errand()))
            .expect("a thread can be started");
        sender
    })
}

impl Process {
    /// Starts `command` in its own group, with no standard input.
    pub async fn spawn(mut command: Command) -> io::Result<Self> {
        command
            .stdin(Stdio::null())
            .process_group(0)
            .kill_on_drop(true);
        sys::die_with_parent(&mut command);
        let runtime = Handle::current();
        let (answer, answered) = oneshot::channel();
        let errand: Errand = Box::new(move || {
            let _entered = runtime.enter();
            let _ = answer.send(command.spawn());
        });
        let lost = || io::Error::other("the bench's spawner thread has ended");
        spawner().send(errand).map_err(|_| lost())?;
        let child = answered.await.map_err(|_| lost())??;
        let pid = child.id();
        Ok(Process { child, pid })
    }

    /// The process id while it runs.
    pub fn id(&self) -> Option<u32> {
        self.pid
    }

    /// Waits for the end.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        if let Some(pid) = self.pid.take() {
            // What it left in its group ends with it.
            sys::kill_group(pid, libc::SIGKILL);
        }
        Ok(status)
    }

    /// SIGTERM; SIGKILL after `grace`.
    pub async fn terminate(mut self, grace: Duration) -> io::Result<ExitStatus> {
        if let Some(pid) = self.pid {
            sys::kill_group(pid, libc::SIGTERM);
        }
        if let Ok(status) = tokio::time::timeout(grace, self.wait()).await {
            return status;
        }
        if let Some(pid) = self.pid {
            sys::kill_group(pid, libc::SIGKILL);
        }
        self.wait().await
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(pid) = self.pid {
            sys::kill_group(pid, libc::SIGKILL);
        }
    }
}

/// The one place with unsafe code: two system calls that the standard library does not offer.
#[allow(unsafe_code)]
mod sys {
    use std::io;
    use tokio::process::Command;

    /// The kernel kills the child when the thread that forked it ends.
    pub(super) fn die_with_parent(command: &mut Command) {
        // SAFETY: prctl(PR_SET_PDEATHSIG) is async-signal-safe and touches only the child's own flags.
        unsafe {
            command.pre_exec(
                || match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
                    0 => Ok(()),
                    _ => Err(io::Error::last_os_error()),
                },
            );
        }
    }

    /// Signals the group that the child leads. The caller has not reaped the child, so its id is still its own.
    pub(super) fn kill_group(pid: u32, signal: i32) {
        let Ok(group) = i32::try_from(pid) else {
            return;
        };
        // SAFETY: kill(2) has no memory effects.
        unsafe {
            libc::kill(-group, signal);
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
        let process = Process::spawn(command).await.unwrap();
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
        let process = Process::spawn(command).await.unwrap();
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
