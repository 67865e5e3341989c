//! Rules 61 to 68 of replay.md: APIs, webhooks, Ingresses, policies. A test of each is named `rule_NN_...`.

use super::{corpus, found, of, planned, says, spec, target};
use crate::plan::model::{Fate, Severity};
use crate::plan::plan;
use crate::snapshot::model::Snapshot;
use serde_json::{Value, json};

#[test]
fn velero_2319_a_crd_made_as_v1beta1_and_read_as_v1_becomes_structural_and_keeps_unknown_fields() {
    let crd = serde_json::json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "promotions.shop.test"},
        "spec": {"group": "shop.test", "scope": "Namespaced", "preserveUnknownFields": true, "names": {"kind": "Promotion", "plural": "promotions"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"properties": {"spec": {"properties": {"percent": {"type": "integer"}}}}}}}]}
    });
    let rewritten = crate::rewrite::rewrite(&crd, &crate::rewrite::Context::default());
    let target = rewritten.target.unwrap();
    assert_eq!(target.pointer("/spec/preserveUnknownFields"), None);
    assert_eq!(
        target.pointer("/spec/versions/0/schema/openAPIV3Schema"),
        Some(&serde_json::json!({
            "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            // Nested properties end the root's mark: without one of its own, `spec` would lose every field that the schema does not list.
            "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"percent": {"type": "integer"}}}}
        }))
    );
    assert!(rewritten.rules.contains(&"replay.md 61".to_string()));
}

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

fn crd(api: &str, spec: Value) -> Value {
    let mut all = json!({"group": "shop.test", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"}});
    for (k, v) in spec.as_object().into_iter().flatten() {
        all[k] = v.clone();
    }
    json!({"apiVersion": format!("apiextensions.k8s.io/{api}"), "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.shop.test"},
        "spec": all, "status": {"storedVersions": ["v1"]}})
}

const CRD: &str = "customresourcedefinition/widgets.shop.test";

#[test]
fn rule_61_a_definition_of_v1beta1_becomes_structural_and_keeps_fields_at_every_depth() {
    let p = planned(vec![crd(
        "v1beta1",
        json!({"versions": [{"name": "v1", "served": true, "storage": true}, {"name": "v1beta1", "served": true, "storage": false}],
            "validation": {"openAPIV3Schema": {"properties": {"spec": {"properties": {
                "size": {"oneOf": [{"type": "string"}, {"type": "integer"}]}, "ref": {"$ref": "#/x"}, "limit": {"type": "integer", "maximum": 9007199254740993u64}}}}}},
            "subresources": {"status": {}}}),
    )]);
    let t = target(&p, CRD);
    assert_eq!(t["apiVersion"], "apiextensions.k8s.io/v1");
    assert!(t.get("status").is_none());
    for n in 0..2 {
        let v = &t["spec"]["versions"][n];
        assert_eq!(
            v["schema"]["openAPIV3Schema"],
            json!({"type": "object", PRESERVE: true, "properties": {"spec": {"type": "object", PRESERVE: true, "properties": {
                "size": {"x-kubernetes-int-or-string": true}, "ref": {PRESERVE: true}, "limit": {"type": "integer", "maximum": 9007199254740993u64}}}}}),
            "no number is rounded, no place prunes"
        );
        assert_eq!(v["subresources"], json!({"status": {}}));
    }
    for key in [
        "validation",
        "subresources",
        "version",
        "preserveUnknownFields",
    ] {
        assert!(t["spec"].get(key).is_none(), "{key}");
    }
    says(&p, "API-07", CRD, Severity::Warning, "spec.ref ($ref)");
}

#[test]
fn rule_61_a_schema_that_the_server_knew_to_be_structural_is_not_touched() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object"}}});
    let p = planned(vec![crd(
        "v1beta1",
        json!({"preserveUnknownFields": false, "version": "v1", "validation": {"openAPIV3Schema": schema}}),
    )]);
    assert_eq!(
        target(&p, CRD).pointer("/spec/versions/0/schema/openAPIV3Schema"),
        Some(&schema)
    );
    let of_v1 = crd(
        "v1",
        json!({"preserveUnknownFields": false, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}),
    );
    let p = planned(vec![of_v1]);
    assert_eq!(
        target(&p, CRD).pointer("/spec/versions/0/schema/openAPIV3Schema"),
        Some(&schema)
    );
}

