use super::compare::{Field, Options, Outcome, compare};
use super::secret;
use super::{Managers, Op, Path, apply_ops};
use crate::snapshot::mask::Key;
use serde_json::{Value, json};

/// An object of a kind with a spec, as the plan would create it.
fn object(kind: &str, spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "x", "namespace": "n"}, "spec": spec})
}

fn config(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "n"}, "data": data})
}

fn deployment(pod: Value) -> Value {
    object(
        "Deployment",
        json!({"replicas": 0, "selector": {"matchLabels": {"app": "x"}}, "template": {"spec": pod}}),
    )
}

/// With what `managedFields` say: manager, operation, fields.
fn managed(mut object: Value, entries: &[(&str, Value)]) -> Value {
    object["metadata"]["managedFields"] = entries
        .iter()
        .map(|(manager, fields)| {
            json!({"manager": manager, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": fields})
        })
        .collect();
    object
}

fn with(mut object: Value, pointer: &str, value: Value) -> Value {
    Path::pointer(pointer).set(&mut object, value);
    object
}

fn without(mut object: Value, pointer: &str) -> Value {
    Path::pointer(pointer).remove(&mut object);
    object
}

fn three(base: &Value, now: &Value, green: &Value) -> Outcome {
    compare(base, now, green, &Options::default())
}

fn paths(fields: &[Field]) -> Vec<String> {
    fields.iter().map(|f| f.path.to_string()).collect()
}

/// What green is after the changes.
fn brought(outcome: &Outcome, green: &Value) -> Value {
    let mut green = green.clone();
    apply_ops(&mut green, &outcome.ops());
    green
}

#[test]
fn what_only_blue_changed_is_brought_and_what_only_green_changed_is_left() {
    let base = config(json!({"a": "1", "b": "1", "c": "1"}));
    let now = with(base.clone(), "/data/a", json!("2"));
    let green = with(base.clone(), "/data/b", json!("9"));
    let out = three(&base, &now, &green);
    assert_eq!(paths(&out.bring), ["data.a"]);
    assert_eq!(paths(&out.kept), ["data.b"]);
    assert!(out.conflicts.is_empty() && out.recreate.is_empty());
    assert_eq!(
        brought(&out, &green)["data"],
        json!({"a": "2", "b": "9", "c": "1"})
    );
}

#[test]
fn a_field_that_both_changed_differently_is_a_conflict_and_not_written() {
    let base = config(json!({"a": "1"}));
    let now = with(base.clone(), "/data/a", json!("2"));
    let green = with(base.clone(), "/data/a", json!("3"));
    let out = three(&base, &now, &green);
    let [conflict] = out.conflicts.as_slice() else {
        panic!("{out:?}");
    };
    assert_eq!(
        (&conflict.base, &conflict.blue, &conflict.green),
        (&Some(json!("1")), &Some(json!("2")), &Some(json!("3")))
    );
    assert_eq!(out.ops(), []);
}

#[test]
fn a_field_that_both_changed_alike_is_nothing() {
    let base = config(json!({"a": "1", "b": "1"}));
    let both = without(with(base.clone(), "/data/a", json!("2")), "/data/b");
    assert!(three(&base, &both, &both).is_equal());
}

#[test]
fn a_key_that_blue_took_away_is_taken_away_and_one_that_green_took_away_stays_away() {
    let base = config(json!({"a": "1", "b": "1", "c": "1"}));
    let now = without(base.clone(), "/data/a");
    let green = without(base.clone(), "/data/b");
    let out = three(&base, &now, &green);
    assert_eq!(
        out.ops(),
        [Op {
            path: Path::keys(&["data", "a"]),
            value: None,
            was: Some(json!("1"))
        }]
    );
    assert_eq!(paths(&out.kept), ["data.b"]);
    assert_eq!(brought(&out, &green)["data"], json!({"c": "1"}));
}

#[test]
fn defaults_that_greens_server_adds_are_no_changes() {
    let base = deployment(json!({"containers": [{"name": "web", "image": "shop/web:1"}]}));
    let green = managed(
        deployment(
            json!({"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "containers": [
            {"name": "web", "image": "shop/web:1", "imagePullPolicy": "IfNotPresent", "resources": {}}]}),
        ),
        &[(
            "crossfade",
            json!({"f:spec": {"f:template": {"f:spec": {"f:restartPolicy": {}, "f:dnsPolicy": {}, "f:containers": {
            "k:{\"name\":\"web\"}": {".": {}, "f:name": {}, "f:image": {}, "f:imagePullPolicy": {}, "f:resources": {}}}}}}}),
        )],
    );
    assert!(three(&base, &base, &green).is_equal());
    let now = with(
        base.clone(),
        "/spec/template/spec/containers",
        json!([{"name": "web", "image": "shop/web:2"}]),
    );
    let out = three(&base, &now, &green);
    assert_eq!(
        paths(&out.bring),
        ["spec.template.spec.containers[web].image"]
    );
    let after = brought(&out, &green);
    let web = &after["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(web["image"], "shop/web:2");
    assert_eq!(
        web["imagePullPolicy"], "IfNotPresent",
        "the defaults beside stay"
    );
}

#[test]
fn a_sidecar_that_somebody_added_on_green_is_left_and_the_image_beside_it_is_brought() {
    let base = deployment(json!({"containers": [{"name": "web", "image": "a:1"}]}));
    let now = deployment(json!({"containers": [{"name": "web", "image": "a:2"}]}));
    let green = managed(
        deployment(
            json!({"containers": [{"name": "web", "image": "a:1"}, {"name": "debug", "image": "busybox"}]}),
        ),
        &[
            (
                "crossfade",
                json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:image": {}}}}}}}),
            ),
            (
                "kubectl-edit",
                json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"debug\"}": {".": {}, "f:image": {}}}}}}}),
            ),
        ],
    );
    let out = three(&base, &now, &green);
    assert_eq!(
        paths(&out.bring),
        ["spec.template.spec.containers[web].image"]
    );
    assert_eq!(paths(&out.kept), ["spec.template.spec.containers[debug]"]);
    assert_eq!(out.kept[0].who, ["kubectl-edit"]);
    let after = brought(&out, &green);
    let list = after["spec"]["template"]["spec"]["containers"]
        .as_array()
        .expect("list");
    assert_eq!(list.len(), 2, "nothing of green is lost");
}

