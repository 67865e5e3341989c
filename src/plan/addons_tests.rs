//! Every component of every AWS file of the corpus has a row; what the rows say was read against kops.md 2 and eks.md 1.5.

use super::*;
use crate::plan::plan;
use crate::plan::tests::{corpus, kops_snapshot, spec};
use std::path::Path;

fn of(file: &str) -> Addons {
    addons(&spec("x"), &kops_snapshot(&corpus(file)))
}

fn small(fields: Value) -> Snapshot {
    let mut s = Snapshot::default();
    s.kops.cluster = Some(json!({"kind": "Cluster", "metadata": {"name": "x"}, "spec": fields}));
    s
}

fn setting(a: &Addons, name: &str) -> Option<Value> {
    a.addons
        .iter()
        .find(|x| x.name == name)
        .unwrap_or_else(|| panic!("no add-on {name}"))
        .configuration
        .clone()
}

fn becomes<'a>(a: &'a Addons, name: &str) -> &'a str {
    a.components
        .iter()
        .find(|c| c.name == name)
        .map_or("not there", |c| c.becomes.as_str())
}

#[test]
fn every_aws_file_gets_the_five_add_ons_that_a_cluster_needs_and_each_network_is_named() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/kops");
    let mut seen = 0;
    for entry in std::fs::read_dir(dir).expect("the corpus") {
        let path = entry.expect("readable").path();
        let name = path
            .file_name()
            .and_then(|n| n.to_str())
            .unwrap_or("")
            .to_string();
        if !name.ends_with(".yaml") || name.contains("REFUSE") {
            continue;
        }
        seen += 1;
        let a = addons(&spec("x"), &kops_snapshot(&path));
        let names: Vec<&str> = a.addons.iter().map(|x| x.name.as_str()).collect();
        assert_eq!(
            names[..5],
            [
                "vpc-cni",
                "kube-proxy",
                "eks-pod-identity-agent",
                "coredns",
                "aws-ebs-csi-driver"
            ],
            "{name}"
        );
        assert!(!a.addons[0].replaces.is_empty(), "{name}: which network?");
        for c in &a.components {
            assert!(!c.becomes.is_empty(), "{name}: {c:?}");
        }
    }
    assert_eq!(seen, 44);
}

#[test]
fn all_managed_add_ons_of_kops_have_their_successor() {
    let a = of("many-addons-kops1.28.yaml");
    for (component, what) in [
        ("network", "add-on vpc-cni"),
        ("metrics-server", "add-on metrics-server"),
        ("cert-manager", "add-on cert-manager"),
        ("snapshot-controller", "add-on snapshot-controller"),
        (
            "cluster-autoscaler",
            "chart autoscaler/cluster-autoscaler, by you",
        ),
        (
            "aws-load-balancer-controller",
            "chart eks/aws-load-balancer-controller, by you",
        ),
        ("node termination handler", "nothing"),
        ("aws-ebs-csi-driver", "add-on aws-ebs-csi-driver"),
        ("karpenter", "not there"),
        ("node-local-dns", "not there"),
    ] {
        assert_eq!(becomes(&a, component), what, "{component}");
    }
    let charts: Vec<&str> = a
        .problems
        .iter()
        .filter(|p| p.severity == Severity::Warning)
        .map(|p| p.object.as_str())
        .collect();
    assert_eq!(
        charts,
        [
            "component/cluster-autoscaler",
            "component/aws-load-balancer-controller"
        ]
    );
    assert_eq!(a.addons[0].replaces, "amazonvpc");
    assert_eq!(
        becomes(&of("nodelocaldns-irsa26-kops1.31.yaml"), "node-local-dns"),
        "chart node-local-dns, by you"
    );
    assert_eq!(
        becomes(&of("karpenter-kops1.30.yaml"), "karpenter"),
        "chart karpenter, by you"
    );
    assert_eq!(
        becomes(&of("irsa-kops1.31.yaml"), "pod identity webhook"),
        "part of EKS"
    );
    assert_eq!(
        becomes(
            &of("iam-authenticator-mappings-cluster-only.yaml"),
            "aws-iam-authenticator"
        ),
        "part of EKS"
    );
}

