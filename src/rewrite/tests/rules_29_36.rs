//! Rules 29 to 36 of replay.md: Services, endpoints and load balancers. A test of each is named `rule_NN_...`.

use super::*;
use crate::snapshot::model::Cluster;

fn service(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "shop"}, "spec": spec})
}

fn applied(mut o: Value, text: &str) -> Value {
    o["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = json!(text);
    o
}

/// Blue with kops's own ranges: pods and Services in 100.64.0.0/10.
fn on_kops(objects: Vec<Value>) -> Plan {
    let mut s = Snapshot::default();
    s.kops.cluster = Some(
        json!({"kind": "Cluster", "metadata": {"name": "blue.example.com"}, "spec": {"networkCIDR": "172.20.0.0/16"}}),
    );
    s.blue.objects = objects;
    plan(&spec(), &s)
}

#[test]
fn rule_29_velero_168_an_allocated_address_goes_and_headless_stays_headless() {
    let p = planned(vec![
        service(
            "web",
            json!({"clusterIP": "100.64.0.9", "clusterIPs": ["100.64.0.9"], "ports": [{"port": 80}]}),
        ),
        service(
            "peers",
            json!({"clusterIP": "None", "clusterIPs": ["None"], "ports": [{"port": 80}]}),
        ),
    ]);
    assert_eq!(
        target(&p, "service/shop/web")["spec"],
        json!({"ports": [{"port": 80}]})
    );
    assert_eq!(of(&p, "service/shop/web").rules, ["replay.md 29"]);
    assert_eq!(
        target(&p, "service/shop/peers")["spec"],
        json!({"clusterIP": "None", "clusterIPs": ["None"], "ports": [{"port": 80}]})
    );
}

#[test]
fn rule_29_an_address_that_somebody_asked_for_or_wrote_down_is_named() {
    let dns = applied(
        service(
            "dns",
            json!({"clusterIP": "100.64.0.53", "ports": [{"port": 53}]}),
        ),
        r#"{"spec":{"clusterIP":"100.64.0.53","ports":[{"port":53}]}}"#,
    );
    let user = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "resolv", "namespace": "shop"}, "data": {"nameserver": "100.64.0.53"}});
    let p = on_kops(vec![dns, user]);
    says(
        &p,
        "NET-06",
        "service/shop/dns",
        Severity::Warning,
        "asked for the address 100.64.0.53",
    );
    says(
        &p,
        "NET-06",
        "configmap/shop/resolv",
        Severity::Warning,
        "nameserver: 100.64.0.53",
    );
}

#[test]
fn rule_30_a_node_port_is_kept_only_when_its_owner_asked_for_it() {
    let ports = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}, {"port": 81, "nodePort": 30081, "protocol": "TCP"}]});
    let by_text = applied(
        service("by-text", ports.clone()),
        r#"{"spec":{"ports":[{"port":80,"nodePort":30080},{"port":81}]}}"#,
    );
    let mut by_manager = service("by-manager", ports.clone());
    by_manager["metadata"]["managedFields"] = json!([
        {"manager": "helm", "operation": "Update", "fieldsV1": {"f:spec": {"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {"f:nodePort": {}}}}}},
        {"manager": "kube-controller-manager", "operation": "Update", "fieldsV1": {"f:spec": {"f:ports": {"k:{\"port\":81,\"protocol\":\"TCP\"}": {"f:nodePort": {}}}}}}]);
    // As the snapshot keeps it.
    crate::snapshot::mask::object(
        &crate::snapshot::mask::Key::from_bytes([7; 32]),
        &mut by_manager,
    );
    let given = service("given", ports);
    let p = planned(vec![by_text, by_manager, given]);
    for (name, left) in [
        ("by-text", json!([30080, null])),
        ("by-manager", json!([30080, null])),
        ("given", json!([null, null])),
    ] {
        let t = target(&p, &format!("service/shop/{name}"));
        let ports: Vec<Value> = (0..2)
            .map(|i| {
                t["spec"]["ports"][i]
                    .get("nodePort")
                    .cloned()
                    .unwrap_or_default()
            })
            .collect();
        assert_eq!(json!(ports), left, "{name}");
        assert!(t["metadata"].get("managedFields").is_none());
    }
}

#[test]
fn rule_30_velero_2308_a_port_that_green_has_given_already_blocks() {
    let mut s = Snapshot::default();
    s.blue.objects = vec![applied(
        service(
            "admin",
            json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 32555}]}),
        ),
        r#"{"spec":{"ports":[{"port":80,"nodePort":32555}]}}"#,
    )];
    let mut other = service(
        "other",
        json!({"type": "NodePort", "ports": [{"port": 1, "nodePort": 32555}]}),
    );
    s.green = Some(Cluster {
        objects: vec![other.clone()],
        ..Cluster::default()
    });
    says(
        &plan(&spec(), &s),
        "NET-06",
        "service/shop/admin",
        Severity::Blocker,
        "32555 by service/shop/other",
    );
    // The same Service, from an earlier run, takes nothing away.
    other["metadata"]["name"] = json!("admin");
    s.green = Some(Cluster {
        objects: vec![other],
        ..Cluster::default()
    });
    let p = plan(&spec(), &s);
    assert!(
        found(&p, "NET-06", "service/shop/admin")
            .iter()
            .all(|(s, _)| *s != Severity::Blocker)
    );
}

