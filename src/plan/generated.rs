//! Objects that only green has, in order of creation.

use super::dns::Names;
use super::iam::House;
use crate::edns::{Config, Version};
use crate::rewrite::Context;
use crate::snapshot::roll::Found;
use crate::spec::model::{Identity, Spec};
use serde_json::{Value, json};

/// Name of every object of green's ExternalDNS.
pub(super) const EXTERNAL_DNS: &str = "external-dns";

/// Namespace of green's ExternalDNS: as declared, else that of blue's.
pub(super) fn namespace(spec: &Spec, names: &Names) -> String {
    spec.dns.external_dns.namespace.clone().unwrap_or_else(|| {
        names
            .instances
            .first()
            .and_then(|(id, _)| id.split('/').nth(1))
            .unwrap_or(EXTERNAL_DNS)
            .to_string()
    })
}

/// Owner id of green.
pub(super) fn owner(spec: &Spec) -> String {
    spec.dns
        .external_dns
        .owner_id
        .clone()
        .unwrap_or_else(|| spec.green.name.clone())
}

/// Name of the role that green's ExternalDNS assumes.
pub(super) fn role(spec: &Spec) -> String {
    super::kops::role_name(&spec.green.name, EXTERNAL_DNS)
}

/// The objects.
pub(super) fn objects(spec: &Spec, snapshot: &Found, names: &Names, house: &House) -> Vec<Value> {
    let mut out = vec![json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "gp3", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "ebs.csi.aws.com",
        "parameters": {"type": "gp3", "encrypted": "true"},
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": true
    })];
    if names.instances.is_empty() {
        return out;
    }
    let ns = namespace(spec, names);
    let on_blue = snapshot.blue.find("Namespace", None, &ns).is_some();
    if !on_blue && !matches!(ns.as_str(), "kube-system" | "default") {
        out.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ns}}));
    }
    let labels = json!({"app.kubernetes.io/name": EXTERNAL_DNS, "app.kubernetes.io/managed-by": "crossfade"});
    let account = spec
        .aws
        .account
        .clone()
        .unwrap_or_else(|| "${account}".into());
    let region = spec.aws.region.clone().unwrap_or_default();
    let arn = house.arn(&region, &account, &role(spec));
    let mut service_account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": EXTERNAL_DNS, "namespace": ns, "labels": labels,
            "annotations": {"eks.amazonaws.com/role-arn": arn}}
    });
    let by_pod_identity = spec
        .green
        .identity
        .of(&format!("{ns}/{EXTERNAL_DNS}"), true);
    if by_pod_identity == Identity::PodIdentity
        && let Some(metadata) = service_account["metadata"].as_object_mut()
    {
        // The annotation would win over the association (eks.md 3).
        metadata.shift_remove("annotations");
    }
    out.push(service_account);
    out.push(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": EXTERNAL_DNS, "labels": labels},
        "rules": [
            {"apiGroups": [""], "resources": ["services", "endpoints", "pods", "nodes"], "verbs": ["get", "watch", "list"]},
            {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["get", "watch", "list"]},
            {"apiGroups": ["networking.k8s.io"], "resources": ["ingresses"], "verbs": ["get", "watch", "list"]}
        ]
    }));
    out.push(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "external-dns-viewer", "labels": labels},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": EXTERNAL_DNS},
        "subjects": [{"kind": "ServiceAccount", "name": EXTERNAL_DNS, "namespace": ns}]
    }));
    out.push(json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": EXTERNAL_DNS, "namespace": ns, "labels": labels},
        "spec": {
            // 0 until cutover: it must not write a record before the names are handed over (externaldns.md rule 9).
            "replicas": 0,
            // Never two writers (trap 21).
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": {"app.kubernetes.io/name": EXTERNAL_DNS}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "serviceAccountName": EXTERNAL_DNS,
                    "securityContext": {"fsGroup": 65534},
                    "containers": [{
                        "name": EXTERNAL_DNS,
                        "image": spec.dns.external_dns.image,
                        "args": args(spec, names),
                        "env": [{"name": "AWS_REGION", "value": region}]
                    }]
                }
            }
        }
    }));
    out
}

