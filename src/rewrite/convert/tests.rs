//! The data and the registry, row by row, and conversions that need code.

use super::super::removed::{Table, features, removals, table};
use super::super::rules;
use super::super::work::Work;
use super::super::{Context, Rewritten, rewrite};
use super::{by_name, with};
use crate::checks::ids;
use crate::object::ObjectId;
use crate::plan::model::{Fate, Severity};
use serde_json::{Value, json};

fn cx(minor: u32) -> Context {
    let mut cx = Context::default();
    cx.green_minor = minor;
    cx
}

fn by_table(object: &Value, table: &Table, minor: u32) -> Rewritten {
    let cx = cx(minor);
    let mut w = Work::new(object, ObjectId::of(object).expect("an object"), &cx).whole();
    with(&mut w, table);
    w.finish()
}

/// The target on 1.36.
fn target(object: Value) -> Value {
    let done = rewrite(&object, &cx(36));
    done.target
        .unwrap_or_else(|| panic!("{object} has a target; {:?}", done.findings))
}

fn object(api: &str, kind: &str, rest: Value) -> Value {
    let mut o =
        json!({"apiVersion": api, "kind": kind, "metadata": {"name": "x", "namespace": "n"}});
    for (k, v) in rest.as_object().into_iter().flatten() {
        o[k] = v.clone();
    }
    o
}

#[test]
fn each_stored_kind_of_the_data_is_converted_asked_about_or_refused_by_what_its_row_says() {
    let mut outcomes = std::collections::BTreeMap::new();
    for r in removals() {
        let row = format!("{}/{} {}", r.group, r.version, r.kind);
        assert!(
            by_name(r.convert()).is_some(),
            "{row} names {}",
            r.convert()
        );
        let minor = r.minor().unwrap_or_else(|| panic!("{row} has a minor"));
        let api = match r.group() {
            "" => r.version.clone(),
            g => format!("{g}/{}", r.version),
        };
        // Enough of a body for every kind: what is missing in one is ignored by the others.
        let body = json!({"spec": {"selector": {"matchLabels": {"a": "b"}}, "names": {"kind": "K"}, "version": "v1"}});
        let o = object(&api, &r.kind, body);
        let done = by_table(&o, table(), minor);
        let before = by_table(&o, table(), minor - 1);
        if r.stored == Some(false) {
            assert_eq!(done.fate, Fate::Skipped, "{row} is no object");
            continue;
        }
        *outcomes.entry(format!("{:?}", done.fate)).or_insert(0) += 1;
        match done.fate {
            Fate::Changed | Fate::Held => {
                let t = done.target.as_ref().expect("a target");
                assert_eq!(t["apiVersion"].as_str(), r.successor(), "{row}");
                assert!(
                    done.findings.iter().any(|f| f.id == "API-01"),
                    "{row} is said"
                );
            }
            Fate::Refused => {
                let f = done
                    .findings
                    .first()
                    .unwrap_or_else(|| panic!("{row} is told"));
                assert!(!f.message.is_empty() && !f.remedy.is_empty(), "{row}");
                let of_rule_53 = r.kind == "PodSecurityPolicy";
                assert_eq!(f.severity == Severity::Blocker, !of_rule_53, "{row}");
            }
            Fate::Skipped => assert_eq!(r.convert(), "never", "{row}"),
            Fate::Copied => panic!("{row} would be written in a version that green does not serve"),
        }
        // One minor earlier the version is served still, and the object keeps it.
        if let Some(t) = &before.target {
            assert_eq!(t["apiVersion"], api, "{row} one minor earlier");
        }
    }
    assert!(outcomes["Changed"] > 50 && outcomes["Skipped"] > 20 && outcomes["Refused"] > 10);
}

