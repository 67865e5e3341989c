//! Load balancers of one side: a cloud's for Services of type LoadBalancer, and one nginx for all Ingresses.
//!
//! They route to ready pods only (by Endpoints), answer 503 when there is none and 404 for a host that nobody claims, and
//! count per host what came in: the residual traffic of a side.

mod watch;

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::Full;
use jiff::Timestamp;

use crate::apps::http::{AskError, HttpServer, Task, ask, text};
use crate::net::BenchNet;

/// How long a load balancer waits for a pod before it says 504.
const UPSTREAM_TIMEOUT: Duration = Duration::from_secs(8);

/// What the load balancers of a side need.
#[derive(Clone, Debug)]
pub struct Config {
    /// `blue` or `green`.
    pub side: String,
    /// A kubeconfig that may read Services, Endpoints and Ingresses and write their status.
    pub kubeconfig: PathBuf,
    /// The private network.
    pub net: BenchNet,
    /// The address that Ingresses get: 203.0.113.10 on blue, 198.51.100.10 on green.
    pub ingress_ip: Ipv4Addr,
    /// The region in the host names of cloud load balancers.
    pub region: String,
    /// The ingress class that nginx serves, by annotation or `ingressClassName`; one without a class is not served.
    pub ingress_class: String,
    /// How often the API server is asked.
    pub poll: Duration,
}

impl Config {
    /// The fixture's values for a side.
    pub fn shop(side: &str, kubeconfig: PathBuf, net: BenchNet) -> Self {
        let ingress_ip = match side {
            "blue" => Ipv4Addr::new(203, 0, 113, 10),
            _ => Ipv4Addr::new(198, 51, 100, 10),
        };
        Config {
            side: side.to_owned(),
            kubeconfig,
            net,
            ingress_ip,
            region: "eu-west-1".to_owned(),
            ingress_class: "nginx".to_owned(),
            poll: Duration::from_millis(200),
        }
    }
}

/// The running load balancers of a side. Dropping them closes their listeners; their statuses stay in the API server.
#[derive(Debug)]
pub struct LoadBalancers {
    meter: Meter,
    ingress: SocketAddr,
    _nginx: Arc<HttpServer>,
    _task: Task,
}

/// Requests per host. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Meter(Arc<Mutex<BTreeMap<String, HostCount>>>);

/// What a side saw of one host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostCount {
    /// All requests.
    pub requests: u64,
    /// Answers by status code.
    pub statuses: BTreeMap<u16, u64>,
    /// The last request.
    pub last: Option<Timestamp>,
}

impl Meter {
    fn count(&self, host: &str, status: StatusCode) {
        let mut hosts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = hosts.entry(host.to_owned()).or_default();
        count.requests += 1;
        *count.statuses.entry(status.as_u16()).or_default() += 1;
        count.last = Some(Timestamp::now());
    }

    /// All hosts that had a request.
    pub fn hosts(&self) -> BTreeMap<String, HostCount> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// One host's count; zero when it had no request.
    pub fn host(&self, host: &str) -> HostCount {
        let hosts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.get(host).cloned().unwrap_or_default()
    }
}

/// Starts the load balancers of a side.
pub async fn start(config: Config) -> io::Result<LoadBalancers> {
    let (client, _) = crate::kubelet::client(&config.kubeconfig).await?;
    let meter = Meter::default();
    let nginx_routes = Arc::new(Routes::default());
    let nginx = Arc::new(balancer(nginx_routes.clone(), config.net.clone(), meter.clone()).await?);
    config
        .net
        .register(&config.ingress_ip.to_string(), nginx.addr());
    let ingress = nginx.addr();
    let task = Task::spawn(watch::run(config, client, nginx_routes, meter.clone()));
    Ok(LoadBalancers {
        meter,
        ingress,
        _nginx: nginx,
        _task: task,
    })
}

impl LoadBalancers {
    /// The residual traffic meter.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// The real address of nginx.
    pub fn ingress_addr(&self) -> SocketAddr {
        self.ingress
    }
}

