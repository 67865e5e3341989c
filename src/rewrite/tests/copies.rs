//! What is copied and what is hashed: no more than green needs, and the same whichever way it is done.

use serde_json::json;

#[test]
fn the_hash_of_an_object_is_the_digest_of_what_the_planner_looks_at_and_nothing_else() {
    use crate::object::digest;
    let deployment = json!({"status": {"replicas": 3}, "kind": "Deployment", "apiVersion": "apps/v1", "spec": {"replicas": 3, "paused": false},
        "metadata": {"uid": "u", "name": "web", "labels": {}, "annotations": {"team": "a", "deployment.kubernetes.io/revision": "7", "app": "b"}}});
    assert_eq!(
        crate::rewrite::basis_hash(&deployment),
        digest(
            &json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"annotations": {"app": "b", "team": "a"}, "name": "web"}, "spec": {"paused": false}})
        )
    );
    let secret = json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s", "namespace": "n", "annotations": {"deployment.kubernetes.io/revision": "7"}},
        "data": {"b": "x", "a": "y"}, "stringData": {"c": "z"}, "type": "Opaque"});
    assert_eq!(
        crate::rewrite::basis_hash(&secret),
        digest(
            &json!({"apiVersion": "v1", "data": {"a": "", "b": ""}, "kind": "Secret", "metadata": {"name": "s", "namespace": "n"}, "stringData": {"c": ""}, "type": "Opaque"})
        )
    );
    assert_eq!(
        crate::rewrite::basis_hash(&json!({"kind": "Odd"})),
        digest(&json!({"kind": "Odd", "metadata": {}}))
    );
}

#[test]
fn what_every_object_loses_is_never_copied_and_each_loss_leaves_its_rule() {
    let r = crate::rewrite::rewrite(
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "shop", "uid": "u", "managedFields": [{}], "finalizers": ["x"],
            "generateName": "c-", "labels": {"a": "b"}, "annotations": {"velero.io/backup": "1", "kubectl.kubernetes.io/last-applied-configuration": "{}"}},
            "data": {"k": "v"}, "status": {}}),
        &crate::rewrite::Context::default(),
    );
    assert_eq!(
        r.target,
        Some(
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "shop", "labels": {"a": "b"}}, "data": {"k": "v"}})
        )
    );
    for rule in [6, 7, 9, 11, 12, 13] {
        assert!(r.rules.contains(&format!("replay.md {rule}")), "{rule}");
    }
}

#[test]
fn a_traced_rewrite_comes_to_the_same_as_one_that_copies_only_what_is_kept() {
    let cx = crate::rewrite::Context::default();
    let meta = |more: serde_json::Value| {
        let mut meta =
            json!({"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "1"});
        for (k, v) in more.as_object().expect("a map") {
            meta[k] = v.clone();
        }
        meta
    };
    for more in [
        json!({}),
        json!({"annotations": {}}),
        json!({"annotations": null, "labels": null}),
        json!({"annotations": {"kubernetes.io/psp": "x"}, "generateName": "w-"}),
        json!({"annotations": {"own": "x", "velero.io/a": "y", "kubectl.kubernetes.io/last-applied-configuration": "{}"}, "finalizers": ["f"]}),
        json!({"deletionTimestamp": "2026-11-30T00:00:00Z"}),
        json!({"ownerReferences": [{"kind": "Pod", "name": "p"}]}),
        json!({"ownerReferences": [{"kind": "Widget", "name": "w", "controller": true}]}),
    ] {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta(more), "data": {"k": "v"}, "status": {}});
        let plain = crate::rewrite::rewrite(&object, &cx);
        assert_eq!(crate::rewrite::trace(&object, &cx).0, plain, "{object}");
    }
}
