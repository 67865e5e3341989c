//! HTTP CONNECT (over TCP or TLS) and SOCKS5 (RFC 1928, 1929). The proxy gets the name of the server and resolves it itself.

use super::Blocked;
use super::wire::{Io, Tcp};
use crate::error::{Error, Kind, Result};
use crate::world::Class;
use base64::Engine;
use hyper_util::rt::TokioIo;
use kube::client::ConfigExt;
use std::net::{Ipv4Addr, Ipv6Addr};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tower::Service;

/// Longest head of an answer to CONNECT.
const HEAD: usize = 16 * 1024;

enum Speaks {
    Http,
    Https,
    Socks5,
}

/// A proxy.
pub(in crate::world::live) struct Proxy {
    side: &'static str,
    speaks: Speaks,
    host: String,
    port: u16,
    /// `name:password`.
    credentials: Option<secrecy::SecretString>,
}

impl Proxy {
    pub(super) fn new(
        side: &'static str,
        url: &http::Uri,
        credentials: Option<String>,
    ) -> Result<Proxy> {
        let bad = |what: String| {
            Error::new(Kind::BadInput, what)
                .at(format!("proxy of {side}"))
                .remedy("write it as http://host:port, https://host:port or socks5://host:port")
        };
        let (speaks, default) = match url.scheme_str() {
            Some("http") => (Speaks::Http, 80),
            Some("https") => (Speaks::Https, 443),
            Some("socks5" | "socks5h") => (Speaks::Socks5, 1080),
            other => {
                return Err(bad(format!(
                    "`{}` is no kind of proxy that is known",
                    other.unwrap_or("nothing")
                )));
            }
        };
        let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
        if host.is_empty() {
            return Err(bad("the proxy has no host".into()));
        }
        Ok(Proxy {
            side,
            speaks,
            host: host.into(),
            port: url.port_u16().unwrap_or(default),
            credentials: credentials.map(Into::into),
        })
    }

    /// For messages; never with the password.
    pub(super) fn name(&self) -> String {
        let scheme = match self.speaks {
            Speaks::Http => "http",
            Speaks::Https => "https",
            Speaks::Socks5 => "socks5",
        };
        format!("{scheme}://{}", joined(&self.host, self.port))
    }

    fn blocked(&self, class: Class, what: impl std::fmt::Display, remedy: &str) -> Blocked {
        Blocked::new(
            class,
            format!("the proxy {} {what}", self.name()),
            if remedy.is_empty() {
                format!(
                    "check connections.{}.proxy in migration.yaml, and that the proxy can be reached from here",
                    self.side
                )
            } else {
                remedy.to_string()
            },
        )
    }

    /// A connection to `host:port`, seen from the proxy.
    pub(super) async fn open(
        &self,
        host: &str,
        port: u16,
    ) -> std::result::Result<Box<dyn Io>, Blocked> {
        let unreachable = |e: &dyn std::fmt::Display| {
            self.blocked(Class::Unreachable, format!("cannot be reached: {e}"), "")
        };
        let tcp = tokio::net::TcpStream::connect((self.host.as_str(), self.port))
            .await
            .map_err(|e| unreachable(&e))?;
        let _ = tcp.set_nodelay(true);
        match self.speaks {
            Speaks::Http => self.connect(tcp, host, port).await,
            Speaks::Https => {
                // The proxy's own certificate is checked against the authorities of this machine.
                let uri: http::Uri = format!("https://{}", joined(&self.host, self.port))
                    .parse()
                    .map_err(|e| unreachable(&e))?;
                let mut tls = kube::Config::new(uri.clone())
                    .rustls_https_connector_with_connector(Tcp(Some(tcp)))
                    .map_err(|e| unreachable(&e))?;
                let stream = tls.call(uri).await.map_err(|e| {
                    self.blocked(
                        Class::Unauthorized,
                        format!(
                            "did not prove who it is: {}",
                            super::super::kube_error::chain(e.as_ref())
                        ),
                        "install the authority of the proxy's certificate on this machine",
                    )
                })?;
                self.connect(TokioIo::new(stream), host, port).await
            }
            Speaks::Socks5 => self.socks(tcp, host, port).await,
        }
    }

