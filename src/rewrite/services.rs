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
        "TargetGroupBinding" if w.id.group() == "elbv2.k8s.aws" => target_group(w),
        _ => {}
    }
}

/// Rule 33 (velero-io/velero#9576): two controllers that bind one target group throw each other's targets out of it.
fn target_group(w: &mut Work) {
    let arn = text(w.original, "/spec/targetGroupARN")
        .unwrap_or("")
        .to_string();
    if let Some(own) = w.cx.replace(&arn).filter(|own| *own != arn) {
        set(&mut w.object, "/spec/targetGroupARN", json!(own));
        return w.changed(33);
    }
    if w.original.pointer("/spec/multiClusterTargetGroup") == Some(&json!(true)) {
        w.skip(33);
        w.find(
            "NET-11",
            Severity::Warning,
            33,
            "shares its target group between clusters: bound on green now, requests would come as soon as green's pods are ready, long before the cutover",
            "Make it on green by hand, with multiClusterTargetGroup too, when its traffic is to move.",
        );
        return;
    }
    w.refuse(33);
    w.find(
        "NET-11",
        Severity::Blocker,
        33,
        "binds a target group of blue: green's controller would throw blue's targets out of it",
        "Give green a target group of its own (its ARN under workloads.replace), or list the object under workloads.skip.",
    );
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
        } else {
            w.tidied(29);
        }
        pinned_address(w);
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
    if w.cx.green_ipv4_only && text(w.original, "/spec/ipFamilyPolicy") == Some("RequireDualStack")
    {
        w.find(
            "NET-06",
            Severity::Blocker,
            31,
            "requires addresses of both IP families, and green has IPv4 Services only: its server refuses to create it",
            "Make ipFamilyPolicy PreferDualStack on blue.",
        );
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
        if w.object
            .pointer("/metadata/annotations")
            .and_then(Value::as_object)
            .is_some_and(|a| a.is_empty())
        {
            take(&mut w.object, "/metadata/annotations");
        }
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

/// What its owner last applied with kubectl.
fn last_applied(w: &Work) -> Option<Value> {
    annotation(
        w.original,
        "kubectl.kubernetes.io/last-applied-configuration",
    )
    .and_then(|t| serde_json::from_str(t).ok())
}

/// Rule 29: an address that somebody asked for is known to somebody, and green's range is another.
fn pinned_address(w: &mut Work) {
    let asked = last_applied(w)
        .and_then(|a| text(&a, "/spec/clusterIP").map(String::from))
        .filter(|ip| !ip.is_empty() && ip != "None");
    if let Some(ip) = asked {
        w.find(
            "NET-06",
            Severity::Warning,
            29,
            format!("its owner asked for the address {ip}, which green cannot give: what has it written down does not find the Service"),
            "Use the Service's name instead of the address.",
        );
    }
}

/// Rule 30: a node port is kept only when its owner asked for it and green has it to give.
fn node_ports(w: &mut Work, stype: &str) {
    let applied = last_applied(w).unwrap_or_default();
    let asked: BTreeSet<u64> = items(&applied, "/spec/ports")
        .filter_map(|p| p["nodePort"].as_u64())
        .collect();
    let by_manager = managed_node_ports(w.original);
    let mut dropped = false;
    let mut kept = vec![];
    let mut taken = vec![];
    let given = &w.cx.green_node_ports;
    let own = w.id.to_string();
    let mut is_free = |port: u64, protocol: &str| {
        let by = given
            .get(&(port, protocol.to_string()))
            .filter(|by| **by != own);
        taken.extend(by.map(|by| format!("{port} by {by}")));
        by.is_none()
    };
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
        let protocol = p["protocol"].as_str().unwrap_or("TCP").to_string();
        let key = (p["port"].as_u64(), protocol.clone());
        if asked.contains(&port) || by_manager.contains(&key) {
            is_free(port, &protocol);
            kept.push(port.to_string());
        } else {
            take(p, "/nodePort");
            dropped = true;
        }
    }
    // The port on which an outside balancer asks whether a node has pods: only of load balancers that keep the client's address.
    if let Some(port) = w
        .original
        .pointer("/spec/healthCheckNodePort")
        .and_then(Value::as_u64)
    {
        let asked = applied.pointer("/spec/healthCheckNodePort").is_some()
            || managed(w.original, "/f:healthCheckNodePort");
        let local = text(w.original, "/spec/externalTrafficPolicy") == Some("Local");
        if asked && local && stype == "LoadBalancer" && port != 0 {
            is_free(port, "TCP");
            kept.push(port.to_string());
        } else if take(&mut w.object, "/spec/healthCheckNodePort").is_some() && port != 0 {
            dropped = true;
        }
    }
    if dropped {
        w.changed(30);
    }
    if !taken.is_empty() {
        w.find(
            "NET-06",
            Severity::Blocker,
            30,
            format!(
                "its owner asked for node ports that green has given already: {}",
                taken.join(", ")
            ),
            "Give one of the two another port.",
        );
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

/// Whether a client set a field of the spec, from managedFields.
fn managed(o: &Value, field: &str) -> bool {
    items(o, "/metadata/managedFields")
        .filter(|m| !m["manager"].as_str().unwrap_or("").starts_with("kube-"))
        .any(|m| m.pointer(&format!("/fieldsV1/f:spec{field}")).is_some())
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
            if short == "aws-load-balancer-access-log-s3-bucket-name" {
                w.find(
                    "NET-10",
                    Severity::Warning,
                    32,
                    format!("green's load balancer is another one and writes its access log into bucket {v} too"),
                    "See that the bucket's policy lets the new load balancer in (account, region and prefix), and that who reads the log takes both.",
                );
            }
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
    addresses(w);
}

/// Rule 35.
fn slice(w: &mut Work) {
    w.tidied(35);
    let service = text(w.original, "/metadata/labels/kubernetes.io~1service-name").unwrap_or("");
    let key = format!("{}/{service}", w.namespace());
    if w.cx.services.get(&key) == Some(&true) {
        return w.skip(35);
    }
    if !w.cx.services.contains_key(&key) {
        let what = if service.is_empty() {
            "names no Service (label kubernetes.io/service-name)".to_string()
        } else {
            format!("names Service {service}, which is not there")
        };
        w.find(
            "NET-06",
            Severity::Warning,
            35,
            format!("{what}: no traffic reaches its addresses"),
            "Correct the label on blue, or list the slice under workloads.skip.",
        );
    }
    let ports: Vec<String> = items(w.original, "/ports")
        .filter_map(|p| p["port"].as_u64().map(|p| p.to_string()))
        .collect();
    let ips = items(w.original, "/endpoints")
        .flat_map(|e| items(e, "/addresses"))
        .filter_map(|a| Some((a.as_str()?.to_string(), ports.join("+"))))
        .collect();
    check_addresses(w, ips, 35);
}

fn addresses(w: &mut Work) {
    let mut ips = vec![];
    for subset in items(w.original, "/subsets") {
        let ports: Vec<String> = items(subset, "/ports")
            .filter_map(|p| p["port"].as_u64().map(|p| p.to_string()))
            .collect();
        let both = items(subset, "/addresses").chain(items(subset, "/notReadyAddresses"));
        for ip in both.filter_map(|a| a["ip"].as_str()) {
            ips.push((ip.to_string(), ports.join("+")));
        }
    }
    check_addresses(w, ips, 34);
}

/// Addresses with their ports, that somebody wrote down.
fn check_addresses(w: &mut Work, written: Vec<(String, String)>, rule: u32) {
    let inside: Vec<&str> = written
        .iter()
        .map(|(ip, _)| ip.as_str())
        .filter(|ip| w.cx.is_blue_address(ip))
        .collect();
    if !inside.is_empty() {
        let inside = inside.join(", ");
        w.refuse(rule);
        w.find(
            "NET-06",
            Severity::Blocker,
            rule,
            format!("addresses of blue's pods or services are written down: {inside}"),
            "Replace them by a Service, or list the object under workloads.skip.",
        );
    } else if !written.is_empty() {
        let hosts: Vec<String> = written
            .iter()
            .map(|(ip, ports)| match ports.as_str() {
                "" => ip.clone(),
                p => format!("{ip}:{p}"),
            })
            .collect();
        w.find(
            "NET-06",
            Severity::Info,
            rule,
            format!(
                "hand-written addresses must accept green's nodes and pods: {}",
                hosts.join(", ")
            ),
            "Check security groups and grants of these hosts.",
        );
    }
}