#[test]
fn rule_61_a_conversion_webhook_loses_the_ca_only_where_another_is_injected() {
    let bundle = "/spec/conversion/webhook/clientConfig/caBundle";
    let with = |annotations: Value| {
        let mut o = crd(
            "v1beta1",
            json!({"version": "v1", "conversion": {"strategy": "Webhook", "conversionReviewVersions": ["v1"],
                "webhookClientConfig": {"caBundle": "QQ==", "service": {"namespace": "n", "name": "hook"}}}}),
        );
        o["metadata"]["annotations"] = annotations;
        planned(vec![o])
    };
    let injected = with(json!({"cert-manager.io/inject-ca-from": "n/cert"}));
    let t = target(&injected, CRD);
    assert_eq!(t.pointer(bundle), None);
    assert_eq!(
        t["metadata"]["annotations"],
        json!({"cert-manager.io/inject-ca-from": "n/cert"}),
        "the injector of green reads it"
    );
    assert_eq!(
        t.pointer("/spec/conversion/webhook/conversionReviewVersions"),
        Some(&json!(["v1"]))
    );
    let kept = with(json!({"team": "a"}));
    assert_eq!(target(&kept, CRD).pointer(bundle), Some(&json!("QQ==")));
    says(
        &kept,
        "API-07",
        CRD,
        Severity::Blocker,
        "backend must answer",
    );
}

#[test]
fn rule_61_a_group_of_kubernetes_own_says_that_nobody_approved_it() {
    let mut o = crd(
        "v1beta1",
        json!({"version": "v1", "group": "things.k8s.io"}),
    );
    o["metadata"]["name"] = json!("widgets.things.k8s.io");
    let p = planned(vec![o]);
    let t = target(&p, "customresourcedefinition/widgets.things.k8s.io");
    assert!(
        t.pointer("/metadata/annotations/api-approved.kubernetes.io")
            .and_then(Value::as_str)
            .is_some_and(|a| a.starts_with("unapproved")),
        "{t}"
    );
}

#[test]
fn rule_62_a_custom_resource_keeps_its_version_and_a_version_that_nobody_serves_blocks() {
    let widget = json!({"apiVersion": "shop.test/v1alpha1", "kind": "Widget", "metadata": {"name": "w", "namespace": "n"},
        "spec": {"count": 9007199254740993u64, "empty": {}}});
    let definition = |served: bool| {
        crd(
            "v1",
            json!({"versions": [{"name": "v1alpha1", "served": served, "storage": true}, {"name": "v1", "served": true, "storage": false}]}),
        )
    };
    let id = "widget.shop.test/n/w";
    let p = planned(vec![definition(true), widget.clone()]);
    assert_eq!(of(&p, id).target.as_ref(), Some(&widget));
    assert!(found(&p, "API-02", id).is_empty());
    let p = planned(vec![definition(false), widget.clone()]);
    says(&p, "API-02", id, Severity::Blocker, "serves only v1");
    let p = planned(vec![widget]);
    says(
        &p,
        "API-02",
        id,
        Severity::Warning,
        "no CustomResourceDefinition",
    );
}

