//! The API servers' rules that the engine meets.

use super::company::*;
use crate::object::uid;
use crate::world::Class;
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_patch_on_an_old_resource_version_is_a_conflict_and_changes_nothing() {
    let (_, w) = company();
    let web = id("apps/v1", "Deployment", "storefront", "web");
    let seen = w.blue.get(&web).await.unwrap().unwrap();
    scale(w.blue.as_ref(), "storefront", "web", 2).await;
    let stale = json!({"metadata":{"resourceVersion":seen["metadata"]["resourceVersion"]},"spec":{"replicas":9}});
    let e = w.blue.merge(&web, &stale).await.unwrap_err();
    assert_eq!(e.class, Class::Conflict);
    assert_eq!(
        w.blue.get(&web).await.unwrap().unwrap()["spec"]["replicas"],
        2
    );
}

#[tokio::test(start_paused = true)]
async fn an_ingress_is_one_object_in_every_served_version() {
    let (_, w) = company();
    let old = id("networking.k8s.io/v1beta1", "Ingress", "storefront", "web");
    let new = id("networking.k8s.io/v1", "Ingress", "storefront", "web");
    let a = w.blue.get(&old).await.unwrap().unwrap();
    let b = w.blue.get(&new).await.unwrap().unwrap();
    assert_eq!(uid(&a), uid(&b));
    assert_eq!(
        a.pointer("/spec/rules/0/http/paths/0/backend/serviceName")
            .unwrap(),
        "web"
    );
    assert_eq!(
        b.pointer("/spec/rules/0/http/paths/0/backend/service/name")
            .unwrap(),
        "web"
    );
    assert_eq!(
        b.pointer("/spec/rules/0/http/paths/0/backend/service/port/number")
            .unwrap(),
        80
    );
    let ttl = json!({"metadata":{"annotations":{"external-dns.alpha.kubernetes.io/ttl":"5"}}});
    w.blue.merge(&new, &ttl).await.unwrap();
    let a = w.blue.get(&old).await.unwrap().unwrap();
    assert_eq!(
        a.pointer("/spec/rules/0/http/paths/0/backend/serviceName")
            .unwrap(),
        "web"
    );
    assert_eq!(
        crate::object::annotation(&a, "external-dns.alpha.kubernetes.io/ttl"),
        Some("5")
    );
}

#[tokio::test(start_paused = true)]
async fn green_refuses_versions_that_are_gone_unknown_namespaces_and_doubles() {
    let (_, w) = company();
    green_up(&w).await;
    let old = json!({"apiVersion":"batch/v1beta1","kind":"CronJob","metadata":{"name":"report","namespace":"platform"},"spec":{}});
    assert_eq!(create(&w, &old).await.unwrap_err().class, Class::NotFound);
    let lost =
        json!({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"nowhere"}});
    assert_eq!(create(&w, &lost).await.unwrap_err().class, Class::NotFound);
    let there = json!({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"platform"}});
    create(&w, &there).await.unwrap();
    assert_eq!(
        create(&w, &there).await.unwrap_err().class,
        Class::AlreadyExists
    );
    let copied = json!({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"y","namespace":"platform","resourceVersion":"7"}});
    assert_eq!(create(&w, &copied).await.unwrap_err().class, Class::Refused);
}

#[tokio::test(start_paused = true)]
async fn a_delete_with_the_uid_of_another_object_is_a_conflict() {
    let (_, w) = company();
    green_up(&w).await;
    let map = json!({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"platform"}});
    let made = create(&w, &map).await.unwrap();
    let x = id("v1", "ConfigMap", "platform", "x");
    assert_eq!(
        w.green.delete(&x, "not-the-uid").await.unwrap_err().class,
        Class::Conflict
    );
    w.green.delete(&x, uid(&made).unwrap()).await.unwrap();
    assert_eq!(w.green.get(&x).await.unwrap(), None);
    assert_eq!(
        w.green
            .delete(&x, uid(&made).unwrap())
            .await
            .unwrap_err()
            .class,
        Class::NotFound
    );
}

#[tokio::test(start_paused = true)]
async fn finalizers_hold_a_deleted_object_until_they_are_removed() {
    let (_, w) = company();
    green_up(&w).await;
    let held = json!({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"platform","finalizers":["shop.test/hold"]}});
    let made = create(&w, &held).await.unwrap();
    let x = id("v1", "ConfigMap", "platform", "x");
    w.green.delete(&x, uid(&made).unwrap()).await.unwrap();
    pass(60).await;
    assert!(
        w.green
            .get(&x)
            .await
            .unwrap()
            .unwrap()
            .pointer("/metadata/deletionTimestamp")
            .is_some()
    );
    w.green
        .merge(&x, &json!({"metadata":{"finalizers":null}}))
        .await
        .unwrap();
    assert_eq!(w.green.get(&x).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_dying_namespace_takes_everything_with_it_and_lets_nothing_in() {
    let (_, w) = company();
    green_up(&w).await;
    green_workloads(&w).await;
    let ns = id("v1", "Namespace", "", "storefront");
    let it = w.green.get(&ns).await.unwrap().unwrap();
    w.green.delete(&ns, uid(&it).unwrap()).await.unwrap();
    let late = json!({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"late","namespace":"storefront"}});
    // It passes: the live world says the same of a 403 with cause NamespaceTerminating.
    assert_eq!(create(&w, &late).await.unwrap_err().class, Class::NotReady);
    pass(30).await;
    assert_eq!(w.green.get(&ns).await.unwrap(), None);
    assert_eq!(
        w.green
            .get(&id("apps/v1", "Deployment", "storefront", "web"))
            .await
            .unwrap(),
        None
    );
}

