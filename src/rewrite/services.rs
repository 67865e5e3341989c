//! Rules 29 to 36: services, endpoints, load balancers.

use super::work::{Work, items, set, take, text};
use crate::object::annotation;
use crate::plan::model::Severity;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Annotations that name AWS things of blue (rule 32).
const BOUND_TO_BLUE: &[&str] = &[
    "aws-load-balancer-eip-allocations",
    "aws-load-balancer-subnets",
    "aws-load-balancer-security-groups",
    "aws-load-balancer-extra-security-groups",
    "aws-load-balancer-name",
    "aws-load-balancer-private-ipv4-addresses",
];
/// Attributes to compare on both sides (NET-10).
const ATTRIBUTES: &[&str] = &[
    "aws-load-balancer-connection-idle-timeout",
    "aws-load-balancer-connection-draining-enabled",
    "aws-load-balancer-connection-draining-timeout",
    "aws-load-balancer-cross-zone-load-balancing-enabled",
    "aws-load-balancer-access-log-enabled",
    "aws-load-balancer-access-log-s3-bucket-name",
    "aws-load-balancer-proxy-protocol",
    "aws-load-balancer-ssl-negotiation-policy",
    "aws-load-balancer-backend-protocol",
];

/// Rewrites Services and their endpoints.
pub(super) fn rewrite(w: &mut Work) {
    match w.kind() {
        "Service" => service(w),
        "Endpoints" => endpoints(w),
        "EndpointSlice" => slice(w),
        "TargetGroupBinding" => {
            w.refuse(33);
            w.find(
                "NET-11",
                Severity::Blocker,
                33,
                "binds a target group of blue: green's controller would throw blue's targets out of it",
                "Give green a target group of its own, or list the object under workloads.skip.",
            );
        }
        _ => {}
    }
}

fn service(w: &mut Work) {
    let headless = text(w.original, "/spec/clusterIP") == Some("None");
    let stype = text(w.original, "/spec/type")
        .unwrap_or("ClusterIP")
        .to_string();
    if !headless {
        let had = [
            take(&mut w.object, "/spec/clusterIP"),
            take(&mut w.object, "/spec/clusterIPs"),
        ];
        if had.iter().flatten().any(|v| v != "" && v != &json!([])) {
            w.changed(29);
        }
    } else {
        w.tidied(29);
    }
    node_ports(w, &stype);
    if w.cx.green_ipv4_only
        && let Some(f) = w.object.pointer("/spec/ipFamilies")
        && f != &json!(["IPv4"])
    {
        take(&mut w.object, "/spec/ipFamilies");
        w.changed(31);
    }
    if take(&mut w.object, "/spec/loadBalancerIP").is_some() {
        w.changed(31);
    }
    if annotation(
        w.original,
        "service.alpha.kubernetes.io/tolerate-unready-endpoints",
    ) == Some("true")
    {
        take(
            &mut w.object,
            "/metadata/annotations/service.alpha.kubernetes.io~1tolerate-unready-endpoints",
        );
        set(&mut w.object, "/spec/publishNotReadyAddresses", json!(true));
        w.changed(65);
    }
    if items(w.original, "/spec/externalIPs").next().is_some() {
        w.find(
            "NET-06",
            Severity::Warning,
            31,
            "externalIPs are addresses of blue's network (and deprecated from 1.36)",
            "Replace them by a load balancer.",
        );
    }
    if stype == "LoadBalancer" {
        load_balancer(w);
    }
    if stype == "ExternalName" {
        external_name(w);
    }
}

/// Rule 30: a node port is kept only when its owner asked for it.
fn node_ports(w: &mut Work, stype: &str) {
    let asked: BTreeSet<u64> = annotation(
        w.original,
        "kubectl.kubernetes.io/last-applied-configuration",
    )
    .and_then(|t| serde_json::from_str::<Value>(t).ok())
    .map(|applied| {
        items(&applied, "/spec/ports")
            .filter_map(|p| p["nodePort"].as_u64())
            .collect()
    })
    .unwrap_or_default();
    let by_manager = managed_node_ports(w.original);
    let mut dropped = false;
    let mut kept = vec![];
    for p in w
        .object
        .pointer_mut("/spec/ports")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        let Some(port) = p["nodePort"].as_u64() else {
            continue;
        };
        let key = (
            p["port"].as_u64(),
            p["protocol"].as_str().unwrap_or("TCP").to_string(),
        );
        if asked.contains(&port) || by_manager.contains(&key) {
            kept.push(port.to_string());
        } else {
            take(p, "/nodePort");
            dropped = true;
        }
    }
    if w.original
        .pointer("/spec/healthCheckNodePort")
        .is_some_and(|v| v != &json!(0))
        && take(&mut w.object, "/spec/healthCheckNodePort").is_some()
    {
        dropped = true;
    }
    if dropped {
        w.changed(30);
    }
    if !kept.is_empty() {
        w.tidied(30);
        if stype == "NodePort" {
            w.find(
                "NET-06",
                Severity::Warning,
                30,
                format!("its owner asked for node port {}: something outside points at it on blue's nodes", kept.join(", ")),
                "Point that load balancer or firewall rule at green's nodes too.",
            );
        }
    }
}

