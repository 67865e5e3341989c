//! Rules 6 to 21 of replay.md: metadata, names, sizes and numbers. A test of each is named `rule_NN_...`; those of the run stand beside it.

use super::rules_01_05::{config, object, wave};
use super::*;
use crate::rewrite::UID_OF;

fn with_owner(mut o: Value, api: &str, kind: &str, name: &str, controller: bool) -> Value {
    let mut owner =
        json!({"apiVersion": api, "kind": kind, "name": name, "uid": format!("uid-of-{name}")});
    if controller {
        owner["controller"] = json!(true);
    }
    o["metadata"]["ownerReferences"] = json!([owner]);
    o
}

fn with_uid(mut o: Value, uid: &str) -> Value {
    o["metadata"]["uid"] = json!(uid);
    o
}

#[test]
fn rule_06_what_the_server_owns_stays_on_blue() {
    let mut o = config("c");
    for (key, value) in [
        ("uid", json!("u")),
        ("resourceVersion", json!("1")),
        ("generation", json!(2)),
        ("selfLink", json!("/api/v1/namespaces/shop/configmaps/c")),
        ("creationTimestamp", json!("2020-01-01T00:00:00Z")),
        ("managedFields", json!([{"manager": "kubectl"}])),
    ] {
        o["metadata"][key] = value;
    }
    let p = planned(vec![o]);
    assert_eq!(
        target(&p, "configmap/shop/c")["metadata"],
        json!({"name": "c", "namespace": "shop"})
    );
    assert_eq!(of(&p, "configmap/shop/c").rules, ["replay.md 6"]);
    assert_eq!(of(&p, "configmap/shop/c").verdict, Fate::Copied);
}

#[test]
fn rule_07_kubernetes_32220_an_object_with_a_name_is_created_by_that_name_only() {
    let mut o = config("job-x7k2p");
    o["metadata"]["generateName"] = json!("job-");
    let p = planned(vec![o]);
    let id = "configmap/shop/job-x7k2p";
    assert!(target(&p, id)["metadata"].get("generateName").is_none());
    assert_eq!(target(&p, id)["metadata"]["name"], "job-x7k2p");
    assert_eq!(of(&p, id).rules, ["replay.md 7"]);
}

#[test]
fn rule_08_what_is_being_deleted_is_not_brought_to_life_again() {
    let mut o = config("going");
    o["metadata"]["deletionTimestamp"] = json!("2026-11-30T10:00:00Z");
    o["metadata"]["deletionGracePeriodSeconds"] = json!(0);
    let p = planned(vec![o]);
    assert_eq!(of(&p, "configmap/shop/going").verdict, Fate::Skipped);
    assert!(
        of(&p, "configmap/shop/going")
            .rules
            .contains(&"replay.md 8".to_string())
    );
    says(
        &p,
        "OBJ-deleting",
        "configmap/shop/going",
        Severity::Warning,
        "being deleted",
    );
}

#[test]
fn rule_09_velero_1687_no_kind_takes_its_status_along() {
    // Not even a custom resource whose controller keeps state there.
    for mut o in [
        object("shop.test/v1", "Promotion", "summer"),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "summer", "namespace": "shop"}, "spec": {"type": "LoadBalancer", "ports": []}}),
    ] {
        o["status"] =
            json!({"loadBalancer": {"ingress": [{"hostname": "blue.elb.amazonaws.com"}]}});
        let id = crate::object::ObjectId::of(&o).expect("an id").to_string();
        let p = planned(vec![o]);
        assert!(target(&p, &id).get("status").is_none(), "{id}");
        assert!(of(&p, &id).rules.contains(&"replay.md 9".to_string()));
    }
}

