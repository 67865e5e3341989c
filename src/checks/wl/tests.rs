use crate::checks::testing::*;
use crate::plan::model::Severity::{self, Blocker, Info, Warning};
use crate::plan::plan;
use serde_json::{Value, json};

fn core(kind: &str, name: &str, parts: Value) -> Value {
    let mut o =
        json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "n"}});
    for (k, v) in parts.as_object().into_iter().flatten() {
        o[k] = v.clone();
    }
    o
}

#[test]
fn what_the_rewrite_says_is_heard_under_the_id_of_its_check() {
    let job = |status: Value| json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "n"}, "spec": {"template": {"spec": {"containers": []}}}, "status": status});
    let done = job(json!({"conditions": [{"type": "Complete", "status": "True"}]}));
    let set = |claims: Value| {
        workload(
            "StatefulSet",
            "db",
            json!({"volumeClaimTemplates": claims}),
            json!({}),
        )
    };
    let claim = json!([{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]);
    let owned = |kind: &str| {
        let mut o = core("ConfigMap", "c", json!({}));
        o["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "shop.test/v1", "kind": kind, "name": "gone", "uid": "u"}]);
        o
    };
    let held = |n: u64| workload("Deployment", "web", json!({"replicas": n}), json!({}));
    let pod = core(
        "Pod",
        "p",
        json!({"spec": {"containers": []}, "status": {"phase": "Running"}}),
    );
    let rows: Vec<(&str, Severity, &str, Value, Value)> = vec![
        (
            "WL-01",
            Warning,
            "job/n/j",
            job(json!({"active": 1})),
            done.clone(),
        ),
        ("WL-02", Info, "job/n/j", done, job(json!({"active": 1}))),
        ("WL-03", Warning, "pod/n/p", pod, held(1)),
        (
            "WL-04",
            Blocker,
            "statefulset/n/db",
            set(claim),
            set(json!([])),
        ),
        (
            "WL-09",
            Warning,
            "configmap/n/c",
            owned("Widget"),
            core("ConfigMap", "c", json!({})),
        ),
        ("WL-10", Warning, "deployment/n/web", held(0), held(2)),
    ];
    for (id, severity, object, loud, still) in rows {
        fires(&spec(), &snapshot(vec![loud]), id, severity, object, "");
        quiet(&spec(), &snapshot(vec![still]), id);
    }
}

#[test]
fn wl_03_a_replication_controller_would_start_with_the_replay() {
    let rc = |n: u64| {
        core(
            "ReplicationController",
            "old",
            json!({"spec": {"replicas": n, "template": {"spec": {"containers": []}}}}),
        )
    };
    fires(
        &spec(),
        &snapshot(vec![rc(2)]),
        "WL-03",
        Blocker,
        "replicationcontroller/n/old",
        "cannot be parked",
    );
    quiet(&spec(), &snapshot(vec![rc(0)]), "WL-03");
}

#[test]
fn wl_05_a_hand_edit_is_named_by_its_fields_and_what_the_server_fills_in_is_none() {
    let applied = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 2, "template": {"spec": {"containers": [
        {"name": "main", "image": "app:1.0", "env": [{"name": "A", "value": "1"}], "resources": {"limits": {"cpu": "1000m", "memory": "1Gi"}}, "ports": [{"containerPort": 80}]}]}}}});
    let live = |image: &str, env: Value, replicas: u64| {
        let mut o = workload(
            "Deployment",
            "web",
            json!({"replicas": replicas, "progressDeadlineSeconds": 600}),
            json!({"dnsPolicy": "ClusterFirst", "containers": [
            {"name": "main", "image": image, "imagePullPolicy": "Always", "env": env, "resources": {"limits": {"cpu": "1", "memory": "1024Mi"}}, "ports": [{"containerPort": 80, "protocol": "TCP"}]}]}),
        );
        o["metadata"]["annotations"] =
            json!({"kubectl.kubernetes.io/last-applied-configuration": applied.to_string()});
        o
    };
    let env = json!([{"name": "A", "value": "1"}]);
    quiet(
        &spec(),
        &snapshot(vec![live("app:1.0", env.clone(), 2)]),
        "WL-05",
    );
    let edited = snapshot(vec![live(
        "app:1.1",
        json!([{"name": "A", "value": "1"}, {"name": "DEBUG", "value": "1"}]),
        2,
    )]);
    fires(
        &spec(),
        &edited,
        "WL-05",
        Warning,
        "deployment/n/web",
        "spec.template.spec.containers[main].image, spec.template.spec.containers[main].env[DEBUG]",
    );
    // An autoscaler moves the replica count: that is no hand edit.
    let hpa = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h", "namespace": "n"},
        "spec": {"minReplicas": 2, "maxReplicas": 9, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}});
    let scaled = live("app:1.0", env, 7);
    quiet(&spec(), &snapshot(vec![scaled.clone(), hpa]), "WL-05");
    fires(
        &spec(),
        &snapshot(vec![scaled]),
        "WL-05",
        Warning,
        "deployment/n/web",
        "spec.replicas",
    );
}

