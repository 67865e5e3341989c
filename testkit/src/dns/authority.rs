//! The authoritative server: what Route 53 holds is what it answers, a moment later.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use hickory_proto::op::{Message, ResponseCode};
use tokio::sync::{Notify, watch};

use super::route53;
use super::wire::{Server, reply};
use super::zone::{Zone, answer};
use crate::apps::http::Task;
use crate::net::BenchNet;

/// What the authoritative server needs.
#[derive(Clone, Debug)]
pub struct AuthorityConfig {
    /// Where Route 53 is asked, `http://127.0.0.1:PORT`: best the emulator itself, so that the bench's polling neither
    /// fills the strict layer's call log nor uses up its request rate.
    pub endpoint: String,
    /// Resolves the targets of aliases.
    pub net: BenchNet,
    /// How often the zones are read.
    pub poll: Duration,
    /// The TTL of alias answers in seconds (60 at AWS; 5 on the bench, so that tests need not wait a minute).
    pub alias_ttl: u32,
}

impl AuthorityConfig {
    /// The bench's defaults.
    pub fn new(endpoint: &str, net: BenchNet) -> Self {
        AuthorityConfig {
            endpoint: endpoint.to_owned(),
            net,
            poll: Duration::from_millis(300),
            alias_ttl: 5,
        }
    }
}

/// `None` until the zones were read once: until then every question is a SERVFAIL, which nobody caches.
type Zones = Arc<RwLock<Option<Arc<Vec<Zone>>>>>;

/// A running authoritative server.
#[derive(Debug)]
pub struct Authority {
    server: Server,
    reads: watch::Receiver<u64>,
    now: Arc<Notify>,
    _poll: Task,
}

impl Authority {
    /// Starts serving on a free port of 127.0.0.1, UDP and TCP.
    pub async fn start(config: AuthorityConfig) -> io::Result<Self> {
        let endpoint = endpoint_addr(&config.endpoint)?;
        let zones = Zones::default();
        let (read, reads) = watch::channel(0_u64);
        let now = Arc::new(Notify::new());
        let poll = Task::spawn(poll(
            endpoint,
            config.poll,
            zones.clone(),
            read,
            now.clone(),
        ));
        let (net, alias_ttl) = (config.net, config.alias_ttl);
        let server = Server::start(move |request| {
            let response = respond(&zones, &net, alias_ttl, &request);
            async move { response }
        })
        .await?;
        Ok(Authority {
            server,
            reads,
            now,
            _poll: poll,
        })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.server.addr
    }

    /// Waits until the zones have been read anew, from now on.
    pub async fn refreshed(&self) {
        let mut reads = self.reads.clone();
        // The read under way may have begun before: two more are surely later.
        let wanted = *reads.borrow() + 2;
        self.now.notify_one();
        let _ = reads.wait_for(|reads| *reads >= wanted).await;
    }
}

/// `http://127.0.0.1:PORT` to its address.
fn endpoint_addr(endpoint: &str) -> io::Result<SocketAddr> {
    let bare = endpoint
        .trim_start_matches("http://")
        .trim_end_matches('/')
        .replace("localhost", "127.0.0.1");
    bare.parse().map_err(|error| {
        io::Error::other(format!(
            "AWS endpoint {endpoint:?}: want http://IP:PORT: {error}"
        ))
    })
}

async fn poll(
    endpoint: SocketAddr,
    pause: Duration,
    zones: Zones,
    read: watch::Sender<u64>,
    now: Arc<Notify>,
) {
    loop {
        match route53::zones(endpoint).await {
            Ok(list) => {
                *zones.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(list));
                read.send_modify(|reads| *reads += 1);
            }
            Err(error) => tracing::debug!(%error, "authoritative DNS: zones not read"),
        }
        let _ = tokio::time::timeout(pause, now.notified()).await;
    }
}

