//! A program that forwards a port of this machine: `ssh -N -L`, or `aws ssm start-session`. Started at the first connection, looked at
//! before each, started again when it has ended, and ended with crossfade, however that ends.

use super::Blocked;
use super::proxy::joined;
use super::wire::Io;
use crate::spec::connections::SshTunnel;
use crate::world::Class;
use std::collections::VecDeque;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::time::Instant;

/// How long a program may take until its port is open: it logs in first.
const LOGIN: Duration = Duration::from_secs(40);
/// How often its port is tried until then.
const LOOK: Duration = Duration::from_millis(100);
/// A program that ended at once is not started again within this time: who asks meanwhile hears the same.
const REST: Duration = Duration::from_secs(1);
/// Last words that are kept.
const WORDS: usize = 6;
/// The document that forwards a port to another host behind the instance.
const DOCUMENT: &str = "AWS-StartPortForwardingSessionToRemoteHost";

/// Runs a program in a process group of its own, so that Ctrl-C does not take the way away from a run that is just stopping safely, and ends
/// the whole group (the plugin that the AWS CLI starts, too) when the pipe from crossfade closes: also when crossfade is killed.
const KEEPER: &str = r#"exec 3<&0
"$@" </dev/null 3<&- &
program=$!
( cat <&3 >/dev/null 2>&1; kill -TERM 0 ) &
exec 3<&-
wait "$program"
code=$?
trap '' TERM
kill -TERM 0
exit "$code""#;

/// An SSM session.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub target: String,
    pub region: Option<String>,
    pub profile: Option<String>,
}

/// Which program.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    Ssh(SshTunnel),
    Ssm(Session),
}

/// A tunnel to one side.
pub(in crate::world::live) struct Tunnel {
    side: &'static str,
    program: String,
    kind: Kind,
    state: tokio::sync::Mutex<State>,
    words: Arc<Mutex<VecDeque<String>>>,
}

#[derive(Default)]
struct State {
    running: Option<Running>,
    failed: Option<(Instant, Blocked)>,
}

struct Running {
    /// Its standard input is the pipe that keeps it alive.
    child: Child,
    port: u16,
    host: String,
    to: u16,
}

impl Tunnel {
    pub(super) fn new(side: &'static str, program: String, kind: Kind) -> Tunnel {
        Tunnel {
            side,
            program,
            kind,
            state: tokio::sync::Mutex::default(),
            words: Arc::default(),
        }
    }

    /// Where the tunnel begins, for messages.
    fn name(&self) -> &str {
        match &self.kind {
            Kind::Ssh(ssh) => &ssh.host,
            Kind::Ssm(ssm) => &ssm.target,
        }
    }

    /// A connection to `host:port`, seen from the far end.
    pub(super) async fn open(&self, host: &str, port: u16) -> Result<Box<dyn Io>, Blocked> {
        let local = self.local(host, port).await?;
        match TcpStream::connect(("127.0.0.1", local)).await {
            Ok(tcp) => {
                let _ = tcp.set_nodelay(true);
                Ok(Box::new(tcp))
            }
            Err(e) => Err(Blocked::new(
                Class::Unreachable,
                format!(
                    "{} no longer forwards to {}: {e}{}",
                    self.program,
                    joined(host, port),
                    self.said()
                ),
                self.remedy(),
            )),
        }
    }

    /// The port of this machine that leads to `host:port`; starts the program unless it runs.
    async fn local(&self, host: &str, port: u16) -> Result<u16, Blocked> {
        let mut state = self.state.lock().await;
        if let Some(r) = &mut state.running {
            match r.child.try_wait() {
                Ok(None) if r.host == host && r.to == port => return Ok(r.port),
                // Another server (a new cluster of that name): the old way is of no use.
                Ok(None) => {}
                Ok(Some(status)) => tracing::warn!(
                    side = self.side,
                    program = self.program,
                    %status,
                    said = self.last_words().unwrap_or_default(),
                    "the tunnel ended; it is started again"
                ),
                Err(e) => {
                    tracing::warn!(side = self.side, error = %e, "the tunnel cannot be looked at")
                }
            }
            state.running = None;
        }
        if let Some((when, why)) = &state.failed
            && when.elapsed() < REST
        {
            return Err(why.clone());
        }
        match self.start(host, port).await {
            Ok(running) => {
                let port = running.port;
                *state = State {
                    running: Some(running),
                    failed: None,
                };
                Ok(port)
            }
            Err(why) => {
                state.failed = Some((Instant::now(), why.clone()));
                Err(why)
            }
        }
    }

