//! The traffic against in-process apps: the whole path, name to address to gateway to app.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use http::{HeaderValue, StatusCode, header};
use jiff::Timestamp;

use super::*;
use crate::apps::http::{HttpServer, json, text};
use crate::apps::{App, AppContext, Observed, Program, SERVED_BY};
use crate::dns::{Authority, AuthorityConfig, Mode, Resolver};
use crate::net::BenchNet;

/// A Route 53 whose only record points where `last` says.
async fn route53(last: Arc<AtomicU8>) -> HttpServer {
    HttpServer::start(move |request| {
        let body = match request.uri().path().ends_with("/rrset") {
            true => format!(
                "<R><ResourceRecordSets><ResourceRecordSet><Name>www.shop.test.</Name><Type>A</Type><TTL>1</TTL><ResourceRecords>\
                 <ResourceRecord><Value>192.0.2.{}</Value></ResourceRecord></ResourceRecords></ResourceRecordSet></ResourceRecordSets></R>",
                last.load(Ordering::SeqCst)
            ),
            false => "<R><HostedZones><HostedZone><Id>Z1</Id><Name>shop.test.</Name></HostedZone></HostedZones></R>".to_owned(),
        };
        async move { text(StatusCode::OK, &body) }
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn a_client_follows_its_resolver_to_the_other_side_and_an_outage_is_written_down_as_errors() {
    let net = BenchNet::start().await.unwrap();
    let app = async |side: &str| {
        let context = AppContext {
            side: side.to_owned(),
            pod: "storefront/web".to_owned(),
            net: net.clone(),
            observed: Observed::default(),
        };
        App::start(Program::Web("web"), &BTreeMap::new(), context)
            .await
            .unwrap()
    };
    let (blue, green) = (app("blue").await, app("green").await);
    net.register("192.0.2.1", blue.addr().unwrap());
    net.register("192.0.2.2", green.addr().unwrap());
    let last = Arc::new(AtomicU8::new(1));
    let aws = route53(last.clone()).await;
    let authority = Authority::start(AuthorityConfig::new(
        &format!("http://{}", aws.addr()),
        net.clone(),
    ))
    .await
    .unwrap();
    authority.refreshed().await;
    let honest = Resolver::start(authority.addr(), Mode::TtlTrue)
        .await
        .unwrap();
    let jvm = Resolver::start(authority.addr(), Mode::Forever)
        .await
        .unwrap();
    let clients = Clients::start(ClientsConfig {
        targets: vec![Target::root("www.shop.test")],
        resolvers: vec![("honest".to_owned(), honest), ("jvm".to_owned(), jvm)],
        gateway: net.gateway(),
        pause: Duration::from_millis(50),
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    last.store(2, Ordering::SeqCst);
    authority.refreshed().await;
    tokio::time::sleep(Duration::from_millis(1300)).await;
    let report = clients.report();
    assert!(report.failures().is_empty(), "{}", report.failure_summary());
    assert_eq!(report.last_side("www.shop.test", "honest"), Some("green"));
    assert_eq!(report.last_side("www.shop.test", "jvm"), Some("blue"));

    let outage = Timestamp::now();
    net.unregister("192.0.2.2");
    tokio::time::sleep(Duration::from_millis(300)).await;
    let report = clients.stop();
    assert!(
        report
            .between(Timestamp::UNIX_EPOCH, outage)
            .failures()
            .iter()
            // A request may be under way when the side goes: sent before, failed by the outage all the same.
            .all(|sample| outage.duration_since(sample.at).as_millis() < 500)
    );
    let failures = report.failures();
    assert!(!failures.is_empty());
    assert!(
        failures.iter().all(|sample| &*sample.resolver == "honest"),
        "{}",
        report.failure_summary()
    );
}

#[tokio::test]
async fn a_closed_window_is_counted_apart_from_errors_and_a_lost_order_is_found() {
    let net = BenchNet::start().await.unwrap();
    let mode = Arc::new(AtomicU8::new(0));
    let now = mode.clone();
    let service = HttpServer::start(move |request| {
        let mode = now.load(Ordering::SeqCst);
        async move {
            let order: serde_json::Value = serde_json::from_slice(request.body()).unwrap();
            let mut response = match mode {
                0 => json(
                    StatusCode::CREATED,
                    &serde_json::json!({"id": order["seq"]}),
                ),
                1 => text(StatusCode::SERVICE_UNAVAILABLE, "read only"),
                _ => text(StatusCode::INTERNAL_SERVER_ERROR, "bug"),
            };
            if mode == 1 {
                response
                    .headers_mut()
                    .insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            response
                .headers_mut()
                .insert(SERVED_BY, HeaderValue::from_static("blue"));
            response
        }
    })
    .await
    .unwrap();
    net.register("192.0.2.1", service.addr());
    let aws = route53(Arc::new(AtomicU8::new(1))).await;
    let authority = Authority::start(AuthorityConfig::new(
        &format!("http://{}", aws.addr()),
        net.clone(),
    ))
    .await
    .unwrap();
    authority.refreshed().await;
    let writers = Writers::start(WritersConfig {
        host: "www.shop.test".to_owned(),
        writers: 2,
        resolver: Resolver::start(authority.addr(), Mode::TtlTrue)
            .await
            .unwrap(),
        gateway: net.gateway(),
        pause: Duration::from_millis(20),
    });
    for next in [1, 2, 0] {
        tokio::time::sleep(Duration::from_millis(250)).await;
        mode.store(next, Ordering::SeqCst);
    }
    tokio::time::sleep(Duration::from_millis(250)).await;
    let report = writers.stop().await;
    assert!(!report.closed.is_empty() && !report.errors.is_empty());
    assert!(
        report.errors.iter().all(|(_, why)| why.contains("500")),
        "{:?}",
        report.errors
    );
    assert!(
        report.longest_pause() >= Duration::from_millis(400),
        "{:?}",
        report.longest_pause()
    );
    assert_eq!(report.last_side(), Some("blue"));
    let mut numbers: Vec<_> = report
        .acked
        .iter()
        .map(|ack| (ack.client.clone(), ack.seq))
        .collect();
    assert!(report.missing_from(numbers.clone()).is_empty());
    let lost = numbers.pop().unwrap();
    let missing = report.missing_from(numbers);
    assert_eq!(missing.len(), 1);
    assert_eq!((missing[0].client.clone(), missing[0].seq), lost);
}