#[test]
fn rule_10_velero_4707_an_owner_that_comes_along_is_named_and_created_first() {
    let owner = with_uid(
        object("shop.test/v1", "Promotion", "summer"),
        "uid-of-summer",
    );
    let p = planned(vec![
        with_owner(
            object("v1", "Secret", "coupon"),
            "shop.test/v1",
            "Promotion",
            "summer",
            false,
        ),
        owner,
        // Owned by what is owned.
        with_owner(
            with_uid(object("shop.test/v1", "Coupon", "c1"), "uid-of-c1"),
            "shop.test/v1",
            "Promotion",
            "summer",
            false,
        ),
        with_owner(config("deep"), "shop.test/v1", "Coupon", "c1", false),
    ]);
    assert_eq!(
        target(&p, "secret/shop/coupon")["metadata"]["ownerReferences"],
        json!([{"apiVersion": "shop.test/v1", "kind": "Promotion", "name": "summer",
            "uid": format!("{UID_OF}promotion.shop.test/shop/summer")}])
    );
    assert!(found(&p, "WL-09", "secret/shop/coupon").is_empty());
    assert_eq!(wave(&p, "promotion.shop.test/shop/summer"), "replay/custom");
    assert_eq!(wave(&p, "secret/shop/coupon"), "replay/custom-2");
    assert_eq!(wave(&p, "coupon.shop.test/shop/c1"), "replay/custom-2");
    assert_eq!(wave(&p, "configmap/shop/deep"), "replay/custom-3");
}

#[test]
fn rule_10_an_owner_in_an_old_version_is_named_in_greens() {
    let mut owner = with_uid(
        object("extensions/v1beta1", "Deployment", "web"),
        "uid-of-web",
    );
    owner["spec"] =
        json!({"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}}});
    let p = planned(vec![
        owner,
        with_owner(
            config("c"),
            "extensions/v1beta1",
            "Deployment",
            "web",
            false,
        ),
    ]);
    let named = &target(&p, "configmap/shop/c")["metadata"]["ownerReferences"][0];
    assert_eq!(named["apiVersion"], "apps/v1");
    assert_eq!(named["uid"], format!("{UID_OF}deployment/shop/web"));
    assert_eq!(wave(&p, "configmap/shop/c"), "replay/workloads-2");
}

#[test]
fn rule_10_cluster_api_6007_what_a_controller_makes_again_is_skipped() {
    let p = planned(vec![
        with_uid(
            object("shop.test/v1", "Promotion", "summer"),
            "uid-of-summer",
        ),
        with_owner(config("made"), "shop.test/v1", "Promotion", "summer", true),
        // Its controller is gone from blue: nobody would make it again.
        with_owner(
            config("orphan"),
            "shop.test/v1",
            "Promotion",
            "winter",
            true,
        ),
    ]);
    assert_eq!(of(&p, "configmap/shop/made").verdict, Fate::Skipped);
    assert_eq!(of(&p, "configmap/shop/made").rules, ["replay.md 10"]);
    assert!(
        target(&p, "configmap/shop/orphan")["metadata"]
            .get("ownerReferences")
            .is_none()
    );
    says(
        &p,
        "WL-09",
        "configmap/shop/orphan",
        Severity::Warning,
        "not there on blue",
    );
}

#[test]
fn rule_10_owners_that_are_absent_elsewhere_recreated_or_left_behind_are_dropped_and_a_pod_makes_a_lock()
 {
    let mut elsewhere = with_uid(object("shop.test/v1", "Promotion", "far"), "uid-of-far");
    elsewhere["metadata"]["namespace"] = json!("other");
    let recreated = with_uid(object("shop.test/v1", "Promotion", "new"), "another-uid");
    let left = with_uid(object("shop.test/v1", "Promotion", "left"), "uid-of-left");
    let owned = |name: &str, owner: &str| {
        with_owner(config(name), "shop.test/v1", "Promotion", owner, false)
    };
    let mut s = Snapshot::default();
    s.blue.objects = vec![
        elsewhere,
        recreated,
        left,
        owned("a", "nowhere"),
        owned("b", "far"),
        owned("c", "new"),
        owned("d", "left"),
        with_owner(config("lock"), "v1", "Pod", "leader-0", false),
    ];
    let mut spec = spec();
    spec.workloads.skip = vec!["promotion.shop.test/shop/left".into()];
    let p = plan(&spec, &s);
    for (name, why) in [
        ("a", "not there on blue"),
        ("b", "namespace other"),
        ("c", "not there on blue"),
        ("d", "not created on green"),
    ] {
        let id = format!("configmap/shop/{name}");
        assert!(
            target(&p, &id)["metadata"].get("ownerReferences").is_none(),
            "{id}"
        );
        says(&p, "WL-09", &id, Severity::Warning, why);
    }
    assert_eq!(of(&p, "configmap/shop/lock").verdict, Fate::Skipped);
    assert_eq!(of(&p, "configmap/shop/lock").rules, ["replay.md 10"]);
}

#[test]
fn rule_11_no_finalizer_comes_along_that_could_hold_the_way_back_or_delete_in_the_cloud() {
    let mut binding = object("v1", "Service", "edge");
    binding["spec"] = json!({"type": "LoadBalancer", "ports": []});
    binding["metadata"]["finalizers"] = json!(["service.k8s.aws/resources", "foregroundDeletion"]);
    let p = planned(vec![
        binding,
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}, "spec": {"finalizers": ["kubernetes"]}}),
    ]);
    let id = "service/shop/edge";
    assert!(target(&p, id)["metadata"].get("finalizers").is_none());
    assert!(of(&p, id).rules.contains(&"replay.md 11".to_string()));
    assert_eq!(
        target(&p, "namespace/shop"),
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    );
}

