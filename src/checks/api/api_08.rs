//! API-08: fields that green's server or nodes do not accept. What is known beforehand is found here; the rest shows when the run creates with strict validation.

use crate::checks::{Answered, Check, Input, Report};
use crate::checks::{BlueObject, few};
use crate::plan::model::Severity;
use serde_json::Value;

pub(super) const CHECK: Check = Check {
    id: "API-08",
    severity: Severity::Blocker,
    question: "Would green refuse or drop a field?",
    needs: &[],
    answered: Answered::Run("replay.wave"),
    remedy: "Move or remove the field on blue.",
    source: "checks.md API-08",
    run,
};

/// Kinds of volumes that no node of green can mount: (key, first minor without it, what instead). removed-apis.yaml, removed_features.
const VOLUMES: &[(&str, u32, &str)] = &[
    ("gitRepo", 36, "Clone in an init container."),
    (
        "flexVolume",
        0,
        "No driver is on green's nodes: move to a CSI driver.",
    ),
    ("flocker", 25, "Move to a CSI driver."),
    ("quobyte", 25, "Move to a CSI driver."),
    ("storageos", 25, "Move to a CSI driver."),
    ("scaleIO", 22, "Move to a CSI driver."),
    ("glusterfs", 26, "Move to a CSI driver."),
    ("cephfs", 31, "Move to a CSI driver."),
    ("rbd", 31, "Move to a CSI driver."),
];
/// First minor whose server takes only canonical addresses at creation (eks.md 1.1).
const STRICT_ADDRESSES: u32 = 36;

fn run(i: &Input, r: &mut Report) {
    let green = i.cx.green_minor;
    let mut created = 0;
    for o in i.blue.iter().filter(|o| o.moves()) {
        created += 1;
        for volume in volumes(o) {
            for (key, gone, remedy) in VOLUMES {
                if green >= *gone && volume.get(key).is_some() {
                    r.blocker(
                        &o.name,
                        format!("uses a {key} volume, which green's nodes do not mount"),
                        *remedy,
                    );
                }
            }
        }
        if o.id.kind == "Service"
            && let Some(keys) = o
                .object
                .pointer("/spec/topologyKeys")
                .and_then(Value::as_array)
            && !keys.is_empty()
        {
            r.blocker(
                &o.name,
                "topologyKeys was removed in 1.22: green's server does not know the field",
                "Use trafficDistribution, or the annotation service.kubernetes.io/topology-mode.",
            );
        }
        if green >= STRICT_ADDRESSES {
            let bad: Vec<String> = addresses(o)
                .into_iter()
                .filter(|a| !canonical(a))
                .map(String::from)
                .collect();
            if !bad.is_empty() {
                r.found(
                    &o.name,
                    format!(
                        "green's server refuses addresses that are not written canonically: {}",
                        few(&bad)
                    ),
                );
            }
        }
    }
    defaults(i, r);
    if created > 0 {
        r.ask(
            "fields",
            format!("{created} objects are created with strict validation of their fields"),
        );
    }
}

/// Kinds of which one may be the default, and what says so (replay.md 72): a second one is refused, or makes the server refuse what names none.
fn defaults(i: &Input, r: &mut Report) {
    let priority = |o: &Value| o["globalDefault"] == true;
    let ingress = |o: &Value| {
        crate::object::annotation(o, "ingressclass.kubernetes.io/is-default-class") == Some("true")
    };
    type Asks<'a> = &'a dyn Fn(&Value) -> bool;
    let kinds: [(&str, Asks); 2] = [("PriorityClass", &priority), ("IngressClass", &ingress)];
    for (kind, is_default) in kinds {
        let mut all: std::collections::BTreeMap<String, bool> = i
            .snapshot
            .green
            .iter()
            .flat_map(|g| g.of_kind(kind))
            .chain(i.generated.iter().filter(|o| o["kind"] == kind))
            .filter(|o| is_default(o))
            .filter_map(|o| Some((o["metadata"]["name"].as_str()?.to_string(), false)))
            .collect();
        for o in i.moving(&[kind]) {
            if o.on_green().is_some_and(is_default) {
                all.insert(o.id.name.clone(), true);
            }
        }
        let names: Vec<&String> = all.keys().collect();
        // Two of green's own are none of ours.
        if let Some((ours, _)) = all.iter().find(|(_, ours)| **ours)
            && all.len() > 1
        {
            r.blocker(
                format!("{}/{ours}", kind.to_lowercase()),
                format!(
                    "green would have {} default classes of kind {kind}: {}",
                    names.len(),
                    few(&names)
                ),
                "Leave the mark on one of them.",
            );
        }
    }
}

/// Volumes of the pod template, or of a PersistentVolume.
fn volumes<'a>(o: &BlueObject<'a>) -> Vec<&'a Value> {
    if o.id.kind == "PersistentVolume" {
        return o.object.get("spec").into_iter().collect();
    }
    o.template()
        .and_then(|t| t.pointer("/spec/volumes")?.as_array())
        .into_iter()
        .flatten()
        .collect()
}

/// Addresses and ranges that the server validates.
fn addresses<'a>(o: &BlueObject<'a>) -> Vec<&'a str> {
    let list = |p: &str| {
        o.object
            .pointer(p)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    };
    match o.id.kind.as_str() {
        "Service" => ["/spec/loadBalancerSourceRanges", "/spec/externalIPs"]
            .into_iter()
            .flat_map(list)
            .filter_map(Value::as_str)
            .collect(),
        "NetworkPolicy" => [("/spec/ingress", "from"), ("/spec/egress", "to")]
            .into_iter()
            .flat_map(|(rules, peers)| list(rules).filter_map(move |x| x.get(peers)?.as_array()))
            .flatten()
            .filter_map(|p| p.get("ipBlock"))
            .flat_map(|b| {
                b.get("cidr").into_iter().chain(
                    b.get("except")
                        .and_then(Value::as_array)
                        .into_iter()
                        .flatten(),
                )
            })
            .filter_map(Value::as_str)
            .collect(),
        _ => vec![],
    }
}

/// An address or range as the server writes it: no leading zeros, no host bits, no IPv4 in IPv6.
fn canonical(text: &str) -> bool {
    let Some((ip, bits)) = text.split_once('/') else {
        return text.parse::<std::net::IpAddr>().is_ok_and(|ip| plain(&ip));
    };
    let (Ok(ip), Ok(bits)) = (ip.parse::<std::net::IpAddr>(), bits.parse::<u32>()) else {
        return false;
    };
    let host_bits = match ip {
        std::net::IpAddr::V4(v4) => u32::from(v4).checked_shl(bits).is_some_and(|x| x != 0),
        std::net::IpAddr::V6(v6) => u128::from(v6).checked_shl(bits).is_some_and(|x| x != 0),
    };
    plain(&ip) && !host_bits
}

fn plain(ip: &std::net::IpAddr) -> bool {
    !matches!(ip, std::net::IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some())
}
