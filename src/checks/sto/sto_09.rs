//! STO-09: file systems of the network: green's nodes need a mount target in their zone and a rule for port 2049 (eks.md 4).

use super::volumes::{self, EFS, Source};
use crate::checks::look::{count, text};
use crate::checks::{Answered, Check, Input, Need, Report, few};
use crate::plan::{model::Severity, overlap};
use std::collections::{BTreeMap, BTreeSet};

pub(super) const CHECK: Check = Check {
    id: "STO-09",
    severity: Severity::Blocker,
    question: "Can green's subnets reach the NFS and EFS servers of blue's volumes?",
    needs: &[Need::Blue],
    answered: Answered::Plan,
    remedy: "Let port 2049 of the file system in from green's nodes, and give it a mount target in each zone.",
    source: "checks.md STO-09",
    run,
};

fn run(i: &Input, r: &mut Report) {
    let mut servers: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    let mut see = |object, source: Source| match source {
        Source::Nfs(server) => {
            servers.entry(server).or_default().insert(object);
        }
        Source::Csi(driver, handle) if driver == EFS => {
            let id = handle.split(':').next().unwrap_or("").to_string();
            servers.entry(id).or_default().insert(object);
        }
        _ => {}
    };
    for v in volumes::all(i).into_iter().filter(|v| v.object.moves()) {
        see(v.object.name.as_str(), v.source);
    }
    for (o, source) in volumes::inline(i) {
        see(o.name.as_str(), source);
    }
    if servers.is_empty() {
        return;
    }
    let list: Vec<&String> = servers.keys().collect();
    let users: BTreeSet<&str> = servers.values().flatten().copied().collect();
    let what = format!(
        "{} ({}), used by {}",
        count(list.len(), "file server"),
        few(&list),
        count(users.len(), "object")
    );
    let object = list[0].clone();
    let Some(aws) = &i.snapshot.aws else {
        let (why, how) = Need::Aws.words();
        r.not_checked(format!("nfs/{object}"), &format!("{what}: {why}"), how);
        return;
    };
    let blue = format!("nodes.{}", i.spec.blue.cluster);
    let nodes: BTreeSet<&str> = aws
        .security_groups
        .iter()
        .filter(|g| g.name == blue)
        .map(|g| g.id.as_str())
        .collect();
    let green: Vec<&str> = aws
        .subnets
        .iter()
        .filter(|s| i.target.cluster.subnets.contains(&s.id))
        .map(|s| s.cidr.as_str())
        .collect();
    // A rule for blue's nodes is repeated for green's (NET-02); a range must hold green's subnets.
    let open = aws
        .security_groups
        .iter()
        .flat_map(|g| &g.ingress)
        .any(|x| {
            let port = x.protocol == "-1" || x.from_port <= 2049 && 2049 <= x.to_port;
            let from = x.source_group.as_deref().is_some_and(|s| nodes.contains(s))
                || x.cidr.as_deref().is_some_and(|c| {
                    !green.is_empty() && green.iter().all(|g| overlap(c, g) == Some(true))
                });
            port && from
        });
    // Servers outside of the VPC have rules that no inventory shows.
    let inside = list.iter().any(|s| {
        s.starts_with("fs-")
            || s.contains(".efs.")
            || aws
                .vpc
                .iter()
                .flat_map(|v| &v.cidrs)
                .any(|c| overlap(c, &format!("{s}/32")) == Some(true))
    });
    if !open && inside {
        r.found(format!("nfs/{object}"), format!("{what}: no security group lets port 2049 in from green's nodes, so mounts would hang"));
    } else {
        let zones: Vec<&String> = i.cx.zones.iter().collect();
        r.not_checked(
            format!("nfs/{object}"),
            &format!("{what}: mount targets were not read"),
            format!("See with `aws efs describe-mount-targets` that there is one in each zone of green ({}), or mount it from one of green's subnets; answer with a waiver of STO-09.", few(&zones)),
        );
    }
    let classes: Vec<&str> = i
        .moving(&["StorageClass"])
        .filter(|o| text(o.object, "/provisioner") == Some("example.com/aws-efs"))
        .map(|o| o.name.as_str())
        .collect();
    if !classes.is_empty() {
        r.warning(
            classes[0],
            "the old efs-provisioner: its volumes are plain NFS directories of one file system",
            "Keep the directory names when moving to the EFS driver.",
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::{Blocker, NotChecked};
    use crate::world::cloud::{IngressRule, SecurityGroup};
    use serde_json::json;

    #[test]
    fn an_efs_without_a_rule_for_green_blocks_and_with_one_its_mount_targets_are_asked_about() {
        let mut s = with(vec![object(
            "v1",
            "PersistentVolume",
            "media",
            json!({"spec": {"nfs": {"server": "fs-1.efs.eu-west-1.amazonaws.com", "path": "/"}}}),
        )]);
        fires(
            &spec(),
            &s,
            "STO-09",
            Blocker,
            "no security group lets port 2049 in",
        );
        let group = |id: &str, name: &str, ingress| SecurityGroup {
            id: id.into(),
            name: name.into(),
            vpc: "vpc-1".into(),
            tags: Default::default(),
            ingress,
        };
        if let Some(a) = &mut s.aws {
            a.security_groups = vec![
                group("sg-n", "nodes.shop.test", vec![]),
                group(
                    "sg-efs",
                    "efs",
                    vec![IngressRule {
                        protocol: "tcp".into(),
                        from_port: 2049,
                        to_port: 2049,
                        source_group: Some("sg-n".into()),
                        cidr: None,
                        description: None,
                    }],
                ),
            ];
        }
        fires(
            &spec(),
            &s,
            "STO-09",
            NotChecked,
            "mount targets were not read",
        );
        never_says(&spec(), &s, "STO-09", "would hang");
    }

    #[test]
    fn without_file_systems_nothing_is_asked() {
        silent(&spec(), &shop(), "STO-09");
    }
}
