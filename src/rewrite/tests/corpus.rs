//! The corpus of real-shaped objects, files 1 to 13: what the header of each says must become of it.

use super::*;

#[test]
fn corpus_01_a_weighted_ingress_becomes_v1_with_its_own_identifier_and_weight_0() {
    let p = planned(corpus("01"));
    let id = "ingress/accounts-preprod/accounts-old-url";
    let t = target(&p, id);
    assert_eq!(t["apiVersion"], "networking.k8s.io/v1");
    assert_eq!(
        t["spec"]["rules"][0]["http"]["paths"][0],
        json!({"path": "/(.*)", "backend": {"service": {"name": "accounts-web", "port": {"name": "http"}}}, "pathType": "ImplementationSpecific"})
    );
    assert_eq!(
        t["spec"]["rules"][1]["http"]["paths"][0],
        json!({"backend": {"service": {"name": "accounts-web", "port": {"number": 8080}}}, "path": "/", "pathType": "ImplementationSpecific"})
    );
    let a = &t["metadata"]["annotations"];
    assert_eq!(a["kubernetes.io/ingress.class"], "nginx");
    assert_eq!(
        a["external-dns.alpha.kubernetes.io/set-identifier"],
        "accounts-old-url-accounts-preprod-green"
    );
    assert_eq!(a["external-dns.alpha.kubernetes.io/aws-weight"], "0");
    assert_eq!(of(&p, id).verdict, Fate::Held);
    says(&p, "API-06", id, Severity::Warning, "absolute URL");
}

#[test]
fn corpus_02_a_deployment_without_selector_gets_one_and_keeps_its_old_defaults() {
    let p = planned(corpus("02"));
    let id = "deployment/edge/to-https";
    let t = target(&p, id);
    assert_eq!(t["apiVersion"], "apps/v1");
    assert_eq!(
        t["spec"]["selector"]["matchLabels"],
        json!({"app": "to-https", "tier": "edge"})
    );
    assert_eq!(
        t["spec"]["strategy"],
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}})
    );
    assert_eq!(t["spec"]["progressDeadlineSeconds"], 2147483647);
    assert_eq!(t["spec"]["replicas"], 0);
    let park = of(&p, id).park.as_ref().expect("parked");
    assert_eq!(
        (park.field.as_str(), park.wakes.as_str(), &park.value),
        ("/spec/replicas", "unpark", &json!(3))
    );
    assert_eq!(of(&p, id).verdict, Fate::Changed);
}

#[test]
fn corpus_03_a_daemon_set_keeps_on_delete_and_its_docker_paths_are_a_blocker() {
    let p = planned(corpus("03"));
    let id = "daemonset/logging/logship";
    assert_eq!(
        target(&p, id)["spec"]["updateStrategy"],
        json!({"type": "OnDelete"})
    );
    assert_eq!(
        target(&p, id)["spec"]["selector"]["matchLabels"],
        json!({"app": "logship"})
    );
    says(
        &p,
        "CAP-12",
        id,
        Severity::Blocker,
        "/var/lib/docker/containers",
    );
    says(&p, "CAP-02", id, Severity::Info, "control-plane");
}

#[test]
fn corpus_04_a_stateful_set_keeps_on_delete_maps_its_class_and_is_held_until_its_data_moved() {
    let p = planned(corpus("04"));
    let id = "statefulset/coordination/zk";
    let t = target(&p, id);
    assert_eq!(t["apiVersion"], "apps/v1");
    assert_eq!(t["spec"]["updateStrategy"]["type"], "OnDelete");
    assert_eq!(
        t["spec"]["volumeClaimTemplates"][0]["spec"]["storageClassName"],
        "gp3"
    );
    assert_eq!(
        t["spec"]["volumeClaimTemplates"][0]["metadata"],
        json!({"name": "data"})
    );
    assert_eq!(
        of(&p, id).park.as_ref().map(|p| p.value.clone()),
        Some(json!(3))
    );
    says(&p, "WL-04", id, Severity::Blocker, "start empty");
}

