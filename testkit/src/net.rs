//! The bench's private network: virtual addresses (pod IPs, elastic IPs, load balancers, database hosts) onto real
//! sockets of 127.0.0.0/8, and the gateway, an HTTP proxy through which clients and probes reach virtual addresses.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, Request, Response, StatusCode, Uri, header};
use http_body_util::Full;

use crate::apps::http::{HttpServer, Pool, collect, pool, text};

/// The bench's own pooled clients name the virtual target in this header (see [`crate::apps::http::through_proxy`]).
pub const TARGET_HEADER: HeaderName = HeaderName::from_static("x-bench-target");

/// How long the gateway waits for an answer before it says 504.
const GATEWAY_TIMEOUT: Duration = Duration::from_secs(10);

/// The map of the private network. Cheap to clone; the gateway ends with the last clone.
#[derive(Clone, Debug)]
pub struct BenchNet {
    table: Arc<Table>,
    gateway: Arc<HttpServer>,
}

#[derive(Debug, Default)]
struct Table {
    routes: RwLock<HashMap<String, SocketAddr>>,
    names: RwLock<HashMap<String, Ipv4Addr>>,
    pods: AtomicU32,
    balancers: AtomicU32,
}

impl Table {
    fn lookup(&self, virtual_address: &str) -> Option<SocketAddr> {
        let routes = self.routes.read().unwrap_or_else(PoisonError::into_inner);
        let key = normal(virtual_address);
        if let Some(real) = routes.get(&key) {
            return Some(*real);
        }
        // A bare host answers on every port (load balancers); a registered "host:port" only on its own.
        let (host, _port) = key.rsplit_once(':')?;
        routes.get(host).copied()
    }
}

fn normal(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

impl BenchNet {
    /// A new, empty network with its gateway on a free port of 127.0.0.1.
    pub async fn start() -> io::Result<Self> {
        let table = Arc::new(Table::default());
        let routes = table.clone();
        let client = pool();
        let gateway =
            HttpServer::start(move |request| forward(routes.clone(), client.clone(), request))
                .await?;
        Ok(BenchNet {
            table,
            gateway: Arc::new(gateway),
        })
    }

    /// The gateway: an HTTP proxy for absolute-form requests, e.g. `GET http://203.0.113.10/` with `Host: www.shop.test`.
    pub fn gateway(&self) -> SocketAddr {
        self.gateway.addr()
    }

    /// Maps `virtual_address` (`10.20.0.5:5432`, `203.0.113.10`, a load balancer's host name) to a real socket. A bare
    /// host answers on every port. A second registration replaces the first.
    pub fn register(&self, virtual_address: &str, real: SocketAddr) {
        let mut routes = self
            .table
            .routes
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        routes.insert(normal(virtual_address), real);
    }

    /// Forgets a virtual address.
    pub fn unregister(&self, virtual_address: &str) {
        let mut routes = self
            .table
            .routes
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        routes.remove(&normal(virtual_address));
    }

    /// The real socket behind `host:port` or `host`.
    pub fn lookup(&self, virtual_address: &str) -> Option<SocketAddr> {
        self.table.lookup(virtual_address)
    }

    /// Gives an AWS-side host name (a load balancer's) its virtual address, as Amazon's own DNS would.
    pub fn set_name(&self, host: &str, address: Ipv4Addr) {
        let mut names = self
            .table
            .names
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        names.insert(normal(host), address);
    }

    /// Forgets a host name (its load balancer is gone).
    pub fn remove_name(&self, host: &str) {
        let mut names = self
            .table
            .names
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        names.remove(&normal(host));
    }

    /// The virtual address of an AWS-side host name; `dualstack.` in front is understood, as Route 53 does.
    pub fn resolve(&self, host: &str) -> Option<Ipv4Addr> {
        let names = self
            .table
            .names
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let host = normal(host);
        let bare = host.strip_prefix("dualstack.").unwrap_or(&host);
        names.get(bare).copied()
    }

    /// A pod IP nobody had before: 10.200.0.0/14 is in neither side's service, pod nor database range.
    pub fn next_pod_ip(&self) -> Ipv4Addr {
        let n = self.table.pods.fetch_add(1, Ordering::Relaxed) + 1;
        Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 200, 0, 0)) + n)
    }

    /// A load balancer address nobody had before, from the benchmarking range 198.18.0.0/15.
    pub fn next_balancer_ip(&self) -> Ipv4Addr {
        let n = self.table.balancers.fetch_add(1, Ordering::Relaxed) + 1;
        Ipv4Addr::from(u32::from(Ipv4Addr::new(198, 18, 0, 0)) + n)
    }
}

/// Which virtual address a proxy request wants.
fn target(request: &Request<Bytes>) -> Option<String> {
    if let Some(target) = request.headers().get(TARGET_HEADER) {
        return target.to_str().ok().map(str::to_owned);
    }
    let host = request.uri().host()?;
    Some(format!("{host}:{}", request.uri().port_u16().unwrap_or(80)))
}

