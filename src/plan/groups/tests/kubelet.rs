//! kubelet settings (kops.md 1.5, eks.md 1.7) and registry mirrors.

use super::{Company, finding, silent};
use crate::plan::model::Severity;
use serde_json::{Value, json};

/// The NodeConfig that stands in the user data.
fn node_config(text: &str) -> Value {
    let part = text
        .split("Content-Type: application/node.eks.aws\n")
        .nth(1)
        .and_then(|p| p.split("\n--crossfade-").next())
        .unwrap_or_else(|| panic!("no node configuration in {text}"));
    serde_saphyr::from_str(part.trim_start_matches(['\n', '-'])).expect("YAML")
}

#[test]
fn the_groups_kubelet_is_merged_over_the_clusters_in_the_words_of_nodeadm() {
    let mut c = Company::new(json!({"machineType": "m5.large", "kubelet":
        {"kubeReserved": {"memory": "1G"}, "imageGCHighThresholdPercent": 70}}));
    c.cluster()["kubelet"] = json!({
        "anonymousAuth": false, "cgroupDriver": "systemd", "kubeReserved": {"cpu": "500m", "memory": "2G"},
        "evictionHard": "memory.available<200Mi,nodefs.available<10%", "imageGCHighThresholdPercent": 80,
        "allowedUnsafeSysctls": ["net.core.somaxconn"], "serializeImagePulls": false
    });
    let text = c.one().launch_template.user_data.expect("user data");
    assert!(text.starts_with("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\""));
    assert!(text.ends_with("--\n"));
    assert_eq!(
        node_config(&text),
        json!({"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": {"kubelet": {"config": {
            "allowedUnsafeSysctls": ["net.core.somaxconn"],
            "evictionHard": {"memory.available": "200Mi", "nodefs.available": "10%"},
            "imageGCHighThresholdPercent": 70,
            "kubeReserved": {"cpu": "500m", "memory": "1G"},
            "serializeImagePulls": false
        }}}})
    );
    silent(&c.plan(), "KOPS-ig-kubelet");
}

#[test]
fn nothing_to_say_is_no_user_data() {
    let mut c = Company::new(json!({"machineType": "m5.large"}));
    c.cluster()["kubelet"] = json!({"anonymousAuth": false});
    assert_eq!(c.one().launch_template.user_data, None);
}

#[test]
fn fewer_pods_than_the_type_allows_are_kept_with_memory_reserved_for_them() {
    let c = Company::new(json!({"machineType": "m5.large", "kubelet": {"maxPods": 20}}));
    let g = c.one();
    assert_eq!(g.max_pods, Some(20));
    // 11 MiB a pod and 255 MiB: kubelet does not count that anew by itself.
    assert_eq!(
        node_config(&g.launch_template.user_data.expect("user data"))["spec"]["kubelet"]["config"],
        json!({"kubeReserved": {"memory": "475Mi"}, "maxPods": 20})
    );
}

#[test]
fn more_pods_than_the_cni_has_addresses_for_are_not_promised() {
    let mut c = Company::new(json!({"machineType": "m5.large", "kubelet": {"maxPods": 110}}));
    let g = c.one();
    assert_eq!(g.max_pods, Some(29), "3 x (10 - 1) + 2");
    assert_eq!(g.launch_template.user_data, None);
    assert_eq!(
        finding(&c.plan(), "KOPS-ig-maxpods").severity,
        Severity::Warning
    );
    c.spec.green.network.prefix_delegation = Some(true);
    assert_eq!(c.one().max_pods, Some(110));
    silent(&c.plan(), "KOPS-ig-maxpods");
}

#[test]
fn more_pods_than_the_type_has_addresses_for_reach_no_kubelet_whatever_the_type() {
    // eks.md 2.1: 4 x (15 - 1) + 2, 3 x (10 - 1) + 2, 4 x (15 - 1) + 2; blue ran an overlay with 110 on each.
    for (t, most) in [("m6g.xlarge", 58), ("m5a.large", 29), ("i3.2xlarge", 58)] {
        let c = Company::new(json!({"machineType": t, "kubelet": {"maxPods": 110}}));
        let g = c.one();
        assert_eq!(g.max_pods, Some(most), "{t}");
        assert_eq!(g.launch_template.user_data, None, "{t}");
        let f = finding(&c.plan(), "KOPS-ig-maxpods");
        assert!(f.message.contains(&format!("{most} on {t}")), "{f:?}");
    }
    // The smallest type gives the limit, and the message names it.
    let c = Company::new(json!({"kubelet": {"maxPods": 50},
        "mixedInstancesPolicy": {"instances": ["m5.2xlarge", "m5a.large"]}}));
    let f = finding(&c.plan(), "KOPS-ig-maxpods");
    assert!(f.message.contains("29 on m5a.large"), "{f:?}");
}

