//! The little company's programs: they run as tasks of the bench, each with its own listener.
//!
//! Both sides answer with the same bodies, as a real migration needs; only the header `x-served-by` tells who answered.

pub mod http;
mod observed;
mod orders;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use ::http::{HeaderValue, Method, Request, StatusCode, header};
use bytes::Bytes;

use self::http::{HttpServer, json, text};
pub use self::observed::{Observed, Presence, ReportRun};
use crate::net::BenchNet;

/// Says which side answered: `blue` or `green`.
pub const SERVED_BY: ::http::HeaderName = ::http::HeaderName::from_static("x-served-by");

/// The port on which the HTTP apps listen unless their container names another.
pub const APP_PORT: u16 = 8080;

/// What the process kubelet can run. Everything else is KWOK's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// An HTTP app that says its name.
    Web(&'static str),
    /// The database-backed orders service.
    Orders,
    /// The queue consumer that must be single.
    Consumer,
    /// The report that a CronJob starts; it ends by itself.
    Report,
    /// A real ExternalDNS of this tag.
    ExternalDns(&'static str),
}

/// The images that the process kubelet runs, whole references: KWOK's Stages exclude exactly these.
pub const KNOWN_IMAGES: [&str; 9] = [
    "registry.shop.test/web:1.4",
    "registry.shop.test/api:2.0",
    "registry.shop.test/search:0.9",
    "registry.shop.test/orders:3.2",
    "registry.shop.test/consumer:1.0",
    "registry.shop.test/report:1.0",
    "registry.shop.test/status:1.0",
    "registry.k8s.io/external-dns/external-dns:v0.10.2",
    "registry.k8s.io/external-dns/external-dns:v0.21.0",
];

/// The program behind an image, if the process kubelet knows it.
pub fn program(image: &str) -> Option<Program> {
    let known = KNOWN_IMAGES.iter().find(|known| **known == image)?;
    let (repository, tag) = known.rsplit_once(':')?;
    Some(match repository.rsplit('/').next()? {
        "orders" => Program::Orders,
        "consumer" => Program::Consumer,
        "report" => Program::Report,
        "external-dns" => Program::ExternalDns(tag),
        name => Program::Web(name),
    })
}

/// Where a program runs.
#[derive(Clone, Debug)]
pub struct AppContext {
    /// `blue` or `green`.
    pub side: String,
    /// `namespace/name` of the pod.
    pub pod: String,
    /// The private network.
    pub net: BenchNet,
    /// Where consumers and reports leave their traces.
    pub observed: Observed,
}

/// A running in-process program. Dropping it ends it at once.
#[derive(Debug)]
pub enum App {
    /// Answers HTTP.
    Http(HttpServer),
    /// Consumes.
    Consumer(observed::Alive),
    /// Ends by itself after a moment.
    Report,
}

/// How long a report works.
const REPORT_TIME: Duration = Duration::from_millis(300);
/// Well-behaved apps go on serving for a moment after SIGTERM, until the load balancers have noticed.
const LAME_DUCK: Duration = Duration::from_millis(700);

impl App {
    /// Starts `program` with the container's environment.
    pub async fn start(
        program: Program,
        env: &BTreeMap<String, String>,
        context: AppContext,
    ) -> io::Result<App> {
        Ok(match program {
            Program::Web(name) => App::Http(web(name, &context.side).await?),
            Program::Orders => App::Http(orders::start(env, &context).await?),
            Program::Consumer => App::Consumer(
                context
                    .observed
                    .consumer_started(&context.side, &context.pod),
            ),
            Program::Report => {
                context.observed.report_ran(&context.side, &context.pod);
                App::Report
            }
            Program::ExternalDns(tag) => {
                return Err(io::Error::other(format!(
                    "external-dns {tag} is a process, not a task"
                )));
            }
        })
    }

    /// The real address of an HTTP app.
    pub fn addr(&self) -> Option<SocketAddr> {
        match self {
            App::Http(server) => Some(server.addr()),
            _ => None,
        }
    }

    /// Returns when the program has ended by itself; servers never do.
    pub async fn ended(&self) {
        match self {
            App::Report => tokio::time::sleep(REPORT_TIME).await,
            _ => std::future::pending().await,
        }
    }

    /// SIGTERM, with at most `grace` to end.
    pub async fn stop(self, grace: Duration) {
        match self {
            App::Http(server) => {
                tokio::time::sleep(LAME_DUCK.min(grace)).await;
                server.drain(grace.saturating_sub(LAME_DUCK)).await;
            }
            App::Consumer(alive) => {
                // It finishes the message it holds.
                tokio::time::sleep(Duration::from_millis(100).min(grace)).await;
                drop(alive);
            }
            App::Report => {}
        }
    }
}

fn served_by(side: &str) -> io::Result<HeaderValue> {
    HeaderValue::from_str(side).map_err(|error| io::Error::other(format!("side {side:?}: {error}")))
}

async fn web(name: &'static str, side: &str) -> io::Result<HttpServer> {
    let side = served_by(side)?;
    HttpServer::start(move |request: Request<Bytes>| {
        let side = side.clone();
        async move {
            let mut response = match (request.method(), request.uri().path()) {
                (&Method::GET | &Method::HEAD, "/") => {
                    json(StatusCode::OK, &serde_json::json!({"app": name}))
                }
                (&Method::GET | &Method::HEAD, "/healthz") => text(StatusCode::OK, "ok\n"),
                (&Method::GET | &Method::HEAD, _) => text(StatusCode::NOT_FOUND, "not found\n"),
                _ => {
                    let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "read only\n");
                    response
                        .headers_mut()
                        .insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
                    response
                }
            };
            response.headers_mut().insert(SERVED_BY, side);
            response
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apps::http::ask;
    use http_body_util::Full;

    fn context(net: &BenchNet, observed: &Observed, side: &str) -> AppContext {
        AppContext {
            side: side.to_owned(),
            pod: format!("platform/pod-{side}"),
            net: net.clone(),
            observed: observed.clone(),
        }
    }

    async fn get(addr: SocketAddr, path: &str) -> ::http::Response<Bytes> {
        let request = Request::get(path)
            .header("host", "www.shop.test")
            .body(Full::default())
            .unwrap();
        ask(addr, request).await.unwrap()
    }

    #[tokio::test]
    async fn both_sides_answer_the_same_body_and_only_a_header_tells_which_one_it_was() {
        let net = BenchNet::start().await.unwrap();
        let observed = Observed::default();
        let env = BTreeMap::new();
        let blue = App::start(Program::Web("web"), &env, context(&net, &observed, "blue"))
            .await
            .unwrap();
        let green = App::start(Program::Web("web"), &env, context(&net, &observed, "green"))
            .await
            .unwrap();
        let from_blue = get(blue.addr().unwrap(), "/").await;
        let from_green = get(green.addr().unwrap(), "/").await;
        assert_eq!(from_blue.body(), from_green.body());
        assert_eq!(from_blue.headers()[SERVED_BY], "blue");
        assert_eq!(from_green.headers()[SERVED_BY], "green");
        assert_eq!(
            get(blue.addr().unwrap(), "/healthz").await.status(),
            StatusCode::OK
        );
        assert_eq!(
            get(blue.addr().unwrap(), "/nope").await.status(),
            StatusCode::NOT_FOUND
        );
    }

    #[tokio::test]
    async fn a_consumer_on_each_side_at_the_same_time_is_seen_as_an_overlap() {
        let net = BenchNet::start().await.unwrap();
        let observed = Observed::default();
        let env = BTreeMap::new();
        let blue = App::start(Program::Consumer, &env, context(&net, &observed, "blue"))
            .await
            .unwrap();
        blue.stop(Duration::from_secs(1)).await;
        tokio::time::sleep(Duration::from_millis(5)).await;
        let green = App::start(Program::Consumer, &env, context(&net, &observed, "green"))
            .await
            .unwrap();
        assert_eq!(observed.consumer_overlaps(), vec![]);
        assert_eq!(
            observed.consumers_alive(),
            vec![("green".to_owned(), "platform/pod-green".to_owned())]
        );
        let _blue_again = App::start(Program::Consumer, &env, context(&net, &observed, "blue"))
            .await
            .unwrap();
        assert_eq!(observed.consumer_overlaps().len(), 1);
        drop(green);
        assert_eq!(observed.consumers_alive().len(), 1);
    }

    #[test]
    fn every_known_image_has_its_program_and_an_unknown_tag_is_left_to_kwok() {
        assert_eq!(
            program("registry.shop.test/web:1.4"),
            Some(Program::Web("web"))
        );
        assert_eq!(
            program("registry.shop.test/orders:3.2"),
            Some(Program::Orders)
        );
        assert_eq!(
            program("registry.k8s.io/external-dns/external-dns:v0.10.2"),
            Some(Program::ExternalDns("v0.10.2"))
        );
        assert!(KNOWN_IMAGES.iter().all(|image| program(image).is_some()));
        assert_eq!(program("registry.shop.test/web:1.5"), None);
        assert_eq!(program("registry.shop.test/mailer:1.0"), None);
    }

    #[tokio::test]
    async fn an_app_told_to_end_serves_until_the_load_balancers_have_noticed() {
        let net = BenchNet::start().await.unwrap();
        let app = App::start(
            Program::Web("web"),
            &BTreeMap::new(),
            context(&net, &Observed::default(), "blue"),
        )
        .await
        .unwrap();
        let addr = app.addr().unwrap();
        let stopping = tokio::spawn(app.stop(Duration::from_secs(5)));
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(get(addr, "/").await.status(), StatusCode::OK);
        stopping.await.unwrap();
        assert!(tokio::net::TcpStream::connect(addr).await.is_err());
    }
}
