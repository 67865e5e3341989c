//! Labels, taints, GPUs, architectures (eks.md 1.6) and the selectors of workloads (replay.md rule 46).

use super::{Company, blocks, finding, silent};
use crate::plan::model::{Fate, Severity};
use crate::world::cloud::{InstanceType, Inventory};
use serde_json::{Value, json};

fn deployment(pod: Value) -> Value {
    let mut spec = json!({"containers": [{"name": "web", "image": "web:1"}]});
    for (k, v) in pod.as_object().expect("a map") {
        spec[k] = v.clone();
    }
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "web"}}, "template": {"metadata": {"labels": {"a": "web"}}, "spec": spec}}})
}

fn affinity(expression: Value) -> Value {
    json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}}})
}

/// The pod spec of `deployment/shop/web` on green, and whether CAP-01 stands in the way.
fn on_green(c: &Company) -> (Value, bool) {
    let p = c.plan();
    let v = p
        .verdicts
        .all()
        .iter()
        .find(|v| v.object == "deployment/shop/web")
        .expect("a verdict");
    assert_ne!(v.verdict, Fate::Refused);
    let pod = v.target.as_ref().expect("copied")["spec"]["template"]["spec"].clone();
    (
        pod,
        p.findings
            .iter()
            .any(|f| f.id == "CAP-01" && f.severity == Severity::Blocker),
    )
}

#[test]
fn labels_of_the_group_win_over_its_kubelet_and_the_clusters() {
    let mut c = Company::new(
        json!({"machineType": "m5.large", "nodeLabels": {"tier": "group", "own": "yes"},
        "kubelet": {"nodeLabels": {"tier": "kubelet", "k": "1"}}}),
    );
    c.cluster()["kubelet"] = json!({"nodeLabels": {"tier": "cluster", "c": "true"}});
    let labels = c.one().labels;
    let got: Vec<(&str, &str)> = labels
        .iter()
        .map(|(k, v)| (k.as_str(), v.as_str()))
        .collect();
    assert_eq!(
        got,
        [("c", "true"), ("k", "1"), ("own", "yes"), ("tier", "group")]
    );
}

#[test]
fn what_kops_puts_on_every_worker_leaves_without_a_word_and_other_refused_labels_are_named() {
    let c = Company::new(json!({"machineType": "m5.large", "nodeLabels":
        {"kops.k8s.io/instancegroup": "nodes", "node-role.kubernetes.io/node": "", "kubernetes.io/role": "node"}}));
    assert!(c.one().labels.is_empty());
    silent(&c.plan(), "KOPS-ig-label");
    let c = Company::new(
        json!({"machineType": "m5.large", "nodeLabels": {"node-role.kubernetes.io/ingress": ""}}),
    );
    assert!(c.one().labels.is_empty());
    assert_eq!(
        finding(&c.plan(), "KOPS-ig-label").severity,
        Severity::Warning
    );
}

#[test]
fn workloads_that_select_an_instance_group_find_its_nodes_whatever_it_becomes() {
    let mut c = Company::new(json!({"machineType": "m5.large", "minSize": 3, "maxSize": 3}));
    c.wish(json!({"splitByZone": true}));
    c.snapshot.blue.objects = vec![deployment(
        json!({"nodeSelector": {"kops.k8s.io/instancegroup": "nodes"}}),
    )];
    let p = c.plan();
    assert_eq!(p.target.node_groups.len(), 3);
    for g in &p.target.node_groups {
        assert_eq!(
            g.labels
                .get("crossfade.dev/instancegroup")
                .map(String::as_str),
            Some("nodes"),
            "the label stands in on each of them"
        );
    }
    let (pod, blocked) = on_green(&c);
    assert_eq!(
        pod["nodeSelector"],
        json!({"crossfade.dev/instancegroup": "nodes"})
    );
    assert!(!blocked);
    // Nobody selects by it: no label for nothing.
    c.snapshot.blue.objects = vec![deployment(json!({}))];
    assert!(c.plan().target.node_groups[0].labels.is_empty());
}

