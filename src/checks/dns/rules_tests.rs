//! Rules and traps of externaldns.md that the plan itself answers.

use crate::checks::samples::*;
use crate::edns::Config;
use crate::plan::model::{Plan, Severity::Blocker, Severity::Info};
use crate::plan::plan;
use crate::world::dns::Zone;
use serde_json::{Value, json};

const DNS: &str = "deployment/platform/external-dns";

fn green_args(p: &Plan) -> Vec<String> {
    let deployment = p
        .generated
        .iter()
        .find(|o| o["kind"] == "Deployment")
        .expect("green's ExternalDNS");
    serde_json::from_value(deployment["spec"]["template"]["spec"]["containers"][0]["args"].clone())
        .expect("arguments")
}

#[test]
fn dns_rule_01_an_instance_is_found_in_any_namespace_kind_container_and_behind_any_mirror() {
    let container = |image: &str, owner: &str| json!({"image": image, "args": ["--source=ingress", "--provider=aws", format!("--txt-owner-id={owner}"), "--domain-filter=shop.test"]});
    for (kind, image, version) in [
        (
            "StatefulSet",
            "bitnami/external-dns:0.13.1-debian-11-r0",
            "0.13.1",
        ),
        (
            "DaemonSet",
            "mirror.corp.test/k8s/external-dns-amd64:v0.7.6",
            "0.7.6",
        ),
        (
            "ReplicaSet",
            "k8s.gcr.io/external-dns/external-dns:v20220101-v0.10.2",
            "0.10.2",
        ),
        (
            "Deployment",
            "registry.test/x/external-dns@sha256:aa",
            "0.14.2",
        ),
    ] {
        let mut s = shop();
        let mut o = json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "dns", "namespace": "anywhere"},
            "spec": {"template": {"metadata": {"labels": {"app.kubernetes.io/version": "0.14.2"}},
                "spec": {"containers": [{"image": "sidecar:1"}, container(image, "second"), container(image, "third")]}}}});
        if version != "0.14.2" {
            o["spec"]["template"]["metadata"] = json!({});
        }
        s.blue.objects.push(o);
        let p = plan(&spec(), &s);
        for owner in ["second", "third"] {
            let says = format!("ExternalDNS {version}; owner `{owner}`");
            assert!(
                of(&p, "DNS-11")
                    .iter()
                    .any(|f| f.severity == Info && f.message.contains(&says)),
                "{kind} {says}: {:#?}",
                of(&p, "DNS-11")
            );
        }
    }
    // A webhook provider beside it is another program.
    let webhook = json!({"spec": {"containers": [{"image": "x/external-dns-foo-webhook:v1.2.3"}]}});
    assert!(Config::of_workload(&webhook).is_none());
}

#[test]
fn dns_rule_01_flags_come_from_arguments_environment_and_variables_and_what_cannot_be_told_is_refused()
 {
    let pod = |more: Value| {
        let mut c = json!({"image": "x/external-dns:v0.14.2", "args": ["--source=ingress", "--txt-owner-id=$(OWNER)"]});
        for (k, v) in more.as_object().into_iter().flatten() {
            c[k] = v.clone();
        }
        json!({"spec": {"containers": [c]}})
    };
    let known = pod(
        json!({"env": [{"name": "OWNER", "value": "me"}, {"name": "EXTERNAL_DNS_TXT_PREFIX", "value": "x-"}, {"name": "EXTERNAL_DNS_TXT_OWNER_ID", "value": "not-read"}]}),
    );
    let c = Config::of_workload(&known).expect("found").expect("valid");
    assert_eq!(
        (c.owner.as_str(), c.prefix.as_str()),
        ("me", "x-"),
        "an argument goes before its variable"
    );
    assert!(c.unknown.is_empty());
    let hidden = pod(
        json!({"env": [{"name": "EXTERNAL_DNS_POLICY", "valueFrom": {"configMapKeyRef": {"name": "x", "key": "y"}}}]}),
    );
    let c = Config::of_workload(&hidden).expect("found").expect("valid");
    assert_eq!(
        c.unknown.len(),
        2,
        "the owner's variable and the policy: {:?}",
        c.unknown
    );
    // Both are blockers of the plan.
    let mut s = shop();
    s.blue.objects[0]["spec"]["template"]["spec"]["containers"][0]["args"] =
        json!(["--source=ingress", "--frobnicate"]);
    fires(&spec(), &s, "DNS-05", Blocker, "--frobnicate");
    s.blue.objects[0]["spec"]["template"]["spec"]["containers"][0]["image"] =
        json!("x/external-dns:latest");
    fires(&spec(), &s, "DNS-05", Blocker, "cannot be told");
}