fn webhook(api: &str, annotations: Value, hook: Value) -> Value {
    let mut all = json!({"name": "v.shop.test", "sideEffects": "None"});
    for (k, v) in hook.as_object().into_iter().flatten() {
        all[k] = v.clone();
    }
    json!({"apiVersion": format!("admissionregistration.k8s.io/{api}"), "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "m", "annotations": annotations}, "webhooks": [all]})
}

#[test]
fn rule_63_a_webhook_keeps_what_its_old_version_meant_and_loses_a_ca_that_is_injected_anew() {
    let id = "mutatingwebhookconfiguration/m";
    let client = json!({"caBundle": "QQ==", "service": {"namespace": "n", "name": "hook"}});
    let p = planned(vec![webhook(
        "v1beta1",
        json!({"cert-manager.io/inject-ca-from": "n/c"}),
        json!({"clientConfig": client}),
    )]);
    let hook = &target(&p, id)["webhooks"][0];
    assert_eq!(
        hook,
        &json!({"name": "v.shop.test", "sideEffects": "None", "clientConfig": {"service": {"namespace": "n", "name": "hook"}},
            "failurePolicy": "Ignore", "matchPolicy": "Exact", "timeoutSeconds": 30, "admissionReviewVersions": ["v1beta1"]})
    );
    assert_eq!(of(&p, id).verdict, Fate::Held, "last of all");
    let p = planned(vec![webhook(
        "v1",
        json!({"a": "b"}),
        json!({"clientConfig": client}),
    )]);
    assert_eq!(
        target(&p, id).pointer("/webhooks/0/clientConfig/caBundle"),
        Some(&json!("QQ=="))
    );
    says(&p, "API-13", id, Severity::Warning, "CA bundle");
}

#[test]
fn rule_63_a_webhook_that_calls_the_masters_of_blue_blocks() {
    let id = "mutatingwebhookconfiguration/m";
    for (url, severity) in [
        ("https://127.0.0.1:9443/mutate", Severity::Blocker),
        ("https://api.blue.example.com/mutate", Severity::Blocker),
        ("https://hooks.example.org/mutate", Severity::Warning),
    ] {
        let p = planned(vec![webhook(
            "v1",
            json!({}),
            json!({"clientConfig": {"url": url}}),
        )]);
        says(&p, "API-13", id, severity, url);
    }
}

#[test]
fn rule_64_an_api_service_waits_for_its_backend_and_one_of_the_servers_own_stays() {
    let api = |labels: Value| {
        json!({"apiVersion": "apiregistration.k8s.io/v1beta1", "kind": "APIService", "metadata": {"name": "v1.shop.test", "labels": labels},
            "spec": {"group": "shop.test", "version": "v1", "service": {"namespace": "n", "name": "a"}}})
    };
    let id = "apiservice/v1.shop.test";
    let p = planned(vec![api(json!({}))]);
    assert_eq!(of(&p, id).verdict, Fate::Held);
    assert_eq!(target(&p, id)["apiVersion"], "apiregistration.k8s.io/v1");
    let p = planned(vec![api(
        json!({"kube-aggregator.kubernetes.io/automanaged": "true"}),
    )]);
    assert_eq!(of(&p, id).verdict, Fate::Skipped);
}

#[test]
fn rule_65_what_keeps_its_meaning_is_converted_what_changes_it_is_asked_about_what_nobody_knows_is_refused()
 {
    let object = |api: &str, kind: &str, rest: Value| {
        let mut o =
            json!({"apiVersion": api, "kind": kind, "metadata": {"name": "x", "namespace": "n"}});
        for (k, v) in rest.as_object().into_iter().flatten() {
            o[k] = v.clone();
        }
        o
    };
    let p = planned(vec![object(
        "batch/v1beta1",
        "CronJob",
        json!({"spec": {"schedule": "0 1 * * *"}}),
    )]);
    assert_eq!(target(&p, "cronjob/n/x")["apiVersion"], "batch/v1");
    says(
        &p,
        "API-01",
        "cronjob/n/x",
        Severity::Info,
        "becomes batch/v1",
    );
    let p = planned(corpus("02"));
    says(
        &p,
        "API-04",
        "deployment/edge/to-https",
        Severity::Warning,
        "progressDeadlineSeconds = 2147483647",
    );
    let p = planned(vec![object(
        "settings.k8s.io/v1alpha1",
        "PodPreset",
        json!({"spec": {}}),
    )]);
    assert_eq!(of(&p, "podpreset/n/x").verdict, Fate::Refused);
    says(
        &p,
        "API-03",
        "podpreset/n/x",
        Severity::Blocker,
        "has no successor",
    );
}

fn ingress(annotations: Value) -> Value {
    json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i", "namespace": "n", "annotations": annotations},
        "spec": {"ingressClassName": "alb", "rules": []}})
}

#[test]
fn rule_66_an_ingress_gets_another_load_balancer_group_and_names_nothing_of_blue() {
    let long = "g".repeat(63);
    let p = planned(vec![ingress(json!({
        "alb.ingress.kubernetes.io/group.name": "shop", "alb.ingress.kubernetes.io/group.order": "3",
        "alb.ingress.kubernetes.io/subnets": "subnet-1", "alb.ingress.kubernetes.io/load-balancer-name": "blue",
        "alb.ingress.kubernetes.io/tags": "team=a,kubernetes.io/cluster/blue.example.com=owned",
        "alb.ingress.kubernetes.io/actions.old": "{\"targetGroupARN\":\"arn:aws:elasticloadbalancing:x\"}"}))]);
    let id = "ingress/n/i";
    assert_eq!(
        target(&p, id)["metadata"]["annotations"],
        json!({"alb.ingress.kubernetes.io/group.name": "shop-green", "alb.ingress.kubernetes.io/group.order": "3",
            "alb.ingress.kubernetes.io/tags": "team=a",
            "alb.ingress.kubernetes.io/actions.old": "{\"targetGroupARN\":\"arn:aws:elasticloadbalancing:x\"}"})
    );
    says(&p, "NET-11", id, Severity::Warning, "target group by ARN");
    let p = planned(vec![ingress(
        json!({"alb.ingress.kubernetes.io/group.name": long}),
    )]);
    let group = target(&p, id)
        .pointer("/metadata/annotations/alb.ingress.kubernetes.io~1group.name")
        .and_then(Value::as_str)
        .map(String::from)
        .expect("a group");
    assert_eq!((group.len(), group.ends_with("-green")), (63, true));
    let params = json!({"apiVersion": "elbv2.k8s.aws/v1beta1", "kind": "IngressClassParams", "metadata": {"name": "alb"},
        "spec": {"group": {"name": "shop"}, "subnets": {"ids": ["subnet-1"]}, "scheme": "internal"}});
    let p = planned(vec![params]);
    assert_eq!(
        target(&p, "ingressclassparams.elbv2.k8s.aws/alb")["spec"],
        json!({"group": {"name": "shop-green"}, "scheme": "internal"})
    );
}