#[test]
fn rule_30_a_health_check_port_stays_only_where_it_was_asked_for_and_means_something() {
    let local = |name: &str| {
        service(
            name,
            json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 30591, "ports": [{"port": 443}]}),
        )
    };
    let text = r#"{"spec":{"healthCheckNodePort":30591}}"#;
    let mut cluster_wide = applied(local("wide"), text);
    cluster_wide["spec"]["externalTrafficPolicy"] = json!("Cluster");
    let p = planned(vec![
        local("given"),
        applied(local("asked"), text),
        cluster_wide,
    ]);
    for (name, port) in [("given", None), ("asked", Some(30591)), ("wide", None)] {
        assert_eq!(
            target(&p, &format!("service/shop/{name}"))["spec"]
                .get("healthCheckNodePort")
                .and_then(Value::as_u64),
            port,
            "{name}"
        );
    }
}

#[test]
fn rule_31_families_follow_green_and_fixed_addresses_go_or_are_named() {
    let p = on_kops(vec![
        service(
            "dual",
            json!({"ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "PreferDualStack", "ports": []}),
        ),
        service(
            "must",
            json!({"ipFamilies": ["IPv6"], "ipFamilyPolicy": "RequireDualStack", "ports": []}),
        ),
        service(
            "fixed",
            json!({"type": "LoadBalancer", "loadBalancerIP": "198.51.100.7", "externalIPs": ["203.0.113.8"], "loadBalancerSourceRanges": ["203.0.113.0/24", "100.96.0.0/11"], "loadBalancerClass": "service.k8s.aws/nlb", "ports": []}),
        ),
    ]);
    assert_eq!(
        target(&p, "service/shop/dual")["spec"],
        json!({"ipFamilyPolicy": "PreferDualStack", "ports": []})
    );
    says(
        &p,
        "NET-06",
        "service/shop/must",
        Severity::Blocker,
        "both IP families",
    );
    let fixed = "service/shop/fixed";
    assert!(target(&p, fixed)["spec"].get("loadBalancerIP").is_none());
    // A class cannot be changed later: what its owner chose is there from the first moment.
    assert_eq!(
        target(&p, fixed)["spec"]["loadBalancerClass"],
        "service.k8s.aws/nlb"
    );
    says(&p, "NET-06", fixed, Severity::Warning, "externalIPs");
    // Of source ranges those that nobody on green has; partners keep theirs.
    let ranges = p
        .findings
        .iter()
        .find(|f| f.id == "NET-05" && f.object == fixed)
        .map(|f| f.message.clone())
        .unwrap_or_default();
    assert!(
        ranges.contains("100.96.0.0/11") && !ranges.contains("203.0.113"),
        "{ranges}"
    );
}

#[test]
fn rule_32_annotations_that_name_things_of_blue_go_and_a_certificate_elsewhere_blocks() {
    let prefix = "service.beta.kubernetes.io/aws-load-balancer";
    let mut o = service("edge", json!({"type": "LoadBalancer", "ports": []}));
    for (key, value) in [
        ("eip-allocations", "eipalloc-1"),
        ("subnets", "subnet-1"),
        ("security-groups", "sg-1"),
        ("name", "blue-edge"),
        ("internal", "true"),
        (
            "ssl-cert",
            "arn:aws:acm:us-west-2:123456789012:certificate/1",
        ),
    ] {
        o["metadata"]["annotations"][format!("{prefix}-{key}")] = json!(value);
    }
    o["status"] = json!({"loadBalancer": {"ingress": [{"hostname": "blue-edge.elb.eu-west-1.amazonaws.com"}]}});
    let ingress = json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "web", "namespace": "shop", "annotations": {
        "alb.ingress.kubernetes.io/subnets": "subnet-1", "alb.ingress.kubernetes.io/security-groups": "sg-1", "alb.ingress.kubernetes.io/load-balancer-name": "blue", "alb.ingress.kubernetes.io/scheme": "internal"}},
        "spec": {"ingressClassName": "alb", "rules": []}});
    let p = planned(vec![o, ingress]);
    let id = "service/shop/edge";
    let notes = target(&p, id)["metadata"]["annotations"].clone();
    assert_eq!(
        notes
            .as_object()
            .map(|a| a.keys().cloned().collect::<Vec<_>>()),
        Some(vec![
            format!("{prefix}-internal"),
            format!("{prefix}-ssl-cert")
        ])
    );
    assert!(target(&p, id).get("status").is_none());
    says(&p, "NET-11", id, Severity::Warning, "eip-allocations");
    says(&p, "TLS-05", id, Severity::Blocker, "us-west-2");
    assert_eq!(
        target(&p, "ingress/shop/web")["metadata"]["annotations"],
        json!({"alb.ingress.kubernetes.io/scheme": "internal"})
    );
}

