//! Real specs: what their groups become, read against kops.md 3 by hand.

use super::{Company, finding, is};
use crate::plan::model::{Plan, TargetNodeGroup};
use crate::plan::plan;
use crate::plan::tests::{kops_snapshot, spec};
use serde_json::Value;
use std::path::Path;

fn of(file: &str) -> Plan {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/corpus/kops")
        .join(file);
    let snapshot = kops_snapshot(&path);
    let cluster = snapshot
        .kops
        .cluster
        .as_ref()
        .and_then(|c| c.pointer("/metadata/name"))
        .and_then(Value::as_str)
        .unwrap_or("")
        .to_string();
    plan(&spec(&cluster), &snapshot)
}

fn one(plan: &Plan) -> &TargetNodeGroup {
    assert_eq!(plan.target.node_groups.len(), 1);
    &plan.target.node_groups[0]
}

fn ids(plan: &Plan) -> Vec<&str> {
    let mut ids: Vec<&str> = plan
        .findings
        .iter()
        .filter(|f| f.object == "instancegroup/nodes" && f.id.starts_with("KOPS-ig"))
        .map(|f| f.id.as_str())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

#[test]
fn a_mixed_policy_of_five_percent_becomes_one_node_on_demand_and_the_rest_spot() {
    let p = of("mixed-instances-kops1.16.yaml");
    is(
        &p,
        &[
            ("nodes-ondemand", "ON_DEMAND", 1, 1, 1),
            ("nodes-spot", "SPOT", 1, 1, 1),
        ],
    );
    let g = &p.target.node_groups[1];
    assert_eq!(g.instance_types, ["m5.large", "m5.xlarge", "t2.medium"]);
    // kops 1.16 and Kubernetes 1.12: gp2, not encrypted.
    assert_eq!(
        (
            g.launch_template.root.kind.as_str(),
            g.launch_template.root.encrypted
        ),
        ("gp2", false)
    );
    assert!(
        ids(&p).contains(&"KOPS-ig-instanceProtection"),
        "{:?}",
        ids(&p)
    );
}

#[test]
fn a_bid_a_spot_block_and_hibernation_become_a_plain_spot_group() {
    let p = of("launch-templates-spot-kops1.20.yaml");
    let g = one(&p);
    assert_eq!(g.capacity_type, "SPOT");
    let ids = ids(&p);
    for id in [
        "KOPS-ig-maxprice",
        "KOPS-ig-spotDurationInMinutes",
        "KOPS-ig-instanceInterruptionBehavior",
        "KOPS-ig-instanceProtection",
    ] {
        assert!(ids.contains(&id), "{id} in {ids:?}");
    }
}

#[test]
fn the_complex_cluster_keeps_volumes_groups_tags_credits_and_names_what_it_cannot() {
    let p = of("complex-legacy-apigroup.yaml");
    let g = one(&p);
    let t = &g.launch_template;
    assert!(t.root.encrypted && t.monitoring);
    assert_eq!(t.volumes.len(), 1);
    let v = &t.volumes[0];
    assert_eq!(
        (
            v.device.as_str(),
            v.gib,
            v.kind.as_str(),
            v.encrypted,
            v.delete_on_termination
        ),
        ("/dev/xvdd", 20, "gp2", true, false)
    );
    assert!(
        v.kms_key
            .as_deref()
            .is_some_and(|k| k.starts_with("arn:aws-test:kms:us-test-1:000000000000:key/"))
    );
    assert_eq!(
        t.security_groups,
        [
            "${cluster.security_group}",
            "sg-exampleid3",
            "sg-exampleid4"
        ]
    );
    assert_eq!(t.cpu_credits.as_deref(), Some("standard"), "t2.medium");
    let tags: Vec<(&str, &str)> = t
        .tags
        .iter()
        .map(|(k, v)| (k.as_str(), v.as_str()))
        .collect();
    assert_eq!(tags, [("Owner", "John Doe"), ("foo/bar", "fib+baz")]);
    // Kubernetes 1.32 asks for tokens by default, over one hop.
    assert_eq!((t.http_tokens.as_str(), t.hop_limit), ("required", 1));
    assert_eq!(t.associate_public_ip, Some(true), "a public subnet");
    let host = finding(&p, "KOPS-ig-host");
    assert!(
        host.message.contains("user data myscript.sh")
            && host.message.contains("package nfs-common"),
        "{}",
        host.message
    );
    assert!(
        ids(&p).contains(&"KOPS-ig-externalLoadBalancers"),
        "{:?}",
        ids(&p)
    );
    assert_eq!(t.user_data, None);
}

#[test]
fn a_v1alpha3_root_volume_reads_the_same() {
    let p = of("v1alpha3-aws.yaml");
    let r = &one(&p).launch_template.root;
    assert_eq!(
        (r.gib, r.kind.as_str(), r.iops, r.throughput, r.encrypted),
        (33, "gp3", Some(3000), Some(421), true),
        "300 operations are raised to the least that gp3 has"
    );
    assert_eq!(
        r.kms_key.as_deref(),
        Some("1234abcd-12ab-34cd-56ef-1234567890ab")
    );
}

#[test]
fn karpenters_groups_stay_out_and_the_other_comes() {
    let p = of("karpenter-kops1.30.yaml");
    assert_eq!(p.target.node_groups.len(), 1);
    assert_eq!(
        p.findings
            .iter()
            .filter(|f| f.id == "KOPS-ig-karpenter")
            .count(),
        2
    );
}

#[test]
fn priorities_metadata_mirrors_and_profiles_of_real_clusters() {
    let p = of("autoscaler-priority.yaml");
    assert_eq!(p.target.node_groups.len(), 3);
    assert_eq!(
        p.findings
            .iter()
            .filter(|f| f.id == "KOPS-ig-autoscalePriority")
            .count(),
        2
    );
    let p = of("ipv6-calico-kops1.25.yaml");
    let t = &one(&p).launch_template;
    assert_eq!((t.http_tokens.as_str(), t.hop_limit), ("required", 3));
    let p = of("containerd-custom.yaml");
    let text = one(&p).launch_template.user_data.clone().expect("mirrors");
    assert!(text.contains("certs.d/docker.io/") && text.contains("certs.d/_default/"));
    let p = of("existing-iam-kops1.18.yaml");
    assert!(ids(&p).contains(&"KOPS-ig-iam"));
    let p = of("warmpool-containerproxy.yaml");
    assert!(ids(&p).contains(&"KOPS-ig-warmPool"));
    let p = of("minimal-aws.yaml");
    assert!(ids(&p).contains(&"KOPS-ig-maxInstanceLifetime"));
    let p = of("external-lb-kops1.27.yaml");
    assert_eq!(
        p.findings
            .iter()
            .filter(|f| f.id == "KOPS-ig-externalLoadBalancers")
            .count(),
        2
    );
}

#[test]
fn a_group_of_a_split_company_is_the_same_in_any_order_of_input() {
    let mut c = Company::new(serde_json::json!({"machineType": "m5.large"}));
    c.add("zeta", serde_json::json!({"machineType": "c5.large"}));
    c.add("alpha", serde_json::json!({"machineType": "r5.large"}));
    let a = c.plan();
    c.snapshot.kops.instance_groups.reverse();
    assert_eq!(a.digest, c.plan().digest);
}

#[test]
fn pods_of_every_group_of_the_corpora_are_those_that_the_plan_of_addresses_counts_with() {
    let mut seen = 0;
    for folder in ["kops", "kops-handwritten"] {
        for (name, plan) in crate::plan::corpus_tests::plans(folder) {
            for g in &plan.target.node_groups {
                let fit = plan.network.groups.iter().find(|f| f.node_group == g.name);
                match fit {
                    Some(fit) => assert_eq!(g.max_pods, Some(fit.max_pods), "{name}: {}", g.name),
                    // A type that nobody knows.
                    None => assert!(g.max_pods.is_none_or(|n| n <= 17), "{name}: {}", g.name),
                }
                seen += usize::from(fit.is_some());
            }
        }
    }
    assert!(seen >= 30, "only {seen} groups");
}