#[test]
fn a_release_that_nobody_knows_yet_is_rows_of_data_and_no_code() {
    let table = Table::parse(
        r#"
api_removals:
- group: widgets.k8s.io
  version: v1beta1
  kind: Widget
  removed: "1.40"
  replacement: {api: widgets.k8s.io/v1 Widget, since: "1.38"}
  conversion: mechanical-with-defaults
  moves: [{from: /spec/flavour, to: /spec/taste/name}]
  drop: [/spec/legacy]
  fill: [{at: /spec/mode, value: Strict, unless: /spec/loose}]
  defaults: [{at: /spec/retries, value: 3}]
- group: widgets.k8s.io
  version: v1beta1
  kind: Gadget
  removed: "1.40"
  replacement: null
  conversion: none
  ask: buy another one
third_party_apis: []
removed_features: []
"#,
    )
    .expect("a table");
    let widget = object(
        "widgets.k8s.io/v1beta1",
        "Widget",
        json!({"spec": {"flavour": "sweet", "legacy": true, "empty": {}}}),
    );
    let done = by_table(&widget, &table, 40);
    assert_eq!(
        done.target
            .map(|t| (t["apiVersion"].clone(), t["spec"].clone())),
        Some((
            json!("widgets.k8s.io/v1"),
            json!({"taste": {"name": "sweet"}, "empty": {}, "mode": "Strict", "retries": 3})
        ))
    );
    assert!(done.findings.iter().any(|f| f.id == "API-04"
        && f.severity == Severity::Warning
        && f.message.contains("retries = 3")));
    assert_eq!(
        by_table(&widget, &table, 39).target,
        Some(widget),
        "1.39 serves it"
    );
    let gadget = object("widgets.k8s.io/v1beta1", "Gadget", json!({}));
    let done = by_table(&gadget, &table, 41);
    assert_eq!(done.fate, Fate::Refused);
    assert!(done.findings[0].remedy.contains("buy another one"));
}

#[test]
fn a_row_that_names_a_conversion_of_a_later_crossfade_refuses_its_objects() {
    let table = Table::parse(
        "api_removals:\n- {group: g.k8s.io, version: v1, kind: K, removed: '1.30', conversion: mechanical, convert: by-magic, replacement: {api: g.k8s.io/v2 K}}\nthird_party_apis: []\nremoved_features: []\n",
    )
    .expect("a table");
    let done = by_table(&object("g.k8s.io/v1", "K", json!({})), &table, 36);
    assert_eq!(done.fate, Fate::Refused);
}

#[test]
fn each_feature_of_the_data_is_answered_by_a_check_or_a_rule_that_exists() {
    for f in features() {
        let known = f.answered == "itself"
            || ids::is_known(&f.answered)
            || rules::by_id(&f.answered).is_some();
        assert!(known, "{}: {}", f.id, f.answered);
        if f.dead.is_some() {
            assert!(f.minor().is_some(), "{} says since when", f.id);
        }
    }
    for t in &table().third_party_apis {
        assert!(by_name(&t.convert).is_some(), "{}: {}", t.group, t.convert);
    }
}

#[test]
fn annotations_that_became_fields_become_them_unless_the_field_is_set() {
    let volume = |spec: Value| {
        let mut o = object("v1", "PersistentVolume", json!({"spec": spec}));
        o["metadata"]["annotations"] =
            json!({"volume.beta.kubernetes.io/mount-options": "noatime, nodiratime"});
        target(o)
    };
    let v = volume(json!({}));
    assert_eq!(v["spec"]["mountOptions"], json!(["noatime", "nodiratime"]));
    assert!(
        v.pointer("/metadata/annotations/volume.beta.kubernetes.io~1mount-options")
            .is_none()
    );
    assert_eq!(
        volume(json!({"mountOptions": ["ro"]}))["spec"]["mountOptions"],
        json!(["ro"])
    );
    let mut s = object("v1", "Service", json!({"spec": {"type": "ClusterIP"}}));
    s["metadata"]["annotations"] = json!({"service.kubernetes.io/topology-aware-hints": "auto"});
    assert_eq!(
        target(s)["metadata"]["annotations"],
        json!({"service.kubernetes.io/topology-mode": "auto"})
    );
}

