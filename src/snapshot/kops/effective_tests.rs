use super::*;

fn kops(version: &str, spec: Value) -> Kops {
    Kops {
        cluster: Some(
            json!({"apiVersion": "kops.k8s.io/v1alpha2", "kind": "Cluster", "metadata": {"name": "shop.test"}, "spec": spec}),
        ),
        kops_version: Some(version.into()),
        ..Kops::default()
    }
}

/// kops.md 1.4, table of defaults that changed: each row on either side of its border.
#[test]
fn a_default_is_that_of_the_release_and_never_that_of_today() {
    let empty = |version: &str| kops(version, json!({"kubernetesVersion": "1.19.0"}));
    for (version, wanted) in [("1.35.2", "alwaysAllow"), ("1.36.0", "rbac")] {
        assert_eq!(
            effective(&empty(version)).authorization().value,
            wanted,
            "{version}"
        );
    }
    for (version, wanted) in [("1.18.3", true), ("1.19.0", false)] {
        assert_eq!(
            effective(&empty(version)).iam_legacy().value,
            wanted,
            "{version}"
        );
    }
    for (version, wanted) in [("1.25.4", "kubenet"), ("1.26.0", "cilium")] {
        assert_eq!(
            effective(&empty(version)).networking().value,
            wanted,
            "{version}"
        );
    }
    let group = json!({"spec": {"role": "Node"}});
    for (version, kind, encrypted, iops) in [
        ("1.19.3", "gp2", false, None),
        ("1.20.0", "gp3", true, Some(3000)),
    ] {
        let k = empty(version);
        let root = effective(&k).root_volume(&group);
        assert_eq!(
            (
                root.kind.value.as_str(),
                root.encrypted.value,
                root.iops.map(|i| i.value),
                root.size.value
            ),
            (kind, encrypted, iops, 128),
            "{version}"
        );
    }
    let narrow = |version: &str| kops(version, json!({"nonMasqueradeCIDR": "10.128.0.0/12"}));
    for (version, wanted) in [("1.27.3", "10.128.0.0/15"), ("1.28.0", "100.64.0.0/13")] {
        assert_eq!(
            effective(&narrow(version)).service_range().value,
            wanted,
            "{version}"
        );
    }
    assert_eq!(
        effective(&narrow("1.20.0")).pod_range().value.as_deref(),
        Some("10.136.0.0/13"),
        "the upper half"
    );
    assert_eq!(
        effective(&empty("1.22.0")).service_range().value,
        "100.64.0.0/13"
    );
    assert_eq!(
        effective(&empty("1.22.0")).pod_range().value.as_deref(),
        Some("100.96.0.0/11")
    );
    for (kubernetes, runtime) in [("1.19.16", "docker"), ("1.20.0", "containerd")] {
        let k = kops("1.22.0", json!({"kubernetesVersion": kubernetes}));
        assert_eq!(
            effective(&k).container_runtime().value,
            runtime,
            "{kubernetes}"
        );
    }
    for (kubernetes, tokens) in [("1.26.9", "optional"), ("1.27.0", "required")] {
        let k = kops("1.28.0", json!({"kubernetesVersion": kubernetes}));
        let imds = effective(&k).imds(&group);
        assert_eq!(
            (imds.tokens.value.as_str(), imds.hop_limit.value),
            (tokens, 1),
            "{kubernetes}"
        );
    }
}

