//! A node group for people: what its nodes are and why.

use super::printer::Printer;
use crate::plan::model::TargetNodeGroup;
use crate::world::cloud::Disk;

/// Prints it, indented. User data is counted, never shown: it may hold what blue's owners wrote.
pub fn show(g: &TargetNodeGroup, p: &Printer) {
    for line in lines(g) {
        p.line(format!("  {line}"));
    }
}

fn lines(g: &TargetNodeGroup) -> Vec<String> {
    let t = &g.launch_template;
    let mut out = vec![format!(
        "{} nodes of {}, in {}",
        g.capacity_type,
        g.ami_type,
        if g.zones.is_empty() {
            g.subnets.join(", ")
        } else {
            g.zones.join(", ")
        }
    )];
    if let Some(n) = g.max_pods {
        out.push(format!("at most {n} pods on a node"));
    }
    for (k, v) in &g.labels {
        out.push(format!("label {k}={v}"));
    }
    for taint in &g.taints {
        out.push(format!(
            "taint {}={}:{}",
            taint.key, taint.value, taint.effect
        ));
    }
    out.push(format!("launch template {}", t.name));
    out.push(format!("root volume {}", disk(&t.root)));
    out.extend(
        t.volumes
            .iter()
            .map(|d| format!("further volume {}", disk(d))),
    );
    out.push(format!(
        "instance metadata: tokens {}, {} hop{}",
        t.http_tokens,
        t.hop_limit,
        if t.hop_limit == 1 { "" } else { "s" }
    ));
    if !t.security_groups.is_empty() {
        out.push(format!("security groups {}", t.security_groups.join(", ")));
    }
    if let Some(text) = &t.user_data {
        out.push(format!(
            "user data of {} bytes, in plan.json (not shown)",
            text.len()
        ));
    }
    for (k, v) in &t.tags {
        out.push(format!("tag {k}={v}"));
    }
    if let Some(n) = &g.max_unavailable {
        out.push(format!("an update takes {n} away at once"));
    }
    out.extend(g.notes.iter().map(|n| format!("why: {n}")));
    out
}

fn disk(d: &Disk) -> String {
    let mut out = format!("{} {} GiB {}", d.device, d.gib, d.kind);
    if let Some(n) = d.iops {
        out.push_str(&format!(", {n} IOPS"));
    }
    if let Some(n) = d.throughput {
        out.push_str(&format!(", {n} MiB/s"));
    }
    out.push_str(match (&d.kms_key, d.encrypted) {
        (Some(_), _) => ", encrypted with a key of your own",
        (None, true) => ", encrypted",
        (None, false) => ", not encrypted",
    });
    out
}