#[test]
fn rule_12_annotations_that_only_tell_blues_doings_go_and_peoples_stay() {
    let mut o = config("c");
    let doings = [
        "deployment.kubernetes.io/revision",
        "deprecated.daemonset.template.generation",
        "pv.kubernetes.io/bind-completed",
        "pv.kubernetes.io/migrated-to",
        "volume.kubernetes.io/storage-provisioner",
        "volume.beta.kubernetes.io/storage-provisioner",
        "volume.kubernetes.io/selected-node",
        "batch.kubernetes.io/job-tracking",
        "kubernetes.io/service-account.uid",
        "kubernetes.io/psp",
        "addons.k8s.io/core.addons.k8s.io",
        "endpoints.kubernetes.io/last-change-trigger-time",
        "rbac.authorization.kubernetes.io/autoupdate",
        "velero.io/csi-volumesnapshot-handle",
        "elbv2.k8s.aws/checkpoint",
        "elbv2.k8s.aws/checkpoint-timestamp",
    ];
    for key in doings {
        o["metadata"]["annotations"][key] = json!("x");
    }
    o["metadata"]["annotations"]["meta.helm.sh/release-name"] = json!("web");
    o["metadata"]["annotations"]["kubernetes.io/description"] = json!("ours");
    let p = planned(vec![o]);
    assert_eq!(
        target(&p, "configmap/shop/c")["metadata"]["annotations"],
        json!({"meta.helm.sh/release-name": "web", "kubernetes.io/description": "ours"})
    );
    assert_eq!(of(&p, "configmap/shop/c").rules, ["replay.md 12"]);
}

#[test]
fn rule_13_the_last_applied_text_is_read_for_what_its_owner_asked_and_then_left_out() {
    let mut o = object("v1", "Service", "web");
    o["spec"] = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}, {"port": 81, "nodePort": 30081}]});
    o["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = json!(
        r#"{"spec":{"type":"NodePort","clusterIP":"100.64.0.9","ports":[{"port":80,"nodePort":30080}]}}"#
    );
    let p = planned(vec![o]);
    let t = target(&p, "service/shop/web");
    assert!(t["metadata"].get("annotations").is_none());
    assert_eq!(
        t["spec"]["ports"],
        json!([{"port": 80, "nodePort": 30080}, {"port": 81}])
    );
    assert!(
        of(&p, "service/shop/web")
            .rules
            .contains(&"replay.md 13".to_string())
    );
}

#[test]
fn rule_16_what_the_server_would_refuse_as_too_big_blocks_the_plan() {
    let mut values = config("values");
    values["data"] = json!({"a": "x".repeat(1 << 20), "b": "y"});
    let mut fits = config("fits");
    fits["data"] = json!({"a": "x".repeat(1 << 20)});
    let mut notes = config("notes");
    // Blue takes it; our marks do not go in any more.
    notes["metadata"]["annotations"] = json!({"a": "x".repeat((256 << 10) - 10)});
    let mut custom = object("shop.test/v1", "Promotion", "big");
    custom["spec"] = json!({"text": "x".repeat((3 << 19) - 300)});
    let mut secret = object("v1", "Secret", "hashed");
    secret["data"] = json!({"a": format!("hmac-sha256:{}:{}", "0".repeat(64), (1 << 20) + 1)});
    let p = planned(vec![values, fits, notes, custom, secret]);
    for (id, part) in [
        ("configmap/shop/values", "1048577 bytes"),
        ("configmap/shop/notes", "annotations"),
        ("promotion.shop.test/shop/big", "takes 1572864"),
        ("secret/shop/hashed", "1048577 bytes"),
    ] {
        says(&p, "API-08", id, Severity::Blocker, part);
    }
    assert!(found(&p, "API-08", "configmap/shop/fits").is_empty());
}

