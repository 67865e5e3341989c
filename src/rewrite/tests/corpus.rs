//! The corpus of real-shaped objects: what the header of each file says must become of it.

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
    let t = target(&p, "service/coordination/zk");
    assert!(t["spec"].get("clusterIP").is_none());
    assert!(t["metadata"].get("uid").is_none() && t["metadata"].get("resourceVersion").is_none());
}

#[test]
fn corpus_14_only_a_node_port_that_its_owner_asked_for_is_kept() {
    let p = planned(corpus("14"));
    assert_eq!(
        target(&p, "service/basket/basket-admin")["spec"]["ports"][0]["nodePort"],
        32555
    );
    assert!(
        target(&p, "service/basket/basket-web")["spec"]["ports"][0]
            .get("nodePort")
            .is_none()
    );
    let edge = &target(&p, "service/basket/basket-edge")["spec"];
    assert!(
        edge.get("healthCheckNodePort").is_none() && edge["ports"][0].get("nodePort").is_none()
    );
    says(
        &p,
        "NET-06",
        "service/basket/basket-admin",
        Severity::Warning,
        "32555",
    );
}

#[test]
fn corpus_15_load_balancer_attributes_are_listed_and_a_certificate_of_another_region_blocks() {
    let p = planned(corpus("15"));
    let id = "service/docs-prod/web";
    let t = target(&p, id);
    assert!(
        t.get("status").is_none()
            && t["spec"].get("clusterIP").is_none()
            && t["spec"]["ports"][0].get("nodePort").is_none()
    );
    assert_eq!(
        t["metadata"]["annotations"]["service.beta.kubernetes.io/aws-load-balancer-connection-idle-timeout"],
        "118"
    );
    says(
        &p,
        "NET-10",
        id,
        Severity::Warning,
        "connection-idle-timeout=118",
    );
    says(&p, "TLS-05", id, Severity::Blocker, "us-west-2");
}

#[test]
fn corpus_16_an_in_tree_volume_becomes_csi_and_blocks_until_it_is_kept() {
    let p = planned(corpus("16"));
    let id = "persistentvolume/pvc-2131c99a-5c2a-472f-aee8-000000000001";
    let t = target(&p, id);
    assert_eq!(
        t["spec"]["csi"],
        json!({"driver": "ebs.csi.aws.com", "volumeHandle": "vol-0abc12de34f567890", "fsType": "ext4"})
    );
    assert_eq!(
        t["spec"]["claimRef"],
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "grader", "name": "backend-data"})
    );
    assert_eq!(
        t.pointer("/spec/nodeAffinity/required/nodeSelectorTerms/0/matchExpressions"),
        Some(
            &json!([{"key": "topology.ebs.csi.aws.com/zone", "operator": "In", "values": ["us-east-1c"]}])
        )
    );
    assert_eq!(
        t["metadata"],
        json!({"name": "pvc-2131c99a-5c2a-472f-aee8-000000000001"})
    );
    says(&p, "STO-01", id, Severity::Blocker, "Delete");
}

#[test]
fn corpus_17_the_old_default_class_gives_way_to_greens_own_and_its_limits_are_named() {
    let p = planned(corpus("17"));
    assert_eq!(of(&p, "storageclass/gp2").verdict, Fate::Skipped);
    says(
        &p,
        "STO-04",
        "storageclass/gp2",
        Severity::Warning,
        "eu-central-1a,eu-central-1b",
    );
    let defaults = p
        .generated
        .iter()
        .filter(|o| o["kind"] == "StorageClass")
        .count();
    assert_eq!(defaults, 1, "exactly one default class");
}

#[test]
fn corpus_18_hand_written_endpoints_are_copied_and_generated_ones_are_not() {
    let p = planned(corpus("18"));
    assert_eq!(of(&p, "endpoints/shop/legacy-db").verdict, Fate::Copied);
    says(
        &p,
        "NET-06",
        "endpoints/shop/legacy-db",
        Severity::Info,
        "198.51.100.21",
    );
    assert_eq!(
        of(&p, "endpoints/shop/web").rules,
        ["replay.md 12", "replay.md 34"]
    );
    assert_eq!(of(&p, "endpoints/shop/web").verdict, Fate::Skipped);
}

#[test]
fn corpus_19_external_names_are_copied_with_a_word_about_where_they_point() {
    let p = planned(corpus("19"));
    for (name, part) in [
        ("api-classic", "another platform"),
        ("files", "disappear with blue"),
        ("auth", "points into blue"),
    ] {
        let id = format!("service/gateway/{name}");
        assert_eq!(of(&p, &id).verdict, Fate::Copied, "{id}");
        says(&p, "NET-06", &id, Severity::Warning, part);
    }
}