#[test]
fn prefixes_bring_pods_to_nitro_machines_only() {
    let mut c = Company::new(json!({"machineType": "m4.large", "kubelet": {"maxPods": 110}}));
    c.spec.green.network.prefix_delegation = Some(true);
    assert_eq!(c.one().max_pods, Some(20), "2 x (10 - 1) + 2");
    let f = finding(&c.plan(), "KOPS-ig-maxpods");
    assert!(!f.remedy.contains("prefixDelegation"), "{f:?}");
}

#[test]
fn a_type_that_nobody_knows_gets_no_number_that_it_may_not_have_addresses_for() {
    let c = Company::new(json!({"machineType": "z9.large", "kubelet": {"maxPods": 58}}));
    let g = c.one();
    assert_eq!(g.max_pods, None);
    assert_eq!(g.launch_template.user_data, None);
    let f = finding(&c.plan(), "KOPS-ig-maxpods");
    assert_eq!(f.severity, Severity::NotChecked);
    assert!(
        f.message.contains("limit of z9.large is not known"),
        "{f:?}"
    );
    let c = Company::new(json!({"machineType": "z9.large", "kubelet": {"maxPods": 12}}));
    assert_eq!(c.one().max_pods, Some(12));
    silent(&c.plan(), "KOPS-ig-maxpods");
}

#[test]
fn the_pods_of_a_group_are_those_of_its_smallest_type_and_never_above_ekss_cap() {
    let of = |types: &[&str]| {
        Company::new(json!({"mixedInstancesPolicy": {"instances": types}}))
            .one()
            .max_pods
    };
    assert_eq!(of(&["m5.xlarge", "m5.large"]), Some(29));
    assert_eq!(of(&["m5.4xlarge"]), Some(110), "234 by addresses");
    assert_eq!(of(&["t3.medium"]), Some(17));
    assert_eq!(of(&["m5.large", "z9.large"]), None, "not known is not said");
}

#[test]
fn what_would_keep_greens_kubelet_from_starting_is_left_out_and_said() {
    let c = Company::new(json!({"kubelet": {
        "featureGates": {"DynamicKubeletConfig": "true"}, "evictionHard": "odd.signal<5",
        "evictionSoft": "memory.available<300Mi", "readOnlyPort": 10255, "podPidsLimit": 1024}}));
    let g = c.one();
    assert_eq!(
        node_config(&g.launch_template.user_data.expect("user data"))["spec"]["kubelet"]["config"],
        json!({"podPidsLimit": 1024})
    );
    let said: String = c
        .plan()
        .findings
        .iter()
        .filter(|f| f.id == "KOPS-ig-kubelet")
        .map(|f| f.message.clone())
        .collect();
    for word in [
        "featureGates",
        "readOnlyPort",
        "evictionHard",
        "evictionSoft",
    ] {
        assert!(said.contains(word), "{word} in {said}");
    }
}

#[test]
fn mirrors_become_files_that_containerd_of_al2023_reads() {
    let mut c = Company::new(json!({"machineType": "m5.large"}));
    c.cluster()["containerd"] = json!({"version": "1.6.18", "registryMirrors":
        {"docker.io": ["https://mirror.shop.test"], "*": ["http://fallback.shop.test:5000"]}});
    let text = c.one().launch_template.user_data.expect("user data");
    for line in [
        "mkdir -p '/etc/containerd/certs.d/docker.io'",
        "cat > '/etc/containerd/certs.d/_default/hosts.toml' <<'MIRRORS'",
        "[host.\"https://mirror.shop.test\"]",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    assert!(
        !text.contains("registry.mirrors"),
        "that key beside config_path keeps containerd from starting"
    );
    // A password in a URL is not for a plan.
    c.cluster()["containerd"] =
        json!({"registryMirrors": {"docker.io": ["https://me:hunter2@mirror.shop.test"]}});
    let p = c.plan();
    assert_eq!(p.target.node_groups[0].launch_template.user_data, None);
    finding(&p, "KOPS-ig-containerd");
    let said: String = p.findings.iter().map(|f| f.message.clone()).collect();
    assert!(!said.contains("hunter2"));
}

#[test]
fn bottlerocket_gets_settings_instead_of_mime_parts() {
    let mut c = Company::new(json!({"machineType": "m5.large", "kubelet":
        {"maxPods": 20, "evictionHard": "memory.available<200Mi", "kubeReserved": {"memory": "1Gi"}}}));
    c.wish(json!({"amiType": "BOTTLEROCKET_x86_64"}));
    assert_eq!(
        c.one().launch_template.user_data.as_deref(),
        Some(
            "[settings.kubernetes]\nmax-pods = 20\n\n[settings.kubernetes.kube-reserved]\n\"memory\" = \"1Gi\"\n\n[settings.kubernetes.eviction-hard]\n\"memory.available\" = \"200Mi\"\n"
        )
    );
}
