//! The way to an API server where the network does not lead there by itself: a proxy, an SSH bastion, an SSM session.
//!
//! Whatever lies between, TLS is end to end: the server's certificate is checked against the host of its own address (or `tlsServerName`), and
//! that host is resolved on the far side. A [`Dial`] only says where the bytes go.

mod client;
mod proxy;
mod tunnel;
mod wire;

pub(super) use client::client;

use crate::error::{Error, Kind, Result};
use crate::spec::connections::{Connection, SshTunnel, SsmTunnel};
use crate::spec::model;
use crate::world::Class;
use proxy::Proxy;
use std::path::Path;
use std::sync::Arc;
use tunnel::Tunnel;

/// Why the way was not open. Found again in the chain of whatever error it became.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub(super) struct Blocked {
    /// Class.
    pub class: Class,
    /// What happened, with the last words of the program or proxy.
    pub message: String,
    /// What to do.
    pub remedy: String,
}

impl Blocked {
    fn new(class: Class, message: impl Into<String>, remedy: impl Into<String>) -> Blocked {
        Blocked {
            class,
            message: message.into(),
            remedy: remedy.into(),
        }
    }

    /// The one that an error comes from.
    pub fn within<'e>(e: &'e (dyn std::error::Error + 'static)) -> Option<&'e Blocked> {
        let mut at = Some(e);
        while let Some(e) = at {
            if let Some(found) = e.downcast_ref::<Blocked>() {
                return Some(found);
            }
            at = e.source();
        }
        None
    }
}

/// How a connection to a server is opened.
#[derive(Clone)]
pub(super) enum Dial {
    /// Through a proxy.
    Proxy(Arc<Proxy>),
    /// Through a program that forwards a port.
    Tunnel(Arc<Tunnel>),
}

impl Dial {
    /// What the program said last, for an error on a connection that it had opened.
    pub fn last_words(&self) -> Option<String> {
        match self {
            Dial::Proxy(_) => None,
            Dial::Tunnel(t) => t.last_words(),
        }
    }

    /// A proxy that a kubeconfig names (`proxy-url`), name and password included.
    pub fn of_kubeconfig(side: &'static str, url: &http::Uri) -> Result<Dial> {
        let userinfo = url
            .authority()
            .and_then(|a| a.as_str().rsplit_once('@'))
            .map(|(user, _)| super::aws::percent_decode(user));
        Ok(Dial::Proxy(Arc::new(Proxy::new(side, url, userinfo)?)))
    }
}

/// What the spec says of the way to one side.
#[derive(Clone, Default)]
pub(super) struct Way {
    /// `None`: directly, or as the kubeconfig says.
    pub dial: Option<Dial>,
    /// Name that the certificate must carry instead of the host of the address.
    pub tls_server_name: Option<String>,
}

impl Way {
    /// Checks what can be checked without a connection: the programs are there, the password is given. `base` is the spec's folder.
    pub fn of(
        side: &'static str,
        declared: Option<&Connection>,
        aws: &model::Aws,
        base: &Path,
    ) -> Result<Way> {
        let Some(c) = declared else {
            return Ok(Way::default());
        };
        let at = |key: &str| format!("migration.yaml: connections.{side}.{key}");
        let dial = if let Some(url) = &c.proxy {
            let uri: http::Uri = url.parse().map_err(|_| {
                Error::new(Kind::BadInput, "this is no URL of a proxy").at(at("proxy"))
            })?;
            let credentials = match &c.proxy_credentials_env {
                None => None,
                Some(name) => Some(std::env::var(name).map_err(|_| {
                    Error::new(
                        Kind::BadInput,
                        format!("the environment variable {name} is not set"),
                    )
                    .at(at("proxyCredentialsEnv"))
                    .remedy(format!("export {name}=name:password"))
                })?),
            };
            Some(Dial::Proxy(Arc::new(Proxy::new(side, &uri, credentials)?)))
        } else if let Some(ssh) = &c.ssh {
            let program = ssh.program.clone().unwrap_or_else(|| "ssh".into());
            present(
                &program,
                &at("ssh"),
                "install OpenSSH's client, or name the program in ssh.program",
            )?;
            Some(Dial::Tunnel(Arc::new(Tunnel::new(
                side,
                program,
                tunnel::Kind::Ssh(resolved(ssh, base)),
            ))))
        } else if let Some(ssm) = &c.ssm {
            let program = ssm.program.clone().unwrap_or_else(|| "aws".into());
            present(
                &program,
                &at("ssm"),
                "install the AWS CLI (version 2), or name the program in ssm.program",
            )?;
            // The CLI looks for it by this name, and says little when it does not find it.
            if ssm.program.is_none() {
                present(
                    "session-manager-plugin",
                    &at("ssm"),
                    "install the Session Manager plugin for the AWS CLI",
                )?;
            }
            Some(Dial::Tunnel(Arc::new(Tunnel::new(
                side,
                program,
                tunnel::Kind::Ssm(session(ssm, aws)),
            ))))
        } else {
            None
        };
        Ok(Way {
            dial,
            tls_server_name: c.tls_server_name.clone(),
        })
    }
}

fn session(ssm: &SsmTunnel, aws: &model::Aws) -> tunnel::Session {
    tunnel::Session {
        target: ssm.target.clone(),
        region: aws.region.clone(),
        profile: aws.profile.clone(),
    }
}

/// The key is relative to the spec; `~` is ssh's own to expand.
fn resolved(ssh: &SshTunnel, base: &Path) -> SshTunnel {
    let mut ssh = ssh.clone();
    if let Some(file) = &mut ssh.identity_file
        && !file.starts_with('~')
    {
        *file = base.join(&*file).display().to_string();
    }
    ssh
}

/// A program that is not there is found before anything is asked of a server.
fn present(program: &str, at: &str, remedy: &str) -> Result<()> {
    let there = if program.contains('/') {
        Path::new(program).is_file()
    } else {
        std::env::var_os("PATH")
            .is_some_and(|path| std::env::split_paths(&path).any(|d| d.join(program).is_file()))
    };
    if there {
        return Ok(());
    }
    Err(Error::new(
        Kind::BadInput,
        format!("the program `{program}` is not there (not on PATH)"),
    )
    .at(at)
    .remedy(remedy))
}
