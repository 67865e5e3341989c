//! What an instance wants: endpoints from Ingress, Service and DNSEndpoint objects (externaldns.md 2, 3).

use super::config::{Config, seconds};
use super::{bare, fqdn};
use crate::object::{annotation, at};
use serde_json::Value;
use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// A wanted record.
#[derive(Clone, Debug, PartialEq)]
pub struct Endpoint {
    /// Name without final dot.
    pub name: String,
    /// `A`, `AAAA` or `CNAME` (a CNAME to a load balancer becomes an alias when it is written).
    pub rtype: String,
    /// Targets, sorted.
    pub targets: Vec<String>,
    /// TTL in seconds, `None` when not configured.
    pub ttl: Option<u32>,
    /// `ingress/ns/name`, `service/ns/name`, `crd/ns/name`.
    pub resource: String,
    /// Set identifier.
    pub set_identifier: Option<String>,
    /// Routing fields under their Route 53 names.
    pub routing: BTreeMap<String, Value>,
    /// Annotation `alias: "true"`.
    pub alias: bool,
    /// Annotation `aws-evaluate-target-health`, when set.
    pub evaluate_target_health: Option<bool>,
}

/// Endpoints that an instance would want from these objects of its cluster, in the order of objects, without duplicates.
/// Objects may be in any version that kept the fields (Ingress v1, v1beta1, extensions/v1beta1).
pub fn desired<I>(objects: I, config: &Config) -> Vec<Endpoint>
where
    I: IntoIterator,
    I::Item: Borrow<Value>,
{
    let mut out: Vec<Endpoint> = vec![];
    let mut seen: BTreeSet<(String, String, Vec<String>, Option<String>)> = BTreeSet::new();
    for object in objects {
        let object: &Value = object.borrow();
        let kind = object.get("kind").and_then(Value::as_str).unwrap_or("");
        let source = match kind {
            "Ingress" => "ingress",
            "Service" => "service",
            "DNSEndpoint" => "crd",
            _ => continue,
        };
        if !config.sources.iter().any(|s| s == source) || !selected(object, kind, config) {
            continue;
        }
        let endpoints = match kind {
            "Ingress" => ingress(object, config),
            "Service" => service(object, config),
            _ => dns_endpoint(object),
        };
        for e in endpoints {
            let same = (
                e.name.clone(),
                e.rtype.clone(),
                e.targets.clone(),
                e.set_identifier.clone(),
            );
            if seen.insert(same) {
                out.push(e);
            }
        }
    }
    if let Some(min) = config.min_ttl.filter(|_| config.version.at_least(21, 0)) {
        // In spite of its name a default, not a floor (externaldns.md 3).
        for e in &mut out {
            e.ttl = e.ttl.or(Some(min));
        }
    }
    out
}

/// Host names (without final dot) that an object asks for, whether or not it has a target yet.
pub fn hosts_of(object: &Value, config: &Config) -> Vec<String> {
    let mut with_target = object.clone();
    // A stand-in address: the names are the same whatever the target.
    with_target["status"] = serde_json::json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}});
    let mut names: Vec<String> = desired(&[with_target], config)
        .into_iter()
        .map(|e| e.name)
        .collect();
    names.sort();
    names.dedup();
    names
}

fn key(config: &Config, name: &str) -> String {
    format!("{}{name}", config.annotation_prefix)
}

fn note<'a>(object: &'a Value, config: &Config, name: &str) -> Option<&'a str> {
    annotation(object, &key(config, name))
}

fn selected(object: &Value, kind: &str, config: &Config) -> bool {
    let ns = object
        .pointer("/metadata/namespace")
        .and_then(Value::as_str);
    if config.namespace.is_some() && config.namespace.as_deref() != ns {
        return false;
    }
    // Another controller claims the object (externaldns.md 2, source-side filters).
    if note(object, config, "controller").is_some_and(|c| c != "dns-controller") {
        return false;
    }
    let map = |path: &str| at(object, path).unwrap_or(&Value::Null);
    if let Some(f) = &config.annotation_filter
        && !matches_selector(f, map("/metadata/annotations"))
    {
        return false;
    }
    if let Some(f) = &config.label_filter
        && !matches_selector(f, map("/metadata/labels"))
    {
        return false;
    }
    if kind == "Ingress" && !config.ingress_classes.is_empty() {
        let class = object
            .pointer("/spec/ingressClassName")
            .and_then(Value::as_str)
            .or_else(|| annotation(object, "kubernetes.io/ingress.class"));
        return class.is_some_and(|c| config.ingress_classes.iter().any(|k| k == c));
    }
    true
}