async fn forward(
    table: Arc<Table>,
    client: Pool,
    mut request: Request<Bytes>,
) -> Response<Full<Bytes>> {
    let Some(target) = target(&request) else {
        return text(
            StatusCode::BAD_REQUEST,
            "bench gateway: send the absolute form, e.g. GET http://203.0.113.10/ HTTP/1.1\n",
        );
    };
    let Some(real) = table.lookup(&target) else {
        return text(
            StatusCode::BAD_GATEWAY,
            &format!("bench gateway: nothing answers at {target} on the bench's network\n"),
        );
    };
    let path = request
        .uri()
        .path_and_query()
        .map_or("/", |path| path.as_str());
    let uri = match format!("http://{real}{path}").parse::<Uri>() {
        Ok(uri) => uri,
        Err(error) => {
            return text(
                StatusCode::BAD_REQUEST,
                &format!("bench gateway: {error}\n"),
            );
        }
    };
    *request.uri_mut() = uri;
    request.headers_mut().remove(TARGET_HEADER);
    request.headers_mut().remove("proxy-connection");
    request.headers_mut().remove(header::CONNECTION);
    let exchange = async {
        let response = client
            .request(request.map(Full::new))
            .await
            .map_err(|error| error.to_string())?;
        collect(response).await
    };
    match tokio::time::timeout(GATEWAY_TIMEOUT, exchange).await {
        Ok(Ok(mut response)) => {
            response.headers_mut().remove(header::CONNECTION);
            response.headers_mut().remove(header::TRANSFER_ENCODING);
            response.map(Full::new)
        }
        Ok(Err(error)) => text(
            StatusCode::BAD_GATEWAY,
            &format!("bench gateway: {target}: {error}\n"),
        ),
        Err(_) => text(
            StatusCode::GATEWAY_TIMEOUT,
            &format!("bench gateway: {target}: no answer in 10 s\n"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apps::http::{json, through_proxy};
    use http::Method;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    async fn echo_host() -> HttpServer {
        HttpServer::start(|request| async move {
            let host = request.headers().get(header::HOST).cloned();
            let host = host
                .as_ref()
                .and_then(|host| host.to_str().ok())
                .unwrap_or("none")
                .to_owned();
            json(
                StatusCode::OK,
                &serde_json::json!({"host": host, "uri": request.uri().to_string()}),
            )
        })
        .await
        .unwrap()
    }

    #[tokio::test]
    async fn a_probe_reaches_an_elastic_ip_through_the_gateway_and_its_host_header_is_kept() {
        let net = BenchNet::start().await.unwrap();
        let server = echo_host().await;
        net.register("203.0.113.10", server.addr());

        let mut stream = TcpStream::connect(net.gateway()).await.unwrap();
        stream
            .write_all(b"GET http://203.0.113.10/a?b=c HTTP/1.1\r\nHost: www.shop.test\r\nConnection: close\r\n\r\n")
            .await
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(
            answer.contains(r#"{"host":"www.shop.test","uri":"/a?b=c"}"#),
            "{answer}"
        );

        let request = through_proxy(
            Method::GET,
            net.gateway(),
            "203.0.113.10",
            "/x",
            "m.shop.test",
            Bytes::new(),
        )
        .unwrap();
        let response = collect(pool().request(request).await.unwrap())
            .await
            .unwrap();
        assert_eq!(response.body(), r#"{"host":"m.shop.test","uri":"/x"}"#);
    }

    #[tokio::test]
    async fn an_address_that_nobody_has_answers_502_and_says_which() {
        let net = BenchNet::start().await.unwrap();
        let request = through_proxy(
            Method::GET,
            net.gateway(),
            "192.0.2.1",
            "/",
            "www.shop.test",
            Bytes::new(),
        )
        .unwrap();
        let response = collect(pool().request(request).await.unwrap())
            .await
            .unwrap();
        assert_eq!(response.status(), StatusCode::BAD_GATEWAY);
        assert!(String::from_utf8_lossy(response.body()).contains("192.0.2.1"));
    }

    #[tokio::test]
    async fn a_database_address_answers_only_on_its_own_port_but_a_load_balancer_on_all() {
        let net = BenchNet::start().await.unwrap();
        let real = SocketAddr::from(([127, 0, 0, 1], 15432));
        net.register("10.20.0.5:5432", real);
        net.register("203.0.113.10", real);
        assert_eq!(net.lookup("10.20.0.5:5432"), Some(real));
        assert_eq!(net.lookup("10.20.0.5:5433"), None);
        assert_eq!(net.lookup("10.20.0.5"), None);
        assert_eq!(net.lookup("203.0.113.10:80"), Some(real));
        net.unregister("10.20.0.5:5432");
        assert_eq!(net.lookup("10.20.0.5:5432"), None);
    }

    #[tokio::test]
    async fn a_load_balancer_name_resolves_with_and_without_dualstack_until_it_is_gone() {
        let net = BenchNet::start().await.unwrap();
        let address = net.next_balancer_ip();
        net.set_name("A1-2.eu-west-1.elb.amazonaws.com.", address);
        assert_eq!(
            net.resolve("dualstack.a1-2.eu-west-1.elb.amazonaws.com"),
            Some(address)
        );
        net.remove_name("a1-2.eu-west-1.elb.amazonaws.com");
        assert_eq!(net.resolve("a1-2.eu-west-1.elb.amazonaws.com"), None);
        assert_ne!(net.next_balancer_ip(), address);
    }
}