#[test]
fn rule_33_velero_9576_a_target_group_of_blue_is_never_bound_on_green() {
    let arn = "arn:aws:elasticloadbalancing:eu-west-1:123456789012:targetgroup/web/0123";
    let binding = |name: &str, more: Value| {
        let mut o = json!({"apiVersion": "elbv2.k8s.aws/v1beta1", "kind": "TargetGroupBinding", "metadata": {"name": name, "namespace": "shop"},
            "spec": {"targetGroupARN": arn, "serviceRef": {"name": "web", "port": 80}}});
        for (k, v) in more.as_object().into_iter().flatten() {
            o["spec"][k] = v.clone();
        }
        o
    };
    let objects = vec![
        binding("own", json!({})),
        binding("shared", json!({"multiClusterTargetGroup": true})),
    ];
    let p = planned(objects.clone());
    let (own, shared) = (
        "targetgroupbinding.elbv2.k8s.aws/shop/own",
        "targetgroupbinding.elbv2.k8s.aws/shop/shared",
    );
    assert_eq!(of(&p, own).verdict, Fate::Refused);
    says(
        &p,
        "NET-11",
        own,
        Severity::Blocker,
        "throw blue's targets out",
    );
    // Even where both may bind it, green's pods would get requests before the cutover.
    assert_eq!(of(&p, shared).verdict, Fate::Skipped);
    says(
        &p,
        "NET-11",
        shared,
        Severity::Warning,
        "before the cutover",
    );

    // A target group of green's own is what the rule asks for.
    let green = arn.replace("/web/", "/web-green/");
    let mut spec = spec();
    spec.workloads.replace = [(arn.to_string(), green.clone())].into();
    let mut s = Snapshot::default();
    s.blue.objects = objects;
    let p = plan(&spec, &s);
    assert_eq!(target(&p, own)["spec"]["targetGroupARN"], json!(green));
    assert!(of(&p, own).rules.contains(&"replay.md 33".to_string()));
}

fn endpoints(name: &str, ip: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": name, "namespace": "shop"}, "subsets": [{"addresses": [{"ip": ip}], "ports": [{"port": 3306}]}]})
}