/// externaldns.md rule 9: upsert-only, explicit annotation prefix, blue's affix and wildcard, own zones, AAAA only where blue has them, low TTLs kept.
pub(super) fn args(spec: &Spec, names: &Names) -> Vec<String> {
    let version = Version::of_image(&spec.dns.external_dns.image).unwrap_or(Version::new(0, 21, 0));
    let blue = &names.instances[0].1;
    let mut sources: Vec<String> = names
        .instances
        .iter()
        .flat_map(|(_, c)| c.sources.clone())
        .collect();
    sources.sort();
    sources.dedup();
    let mut args: Vec<String> = sources.iter().map(|s| format!("--source={s}")).collect();
    args.push("--provider=aws".into());
    args.push("--policy=upsert-only".into());
    args.push("--registry=txt".into());
    args.push(format!("--txt-owner-id={}", owner(spec)));
    for (flag, value) in [
        ("txt-prefix", &blue.prefix),
        ("txt-suffix", &blue.suffix),
        ("txt-wildcard-replacement", &blue.wildcard),
    ] {
        if !value.is_empty() {
            args.push(format!("--{flag}={value}"));
        }
    }
    let mut domains: Vec<String> = names.zones.keys().cloned().collect();
    if domains.is_empty() {
        domains = blue.domain_filter.clone();
    }
    args.extend(domains.iter().map(|d| format!("--domain-filter={d}")));
    if !blue.zone_type.is_empty() {
        args.push(format!("--aws-zone-type={}", blue.zone_type));
    }
    // What blue's instance does not look at, green's must not publish. Filters of several instances do not add up to one: DNS-03 tells.
    if names.instances.len() == 1 {
        args.extend(filters(blue));
    }
    args.push(format!("--interval={}s", spec.dns.external_dns.interval));
    if version.at_least(20, 0) {
        args.push(format!("--annotation-prefix={}", annotation_prefix(names)));
    }
    // AAAA only where blue keeps them: since 0.16 every alias brings one (externaldns.md trap 13).
    if !names.ipv6 && version.at_least(14, 0) {
        args.push("--exclude-record-types=AAAA".into());
    }
    // A TTL that was lowered in the zone has no annotation: green's next UPSERT would write 300 (trap 10, rule 18). Taken out at finalize.
    if version.at_least(21, 0)
        && names
            .names
            .iter()
            .any(|n| n.ttl.is_some() && !n.ttl_annotation)
    {
        args.push(format!("--min-ttl={}s", spec.dns.low_ttl));
    }
    args.push("--managed-record-types=A".into());
    if names.ipv6 {
        args.push("--managed-record-types=AAAA".into());
    }
    args.push("--managed-record-types=CNAME".into());
    args.push("--log-format=json".into());
    args
}

/// Filters of an instance on its sources, and what decides the type of its records (externaldns.md 2, 4).
fn filters(c: &Config) -> Vec<String> {
    let mut args = vec![];
    for (flag, value) in [
        ("namespace", &c.namespace),
        ("annotation-filter", &c.annotation_filter),
        ("label-filter", &c.label_filter),
    ] {
        args.extend(value.iter().map(|v| format!("--{flag}={v}")));
    }
    for (flag, values) in [
        ("ingress-class", &c.ingress_classes),
        ("service-type-filter", &c.service_types),
        ("exclude-domains", &c.exclude_domains),
    ] {
        args.extend(values.iter().map(|v| format!("--{flag}={v}")));
    }
    for (flag, on) in [
        ("publish-internal-services", c.publish_internal),
        ("ignore-hostname-annotation", c.ignore_hostname),
        ("ignore-ingress-tls-spec", c.ignore_tls),
        ("ignore-ingress-rules-spec", c.ignore_rules),
        ("aws-prefer-cname", c.prefer_cname),
        ("no-aws-evaluate-target-health", !c.evaluate_target_health),
    ] {
        if on {
            args.push(format!("--{flag}"));
        }
    }
    args
}

/// Prefix that green reads: always the one that blue's objects carry.
pub(super) fn annotation_prefix(names: &Names) -> String {
    names.instances.first().map_or_else(
        || Context::default().green_prefix,
        |(_, c)| c.annotation_prefix.clone(),
    )
}
