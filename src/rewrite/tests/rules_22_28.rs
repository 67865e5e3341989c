//! Rules 22 to 28 of replay.md: what is never copied. A test of each is named `rule_NN_...`.

use super::*;

fn object(api: &str, kind: &str, ns: &str, name: &str) -> Value {
    let mut o = json!({"apiVersion": api, "kind": kind, "metadata": {"name": name}});
    if !ns.is_empty() {
        o["metadata"]["namespace"] = json!(ns);
    }
    o
}

fn id(o: &Value) -> String {
    crate::object::ObjectId::of(o)
        .expect("an object with a name")
        .to_string()
}

#[track_caller]
fn skipped_by(objects: Vec<Value>, rule: &str) {
    let p = planned(objects.clone());
    for o in &objects {
        let v = of(&p, &id(o));
        assert_eq!(v.verdict, Fate::Skipped, "{}", id(o));
        assert!(
            v.rules.contains(&rule.to_string()),
            "{}: {:?}",
            id(o),
            v.rules
        );
    }
}

#[track_caller]
fn created(objects: Vec<Value>) {
    let p = planned(objects.clone());
    for o in &objects {
        assert!(
            of(&p, &id(o)).target.is_some(),
            "{}: {:?}",
            id(o),
            of(&p, &id(o))
        );
    }
}

#[test]
fn rule_22_what_only_a_running_cluster_makes_is_never_copied() {
    skipped_by(
        vec![
            object("v1", "Event", "shop", "web.1"),
            object("events.k8s.io/v1", "Event", "shop", "web.2"),
            object("coordination.k8s.io/v1", "Lease", "kube-node-lease", "ip-1"),
            object("v1", "Node", "", "ip-1"),
            object("storage.k8s.io/v1", "CSINode", "", "ip-1"),
            object("storage.k8s.io/v1", "VolumeAttachment", "", "csi-1"),
            object(
                "storage.k8s.io/v1beta1",
                "CSIStorageCapacity",
                "kube-system",
                "c",
            ),
            object(
                "certificates.k8s.io/v1",
                "CertificateSigningRequest",
                "",
                "csr-1",
            ),
            object("apps/v1", "ControllerRevision", "shop", "web-5"),
            object("metrics.k8s.io/v1beta1", "PodMetrics", "shop", "web-0"),
        ],
        "replay.md 22",
    );
    // Somebody's own kinds that are called alike are data.
    created(vec![
        object("shop.test/v1", "Event", "shop", "launch"),
        object("shop.test/v1", "Node", "shop", "n"),
        object("shop.test/v1", "Lease", "shop", "flat-3"),
    ]);
}

#[test]
fn rule_23_keda_1166_locks_of_leaders_are_never_copied_and_peoples_config_maps_are() {
    let mut endpoints = object("v1", "Endpoints", "shop", "old-lock");
    endpoints["metadata"]["annotations"]["control-plane.alpha.kubernetes.io/leader"] =
        json!("{\"holderIdentity\":\"web-0\"}");
    let mut holder = object("v1", "ConfigMap", "shop", "operator-lock");
    holder["data"] = json!({"holderIdentity": "op-7d9", "renewTime": "2026-11-30T10:00:00Z"});
    let mut by_annotation = object("v1", "ConfigMap", "shop", "controller");
    by_annotation["metadata"]["annotations"]["control-plane.alpha.kubernetes.io/leader"] =
        json!("{}");
    skipped_by(
        vec![
            endpoints,
            holder,
            by_annotation,
            object("v1", "ConfigMap", "shop", "x-leader-election"),
        ],
        "replay.md 23",
    );
    let mut table = object("v1", "ConfigMap", "shop", "door-lock");
    table["data"] = json!({"pins.yaml": "front: 1234"});
    created(vec![table, object("v1", "ConfigMap", "shop", "empty")]);
}