/// Where a balancer sends requests; replaced as a whole at each poll.
#[derive(Debug, Default)]
struct Routes {
    rules: RwLock<Vec<Rule>>,
    turn: AtomicUsize,
}

/// One rule: requests for `host` (any when `None`) below `path` go to one of `backends`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    host: Option<String>,
    path: String,
    exact: bool,
    /// `podIP:port` of ready pods.
    backends: Vec<String>,
}

impl Routes {
    fn replace(&self, rules: Vec<Rule>) {
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = rules;
    }

    /// `None`: nobody claims this host and path. Backends begin with another one each time.
    fn find(&self, host: &str, path: &str) -> Option<Vec<String>> {
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        let best = rules
            .iter()
            .filter(|rule| rule.takes(host, path))
            .max_by_key(|rule| (rule.host_weight(), rule.exact, rule.path.len()))?;
        let mut backends = best.backends.clone();
        if !backends.is_empty() {
            let turn = self.turn.fetch_add(1, Ordering::Relaxed) % backends.len();
            backends.rotate_left(turn);
        }
        Some(backends)
    }
}

impl Rule {
    fn host_weight(&self) -> usize {
        match self.host.as_deref() {
            None => 0,
            Some(host) if host.starts_with("*.") => 1,
            Some(_) => 2,
        }
    }

    fn takes(&self, host: &str, path: &str) -> bool {
        let host_fits = match self.host.as_deref() {
            None => true,
            Some(wanted) => match wanted.strip_prefix("*.") {
                Some(parent) => host.split_once('.').is_some_and(|(_, rest)| rest == parent),
                None => wanted == host,
            },
        };
        let prefix = self.path.trim_end_matches('/');
        let path_fits = if self.exact {
            path == self.path
        } else {
            path == prefix
                || path
                    .strip_prefix(prefix)
                    .is_some_and(|rest| rest.starts_with('/'))
        };
        host_fits && path_fits
    }
}

async fn balancer(routes: Arc<Routes>, net: BenchNet, meter: Meter) -> io::Result<HttpServer> {
    HttpServer::start(move |request| {
        let (routes, net, meter) = (routes.clone(), net.clone(), meter.clone());
        async move {
            let host = host(&request);
            let response = balance(&routes, &net, &host, request).await;
            meter.count(&host, response.status());
            response
        }
    })
    .await
}

/// The host that was asked for, lower case, without port.
fn host(request: &Request<Bytes>) -> String {
    let given = request
        .headers()
        .get(header::HOST)
        .and_then(|host| host.to_str().ok())
        .unwrap_or_default();
    let name = given.rsplit_once(':').map_or(given, |(name, _)| name);
    name.trim_end_matches('.').to_ascii_lowercase()
}

async fn balance(
    routes: &Routes,
    net: &BenchNet,
    host: &str,
    request: Request<Bytes>,
) -> Response<Full<Bytes>> {
    let Some(backends) = routes.find(host, request.uri().path()) else {
        return text(StatusCode::NOT_FOUND, "default backend - 404\n");
    };
    let mut failure = String::from("no ready pod");
    for backend in &backends {
        let Some(real) = net.lookup(backend) else {
            failure = format!("{backend}: no route to host");
            continue;
        };
        match tokio::time::timeout(UPSTREAM_TIMEOUT, ask(real, upstream(&request))).await {
            Ok(Ok(mut response)) => {
                response.headers_mut().remove(header::CONNECTION);
                response.headers_mut().remove(header::TRANSFER_ENCODING);
                return response.map(Full::new);
            }
            // Nothing was sent, so the next pod may be asked whatever the method is.
            Ok(Err(AskError::Connect(..))) => failure = format!("{backend}: connection refused"),
            // Reads are repeated, writes never: the pod may have done it (nginx: proxy_next_upstream).
            Ok(Err(AskError::Broken(_, why))) if request.method().is_safe() => {
                failure = format!("{backend}: {why}")
            }
            Ok(Err(AskError::Broken(_, why))) => {
                return text(StatusCode::BAD_GATEWAY, &format!("{backend}: {why}\n"));
            }
            Err(_) => {
                return text(
                    StatusCode::GATEWAY_TIMEOUT,
                    &format!("{backend}: no answer\n"),
                );
            }
        }
    }
    let status = if backends.is_empty() {
        StatusCode::SERVICE_UNAVAILABLE
    } else {
        StatusCode::BAD_GATEWAY
    };
    text(status, &format!("{failure}\n"))
}