#[test]
fn a_group_whose_nodes_are_labelled_otherwise_than_its_name_is_found_by_that_label() {
    // kops.md 1.5: the group's own nodeLabels win; `kops create cluster` of old wrote another name there.
    let mut c = Company::new(
        json!({"machineType": "m5.large", "minSize": 1, "maxSize": 5,
        "nodeLabels": {"kops.k8s.io/instancegroup": "nodes-us-test-1a"}}),
    );
    c.add("other", json!({"machineType": "m5.large"}));
    let node = |name: &str| {
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name,
            "labels": {"kops.k8s.io/instancegroup": "nodes-us-test-1a"}}})
    };
    c.snapshot.blue.objects = vec![
        deployment(json!({"nodeSelector": {"kops.k8s.io/instancegroup": "nodes-us-test-1a"}})),
        node("a"),
        node("b"),
        node("c"),
    ];
    let p = c.plan();
    let g = &p.target.node_groups[0];
    assert_eq!(g.desired, 3, "nodes are counted by the label they carry");
    assert_eq!(
        g.labels
            .get("crossfade.dev/instancegroup")
            .map(String::as_str),
        Some("nodes-us-test-1a")
    );
    let (pod, blocked) = on_green(&c);
    assert_eq!(
        pod["nodeSelector"],
        json!({"crossfade.dev/instancegroup": "nodes-us-test-1a"})
    );
    assert!(!blocked);
}

#[test]
fn a_selector_of_a_group_that_green_has_not_blocks() {
    let mut c = Company::new(json!({"machineType": "m5.large"}));
    c.snapshot.blue.objects = vec![deployment(
        json!({"nodeSelector": {"kops.k8s.io/instancegroup": "master-a"}}),
    )];
    assert!(on_green(&c).1);
    // One of the alternatives is enough; a wish to stay away from masters is fulfilled.
    c.snapshot.blue.objects = vec![deployment(affinity(
        json!({"key": "kops.k8s.io/instancegroup", "operator": "In", "values": ["master-a", "nodes"]}),
    ))];
    let (pod, blocked) = on_green(&c);
    assert!(!blocked);
    assert_eq!(
        pod.pointer("/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchExpressions/0"),
        Some(&json!({"key": "crossfade.dev/instancegroup", "operator": "In", "values": ["master-a", "nodes"]}))
    );
    for away in [
        json!({"key": "kops.k8s.io/instancegroup", "operator": "NotIn", "values": ["master-a"]}),
        json!({"key": "node-role.kubernetes.io/master", "operator": "DoesNotExist"}),
    ] {
        c.snapshot.blue.objects = vec![deployment(affinity(away))];
        assert!(!on_green(&c).1);
    }
}

#[test]
fn a_refused_label_that_workloads_select_gets_a_stand_in() {
    let mut c = Company::new(
        json!({"machineType": "m5.large", "nodeLabels": {"node-role.kubernetes.io/ingress": "", "node.kubernetes.io/pool": "web"}}),
    );
    c.snapshot.blue.objects = vec![deployment(json!({
        "nodeSelector": {"node-role.kubernetes.io/ingress": ""},
        "affinity": affinity(json!({"key": "node.kubernetes.io/pool", "operator": "In", "values": ["web"]}))["affinity"]
    }))];
    let labels = c.one().labels;
    assert_eq!(
        labels
            .get("crossfade.dev/node-role.kubernetes.io.ingress")
            .map(String::as_str),
        Some("")
    );
    assert!(
        labels.keys().all(|k| !k.contains("kubernetes.io/")),
        "EKS refuses keys that contain it: {labels:?}"
    );
    let (pod, blocked) = on_green(&c);
    assert!(!blocked);
    assert_eq!(
        pod["nodeSelector"],
        json!({"crossfade.dev/node-role.kubernetes.io.ingress": ""})
    );
    assert!(
        pod.to_string()
            .contains("crossfade.dev/node.kubernetes.io.pool")
    );
}

