//! Where the rewrite says it, its own tests go into detail; here each id is heard once and kept quiet once, through a whole plan.

use crate::checks::testing::*;
use crate::plan::model::Severity::{self, Blocker, Info, NotChecked, Warning};
use crate::plan::plan;
use crate::snapshot::model::Cluster;
use crate::world::kube::ApiKind;
use serde_json::{Value, json};

fn object(api: &str, kind: &str, name: &str, parts: Value) -> Value {
    let mut o =
        json!({"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": "n"}});
    for (k, v) in parts.as_object().into_iter().flatten() {
        o[k] = v.clone();
    }
    o
}

#[test]
fn what_the_rewrite_says_is_heard_under_the_id_of_its_check() {
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}});
    let cron = |schedule: &str| {
        object(
            "batch/v1",
            "CronJob",
            "c",
            json!({"spec": {"schedule": schedule, "startingDeadlineSeconds": 60, "jobTemplate": {"spec": {"template": template}}}}),
        )
    };
    let budget = |selector: Value| {
        object(
            "policy/v1beta1",
            "PodDisruptionBudget",
            "p",
            json!({"spec": {"minAvailable": 1, "selector": selector}}),
        )
    };
    let ingress = |class: Value| {
        object(
            "networking.k8s.io/v1",
            "Ingress",
            "i",
            json!({"spec": {"ingressClassName": class, "rules": []}}),
        )
    };
    let crd = |strategy: &str| {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "x.shop.test"},
            "spec": {"group": "shop.test", "names": {"kind": "X"}, "conversion": {"strategy": strategy}, "versions": []}})
    };
    let release = |status: &str| {
        object(
            "v1",
            "Secret",
            "sh.helm.release.v1.r.v1",
            json!({"type": "helm.sh/release.v1", "metadata": {"name": "sh.helm.release.v1.r.v1", "namespace": "n", "labels": {"name": "r", "status": status}}}),
        )
    };
    let hook = |effects: &str| {
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "v"},
            "webhooks": [{"name": "v.shop.test", "sideEffects": effects, "failurePolicy": "Ignore", "clientConfig": {}}]})
    };
    let psp = json!({"apiVersion": "policy/v1beta1", "kind": "PodSecurityPolicy", "metadata": {"name": "p"}, "spec": {}});
    let web = runs("web", "registry.shop.test/web:1.0");
    let mut beta = web.clone();
    beta["apiVersion"] = json!("apps/v1beta2");
    let mut oldest = web.clone();
    oldest["apiVersion"] = json!("extensions/v1beta1");
    let rows: Vec<(&str, Severity, &str, Value, Value)> = vec![
        (
            "API-01",
            Info,
            "deployment/n/web",
            beta.clone(),
            web.clone(),
        ),
        (
            "API-02",
            Warning,
            "widget.shop.test/n/w",
            object("shop.test/v1", "Widget", "w", json!({})),
            web.clone(),
        ),
        ("API-03", Warning, "podsecuritypolicy/p", psp, web.clone()),
        ("API-04", Warning, "deployment/n/web", oldest, web.clone()),
        (
            "API-05",
            Blocker,
            "poddisruptionbudget/n/p",
            budget(json!({})),
            budget(json!({"matchLabels": {"a": "b"}})),
        ),
        (
            "API-06",
            Warning,
            "ingress/n/i",
            ingress(Value::Null),
            ingress(json!("nginx")),
        ),
        (
            "API-07",
            Blocker,
            "customresourcedefinition/x.shop.test",
            crd("Webhook"),
            crd("None"),
        ),
        (
            "API-09",
            Warning,
            "cronjob/n/c",
            cron("CRON_TZ=Europe/Paris 0 1 * * *"),
            cron("0 1 * * *"),
        ),
        (
            "API-12",
            Blocker,
            "secret/n/sh.helm.release.v1.r.v1",
            release("pending-upgrade"),
            web.clone(),
        ),
        (
            "API-13",
            Blocker,
            "validatingwebhookconfiguration/v",
            hook("Some"),
            hook("None"),
        ),
    ];
    for (id, severity, object, loud, still) in rows {
        fires(&spec(), &snapshot(vec![loud]), id, severity, object, "");
        quiet(&spec(), &snapshot(vec![still]), id);
    }
    fires(
        &spec(),
        &snapshot(vec![web.clone(), web.clone()]),
        "API-11",
        Warning,
        "deployment/n/web",
        "twice",
    );
    quiet(&spec(), &snapshot(vec![web]), "API-11");
}