#[test]
fn corpus_20_a_dns_endpoint_is_held() {
    let p = planned(corpus("20"));
    let id = "dnsendpoint/tenant-1/tenant-1";
    assert_eq!(of(&p, id).verdict, Fate::Held);
    says(&p, "DNS-14", id, Severity::Warning, "mean blue");
}

#[test]
fn corpus_21_a_token_of_blue_is_never_copied_and_outside_users_are_named() {
    let p = planned(corpus("21"));
    let sa = target(&p, "serviceaccount/payments-prod/ci-deployer");
    assert!(sa.get("secrets").is_none());
    assert_eq!(sa["imagePullSecrets"], json!([{"name": "registry-login"}]));
    let token = "secret/payments-prod/ci-deployer-token-x7k2p";
    assert_eq!(of(&p, token).verdict, Fate::Skipped);
    says(&p, "GIT-05", token, Severity::Warning, "outside system");
}

#[test]
fn corpus_22_a_certificate_becomes_v1_after_its_secret_and_orders_are_left_behind() {
    let p = planned(corpus("22"));
    let cert = "certificate.cert-manager.io/callbox-qa/callbox-api-qa";
    assert_eq!(target(&p, cert)["apiVersion"], "cert-manager.io/v1");
    assert_eq!(
        target(&p, cert)["spec"]["privateKey"],
        json!({"algorithm": "RSA", "size": 2048})
    );
    assert_eq!(
        of(&p, "secret/callbox-qa/callbox-api-tls").verdict,
        Fate::Copied
    );
    assert_eq!(
        of(
            &p,
            "order.acme.cert-manager.io/callbox-qa/callbox-api-qa-4171"
        )
        .verdict,
        Fate::Skipped
    );
}

#[test]
fn corpus_23_policies_keep_their_words_and_say_what_these_mean_on_green() {
    let mut s = Snapshot::default();
    s.blue.objects = corpus("23");
    s.kops.cluster = Some(
        json!({"kind": "Cluster", "metadata": {"name": "blue.example.com"}, "spec": {"networkCIDR": "172.20.0.0/16"}}),
    );
    let p = plan(&spec(), &s);
    says(
        &p,
        "NET-07",
        "networkpolicy/shop/allow-overlay",
        Severity::Warning,
        "100.96.0.0/11",
    );
    says(
        &p,
        "NET-07",
        "networkpolicy/shop/block-metadata",
        Severity::Warning,
        "169.254.170.23",
    );
    assert_eq!(
        of(&p, "networkpolicy/shop/allow-overlay").verdict,
        Fate::Copied
    );
}

#[test]
fn corpus_24_an_empty_budget_selector_is_refused_and_a_budget_that_never_yields_is_a_warning() {
    let p = planned(corpus("24"));
    assert_eq!(
        of(&p, "poddisruptionbudget/shop/everything").verdict,
        Fate::Refused
    );
    says(
        &p,
        "API-05",
        "poddisruptionbudget/shop/everything",
        Severity::Blocker,
        "empty selector",
    );
    assert_eq!(
        target(&p, "poddisruptionbudget/shop/cache")["apiVersion"],
        "policy/v1"
    );
    says(
        &p,
        "WL-10",
        "poddisruptionbudget/shop/cache",
        Severity::Warning,
        "no disruption",
    );
}

#[test]
fn corpus_25_the_old_external_dns_is_replaced_and_its_default_owner_blocks() {
    let p = planned(corpus("25"));
    let id = "deployment/kube-system/external-dns";
    assert_eq!(
        (
            of(&p, id).verdict,
            of(&p, id)
                .rules
                .contains(&"externaldns.md rule 9".to_string())
        ),
        (Fate::Skipped, true)
    );
    says(&p, "DNS-01", id, Severity::Blocker, "default");
    let own = p
        .generated
        .iter()
        .find(|o| o["kind"] == "Deployment")
        .expect("green's own");
    let args = own["spec"]["template"]["spec"]["containers"][0]["args"].to_string();
    for flag in [
        "--policy=upsert-only",
        "--txt-owner-id=green",
        "--txt-prefix=_extdns.",
        "--annotation-prefix=external-dns.alpha.kubernetes.io/",
        "--exclude-record-types=AAAA",
    ] {
        assert!(args.contains(flag), "{flag} in {args}");
    }
    assert_eq!(own["spec"]["replicas"], 0);
    assert!(
        !p.target.roles.iter().any(|r| r.existing),
        "green's instance has its own role"
    );
}
