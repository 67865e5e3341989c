//! Rules 69 to 72 of replay.md: Helm, GitOps, what owns things in the cloud, default classes. A test of each is named `rule_NN_...`.

use super::{found, of, planned, says, spec, target};
use crate::helm;
use crate::plan::model::{Fate, Plan, Severity};
use crate::plan::plan;
use crate::snapshot::mask::{self, Key};
use crate::snapshot::model::Snapshot;
use serde_json::{Value, json};

/// Blue as discover keeps it: names out of the records, then hashes.
fn discovered(objects: Vec<Value>) -> Snapshot {
    let key = Key::from_bytes([7; 32]);
    let mut s = Snapshot::default();
    for mut o in objects {
        s.blue.helm.extend(helm::release(&o));
        mask::object(&key, &mut o);
        s.blue.objects.push(o);
    }
    s.blue.helm.sort();
    s
}

fn record_id(revision: u32) -> String {
    format!("secret/shop/sh.helm.release.v1.web.v{revision}")
}

fn web() -> Value {
    json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "web", "namespace": "shop",
        "labels": {"app.kubernetes.io/managed-by": "Helm"},
        "annotations": {"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop"}},
        "spec": {"ingressClassName": "nginx", "rules": []}})
}

const OLD_INGRESS: &str = "---\n# Source: web/templates/ingress.yaml\napiVersion: extensions/v1beta1\nkind: Ingress\nmetadata:\n  name: web\nspec:\n  rules:\n  - host: shop.test\n    http:\n      paths:\n      - backend: {serviceName: web, servicePort: 80}\n";
const CRON: &str = "---\n# Source: web/templates/cron.yaml\napiVersion: batch/v1beta1\nkind: CronJob\nmetadata:\n  name: night  # runs at one\nspec: {schedule: \"0 1 * * *\"}\n";
const CONFIG: &str = "---\n# Source: web/templates/c.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n  mode: \"0644\"\n";

#[test]
fn rule_69_helm_11287_a_record_names_only_what_green_serves_and_the_rest_of_it_stays() {
    let manifest = format!(
        "{OLD_INGRESS}{CRON}{CONFIG}---\napiVersion: policy/v1beta1\nkind: PodSecurityPolicy\nmetadata: {{name: p}}\n"
    );
    let live = helm::tests::record("web", 3, "deployed", &manifest, CRON);
    let p = plan(&spec(), &discovered(vec![live.clone(), web()]));
    let written = crate::rewrite::on_stream(&live, target(&p, &record_id(3)), 36).expect("written");
    let text = helm::text_of(&written).expect("a record");
    let release = helm::unpack(&text).expect("unpacked");
    let new = release["manifest"].as_str().expect("a manifest");
    assert!(
        new.contains(&CRON.replace("batch/v1beta1", "batch/v1")),
        "where only the version changes, only that line does: {new}"
    );
    assert!(
        new.contains(CONFIG) && !new.contains("PodSecurityPolicy"),
        "{new}"
    );
    let ids: Vec<String> = helm::manifest::ids(new)
        .expect("read")
        .iter()
        .map(|i| format!("{} {i}", i.api_version))
        .collect();
    assert_eq!(
        ids,
        [
            "networking.k8s.io/v1 ingress/web",
            "batch/v1 cronjob/night",
            "v1 configmap/c"
        ]
    );
    assert!(
        new.contains("\"service\""),
        "the shape of the backend too: {new}"
    );
    assert_eq!(
        release["hooks"][0]["manifest"].as_str(),
        Some(CRON.replace("batch/v1beta1", "batch/v1").as_str())
    );
    let before = helm::unpack(&helm::text_of(&live).expect("text")).expect("unpacked");
    for key in ["config", "chart", "info", "version", "name"] {
        assert_eq!(release[key], before[key], "{key}");
    }
    // Done again it changes nothing, and where nothing changes not a byte does.
    let mut again = live.clone();
    again["data"] = written["data"].clone();
    let twice = crate::rewrite::on_stream(&again, target(&p, &record_id(3)), 36).expect("written");
    assert_eq!(twice["data"], written["data"]);
    let still = crate::rewrite::on_stream(&live, target(&p, &record_id(3)), 15).expect("written");
    assert_eq!(still["data"], live["data"], "1.15 serves all of it");
}

