//! Rules 1 to 5 of replay.md: reading and order. A test of each is named `rule_NN_...`; those of the run stand beside it (src/step/replay), those of reading beside src/snapshot and src/world.

use super::*;
use crate::snapshot::model::Cluster;
use crate::world::kube::ApiKind;

pub(super) fn object(api: &str, kind: &str, name: &str) -> Value {
    json!({"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": "shop"}})
}

pub(super) fn config(name: &str) -> Value {
    object("v1", "ConfigMap", name)
}

/// Ids of the steps that create objects, and what each creates.
fn waves(p: &Plan) -> Vec<(String, Vec<String>)> {
    p.steps
        .iter()
        .filter(|s| s.kind == "replay.wave")
        .map(|s| {
            let objects = s.params["objects"].as_array().cloned().unwrap_or_default();
            let names = objects
                .iter()
                .filter_map(|o| o.as_str().map(String::from))
                .collect();
            (s.id.clone(), names)
        })
        .collect()
}

pub(super) fn wave(p: &Plan, name: &str) -> String {
    waves(p)
        .into_iter()
        .find(|(_, names)| names.iter().any(|n| n == name))
        .unwrap_or_else(|| panic!("{name} is created by one of {:?}", waves(p)))
        .0
}

#[test]
fn rule_01_objects_that_another_server_keeps_are_not_copied_and_named() {
    let s = |green: bool| {
        let mut s = Snapshot::default();
        s.blue.objects = vec![
            json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1alpha1.data.packaging.test"},
                "spec": {"group": "data.packaging.test", "version": "v1alpha1", "service": {"name": "api", "namespace": "packages"}}}),
            object("data.packaging.test/v1alpha1", "Package", "redis"),
        ];
        if green {
            s.green = Some(Cluster {
                kinds: vec![ApiKind {
                    group: "data.packaging.test".into(),
                    version: "v1alpha1".into(),
                    kind: "Package".into(),
                    plural: "packages".into(),
                    namespaced: true,
                    verbs: vec!["create".into(), "list".into()],
                }],
                ..Cluster::default()
            });
        }
        plan(&spec(), &s)
    };
    let id = "package.data.packaging.test/shop/redis";
    let p = s(false);
    assert_eq!(
        (of(&p, id).verdict, of(&p, id).rules.as_slice()),
        (Fate::Skipped, ["replay.md 1".to_string()].as_slice())
    );
    says(&p, "API-02", id, Severity::Info, "another API server");
    // Green runs the same server already: then it is an object as any other.
    assert_eq!(of(&s(true), id).verdict, Fate::Copied);
}

#[test]
fn rule_01_kinds_that_hold_no_objects_are_named_once() {
    let mut s = Snapshot::default();
    s.blue.kinds = vec![ApiKind {
        group: "authentication.k8s.io".into(),
        version: "v1".into(),
        kind: "TokenReview".into(),
        plural: "tokenreviews".into(),
        namespaced: false,
        verbs: vec!["create".into()],
    }];
    says(
        &plan(&spec(), &s),
        "API-02",
        "blue.kinds",
        Severity::Info,
        "tokenreviews.authentication.k8s.io",
    );
}

