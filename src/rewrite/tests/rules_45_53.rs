//! Rules 45 to 53 of replay.md: workloads.

use super::{corpus, found, of, planned, says, spec, target};
use crate::plan::model::{Fate, Severity};
use crate::plan::plan;
use crate::rewrite::{Context, rewrite};
use crate::snapshot::model::Snapshot;
use serde_json::{Value, json};

fn deployment(name: &str, template: Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "shop"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": template}})
}

/// A pod as a server of 1.21 shows it, with what admission, Istio and the token projection put in.
fn meshed_pod() -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "tool", "namespace": "shop", "uid": "1", "labels": {"app": "tool", "security.istio.io/tlsMode": "istio"},
            "annotations": {"team": "ops", "cni.projectcalico.org/podIP": "100.96.1.7/32", "kubernetes.io/limit-ranger": "LimitRanger plugin set",
                "sidecar.istio.io/status": "{\"initContainers\":[\"istio-init\"],\"containers\":[\"istio-proxy\"],\"volumes\":[\"istio-envoy\",\"mesh-own-1\"]}"}},
        "spec": {"nodeName": "ip-172-20-1-1", "priority": 1000, "priorityClassName": "high", "preemptionPolicy": "PreemptLowerPriority",
            "serviceAccount": "default", "serviceAccountName": "default", "enableServiceLinks": true,
            "initContainers": [{"name": "istio-init", "image": "proxyv2"}, {"name": "wait", "image": "wait:1"}],
            "containers": [
                {"name": "tool", "image": "tool:1", "volumeMounts": [{"name": "data", "mountPath": "/d"}, {"name": "kube-api-access-x7k2p", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}]},
                {"name": "istio-proxy", "image": "proxyv2", "volumeMounts": [{"name": "istio-envoy", "mountPath": "/etc/istio/proxy"}]}],
            "volumes": [{"name": "data", "emptyDir": {}}, {"name": "istio-envoy", "emptyDir": {}}, {"name": "mesh-own-1", "emptyDir": {}}, {"name": "kube-api-access-x7k2p", "projected": {}}],
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 20}]},
        "status": {"phase": "Running"}})
}

#[test]
fn rule_45_a_bare_pod_loses_its_node_and_what_admission_put_in_and_is_created_when_others_wake() {
    let p = planned(vec![meshed_pod()]);
    let id = "pod/shop/tool";
    assert_eq!(
        target(&p, id),
        &json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "tool", "namespace": "shop", "labels": {"app": "tool"}, "annotations": {"team": "ops"}},
            "spec": {"priorityClassName": "high", "serviceAccountName": "default",
                "initContainers": [{"name": "wait", "image": "wait:1"}],
                "containers": [{"name": "tool", "image": "tool:1", "volumeMounts": [{"name": "data", "mountPath": "/d"}]}],
                "volumes": [{"name": "data", "emptyDir": {}}],
                "tolerations": [{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 20}]}})
    );
    says(
        &p,
        "WL-03",
        id,
        Severity::Warning,
        "sidecar of Istio is left to green's own injector",
    );
    let waves: Vec<&str> = p
        .steps
        .iter()
        .filter(|s| s.params["objects"].to_string().contains(id))
        .map(|s| s.id.as_str())
        .collect();
    assert_eq!(waves, ["unpark/pods"]);
}

#[test]
fn rule_45_only_bare_pods_and_no_system_pods_with_the_nodes_network() {
    let mut owned = meshed_pod();
    owned["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": "2", "controller": true}]);
    let mut system = meshed_pod();
    system["metadata"]["name"] = json!("agent");
    system["spec"]["hostNetwork"] = json!(true);
    system["spec"]["priorityClassName"] = json!("system-node-critical");
    let mut single = meshed_pod();
    single["metadata"]["name"] = json!("clock");
    single["metadata"]["annotations"]["crossfade.dev/singleton"] = json!("true");
    let p = planned(vec![owned, system, single]);
    for id in ["pod/shop/tool", "pod/shop/agent", "pod/shop/clock"] {
        assert_eq!(of(&p, id).verdict, Fate::Skipped, "{id}");
    }
    says(
        &p,
        "WL-03",
        "pod/shop/clock",
        Severity::Warning,
        "cannot be stopped without deleting it",
    );
}