#[test]
fn wl_06_names_that_may_mean_other_code_are_found_by_tag_and_by_what_runs() {
    for image in ["app", "app:latest", "registry.shop.test:5000/app:Stable"] {
        fires(
            &spec(),
            &snapshot(vec![runs("web", image)]),
            "WL-06",
            Warning,
            "deployment/n/web",
            image,
        );
    }
    for image in [
        "app:1.0",
        "app:latest@sha256:ab",
        "registry.shop.test:5000/app:main-4f2a",
    ] {
        quiet(&spec(), &snapshot(vec![runs("web", image)]), "WL-06");
    }
    let pod = |name: &str, image: &str, digest: &str| {
        let mut p = core(
            "Pod",
            name,
            json!({"spec": {"containers": [{"name": "main", "image": image}]},
            "status": {"phase": "Running", "containerStatuses": [{"name": "main", "imageID": format!("docker-pullable://app@sha256:{digest}")}]}}),
        );
        p["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": true}]);
        p
    };
    let one = snapshot(vec![
        runs("web", "app:1.0"),
        pod("a", "app:1.0", "11"),
        pod("b", "app:1.0", "11"),
    ]);
    quiet(&spec(), &one, "WL-06");
    let two = snapshot(vec![
        runs("web", "app:1.0"),
        pod("a", "app:1.0", "11"),
        pod("b", "app:1.0", "22"),
    ]);
    fires(
        &spec(),
        &two,
        "WL-06",
        Warning,
        "image/app:1.0",
        "2 different images",
    );
    let latest = snapshot(vec![
        runs("web", "app:latest"),
        pod("a", "app:latest", "11"),
    ]);
    fires(
        &spec(),
        &latest,
        "WL-06",
        Warning,
        "deployment/n/web",
        "blue runs sha256:11",
    );
}

#[test]
fn wl_07_images_that_green_cannot_pull_are_named_with_the_reason() {
    let ecr = "111111111111.dkr.ecr.eu-west-1.amazonaws.com/app:1.0";
    for (image, severity, part) in [
        (
            "registry.tools.svc.cluster.local:5000/app:1.0",
            Blocker,
            "inside blue",
        ),
        ("100.64.3.9:5000/app:1.0", Blocker, "inside blue"),
        ("k8s.gcr.io/pause:3.1", Warning, "frozen"),
        (ecr, Warning, "account 111111111111"),
    ] {
        fires(
            &spec(),
            &snapshot(vec![runs("web", image)]),
            "WL-07",
            severity,
            "deployment/n/web",
            part,
        );
    }
    for image in [
        "registry.shop.test/app:1.0",
        "000000000000.dkr.ecr.eu-west-1.amazonaws.com/app:1.0",
        "registry.k8s.io/pause:3.9",
    ] {
        quiet(&spec(), &snapshot(vec![runs("web", image)]), "WL-07");
    }
    let pulls = workload(
        "Deployment",
        "web",
        json!({}),
        json!({"imagePullSecrets": [{"name": "hub"}]}),
    );
    let secret = |name: &str| {
        core(
            "Secret",
            name,
            json!({"type": "kubernetes.io/dockerconfigjson"}),
        )
    };
    fires(
        &spec(),
        &snapshot(vec![pulls.clone(), secret("other")]),
        "WL-07",
        Warning,
        "deployment/n/web",
        "secret hub",
    );
    quiet(
        &spec(),
        &snapshot(vec![pulls.clone(), secret("hub")]),
        "WL-07",
    );
    quiet(&spec(), &snapshot(vec![pulls]), "WL-07");
}

