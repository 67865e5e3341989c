//! Pages, server-side apply and who holds what: the twin as strict as the real servers.

use super::company::*;
use crate::object::{Side, resource_version};
use crate::world::kube::{ApplyOptions, CreateOptions, apply_over, upgraded_managers};
use crate::world::twin::Fault;
use crate::world::{Class, World};
use serde_json::{Value, json};

fn settings(data: Value) -> Value {
    json!({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings","namespace":"platform"},"data":data})
}

fn settings_id() -> crate::object::ObjectId {
    id("v1", "ConfigMap", "platform", "settings")
}

async fn read(w: &World) -> Value {
    w.green.get(&settings_id()).await.unwrap().unwrap()
}

#[tokio::test(start_paused = true)]
async fn rule_02_lists_come_in_pages_of_500_and_a_token_that_is_too_old_is_told_apart() {
    let (t, w) = company();
    green_up(&w).await;
    for n in 0..1200 {
        let object = json!({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":format!("c{n:04}"),"namespace":"platform"}});
        t.somebody_creates(Side::Green, &object).unwrap();
    }
    let kinds = w.green.kinds(false).await.unwrap();
    let kind = kinds.iter().find(|k| k.kind == "ConfigMap").unwrap();
    let (mut sizes, mut names, mut token) = (vec![], vec![], None);
    loop {
        let page = w
            .green
            .list_page(kind, Some("platform"), token.as_deref())
            .await
            .unwrap();
        sizes.push((page.items.len(), page.remaining));
        names.extend(
            page.items
                .iter()
                .map(|o| o["metadata"]["name"].as_str().unwrap().to_string()),
        );
        token = page.continue_token;
        if token.is_none() {
            break;
        }
    }
    // 1,200 and the CA bundle that every namespace gets.
    assert_eq!(sizes, [(500, Some(701)), (500, Some(201)), (201, None)]);
    names.dedup();
    assert_eq!(names.len(), 1201, "none twice, none missing");
    let first = w.green.list_page(kind, None, None).await.unwrap();
    t.fail_matching("(next page)", 1, Fault::Expired);
    let e = w
        .green
        .list_page(kind, None, first.continue_token.as_deref())
        .await
        .unwrap_err();
    assert_eq!(e.class, Class::Gone);
    assert!(!e.is_transient(), "the same call can never work again");
}

#[tokio::test(start_paused = true)]
async fn an_apply_never_takes_a_field_from_somebody_else_unless_told_to() {
    let (t, w) = company();
    green_up(&w).await;
    create(&w, &settings(json!({"a": "1", "b": "1"})))
        .await
        .unwrap();
    t.somebody_merges(
        Side::Green,
        &settings_id(),
        &json!({"data": {"a": "theirs"}}),
    )
    .unwrap();
    let there = read(&w).await;
    let wanted = settings(json!({"a": "2", "b": "2"}));
    let e = apply_over(w.green.as_ref(), &there, &wanted, ApplyOptions::default())
        .await
        .unwrap_err();
    assert_eq!(e.class, Class::Conflict);
    assert_eq!(
        e.message,
        "Apply failed with 1 conflict: conflict with \"kubectl-edit\" using v1: .data.a"
    );
    assert_eq!(read(&w).await["data"], json!({"a": "theirs", "b": "1"}));
    let force = ApplyOptions {
        force: true,
        ..ApplyOptions::default()
    };
    apply_over(w.green.as_ref(), &read(&w).await, &wanted, force)
        .await
        .unwrap();
    assert_eq!(read(&w).await["data"], wanted["data"]);
}

#[tokio::test(start_paused = true)]
async fn rule_15_what_we_created_by_post_is_ours_to_apply_and_a_second_apply_changes_nothing() {
    let (t, w) = company();
    green_up(&w).await;
    create(&w, &settings(json!({"a": "1", "gone": "1"})))
        .await
        .unwrap();
    t.somebody_merges(
        Side::Green,
        &settings_id(),
        &json!({"data": {"theirs": "x"}}),
    )
    .unwrap();
    assert!(upgraded_managers(&read(&w).await).is_some());
    let wanted = settings(json!({"a": "2"}));
    apply_over(
        w.green.as_ref(),
        &read(&w).await,
        &wanted,
        ApplyOptions::default(),
    )
    .await
    .unwrap();
    let there = read(&w).await;
    assert_eq!(there["data"], json!({"a": "2", "theirs": "x"}));
    assert_eq!(
        upgraded_managers(&there),
        None,
        "one entry of ours, of apply"
    );
    apply_over(w.green.as_ref(), &there, &wanted, ApplyOptions::default())
        .await
        .unwrap();
    assert_eq!(
        resource_version(&read(&w).await),
        resource_version(&there),
        "nothing moved, managedFields neither"
    );
}

#[tokio::test(start_paused = true)]
async fn an_apply_over_an_object_that_moved_since_it_was_read_is_a_conflict() {
    let (t, w) = company();
    green_up(&w).await;
    create(&w, &settings(json!({"a": "1"}))).await.unwrap();
    let seen = read(&w).await;
    t.somebody_merges(Side::Green, &settings_id(), &json!({"data": {"b": "x"}}))
        .unwrap();
    let e = apply_over(
        w.green.as_ref(),
        &seen,
        &settings(json!({"a": "2"})),
        ApplyOptions::default(),
    )
    .await
    .unwrap_err();
    assert_eq!(e.class, Class::Conflict);
    assert_eq!(read(&w).await["data"], json!({"a": "1", "b": "x"}));
}

#[tokio::test(start_paused = true)]
async fn rule_20_a_field_that_the_schema_does_not_know_is_dropped_with_a_warning_or_refused() {
    let (_, w) = company();
    green_up(&w).await;
    let crd = json!({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"ovens.bakery.test"},
        "spec":{"group":"bakery.test","scope":"Namespaced","names":{"kind":"Oven","plural":"ovens"},
        "versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":
            {"spec":{"type":"object","properties":{"heat":{"type":"integer"},"free":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}}}]}});
    create(&w, &crd).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    let oven = json!({"apiVersion":"bakery.test/v1","kind":"Oven","metadata":{"name":"o","namespace":"platform"},
        "spec":{"heat":250,"colour":"red","free":{"any":{"thing":1}}}});
    let strict = CreateOptions {
        strict: true,
        ..CreateOptions::default()
    };
    let e = w.green.create_heard(&oven, strict).await.unwrap_err();
    assert_eq!(e.class, Class::Refused);
    assert_eq!(
        e.message,
        "strict decoding error: unknown field \"spec.colour\""
    );
    let made = w
        .green
        .create_heard(&oven, CreateOptions::default())
        .await
        .unwrap();
    assert_eq!(made.warnings, ["unknown field \"spec.colour\""]);
    assert_eq!(
        made.object["spec"],
        json!({"heat": 250, "free": {"any": {"thing": 1}}})
    );
}

#[tokio::test(start_paused = true)]
async fn items_of_a_list_are_held_by_name() {
    let (t, w) = company();
    green_up(&w).await;
    let web = |image: &str| {
        json!({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"w","namespace":"platform"},"spec":{
        "replicas":0,"selector":{"matchLabels":{"app":"w"}},"template":{"metadata":{"labels":{"app":"w"}},
        "spec":{"containers":[{"name":"web","image":image}]}}}})
    };
    create(&w, &web("a:1")).await.unwrap();
    let place = id("apps/v1", "Deployment", "platform", "w");
    let body = json!({"spec":{"template":{"spec":{"containers":[{"name":"web","image":"a:1"},{"name":"side","image":"s:1"}]}}}});
    t.somebody_merges(Side::Green, &place, &body).unwrap();
    let there = w.green.get(&place).await.unwrap().unwrap();
    apply_over(
        w.green.as_ref(),
        &there,
        &web("a:2"),
        ApplyOptions::default(),
    )
    .await
    .unwrap();
    let there = w.green.get(&place).await.unwrap().unwrap();
    assert_eq!(
        there.pointer("/spec/template/spec/containers").unwrap(),
        &json!([{"name":"web","image":"a:2"},{"name":"side","image":"s:1"}])
    );
    let body = json!({"spec":{"template":{"spec":{"containers":[{"name":"web","image":"mine"},{"name":"side","image":"s:1"}]}}}});
    t.somebody_merges(Side::Green, &place, &body).unwrap();
    let there = w.green.get(&place).await.unwrap().unwrap();
    let e = apply_over(
        w.green.as_ref(),
        &there,
        &web("a:3"),
        ApplyOptions::default(),
    )
    .await
    .unwrap_err();
    assert!(
        e.message
            .contains(".spec.template.spec.containers[name=\"web\"].image"),
        "{}",
        e.message
    );
}