#[test]
fn metrics_of_a_v2beta1_autoscaler_get_their_targets_and_names_in_v2s_shape() {
    let t = target(object(
        "autoscaling/v2beta1",
        "HorizontalPodAutoscaler",
        json!({"spec": {"scaleTargetRef": {"apiVersion": "apps/v1beta2", "kind": "Deployment", "name": "web"}, "metrics": [
            {"type": "Resource", "resource": {"name": "cpu", "targetAverageUtilization": 60}},
            {"type": "Resource", "resource": {"name": "memory", "targetAverageValue": "1Gi"}},
            {"type": "Pods", "pods": {"metricName": "rps", "selector": {"matchLabels": {"a": "b"}}, "targetAverageValue": "10"}},
            {"type": "Object", "object": {"metricName": "hits", "target": {"apiVersion": "extensions/v1beta1", "kind": "Ingress", "name": "main"}, "targetValue": "2k"}},
            {"type": "External", "external": {"metricName": "queue", "metricSelector": {"matchLabels": {"q": "x"}}, "targetAverageValue": "30"}},
            {"type": "External", "external": {"metricName": "lag", "targetValue": "100"}}
        ]}}),
    ));
    assert_eq!(t["apiVersion"], "autoscaling/v2");
    assert_eq!(t["spec"]["scaleTargetRef"]["apiVersion"], "apps/v1");
    assert_eq!(
        t["spec"]["metrics"],
        json!([
            {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}},
            {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}},
            {"type": "Pods", "pods": {"metric": {"name": "rps", "selector": {"matchLabels": {"a": "b"}}}, "target": {"type": "AverageValue", "averageValue": "10"}}},
            {"type": "Object", "object": {"metric": {"name": "hits"}, "describedObject": {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "main"}, "target": {"type": "Value", "value": "2k"}}},
            {"type": "External", "external": {"metric": {"name": "queue", "selector": {"matchLabels": {"q": "x"}}}, "target": {"type": "AverageValue", "averageValue": "30"}}},
            {"type": "External", "external": {"metric": {"name": "lag"}, "target": {"type": "Value", "value": "100"}}}
        ])
    );
}

#[test]
fn topology_of_old_endpoint_slices_becomes_a_node_name_and_a_zone() {
    let t = target(object(
        "discovery.k8s.io/v1beta1",
        "EndpointSlice",
        json!({"addressType": "IPv4", "endpoints": [{"addresses": ["198.51.100.7"],
            "topology": {"kubernetes.io/hostname": "n1", "topology.kubernetes.io/zone": "eu-west-1a", "topology.kubernetes.io/region": "eu-west-1"}}]}),
    ));
    assert_eq!(t["apiVersion"], "discovery.k8s.io/v1");
    assert_eq!(
        t["endpoints"],
        json!([{"addresses": ["198.51.100.7"], "nodeName": "n1", "zone": "eu-west-1a"}])
    );
}

#[test]
fn shares_of_a_priority_level_get_their_new_name_and_an_old_zero_stays_thirty() {
    let level = |version: &str, limited: Value, annotations: Value| {
        let mut o = object(
            &format!("flowcontrol.apiserver.k8s.io/{version}"),
            "PriorityLevelConfiguration",
            json!({"spec": {"type": "Limited", "limited": limited}}),
        );
        o["metadata"] = json!({"name": "batch", "annotations": annotations});
        target(o)["spec"]["limited"].clone()
    };
    assert_eq!(
        level(
            "v1beta1",
            json!({"assuredConcurrencyShares": 20}),
            json!({"a": "b"})
        ),
        json!({"nominalConcurrencyShares": 20})
    );
    assert_eq!(
        level(
            "v1beta3",
            json!({"nominalConcurrencyShares": 0}),
            json!({"a": "b"})
        ),
        json!({"nominalConcurrencyShares": 30})
    );
    assert_eq!(
        level(
            "v1beta3",
            json!({"nominalConcurrencyShares": 0}),
            json!({"flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares": ""})
        ),
        json!({"nominalConcurrencyShares": 0})
    );
}

#[test]
fn a_runtime_class_of_the_first_alpha_loses_its_spec_and_keeps_what_stood_in_it() {
    let mut o = object(
        "node.k8s.io/v1alpha1",
        "RuntimeClass",
        json!({"spec": {"runtimeHandler": "gvisor", "overhead": {"podFixed": {"cpu": "250m"}}}}),
    );
    o["metadata"] = json!({"name": "sandboxed"});
    let done = rewrite(&o, &cx(36));
    assert_eq!(
        done.target,
        Some(
            json!({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "sandboxed"},
            "handler": "gvisor", "overhead": {"podFixed": {"cpu": "250m"}}})
        )
    );
    assert!(
        done.findings
            .iter()
            .any(|f| f.message.contains("handler gvisor"))
    );
}

