//! The lines of each side.

use super::prices::Prices;
use super::{Line, Side};
use crate::object::label;
use crate::plan::model::Target;
use crate::rewrite::minor;
use crate::snapshot::kops::effective;
use crate::snapshot::model::Snapshot;
use crate::snapshot::roll::Found;
use crate::spec::model::Spec;
use serde_json::Value;

/// Volume of one etcd member when it says nothing, GiB (kops.md 1.4).
const ETCD_GIB: u32 = 20;

fn micros(usd: f64) -> u64 {
    (usd * 1_000_000.0).round().max(0.0) as u64
}

struct Sum<'p, 'a> {
    prices: &'p Prices<'a>,
    side: Side,
}

impl Sum<'_, '_> {
    fn add(&mut self, what: String, key: String, hourly: Option<f64>) {
        let hourly = hourly.map(micros);
        self.side.hourly = self.side.hourly.saturating_add(hourly.unwrap_or(0));
        self.side.lines.push(Line { what, key, hourly });
    }
    fn machines(&mut self, n: u32, kind: &str, spot: bool, of: &str) {
        if n == 0 {
            return;
        }
        let each = self.prices.instance(kind, spot);
        let (word, key) = if spot {
            (" spot", format!("spot/{kind}"))
        } else {
            ("", format!("instance/{kind}"))
        };
        self.add(
            format!("{n} x {kind}{word} ({of})"),
            key,
            each.map(|p| p * f64::from(n)),
        );
    }
    fn disks(&mut self, n: u32, gib: u32, kind: &str, of: &str) {
        if n == 0 || gib == 0 {
            return;
        }
        let each = self.prices.gib_hour(kind);
        self.add(
            format!("{n} x {gib} GiB {kind} ({of})"),
            format!("ebs/{kind}"),
            each.map(|p| p * f64::from(gib) * f64::from(n)),
        );
    }
    fn service(&mut self, n: u32, key: &str, of: &str) {
        if n == 0 {
            return;
        }
        let each = self.prices.hour(key);
        self.add(
            format!("{n} x {of}"),
            key.into(),
            each.map(|p| p * f64::from(n)),
        );
    }
}

fn number(v: &Value, p: &str) -> Option<u32> {
    crate::object::at(v, p)?
        .as_u64()
        .and_then(|n| u32::try_from(n).ok())
}
fn text<'v>(v: &'v Value, p: &str) -> Option<&'v str> {
    crate::object::at(v, p).and_then(Value::as_str)
}

/// Machines of an instance group now: the live group, else its live nodes, else what the spec starts with.
fn size(snapshot: &Found, ig: &Value, name: &str) -> u32 {
    let cluster = snapshot
        .kops
        .cluster
        .as_ref()
        .and_then(|c| text(c, "/metadata/name"))
        .unwrap_or("");
    let live = snapshot
        .aws
        .iter()
        .flat_map(|a| a.auto_scaling_groups.iter().flatten())
        .find(|g| {
            g.tags.get("kops.k8s.io/instancegroup").map(String::as_str) == Some(name)
                || g.name == format!("{name}.{cluster}")
                || g.name == format!("{name}.masters.{cluster}")
        });
    if let Some(group) = live {
        return group.desired;
    }
    let nodes = snapshot
        .blue
        .of_kind("Node")
        .filter(|n| label(n, "kops.k8s.io/instancegroup") == Some(name))
        .count() as u32;
    if nodes > 0 {
        return nodes;
    }
    effective(&snapshot.kops).sizes(ig).0.value
}

/// Services of type LoadBalancer.
fn balancers(snapshot: &Found) -> u32 {
    snapshot
        .blue
        .of_kind("Service")
        .filter(|s| text(s, "/spec/type") == Some("LoadBalancer"))
        .count() as u32
}