#[test]
fn rule_66_a_weighted_record_gets_its_own_identifier_and_no_weight_until_the_cutover() {
    let p = planned(vec![ingress(json!({
        "external-dns.alpha.kubernetes.io/set-identifier": "shop-blue", "external-dns.alpha.kubernetes.io/aws-weight": "100"}))]);
    assert_eq!(
        target(&p, "ingress/n/i")["metadata"]["annotations"],
        json!({"external-dns.alpha.kubernetes.io/set-identifier": "shop-green", "external-dns.alpha.kubernetes.io/aws-weight": "0"})
    );
}

#[test]
fn rule_67_a_policy_of_another_engine_is_named_as_lost_protection_and_its_network_never_copied() {
    for (api, kind, id) in [
        (
            "projectcalico.org/v3",
            "GlobalNetworkPolicy",
            "globalnetworkpolicy.projectcalico.org/x",
        ),
        (
            "crd.projectcalico.org/v1",
            "GlobalNetworkSet",
            "globalnetworkset.crd.projectcalico.org/x",
        ),
        (
            "cilium.io/v2",
            "CiliumClusterwideNetworkPolicy",
            "ciliumclusterwidenetworkpolicy.cilium.io/x",
        ),
    ] {
        let p = planned(vec![
            json!({"apiVersion": api, "kind": kind, "metadata": {"name": "x"}, "spec": {}}),
        ]);
        assert_eq!(of(&p, id).verdict, Fate::Refused);
        says(&p, "NET-07", id, Severity::Warning, "protection is lost");
    }
    let p = planned(vec![
        json!({"apiVersion": "crd.projectcalico.org/v1", "kind": "IPPool", "metadata": {"name": "x"}, "spec": {}}),
    ]);
    assert_eq!(
        of(&p, "ippool.crd.projectcalico.org/x").verdict,
        Fate::Skipped
    );
}

#[test]
fn rule_67_an_address_range_of_blues_pods_is_named_and_kept() {
    let mut s = Snapshot::default();
    s.blue.objects = corpus("23");
    s.kops.cluster = Some(
        json!({"kind": "Cluster", "metadata": {"name": "blue.example.com"}, "spec": {"networkCIDR": "172.20.0.0/16"}}),
    );
    let p = plan(&spec(), &s);
    let id = "networkpolicy/shop/allow-overlay";
    says(&p, "NET-07", id, Severity::Warning, "100.96.0.0/11");
    assert_eq!(
        target(&p, id).pointer("/spec/ingress/0/from/0/ipBlock/cidr"),
        Some(&json!("100.96.0.0/11"))
    );
}

#[test]
fn rule_68_a_field_that_cannot_change_is_known_for_each_kind() {
    let service = |ip: &str| json!({"spec": {"clusterIP": ip, "type": "ClusterIP"}});
    assert_eq!(
        crate::rewrite::immutable_difference("Service", &service("10.0.0.1"), &service("None")),
        ["/spec/clusterIP"]
    );
    for (kind, field) in [
        ("Deployment", "/spec/selector"),
        ("Job", "/spec/template"),
        ("PersistentVolumeClaim", "/spec/storageClassName"),
        ("RoleBinding", "/roleRef"),
        ("Secret", "/type"),
        ("StatefulSet", "/spec/volumeClaimTemplates"),
        ("StorageClass", "/parameters"),
        ("RuntimeClass", "/handler"),
        ("IngressClass", "/spec/controller"),
    ] {
        assert!(
            crate::rewrite::immutable(kind).contains(&field),
            "{kind} {field}"
        );
    }
    assert!(crate::rewrite::immutable("ConfigMap").is_empty());
    let config = |closed: bool, v: &str| json!({"immutable": closed, "data": {"a": v}});
    let differs = |closed| {
        crate::rewrite::immutable_difference(
            "ConfigMap",
            &config(closed, "1"),
            &config(closed, "2"),
        )
    };
    assert_eq!(differs(true), ["/data"]);
    assert!(differs(false).is_empty());
}