#[test]
fn corpus_05_a_cron_job_sleeps_until_open_and_octal_modes_stay_what_they_are() {
    let p = planned(corpus("05"));
    let id = "cronjob/cert-push/push-cert-login";
    let t = target(&p, id);
    assert_eq!(
        (t["apiVersion"].as_str(), &t["spec"]["suspend"]),
        (Some("batch/v1"), &json!(true))
    );
    assert_eq!(
        t.pointer("/spec/jobTemplate/spec/template/spec/volumes/0/configMap/defaultMode"),
        Some(&json!(493))
    );
    let park = of(&p, id).park.as_ref().expect("parked");
    assert_eq!((park.wakes.as_str(), &park.value), ("open", &json!(false)));
    assert_eq!(of(&p, id).verdict, Fate::Held);
    says(
        &p,
        "SNG-05",
        id,
        Severity::Warning,
        "startingDeadlineSeconds",
    );
}

#[test]
fn corpus_06_an_impossible_date_is_kept_and_asked_about() {
    let p = planned(corpus("06"));
    let id = "cronjob/loader/case-loader";
    assert_eq!(target(&p, id)["spec"]["schedule"], "0 0 31 2 *");
    says(&p, "SNG-06", id, Severity::Info, "never comes");
}

#[test]
fn corpus_07_a_pod_security_policy_is_refused_and_its_grants_end_with_it() {
    let p = planned(corpus("07"));
    let id = "podsecuritypolicy/privileged-reports";
    assert_eq!(of(&p, id).verdict, Fate::Refused);
    let f = p
        .findings
        .iter()
        .find(|f| f.object == id)
        .expect("a finding");
    assert!(f.remedy.contains("enforce: privileged"), "{f:?}");
    for rbac in [
        "clusterrole/psp:privileged:reports",
        "clusterrolebinding/psp:privileged:reports",
    ] {
        assert_eq!(of(&p, rbac).verdict, Fate::Skipped, "{rbac}");
        says(&p, "API-03", rbac, Severity::Info, "PodSecurityPolicy");
    }
}

#[test]
fn corpus_08_an_autoscaler_loses_its_status_and_green_starts_at_the_live_count() {
    let p = planned(corpus("08"));
    let id = "horizontalpodautoscaler/shop/search";
    let t = target(&p, id);
    assert_eq!(t["apiVersion"], "autoscaling/v2");
    assert_eq!(t["spec"]["scaleTargetRef"]["apiVersion"], "apps/v1");
    assert!(t.get("status").is_none());
    says(&p, "WL-10", id, Severity::Info, "runs at 17");
    says(&p, "VER-02", id, Severity::Warning, "external metrics");
}

#[test]
fn corpus_09_a_schemaless_crd_keeps_unknown_fields_and_its_object_is_untouched() {
    let objects = corpus("09");
    let p = planned(objects.clone());
    let t = target(&p, "customresourcedefinition/mailroutes.mail.example.com");
    assert_eq!(t["apiVersion"], "apiextensions.k8s.io/v1");
    assert_eq!(
        t["spec"]["versions"],
        json!([{"name": "v1alpha1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            "subresources": {"status": {}},
            "additionalPrinterColumns": [{"name": "Target", "type": "string", "jsonPath": ".spec.target"}]}])
    );
    assert!(
        t["spec"].get("version").is_none() && t["spec"].get("additionalPrinterColumns").is_none()
    );
    let cr = of(&p, "mailroute.mail.example.com/mail/inbound");
    assert_eq!(
        (cr.verdict, cr.target.as_ref()),
        (Fate::Copied, Some(&objects[1]))
    );
    let order: Vec<&str> = p
        .steps
        .iter()
        .filter(|s| s.kind == "replay.wave")
        .map(|s| s.id.as_str())
        .collect();
    assert!(
        order.iter().position(|s| *s == "replay/crds")
            < order.iter().position(|s| *s == "replay/custom"),
        "{order:?}"
    );
}

