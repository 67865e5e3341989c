//! The company as a user meets it: name resolution, then plain HTTP to whatever address came back.

use super::resolve::Resolver;
use crate::error::{Error as PeopleError, Kind};
use crate::object::sha256_hex;
use crate::spec::model::Probes;
use crate::world::probe::{DnsAnswer, HttpAnswer, HttpProbe, Probe, Via};
use crate::world::{Class, Error, Result};
use async_trait::async_trait;
use http_body_util::{BodyExt, Full, Limited};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// How long a user waits for a connection, and for the whole answer.
const CONNECT: Duration = Duration::from_secs(5);
const ANSWER: Duration = Duration::from_secs(20);
/// A probe reads no more than this of a body.
const MAX_BODY: usize = 8 << 20;

pub(super) struct LiveProbe {
    resolver: Resolver,
    /// `host:port` of the HTTP proxy.
    proxy: Option<String>,
}

impl LiveProbe {
    pub(super) fn new(probes: &Probes) -> crate::error::Result<Self> {
        let bad = |key: &str, value: &str, want: &str| {
            PeopleError::new(
                Kind::BadInput,
                format!("probes.{key} is `{value}`, which is not {want}"),
            )
        };
        let resolver = match &probes.resolver {
            Some(text) => Some(
                text.parse::<SocketAddr>()
                    .or_else(|_| text.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, 53)))
                    .map_err(|_| bad("resolver", text, "an address or address:port"))?,
            ),
            None => None,
        };
        let proxy = match &probes.proxy {
            Some(text) => {
                let uri: http::Uri = text.parse().map_err(|_| bad("proxy", text, "a URL"))?;
                match (uri.scheme_str(), uri.authority()) {
                    (Some("http"), Some(a)) => {
                        Some(format!("{}:{}", a.host(), a.port_u16().unwrap_or(80)))
                    }
                    _ => return Err(bad("proxy", text, "of the form http://host:port")),
                }
            }
            None => None,
        };
        Ok(LiveProbe {
            resolver: Resolver::new(resolver),
            proxy,
        })
    }

    /// What stands in the URL for the server: an address, or for a proxy also a load balancer's name, which the proxy resolves.
    async fn target(&self, probe: &HttpProbe) -> Result<String> {
        match &probe.via {
            Via::LoadBalancer(lb) if self.proxy.is_some() || lb.parse::<IpAddr>().is_ok() => {
                Ok(lb.clone())
            }
            Via::LoadBalancer(lb) => self.first_address(lb).await,
            Via::Dns => self.first_address(&probe.host).await,
        }
    }

    async fn first_address(&self, host: &str) -> Result<String> {
        self.resolver
            .addresses(host)
            .await?
            .into_iter()
            .next()
            .ok_or_else(|| Error::new(Class::NotFound, host, "the name has no address"))
    }

    async fn request(&self, probe: &HttpProbe, target: &str) -> Result<HttpAnswer> {
        let at = format!("http://{}{}", probe.host, probe.path);
        let lost = |e: &(dyn std::error::Error + 'static)| {
            Error::new(
                Class::Unreachable,
                &at,
                format!("{} (at {target})", super::kube_error::chain(e)),
            )
        };
        let wrap = |host: &str| {
            if host.contains(':') {
                format!("[{host}]")
            } else {
                host.to_string()
            }
        };
        let (connect_to, uri) = match &self.proxy {
            Some(proxy) => (
                proxy.clone(),
                format!("http://{}{}", wrap(target), probe.path),
            ),
            None => (format!("{}:80", wrap(target)), probe.path.clone()),
        };
        let stream = tokio::time::timeout(CONNECT, tokio::net::TcpStream::connect(&connect_to))
            .await
            .map_err(|e| lost(&e))?
            .map_err(|e| lost(&e))?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(hyper_util::rt::TokioIo::new(stream))
                .await
                .map_err(|e| lost(&e))?;
        let driver = tokio::spawn(connection);
        let mut request = http::Request::builder()
            .method(probe.method.as_str())
            .uri(uri)
            .header("host", &probe.host)
            .header(
                "user-agent",
                concat!("crossfade/", env!("CARGO_PKG_VERSION")),
            );
        if probe.body.is_some() {
            request = request.header("content-type", "application/json");
        }
        let request = request
            .body(Full::new(bytes::Bytes::from(
                probe.body.clone().unwrap_or_default(),
            )))
            .map_err(|e| {
                Error::new(Class::Refused, &at, format!("this is no HTTP request: {e}"))
            })?;
        let answer = sender.send_request(request).await.map_err(|e| lost(&e))?;
        let status = answer.status().as_u16();
        let headers = answer
            .headers()
            .iter()
            .map(|(k, v)| {
                (
                    k.as_str().to_string(),
                    String::from_utf8_lossy(v.as_bytes()).into_owned(),
                )
            })
            .collect();
        let body = Limited::new(answer.into_body(), MAX_BODY)
            .collect()
            .await
            .map_err(|e| Error::new(Class::Unreachable, &at, format!("the body broke off: {e}")))?
            .to_bytes();
        driver.abort();
        Ok(HttpAnswer {
            status,
            headers,
            body_sha256: sha256_hex(&body),
            address: target.into(),
        })
    }
}

