//! The corpus of real-shaped objects, files 14 to 25: what the header of each says must become of it.

use super::*;

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
    for part in [
        "connection-draining-timeout=60",
        "cross-zone-load-balancing-enabled=true",
        "access-log-s3-bucket-name=docs-elb-logs",
        "into bucket docs-elb-logs",
    ] {
        says(&p, "NET-10", id, Severity::Warning, part);
    }
    let original = corpus("15").remove(0);
    let kept = |o: &Value| {
        o["metadata"]["annotations"]
            .as_object()
            .map(|a| {
                a.iter()
                    .filter(|(k, _)| k.starts_with("service.beta.kubernetes.io/"))
                    .map(|(k, v)| (k.clone(), v.clone()))
                    .collect::<Vec<_>>()
            })
            .unwrap_or_default()
    };
    assert_eq!(kept(t), kept(&original), "all of them");
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
        "198.51.100.21:3306",
    );
    let wave = |id: &str| {
        p.steps.iter().position(|s| {
            s.params["objects"]
                .to_string()
                .contains(&format!("\"{id}\""))
        })
    };
    assert!(before(
        &p,
        "service/shop/legacy-db",
        "endpoints/shop/legacy-db"
    ));
    assert!(wave("service/shop/legacy-db").is_some() && wave("endpoints/shop/web").is_none());
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
        let original = corpus("19")
            .into_iter()
            .find(|o| o["metadata"]["name"] == name);
        assert_eq!(Some(target(&p, &id)), original.as_ref(), "{id}");
    }
}

#[test]
fn corpus_20_a_dns_endpoint_is_held() {
    let p = planned(corpus("20"));
    let id = "dnsendpoint/tenant-1/tenant-1";
    assert_eq!(of(&p, id).verdict, Fate::Held);
    says(&p, "DNS-14", id, Severity::Warning, "mean blue");
    assert!(target(&p, id).get("status").is_none());
    // Nothing on green writes records while it lies there: green's ExternalDNS starts at the cutover.
    let step = |f: &dyn Fn(&crate::plan::model::StepSpec) -> bool| p.steps.iter().position(f);
    let made = step(&|s| s.params["objects"].to_string().contains(id)).expect("it is created");
    if let Some(start) = step(&|s| s.kind == "edns.start") {
        assert!(made < start);
    }
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
    assert!(
        p.findings
            .iter()
            .any(|f| f.object == token && f.remedy.contains("leave the old ones until finalize")),
        "the way back needs blue's"
    );
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
    // With the Secret there first nothing is issued anew.
    let step = |id: &str| {
        p.steps
            .iter()
            .position(|s| s.params["objects"].to_string().contains(id))
    };
    assert!(step("secret/callbox-qa/callbox-api-tls") < step(cert));
    assert!(step("secret/callbox-qa/callbox-api-tls").is_some());
    for key in [
        "cert-manager.io/certificate-name",
        "cert-manager.io/issuer-name",
    ] {
        assert!(
            target(&p, "secret/callbox-qa/callbox-api-tls")["metadata"]["annotations"]
                .get(key)
                .is_some(),
            "by {key} cert-manager knows it again"
        );
    }
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
    says(
        &p,
        "NET-07",
        "networkpolicy/shop/block-metadata",
        Severity::Warning,
        "node-local DNS",
    );
    for name in ["allow-overlay", "block-metadata"] {
        let id = format!("networkpolicy/shop/{name}");
        assert_eq!(of(&p, &id).verdict, Fate::Copied);
        let original = corpus("23")
            .into_iter()
            .find(|o| o["metadata"]["name"] == name);
        assert_eq!(Some(target(&p, &id)), original.as_ref(), "{id}");
    }
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
