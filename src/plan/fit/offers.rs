//! What helps when addresses or pod slots run short, in the order of eks.md 2.2.4.

use super::routes;
use crate::plan::overlap;
use crate::rewrite::range;
use crate::snapshot::model::Snapshot;
use crate::spec::model::Spec;
use serde_json::Value;

/// A /16 that may become a secondary CIDR of the VPC: in the VPC's own family of private ranges (EC2 refuses to mix them), none of 100.64.0.0/10
/// (blue's pods and services, eks.md 2.2.5), and nothing that the VPC, its routes or green's services use. `None`: all are taken.
pub fn secondary_cidr(spec: &Spec, snapshot: &Snapshot) -> Option<String> {
    let mut taken: Vec<String> = vec!["100.64.0.0/10".into()];
    let mut vpc: Vec<String> = vec![];
    if let Some(v) = snapshot.aws.as_ref().and_then(|a| a.vpc.as_ref()) {
        vpc.extend(v.cidrs.iter().cloned());
    }
    if let Some(c) = &snapshot.kops.cluster {
        for p in [
            "/spec/networkCIDR",
            "/spec/networking/networkCIDR",
            "/spec/nonMasqueradeCIDR",
            "/spec/networking/nonMasqueradeCIDR",
            "/spec/podCIDR",
            "/spec/serviceClusterIPRange",
        ] {
            vpc.extend(c.pointer(p).and_then(Value::as_str).map(String::from));
        }
        for p in [
            "/spec/additionalNetworkCIDRs",
            "/spec/networking/additionalNetworkCIDRs",
        ] {
            for r in c.pointer(p).and_then(Value::as_array).into_iter().flatten() {
                vpc.extend(r.as_str().map(String::from));
            }
        }
    }
    taken.extend(vpc.iter().cloned());
    taken.extend(routes::routed(snapshot).into_keys());
    match &spec.green.service_cidr {
        Some(c) => taken.push(c.clone()),
        // EKS takes one of these two (eks.md 1.2).
        None => taken.extend(["10.100.0.0/16".into(), "172.20.0.0/16".into()]),
    }
    let inside = |family: &str| {
        vpc.iter()
            .filter(|c| c.as_str() != "100.64.0.0/10")
            .any(|c| overlap(c, family) == Some(true))
    };
    let ten = (0..256).map(|n| format!("10.{n}.0.0/16"));
    // 172.17 is the bridge of every old docker, 172.31 the range of default VPCs.
    let seventeen = (16..31)
        .filter(|n| *n != 17)
        .map(|n| format!("172.{n}.0.0/16"));
    let candidates: Vec<String> = if inside("10.0.0.0/8") {
        ten.chain(["198.19.0.0/16".to_string()]).collect()
    } else if inside("172.16.0.0/12") {
        seventeen.chain(["198.19.0.0/16".to_string()]).collect()
    } else {
        vec!["198.19.0.0/16".into()]
    };
    candidates
        .into_iter()
        .find(|c| range(c).is_some() && taken.iter().all(|t| overlap(c, t) != Some(true)))
}