#[test]
fn rule_69_helm_values_never_stand_in_the_snapshot_or_the_plan() {
    let secret = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {p: CANARY-manifest}\n";
    let live = helm::tests::record("web", 1, "deployed", secret, "");
    let s = discovered(vec![live.clone(), web()]);
    let p = plan(&spec(), &s);
    let packed = live["data"]["release"].as_str().expect("a value");
    for text in [
        serde_json::to_string(&s).expect("JSON"),
        serde_json::to_string(&p).expect("JSON"),
    ] {
        assert!(!text.contains("CANARY") && !text.contains(packed));
    }
    assert_eq!(s.blue.helm[0].objects[0].to_string(), "secret/s");
}

#[test]
fn rule_69_a_release_moves_with_its_objects_and_ten_records_of_its_history() {
    let records = |statuses: &[&str]| -> Vec<Value> {
        statuses
            .iter()
            .zip(1..)
            .map(|(status, n)| helm::tests::record("web", n, status, OLD_INGRESS, ""))
            .collect()
    };
    let fates = |p: &Plan, n: u32| -> Vec<bool> {
        (1..=n)
            .map(|r| of(p, &record_id(r)).target.is_some())
            .collect()
    };
    let mut many = records(&["superseded"; 13]);
    many[1]["metadata"]["labels"]["status"] = json!("deployed");
    many[12]["metadata"]["labels"]["status"] = json!("failed");
    many.push(web());
    let p = plan(&spec(), &discovered(many));
    assert_eq!(
        fates(&p, 13),
        [
            false, true, false, true, true, true, true, true, true, true, true, true, true
        ],
        "the ten newest, and the one that runs"
    );
    says(
        &p,
        "API-12",
        &record_id(13),
        Severity::Warning,
        "last upgrade",
    );
    says(
        &p,
        "API-12",
        &record_id(13),
        Severity::Warning,
        "extensions/v1beta1 Ingress",
    );
    // Nothing of it comes: the record does not either.
    let p = plan(&spec(), &discovered(records(&["deployed"])));
    assert_eq!(fates(&p, 1), [false]);
    let mut gone = records(&["superseded", "uninstalled"]);
    gone.push(web());
    assert_eq!(fates(&plan(&spec(), &discovered(gone)), 2), [false, false]);
    let mut pending = records(&["pending-upgrade", "deployed"]);
    pending.push(web());
    let p = plan(&spec(), &discovered(pending));
    assert!(
        !found(&p, "API-12", &record_id(1))
            .iter()
            .any(|(s, _)| *s == Severity::Blocker),
        "one that was overtaken does not stand in the way"
    );
    let mut pending = records(&["deployed", "pending-upgrade"]);
    pending.push(web());
    let p = plan(&spec(), &discovered(pending));
    says(
        &p,
        "API-12",
        &record_id(2),
        Severity::Blocker,
        "in the middle",
    );
}

#[test]
fn rule_69_an_upgrade_that_would_bring_back_what_the_plan_leaves_out_is_named() {
    let manifest = format!("{OLD_INGRESS}{CONFIG}");
    let mut config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "shop"}, "data": {}});
    config["metadata"]["annotations"] = json!({"meta.helm.sh/release-name": "web"});
    let s = discovered(vec![
        helm::tests::record("web", 1, "deployed", &manifest, ""),
        web(),
        config,
    ]);
    let p = plan(&spec(), &s);
    assert!(
        !found(&p, "API-12", &record_id(1))
            .iter()
            .any(|(_, m)| m.contains("leaves out"))
    );
    let kept = &target(&p, "configmap/shop/c")["metadata"]["annotations"];
    assert_eq!(kept, &json!({"meta.helm.sh/release-name": "web"}));
    let mut spec = spec();
    spec.workloads.skip = vec!["configmap/shop/c".into()];
    let p = plan(&spec, &s);
    says(
        &p,
        "API-12",
        &record_id(1),
        Severity::Warning,
        "configmap/shop/c",
    );
}