#[test]
fn what_is_written_wins_over_every_default_and_says_that_it_was_written() {
    let k = kops(
        "1.16.0",
        json!({
            "kubernetesVersion": "v1.16.0",
            "authorization": {"rbac": {}},
            "iam": {"allowContainerRegistry": true},
            "networking": {"amazonvpc": {}},
            "containerRuntime": "containerd",
            "api": {"loadBalancer": {"type": "Internal"}},
            "topology": {"masters": "private", "nodes": "private", "dns": {"type": "Private"}},
            "serviceClusterIPRange": "100.70.0.0/16",
        }),
    );
    let e = effective(&k);
    assert_eq!(
        e.authorization(),
        Known {
            value: "rbac".into(),
            source: Source::Spec
        }
    );
    assert!(!e.iam_legacy().value, "a block without the word is strict");
    assert_eq!(e.networking().value, "amazonvpc");
    assert_eq!(e.pod_range().value, None, "pods have addresses of the VPC");
    assert_eq!(e.container_runtime().value, "containerd");
    assert_eq!(e.dns().value, "Private");
    assert_eq!(e.service_range().value, "100.70.0.0/16");
    assert_eq!(
        e.api().value,
        Api::LoadBalancer {
            scheme: "Internal".into(),
            class: "Classic".into()
        }
    );
    let group = json!({"spec": {"role": "Node", "minSize": 0, "rootVolumeSize": 50, "rootVolumeType": "io1", "rootVolumeEncryption": true, "instanceMetadata": {"httpTokens": "required", "httpPutResponseHopLimit": 3}}});
    let root = e.root_volume(&group);
    assert_eq!(
        (
            root.size.value,
            root.kind.value.as_str(),
            root.encrypted.value
        ),
        (50, "io1", true)
    );
    assert_eq!(root.iops, None, "no default of kops for io1 is known");
    assert_eq!(e.imds(&group).hop_limit.value, 3);
    let (min, max) = e.sizes(&group);
    assert_eq!(
        (min.value, min.is_default(), max.value, max.is_default()),
        (0, false, 2, true)
    );
}

#[test]
fn a_gossip_name_is_gossip_unless_dns_is_none() {
    let mut k = kops("1.22.0", json!({"topology": {"dns": {"type": "Public"}}}));
    k.cluster.as_mut().expect("cluster")["metadata"]["name"] = json!("shop.k8s.local");
    assert_eq!(
        effective(&k).dns(),
        Known {
            value: "Gossip".into(),
            source: Source::Spec
        },
        "told by the name that somebody wrote, so it is no default"
    );
    k.cluster.as_mut().expect("cluster")["spec"]["topology"]["dns"]["type"] = json!("None");
    assert_eq!(
        effective(&k).dns(),
        Known {
            value: "None".into(),
            source: Source::Spec
        }
    );
}

/// The guess is the lowest release it can be, the border lies above it: both values are named.
#[test]
fn a_guess_that_lies_below_a_border_says_both_sides_of_it() {
    let guessed = |kubernetes: &str, known: bool| {
        let mut k = kops(
            kubernetes,
            json!({"kubernetesVersion": kubernetes, "nonMasqueradeCIDR": "10.128.0.0/12"}),
        );
        if !known {
            k.kops_version = None;
        }
        k
    };
    let why = |k: Known<String>| match k.source {
        Source::Default(why) => (k.value, why),
        other => panic!("{other:?}"),
    };
    for (kubernetes, known, both) in [
        ("1.29.0", false, false),
        ("1.30.0", false, true),
        ("1.35.0", false, true),
        ("1.36.0", false, false),
        ("1.35.0", true, false),
    ] {
        let k = guessed(kubernetes, known);
        let (_, why) = why(effective(&k).authorization());
        assert_eq!(
            why.contains(
                "alwaysAllow up to kops 1.35, rbac from 1.36: which kops wrote it is not known"
            ),
            both,
            "{kubernetes}: {why}"
        );
    }
    for (kubernetes, known, value, both) in [
        ("1.21.0", false, "10.128.0.0/15", false),
        ("1.22.0", false, "10.128.0.0/15", true),
        ("1.27.0", false, "10.128.0.0/15", true),
        ("1.28.0", false, "100.64.0.0/13", false),
        ("1.27.0", true, "10.128.0.0/15", false),
    ] {
        let k = guessed(kubernetes, known);
        let (range, why) = why(effective(&k).service_range());
        assert_eq!(range, value, "{kubernetes}");
        assert_eq!(
            why.contains("10.128.0.0/15") && why.contains("100.64.0.0/13"),
            both,
            "{kubernetes}: {why}"
        );
    }
}