#[test]
fn rule_34_velero_6280_hand_written_endpoints_come_after_their_service_and_kept_ones_not_at_all() {
    let mut waiting = endpoints("waiting", "198.51.100.4");
    waiting["subsets"] =
        json!([{"notReadyAddresses": [{"ip": "100.96.3.4"}], "ports": [{"port": 1}]}]);
    let p = on_kops(vec![
        service("db", json!({"ports": [{"port": 3306}]})),
        endpoints("db", "198.51.100.21"),
        endpoints("alone", "198.51.100.22"),
        service(
            "web",
            json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}),
        ),
        endpoints("web", "100.96.4.17"),
        endpoints("pods", "100.96.4.18"),
        waiting,
    ]);
    let step = |id: &str| {
        p.steps.iter().position(|s| {
            s.id.starts_with("replay/")
                && s.params["objects"]
                    .to_string()
                    .contains(&format!("\"{id}\""))
        })
    };
    assert!(before(&p, "service/shop/db", "endpoints/shop/db"));
    assert!(step("service/shop/db").is_some() && step("endpoints/shop/alone").is_some());
    assert_eq!(of(&p, "endpoints/shop/web").verdict, Fate::Skipped);
    for id in ["endpoints/shop/pods", "endpoints/shop/waiting"] {
        assert_eq!(of(&p, id).verdict, Fate::Refused, "{id}");
        says(&p, "NET-06", id, Severity::Blocker, "blue's pods");
    }
    says(
        &p,
        "NET-06",
        "endpoints/shop/db",
        Severity::Info,
        "198.51.100.21",
    );
}

#[test]
fn rule_35_slices_that_a_controller_keeps_are_not_copied_and_custom_ones_stand_for_themselves() {
    let slice = |name: &str, by: &str, service: &str, ip: &str| {
        json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": name, "namespace": "shop", "labels": {"endpointslice.kubernetes.io/managed-by": by, "kubernetes.io/service-name": service},
                "ownerReferences": [{"apiVersion": "v1", "kind": "Service", "name": "db", "uid": "u-db", "controller": true}]},
            "endpoints": [{"addresses": [ip]}], "ports": []})
    };
    let mut db = service("db", json!({"ports": [{"port": 3306}]}));
    db["metadata"]["uid"] = json!("u-db");
    let p = on_kops(vec![
        db,
        slice(
            "db-1",
            "endpointslice-controller.k8s.io",
            "db",
            "198.51.100.1",
        ),
        slice(
            "db-2",
            "endpointslicemirroring-controller.k8s.io",
            "db",
            "198.51.100.2",
        ),
        slice("db-3", "staff", "db", "198.51.100.3"),
        slice("db-4", "staff", "gone", "198.51.100.4"),
        slice("db-5", "staff", "db", "100.96.0.5"),
    ]);
    let id = |n: u32| format!("endpointslice/shop/db-{n}");
    for n in [1, 2] {
        assert_eq!(of(&p, &id(n)).rules, ["replay.md 35"]);
        assert_eq!(of(&p, &id(n)).verdict, Fate::Skipped);
    }
    assert!(
        target(&p, &id(3))["metadata"]
            .get("ownerReferences")
            .is_none()
    );
    assert!(found(&p, "WL-09", &id(3)).is_empty());
    says(&p, "NET-06", &id(4), Severity::Warning, "Service gone");
    says(&p, "NET-06", &id(5), Severity::Blocker, "100.96.0.5");
}

#[test]
fn rule_36_names_that_only_mean_something_inside_blue_are_named() {
    let p = on_kops(vec![
        service(
            "files",
            json!({"type": "ExternalName", "externalName": "internal-files-1.eu-west-1.elb.amazonaws.com"}),
        ),
        service(
            "api",
            json!({"type": "ExternalName", "externalName": "api.internal.blue.example.com."}),
        ),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "shop"},
            "data": {"a": "https://api.internal.blue.example.com/x", "b": "ip-172-20-40-11.eu-west-1.compute.internal:9100", "c": "https://example.com"}}),
    ]);
    says(
        &p,
        "NET-06",
        "service/shop/files",
        Severity::Warning,
        "disappear with blue",
    );
    says(
        &p,
        "NET-06",
        "service/shop/api",
        Severity::Warning,
        "points into blue",
    );
    let all = found(&p, "NET-06", "configmap/shop/c");
    assert!(
        all.iter()
            .any(|(_, m)| m.contains("api.internal.blue.example.com")
                && m.contains("ip-172-20-40-11.eu-west-1.compute.internal")
                && !m.contains("c: ")),
        "{all:?}"
    );
}
