//! Child processes that never outlive the bench: neither a drop, nor a panic, nor a SIGKILL of the test leaves one behind.

use std::fs::File;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, OnceLock, mpsc};
use std::time::{Duration, Instant};

use crate::error::{Context, Error, Result};

/// A running server with its log file. Dropping it ends the process and everything it started.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
    stop: Stop,
}

/// How a server is asked to end before it is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// SIGKILL at once: the data is thrown away anyway.
    Kill,
    /// This signal first, SIGKILL after the time.
    Signal(i32, Duration),
}

impl Process {
    /// Starts `command` with its output in `log`. `name` is used in messages.
    pub fn spawn(name: &str, mut command: Command, log: &Path, stop: Stop) -> Result<Self> {
        let out = File::create(log)
            .context(|| format!("{name}: could not create its log {}", log.display()))?;
        let err = out
            .try_clone()
            .context(|| format!("{name}: could not share its log"))?;
        command.stdin(Stdio::null()).stdout(out).stderr(err);
        let program = command.get_program().to_owned();
        let child =
            spawn_child(command).context(|| format!("{name}: could not start {program:?}"))?;
        Ok(Process {
            name: name.to_owned(),
            child,
            log: log.to_owned(),
            stop,
        })
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where its output goes.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// An error with the end of the log if the process has ended.
    pub fn check_alive(&mut self) -> Result<()> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(Error::new(format!(
                "{} ended ({}); the end of its log {}:\n{}",
                self.name,
                describe(status),
                self.log.display(),
                log_tail(&self.log, 15)
            ))),
            Err(error) => Err(Error::new(format!("{}: {error}", self.name))),
        }
    }

    /// Waits for a process that is meant to end by itself, with success.
    pub async fn wait_finished(&mut self, patience: Duration) -> Result<()> {
        let start = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(None) => {}
                _ => return self.check_alive(),
            }
            if start.elapsed() > patience {
                return Err(Error::new(format!(
                    "{} has not ended after {} s",
                    self.name,
                    patience.as_secs()
                )));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Polls `ready` until it says true; fails when the process ends or `patience` is over.
    pub async fn wait_until<F, Fut>(&mut self, patience: Duration, mut ready: F) -> Result<()>
    where
        F: FnMut() -> Fut,
        Fut: Future<Output = bool>,
    {
        let start = Instant::now();
        loop {
            if ready().await {
                return Ok(());
            }
            self.check_alive()?;
            if start.elapsed() > patience {
                return Err(Error::new(format!(
                    "{} was not ready after {} s; the end of its log {}:\n{}",
                    self.name,
                    patience.as_secs(),
                    self.log.display(),
                    log_tail(&self.log, 15)
                )));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Stop::Signal(signal, patience) = self.stop {
            signal_group(self.pid(), signal);
            let start = Instant::now();
            while start.elapsed() < patience {
                if !matches!(self.child.try_wait(), Ok(None)) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        // The whole group, also when the leader is gone: it may have left children.
        signal_group(self.pid(), libc::SIGKILL);
        let _ = self.child.wait();
    }
}

/// Starts a command as the leader of its own session that dies with this process, whatever ends it.
///
/// The kernel ties the death signal to the *thread* that forked, and async worker threads come and go. So one
/// thread that lives as long as the process does all the forking.
pub fn spawn_child(command: Command) -> io::Result<Child> {
    type Order = (Command, mpsc::Sender<io::Result<Child>>);
    static SPAWNER: OnceLock<Mutex<mpsc::Sender<Order>>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (sender, orders) = mpsc::channel::<Order>();
        std::thread::Builder::new()
            .name("bench-spawner".into())
            .spawn(move || {
                for (mut command, reply) in orders {
                    let _ = reply.send(command.spawn());
                }
            })
            .expect("a process without threads cannot run a bench");
        Mutex::new(sender)
    });
    let mut command = command;
    die_with_parent(&mut command);
    let (reply, answer) = mpsc::channel();
    let gone = || io::Error::other("the spawner thread is gone");
    spawner
        .lock()
        .map_err(|_| gone())?
        .send((command, reply))
        .map_err(|_| gone())?;
    answer.recv().map_err(|_| gone())?
}

/// Own session (Ctrl-C of the terminal does not reach it; the bench ends it in its own order) and a death signal.
#[allow(unsafe_code)]
fn die_with_parent(command: &mut Command) {
    let parent = std::process::id();
    // SAFETY: between fork and exec only async-signal-safe calls are made: setsid, prctl and getppid are.
    unsafe {
        command.pre_exec(move || {
            if libc::setsid() == -1 {
                return Err(io::Error::last_os_error());
            }
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == -1 {
                return Err(io::Error::last_os_error());
            }
            // The parent may have died between fork and prctl: then no signal will ever come.
            if u32::try_from(libc::getppid()) != Ok(parent) {
                return Err(io::Error::other("the bench ended meanwhile"));
            }
            Ok(())
        });
    }
}

/// Sends a signal to the whole group of a child that [`spawn_child`] started.
#[allow(unsafe_code)]
pub fn signal_group(pid: u32, signal: i32) {
    if let Ok(pid) = i32::try_from(pid)
        && pid > 1
    {
        // SAFETY: kill takes two integers and touches no memory of ours.
        unsafe {
            libc::kill(-pid, signal);
        }
    }
}

/// Sends a signal to one process that is not a child of ours (a bench in another terminal).
#[allow(unsafe_code)]
pub fn signal_one(pid: u32, signal: i32) {
    if let Ok(pid) = i32::try_from(pid)
        && pid > 1
    {
        // SAFETY: as above.
        unsafe {
            libc::kill(pid, signal);
        }
    }
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        _ => "unknown".into(),
    }
}

/// The last lines of a log, for messages.
pub fn log_tail(log: &Path, lines: usize) -> String {
    let text = std::fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    match text {
        Ok(text) => {
            let all: Vec<&str> = text.lines().collect();
            all[all.len().saturating_sub(lines)..].join("\n")
        }
        Err(error) => format!("(could not read the log: {error})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alive(pid: u32) -> bool {
        // A zombie is dead: only its parent's wait is missing.
        std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .is_ok_and(|stat| !stat.contains(") Z "))
    }

    #[test]
    fn a_dropped_server_takes_its_own_children_with_it() {
        let dir = tempfile::tempdir().expect("folder");
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 300 & echo $!; wait"]);
        let log = dir.path().join("log");
        let process = Process::spawn("sh", command, &log, Stop::Kill).expect("starts");
        let start = Instant::now();
        let grandchild: u32 = loop {
            if let Ok(pid) = std::fs::read_to_string(&log)
                .unwrap_or_default()
                .trim()
                .parse()
            {
                break pid;
            }
            assert!(start.elapsed() < Duration::from_secs(10), "no pid came");
            std::thread::sleep(Duration::from_millis(10));
        };
        let pid = process.pid();
        assert!(alive(pid) && alive(grandchild));
        drop(process);
        let start = Instant::now();
        while alive(grandchild) && start.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(!alive(pid) && !alive(grandchild));
    }

    #[test]
    fn a_server_started_from_a_short_lived_thread_stays() {
        let dir = tempfile::tempdir().expect("folder");
        let log = dir.path().join("log");
        let mut process = std::thread::spawn(move || {
            let mut command = Command::new("sleep");
            command.arg("300");
            Process::spawn("sleep", command, &log, Stop::Kill).expect("starts")
        })
        .join()
        .expect("thread");
        std::thread::sleep(Duration::from_millis(100));
        process
            .check_alive()
            .expect("the end of the thread that asked for it is no reason to die");
    }

    #[test]
    fn a_server_that_ends_is_reported_with_the_end_of_its_log() {
        let dir = tempfile::tempdir().expect("folder");
        let mut command = Command::new("sh");
        command.args(["-c", "echo no such flag; exit 3"]);
        let mut process =
            Process::spawn("sh", command, &dir.path().join("log"), Stop::Kill).expect("starts");
        let start = Instant::now();
        let error = loop {
            if let Err(error) = process.check_alive() {
                break error.to_string();
            }
            assert!(start.elapsed() < Duration::from_secs(10));
            std::thread::sleep(Duration::from_millis(10));
        };
        assert!(
            error.contains("exit code 3") && error.contains("no such flag"),
            "{error}"
        );
    }
}