    async fn start(&self, host: &str, port: u16) -> Result<Running, Blocked> {
        let local = free_port().await.map_err(|e| {
            Blocked::new(
                Class::Unreachable,
                format!("no free port on 127.0.0.1 for the tunnel: {e}"),
                "",
            )
        })?;
        self.words
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        let mut child = Command::new("/bin/sh")
            .args(["-c", KEEPER, "crossfade-tunnel", &self.program])
            .args(self.words_for(local, host, port))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|e| {
                Blocked::new(
                    Class::Refused,
                    format!("`{}` cannot be started: {e}", self.program),
                    self.remedy(),
                )
            })?;
        let readers = [
            child.stdout.take().map(|o| self.listen(o)),
            child.stderr.take().map(|o| self.listen(o)),
        ];
        let until = Instant::now() + LOGIN;
        loop {
            match child.try_wait() {
                Ok(None) => {}
                Ok(Some(status)) => {
                    // What it said last may still be on its way.
                    for reader in readers.into_iter().flatten() {
                        let _ = tokio::time::timeout(Duration::from_millis(500), reader).await;
                    }
                    return Err(self.ended(&format!("ended with {status}")));
                }
                Err(e) => return Err(self.ended(&format!("cannot be looked at: {e}"))),
            }
            if TcpStream::connect(("127.0.0.1", local)).await.is_ok() {
                return Ok(Running {
                    child,
                    port: local,
                    host: host.into(),
                    to: port,
                });
            }
            if Instant::now() > until {
                return Err(self.ended(&format!(
                    "did not open its port within {} seconds",
                    LOGIN.as_secs()
                )));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Its words on the command line.
    fn words_for(&self, local: u16, host: &str, port: u16) -> Vec<String> {
        let mut out: Vec<String> = vec![];
        let mut add = |words: &[&str]| out.extend(words.iter().map(|w| w.to_string()));
        match &self.kind {
            Kind::Ssh(ssh) => {
                // No questions (nobody is there to answer), no sharing of another connection, an end when the port is taken or the line is dead.
                add(&["-N", "-T", "-S", "none"]);
                for option in [
                    "BatchMode=yes",
                    "ExitOnForwardFailure=yes",
                    "ConnectTimeout=15",
                    "ServerAliveInterval=15",
                    "ServerAliveCountMax=3",
                ] {
                    add(&["-o", option]);
                }
                if let Some(port) = ssh.port {
                    add(&["-p", &port.to_string()]);
                }
                if let Some(file) = &ssh.identity_file {
                    add(&["-i", file, "-o", "IdentitiesOnly=yes"]);
                }
                out.extend(ssh.options.iter().cloned());
                out.push("-L".into());
                out.push(format!("127.0.0.1:{local}:{}", joined(host, port)));
                out.push("--".into());
                out.push(ssh.host.clone());
            }
            Kind::Ssm(s) => {
                let parameters = serde_json::json!({
                    "host": [host.trim_matches(['[', ']'])],
                    "portNumber": [port.to_string()],
                    "localPortNumber": [local.to_string()],
                })
                .to_string();
                add(&["ssm", "start-session", "--target", &s.target]);
                add(&["--document-name", DOCUMENT, "--parameters", &parameters]);
                if let Some(region) = &s.region {
                    add(&["--region", region]);
                }
                if let Some(profile) = &s.profile {
                    add(&["--profile", profile]);
                }
            }
        }
        out
    }

    fn listen(&self, from: impl AsyncRead + Send + Unpin + 'static) -> tokio::task::JoinHandle<()> {
        let words = self.words.clone();
        tokio::spawn(async move {
            let mut lines = BufReader::new(from).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let line = line.trim();
                if line.is_empty() {
                    continue;
                }
                let mut words = words.lock().unwrap_or_else(PoisonError::into_inner);
                if words.len() == WORDS {
                    words.pop_front();
                }
                words.push_back(line.chars().take(300).collect());
            }
        })
    }

    /// What the program said last, in one line.
    pub(super) fn last_words(&self) -> Option<String> {
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        (!words.is_empty()).then(|| words.iter().cloned().collect::<Vec<_>>().join(" / "))
    }

    fn said(&self) -> String {
        match self.last_words() {
            Some(words) => format!("; {} said: {words}", self.program),
            None => format!("; {} said nothing", self.program),
        }
    }

    fn ended(&self, how: &str) -> Blocked {
        let said = self.last_words().unwrap_or_default();
        let (class, remedy) = judged(&said, self.name());
        Blocked::new(
            class,
            format!(
                "the tunnel to {} through {} is not open: {} {how}{}",
                self.side,
                self.name(),
                self.program,
                self.said()
            ),
            remedy.unwrap_or_else(|| self.remedy()),
        )
    }

    fn remedy(&self) -> String {
        let (key, try_it) = match &self.kind {
            Kind::Ssh(ssh) => ("ssh", format!("{} {} true", self.program, ssh.host)),
            Kind::Ssm(s) => (
                "ssm",
                format!("{} ssm start-session --target {}", self.program, s.target),
            ),
        };
        format!(
            "try `{try_it}` by hand; connections.{}.{key} in migration.yaml says how it is started",
            self.side
        )
    }
}

/// Whether what a program said heals by itself, and what to do if not.
fn judged(said: &str, name: &str) -> (Class, Option<String>) {
    let has = |words: &[&str]| words.iter().any(|w| said.contains(w));
    if has(&[
        "Host key verification failed",
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
    ]) {
        return (
            Class::Unauthorized,
            Some(format!(
                "nobody vouches for {name}'s host key: connect once by hand and compare it, or correct known_hosts"
            )),
        );
    }
    if has(&[
        "Permission denied",
        "Too many authentication failures",
        "no such identity",
    ]) {
        return (
            Class::Unauthorized,
            Some(format!(
                "give a key that {name} accepts: in the ssh agent, or as ssh.identityFile (questions are not answered)"
            )),
        );
    }
    if has(&[
        "SessionManagerPlugin is not found",
        "command not found",
        "not found: ",
    ]) {
        return (
            Class::Refused,
            Some("install the program that it names (for SSM: the Session Manager plugin)".into()),
        );
    }
    if has(&[
        "AccessDenied",
        "ExpiredToken",
        "UnrecognizedClient",
        "Unable to locate credentials",
    ]) {
        return (
            Class::Unauthorized,
            Some(format!(
                "let the caller do ssm:StartSession on {name} with the document {DOCUMENT}, and renew the credentials"
            )),
        );
    }
    if has(&["TargetNotConnected"]) {
        return (
            Class::Unreachable,
            Some(format!(
                "start {name} and its SSM agent, and see that it is listed in Systems Manager"
            )),
        );
    }
    if has(&[
        "unknown option",
        "illegal option",
        "Bad configuration option",
        "usage: ",
    ]) {
        return (
            Class::Refused,
            Some("correct ssh.options in migration.yaml".into()),
        );
    }
    (Class::Unreachable, None)
}

async fn free_port() -> std::io::Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    Ok(listener.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ssh_asks_nothing_shares_nothing_and_ends_when_the_line_is_dead() {
        let t = Tunnel::new(
            "green",
            "ssh".into(),
            Kind::Ssh(SshTunnel {
                host: "ops@bastion".into(),
                port: Some(2222),
                identity_file: Some("/keys/bastion".into()),
                options: vec!["-J".into(), "jump".into()],
                program: None,
            }),
        );
        let line = t
            .words_for(40000, "ABC.gr7.eu-west-1.eks.amazonaws.com", 443)
            .join(" ");
        for part in [
            "-N",
            "-S none",
            "-o BatchMode=yes",
            "-o ExitOnForwardFailure=yes",
            "-o ServerAliveInterval=15",
            "-p 2222",
            "-i /keys/bastion",
            "-J jump",
            "-L 127.0.0.1:40000:ABC.gr7.eu-west-1.eks.amazonaws.com:443 -- ops@bastion",
        ] {
            assert!(line.contains(part), "{part}: {line}");
        }
    }

    #[test]
    fn ssm_forwards_to_the_host_behind_the_instance() {
        let t = Tunnel::new(
            "green",
            "aws".into(),
            Kind::Ssm(Session {
                target: "i-0123456789abcdef0".into(),
                region: Some("eu-west-1".into()),
                profile: Some("prod".into()),
            }),
        );
        assert_eq!(
            t.words_for(40000, "api.internal", 443),
            [
                "ssm",
                "start-session",
                "--target",
                "i-0123456789abcdef0",
                "--document-name",
                "AWS-StartPortForwardingSessionToRemoteHost",
                "--parameters",
                r#"{"host":["api.internal"],"portNumber":["443"],"localPortNumber":["40000"]}"#,
                "--region",
                "eu-west-1",
                "--profile",
                "prod",
            ]
        );
    }

    #[test]
    fn a_refused_key_does_not_heal_by_repeating_and_a_lost_line_does() {
        assert_eq!(
            judged("ops@bastion: Permission denied (publickey).", "b").0,
            Class::Unauthorized
        );
        assert_eq!(
            judged("Host key verification failed.", "b").0,
            Class::Unauthorized
        );
        assert_eq!(
            judged("Timeout, server bastion not responding.", "b").0,
            Class::Unreachable
        );
        assert_eq!(
            judged(
                "ssh: connect to host bastion port 22: Connection refused",
                "b"
            )
            .0,
            Class::Unreachable
        );
        let (class, remedy) = judged(
            "An error occurred (TargetNotConnected) when calling the StartSession operation: i-1 is not connected.",
            "i-1",
        );
        assert_eq!(class, Class::Unreachable);
        assert!(remedy.unwrap().contains("SSM agent"));
    }
}