#[test]
fn velero_2997_5193_double_sidecars_only_the_original_containers_are_left() {
    let names = |pod: Value| -> Vec<String> {
        let target = rewrite(&pod, &Context::default()).target.expect("copied");
        let all = target["spec"]["containers"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        all.iter()
            .filter_map(|c| c["name"].as_str().map(String::from))
            .collect()
    };
    let pod = |annotations: Value, injected: &str, mount: &str| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n", "annotations": annotations},
            "spec": {"containers": [{"name": "app", "image": "a", "volumeMounts": [{"name": mount, "mountPath": "/x"}]}, {"name": injected, "image": "i"}],
                "volumes": [{"name": mount, "emptyDir": {}}]}})
    };
    let vault = pod(
        json!({"vault.hashicorp.com/agent-inject": "true", "vault.hashicorp.com/agent-inject-status": "injected"}),
        "vault-agent",
        "vault-secrets",
    );
    let target = rewrite(&vault, &Context::default()).target.expect("copied");
    // It asks for the injection again, and has none of the last one.
    assert_eq!(
        target["metadata"]["annotations"],
        json!({"vault.hashicorp.com/agent-inject": "true"})
    );
    assert_eq!(
        target["spec"],
        json!({"containers": [{"name": "app", "image": "a"}]})
    );
    assert_eq!(
        names(pod(
            json!({"linkerd.io/proxy-version": "stable-2.11"}),
            "linkerd-proxy",
            "linkerd-identity-end-entity"
        )),
        ["app"]
    );
    // The same name without the injector's mark is somebody's own container.
    assert_eq!(
        names(pod(json!({}), "istio-proxy", "data")),
        ["app", "istio-proxy"]
    );
}

#[test]
fn rule_45_who_asks_for_a_sidecar_and_who_carries_one_is_named() {
    let asks = deployment(
        "web",
        json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "w", "image": "w:1"}]}}),
    );
    let carries = deployment(
        "old",
        json!({"metadata": {"labels": {"app": "old"}, "annotations": {"linkerd.io/proxy-version": "2.11"}},
        "spec": {"containers": [{"name": "w", "image": "w:1"}, {"name": "linkerd-proxy", "image": "p:1"}]}}),
    );
    let ns = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"istio-injection": "enabled"}}});
    let p = planned(vec![asks, carries, ns]);
    says(
        &p,
        "WL-09",
        "deployment/shop/old",
        Severity::Warning,
        "containers of Linkerd are written into the templates of 1",
    );
    // Both live in a namespace of Istio; the first by name stands for them.
    says(
        &p,
        "WL-09",
        "deployment/shop/old",
        Severity::Warning,
        "Istio puts its containers into the pods of 2 workloads",
    );
    assert_eq!(
        target(&p, "deployment/shop/old")["spec"]["template"]["spec"]["containers"]
            .as_array()
            .map(Vec::len),
        Some(2)
    );
}