#[test]
fn corpus_10_a_fail_closed_webhook_comes_last_and_its_side_effects_are_asked_about() {
    let p = planned(corpus("10"));
    let id = "validatingwebhookconfiguration/team-a-ingress-admission";
    assert_eq!(of(&p, id).verdict, Fate::Held);
    let t = target(&p, id);
    assert_eq!(t["apiVersion"], "admissionregistration.k8s.io/v1");
    assert_eq!(
        (
            &t["webhooks"][0]["matchPolicy"],
            &t["webhooks"][0]["admissionReviewVersions"]
        ),
        (&json!("Exact"), &json!(["v1beta1"]))
    );
    says(&p, "API-13", id, Severity::Blocker, "sideEffects");
    says(&p, "API-13", id, Severity::Warning, "CA bundle");
    assert!(
        !p.steps
            .iter()
            .any(|s| s.id.starts_with("replay/") && s.params["objects"].to_string().contains(id))
    );
    assert!(p.steps.iter().any(|s| s.id == "unpark/webhooks"));
}

#[test]
fn corpus_11_two_roles_on_one_account_are_refused_and_an_external_id_is_named() {
    let p = planned(corpus("11"));
    for id in ["deployment/media/thumbs", "cronjob/media/billing-export"] {
        assert_eq!(of(&p, id).verdict, Fate::Refused, "{id}");
        says(&p, "IAM-02", id, Severity::Blocker, "media/default");
    }
    says(
        &p,
        "IAM-01",
        "cronjob/media/billing-export",
        Severity::Blocker,
        "external id",
    );
}

#[test]
fn corpus_12_a_namespace_of_kiam_loses_its_permission_and_its_status() {
    let p = planned(corpus("12"));
    let id = "namespace/payments-prod";
    assert_eq!(
        target(&p, id),
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "payments-prod",
            "labels": {"environment": "production"}, "annotations": {"owner": "payments@example.com"}}})
    );
    says(&p, "IAM-01", id, Severity::Warning, "over-broad");
}

#[test]
fn corpus_12_the_roles_that_pods_really_use_are_listed_and_one_that_no_account_can_carry_blocks() {
    let pod = |name: &str, account: &str| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "payments-prod"},
            "spec": {"selector": {"matchLabels": {"a": name}}, "template": {
                "metadata": {"labels": {"a": name}, "annotations": {"iam.amazonaws.com/role": format!("payments-prod-iam-role-{name}")}},
                "spec": {"serviceAccountName": account, "containers": []}}}})
    };
    let mut objects = corpus("12");
    objects.extend([pod("api", "api"), pod("batch", "default")]);
    let p = planned(objects);
    says(
        &p,
        "IAM-01",
        "namespace/payments-prod",
        Severity::Warning,
        "used by pods: payments-prod-iam-role-api, payments-prod-iam-role-batch",
    );
    // The account `default` belongs to every pod of the namespace: none of them may get the role by accident.
    assert_eq!(
        of(&p, "deployment/payments-prod/batch").verdict,
        Fate::Refused
    );
    says(
        &p,
        "IAM-02",
        "deployment/payments-prod/batch",
        Severity::Blocker,
        "payments-prod/default",
    );
    assert!(of(&p, "deployment/payments-prod/api").target.is_some());
}

#[test]
fn corpus_13_headless_stays_headless_and_an_allocated_address_goes() {
    let p = planned(corpus("13"));
    let t = target(&p, "service/coordination/zk-hs");
    assert_eq!(
        (
            &t["spec"]["clusterIP"],
            &t["spec"]["publishNotReadyAddresses"]
        ),
        (&json!("None"), &json!(true))
    );
    assert!(
        t["metadata"].get("annotations").is_none(),
        "the old annotation is not relied on"
    );
    let t = target(&p, "service/coordination/zk");
    assert!(t["spec"].get("clusterIP").is_none());
    assert!(t["metadata"].get("uid").is_none() && t["metadata"].get("resourceVersion").is_none());
}