#[test]
fn the_presence_of_kopss_role_labels_means_on_green_what_it_meant_on_blue() {
    let mut c = Company::new(json!({"machineType": "m5.large", "maxPrice": "0.1"}));
    c.add("steady", json!({"machineType": "m5.large"}));
    let expression = |c: &Company| {
        on_green(c)
            .0
            .pointer("/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchExpressions/0")
            .cloned()
            .expect("an expression")
    };
    for (blue, green) in [
        // Every managed node has a capacity type: only its value tells spot.
        (
            json!({"key": "node-role.kubernetes.io/spot-worker", "operator": "Exists"}),
            json!({"key": "eks.amazonaws.com/capacityType", "operator": "In", "values": ["SPOT"]}),
        ),
        (
            json!({"key": "node-role.kubernetes.io/spot-worker", "operator": "DoesNotExist"}),
            json!({"key": "eks.amazonaws.com/capacityType", "operator": "NotIn", "values": ["SPOT"]}),
        ),
        (
            json!({"key": "node-role.kubernetes.io/node", "operator": "Exists"}),
            json!({"key": "eks.amazonaws.com/nodegroup", "operator": "Exists"}),
        ),
        (
            json!({"key": "kubernetes.io/role", "operator": "In", "values": ["node"]}),
            json!({"key": "eks.amazonaws.com/nodegroup", "operator": "Exists"}),
        ),
    ] {
        c.snapshot.blue.objects = vec![deployment(affinity(blue.clone()))];
        assert_eq!(expression(&c), green, "{blue}");
        assert!(!on_green(&c).1, "{blue}");
    }
    c.snapshot.blue.objects = vec![deployment(
        json!({"nodeSelector": {"node-role.kubernetes.io/spot-worker": ""}}),
    )];
    assert_eq!(
        on_green(&c).0["nodeSelector"],
        json!({"eks.amazonaws.com/capacityType": "SPOT"})
    );
}

#[test]
fn taints_are_the_union_in_all_spellings_and_what_cannot_be_read_is_said() {
    let mut c = Company::new(json!({"machineType": "m5.large",
        "taints": ["dedicated=gpu:NoSchedule", "flag:NoExecute", "empty=:PreferNoSchedule", "nonsense", "a=b:Sometimes"],
        "kubelet": {"taints": ["dedicated=gpu:NoSchedule", "of-kubelet:NoSchedule"]}}));
    c.cluster()["kubelet"] = json!({"taints": ["of-cluster=1:NoSchedule"]});
    let taints: Vec<String> = c
        .one()
        .taints
        .iter()
        .map(|t| format!("{}={}:{}", t.key, t.value, t.effect))
        .collect();
    assert_eq!(
        taints,
        [
            "of-cluster=1:NoSchedule",
            "dedicated=gpu:NoSchedule",
            "of-kubelet=:NoSchedule",
            "flag=:NoExecute",
            "empty=:PreferNoSchedule"
        ]
    );
    let said = c
        .plan()
        .findings
        .iter()
        .filter(|f| f.id == "KOPS-ig-taint")
        .count();
    assert_eq!(said, 2);
}

#[test]
fn more_than_fifty_labels_or_taints_are_refused_before_eks_does() {
    let labels: serde_json::Map<String, Value> =
        (0..51).map(|n| (format!("l{n}"), json!("1"))).collect();
    let taints: Vec<String> = (0..51).map(|n| format!("t{n}:NoSchedule")).collect();
    let p =
        Company::new(json!({"machineType": "m5.large", "nodeLabels": labels, "taints": taints}))
            .plan();
    blocks(&finding(&p, "KOPS-ig-labels"));
    blocks(&finding(&p, "KOPS-ig-taints"));
}

#[test]
fn a_group_without_gpus_has_no_gpu_label_though_the_cluster_installs_the_driver() {
    let mut c = Company::new(json!({"machineType": "m6i.large"}));
    c.cluster()["containerd"] = json!({"nvidiaGPU": {"enabled": true}});
    c.snapshot.blue.objects = vec![deployment(
        json!({"nodeSelector": {"kops.k8s.io/gpu": "1"}}),
    )];
    let g = c.one();
    assert!(g.labels.is_empty() && g.taints.is_empty(), "{g:?}");
    silent(&c.plan(), "KOPS-ig-label");
}

#[test]
fn nobody_selects_by_a_label_is_said_only_when_workloads_were_read() {
    let mut c = Company::new(
        json!({"machineType": "m5.large", "nodeLabels": {"node-role.kubernetes.io/ingress": ""}}),
    );
    let f = finding(&c.plan(), "KOPS-ig-label");
    assert!(f.message.contains("workloads were not read"), "{f:?}");
    c.snapshot.blue.objects = vec![deployment(json!({}))];
    let f = finding(&c.plan(), "KOPS-ig-label");
    assert!(f.message.contains("no workload that was read"), "{f:?}");
}