/// (port, protocol) of ports whose nodePort a client set, from managedFields.
fn managed_node_ports(o: &Value) -> BTreeSet<(Option<u64>, String)> {
    let mut out = BTreeSet::new();
    for m in items(o, "/metadata/managedFields") {
        let manager = m["manager"].as_str().unwrap_or("");
        if manager.starts_with("kube-") {
            continue;
        }
        let Some(ports) = m
            .pointer("/fieldsV1/f:spec/f:ports")
            .and_then(Value::as_object)
        else {
            continue;
        };
        for (key, fields) in ports {
            if fields.get("f:nodePort").is_some()
                && let Some(k) = key
                    .strip_prefix("k:")
                    .and_then(|t| serde_json::from_str::<Value>(t).ok())
            {
                out.insert((
                    k["port"].as_u64(),
                    k["protocol"].as_str().unwrap_or("TCP").into(),
                ));
            }
        }
    }
    out
}

/// Rules 31 and 32, eks.md 5.
fn load_balancer(w: &mut Work) {
    let mut bound = vec![];
    let mut attributes = vec![];
    let keys: Vec<(String, String)> = w
        .object
        .pointer("/metadata/annotations")
        .and_then(Value::as_object)
        .map(|a| {
            a.iter()
                .map(|(k, v)| (k.clone(), v.as_str().unwrap_or("").to_string()))
                .collect()
        })
        .unwrap_or_default();
    for (k, v) in &keys {
        let Some(short) = k.strip_prefix("service.beta.kubernetes.io/") else {
            continue;
        };
        if BOUND_TO_BLUE.contains(&short) {
            bound.push(short.to_string());
            take(
                &mut w.object,
                &format!("/metadata/annotations/service.beta.kubernetes.io~1{short}"),
            );
        } else if ATTRIBUTES.contains(&short) {
            attributes.push(format!("{short}={v}"));
        } else if short == "aws-load-balancer-ssl-cert"
            && let Some(region) = v.split(':').nth(3)
            && !w.cx.region.is_empty()
            && region != w.cx.region
        {
            let region = region.to_string();
            w.find(
                "TLS-05",
                Severity::Blocker,
                32,
                format!(
                    "its certificate is in {region}, green is in {}",
                    w.cx.region
                ),
                "Import the certificate into green's region and change the annotation on blue.",
            );
        }
    }
    if !bound.is_empty() {
        w.changed(32);
        w.find(
            "NET-11",
            Severity::Warning,
            32,
            format!(
                "annotations that name AWS things of blue are left out: {}",
                bound.join(", ")
            ),
            "Give green's load balancer its own addresses, subnets and groups.",
        );
    }
    if !attributes.is_empty() {
        w.find(
            "NET-10",
            Severity::Warning,
            32,
            format!(
                "load balancer attributes to compare on green: {}",
                attributes.join(", ")
            ),
            "Compare them after the replay.",
        );
    }
}

/// Rule 36.
fn external_name(w: &mut Work) {
    let name = text(w.original, "/spec/externalName")
        .unwrap_or("")
        .trim_end_matches('.')
        .to_string();
    w.tidied(36);
    let blue = &w.cx.blue_cluster;
    let what = if name.ends_with(".elb.amazonaws.com")
        || name.contains(".elb.") && name.ends_with(".amazonaws.com")
    {
        "names a load balancer that may disappear with blue"
    } else if !blue.is_empty()
        && name.ends_with(&format!(".{blue}"))
        && !w.cx.owned_hosts.contains(&name)
        || name.contains(".svc.")
    {
        "points into blue"
    } else {
        "points at another platform: make sure it does not point back"
    };
    w.find(
        "NET-06",
        Severity::Warning,
        36,
        format!("ExternalName {name} {what}"),
        "Check the target before blue is taken down.",
    );
}

/// Rule 34.
fn endpoints(w: &mut Work) {
    let key = format!("{}/{}", w.namespace(), w.name());
    if w.cx.services.get(&key) == Some(&true) {
        return w.skip(34);
    }
    w.tidied(34);
    addresses(w, "/subsets", "/addresses", "ip");
}

/// Rule 35.
fn slice(w: &mut Work) {
    w.tidied(35);
    let key = format!(
        "{}/{}",
        w.namespace(),
        text(w.original, "/metadata/labels/kubernetes.io~1service-name").unwrap_or("")
    );
    if w.cx.services.get(&key) == Some(&true) {
        return w.skip(35);
    }
    let ips: Vec<String> = items(w.original, "/endpoints")
        .flat_map(|e| items(e, "/addresses"))
        .filter_map(|a| a.as_str().map(String::from))
        .collect();
    check_addresses(w, ips, 35);
}

fn addresses(w: &mut Work, outer: &str, inner: &str, field: &str) {
    let ips: Vec<String> = items(w.original, outer)
        .flat_map(|s| items(s, inner))
        .filter_map(|a| a[field].as_str().map(String::from))
        .collect();
    check_addresses(w, ips, 34);
}

fn check_addresses(w: &mut Work, ips: Vec<String>, rule: u32) {
    let inside: Vec<String> = ips
        .iter()
        .filter(|ip| w.cx.is_blue_address(ip))
        .cloned()
        .collect();
    if !inside.is_empty() {
        w.refuse(rule);
        w.find(
            "NET-06",
            Severity::Blocker,
            rule,
            format!(
                "addresses of blue's pods or services are written down: {}",
                inside.join(", ")
            ),
            "Replace them by a Service, or list the object under workloads.skip.",
        );
    } else if !ips.is_empty() {
        w.find(
            "NET-06",
            Severity::Info,
            rule,
            format!(
                "hand-written addresses must accept green's nodes and pods: {}",
                ips.join(", ")
            ),
            "Check security groups and grants of these hosts.",
        );
    }
}