/// Equality-based and set-based selector terms, joined by commas.
fn matches_selector(selector: &str, map: &Value) -> bool {
    let get = |k: &str| map.get(k.trim()).and_then(Value::as_str);
    let mut terms = vec![];
    let (mut depth, mut start) = (0, 0);
    for (i, c) in selector.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                terms.push(&selector[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    terms.push(&selector[start..]);
    let set = |list: &str, v: Option<&str>| {
        list.trim()
            .trim_matches(['(', ')'])
            .split(',')
            .any(|x| Some(x.trim()) == v)
    };
    terms
        .into_iter()
        .map(str::trim)
        .filter(|t| !t.is_empty())
        .all(|t| {
            if let Some((k, list)) = t.split_once(" notin ") {
                !set(list, get(k))
            } else if let Some((k, list)) = t.split_once(" in ") {
                set(list, get(k))
            } else if let Some((k, v)) = t.split_once("!=") {
                get(k) != Some(v.trim())
            } else if let Some((k, v)) = t.split_once('=') {
                get(k) == Some(v.trim_start_matches('=').trim())
            } else if let Some(k) = t.strip_prefix('!') {
                get(k).is_none()
            } else {
                get(t).is_some()
            }
        })
}

fn list(text: Option<&str>) -> Vec<String> {
    text.map(|t| {
        t.split(',')
            .map(|s| s.trim().trim_end_matches('.').to_string())
            .filter(|s| !s.is_empty())
            .collect()
    })
    .unwrap_or_default()
}

/// TTL annotation: seconds or a Go duration, 1 and more, else ignored.
fn ttl(object: &Value, config: &Config) -> Option<u32> {
    let n = seconds(note(object, config, "ttl")?.trim())?;
    (1..=i32::MAX as u32).contains(&n).then_some(n)
}

fn status_targets(object: &Value) -> Vec<String> {
    object
        .pointer("/status/loadBalancer/ingress")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .flat_map(|lb| [lb.get("ip"), lb.get("hostname")])
        .flatten()
        .filter_map(Value::as_str)
        .filter(|s| !s.is_empty())
        .map(String::from)
        .collect()
}

/// One endpoint per record type that the targets need.
fn endpoints(
    object: &Value,
    config: &Config,
    resource: &str,
    host: &str,
    targets: &[String],
) -> Vec<Endpoint> {
    let mut by_type: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for t in targets {
        let rtype = match t.parse::<IpAddr>() {
            Ok(IpAddr::V4(_)) => "A",
            Ok(IpAddr::V6(_)) if config.version.at_least(13, 5) => "AAAA",
            Ok(IpAddr::V6(_)) => continue,
            Err(_) => "CNAME",
        };
        by_type.entry(rtype).or_default().push(t.clone());
    }
    let aws = |n: &str| note(object, config, &format!("aws-{n}"));
    let number = |t: &str| {
        t.parse::<i64>()
            .map_or_else(|_| Value::from(t), Value::from)
    };
    let set_identifier = note(object, config, "set-identifier").map(String::from);
    let mut routing = BTreeMap::new();
    if set_identifier.is_some() {
        if let Some(w) = aws("weight") {
            routing.insert("Weight".to_string(), number(w));
        } else if let Some(r) = aws("region") {
            routing.insert("Region".to_string(), Value::from(r));
        } else if let Some(f) = aws("failover") {
            routing.insert("Failover".to_string(), Value::from(f));
        } else if aws("multi-value-answer").is_some() {
            routing.insert("MultiValueAnswer".to_string(), Value::from(true));
        } else {
            let geo: serde_json::Map<String, Value> = [
                ("geolocation-continent-code", "ContinentCode"),
                ("geolocation-country-code", "CountryCode"),
                ("geolocation-subdivision-code", "SubdivisionCode"),
            ]
            .iter()
            .filter_map(|(a, f)| Some((f.to_string(), Value::from(aws(a)?))))
            .collect();
            if !geo.is_empty() {
                routing.insert("GeoLocation".to_string(), Value::Object(geo));
            }
        }
    }
    if let Some(h) = aws("health-check-id") {
        routing.insert("HealthCheckId".to_string(), Value::from(h));
    }
    by_type
        .into_iter()
        .map(|(rtype, mut targets)| {
            targets.sort();
            targets.dedup();
            Endpoint {
                name: bare(host),
                rtype: rtype.into(),
                targets,
                ttl: ttl(object, config),
                resource: resource.into(),
                set_identifier: set_identifier.clone(),
                routing: routing.clone(),
                alias: note(object, config, "alias") == Some("true"),
                evaluate_target_health: aws("evaluate-target-health").map(|v| v == "true"),
            }
        })
        .collect()
}

fn resource_of(source: &str, object: &Value) -> String {
    let m = |k: &str| {
        object
            .pointer(&format!("/metadata/{k}"))
            .and_then(Value::as_str)
            .unwrap_or("")
    };
    format!("{source}/{}/{}", m("namespace"), m("name"))
}

fn ingress(object: &Value, config: &Config) -> Vec<Endpoint> {
    let mut defined: Vec<String> = vec![];
    let array = |p: &str| {
        object
            .pointer(p)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    if !config.ignore_rules {
        defined.extend(
            array("/spec/rules")
                .iter()
                .filter_map(|r| r.get("host").and_then(Value::as_str).map(String::from)),
        );
    }
    if !config.ignore_tls {
        for tls in array("/spec/tls") {
            let hosts = tls.get("hosts").and_then(Value::as_array).cloned();
            defined.extend(
                hosts
                    .unwrap_or_default()
                    .iter()
                    .filter_map(|h| h.as_str().map(String::from)),
            );
        }
    }
    let annotated = if config.ignore_hostname {
        vec![]
    } else {
        list(note(object, config, "hostname"))
    };
    let hosts: Vec<String> = match note(object, config, "ingress-hostname-source")
        .map(str::to_lowercase)
        .as_deref()
    {
        None => defined.into_iter().chain(annotated).collect(),
        Some("defined-hosts-only") => defined,
        Some("annotation-only") => annotated,
        Some(_) => vec![],
    };
    let mut targets = list(note(object, config, "target"));
    if targets.is_empty() {
        targets = status_targets(object);
    }
    let resource = resource_of("ingress", object);
    hosts
        .iter()
        .filter(|h| !h.is_empty())
        .flat_map(|h| endpoints(object, config, &resource, h, &targets))
        .collect()
}

fn service(object: &Value, config: &Config) -> Vec<Endpoint> {
    let stype = object
        .pointer("/spec/type")
        .and_then(Value::as_str)
        .unwrap_or("ClusterIP");
    if !config.service_types.is_empty() && !config.service_types.iter().any(|t| t == stype) {
        return vec![];
    }
    let mut hosts = if config.ignore_hostname {
        vec![]
    } else {
        list(note(object, config, "hostname"))
    };
    if config.compatibility.as_deref() == Some("kops-dns-controller") {
        hosts.extend(list(annotation(object, "dns.alpha.kubernetes.io/external")));
    }
    let text = |p: &str| object.pointer(p).and_then(Value::as_str).map(String::from);
    let mut targets = list(note(object, config, "target"));
    if targets.is_empty() {
        targets = match stype {
            "LoadBalancer" => {
                let external: Vec<String> = object
                    .pointer("/spec/externalIPs")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten()
                    .filter_map(|v| v.as_str().map(String::from))
                    .collect();
                if external.is_empty() {
                    status_targets(object)
                } else {
                    external
                }
            }
            "ClusterIP" if config.publish_internal => text("/spec/clusterIP")
                .filter(|ip| ip != "None")
                .into_iter()
                .collect(),
            "ExternalName" => text("/spec/externalName").into_iter().collect(),
            // Headless and NodePort services get the addresses of pods and nodes, which are not ours to know here.
            _ => vec![],
        };
    }
    let resource = resource_of("service", object);
    hosts
        .iter()
        .flat_map(|h| endpoints(object, config, &resource, h, &targets))
        .collect()
}

fn dns_endpoint(object: &Value) -> Vec<Endpoint> {
    let resource = resource_of("crd", object);
    object
        .pointer("/spec/endpoints")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|e| {
            let mut targets: Vec<String> = e
                .get("targets")?
                .as_array()?
                .iter()
                .filter_map(|t| t.as_str().map(|s| s.trim_end_matches('.').to_string()))
                .collect();
            targets.sort();
            Some(Endpoint {
                name: bare(&fqdn(e.get("dnsName")?.as_str()?)),
                rtype: e
                    .get("recordType")
                    .and_then(Value::as_str)
                    .unwrap_or("A")
                    .into(),
                targets,
                ttl: e
                    .get("recordTTL")
                    .and_then(Value::as_u64)
                    .filter(|n| *n > 0)
                    .and_then(|n| u32::try_from(n).ok()),
                resource: resource.clone(),
                set_identifier: e
                    .get("setIdentifier")
                    .and_then(Value::as_str)
                    .map(String::from),
                routing: BTreeMap::new(),
                alias: false,
                evaluate_target_health: None,
            })
        })
        .collect()
}