#[test]
fn rule_24_what_each_namespace_gets_by_itself_stays_and_what_people_added_to_it_comes() {
    skipped_by(
        vec![
            object("v1", "ServiceAccount", "shop", "default"),
            object("v1", "ConfigMap", "shop", "kube-root-ca.crt"),
            object("v1", "ConfigMap", "shop", "istio-ca-root-cert"),
            object("v1", "Service", "default", "kubernetes"),
            object("v1", "Endpoints", "default", "kubernetes"),
            object(
                "discovery.k8s.io/v1",
                "EndpointSlice",
                "default",
                "kubernetes",
            ),
        ],
        "replay.md 24",
    );
    let mut account = object("v1", "ServiceAccount", "shop", "default");
    account["imagePullSecrets"] = json!([{"name": "registry"}]);
    account["secrets"] = json!([{"name": "default-token-x7k2p"}]);
    let p = planned(vec![account]);
    assert_eq!(
        target(&p, "serviceaccount/shop/default"),
        &json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "shop"},
            "imagePullSecrets": [{"name": "registry"}]})
    );
}

#[test]
fn rule_24_crane_486_a_ca_that_an_operator_writes_in_is_left_for_greens_operator() {
    let mut injected = object("v1", "ConfigMap", "shop", "service-ca");
    injected["metadata"]["annotations"]["service.beta.openshift.io/inject-cabundle"] =
        json!("true");
    injected["data"] = json!({"service-ca.crt": "BLUE"});
    let p = planned(vec![injected]);
    let t = target(&p, "configmap/shop/service-ca");
    assert!(t.get("data").is_none());
    assert_eq!(
        t["metadata"]["annotations"]["service.beta.openshift.io/inject-cabundle"],
        "true"
    );
    says(
        &p,
        "TLS-04",
        "configmap/shop/service-ca",
        Severity::Warning,
        "green's operator",
    );
}

#[test]
fn crane_501_a_reference_to_what_is_not_there_stays_as_it_is_and_is_named() {
    let mut web = object("apps/v1", "Deployment", "shop", "web");
    web["spec"] = json!({"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [
        {"name": "c", "image": "c:1", "envFrom": [{"configMapRef": {"name": "gone"}}, {"configMapRef": {"name": "maybe", "optional": true}}, {"configMapRef": {"name": "here"}}]}]}}});
    let p = planned(vec![web.clone(), object("v1", "ConfigMap", "shop", "here")]);
    let id = "deployment/shop/web";
    assert_eq!(target(&p, id)["spec"]["template"], web["spec"]["template"]);
    let all = found(&p, "WL-09", id);
    assert_eq!(all.len(), 1, "{all:?}");
    assert!(
        all[0].1.contains("configmap/shop/gone")
            && !all[0].1.contains("maybe")
            && !all[0].1.contains("here,"),
        "{all:?}"
    );
}

#[test]
fn rule_25_what_every_server_makes_for_itself_is_never_copied() {
    let rbac = "rbac.authorization.k8s.io/v1";
    let mut labelled = object(rbac, "Role", "kube-public", "some-role");
    labelled["metadata"]["labels"]["kubernetes.io/bootstrapping"] = json!("rbac-defaults");
    let mut token = object("v1", "Secret", "kube-system", "bootstrap-token-abcdef");
    token["type"] = json!("bootstrap.kubernetes.io/token");
    let mut local = object("apiregistration.k8s.io/v1", "APIService", "", "v1.apps");
    local["metadata"]["labels"]["kube-aggregator.kubernetes.io/automanaged"] = json!("onstart");
    skipped_by(
        vec![
            labelled,
            token,
            local,
            object(rbac, "ClusterRole", "", "admin"),
            object(rbac, "ClusterRole", "", "system:discovery"),
            object(rbac, "ClusterRoleBinding", "", "eks:node-bootstrapper"),
            object(
                "scheduling.k8s.io/v1",
                "PriorityClass",
                "",
                "system-node-critical",
            ),
            object(
                "flowcontrol.apiserver.k8s.io/v1beta1",
                "FlowSchema",
                "",
                "probes",
            ),
            object(
                "v1",
                "ConfigMap",
                "kube-system",
                "extension-apiserver-authentication",
            ),
            object(
                "v1",
                "ConfigMap",
                "kube-system",
                "kube-apiserver-legacy-service-account-token-tracking",
            ),
            object("v1", "ConfigMap", "kube-system", "aws-auth"),
        ],
        "replay.md 25",
    );
    // What somebody called `admin` or `view` in a namespace is that somebody's.
    created(vec![
        object(rbac, "RoleBinding", "shop", "admin"),
        object(rbac, "Role", "shop", "view"),
        object(rbac, "ClusterRoleBinding", "", "view"),
        object("scheduling.k8s.io/v1", "PriorityClass", "", "shop-critical"),
    ]);
}