#[test]
fn api_02_what_green_does_not_serve_blocks_once_green_stands() {
    let kind = |group: &str, version: &str, kind: &str| ApiKind {
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        plural: format!("{}s", kind.to_lowercase()),
        namespaced: true,
        verbs: vec!["create".into()],
    };
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.shop.test"},
        "spec": {"group": "shop.test", "names": {"kind": "Widget"}, "versions": [{"name": "v1"}]}});
    let widget = |version: &str| {
        object(
            &format!("shop.test/{version}"),
            "Widget",
            version,
            json!({}),
        )
    };
    let mut s = snapshot(vec![crd, widget("v1"), runs("web", "x:1")]);
    quiet(&spec(), &s, "API-02");
    s.green = Some(Cluster {
        kinds: vec![
            kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
            kind("apps", "v1", "Deployment"),
        ],
        ..Cluster::default()
    });
    quiet(&spec(), &s, "API-02");
    s.blue.objects.push(widget("v1alpha1"));
    fires(
        &spec(),
        &s,
        "API-02",
        Blocker,
        "kind/shop.test/v1alpha1/Widget",
        "1 objects",
    );
}

#[test]
fn api_08_volumes_fields_and_addresses_that_green_refuses_block() {
    quiet(&spec(), &snapshot(vec![]), "API-08");
    let s = snapshot(vec![runs("web", "x:1")]);
    let p = fires(&spec(), &s, "API-08", NotChecked, "fields", "1 objects");
    assert_eq!(said(&p, "API-08").len(), 1);
    let volume = |v: Value| workload("Deployment", "git", json!({}), json!({"volumes": [v]}));
    let git = snapshot(vec![volume(
        json!({"name": "g", "gitRepo": {"repository": "r"}}),
    )]);
    fires(
        &spec(),
        &git,
        "API-08",
        Blocker,
        "deployment/n/git",
        "gitRepo",
    );
    let older = spec_with(json!({"green": {"name": "g", "version": "1.35"}}));
    assert_eq!(
        said(&plan(&older, &git), "API-08").len(),
        1,
        "1.35 still mounts it"
    );
    let service = |spec: Value| object("v1", "Service", "s", json!({"spec": spec}));
    let topology = snapshot(vec![service(json!({"topologyKeys": ["*"]}))]);
    fires(
        &spec(),
        &topology,
        "API-08",
        Blocker,
        "service/n/s",
        "topologyKeys",
    );
    for (range, good) in [
        ("10.0.0.0/8", true),
        ("192.0.2.7/32", true),
        ("0.0.0.0/0", true),
        ("2001:db8::/32", true),
        ("10.1.0.0/8", false),
        ("010.0.0.0/8", false),
        ("::ffff:10.0.0.0/104", false),
    ] {
        let s = snapshot(vec![service(json!({"loadBalancerSourceRanges": [range]}))]);
        let hit = said(&plan(&spec(), &s), "API-08")
            .iter()
            .any(|m| m.contains("canonically"));
        assert_eq!(hit, !good, "{range}");
    }
}

#[test]
fn api_10_annotations_that_die_on_the_way_block_and_dead_or_replaced_ones_do_not() {
    let seccomp = "seccomp.security.alpha.kubernetes.io/pod";
    let with_value = |key: &str, value: &str, pod: Value| {
        let mut o = workload("Deployment", "web", json!({}), pod);
        o["spec"]["template"]["metadata"]["annotations"] = json!({key: value});
        o
    };
    let with = |key: &str, pod: Value| with_value(key, "runtime/default", pod);
    let s = snapshot(vec![with_value(seccomp, "no-such/profile", json!({}))]);
    fires(
        &spec(),
        &s,
        "API-10",
        Blocker,
        "deployment/n/web",
        "no effect since 1.27",
    );
    // The copy says it as a field (replay.md 53).
    quiet(&spec(), &snapshot(vec![with(seccomp, json!({}))]), "API-10");
    let set = json!({"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}});
    quiet(&spec(), &snapshot(vec![with(seccomp, set)]), "API-10");
    // Blue 1.21 ignores it already: nothing changes.
    quiet(
        &spec(),
        &snapshot(vec![with(
            "scheduler.alpha.kubernetes.io/critical-pod",
            json!({}),
        )]),
        "API-10",
    );
    let apparmor = snapshot(vec![with(
        "container.apparmor.security.beta.kubernetes.io/main",
        json!({}),
    )]);
    fires(
        &spec(),
        &apparmor,
        "API-10",
        Blocker,
        "deployment/n/web",
        "SELinux",
    );
    let service = |publish: bool| {
        let mut o = object(
            "v1",
            "Service",
            "s",
            json!({"spec": {"publishNotReadyAddresses": publish}}),
        );
        o["metadata"]["annotations"] =
            json!({"service.alpha.kubernetes.io/tolerate-unready-endpoints": "true"});
        snapshot(vec![o])
    };
    // The rewrite sets the field.
    quiet(&spec(), &service(false), "API-10");
    quiet(&spec(), &service(true), "API-10");
}