#[test]
fn rule_46_labels_keys_and_names_of_blues_nodes_are_mapped_or_block() {
    let mut s = Snapshot::default();
    s.kops.cluster = Some(
        json!({"kind": "Cluster", "metadata": {"name": "blue.example.com"}, "spec": {"networkCIDR": "172.20.0.0/16",
        "subnets": [{"name": "a", "zone": "eu-west-1a", "type": "Private", "cidr": "172.20.32.0/24"}]}}),
    );
    s.kops.instance_groups = vec![
        json!({"kind": "InstanceGroup", "metadata": {"name": "workers"},
        "spec": {"role": "Node", "machineType": "m5.large", "minSize": 2, "maxSize": 2, "subnets": ["a"]}}),
    ];
    let terms = |key: &str| json!([{"labelSelector": {}, "topologyKey": key}]);
    s.blue.objects = vec![
        deployment(
            "web",
            json!({"metadata": {"labels": {"app": "web"}}, "spec": {
            "nodeSelector": {"kops.k8s.io/instancegroup": "workers", "beta.kubernetes.io/instance-type": "m5.large", "node-role.kubernetes.io/node": ""},
            "affinity": {"podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": terms("kubernetes.io/hostname"),
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": {"topologyKey": "failure-domain.beta.kubernetes.io/zone"}}]}},
            "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "kops.k8s.io/instancegroup", "whenUnsatisfiable": "DoNotSchedule"}],
            "nodeName": "ip-172-20-32-9",
            "containers": [{"name": "w", "image": "w:1"}]}}),
        ),
        deployment(
            "pinned",
            json!({"metadata": {"labels": {"app": "pinned"}}, "spec": {
            "nodeSelector": {"kubernetes.io/hostname": "ip-172-20-32-9"}, "containers": [{"name": "w", "image": "w:1"}]}}),
        ),
        deployment(
            "master",
            json!({"metadata": {"labels": {"app": "master"}}, "spec": {
            "nodeSelector": {"node-role.kubernetes.io/master": ""}, "containers": [{"name": "w", "image": "w:1"}],
            "volumes": [{"name": "d", "hostPath": {"path": "/var/run/docker.sock"}}, {"name": "k", "hostPath": {"path": "/srv/kubernetes"}}]}}),
        ),
    ];
    let p = plan(&spec(), &s);
    let pod = &target(&p, "deployment/shop/web")["spec"]["template"]["spec"];
    assert_eq!(
        pod["nodeSelector"],
        json!({"crossfade.dev/instancegroup": "workers", "node.kubernetes.io/instance-type": "m5.large"})
    );
    assert!(pod.get("nodeName").is_none());
    let anti = &pod["affinity"]["podAntiAffinity"];
    assert_eq!(
        anti["requiredDuringSchedulingIgnoredDuringExecution"],
        terms("kubernetes.io/hostname")
    );
    assert_eq!(
        anti["preferredDuringSchedulingIgnoredDuringExecution"][0]["podAffinityTerm"]["topologyKey"],
        "topology.kubernetes.io/zone"
    );
    assert_eq!(
        pod["topologySpreadConstraints"][0]["topologyKey"],
        "crossfade.dev/instancegroup"
    );
    says(
        &p,
        "CAP-01",
        "deployment/shop/pinned",
        Severity::Blocker,
        "ip-172-20-32-9",
    );
    says(
        &p,
        "CAP-01",
        "deployment/shop/master",
        Severity::Blocker,
        "node-role.kubernetes.io/master",
    );
    says(
        &p,
        "CAP-12",
        "deployment/shop/master",
        Severity::Blocker,
        "/var/run/docker.sock",
    );
    says(
        &p,
        "CAP-12",
        "deployment/shop/master",
        Severity::Blocker,
        "/srv/kubernetes",
    );
}

#[test]
fn rule_47_replica_sets_of_deployments_stay_and_a_stateful_set_gets_its_class_when_it_is_made() {
    let child = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web-1", "namespace": "shop",
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "1", "controller": true}]}, "spec": {"replicas": 2}});
    let mut alone = child.clone();
    alone["metadata"] = json!({"name": "alone", "namespace": "shop"});
    let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db", "namespace": "shop"},
        "spec": {"replicas": 3, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}}, "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": []}},
            "volumeClaimTemplates": [{"metadata": {"name": "data", "annotations": {"volume.beta.kubernetes.io/storage-class": "gp2"}}, "spec": {}}]}});
    let p = planned(vec![child, alone, set]);
    assert_eq!(of(&p, "replicaset/shop/web-1").verdict, Fate::Skipped);
    assert_eq!(target(&p, "replicaset/shop/alone")["spec"]["replicas"], 0);
    assert_eq!(
        target(&p, "statefulset/shop/db")["spec"]["volumeClaimTemplates"],
        json!([{"metadata": {"name": "data"}, "spec": {"storageClassName": "gp3"}}])
    );
    // Claims exist before the set that would make others (rule 3).
    let place = |wave: &str| crate::plan::wave_place(wave);
    assert!(place("base") < place("workloads"));
    says(
        &p,
        "WL-04",
        "statefulset/shop/db",
        Severity::Blocker,
        "class gp2 -> gp3",
    );
}