    async fn connect<S: Io + 'static>(
        &self,
        mut s: S,
        host: &str,
        port: u16,
    ) -> std::result::Result<Box<dyn Io>, Blocked> {
        use secrecy::ExposeSecret;
        let lost =
            |e: std::io::Error| self.blocked(Class::Unreachable, format!("broke off: {e}"), "");
        let target = joined(host, port);
        let mut ask = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n");
        if let Some(c) = &self.credentials {
            let value = base64::engine::general_purpose::STANDARD.encode(c.expose_secret());
            ask.push_str(&format!("Proxy-Authorization: Basic {value}\r\n"));
        }
        ask.push_str("\r\n");
        s.write_all(ask.as_bytes()).await.map_err(lost)?;
        // Byte by byte: what follows the head belongs to TLS. The head is short.
        let mut head = vec![];
        while !head.ends_with(b"\r\n\r\n") {
            if head.len() >= HEAD {
                return Err(self.blocked(Class::Internal, "answers without end", ""));
            }
            let byte = s.read_u8().await.map_err(lost)?;
            head.push(byte);
        }
        let head = String::from_utf8_lossy(&head);
        let line = head.lines().next().unwrap_or_default();
        let status: u16 = line
            .split_whitespace()
            .nth(1)
            .and_then(|s| s.parse().ok())
            .unwrap_or(0);
        match status {
            200..=299 => Ok(Box::new(s)),
            407 => Err(self.blocked(
                Class::Unauthorized,
                format!("wants another name and password ({line})"),
                &format!("set name:password in the variable that connections.{}.proxyCredentialsEnv names", self.side),
            )),
            // Squid's word for "this port or host is not on my list".
            401 | 403 | 405 => Err(self.blocked(
                Class::Refused,
                format!("does not let us through to {target} ({line})"),
                &format!("let the proxy connect to {target}"),
            )),
            0 => Err(self.blocked(
                Class::Refused,
                format!("does not speak HTTP ({})", line.chars().take(80).collect::<String>()),
                "check its scheme and port",
            )),
            _ => Err(self.blocked(
                Class::Unreachable,
                format!("cannot connect to {target} ({line})"),
                &format!("check that the proxy resolves and reaches {target}"),
            )),
        }
    }

    async fn socks<S: Io + 'static>(
        &self,
        mut s: S,
        host: &str,
        port: u16,
    ) -> std::result::Result<Box<dyn Io>, Blocked> {
        use secrecy::ExposeSecret;
        let lost =
            |e: std::io::Error| self.blocked(Class::Unreachable, format!("broke off: {e}"), "");
        let secret = self
            .credentials
            .as_ref()
            .map(|c| c.expose_secret().to_string());
        let methods: &[u8] = if secret.is_some() {
            &[5, 2, 0, 2]
        } else {
            &[5, 1, 0]
        };
        s.write_all(methods).await.map_err(lost)?;
        let mut answer = [0; 2];
        s.read_exact(&mut answer).await.map_err(lost)?;
        let denied = || {
            self.blocked(
                Class::Unauthorized,
                "wants another name and password",
                &format!("set name:password in the variable that connections.{}.proxyCredentialsEnv names", self.side),
            )
        };
        match (answer, &secret) {
            ([5, 0], _) => {}
            ([5, 2], Some(secret)) => {
                let (name, password) = secret.split_once(':').unwrap_or((secret, ""));
                let (Ok(n), Ok(p)) = (u8::try_from(name.len()), u8::try_from(password.len()))
                else {
                    return Err(self.blocked(
                        Class::Refused,
                        "takes names and passwords of 255 bytes at most",
                        "",
                    ));
                };
                let mut ask = vec![1, n];
                ask.extend(name.as_bytes());
                ask.push(p);
                ask.extend(password.as_bytes());
                s.write_all(&ask).await.map_err(lost)?;
                s.read_exact(&mut answer).await.map_err(lost)?;
                if answer[1] != 0 {
                    return Err(denied());
                }
            }
            ([5, _], _) => return Err(denied()),
            _ => {
                return Err(self.blocked(
                    Class::Refused,
                    "does not speak SOCKS5",
                    "check its scheme and port",
                ));
            }
        }
        let mut ask = vec![5, 1, 0];
        let bare = host.trim_matches(['[', ']']);
        if let Ok(ip) = bare.parse::<Ipv4Addr>() {
            ask.push(1);
            ask.extend(ip.octets());
        } else if let Ok(ip) = bare.parse::<Ipv6Addr>() {
            ask.push(4);
            ask.extend(ip.octets());
        } else {
            let Ok(n) = u8::try_from(bare.len()) else {
                return Err(self.blocked(Class::Refused, "takes names of 255 bytes at most", ""));
            };
            ask.extend([3, n]);
            ask.extend(bare.as_bytes());
        }
        ask.extend(port.to_be_bytes());
        s.write_all(&ask).await.map_err(lost)?;
        let mut answer = [0; 4];
        s.read_exact(&mut answer).await.map_err(lost)?;
        let target = joined(host, port);
        if answer[1] != 0 {
            let (class, why) = match answer[1] {
                2 => (Class::Refused, "its rules do not allow it"),
                3 => (Class::Unreachable, "network unreachable"),
                4 => (
                    Class::Unreachable,
                    "host unreachable, or a name that it does not know",
                ),
                5 => (Class::Unreachable, "connection refused"),
                6 => (Class::Unreachable, "timed out"),
                7 => (Class::Refused, "it does not know CONNECT"),
                8 => (Class::Refused, "it does not know this kind of address"),
                _ => (Class::Unreachable, "general failure"),
            };
            return Err(self.blocked(
                class,
                format!("cannot connect to {target}: {why}"),
                &format!("check that the proxy resolves and reaches {target}"),
            ));
        }
        // The address that it is bound to: of no use, but in the way.
        let rest = match answer[3] {
            1 => 4,
            4 => 16,
            3 => usize::from(s.read_u8().await.map_err(lost)?),
            _ => {
                return Err(self.blocked(
                    Class::Refused,
                    "does not speak SOCKS5",
                    "check its scheme and port",
                ));
            }
        };
        let mut bound = vec![0; rest + 2];
        s.read_exact(&mut bound).await.map_err(lost)?;
        Ok(Box::new(s))
    }
}

/// `host:port`, with brackets around an IPv6 address.
pub(super) fn joined(host: &str, port: u16) -> String {
    let bare = host.trim_matches(['[', ']']);
    if bare.contains(':') {
        format!("[{bare}]:{port}")
    } else {
        format!("{bare}:{port}")
    }
}