#[test]
fn wl_07_an_architecture_that_blue_did_not_have_blocks_workloads_that_do_not_say_theirs() {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"nodeInfo": {"architecture": "amd64"}}});
    let mut s = snapshot(vec![node, runs("web", "app:1.0")]);
    quiet(&spec(), &s, "WL-07");
    s.kops.instance_groups[0]["spec"]["machineType"] = json!("m6g.large");
    let p = plan(&spec(), &s);
    assert!(
        p.target
            .node_groups
            .iter()
            .all(|g| g.ami_type.contains("ARM_64")),
        "{:?}",
        p.target.node_groups
    );
    fires(
        &spec(),
        &s,
        "WL-07",
        Blocker,
        "architecture/arm64",
        "deployment/n/web",
    );
    s.blue.objects[1]["spec"]["template"]["spec"]["nodeSelector"] =
        json!({"kubernetes.io/arch": "amd64"});
    assert!(
        !said(&plan(&spec(), &s), "WL-07")
            .iter()
            .any(|m| m.contains("architecture"))
    );
}

#[test]
fn wl_08_a_workload_that_gets_traffic_from_outside_wants_a_readiness_probe() {
    let bare = workload(
        "Deployment",
        "web",
        json!({}),
        json!({"containers": [{"name": "main", "image": "app:1.0"}]}),
    );
    let service = |kind: &str| {
        core(
            "Service",
            "web",
            json!({"spec": {"type": kind, "selector": {"app": "web"}, "ports": [{"port": 80}]}}),
        )
    };
    let ingress = json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i", "namespace": "n"}, "spec": {"ingressClassName": "nginx",
        "rules": [{"host": "www.shop.test", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "web", "port": {"number": 80}}}}]}}]}});
    let lb = snapshot(vec![bare.clone(), service("LoadBalancer")]);
    fires(
        &spec(),
        &lb,
        "WL-08",
        Warning,
        "deployment/n/web",
        "service/n/web",
    );
    quiet(
        &spec(),
        &snapshot(vec![bare.clone(), service("ClusterIP")]),
        "WL-08",
    );
    fires(
        &spec(),
        &snapshot(vec![bare, service("ClusterIP"), ingress]),
        "WL-08",
        Warning,
        "deployment/n/web",
        "readiness",
    );
    quiet(
        &spec(),
        &snapshot(vec![runs("web", "app:1.0"), service("LoadBalancer")]),
        "WL-08",
    );
}

#[test]
fn wl_11_many_names_at_once_without_a_canary_and_waves_that_nobody_probes_are_named() {
    use crate::world::dns::{RecordSet, Zone};
    let hosts: Vec<String> = (0..11).map(|n| format!("h{n:02}.shop.test")).collect();
    let rules: Vec<Value> = hosts.iter().map(|h| json!({"host": h})).collect();
    let ingress = json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i", "namespace": "n"},
        "spec": {"ingressClassName": "nginx", "rules": rules}, "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}});
    let mut edns = runs(
        "external-dns",
        "registry.k8s.io/external-dns/external-dns:v0.10.2",
    );
    edns["spec"]["replicas"] = json!(1);
    edns["spec"]["template"]["spec"]["containers"][0]["args"] = json!([
        "--provider=aws",
        "--source=ingress",
        "--registry=txt",
        "--txt-owner-id=shop-blue"
    ]);
    let record = |name: String, rtype: &str, value: &str| RecordSet {
        name,
        rtype: rtype.into(),
        ttl: Some(300),
        values: vec![value.into()],
        alias: None,
        set_identifier: None,
        routing: Default::default(),
    };
    let heritage =
        "\"heritage=external-dns,external-dns/owner=shop-blue,external-dns/resource=ingress/n/i\"";
    let mut s = snapshot(vec![ingress, edns]);
    s.zones = vec![crate::snapshot::model::ZoneRecords {
        zone: Zone {
            id: "Z1".into(),
            name: "shop.test.".into(),
            private: false,
        },
        records: hosts
            .iter()
            .flat_map(|h| {
                [
                    record(format!("{h}."), "A", "192.0.2.1"),
                    record(format!("{h}."), "TXT", heritage),
                ]
            })
            .collect(),
    }];
    let p = fires(
        &spec(),
        &s,
        "WL-11",
        Warning,
        "dns.canary",
        "11 names at once",
    );
    assert_eq!(p.names.len(), 11);
    let careful = spec_with(json!({"dns": {"canary": "h00.shop.test", "waveSize": 5}}));
    quiet(&careful, &s, "WL-11");
    let blind = spec_with(
        json!({"dns": {"canary": "h00.shop.test"}, "probes": {"skip": ["h00.shop.test"]}}),
    );
    fires(&blind, &s, "WL-11", Warning, "wave/0", "h00.shop.test");
}