fn job(manual: bool) -> Value {
    let labels = json!({"app": "load", "controller-uid": "1", "batch.kubernetes.io/controller-uid": "1", "job-name": "load", "batch.kubernetes.io/job-name": "load"});
    let mut job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "load", "namespace": "shop", "labels": labels},
        "spec": {"suspend": true, "selector": {"matchLabels": {"controller-uid": "1"}}, "template": {"metadata": {"labels": labels}, "spec": {"restartPolicy": "Never", "containers": []}}}});
    if manual {
        job["spec"]["manualSelector"] = json!(true);
    }
    job
}

#[test]
fn velero_6711_job_selectors_do_not_match_foreign_pods() {
    let p = planned(vec![job(false)]);
    let t = target(&p, "job/shop/load");
    assert!(t["spec"].get("selector").is_none());
    assert_eq!(t["metadata"]["labels"], json!({"app": "load"}));
    assert_eq!(
        t["spec"]["template"]["metadata"]["labels"],
        json!({"app": "load"})
    );
    // Whoever chose the selector keeps it, and the labels that it needs.
    let p = planned(vec![job(true)]);
    let t = target(&p, "job/shop/load");
    assert_eq!(
        t["spec"]["selector"],
        json!({"matchLabels": {"controller-uid": "1"}})
    );
    assert_eq!(
        t["spec"]["template"]["metadata"]["labels"]["controller-uid"],
        "1"
    );
}

#[test]
fn rule_48_a_job_that_has_begun_or_that_a_cron_job_makes_is_not_run_twice() {
    let mut begun = job(false);
    begun["status"] = json!({"startTime": "2026-11-30T10:00:00Z", "failed": 1});
    let mut made = job(false);
    made["metadata"]["name"] = json!("nightly-1");
    made["metadata"]["ownerReferences"] = json!([{"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": "2", "controller": true}]);
    let mut bare = job(false);
    bare["metadata"] = json!({"name": "bare", "namespace": "shop", "labels": {"job-name": "bare"}});
    let p = planned(vec![begun, made, bare]);
    assert_eq!(of(&p, "job/shop/load").verdict, Fate::Skipped);
    says(&p, "WL-01", "job/shop/load", Severity::Warning, "run twice");
    assert_eq!(of(&p, "job/shop/nightly-1").verdict, Fate::Skipped);
    let waiting = of(&p, "job/shop/bare");
    assert!(
        target(&p, "job/shop/bare")["metadata"]
            .get("labels")
            .is_none()
    );
    let park = waiting.park.as_ref().expect("parked");
    // Suspended by its owner: it stays so at open.
    assert_eq!((park.wakes.as_str(), &park.value), ("open", &json!(true)));
}

fn cron(api: &str, suspend: Option<bool>) -> Value {
    let mut c = json!({"apiVersion": api, "kind": "CronJob", "metadata": {"name": "report", "namespace": "shop", "creationTimestamp": "2021-01-01T00:00:00Z"},
        "spec": {"schedule": "0 3 * * *", "startingDeadlineSeconds": 60, "jobTemplate": {"spec": {"template": {"spec": {"containers": []}}}}}});
    if let Some(s) = suspend {
        c["spec"]["suspend"] = json!(s);
    }
    c
}