#[test]
fn rule_18_kubectl_neat_empty_maps_and_lists_are_data() {
    let mut policy = object("networking.k8s.io/v1", "NetworkPolicy", "deny-all");
    policy["spec"] = json!({"podSelector": {}, "ingress": [], "policyTypes": ["Ingress"]});
    let mut web = object("apps/v1", "Deployment", "web");
    web["spec"] = json!({"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "c:1", "resources": {}, "securityContext": {}, "args": []}], "volumes": [{"name": "tmp", "emptyDir": {}}]}}});
    let mut custom = object("shop.test/v1", "Promotion", "summer");
    custom["spec"] = json!({"rules": [], "match": {}, "note": null, "text": ""});
    let p = planned(vec![policy.clone(), web.clone(), custom.clone()]);
    assert_eq!(
        target(&p, "networkpolicy/shop/deny-all")["spec"],
        policy["spec"]
    );
    assert_eq!(
        target(&p, "deployment/shop/web")["spec"]["template"],
        web["spec"]["template"]
    );
    assert_eq!(
        target(&p, "promotion.shop.test/shop/summer")["spec"],
        custom["spec"]
    );
}

#[test]
fn rule_19_velero_2319_numbers_are_the_same_after_reading_planning_and_writing() {
    // As text, so that nothing of the test itself goes through a number.
    let numbers = r#"{"big":9007199254740993,"max":9223372036854775807,"min":-9223372036854775808,"one":1.0,"part":0.1,"small":1e-7,"zero":0}"#;
    let as_json = format!(
        r#"{{"apiVersion":"shop.test/v1","kind":"Promotion","metadata":{{"name":"summer","namespace":"shop"}},"spec":{numbers}}}"#
    );
    let as_yaml = format!(
        "apiVersion: shop.test/v1\nkind: Promotion\nmetadata: {{name: summer, namespace: shop}}\nspec: {}\n",
        numbers.replace(':', ": ")
    );
    for text in [as_json, as_yaml] {
        let objects: Vec<Value> = crate::yaml::manifests(&text, "x")
            .into_iter()
            .map(|r| r.expect("a manifest").0)
            .collect();
        let p = planned(objects);
        let t = target(&p, "promotion.shop.test/shop/summer");
        assert_eq!(t["spec"].to_string(), numbers);
        // Through the plan's file and the canonical form that hashes are made of.
        let stored: Value =
            serde_json::from_str(&crate::object::canonical(t)).expect("it reads back");
        assert_eq!(stored["spec"].to_string(), numbers);
        assert_eq!(crate::object::digest(&stored), crate::object::digest(t));
    }
}

#[test]
fn rule_19_a_number_that_no_api_server_holds_exactly_becomes_what_the_server_makes_of_it() {
    // Above 2^64 Go's reader of unstructured objects takes a float64, so blue itself has lost these digits before we read them.
    let read: Value = serde_json::from_str("18446744073709551617").expect("a number");
    assert_eq!(read.as_f64(), Some(18446744073709551616.0));
    let exact: Value = serde_json::from_str("18446744073709551615").expect("a number");
    assert_eq!(exact.to_string(), "18446744073709551615");
}

#[test]
fn rule_21_every_object_keeps_its_namespace_and_no_setting_offers_another() {
    for n in 1..=25 {
        let objects = corpus(&format!("{n:02}"));
        let p = planned(objects);
        for v in p.verdicts.all().iter().filter(|v| v.target.is_some()) {
            let ns = v
                .target
                .as_ref()
                .and_then(|t| t["metadata"]["namespace"].as_str());
            let mut parts = v.object.split('/').skip(1);
            let named = parts.next().filter(|_| parts.next().is_some());
            assert_eq!(ns, named, "{}", v.object);
        }
    }
    let text = "apiVersion: crossfade.dev/v1alpha1\nkind: Migration\nname: demo\nblue: {cluster: blue.example.com}\ngreen: {name: green, version: '1.36'}\nworkloads: {namespaces: {shop: store}}\n";
    let refused = crate::yaml::strict::<Spec>(text, "migration.yaml").expect_err("not offered");
    assert!(refused.message.contains("namespaces"), "{refused:?}");
}