#[test]
fn named_items_are_matched_by_name_wherever_they_stand() {
    let env = |list: Value| deployment(json!({"containers": [{"name": "web", "env": list}]}));
    let base = env(json!([{"name": "A", "value": "1"}, {"name": "B", "value": "1"}]));
    let now = env(
        json!([{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "C", "value": "1"}]),
    );
    // Somebody put one in front on green.
    let green = env(
        json!([{"name": "Z", "value": "9"}, {"name": "A", "value": "1"}, {"name": "B", "value": "1"}]),
    );
    let out = three(&base, &now, &green);
    assert_eq!(
        paths(&out.bring),
        [
            "spec.template.spec.containers[web].env[B].value",
            "spec.template.spec.containers[web].env[C]"
        ]
    );
    let after = brought(&out, &green);
    assert_eq!(
        after["spec"]["template"]["spec"]["containers"][0]["env"],
        json!([{"name": "Z", "value": "9"}, {"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "C", "value": "1"}])
    );
}

#[test]
fn ports_are_known_by_number_and_protocol_and_mounts_by_path() {
    let base = deployment(
        json!({"containers": [{"name": "web", "ports": [{"containerPort": 53}], "volumeMounts": [{"name": "d", "mountPath": "/data"}]}]}),
    );
    let now = deployment(
        json!({"containers": [{"name": "web", "ports": [{"containerPort": 53}, {"containerPort": 53, "protocol": "UDP"}], "volumeMounts": [{"name": "d", "mountPath": "/data", "readOnly": true}]}]}),
    );
    let green = deployment(
        json!({"containers": [{"name": "web", "ports": [{"containerPort": 53, "protocol": "TCP"}], "volumeMounts": [{"name": "d", "mountPath": "/data"}]}]}),
    );
    let out = three(&base, &now, &green);
    assert_eq!(
        paths(&out.bring),
        [
            "spec.template.spec.containers[web].ports[53/UDP]",
            "spec.template.spec.containers[web].volumeMounts[/data].readOnly"
        ]
    );
    let service = |ports: Value| object("Service", json!({"ports": ports}));
    let out = three(
        &service(json!([{"port": 80, "targetPort": 8080}])),
        &service(json!([{"port": 80, "targetPort": 9090}])),
        &service(json!([{"port": 80, "protocol": "TCP", "targetPort": 8080, "nodePort": 31000}])),
    );
    assert_eq!(paths(&out.bring), ["spec.ports[80/TCP].targetPort"]);
}

#[test]
fn a_list_that_the_api_does_not_key_is_one_value() {
    let binding = |subjects: Value| json!({"kind": "RoleBinding", "metadata": {"name": "x"}, "subjects": subjects, "roleRef": {"name": "r"}});
    let a = json!({"kind": "User", "name": "a"});
    let b = json!({"kind": "User", "name": "b"});
    let c = json!({"kind": "User", "name": "c"});
    let out = three(
        &binding(json!([a])),
        &binding(json!([a, b])),
        &binding(json!([a])),
    );
    assert_eq!(paths(&out.bring), ["subjects"]);
    // Both added one: neither is lost silently.
    let out = three(
        &binding(json!([a])),
        &binding(json!([a, b])),
        &binding(json!([a, c])),
    );
    assert_eq!(paths(&out.conflicts), ["subjects"]);
    // The same name twice cannot be told apart: one value.
    let twice = |v: &str| {
        deployment(
            json!({"containers": [{"name": "w", "env": [{"name": "A", "value": v}, {"name": "A", "value": "2"}]}]}),
        )
    };
    let out = three(&twice("1"), &twice("3"), &twice("1"));
    assert_eq!(paths(&out.bring), ["spec.template.spec.containers[w].env"]);
}

#[test]
fn init_containers_that_blue_put_in_another_order_are_brought_as_a_whole() {
    let pod =
        |names: [&str; 2]| deployment(json!({"initContainers": names.map(|n| json!({"name": n}))}));
    let out = three(&pod(["a", "b"]), &pod(["b", "a"]), &pod(["a", "b"]));
    assert_eq!(paths(&out.bring), ["spec.template.spec.initContainers"]);
}

#[test]
fn a_probe_that_blue_removed_goes_with_the_defaults_that_green_put_beside_it() {
    let probe = json!({"httpGet": {"path": "/", "port": 80}});
    let base = deployment(json!({"containers": [{"name": "w", "readinessProbe": probe}]}));
    let now = deployment(json!({"containers": [{"name": "w"}]}));
    let mut green = base.clone();
    green["spec"]["template"]["spec"]["containers"][0]["readinessProbe"]["periodSeconds"] =
        json!(10);
    let out = three(&base, &now, &green);
    assert_eq!(
        paths(&out.bring),
        ["spec.template.spec.containers[w].readinessProbe"]
    );
    assert_eq!(
        brought(&out, &green)["spec"]["template"]["spec"]["containers"][0],
        json!({"name": "w"})
    );
    // Somebody tuned it on green meanwhile: half a probe would be refused, and their work lost.
    let green = managed(
        green,
        &[(
            "kubectl-edit",
            json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"w\"}": {"f:readinessProbe": {"f:periodSeconds": {}}}}}}}}),
        )],
    );
    let out = three(&base, &now, &green);
    assert_eq!(
        paths(&out.conflicts),
        ["spec.template.spec.containers[w].readinessProbe"]
    );
}