#[test]
fn rule_69_records_of_helm_2_and_records_in_config_maps_are_known() {
    let old = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web.v1", "namespace": "kube-system", "labels": {"OWNER": "TILLER", "STATUS": "DEPLOYED"}}, "data": {"release": "H4sI"}});
    let p = planned(vec![old]);
    assert_eq!(
        of(&p, "configmap/kube-system/web.v1").verdict,
        Fate::Skipped
    );
    says(
        &p,
        "API-12",
        "configmap/kube-system/web.v1",
        Severity::Warning,
        "Helm 2",
    );
    let secret = helm::tests::record("web", 1, "deployed", CRON, "");
    let mut map = secret.clone();
    map["kind"] = json!("ConfigMap");
    map.as_object_mut().expect("an object").remove("type");
    map["data"]["release"] = json!(helm::text_of(&secret).expect("text"));
    let p = planned(vec![map]);
    let t = target(&p, "configmap/shop/sh.helm.release.v1.web.v1");
    let release = helm::unpack(&helm::text_of(t).expect("text")).expect("unpacked");
    assert_eq!(
        release["manifest"].as_str(),
        Some(CRON.replace("v1beta1", "v1").as_str())
    );
}

#[test]
fn rule_69_a_record_that_nobody_can_read_stops_the_write_and_says_nothing_of_it() {
    let mut live = helm::tests::record("web", 1, "deployed", "a: [CANARY\n", "");
    let target = live.clone();
    let e = crate::rewrite::on_stream(&live, &target, 36).expect_err("unreadable");
    let said = format!("{e:?}");
    assert!(
        said.contains("no YAML") && !said.contains("CANARY"),
        "{said}"
    );
    let s = discovered(vec![live.clone(), web()]);
    says(
        &plan(&spec(), &s),
        "API-12",
        &record_id(1),
        Severity::Blocker,
        "unreadable",
    );
    live["data"]["release"] = json!("!");
    assert!(crate::rewrite::on_stream(&live, &target, 36).is_err());
}

#[test]
fn rule_70_argo_cd_6046_an_application_is_created_without_sync_and_without_its_cascade() {
    let app = |policy: Value| {
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "a", "namespace": "argocd",
            "finalizers": ["resources-finalizer.argocd.argoproj.io"]},
            "spec": {"destination": {"server": "https://kubernetes.default.svc"}, "syncPolicy": policy}})
    };
    let id = "application.argoproj.io/argocd/a";
    let automated = json!({"prune": true, "selfHeal": true});
    let p = planned(vec![app(
        json!({"automated": automated, "syncOptions": ["CreateNamespace=true"]}),
    )]);
    let t = target(&p, id);
    assert!(t["metadata"].get("finalizers").is_none());
    assert_eq!(
        t["spec"]["syncPolicy"],
        json!({"syncOptions": ["CreateNamespace=true"]})
    );
    let park = of(&p, id).park.as_ref().expect("asleep");
    assert_eq!(
        (park.field.as_str(), park.wakes.as_str(), &park.value),
        ("/spec/syncPolicy/automated", "open", &automated)
    );
    says(&p, "GIT-01", id, Severity::Warning, "undo every hold");
    let step = p.steps.iter().find(|s| s.id == "freeze/gitops");
    assert!(step.is_some_and(|s| s.params.to_string().contains("skip-reconcile")));
    says(
        &p,
        "TOOL-argo-cd",
        "tool/argo-cd",
        Severity::Warning,
        "1 object of its own",
    );
    // It has no replicas that the freeze could take away.
    assert!(!p.steps.iter().any(|s| s.kind == "freeze.singletons"));
    let p = planned(vec![app(json!({}))]);
    assert!(of(&p, id).park.is_none() && found(&p, "GIT-01", id).is_empty());
}

#[test]
fn rule_70_flux_objects_are_created_suspended_and_one_that_sleeps_on_blue_stays_asleep() {
    let object = |suspend: Value| {
        json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1beta2", "kind": "Kustomization", "metadata": {"name": "apps", "namespace": "flux-system"},
            "spec": {"prune": true, "suspend": suspend}})
    };
    let id = "kustomization.kustomize.toolkit.fluxcd.io/flux-system/apps";
    for suspend in [json!(false), Value::Null] {
        let p = planned(vec![object(suspend)]);
        assert_eq!(target(&p, id)["spec"]["suspend"], true);
        assert_eq!(
            of(&p, id).park.as_ref().map(|p| p.value.clone()),
            Some(json!(false))
        );
    }
    let p = planned(vec![object(json!(true))]);
    assert_eq!(target(&p, id)["spec"]["suspend"], true);
    assert!(of(&p, id).park.is_none());
}