#[test]
fn a_gpu_group_takes_the_nvidia_image_and_kopss_taint() {
    let mut c = Company::new(json!({"machineType": "g4dn.xlarge"}));
    assert_eq!(c.one().ami_type, "AL2023_x86_64_NVIDIA");
    assert!(c.one().taints.is_empty());
    finding(&c.plan(), "KOPS-ig-gpu");
    c.cluster()["containerd"] = json!({"nvidiaGPU": {"enabled": true}});
    assert_eq!(c.one().taints[0].key, "nvidia.com/gpu");
    // Said once, by KOPS-ig-gpu.
    silent(&c.plan(), "KOPS-ig-label");
    c.snapshot.blue.objects = vec![deployment(
        json!({"nodeSelector": {"kops.k8s.io/gpu": "1"}}),
    )];
    assert_eq!(
        on_green(&c).0["nodeSelector"],
        json!({"crossfade.dev/kops.k8s.io.gpu": "1"})
    );
    assert_eq!(
        c.one()
            .labels
            .get("crossfade.dev/kops.k8s.io.gpu")
            .map(String::as_str),
        Some("1")
    );
}

#[test]
fn the_image_follows_the_architecture_by_name_and_by_ec2s_word() {
    let ami = |t: &str| Company::new(json!({"machineType": t})).one().ami_type;
    for t in [
        "a1.large",
        "m6g.large",
        "c6gn.large",
        "r6gd.large",
        "t4g.small",
        "im4gn.large",
        "is4gen.large",
        "x2gd.large",
    ] {
        assert_eq!(ami(t), "AL2023_ARM_64_STANDARD", "{t}");
    }
    for t in [
        "m5.large",
        "m5zn.large",
        "c5n.large",
        "i3en.large",
        "t3a.small",
        "x2idn.large",
        "m6id.large",
    ] {
        assert_eq!(ami(t), "AL2023_x86_64_STANDARD", "{t}");
    }
    assert_eq!(ami("g5g.xlarge"), "AL2023_ARM_64_NVIDIA");
    assert_eq!(ami("p4d.24xlarge"), "AL2023_x86_64_NVIDIA");
    assert_eq!(ami("inf2.xlarge"), "AL2023_x86_64_NEURON");
    let mut c = Company::new(json!({"machineType": "z9.large"}));
    c.snapshot.aws = Some(Inventory {
        instance_types: Some(
            [(
                "z9.large".to_string(),
                InstanceType {
                    vcpus: 2,
                    memory_mib: 8192,
                    interfaces: 3,
                    addresses: 10,
                    arch: "arm64".into(),
                    gpus: 0,
                    nitro: true,
                    instance_store_gb: 0,
                },
            )]
            .into(),
        ),
        ..Default::default()
    });
    assert_eq!(c.one().ami_type, "AL2023_ARM_64_STANDARD");
    assert_eq!(c.one().max_pods, Some(29));
}

#[test]
fn mixed_architectures_and_a_wrong_wish_are_told() {
    let c = Company::new(
        json!({"mixedInstancesPolicy": {"instances": ["m6g.large", "m5.large", "m6gd.large"]}}),
    );
    assert_eq!(c.one().instance_types, ["m6g.large", "m6gd.large"]);
    finding(&c.plan(), "KOPS-ig-arch");
    let mut c = Company::new(json!({"machineType": "m5.large"}));
    c.wish(json!({"amiType": "BOTTLEROCKET_ARM_64"}));
    blocks(&finding(&c.plan(), "KOPS-ig-ami"));
    c.wish(json!({"amiType": "BOTTLEROCKET_x86_64"}));
    assert_eq!(c.one().ami_type, "BOTTLEROCKET_x86_64");
    assert_eq!(c.one().launch_template.root.device, "/dev/xvdb");
    finding(
        &Company::new(json!({"machineType": "m3.large"})).plan(),
        "KOPS-ig-oldtype",
    );
}

#[test]
fn a_wish_for_a_group_that_blue_has_not_blocks_and_names_the_near_one() {
    let mut c = Company::new(json!({"machineType": "m5.large"}));
    c.spec
        .green
        .node_groups
        .insert("node".into(), Default::default());
    let p = c.plan();
    let f = p
        .findings
        .iter()
        .find(|f| f.id == "KOPS-ig-wish")
        .expect("a finding");
    blocks(f);
    assert!(f.message.contains("did you mean nodes?"), "{f:?}");
}
