//! A Kubernetes client whose connections go another way than straight.

use super::proxy::joined;
use super::wire::{Quiet, Wire};
use super::{Blocked, Dial};
use crate::world::Class;
use futures::future::BoxFuture;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::client::{Body, ConfigExt};
use std::task::{Context, Poll};
use std::time::Duration;
use tower::BoxError;

/// A connection that does not stand by then is given up. A program that has to log in first has longer.
const OPEN: Duration = Duration::from_secs(15);
/// Silence on a connection when the configuration names none.
const SILENCE: Duration = Duration::from_secs(75);

/// The client: as kube makes one, with our own way to open connections beneath its TLS.
pub(in crate::world::live) fn client(
    config: kube::Config,
    dial: Dial,
) -> Result<kube::Client, kube::Error> {
    let connector = Connector {
        dial,
        silence: config.read_timeout.unwrap_or(SILENCE),
    };
    let https = config.rustls_https_connector_with_connector(connector)?;
    let hyper: Client<_, Body> = Client::builder(TokioExecutor::new()).build(https);
    let service = tower::ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(hyper);
    Ok(kube::Client::new(service, config.default_namespace.clone()))
}

/// Opens connections on a [`Dial`].
#[derive(Clone)]
struct Connector {
    dial: Dial,
    silence: Duration,
}

impl tower::Service<http::Uri> for Connector {
    type Response = Wire;
    type Error = Blocked;
    type Future = BoxFuture<'static, Result<Wire, Blocked>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Blocked>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: http::Uri) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            let host = uri.host().unwrap_or_default().to_string();
            let port = uri.port_u16().unwrap_or(443);
            let target = joined(&host, port);
            let io = match &this.dial {
                Dial::Proxy(proxy) => tokio::time::timeout(OPEN, proxy.open(&host, port))
                    .await
                    .unwrap_or_else(|_| {
                        Err(Blocked::new(
                            Class::Unreachable,
                            format!(
                                "the proxy {} did not connect to {target} within {} seconds",
                                proxy.name(),
                                OPEN.as_secs()
                            ),
                            "check that the proxy can be reached from here, and that it reaches the server",
                        ))
                    })?,
                // Has its own limits: a login takes longer than a connection.
                Dial::Tunnel(tunnel) => tunnel.open(&host, port).await?,
            };
            Ok(Wire(TokioIo::new(Quiet::new(io, this.silence))))
        })
    }
}