#[async_trait]
impl Probe for LiveProbe {
    async fn http(&self, probe: &HttpProbe) -> Result<HttpAnswer> {
        let target = self.target(probe).await?;
        match tokio::time::timeout(ANSWER, self.request(probe, &target)).await {
            Ok(answer) => answer,
            Err(_) => Err(Error::new(
                Class::Unreachable,
                format!("http://{}{}", probe.host, probe.path),
                format!("no answer within {} s (at {target})", ANSWER.as_secs()),
            )),
        }
    }

    async fn resolve(&self, name: &str, rtype: &str) -> Result<DnsAnswer> {
        self.resolver.authoritative(name, rtype).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// A server that answers once and gives back what it was asked.
    async fn one_answer(reply: &'static str) -> (SocketAddr, tokio::task::JoinHandle<String>) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            let (mut s, _) = listener.accept().await.unwrap();
            let mut seen = vec![];
            let mut buffer = [0; 1024];
            while !String::from_utf8_lossy(&seen).contains("\r\n\r\n") {
                let n = s.read(&mut buffer).await.unwrap();
                seen.extend_from_slice(&buffer[..n]);
            }
            s.write_all(reply.as_bytes()).await.unwrap();
            String::from_utf8(seen).unwrap()
        });
        (address, task)
    }

    fn probe(via: Via) -> HttpProbe {
        HttpProbe {
            method: "GET".into(),
            host: "www.shop.test".into(),
            path: "/orders?x=1".into(),
            body: None,
            via,
        }
    }

    #[tokio::test]
    async fn a_proxy_is_asked_for_the_address_with_the_users_host() {
        let (proxy, seen) =
            one_answer("HTTP/1.1 200 OK\r\nX-Served-By: green\r\ncontent-length: 3\r\n\r\nabc")
                .await;
        let p = LiveProbe::new(&Probes {
            proxy: Some(format!("http://{proxy}")),
            ..Default::default()
        })
        .unwrap();
        let answer = p
            .http(&probe(Via::LoadBalancer("198.51.100.10".into())))
            .await
            .unwrap();
        assert_eq!(answer.status, 200);
        assert_eq!(answer.headers["x-served-by"], "green");
        assert_eq!(answer.address, "198.51.100.10");
        assert_eq!(answer.body_sha256, sha256_hex("abc"));
        let request = seen.await.unwrap();
        assert!(
            request.starts_with("GET http://198.51.100.10/orders?x=1 HTTP/1.1\r\n"),
            "{request}"
        );
        assert!(request.contains("host: www.shop.test\r\n"), "{request}");
    }

    #[tokio::test]
    async fn nobody_listening_is_unreachable() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let p = LiveProbe::new(&Probes {
            proxy: Some(format!("http://{address}")),
            ..Default::default()
        })
        .unwrap();
        let e = p
            .http(&probe(Via::LoadBalancer("x.elb.amazonaws.com".into())))
            .await
            .unwrap_err();
        assert_eq!(e.class, Class::Unreachable);
    }

    #[test]
    fn a_resolver_or_proxy_that_is_none_is_bad_input() {
        for probes in [
            Probes {
                resolver: Some("dns.shop.test".into()),
                ..Default::default()
            },
            Probes {
                proxy: Some("127.0.0.1:80".into()),
                ..Default::default()
            },
            Probes {
                proxy: Some("https://127.0.0.1:80".into()),
                ..Default::default()
            },
        ] {
            assert_eq!(LiveProbe::new(&probes).err().unwrap().kind, Kind::BadInput);
        }
    }
}