#[test]
fn rule_49_a_cron_job_is_made_asleep_in_v1_and_keeps_its_owners_own_word() {
    for (was, value) in [(None, false), (Some(false), false), (Some(true), true)] {
        let p = planned(vec![cron("batch/v1beta1", was)]);
        let t = target(&p, "cronjob/shop/report");
        assert_eq!(
            (&t["apiVersion"], &t["spec"]["suspend"]),
            (&json!("batch/v1"), &json!(true))
        );
        assert!(t["metadata"].get("creationTimestamp").is_none());
        let park = of(&p, "cronjob/shop/report").park.as_ref().expect("parked");
        assert_eq!((park.wakes.as_str(), &park.value), ("open", &json!(value)));
        // Blue's copy is asleep and its runs have ended before green's may wake.
        let step = |id: &str| {
            p.steps
                .iter()
                .position(|s| s.id == id)
                .unwrap_or_else(|| panic!("no step {id}"))
        };
        assert!(step("freeze/cron") < step("open/cron"));
    }
}

#[test]
fn rule_50_an_autoscaler_of_v1_shows_the_metrics_that_it_hides_and_loses_none() {
    let hpa = json!({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web", "namespace": "shop", "annotations": {
            "autoscaling.alpha.kubernetes.io/conditions": "[]",
            "autoscaling.alpha.kubernetes.io/metrics": "[{\"type\":\"Pods\",\"pods\":{\"metricName\":\"packets\",\"targetAverageValue\":\"1k\"}},{\"type\":\"Resource\",\"resource\":{\"name\":\"memory\",\"targetAverageUtilization\":70}}]",
            "autoscaling.alpha.kubernetes.io/behavior": "{\"ScaleDown\":{\"StabilizationWindowSeconds\":60,\"SelectPolicy\":\"Max\",\"Policies\":[{\"Type\":\"Pods\",\"Value\":2,\"PeriodSeconds\":30}]},\"ScaleUp\":null}"}},
        "spec": {"scaleTargetRef": {"apiVersion": "extensions/v1beta1", "kind": "Deployment", "name": "web"}, "minReplicas": 2, "maxReplicas": 20, "targetCPUUtilizationPercentage": 60},
        "status": {"currentReplicas": 9}});
    let p = planned(vec![hpa]);
    let id = "horizontalpodautoscaler/shop/web";
    assert_eq!(
        target(&p, id),
        &json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "minReplicas": 2, "maxReplicas": 20,
                "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60, "selectPolicy": "Max", "policies": [{"type": "Pods", "value": 2, "periodSeconds": 30}]}},
                "metrics": [
                    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}},
                    {"type": "Pods", "pods": {"metric": {"name": "packets"}, "target": {"type": "AverageValue", "averageValue": "1k"}}},
                    {"type": "Resource", "resource": {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 70}}}]}})
    );
    says(
        &p,
        "WL-10",
        id,
        Severity::Info,
        "runs at 9, its minimum is 2",
    );
    says(&p, "VER-02", id, Severity::Warning, "external metrics");
}