#[test]
fn the_last_label_that_blue_removed_does_not_take_away_those_that_others_put_there() {
    let base = json!({"kind": "ConfigMap", "metadata": {"name": "x", "labels": {"team": "a"}}});
    let now = json!({"kind": "ConfigMap", "metadata": {"name": "x"}});
    let green = managed(
        json!({"kind": "ConfigMap", "metadata": {"name": "x", "labels": {"team": "a", "cost": "9"}}}),
        &[(
            "cost-tool",
            json!({"f:metadata": {"f:labels": {"f:cost": {}}}}),
        )],
    );
    let out = three(&base, &now, &green);
    assert_eq!(paths(&out.bring), ["metadata.labels.team"]);
    assert_eq!(paths(&out.kept), ["metadata.labels.cost"]);
    assert_eq!(
        brought(&out, &green)["metadata"]["labels"],
        json!({"cost": "9"})
    );
}

#[test]
fn park_fields_and_marks_and_what_servers_own_are_not_compared() {
    let base = deployment(json!({"containers": [{"name": "w"}]}));
    let mut now = base.clone();
    now["spec"]["replicas"] = json!(0);
    let mut green = base.clone();
    green["spec"]["replicas"] = json!(3);
    green["status"] = json!({"readyReplicas": 3});
    green["metadata"]["annotations"] = json!({"crossfade.dev/run": "r", "crossfade.dev/content": "c", "deployment.kubernetes.io/revision": "4"});
    green["metadata"]["uid"] = json!("1");
    green["metadata"]["generation"] = json!(7);
    let park = Options {
        park: vec!["/spec/replicas".into()],
    };
    assert!(compare(&base, &now, &green, &park).is_equal());
    assert_eq!(
        paths(&three(&base, &now, &green).kept),
        ["spec.replicas"],
        "without parking it would be a change on green"
    );
}