fn respond(zones: &Zones, net: &BenchNet, alias_ttl: u32, request: &Message) -> Message {
    let loaded = zones.read().unwrap_or_else(PoisonError::into_inner).clone();
    let (Some(zones), Some(question)) = (loaded, request.queries.first()) else {
        return reply(request, ResponseCode::ServFail);
    };
    let answer = answer(
        &zones,
        net,
        alias_ttl,
        question.name(),
        question.query_type(),
        point(),
    );
    let mut response = reply(request, answer.code);
    response.metadata.authoritative = answer.authoritative;
    response.add_answers(answer.answers);
    response.add_authorities(answer.authorities);
    response
}

/// A point in 0..1 that differs from question to question; good enough to spread by weight.
fn point() -> f64 {
    use std::hash::{BuildHasher, RandomState};
    let random = RandomState::new().hash_one(0_u8);
    (random >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apps::http::{HttpServer, text};
    use crate::dns::query;
    use hickory_proto::rr::RecordType;
    use http::StatusCode;

    fn listing(address: &str) -> String {
        format!(
            "<ListResourceRecordSetsResponse><ResourceRecordSets><ResourceRecordSet><Name>www.shop.test.</Name><Type>A</Type>\
             <TTL>20</TTL><ResourceRecords><ResourceRecord><Value>{address}</Value></ResourceRecord></ResourceRecords>\
             </ResourceRecordSet></ResourceRecordSets><IsTruncated>false</IsTruncated></ListResourceRecordSetsResponse>"
        )
    }

    #[tokio::test]
    async fn a_change_in_route_53_is_answered_a_moment_later_with_the_authoritative_bit() {
        let address = Arc::new(RwLock::new("203.0.113.10".to_owned()));
        let current = address.clone();
        let aws = HttpServer::start(move |request| {
            let body = if request.uri().path().ends_with("/rrset") {
                listing(&current.read().unwrap())
            } else {
                "<ListHostedZonesResponse><HostedZones>\
                 <HostedZone><Id>/hostedzone/Z1</Id><Name>shop.test.</Name><Config><PrivateZone>false</PrivateZone></Config></HostedZone>\
                 <HostedZone><Id>/hostedzone/Z2</Id><Name>private.test.</Name><Config><PrivateZone>true</PrivateZone></Config></HostedZone>\
                 </HostedZones><IsTruncated>false</IsTruncated></ListHostedZonesResponse>"
                    .to_owned()
            };
            async move { text(StatusCode::OK, &body) }
        })
        .await
        .unwrap();
        let net = BenchNet::start().await.unwrap();
        let config = AuthorityConfig::new(&format!("http://{}", aws.addr()), net);
        let authority = Authority::start(config).await.unwrap();
        authority.refreshed().await;
        let first = query(authority.addr(), "www.shop.test", RecordType::A)
            .await
            .unwrap();
        assert!(first.metadata.authoritative);
        assert_eq!(first.answers[0].data.to_string(), "203.0.113.10");
        *address.write().unwrap() = "198.51.100.10".to_owned();
        authority.refreshed().await;
        let second = query(authority.addr(), "www.shop.test", RecordType::A)
            .await
            .unwrap();
        assert_eq!(second.answers[0].data.to_string(), "198.51.100.10");
        let private = query(authority.addr(), "x.private.test", RecordType::A)
            .await
            .unwrap();
        assert_eq!(private.metadata.response_code, ResponseCode::Refused);
    }

    #[tokio::test]
    async fn before_the_zones_are_read_the_answer_is_servfail_and_not_a_cachable_nxdomain() {
        let net = BenchNet::start().await.unwrap();
        let authority = Authority::start(AuthorityConfig::new("http://127.0.0.1:9", net))
            .await
            .unwrap();
        let answer = query(authority.addr(), "www.shop.test", RecordType::A)
            .await
            .unwrap();
        assert_eq!(answer.metadata.response_code, ResponseCode::ServFail);
    }
}