#[tokio::test(start_paused = true)]
async fn a_new_namespace_gets_its_service_account_and_its_ca() {
    let (_, w) = company();
    green_up(&w).await;
    assert!(
        w.green
            .get(&id("v1", "ServiceAccount", "orders", "default"))
            .await
            .unwrap()
            .is_some()
    );
    assert!(
        w.green
            .get(&id("v1", "ConfigMap", "orders", "kube-root-ca.crt"))
            .await
            .unwrap()
            .is_some()
    );
}

#[tokio::test(start_paused = true)]
async fn custom_resources_are_served_only_after_their_definition_is_established() {
    let (_, w) = company();
    green_up(&w).await;
    let cr = json!({"apiVersion":"shop.test/v1","kind":"Promotion","metadata":{"name":"summer","namespace":"storefront"},"spec":{"percent":20}});
    assert_eq!(create(&w, &cr).await.unwrap_err().class, Class::NotFound);
    create(&w, &json!({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"promotions.shop.test"},
        "spec":{"group":"shop.test","scope":"Namespaced","names":{"kind":"Promotion","plural":"promotions"},
            "versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}})).await.unwrap();
    pass(3).await;
    create(&w, &cr).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn pods_follow_replicas_and_leave_only_after_their_grace() {
    let (_, w) = company();
    let pods = |w: crate::world::World| async move {
        let kind = w
            .blue
            .kinds(false)
            .await
            .unwrap()
            .into_iter()
            .find(|k| k.kind == "Pod")
            .unwrap();
        w.blue
            .list(&kind)
            .await
            .unwrap()
            .items
            .into_iter()
            .filter(|p| p["metadata"]["labels"]["app"] == "consumer")
            .count()
    };
    assert_eq!(pods(w.clone()).await, 1);
    scale(w.blue.as_ref(), "platform", "consumer", 0).await;
    pass(2).await;
    assert_eq!(pods(w.clone()).await, 1, "it is still leaving");
    pass(5).await;
    assert_eq!(pods(w.clone()).await, 0);
    scale(w.blue.as_ref(), "platform", "consumer", 1).await;
    pass(10).await;
    let d = w
        .blue
        .get(&id("apps/v1", "Deployment", "platform", "consumer"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(d["status"]["readyReplicas"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_pod_waits_for_a_node_that_its_selector_wants_and_for_its_config() {
    let (_, w) = company();
    green_up(&w).await;
    let mut d = deployment("platform", "mailer", 1, "mailer:1", &[]);
    d["spec"]["template"]["spec"]["nodeSelector"] = json!({"workload":"spot"});
    d["spec"]["template"]["spec"]["containers"][0]["envFrom"] =
        json!([{"configMapRef":{"name":"late"}}]);
    create(&w, &d).await.unwrap();
    pass(60).await;
    let at = id("apps/v1", "Deployment", "platform", "mailer");
    let ready = |w: crate::world::World, at: crate::object::ObjectId| async move {
        w.green.get(&at).await.unwrap().unwrap()["status"]["readyReplicas"]
            .as_u64()
            .unwrap_or(0)
    };
    assert_eq!(
        ready(w.clone(), at.clone()).await,
        0,
        "no node has the label"
    );
    let nodes = w
        .green
        .kinds(false)
        .await
        .unwrap()
        .into_iter()
        .find(|k| k.kind == "Node")
        .unwrap();
    let node = w.green.list(&nodes).await.unwrap().items[0]["metadata"]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    w.green
        .merge(
            &id("v1", "Node", "", &node),
            &json!({"metadata":{"labels":{"workload":"spot"}}}),
        )
        .await
        .unwrap();
    pass(10).await;
    assert_eq!(
        ready(w.clone(), at.clone()).await,
        0,
        "its ConfigMap is missing"
    );
    create(&w, &json!({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"late","namespace":"platform"}})).await.unwrap();
    pass(10).await;
    assert_eq!(ready(w.clone(), at).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_cron_job_runs_until_it_is_suspended() {
    let (_, w) = company();
    let cron = id("batch/v1beta1", "CronJob", "platform", "report");
    let jobs = w
        .blue
        .kinds(false)
        .await
        .unwrap()
        .into_iter()
        .find(|k| k.kind == "Job")
        .unwrap();
    pass(601).await;
    let ran = w.blue.list(&jobs).await.unwrap().items.len();
    assert!((1..=3).contains(&ran), "history is limited: {ran}");
    w.blue
        .merge(&cron, &json!({"spec":{"suspend":true}}))
        .await
        .unwrap();
    pass(60).await;
    let before: Vec<_> = w
        .blue
        .list(&jobs)
        .await
        .unwrap()
        .items
        .into_iter()
        .map(|j| j["metadata"]["name"].clone())
        .collect();
    assert!(
        w.blue.get(&cron).await.unwrap().unwrap()["status"]
            .get("active")
            .is_none()
    );
    pass(1200).await;
    let after: Vec<_> = w
        .blue
        .list(&jobs)
        .await
        .unwrap()
        .items
        .into_iter()
        .map(|j| j["metadata"]["name"].clone())
        .collect();
    assert_eq!(before, after);
}