#[test]
fn the_servers_own_spelling_of_what_we_wrote_is_ours_still() {
    let limits = |cpu: &str| {
        deployment(
            json!({"containers": [{"name": "w", "resources": {"limits": {"cpu": cpu, "memory": "1Gi"}}}]}),
        )
    };
    // Without managedFields by its meaning ...
    assert!(three(&limits("1000m"), &limits("1000m"), &limits("1")).is_equal());
    let mut green = limits("0.5");
    green["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"] =
        json!("1024Mi");
    assert!(three(&limits("500m"), &limits("500m"), &green).is_equal());
    // ... and with them by who holds it.
    let odd = |v: &str| json!({"kind": "Odd", "metadata": {"name": "x"}, "spec": {"window": v}});
    let green = managed(
        odd("0h1m"),
        &[("crossfade", json!({"f:spec": {"f:window": {}}}))],
    );
    assert!(three(&odd("60s"), &odd("60s"), &green).is_equal());
    let out = three(&odd("60s"), &odd("90s"), &green);
    assert_eq!(paths(&out.bring), ["spec.window"]);
    // A change by somebody is one.
    let green = managed(
        odd("5m"),
        &[("kubectl-edit", json!({"f:spec": {"f:window": {}}}))],
    );
    let out = three(&odd("60s"), &odd("60s"), &green);
    assert_eq!(
        (paths(&out.kept), &out.kept[0].who),
        (
            vec!["spec.window".to_string()],
            &vec!["kubectl-edit".to_string()]
        )
    );
}

#[test]
fn empty_maps_are_data_on_blue_and_nothing_where_a_server_drops_them() {
    let policy =
        |spec: Value| json!({"kind": "NetworkPolicy", "metadata": {"name": "x"}, "spec": spec});
    let base = policy(json!({"podSelector": {}, "ingress": []}));
    assert!(three(&base, &base, &policy(json!({"podSelector": {}}))).is_equal());
    // rule 18: blue opened a peer to everybody with an empty selector.
    let now = policy(json!({"podSelector": {}, "ingress": [{"from": [{"podSelector": {}}]}]}));
    assert_eq!(paths(&three(&base, &now, &base).bring), ["spec.ingress"]);
}