#[test]
fn what_is_switched_off_is_not_there() {
    let a = addons(
        &spec("x"),
        &small(
            json!({"metricsServer": {"enabled": false}, "nodeTerminationHandler": {"enabled": false}, "clusterAutoscaler": {}}),
        ),
    );
    for c in [
        "metrics-server",
        "node termination handler",
        "cluster-autoscaler",
    ] {
        assert_eq!(becomes(&a, c), "not there", "{c}");
    }
}

#[test]
fn blues_settings_of_the_same_cni_carry_over_and_the_wishes_win() {
    let file = "amazonvpc-env-cluster-only-kops1.25.yaml";
    assert_eq!(
        setting(&of(file), "vpc-cni"),
        Some(json!({"env": {"AWS_VPC_K8S_CNI_LOGLEVEL": "debug", "WARM_IP_TARGET": "10"}}))
    );
    let mut s = spec("x");
    s.green.network.warm_ip_target = Some(2);
    s.green.network.prefix_delegation = Some(true);
    s.green.network.cni_env = [
        ("MINIMUM_IP_TARGET".to_string(), "20".to_string()),
        ("NOT_ONE".to_string(), "x".to_string()),
    ]
    .into();
    let a = addons(&s, &kops_snapshot(&corpus(file)));
    let env = setting(&a, "vpc-cni").expect("settings")["env"].clone();
    assert_eq!(
        (
            &env["WARM_IP_TARGET"],
            &env["ENABLE_PREFIX_DELEGATION"],
            &env["MINIMUM_IP_TARGET"]
        ),
        (&json!("2"), &json!("true"), &json!("20"))
    );
    assert!(
        env.get("WARM_PREFIX_TARGET").is_none(),
        "addresses are counted one by one already"
    );
    assert!(a.problems.iter().any(|p| p.message.contains("NOT_ONE")));
    // The add-on sets its own cluster name; a variable that no CNI knows is said and left out.
    let blue = small(
        json!({"networking": {"amazonvpc": {"env": [{"name": "CLUSTER_NAME", "value": "blue"}, {"name": "OLD_KNOB", "value": "1"}]}}}),
    );
    let a = addons(&spec("x"), &blue);
    assert_eq!(setting(&a, "vpc-cni"), None);
    assert!(a.problems.iter().any(|p| p.message.contains("OLD_KNOB")));
}

#[test]
fn policies_are_enforced_on_green_exactly_where_blue_enforces_them() {
    let on = Some(json!({"enableNetworkPolicy": "true"}));
    for (network, want) in [
        ("calico", &on),
        ("canal", &on),
        ("cilium", &on),
        ("weave", &on),
        ("kuberouter", &on),
        ("kubenet", &None),
        ("flannel", &None),
        ("amazonvpc", &None),
    ] {
        let a = addons(&spec("x"), &small(json!({"networking": {network: {}}})));
        assert_eq!(&setting(&a, "vpc-cni"), want, "{network}");
    }
    // Calico for policies beside the VPC CNI.
    let mut s = small(json!({"networking": {"amazonvpc": {}}}));
    s.blue.objects = vec![
        json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "calico-node", "namespace": "kube-system"}}),
    ];
    assert_eq!(setting(&addons(&spec("x"), &s), "vpc-cni"), on);
}

#[test]
fn ipvs_carries_over_with_its_scheduler_and_iptables_needs_no_word() {
    let with = |v: Value| {
        setting(
            &addons(&spec("x"), &small(json!({"kubeProxy": v}))),
            "kube-proxy",
        )
    };
    assert_eq!(
        with(json!({"proxyMode": "ipvs"})),
        Some(json!({"mode": "ipvs", "ipvs": {"scheduler": "rr"}}))
    );
    assert_eq!(
        with(json!({"proxyMode": "ipvs", "ipvsScheduler": "lc"})).expect("settings")["ipvs"]["scheduler"],
        "lc"
    );
    assert_eq!(with(json!({"proxyMode": "iptables"})), None);
}