#[test]
fn rule_03_each_kind_is_created_after_what_it_needs() {
    let cluster = |api: &str, kind: &str, name: &str| json!({"apiVersion": api, "kind": kind, "metadata": {"name": name}});
    let rbac = "rbac.authorization.k8s.io/v1";
    let bind = |mut o: Value| {
        o["roleRef"] =
            json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"});
        o["subjects"] = json!([]);
        o
    };
    let template = json!({"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "c:1"}]}});
    let mut deployment = object("apps/v1", "Deployment", "web");
    deployment["spec"] =
        json!({"replicas": 1, "selector": {"matchLabels": {"app": "x"}}, "template": template});
    let mut cron = object("batch/v1", "CronJob", "nightly");
    cron["spec"] =
        json!({"schedule": "0 1 * * *", "jobTemplate": {"spec": {"template": template}}});
    let mut service = object("v1", "Service", "web");
    service["spec"] = json!({"ports": [{"port": 80}]});
    let mut endpoints = object("v1", "Endpoints", "web");
    endpoints["subsets"] =
        json!([{"addresses": [{"ip": "198.51.100.9"}], "ports": [{"port": 80}]}]);
    let mut claim = object("v1", "PersistentVolumeClaim", "data");
    claim["spec"] =
        json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    let mut policy = object("networking.k8s.io/v1", "NetworkPolicy", "deny");
    policy["spec"] = json!({"podSelector": {}, "policyTypes": ["Ingress"]});
    let mut ingress = object("networking.k8s.io/v1", "Ingress", "web");
    ingress["spec"] = json!({"ingressClassName": "nginx", "rules": []});
    let mut pdb = object("policy/v1", "PodDisruptionBudget", "web");
    pdb["spec"] = json!({"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}});
    let mut hook = cluster(
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        "hook",
    );
    hook["webhooks"] = json!([]);
    let mut crd = cluster(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "promotions.shop.test",
    );
    crd["spec"] = json!({"group": "shop.test", "scope": "Namespaced", "names": {"kind": "Promotion", "plural": "promotions"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]});
    let expected = [
        (crd, "replay/crds"),
        (cluster("v1", "Namespace", "shop"), "replay/namespaces"),
        (
            cluster("scheduling.k8s.io/v1", "PriorityClass", "high"),
            "replay/classes",
        ),
        (object("v1", "ServiceAccount", "web"), "replay/accounts"),
        (object(rbac, "Role", "r"), "replay/base"),
        (bind(object(rbac, "RoleBinding", "r")), "replay/base"),
        (config("settings"), "replay/base"),
        (object("v1", "LimitRange", "sizes"), "replay/base"),
        (claim, "replay/base"),
        (service, "replay/base"),
        (endpoints, "replay/base"),
        (policy, "replay/base"),
        (
            object("cert-manager.io/v1", "Issuer", "letsencrypt"),
            "replay/issuers",
        ),
        (
            object("shop.test/v1", "Promotion", "summer"),
            "replay/custom",
        ),
        (deployment, "replay/workloads"),
        (cron, "replay/jobs"),
        (pdb, "replay/policies"),
        (ingress, "replay/ingress"),
        (object("v1", "ResourceQuota", "quota"), "replay/quotas"),
        (hook, "unpark/webhooks"),
    ];
    // The snapshot is in no such order.
    let p = planned(expected.iter().rev().map(|(o, _)| o.clone()).collect());
    for (o, step) in &expected {
        let id = crate::object::ObjectId::of(o).expect("an id").to_string();
        assert_eq!(wave(&p, &id), *step, "{id}");
    }
    let order: Vec<String> = waves(&p).into_iter().map(|(id, _)| id).collect();
    let mut wanted: Vec<&str> = expected.iter().map(|(_, s)| *s).collect();
    wanted.dedup();
    let wanted: Vec<&str> = wanted
        .into_iter()
        .filter(|s| order.iter().any(|o| o == s))
        .collect();
    let created: Vec<&String> = order
        .iter()
        .filter(|o| wanted.contains(&o.as_str()))
        .collect();
    assert_eq!(created, wanted);
    // Each waits for the one before.
    let needs = |id: &str| p.steps.iter().find(|s| s.id == id).map(|s| s.needs.clone());
    assert_eq!(
        needs("replay/base"),
        Some(vec!["replay/accounts".to_string()])
    );
}

#[test]
fn rule_03_a_resource_that_only_the_webhook_can_store_waits_until_its_operator_runs() {
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "queues.mq.test"},
        "spec": {"group": "mq.test", "scope": "Namespaced", "names": {"kind": "Queue", "plural": "queues"},
            "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"service": {"namespace": "shop", "name": "mq-hook"}}}},
            "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}},
                {"name": "v2", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    let mut service = object("v1", "Service", "mq-hook");
    service["spec"] = json!({"selector": {"app": "mq"}, "ports": [{"port": 443}]});
    let mut operator = object("apps/v1", "Deployment", "mq-operator");
    operator["spec"] = json!({"selector": {"matchLabels": {"app": "mq"}}, "template": {"metadata": {"labels": {"app": "mq", "x": "y"}}, "spec": {"containers": []}}});
    let p = planned(vec![
        crd,
        service,
        operator,
        object("mq.test/v1", "Queue", "stored"),
        object("mq.test/v2", "Queue", "converted"),
    ]);
    assert_eq!(
        wave(&p, "deployment/shop/mq-operator"),
        "replay/operators",
        "before the resources that it answers for"
    );
    assert_eq!(wave(&p, "queue.mq.test/shop/stored"), "replay/custom");
    assert_eq!(wave(&p, "queue.mq.test/shop/converted"), "unpark/custom");
    let late = p
        .steps
        .iter()
        .find(|s| s.id == "unpark/custom")
        .expect("it is there");
    assert_eq!(late.needs, ["unpark/operators"]);
}

#[test]
fn rule_03_a_kind_of_somebodys_own_is_no_service_because_it_is_called_so() {
    let p = planned(vec![object("serving.knative.dev/v1", "Service", "web")]);
    assert_eq!(
        wave(&p, "service.serving.knative.dev/shop/web"),
        "replay/custom"
    );
}

#[test]
fn rule_04_limits_come_before_pods_and_quotas_after_all_that_they_count() {
    let p = planned(vec![
        object("v1", "ResourceQuota", "quota"),
        object("v1", "LimitRange", "sizes"),
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "web", "namespace": "shop"}, "spec": {"ingressClassName": "x"}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}}}}),
    ]);
    let order: Vec<String> = waves(&p)
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(id, _)| id)
        .collect();
    assert_eq!(
        order,
        [
            "replay/base",
            "replay/workloads",
            "replay/ingress",
            "replay/quotas"
        ]
    );
}
