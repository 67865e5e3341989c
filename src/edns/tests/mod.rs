//! One test per rule and trap of externaldns.md that the model must reproduce, by the age of the registry. What they share stands here.

mod any_age;
mod classes;
mod configs;
mod from_0_12;
mod from_0_18;
mod handover;
mod to_0_11;

use super::*;
use crate::world::dns::{Alias, Change, RecordSet, Zone};
use serde_json::{Value, json};

fn zone() -> Zone {
    Zone {
        id: "Z1".into(),
        name: "shop.test.".into(),
        private: false,
    }
}
fn config(version: &str, extra: &[&str]) -> Config {
    let mut args: Vec<String> = [
        "--provider=aws",
        "--source=ingress",
        "--source=service",
        "--registry=txt",
        "--domain-filter=shop.test",
        "--aws-zone-type=public",
    ]
    .iter()
    .map(|s| s.to_string())
    .collect();
    args.extend(extra.iter().map(|s| s.to_string()));
    Config::from_args(
        &format!("registry.k8s.io/external-dns/external-dns:v{version}"),
        &args,
    )
    .expect("a valid configuration")
}
fn blue(version: &str) -> Config {
    config(version, &["--txt-owner-id=shop-blue", "--policy=sync"])
}
fn green() -> Config {
    config(
        "0.21.0",
        &[
            "--txt-owner-id=shop-green",
            "--policy=upsert-only",
            "--exclude-record-types=AAAA",
        ],
    )
}
fn rec(name: &str, rtype: &str, ttl: u32, values: &[&str]) -> RecordSet {
    RecordSet {
        name: fqdn(name),
        rtype: rtype.into(),
        ttl: Some(ttl),
        values: values.iter().map(|v| v.to_string()).collect(),
        alias: None,
        set_identifier: None,
        routing: Default::default(),
    }
}
fn alias(name: &str, rtype: &str, target: &str) -> RecordSet {
    RecordSet {
        ttl: None,
        values: vec![],
        alias: Some(Alias {
            zone_id: canonical_zone(target).expect("an AWS load balancer").into(),
            name: fqdn(target),
            evaluate_target_health: true,
        }),
        ..rec(name, rtype, 0, &[])
    }
}
fn txt(name: &str, owner: &str, resource: &str) -> RecordSet {
    rec(name, "TXT", 300, &[&heritage_value(owner, resource)])
}
const WEB: &str = "ingress/storefront/web";
const ORDERS: &str = "service/orders/orders";
const BLUE_LB: &str = "ablue-1.eu-west-1.elb.amazonaws.com";
const GREEN_LB: &str = "agreen-2.eu-west-1.elb.amazonaws.com";

fn ingress(ip: Option<&str>, ttl: Option<&str>) -> Value {
    let mut o = json!({"apiVersion": "networking.k8s.io/v1beta1", "kind": "Ingress",
        "metadata": {"namespace": "storefront", "name": "web", "annotations": {}},
        "spec": {"rules": [{"host": "www.shop.test"}]}});
    if let Some(t) = ttl {
        o["metadata"]["annotations"]["external-dns.alpha.kubernetes.io/ttl"] = json!(t);
    }
    if let Some(ip) = ip {
        o["status"] = json!({"loadBalancer": {"ingress": [{"ip": ip}]}});
    }
    o
}
fn service(lb: Option<&str>) -> Value {
    let mut o = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"namespace": "orders", "name": "orders", "annotations":
            {"external-dns.alpha.kubernetes.io/hostname": "orders.shop.test,pay.shop.test."}},
        "spec": {"type": "LoadBalancer"}});
    if let Some(lb) = lb {
        o["status"] = json!({"loadBalancer": {"ingress": [{"hostname": lb}]}});
    }
    o
}
/// The zone as ExternalDNS 0.10.2 left it: one legacy TXT a name.
fn zone_0_10() -> Vec<RecordSet> {
    vec![
        rec("legacy.shop.test", "A", 300, &["192.0.2.80"]),
        txt("legacy.shop.test", "other-team", "ingress/x/y"),
        rec("mail.shop.test", "A", 300, &["192.0.2.25"]),
        alias("orders.shop.test", "A", BLUE_LB),
        txt("orders.shop.test", "shop-blue", ORDERS),
        alias("pay.shop.test", "A", BLUE_LB),
        txt("pay.shop.test", "shop-blue", ORDERS),
        rec("www.shop.test", "A", 20, &["203.0.113.10"]),
        txt("www.shop.test", "shop-blue", WEB),
    ]
}
fn blue_objects() -> Vec<Value> {
    vec![
        ingress(Some("203.0.113.10"), Some("20")),
        service(Some(BLUE_LB)),
    ]
}
fn green_objects() -> Vec<Value> {
    vec![
        ingress(Some("198.51.100.10"), Some("20")),
        service(Some(GREEN_LB)),
    ]
}
/// What the cutover does: every TXT variant of a name gets the new owner.
fn handed_over(mut records: Vec<RecordSet>, owner: &str) -> Vec<RecordSet> {
    for r in &mut records {
        if r.rtype == "TXT"
            && let Some(v) = rewrite_owner(&r.values[0], owner)
            && r.values[0].contains("shop-blue")
        {
            r.values[0] = v;
        }
    }
    records
}
fn plan(c: &Config, records: &[RecordSet], objects: &[Value]) -> Vec<Change> {
    plan_changes(c, records, &desired(objects, c), &zone())
}
fn names(changes: &[Change]) -> Vec<String> {
    changes
        .iter()
        .map(|c| match c {
            Change::Create(r) => format!("CREATE {} {}", r.name, r.rtype),
            Change::Delete(r) => format!("DELETE {} {}", r.name, r.rtype),
            Change::Upsert(r) => format!("UPSERT {} {}", r.name, r.rtype),
        })
        .collect()
}