#[test]
fn stub_domains_forwarders_and_zones_of_the_live_corefile_are_in_greens_corefile() {
    let corefile = |a: &Addons| {
        setting(a, "coredns").map(|c| c["corefile"].as_str().unwrap_or("").to_string())
    };
    assert_eq!(corefile(&of("minimal-aws.yaml")), None, "EKS's own");
    let mut s = small(
        json!({"kubeDNS": {"provider": "CoreDNS", "stubDomains": {"corp.test": ["10.1.0.2", "10.1.1.2"]}, "upstreamNameservers": ["10.0.0.2"]}}),
    );
    s.blue.objects = vec![
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "coredns", "namespace": "kube-system"},
        "data": {"Corefile": ".:53 {\n    errors\n    kubernetes cluster.local {\n      pods insecure\n    }\n}\nlegacy.test:53 {\n    forward . 10.9.9.9 {\n      policy sequential\n    }\n}\n"}}),
    ];
    let text = corefile(&addons(&spec("x"), &s)).expect("a Corefile");
    assert!(
        text.starts_with(".:53 {\n") && text.contains("    forward . 10.0.0.2\n"),
        "{text}"
    );
    assert!(
        text.contains(
            "corp.test:53 {\n    errors\n    cache 30\n    forward . 10.1.0.2 10.1.1.2\n}\n"
        ),
        "{text}"
    );
    assert!(
        text.contains(
            "legacy.test:53 {\n    forward . 10.9.9.9 {\n      policy sequential\n    }\n}\n"
        ),
        "{text}"
    );
    assert_eq!(text.matches('{').count(), text.matches('}').count());
    let own = ".:53 {\n  forward . 100.64.0.10\n}\n";
    let a = addons(
        &spec("x"),
        &small(json!({"kubeDNS": {"externalCoreFile": own}})),
    );
    assert_eq!(corefile(&a).as_deref(), Some(own));
    let words: Vec<&str> = a.problems.iter().map(|p| p.message.as_str()).collect();
    assert!(
        words.iter().any(|w| w.contains("kubernetes cluster.local"))
            && words.iter().any(|w| w.contains("100.64.0.0/10")),
        "{words:?}"
    );
}

/// The cache of blue forwards a zone by itself: on green nobody would, and the zone would be asked of the world.
#[test]
fn zones_of_the_dns_cache_on_every_node_go_to_coredns_without_their_bind() {
    let file = "nodelocaldns-irsa26-kops1.31.yaml";
    let a = of(file);
    let text = setting(&a, "coredns").expect("settings")["corefile"]
        .as_str()
        .expect("a text")
        .to_string();
    let zone = text
        .split_once("googleapis.com:53 {\n")
        .expect("the zone")
        .1;
    assert_eq!(
        zone.split_whitespace().collect::<Vec<_>>(),
        ["forward", ".", "10.238.1.130", "}"]
    );
    assert!(
        text.contains("    kubernetes cluster.local ") && !text.contains("bind"),
        "{text}"
    );
    let said: Vec<&Problem> = a
        .problems
        .iter()
        .filter(|p| p.message.contains("googleapis.com:53 (to 10.238.1.130)"))
        .collect();
    assert_eq!(said.len(), 1, "{:?}", a.problems);
    assert_eq!(said[0].severity, Severity::Warning);
    // Beside a Corefile of their own it is appended; placeholders of the cache are no zone for CoreDNS.
    let a = addons(
        &spec("x"),
        &small(
            json!({"kubeDNS": {"externalCoreFile": ".:53 {\n  health\n  ready\n  kubernetes cluster.local\n}",
            "nodeLocalDNS": {"enabled": true, "externalCoreFile": "cluster.local:53 {\n  cache\n}\na.test:53 {\n  forward . __PILLAR__UPSTREAM__SERVERS__\n}\n",
                "additionalConfig": "b.test:53 {\n  bind 169.254.20.10\n  forward . 10.0.0.9\n}\n"}}}),
        ),
    );
    assert_eq!(
        setting(&a, "coredns").expect("settings")["corefile"],
        ".:53 {\n  health\n  ready\n  kubernetes cluster.local\n}\nb.test:53 {\n  forward . 10.0.0.9\n}\n"
    );
    assert!(
        a.problems
            .iter()
            .any(|p| p.message.contains("left out: a.test:53")),
        "{:?}",
        a.problems
    );
}