#[test]
fn dns_rule_01_other_writers_and_what_starts_blues_again_are_named() {
    let mut s = shop();
    s.zones[0]
        .records
        .push(txt("x.shop.test", "other-team", "ingress/x/x"));
    s.blue.objects.push(object(
        "cert-manager.io/v1",
        "ClusterIssuer",
        "le",
        json!({"spec": {"acme": {"solvers": [{"dns01": {"route53": {"region": "eu-west-1"}}}]}}}),
    ));
    fires(
        &spec(),
        &s,
        "DNS-11",
        crate::plan::model::Severity::Warning,
        "ExternalDNS owner other-team",
    );
    fires(
        &spec(),
        &s,
        "DNS-11",
        crate::plan::model::Severity::Warning,
        "solver of clusterissuer.cert-manager.io/le",
    );
    s.blue.objects[0]["metadata"]["ownerReferences"] =
        json!([{"kind": "ExternalDNS", "name": "main", "uid": "u", "controller": true}]);
    fires(&spec(), &s, "DNS-12", Blocker, "ExternalDNS main");
}

#[test]
fn dns_rule_01_a_reconciler_on_blue_is_held_and_one_elsewhere_blocks() {
    let mut s = shop();
    s.blue.objects[0]["metadata"]["labels"] =
        json!({"kustomize.toolkit.fluxcd.io/name": "platform"});
    fires(&spec(), &s, "DNS-12", Blocker, "Kustomization platform");
    s.blue.objects.push(json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": {"name": "platform", "namespace": "flux-system"}, "spec": {"path": "./x"}}));
    fires(&spec(), &s, "DNS-12", Info, "suspended first");
    let p = plan(&spec(), &s);
    assert!(!of(&p, "DNS-12").iter().any(|f| f.severity == Blocker));
    let hold = p
        .steps
        .iter()
        .find(|s| s.kind == "freeze.hold")
        .expect("a step holds it");
    assert!(
        hold.params.to_string().contains("platform"),
        "{}",
        hold.params
    );
}

#[test]
fn dns_rule_04_what_cannot_be_told_apart_is_refused() {
    for (args, id, says) in [
        (&["--registry=noop"][..], "DNS-01", "registry noop"),
        (&["--registry=crd"], "DNS-01", "registry crd"),
        (&["--registry=dynamodb"], "DNS-01", "registry dynamodb"),
        (
            &["--txt-encrypt-enabled", "--txt-encrypt-aes-key=x"],
            "DNS-01",
            "encrypted",
        ),
        (&["--txt-owner-id=default"], "DNS-01", "`default`"),
        (&["--txt-owner-id=shop-green"], "DNS-01", "green's too"),
    ] {
        let mut s = shop();
        s.blue.objects[0] = external_dns(args);
        fires(&spec(), &s, id, Blocker, says);
    }
    let mut s = shop();
    let mut private = s.zones[0].clone();
    private.zone = Zone {
        id: "Z2".into(),
        name: "shop.test.".into(),
        private: true,
    };
    s.zones.push(private);
    fires(&spec(), &s, "DNS-01", Blocker, "two zones named shop.test");
    s.blue.objects[0] = external_dns(&["--aws-zone-type=public"]);
    never_says(&spec(), &s, "DNS-01", "two zones named");
}

#[test]
fn dns_rule_08_what_nobody_owns_is_no_name_of_the_plan_and_its_wish_blocks() {
    let mut s = shop();
    s.zones[0]
        .records
        .push(record("hand.shop.test", "A", 300, "192.0.2.7"));
    let p = plan(&spec(), &s);
    assert!(
        p.names.iter().all(|n| n.host == "www.shop.test"),
        "{:?}",
        p.names
    );
    s.blue.objects[1] = ingress("web", &["www.shop.test", "hand.shop.test"]);
    fires(&spec(), &s, "DNS-02", Blocker, "belongs to nobody");
}

#[test]
fn dns_rule_09_greens_arguments_follow_blues_and_its_annotation_prefix_is_pinned() {
    let mut s = shop();
    s.blue.objects[0] = external_dns(&[
        "--txt-prefix=x-",
        "--txt-wildcard-replacement=any",
        "--aws-zone-type=public",
        "--ingress-class=nginx",
        "--annotation-filter=public=yes",
        "--no-aws-evaluate-target-health",
        "--policy=sync",
        "--interval=1m",
    ]);
    s.zones[0].records = vec![
        record("www.shop.test", "A", 300, BLUE),
        txt("x-www.shop.test", "shop-blue", "ingress/web/web"),
    ];
    let p = plan(&spec(), &s);
    let args = green_args(&p);
    for wanted in [
        "--policy=upsert-only",
        "--registry=txt",
        "--txt-owner-id=shop-green",
        "--txt-prefix=x-",
        "--txt-wildcard-replacement=any",
        "--aws-zone-type=public",
        "--ingress-class=nginx",
        "--annotation-filter=public=yes",
        "--no-aws-evaluate-target-health",
        "--annotation-prefix=external-dns.alpha.kubernetes.io/",
        "--exclude-record-types=AAAA",
        "--source=ingress",
        "--source=service",
    ] {
        assert!(args.iter().any(|a| a == wanted), "{wanted} in {args:?}");
    }
    assert!(
        !args
            .iter()
            .any(|a| a.contains("sync") || a.contains("migrate") || a.contains("cache")),
        "{args:?}"
    );
}

#[test]
fn dns_rule_18_green_is_told_the_low_ttl_where_a_ttl_stands_in_the_zone_alone() {
    let p = plan(&spec(), &shop());
    assert!(green_args(&p).contains(&"--min-ttl=60s".to_string()));
    let mut s = shop();
    s.zones[0].records[0] = alias("www.shop.test", "a1.eu-west-1.elb.amazonaws.com");
    assert!(
        !green_args(&plan(&spec(), &s))
            .iter()
            .any(|a| a.starts_with("--min-ttl")),
        "an alias has none"
    );
}

#[test]
fn dns_trap_13_green_manages_aaaa_where_blue_does_and_the_name_moves_with_both() {
    let mut s = shop();
    s.blue.objects[0]["spec"]["template"]["spec"]["containers"][0]["image"] =
        json!("x/external-dns:v0.17.0");
    let six = |name: &str| crate::world::dns::RecordSet {
        rtype: "AAAA".into(),
        ..alias(name, "a1.eu-west-1.elb.amazonaws.com")
    };
    s.zones[0].records = vec![
        alias("www.shop.test", "a1.eu-west-1.elb.amazonaws.com"),
        six("www.shop.test"),
        txt("cname-www.shop.test", "shop-blue", "ingress/web/web"),
        txt("aaaa-www.shop.test", "shop-blue", "ingress/web/web"),
    ];
    s.blue.objects[1]["status"] =
        json!({"loadBalancer": {"ingress": [{"hostname": "a1.eu-west-1.elb.amazonaws.com"}]}});
    let p = plan(&spec(), &s);
    assert_eq!(p.names.len(), 1, "one name, both types: {:?}", p.names);
    assert_eq!(
        p.names[0].txt,
        ["aaaa-www.shop.test.", "cname-www.shop.test."]
    );
    let args = green_args(&p);
    assert!(
        args.contains(&"--managed-record-types=AAAA".to_string()),
        "{args:?}"
    );
    assert!(!args.iter().any(|a| a.starts_with("--exclude")), "{args:?}");
}

#[test]
fn dns_trap_19_a_weighted_name_is_handed_over_set_by_set() {
    let mut s = shop();
    for r in &mut s.zones[0].records {
        r.set_identifier = Some("main".into());
        r.routing.insert("Weight".into(), json!(100));
    }
    let notes = &mut s.blue.objects[1]["metadata"]["annotations"];
    notes["external-dns.alpha.kubernetes.io/set-identifier"] = json!("main");
    notes["external-dns.alpha.kubernetes.io/aws-weight"] = json!("100");
    let p = plan(&spec(), &s);
    assert_eq!(p.names.len(), 1);
    assert_eq!(p.names[0].set_identifier.as_deref(), Some("main"));
    assert!(
        !p.findings
            .iter()
            .any(|f| f.id.starts_with("DNS") && f.severity == Blocker),
        "{:#?}",
        p.findings
    );
}

#[test]
fn dns_trap_21_greens_external_dns_never_has_two_replicas() {
    let p = plan(&spec(), &shop());
    let d = p
        .generated
        .iter()
        .find(|o| o["kind"] == "Deployment")
        .expect("it");
    assert_eq!(d["spec"]["strategy"], json!({"type": "Recreate"}));
    assert_eq!(d["spec"]["replicas"], 0, "until the names are handed over");
    let start = p
        .steps
        .iter()
        .find(|s| s.kind == "edns.start")
        .expect("a step starts it");
    assert!(
        start
            .needs
            .iter()
            .any(|n| n.starts_with("cutover/handover"))
    );
}

#[test]
fn dns_trap_23_caches_on_blue_are_named_and_green_gets_none() {
    let mut s = shop();
    s.blue.objects[0] = external_dns(&["--txt-cache-interval=10m"]);
    fires(
        &spec(),
        &s,
        "DNS-05",
        crate::plan::model::Severity::Warning,
        "caches",
    );
    assert!(
        !green_args(&plan(&spec(), &s))
            .iter()
            .any(|a| a.contains("cache"))
    );
}

#[test]
fn dns_trap_22_an_instance_of_kops_is_named_before_anything_is_stopped() {
    let mut s = shop();
    s.blue.objects[0]["metadata"]["labels"] = json!({"k8s-addon": "external-dns.addons.k8s.io"});
    fires(&spec(), &s, "DNS-12", Blocker, "trap 22");
    assert_eq!(of(&plan(&spec(), &s), "DNS-12")[0].object, DNS);
}

#[test]
fn dns_trap_17_hosts_that_share_a_txt_are_in_one_wave() {
    let mut s = shop();
    let names = [
        "a-team.shop.test",
        "b.shop.test",
        "c.shop.test",
        "team.shop.test",
    ];
    s.blue.objects[1] = ingress("web", &names);
    s.zones = vec![zone(kept(&names))];
    let mut spec = spec();
    spec.dns.wave_size = 1;
    let p = plan(&spec, &s);
    let wave = |h: &str| p.names.iter().find(|n| n.host == h).map(|n| n.wave);
    assert_eq!(wave("team.shop.test"), wave("a-team.shop.test"));
    assert_ne!(wave("b.shop.test"), wave("c.shop.test"));
}

#[test]
fn waves_go_by_canary_list_namespace_and_size_in_this_order() {
    let mut s = shop();
    let names = [
        "a.shop.test",
        "b.shop.test",
        "c.shop.test",
        "d.shop.test",
        "e.x.shop.test",
    ];
    s.blue.objects[1] = ingress("web", &names);
    s.zones = vec![zone(kept(&names))];
    let mut spec = spec();
    spec.dns.canary = Some("d.shop.test".into());
    spec.dns.waves = serde_json::from_value(json!([{"hosts": ["b.shop.test"]}, {"hosts": ["*.x.shop.test"]}, {"namespaces": ["nobody"]}])).expect("waves");
    spec.dns.wave_size = 1;
    spec.dns.wave_gate_seconds = 30;
    let p = plan(&spec, &s);
    let order: Vec<(u32, &str)> = p.names.iter().map(|n| (n.wave, n.host.as_str())).collect();
    assert_eq!(
        order,
        [
            (0, "d.shop.test"),
            (1, "b.shop.test"),
            (2, "e.x.shop.test"),
            (3, "a.shop.test"),
            (4, "c.shop.test")
        ]
    );
    fires(
        &spec,
        &s,
        "DNS-04",
        crate::plan::model::Severity::Warning,
        "takes no name",
    );
    let ids: Vec<&str> = p
        .steps
        .iter()
        .filter(|s| s.id.starts_with("cutover/"))
        .map(|s| s.id.as_str())
        .collect();
    for gate in [
        "cutover/gate/0",
        "cutover/gate/3",
        "cutover/handover/held/shop.test",
    ] {
        assert!(ids.contains(&gate), "{gate} in {ids:?}");
    }
    assert!(
        !ids.contains(&"cutover/gate/4"),
        "after the last wave the soak watches"
    );
    let first = p
        .steps
        .iter()
        .find(|s| s.id.starts_with("cutover/handover/1/"))
        .expect("wave 1");
    assert!(
        first.needs.contains(&"cutover/gate/0".to_string()),
        "{:?}",
        first.needs
    );
}