#[test]
fn rule_70_what_a_gitops_tool_keeps_is_copied_with_its_marks_and_counted_once() {
    let kept = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "n", "labels": {"argocd.argoproj.io/instance": "a"}}, "data": {}});
    let p = planned(vec![kept("a"), kept("b")]);
    assert_eq!(of(&p, "configmap/n/a").verdict, Fate::Copied);
    assert!(
        of(&p, "configmap/n/a")
            .rules
            .contains(&"replay.md 70".to_string())
    );
    let lines: Vec<_> = p
        .findings
        .iter()
        .filter(|f| f.id.starts_with("TOOL-"))
        .collect();
    assert_eq!(lines.len(), 1);
    assert!(
        lines[0].message.contains("2 objects that it keeps"),
        "{lines:?}"
    );
}

#[test]
fn rule_71_velero_9432_a_managed_resource_is_created_paused_and_orphans() {
    let bucket = json!({"apiVersion": "s3.aws.crossplane.io/v1beta1", "kind": "Bucket", "metadata": {"name": "b",
        "annotations": {"crossplane.io/external-name": "shop-assets"}, "finalizers": ["finalizer.managedresource.crossplane.io"]},
        "spec": {"deletionPolicy": "Delete", "forProvider": {"locationConstraint": "eu-west-1"}}});
    let p = planned(vec![bucket]);
    let id = "bucket.s3.aws.crossplane.io/b";
    let t = target(&p, id);
    assert_eq!(
        t["metadata"],
        json!({"name": "b", "annotations": {"crossplane.io/external-name": "shop-assets", "crossplane.io/paused": "true"}})
    );
    assert_eq!(t["spec"]["deletionPolicy"], "Orphan");
    assert_eq!(of(&p, id).verdict, Fate::Held);
    says(
        &p,
        "TOOL-crossplane",
        "tool/crossplane",
        Severity::Warning,
        "created paused",
    );
}

#[test]
fn rule_71_what_owns_things_in_the_cloud_and_cannot_be_paused_is_refused() {
    for (api, kind, name) in [
        (
            "s3.services.k8s.aws/v1alpha1",
            "Bucket",
            "bucket.s3.services.k8s.aws/n/x",
        ),
        (
            "cluster.x-k8s.io/v1beta1",
            "Cluster",
            "cluster.cluster.x-k8s.io/n/x",
        ),
        (
            "infrastructure.cluster.x-k8s.io/v1beta2",
            "AWSMachine",
            "awsmachine.infrastructure.cluster.x-k8s.io/n/x",
        ),
        ("karpenter.sh/v1", "NodePool", "nodepool.karpenter.sh/n/x"),
        (
            "app.terraform.io/v1alpha2",
            "Workspace",
            "workspace.app.terraform.io/n/x",
        ),
    ] {
        let p = planned(vec![
            json!({"apiVersion": api, "kind": kind, "metadata": {"name": "x", "namespace": "n"}, "spec": {}}),
        ]);
        assert_eq!(of(&p, name).verdict, Fate::Refused, "{name}");
        says(&p, "SNG-04", name, Severity::Blocker, "would fight");
    }
    let terraform = json!({"apiVersion": "infra.contrib.fluxcd.io/v1alpha2", "kind": "Terraform", "metadata": {"name": "x", "namespace": "n"},
        "spec": {"destroyResourcesOnDeletion": true}});
    let p = planned(vec![terraform]);
    let t = target(&p, "terraform.infra.contrib.fluxcd.io/n/x");
    assert_eq!(
        t["spec"],
        json!({"destroyResourcesOnDeletion": false, "suspend": true})
    );
}

#[test]
fn rule_72_of_default_classes_green_has_one_at_most() {
    let priority = |name: &str, default: bool| json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": 10, "globalDefault": default});
    let class = |name: &str, default: &str| {
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": {"name": name,
            "annotations": {"ingressclass.kubernetes.io/is-default-class": default}}, "spec": {"controller": "c"}})
    };
    let mut s = Snapshot::default();
    s.blue.objects = vec![
        priority("a", true),
        priority("b", false),
        class("x", "true"),
    ];
    s.blue.objects.push(class("y", "false"));
    let quiet = plan(&spec(), &s);
    assert!(
        !quiet
            .findings
            .iter()
            .any(|f| f.message.contains("default classes of kind"))
    );
    s.green = Some(crate::snapshot::model::Cluster {
        objects: vec![priority("theirs", true), class("alb", "true")],
        ..Default::default()
    });
    let p = plan(&spec(), &s);
    says(
        &p,
        "API-08",
        "priorityclass/a",
        Severity::Blocker,
        "a, theirs",
    );
    says(&p, "API-08", "ingressclass/x", Severity::Blocker, "alb, x");
}