#[test]
fn rule_50_keda_is_told_to_rest_because_a_count_of_0_does_not_stop_it() {
    let scaled = |name: &str, target: &str, annotations: Value| {
        json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": name, "namespace": "shop", "annotations": annotations},
            "spec": {"scaleTargetRef": {"name": target}, "triggers": [{"type": "aws-sqs-queue"}]}})
    };
    let plain = |name: &str| {
        deployment(
            name,
            json!({"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "c:1"}]}}),
        )
    };
    let mut single = plain("clock");
    single["metadata"]["annotations"] = json!({"crossfade.dev/singleton": "true"});
    let p = planned(vec![
        plain("web"),
        single,
        scaled(
            "web",
            "web",
            json!({"autoscaling.keda.sh/paused-replicas": "3"}),
        ),
        scaled("clock", "clock", json!({})),
        json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledJob", "metadata": {"name": "batch", "namespace": "shop"}, "spec": {}}),
    ]);
    let parked = |id: &str| {
        let park = of(&p, id).park.clone().expect("parked");
        let value = target(&p, id).pointer(&park.field).cloned();
        (park.field, value, park.wakes, park.value)
    };
    let at = "/metadata/annotations/autoscaling.keda.sh~1paused-replicas".to_string();
    // Its owner holds it at 3 on blue: so it is again when it wakes.
    assert_eq!(
        parked("scaledobject.keda.sh/shop/web"),
        (at.clone(), Some(json!("0")), "unpark".into(), json!("3"))
    );
    assert_eq!(
        parked("scaledobject.keda.sh/shop/clock"),
        (at, Some(json!("0")), "open".into(), Value::Null)
    );
    assert_eq!(
        parked("scaledjob.keda.sh/shop/batch"),
        (
            "/metadata/annotations/autoscaling.keda.sh~1paused".into(),
            Some(json!("true")),
            "open".into(),
            Value::Null
        )
    );
    // On blue KEDA would start the singleton again that freeze stops.
    let step = |id: &str| {
        p.steps
            .iter()
            .find(|s| s.id == id)
            .unwrap_or_else(|| panic!("no step {id}"))
    };
    let held = step("freeze/scalers").params.to_string();
    assert!(
        held.contains("clock") && held.contains("batch") && !held.contains("\"web\""),
        "{held}"
    );
    assert!(
        step("freeze/singletons")
            .needs
            .contains(&"freeze/scalers".to_string())
    );
    assert_eq!(
        step("open/singletons").params["objects"],
        json!(["scaledobject.keda.sh/shop/clock", "deployment/shop/clock"])
    );
}

#[test]
fn rule_51_an_empty_selector_turns_round_in_v1_and_the_servers_marker_for_it_is_kept() {
    let budget = |api: &str, selector: Value| json!({"apiVersion": api, "kind": "PodDisruptionBudget", "metadata": {"name": "b", "namespace": "shop"}, "spec": {"minAvailable": 1, "selector": selector}});
    let id = "poddisruptionbudget/shop/b";
    let p = planned(vec![budget("policy/v1beta1", json!({}))]);
    assert_eq!(of(&p, id).verdict, Fate::Refused);
    says(&p, "API-05", id, Severity::Blocker, "empty selector");
    // A server of 1.21 or later shows the same object so in v1: it still guards nothing.
    let marker = |operator: &str| json!({"matchExpressions": [{"key": "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match", "operator": operator}]});
    let p = planned(vec![budget("policy/v1", marker("Exists"))]);
    assert_eq!(target(&p, id)["spec"]["selector"], marker("Exists"));
    // And one of v1 that means all is shown so in v1beta1: turned back as the server itself does.
    let p = planned(vec![budget("policy/v1beta1", marker("DoesNotExist"))]);
    assert_eq!(target(&p, id)["apiVersion"], "policy/v1");
    assert_eq!(target(&p, id)["spec"]["selector"], json!({}));
    // In v1 itself an empty one means all, and stays.
    let p = planned(vec![budget("policy/v1", json!({}))]);
    assert_eq!(target(&p, id)["spec"]["selector"], json!({}));
    let mut hard = budget("policy/v1", json!({"matchLabels": {"app": "x"}}));
    hard["status"] = json!({"disruptionsAllowed": 0});
    says(
        &planned(vec![hard]),
        "WL-10",
        id,
        Severity::Warning,
        "draining a node of green will hang",
    );
}

fn daemon(name: &str, image: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name, "namespace": "agents"},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": {"metadata": {"labels": {"app": name}},
            "spec": {"nodeSelector": {"kubernetes.io/os": "linux"}, "containers": [{"name": "a", "image": image}]}}}})
}