#[test]
fn a_group_of_karpenter_has_no_sizes_by_default_and_a_balancer_without_a_class_is_classic() {
    let mut k = kops(
        "1.28.0",
        json!({"api": {"loadBalancer": {"type": "Public"}}}),
    );
    k.instance_groups = vec![
        json!({"metadata": {"name": "asg"}, "spec": {"role": "Node"}}),
        json!({"metadata": {"name": "kar"}, "spec": {"role": "Node", "manager": "Karpenter"}}),
        json!({"metadata": {"name": "kar-said"}, "spec": {"role": "Node", "manager": "Karpenter", "minSize": 1}}),
    ];
    let sizes = |k: &Kops| -> Vec<String> {
        effective(k)
            .settings()
            .into_iter()
            .filter(|s| s.path.ends_with("Size") && !s.path.ends_with("VolumeSize"))
            .map(|s| format!("{} {}", s.document, s.path))
            .collect()
    };
    assert_eq!(
        sizes(&k),
        [
            "instancegroup/asg spec.maxSize",
            "instancegroup/asg spec.minSize",
            "instancegroup/kar-said spec.minSize"
        ]
    );
    let class = |k: &Kops| {
        effective(k)
            .settings()
            .into_iter()
            .find(|s| s.path == "spec.api.loadBalancer.class")
            .map(|s| s.value)
    };
    assert_eq!(class(&k), Some(json!("Classic")));
    let written = kops(
        "1.28.0",
        json!({"api": {"loadBalancer": {"type": "Public", "class": "Network"}}}),
    );
    assert_eq!(class(&written), None);
    let record = kops("1.28.0", json!({"api": {"dns": {}}}));
    assert_eq!(class(&record), None);
}

#[test]
fn an_omitted_api_block_is_read_from_where_the_masters_stand() {
    let subnets = json!([{"name": "a", "type": "Private"}, {"name": "b", "type": "Public"}]);
    let mut k = kops("1.22.0", json!({"subnets": subnets}));
    k.instance_groups =
        vec![json!({"metadata": {"name": "m"}, "spec": {"role": "Master", "subnets": ["b"]}})];
    assert_eq!(effective(&k).api().value, Api::Dns);
    k.instance_groups[0]["spec"]["subnets"] = json!(["a"]);
    assert!(matches!(
        effective(&k).api().value,
        Api::LoadBalancer { .. }
    ));
}

/// The completed spec that kops 1.25 wrote holds what its own defaults filled in: they must be those that this room would say.
#[test]
fn the_defaults_agree_with_a_completed_spec_that_kops_wrote() {
    let text =
        include_str!("../../../tests/corpus/kops/privatecalico-completed-spec-kops1.25.yaml");
    let full = crate::yaml::manifests(text, "c").remove(0).expect("read").0;
    let told = Kops {
        cluster: Some(full.clone()),
        completed: Some(full.clone()),
        kops_version: Some("1.25.0".into()),
        ..Kops::default()
    };
    let mut bare = told.clone();
    bare.completed = None;
    let spec = bare.cluster.as_mut().expect("cluster")["spec"]
        .as_object_mut()
        .expect("spec");
    for written in [
        "authorization",
        "iam",
        "containerRuntime",
        "serviceClusterIPRange",
        "podCIDR",
        "kubeControllerManager",
        "nonMasqueradeCIDR",
    ] {
        spec.remove(written);
    }
    let (told, bare) = (effective(&told), effective(&bare));
    assert_eq!(told.authorization().value, bare.authorization().value);
    assert_eq!(told.iam_legacy().value, bare.iam_legacy().value);
    assert_eq!(
        told.container_runtime().value,
        bare.container_runtime().value
    );
    assert_eq!(told.service_range().value, bare.service_range().value);
    assert_eq!(told.pod_range().value, bare.pod_range().value);
    assert_eq!(told.service_range().source, Source::Completed);
    assert!(bare.service_range().is_default());
}