#[test]
fn rule_25_whom_people_added_to_a_built_in_binding_is_named() {
    let mut binding = object(
        "rbac.authorization.k8s.io/v1",
        "ClusterRoleBinding",
        "",
        "cluster-admin",
    );
    binding["subjects"] = json!([{"kind": "Group", "name": "system:masters"}, {"kind": "User", "name": "ann@example.com"}]);
    let p = planned(vec![binding]);
    says(
        &p,
        "IAM-07",
        "clusterrolebinding/cluster-admin",
        Severity::Warning,
        "ann@example.com",
    );
}

#[test]
fn rule_26_kops_parts_stay_and_what_people_keep_in_kube_system_comes() {
    let mut marked = object("apps/v1", "DaemonSet", "kube-system", "something");
    marked["metadata"]["labels"]["addon.kops.k8s.io/name"] = json!("networking.cilium.io");
    let mut managed = object("v1", "ConfigMap", "kube-system", "else");
    managed["metadata"]["labels"]["app.kubernetes.io/managed-by"] = json!("kops");
    skipped_by(
        vec![
            marked,
            managed,
            object("apps/v1", "Deployment", "kube-system", "dns-controller"),
            object("apps/v1", "Deployment", "kube-system", "coredns"),
            object("v1", "ServiceAccount", "kube-system", "kops-controller"),
            object(
                "v1",
                "ServiceAccount",
                "kube-system",
                "replicaset-controller",
            ),
            object(
                "rbac.authorization.k8s.io/v1",
                "ClusterRole",
                "",
                "kops:dns-controller",
            ),
        ],
        "replay.md 26",
    );
    let mut limits = object("v1", "LimitRange", "default", "limits");
    limits["metadata"]["labels"] = json!({"addon.kops.k8s.io/name": "limit-range.addons.k8s.io", "app.kubernetes.io/managed-by": "kops"});
    limits["spec"] = json!({"limits": [{"type": "Container", "defaultRequest": {"cpu": "100m"}}]});
    let p = planned(vec![limits]);
    assert_eq!(
        target(&p, "limitrange/default/limits"),
        &json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "limits", "namespace": "default"},
            "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "100m"}}]}})
    );
    // Accounts of controllers that people installed there, though their names end as those of Kubernetes' own loops.
    created(vec![
        object(
            "v1",
            "ServiceAccount",
            "kube-system",
            "sealed-secrets-controller",
        ),
        object(
            "v1",
            "ServiceAccount",
            "kube-system",
            "aws-load-balancer-controller",
        ),
        object("v1", "ConfigMap", "kube-system", "team-settings"),
    ]);
}

#[test]
fn rule_26_zones_that_people_gave_to_coredns_are_carried_over_as_a_wish() {
    let mut corefile = object("v1", "ConfigMap", "kube-system", "coredns");
    corefile["data"] = json!({"Corefile": ".:53 {\n  forward . /etc/resolv.conf\n}\ncorp.example.com:53 {\n  forward . 10.0.0.2\n}\n"});
    let p = planned(vec![corefile]);
    let id = "configmap/kube-system/coredns";
    assert_eq!(of(&p, id).verdict, Fate::Skipped);
    says(&p, "VER-04", id, Severity::Warning, "corp.example.com:53");
}