fn upstream(request: &Request<Bytes>) -> Request<Full<Bytes>> {
    let mut copy = request.clone().map(Full::new);
    copy.headers_mut().remove(header::CONNECTION);
    copy
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apps::{App, AppContext, Observed, Program};

    fn rule(host: Option<&str>, path: &str, backends: &[&str]) -> Rule {
        Rule {
            host: host.map(str::to_owned),
            path: path.to_owned(),
            exact: false,
            backends: backends
                .iter()
                .map(|backend| (*backend).to_owned())
                .collect(),
        }
    }

    async fn status(server: &HttpServer, host: &str, path: &str) -> StatusCode {
        let request = Request::get(path)
            .header("host", host)
            .body(Full::default())
            .unwrap();
        ask(server.addr(), request).await.unwrap().status()
    }

    #[tokio::test]
    async fn a_host_goes_to_its_ready_pods_an_unknown_one_gets_404_and_one_without_pods_503() {
        let net = BenchNet::start().await.unwrap();
        let context = AppContext {
            side: "blue".to_owned(),
            pod: "storefront/web-1".to_owned(),
            net: net.clone(),
            observed: Observed::default(),
        };
        let app = App::start(Program::Web("web"), &BTreeMap::new(), context)
            .await
            .unwrap();
        net.register("10.200.0.1:8080", app.addr().unwrap());
        let routes = Arc::new(Routes::default());
        routes.replace(vec![
            // The second pod's process is gone, the list does not know it yet: no client may notice.
            rule(
                Some("www.shop.test"),
                "/",
                &["10.200.0.1:8080", "10.200.0.2:8080"],
            ),
            rule(Some("status.shop.test"), "/", &[]),
        ]);
        let meter = Meter::default();
        let server = balancer(routes, net, meter.clone()).await.unwrap();
        for _ in 0..4 {
            assert_eq!(status(&server, "www.shop.test", "/").await, StatusCode::OK);
        }
        assert_eq!(
            status(&server, "WWW.shop.test:80", "/healthz").await,
            StatusCode::OK
        );
        assert_eq!(
            status(&server, "status.shop.test", "/").await,
            StatusCode::SERVICE_UNAVAILABLE
        );
        assert_eq!(
            status(&server, "nobody.shop.test", "/").await,
            StatusCode::NOT_FOUND
        );
        assert_eq!(meter.host("www.shop.test").requests, 5);
        assert_eq!(meter.host("status.shop.test").statuses[&503], 1);
        assert_eq!(meter.host("m.shop.test"), HostCount::default());
    }

    #[test]
    fn the_longest_path_of_the_most_exact_host_wins() {
        let routes = Routes::default();
        routes.replace(vec![
            rule(None, "/", &["any"]),
            rule(Some("*.shop.test"), "/", &["wild"]),
            rule(Some("www.shop.test"), "/", &["www"]),
            rule(Some("www.shop.test"), "/api", &["api"]),
        ]);
        let find = |host, path| routes.find(host, path).unwrap();
        assert_eq!(find("www.shop.test", "/api/x"), ["api"]);
        assert_eq!(find("www.shop.test", "/apix"), ["www"]);
        assert_eq!(find("m.shop.test", "/api"), ["wild"]);
        assert_eq!(find("a.b.shop.test", "/"), ["any"]);
    }
}