#[test]
fn subjects_of_the_first_alpha_of_rbac_are_named_by_group_and_everybody_is_a_group() {
    let t = target(object(
        "rbac.authorization.k8s.io/v1alpha1",
        "RoleBinding",
        json!({"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}, "subjects": [
            {"kind": "User", "apiVersion": "rbac.authorization.k8s.io/v1alpha1", "name": "*"},
            {"kind": "ServiceAccount", "apiVersion": "v1", "name": "s", "namespace": "n"}]}),
    ));
    assert_eq!(
        t["subjects"],
        json!([{"kind": "Group", "name": "system:authenticated", "apiGroup": "rbac.authorization.k8s.io"},
            {"kind": "ServiceAccount", "name": "s", "namespace": "n"}])
    );
}

#[test]
fn a_grant_by_the_group_extensions_reaches_the_same_objects_on_green() {
    let t = target(object(
        "rbac.authorization.k8s.io/v1",
        "Role",
        json!({"rules": [
            {"apiGroups": ["extensions"], "resources": ["deployments/scale", "ingresses"], "verbs": ["get"]},
            {"apiGroups": ["", "extensions", "apps"], "resources": ["deployments"], "verbs": ["get"]},
            {"apiGroups": ["policy"], "resources": ["podsecuritypolicies"], "verbs": ["use"]},
            {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["*"]}]}),
    ));
    let groups: Vec<Value> = t["rules"]
        .as_array()
        .expect("rules")
        .iter()
        .map(|r| r["apiGroups"].clone())
        .collect();
    assert_eq!(
        groups,
        [
            json!(["extensions", "apps", "networking.k8s.io"]),
            json!(["", "extensions", "apps"]),
            json!(["batch"])
        ]
    );
}

#[test]
fn device_requests_move_below_exactly() {
    let t = target(object(
        "resource.k8s.io/v1beta1",
        "ResourceClaimTemplate",
        json!({"spec": {"spec": {"devices": {"requests": [
            {"name": "gpu", "deviceClassName": "gpu.example.com", "count": 2},
            {"name": "any", "firstAvailable": [{"name": "a", "deviceClassName": "b"}]}]}}}}),
    ));
    // 1.36 serves v1beta1 still (removed in 1.38).
    assert_eq!(t["apiVersion"], "resource.k8s.io/v1beta1");
    let o = object(
        "resource.k8s.io/v1beta1",
        "ResourceClaim",
        json!({"spec": {"devices": {"requests": [
            {"name": "gpu", "deviceClassName": "gpu.example.com", "count": 2},
            {"name": "any", "firstAvailable": [{"name": "a", "deviceClassName": "b"}]}]}}}),
    );
    let t = by_table(&o, table(), 38).target.expect("a target");
    assert_eq!(
        t.pointer("/spec/devices/requests"),
        Some(&json!([
            {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com", "count": 2}},
            {"name": "any", "firstAvailable": [{"name": "a", "deviceClassName": "b"}]}]))
    );
}

#[test]
fn a_network_policy_of_extensions_says_which_directions_it_is_for() {
    let types = |spec: Value| {
        target(object(
            "extensions/v1beta1",
            "NetworkPolicy",
            json!({"spec": spec}),
        ))["spec"]["policyTypes"]
            .clone()
    };
    assert_eq!(types(json!({"podSelector": {}})), json!(["Ingress"]));
    assert_eq!(
        types(json!({"podSelector": {}, "egress": []})),
        json!(["Ingress", "Egress"])
    );
    assert_eq!(
        types(json!({"podSelector": {}, "policyTypes": ["Egress"]})),
        json!(["Egress"])
    );
}

#[test]
fn a_certificate_stays_in_its_version_where_only_that_is_served() {
    let cert = object(
        "cert-manager.io/v1alpha2",
        "Certificate",
        json!({"spec": {"secretName": "s", "keySize": 2048, "emailSANs": ["a@example.com"]}}),
    );
    let mut cx = cx(36);
    let served = |v: &str| [v.to_string()].into();
    let key = ("cert-manager.io".to_string(), "Certificate".to_string());
    cx.served.insert(key.clone(), served("v1alpha2"));
    assert_eq!(rewrite(&cert, &cx).target, Some(cert.clone()));
    cx.served.insert(key, served("v1"));
    let t = rewrite(&cert, &cx).target.expect("a target");
    assert_eq!(
        (&t["apiVersion"], &t["spec"]),
        (
            &json!("cert-manager.io/v1"),
            &json!({"secretName": "s", "privateKey": {"size": 2048}, "emailAddresses": ["a@example.com"]})
        )
    );
}