/// Blue as it is.
pub(super) fn blue(prices: &Prices, snapshot: &Found) -> Side {
    let mut sum = Sum {
        prices,
        side: Side::default(),
    };
    let disk_type = if snapshot
        .kops
        .kops_version
        .as_deref()
        .and_then(|v| minor(&format!("v{}", v.trim_start_matches('v'))))
        .is_some_and(|m| m < 20)
    {
        "gp2"
    } else {
        "gp3"
    };
    let kops = effective(&snapshot.kops);
    // Sorted: a plan does not hang on the order in which groups were read.
    let mut groups: Vec<&Value> = snapshot.kops.instance_groups.iter().collect();
    groups.sort_by_key(|g| text(g, "/metadata/name").unwrap_or(""));
    for ig in groups {
        let name = text(ig, "/metadata/name").unwrap_or("");
        let n = size(snapshot, ig, name);
        let first = text(ig, "/spec/mixedInstancesPolicy/instances/0")
            .or_else(|| text(ig, "/spec/machineType")?.split(',').next())
            .map(str::trim)
            .filter(|t| !t.is_empty())
            .unwrap_or("t3.medium");
        let spot = ig.pointer("/spec/maxPrice").is_some_and(|p| !p.is_null())
            || number(ig, "/spec/mixedInstancesPolicy/onDemandAboveBase") == Some(0)
                && number(ig, "/spec/mixedInstancesPolicy/onDemandBase").unwrap_or(0) == 0;
        let of = format!("instance group {name}");
        sum.machines(n, first, spot, &of);
        let root = kops.root_volume(ig);
        sum.disks(n, root.size.value, &root.kind.value, &of);
    }
    if let Some(cluster) = &snapshot.kops.cluster {
        for etcd in cluster
            .pointer("/spec/etcdClusters")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let name = text(etcd, "/name").unwrap_or("main");
            let members = etcd.pointer("/etcdMembers").and_then(Value::as_array);
            let n = members.map_or(0, |m| m.len() as u32);
            let first = members.and_then(|m| m.first());
            let gib = first
                .and_then(|m| number(m, "/volumeSize"))
                .unwrap_or(ETCD_GIB);
            let kind = first
                .and_then(|m| text(m, "/volumeType"))
                .unwrap_or(disk_type);
            sum.disks(n, gib, kind, &format!("etcd {name}"));
        }
        if let Some(balancer) = cluster.pointer("/spec/api/loadBalancer") {
            let network = text(balancer, "/class") == Some("Network");
            let key = if network { "lb/network" } else { "lb/classic" };
            sum.service(1, key, "load balancer of the API");
        }
    }
    sum.service(
        balancers(snapshot),
        "lb/classic",
        "load balancer of a Service",
    );
    shared(&mut sum, snapshot);
    sum.side
}

/// Green as planned, beside blue: what both use is not paid twice.
pub(super) fn green(prices: &Prices, spec: &Spec, snapshot: &Found, target: &Target) -> Side {
    let mut sum = Sum {
        prices,
        side: Side::default(),
    };
    sum.service(1, "eks/cluster", "EKS control plane");
    if extended(&spec.green.version, snapshot.taken.as_deref()) {
        sum.service(
            1,
            "eks/extended-support",
            "extended support of the version, on top",
        );
    }
    for g in &target.node_groups {
        let kind = g.instance_types.first().map_or("t3.medium", String::as_str);
        let of = format!("node group {}", g.name);
        sum.machines(g.desired, kind, g.capacity_type == "SPOT", &of);
        sum.disks(g.desired, g.disk_gib, &g.disk_type, &of);
    }
    sum.service(
        balancers(snapshot),
        "lb/network",
        "load balancer of a Service",
    );
    let albs = snapshot
        .blue
        .of_kind("Ingress")
        .filter(|i| {
            text(i, "/spec/ingressClassName") == Some("alb")
                || crate::object::annotation(i, "kubernetes.io/ingress.class") == Some("alb")
        })
        .count() as u32;
    sum.service(albs, "lb/application", "load balancer of an Ingress (alb)");
    sum.side
}

/// What stays whichever cluster runs: paid once, on blue's side of the table.
fn shared(sum: &mut Sum, snapshot: &Snapshot) {
    let gateways = snapshot
        .aws
        .as_ref()
        .and_then(|a| a.nat_gateways.as_ref())
        .map_or(0, |g| g.len() as u32);
    sum.service(
        gateways,
        "nat/gateway",
        "NAT gateway (both clusters use it)",
    );
}

/// Whether a version is in extended support on that day (eks.md 1.1).
fn extended(version: &str, day: Option<&str>) -> bool {
    let Some(minor) = minor(version) else {
        return false;
    };
    let ends = match minor {
        36 => "2027-08-02",
        35 => "2027-03-27",
        34 => "2026-12-02",
        m if m < 34 => return true,
        _ => return false,
    };
    day.is_some_and(|d| d > ends)
}