#[test]
fn rule_68_a_field_that_no_server_lets_change_makes_the_object_one_to_be_made_again() {
    for (kind, pointer) in [
        ("Service", "/spec/clusterIP"),
        ("Service", "/spec/loadBalancerClass"),
        ("StatefulSet", "/spec/volumeClaimTemplates"),
        ("StatefulSet", "/spec/serviceName"),
        ("Deployment", "/spec/selector/matchLabels/app"),
        ("DaemonSet", "/spec/selector/matchLabels/app"),
        ("Job", "/spec/template/spec/restartPolicy"),
        ("PersistentVolumeClaim", "/spec/storageClassName"),
        ("PersistentVolume", "/spec/csi/volumeHandle"),
        ("StorageClass", "/parameters/type"),
        ("RoleBinding", "/roleRef/name"),
        ("ClusterRoleBinding", "/roleRef/name"),
        ("RuntimeClass", "/handler"),
        ("Secret", "/type"),
        ("IngressClass", "/spec/controller"),
    ] {
        let mut base = json!({"kind": kind, "metadata": {"name": "x", "labels": {"a": "1"}}});
        Path::pointer(pointer).set(&mut base, json!("old"));
        let mut now = with(base.clone(), pointer, json!("new"));
        now["metadata"]["labels"]["a"] = json!("2");
        let out = three(&base, &now, &base);
        assert_eq!(out.recreate.len(), 1, "{kind} {pointer}: {out:?}");
        assert_eq!(
            out.ops(),
            [],
            "{kind}: a half changed object is neither the old nor the new one"
        );
    }
    // What of them can change, does.
    for (kind, pointer) in [
        (
            "StatefulSet",
            "/spec/template/spec/terminationGracePeriodSeconds",
        ),
        ("PersistentVolumeClaim", "/spec/resources/requests/storage"),
        ("StorageClass", "/allowVolumeExpansion"),
        ("Service", "/spec/selector/app"),
    ] {
        let mut base = json!({"kind": kind, "metadata": {"name": "x"}});
        Path::pointer(pointer).set(&mut base, json!("1"));
        let out = three(&base, &with(base.clone(), pointer, json!("2")), &base);
        assert_eq!(out.ops().len(), 1, "{kind} {pointer}");
    }
}

#[test]
fn rule_40_data_of_an_immutable_config_map_is_never_patched() {
    let mut base = config(json!({"a": "1"}));
    base["immutable"] = json!(true);
    let now = with(base.clone(), "/data/a", json!("2"));
    assert_eq!(paths(&three(&base, &now, &base).recreate), ["data.a"]);
    // One that only becomes immutable takes its last data with it.
    let base = config(json!({"a": "1"}));
    let mut now = with(base.clone(), "/data/a", json!("2"));
    now["immutable"] = json!(true);
    assert_eq!(three(&base, &now, &base).ops().len(), 2);
}

#[test]
fn secrets_are_compared_by_keyed_hash_and_no_value_is_ever_in_a_result() {
    let key = Key::from_bytes([3; 32]);
    let secret = |a: &str, b: &str| json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": {"name": "x", "namespace": "n"}, "data": {"a": a, "b": b}});
    // CANARY-1, CANARY-2, CANARY-3
    let (one, two, three_) = ("Q0FOQVJZLTE=", "Q0FOQVJZLTI=", "Q0FOQVJZLTM=");
    let target = secret("hmac-sha256:from-blue", "hmac-sha256:from-blue");
    let snapshot = secret::masked(&key, secret(one, one));
    let now = secret::masked(&key, secret(two, one));
    let green = managed(
        secret(one, three_),
        &[
            ("crossfade", json!({"f:data": {".": {}, "f:a": {}}})),
            ("kubectl-edit", json!({"f:data": {"f:b": {}}})),
        ],
    );
    let green = secret::masked(&key, green);
    let base = secret::base(&target, Some(&snapshot), Some(&now), Some(&green));
    let out = three(&base, &now, &green);
    assert_eq!(paths(&out.bring), ["data.a"]);
    assert_eq!(
        (paths(&out.kept), &out.kept[0].who),
        (
            vec!["data.b".to_string()],
            &vec!["kubectl-edit".to_string()]
        )
    );
    let said = format!("{out:?} {}", json!(out));
    for value in [one, two, three_, "CANARY"] {
        assert!(!said.contains(value), "{said}");
    }
}