#[test]
fn rule_27_children_are_made_again_by_greens_controllers() {
    let owned = |mut o: Value, kind: &str| {
        o["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": kind, "name": "web", "uid": "1", "controller": true}]);
        o
    };
    let mut bound = object(
        "elbv2.k8s.aws/v1beta1",
        "TargetGroupBinding",
        "shop",
        "k8s-shop-web",
    );
    bound["metadata"]["labels"]["ingress.k8s.aws/stack"] = json!("web");
    skipped_by(
        vec![
            owned(
                object("apps/v1", "ReplicaSet", "shop", "web-6d9f"),
                "Deployment",
            ),
            owned(object("v1", "Pod", "shop", "web-6d9f-x1"), "ReplicaSet"),
            object("cert-manager.io/v1", "CertificateRequest", "shop", "c-1"),
            object("acme.cert-manager.io/v1", "Order", "shop", "c-1"),
            object("acme.cert-manager.io/v1", "Challenge", "shop", "c-1"),
            object("networking.k8s.aws/v1alpha1", "PolicyEndpoint", "shop", "p"),
            object("cilium.io/v2", "CiliumEndpoint", "shop", "web-0"),
            object("cilium.io/v2", "CiliumIdentity", "", "1234"),
            object("crd.projectcalico.org/v1", "IPAMBlock", "", "100-96-0-0-26"),
            object("crd.projectcalico.org/v1", "BlockAffinity", "", "ip-1"),
            object("vpcresources.k8s.aws/v1alpha1", "CNINode", "", "ip-1"),
            object(
                "autoscaling.k8s.io/v1",
                "VerticalPodAutoscalerCheckpoint",
                "shop",
                "web",
            ),
            object("v1", "ConfigMap", "shop", "aws-lbc-targets-k8s-shop-web"),
            bound,
        ],
        "replay.md 27",
    );
    // A shop has orders too.
    created(vec![
        object("shop.test/v1", "Order", "shop", "4711"),
        object("shop.test/v1", "Challenge", "shop", "run-10k"),
    ]);
}

#[test]
fn rule_27_applications_of_an_application_set_are_its_children() {
    let mut set = object("argoproj.io/v1alpha1", "ApplicationSet", "argocd", "all");
    set["metadata"]["uid"] = json!("u1");
    let mut app = object("argoproj.io/v1alpha1", "Application", "argocd", "shop");
    app["metadata"]["ownerReferences"] = json!([{"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "all", "uid": "u1", "controller": true}]);
    let p = planned(vec![set, app]);
    assert_eq!(
        of(&p, "application.argoproj.io/argocd/shop").verdict,
        Fate::Skipped
    );
}

#[test]
fn rule_28_mirror_pods_and_what_has_ended_are_not_started_again() {
    let mut mirror = object("v1", "Pod", "shop", "etcd-manager-main-ip-1");
    mirror["metadata"]["annotations"]["kubernetes.io/config.mirror"] = json!("hash");
    let mut done = object("v1", "Pod", "shop", "once");
    done["status"]["phase"] = json!("Succeeded");
    let mut job = object("batch/v1", "Job", "shop", "migrate-db");
    job["status"]["conditions"] = json!([{"type": "Complete", "status": "True"}]);
    skipped_by(vec![mirror, done, job], "replay.md 28");
}

#[test]
fn rule_28_velero_8800_who_waits_for_a_finished_job_is_named() {
    let mut job = object("batch/v1", "Job", "shop", "migrate-db");
    job["status"]["conditions"] = json!([{"type": "Complete", "status": "True"}]);
    let waiter = |name: &str, args: Value| {
        let mut d = object("apps/v1", "Deployment", "shop", name);
        d["spec"] = json!({"selector": {"matchLabels": {"a": name}}, "template": {"metadata": {"labels": {"a": name}}, "spec": {
            "initContainers": [{"name": "wait", "image": "w:1", "args": args}], "containers": []}}});
        d
    };
    let p = planned(vec![
        job.clone(),
        waiter("web", json!(["job", "migrate-db"])),
        waiter(
            "api",
            json!([
                "-c",
                "kubectl wait --for=condition=complete job/migrate-db --timeout=1h"
            ]),
        ),
        waiter("other", json!(["job", "another"])),
    ]);
    let all = found(&p, "WL-02", "job/shop/migrate-db");
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(all[0].0, Severity::Warning);
    assert!(
        all[0].1.contains("deployment/shop/web")
            && all[0].1.contains("deployment/shop/api")
            && !all[0].1.contains("other"),
        "{all:?}"
    );
    // Nobody waits: a word is enough.
    says(
        &planned(vec![job]),
        "WL-02",
        "job/shop/migrate-db",
        Severity::Info,
        "would run again",
    );
}