#[test]
fn rule_52_agents_of_blues_nodes_stay_with_them_and_others_wait_for_unpark() {
    let mut wanted = daemon("kube2iam", "jtblin/kube2iam:0.11");
    wanted["metadata"]["annotations"] = json!({"crossfade.dev/copy": "true"});
    let p = planned(vec![
        daemon("kiam-agent", "quay.io/uswitch/kiam:v3.6"),
        daemon("calico-node", "docker.io/calico/node:v3.19"),
        wanted,
        daemon("shipper", "fluent/fluentd:v1.14"),
        daemon("own", "shop/agent:1"),
    ]);
    for id in [
        "daemonset/agents/kiam-agent",
        "daemonset/agents/calico-node",
    ] {
        assert_eq!(of(&p, id).verdict, Fate::Skipped, "{id}");
        assert!(of(&p, id).rules.contains(&"replay.md 52".to_string()));
    }
    says(
        &p,
        "SNG-04",
        "daemonset/agents/kiam-agent",
        Severity::Info,
        "roles of service accounts",
    );
    assert!(of(&p, "daemonset/agents/kube2iam").target.is_some());
    says(
        &p,
        "SNG-04",
        "daemonset/agents/shipper",
        Severity::Warning,
        "send to one place",
    );
    let own = of(&p, "daemonset/agents/own");
    assert_eq!(
        target(&p, "daemonset/agents/own")["spec"]["template"]["spec"]["nodeSelector"],
        json!({"kubernetes.io/os": "linux", "crossfade.dev/parked": "true"})
    );
    let park = own.park.as_ref().expect("parked");
    assert_eq!((park.wakes.as_str(), &park.value), ("unpark", &Value::Null));
    assert!(
        found(&p, "CAP-01", "daemonset/agents/own").is_empty(),
        "what parks it is no demand on green's nodes"
    );
}

#[test]
fn rule_53_profiles_in_annotations_become_fields_of_the_security_context() {
    let template = json!({"metadata": {"labels": {"app": "web"}, "annotations": {
            "seccomp.security.alpha.kubernetes.io/pod": "docker/default",
            "container.seccomp.security.alpha.kubernetes.io/b": "localhost/audit.json",
            "container.apparmor.security.beta.kubernetes.io/a": "unconfined",
            "container.apparmor.security.beta.kubernetes.io/b": "runtime/default", "team": "x"}},
        "spec": {"containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1", "securityContext": {"runAsUser": 7}}]}});
    let p = planned(vec![deployment("web", template)]);
    let id = "deployment/shop/web";
    let t = &target(&p, id)["spec"]["template"];
    assert_eq!(t["metadata"]["annotations"], json!({"team": "x"}));
    assert_eq!(
        t["spec"]["securityContext"],
        json!({"seccompProfile": {"type": "RuntimeDefault"}})
    );
    assert_eq!(
        t["spec"]["containers"][0]["securityContext"],
        json!({"appArmorProfile": {"type": "Unconfined"}})
    );
    assert_eq!(
        t["spec"]["containers"][1]["securityContext"],
        json!({"runAsUser": 7, "seccompProfile": {"type": "Localhost", "localhostProfile": "audit.json"}})
    );
    says(&p, "CAP-12", id, Severity::Warning, "localhost/audit.json");
    says(&p, "API-10", id, Severity::Blocker, "AppArmor profile");
}

#[test]
fn rule_53_each_namespace_gets_a_level_and_the_pods_that_it_would_refuse_are_listed() {
    let mut objects = corpus("07");
    let policy = json!({"apiVersion": "policy/v1beta1", "kind": "PodSecurityPolicy", "metadata": {"name": "default"}, "spec": {"runAsUser": {"rule": "RunAsAny"}}});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-1", "namespace": "shop", "annotations": {"kubernetes.io/psp": "default"},
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1", "controller": true}]}, "spec": {"containers": []}});
    let plain = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "w", "image": "w:1"}]}});
    let host = json!({"metadata": {"labels": {"app": "host"}}, "spec": {"hostPID": true, "containers": [{"name": "w", "image": "w:1"}]}});
    objects.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}));
    objects.extend([
        policy,
        pod,
        deployment("web", plain),
        deployment("host", host),
    ]);
    let p = planned(objects);
    says(
        &p,
        "API-03",
        "namespace/shop",
        Severity::Warning,
        "let in by default; on green nothing holds them back until the namespace says so. baseline would refuse deployment/shop/host (hostPID)",
    );
    let said = p
        .findings
        .iter()
        .find(|f| f.object == "namespace/shop" && f.id == "API-03")
        .expect("said");
    assert!(said.remedy.contains("enforce: baseline"), "{}", said.remedy);
    assert_eq!(of(&p, "podsecuritypolicy/default").verdict, Fate::Refused);
}