#[test]
fn a_secret_that_was_rotated_between_snapshot_and_replay_is_what_we_wrote_not_a_conflict() {
    let key = Key::from_bytes([3; 32]);
    let secret = |v: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}, "data": {"a": v}});
    let marked = |v: &str| secret::masked(&key, secret(v));
    let ours = |v: &str| {
        secret::masked(
            &key,
            managed(
                secret(v),
                &[("crossfade", json!({"f:data": {".": {}, "f:a": {}}}))],
            ),
        )
    };
    let target = secret("hmac-sha256:from-blue");
    // Snapshot v1, replayed as v2, blue is v3 now: only blue changed since the replay.
    let (now, green) = (marked("djM="), ours("djI="));
    let base = secret::base(&target, Some(&marked("djE=")), Some(&now), Some(&green));
    assert_eq!(paths(&three(&base, &now, &green).bring), ["data.a"]);
    // Still v2 on blue: nothing to do.
    let now = marked("djI=");
    let base = secret::base(&target, Some(&marked("djE=")), Some(&now), Some(&green));
    assert!(three(&base, &now, &green).is_equal());
}

#[test]
fn what_we_hold_is_extracted_with_the_values_that_green_has() {
    let green = managed(
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x", "namespace": "n", "uid": "1", "resourceVersion": "9", "labels": {"a": "1", "theirs": "1"}},
            "spec": {"replicas": 3, "paused": true, "template": {"spec": {"containers": [{"name": "w", "image": "i", "args": ["x"]}, {"name": "side", "image": "s"}]}}}, "status": {"x": 1}}),
        &[
            (
                "crossfade",
                json!({"f:metadata": {"f:labels": {".": {}, "f:a": {}}}, "f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"w\"}": {".": {}, "f:name": {}, "f:image": {}, "f:args": {}}}}}}}),
            ),
            (
                "kubectl-edit",
                json!({"f:metadata": {"f:labels": {"f:theirs": {}}}, "f:spec": {"f:paused": {}, "f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"side\"}": {".": {}, "f:image": {}}}}}}}),
            ),
        ],
    );
    assert_eq!(
        Managers::of(&green).ours(&green),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x", "namespace": "n", "labels": {"a": "1"}},
            "spec": {"replicas": 3, "template": {"spec": {"containers": [{"name": "w", "image": "i", "args": ["x"]}]}}}})
    );
}

#[test]
fn paths_are_read_back_from_the_journal_as_they_were_written() {
    let base = deployment(
        json!({"containers": [{"name": "w", "ports": [{"containerPort": 1, "protocol": "UDP", "name": "a"}]}]}),
    );
    let mut now = base.clone();
    now["spec"]["template"]["spec"]["containers"][0]["ports"][0]["name"] = json!("b");
    let ops = three(&base, &now, &base).ops();
    let text = json!(ops).to_string();
    assert_eq!(
        text,
        r#"[{"path":["spec","template","spec","containers",{"name":"w"},"ports",{"containerPort":1,"protocol":"UDP"},"name"],"value":"b","was":"a"}]"#
    );
    assert_eq!(serde_json::from_str::<Vec<Op>>(&text).expect("ops"), ops);
}

#[test]
fn a_handler_that_blue_exchanged_for_another_leaves_nothing_of_the_old_one() {
    let volume = |source: Value| {
        let mut v = json!({"name": "v"});
        for (k, x) in source.as_object().into_iter().flatten() {
            v[k] = x.clone();
        }
        deployment(json!({"volumes": [v]}))
    };
    let base = volume(json!({"configMap": {"name": "c"}}));
    let now = volume(json!({"secret": {"secretName": "s"}}));
    let green = volume(json!({"configMap": {"name": "c", "defaultMode": 420}}));
    let out = three(&base, &now, &green);
    assert_eq!(
        brought(&out, &green)["spec"]["template"]["spec"]["volumes"],
        json!([{"name": "v", "secret": {"secretName": "s"}}])
    );
}