#[test]
fn a_corefile_that_the_pods_of_the_add_on_cannot_run_is_said() {
    let said = |own: &str| -> Vec<String> {
        addons(
            &spec("x"),
            &small(json!({"kubeDNS": {"externalCoreFile": own}})),
        )
        .problems
        .into_iter()
        .filter(|p| p.object == "addon/coredns")
        .map(|p| p.message)
        .collect()
    };
    let bad = said(
        ".:53 {\n  health\n  kubernetes cluster.local\n  hosts /etc/coredns/extra {\n    fallthrough\n  }\n  import /etc/coredns/*.override\n}\n",
    );
    assert!(
        bad.iter()
            .any(|m| m.contains("no `ready`") && !m.contains("`health`")),
        "{bad:?}"
    );
    assert!(
        bad.iter().any(|m| m
            .ends_with("do not have: hosts /etc/coredns/extra, import /etc/coredns/*.override")),
        "{bad:?}"
    );
    let good = ".:53 {\n  health\n  ready\n  kubernetes cluster.local\n  hosts {\n    10.0.0.1 a.test\n  }\n}\n";
    assert!(said(good).is_empty());
}

#[test]
fn an_add_on_names_what_it_stands_for_on_blue() {
    let replaces = |fields: Value, addon: &str| -> String {
        addons(&spec("x"), &small(fields))
            .addons
            .into_iter()
            .find(|a| a.name == addon)
            .expect("the add-on")
            .replaces
    };
    let version = |v: &str| json!({"kubernetesVersion": v});
    assert_eq!(replaces(version("1.19.16"), "coredns"), "kube-dns");
    assert_eq!(replaces(version("1.20.0"), "coredns"), "coredns");
    let told = json!({"kubernetesVersion": "1.21.0", "kubeDNS": {"provider": "KubeDNS"}});
    assert_eq!(replaces(told, "coredns"), "kube-dns");
    let told = json!({"kubernetesVersion": "1.16.0", "kubeDNS": {"provider": "CoreDNS"}});
    assert_eq!(replaces(told, "coredns"), "coredns");
    let none = json!({"kubeProxy": {"enabled": false}, "networking": {"kuberouter": {}}});
    assert_eq!(replaces(none, "kube-proxy"), "kuberouter");
    assert_eq!(
        replaces(json!({"networking": {"kuberouter": {}}}), "kube-proxy"),
        "kube-proxy"
    );
}

#[test]
fn a_file_system_driver_comes_with_its_role_and_takes_the_place_of_the_one_on_blue() {
    let mut s = kops_snapshot(&corpus("minimal-aws.yaml"));
    s.blue.objects = vec![
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "efs"}, "provisioner": "efs.csi.aws.com"}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "efs-csi-controller", "namespace": "kube-system"}, "spec": {"selector": {"matchLabels": {"app": "efs"}}, "template": {"metadata": {"labels": {"app": "efs"}}, "spec": {"containers": [{"name": "c", "image": "efs:1"}]}}}}),
        json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"}, "spec": {"csi": {"driver": "s3.csi.aws.com", "volumeHandle": "x", "volumeAttributes": {"bucketName": "reports"}}}}),
    ];
    let p = plan(&spec("minimal.example.com"), &s);
    let efs = p
        .target
        .addons
        .iter()
        .find(|a| a.name == "aws-efs-csi-driver")
        .expect("the add-on");
    assert_eq!(efs.role.as_deref(), Some("shop-green-efs-csi"));
    let role = p
        .target
        .roles
        .iter()
        .find(|r| r.name == "shop-green-efs-csi")
        .expect("its role");
    assert_eq!(
        role.policies,
        ["arn:aws:iam::aws:policy/service-role/AmazonEFSCSIDriverPolicy"]
    );
    let v = p
        .verdicts
        .all()
        .iter()
        .find(|v| v.object == "deployment/kube-system/efs-csi-controller")
        .expect("a verdict");
    assert_eq!(v.verdict, crate::plan::model::Fate::Skipped);
    assert!(p.findings.iter().any(|f| f.id == "EKS-components"
        && f.object == "addon/aws-mountpoint-s3-csi-driver"
        && f.message.contains("reports")));
    let step = p
        .steps
        .iter()
        .find(|s| s.id == "provision/addon/shop-green/aws-efs-csi-driver")
        .expect("a step");
    assert!(
        step.needs
            .contains(&"provision/role/shop-green-efs-csi".to_string())
    );
    assert_eq!(
        step.params["resource"]["serviceAccountRole"],
        "arn:aws:iam::${account}:role/shop-green-efs-csi"
    );
}
