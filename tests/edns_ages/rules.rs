//! The rules: a whole life of a zone, for each age as blue.

use super::bench::*;
use crossfade::edns::{self, log, switch};
use crossfade::world::dns::{Change, RecordSet};
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub const BLUE_ARGS: [&str; 7] = [
    "--provider=aws",
    "--source=ingress",
    "--policy=sync",
    "--registry=txt",
    "--txt-owner-id=shop-blue",
    "--domain-filter=shop.test",
    "--aws-zone-type=public",
];

/// Green's arguments, as the plan renders them; AAAA where blue has them.
pub fn green_args(aaaa: bool) -> Vec<&'static str> {
    let mut args = vec![
        "--provider=aws",
        "--source=ingress",
        "--policy=upsert-only",
        "--registry=txt",
        "--txt-owner-id=shop-green",
        "--domain-filter=shop.test",
        "--aws-zone-type=public",
        "--annotation-prefix=external-dns.alpha.kubernetes.io/",
        "--managed-record-types=A",
        "--managed-record-types=CNAME",
    ];
    args.push(if aaaa {
        "--managed-record-types=AAAA"
    } else {
        "--exclude-record-types=AAAA"
    });
    args
}

/// An address with a TTL of its own, an alias, a wildcard, an apex, and the host `a-team` beside `team`.
pub fn company(ip: &str, lb: &str) -> Vec<Value> {
    vec![
        ingress(
            "web",
            &["www.shop.test", "*.w.shop.test"],
            Some(ip),
            &[("ttl", "20")],
        ),
        ingress("orders", &["orders.shop.test"], Some(lb), &[]),
        ingress("team", &["a-team.shop.test"], Some(ip), &[]),
    ]
}

/// Foreign records that nobody may touch.
fn foreign() -> Vec<RecordSet> {
    vec![
        rec("mail.shop.test", "A", 300, &["192.0.2.25"]),
        rec("legacy.shop.test", "A", 300, &["192.0.2.80"]),
        txt("legacy.shop.test", "other-team", "ingress/x/legacy"),
    ]
}

const HOSTS: [(&str, &str); 4] = [
    ("www.shop.test", "ingress/shop/web"),
    ("*.w.shop.test", "ingress/shop/web"),
    ("orders.shop.test", "ingress/shop/orders"),
    ("a-team.shop.test", "ingress/shop/team"),
];

/// The product's handover of all names: what it would send.
pub async fn handover(b: &Bench, args: &[&str]) -> Vec<Change> {
    let config = config(GREEN, args);
    let records = b.records().await;
    let hosts: Vec<switch::Host> = HOSTS
        .iter()
        .map(|(host, object)| switch::Host {
            host: host.to_string(),
            object: object.to_string(),
            sets: BTreeSet::from([None]),
            txt: BTreeSet::new(),
        })
        .collect();
    let owners = BTreeSet::from(["shop-blue".to_string(), "shop-green".to_string()]);
    let wanted = edns::desired(b.current_objects(), &config);
    let mut changes = vec![];
    for unit in switch::units(&hosts, &records, &config, &owners) {
        let mine: Vec<&edns::Endpoint> = wanted
            .iter()
            .filter(|e| unit.hosts.iter().any(|h| h.host == e.name))
            .collect();
        let target = switch::target(&unit, &mine, &config, &b.zone).expect("every name can go");
        changes.extend(switch::batch(&unit.records, &target));
    }
    changes
}

/// A zone that this age of blue made itself.
async fn blues_zone(version: &str) -> Bench {
    let b = Bench::new().await;
    b.put(&foreign()).await;
    b.objects(&company(BLUE_IP, BLUE_LB));
    b.agree(version, &BLUE_ARGS).await;
    b
}

fn has_aaaa(records: &[RecordSet]) -> bool {
    records.iter().any(|r| r.rtype == "AAAA")
}

async fn unchanged(b: &Bench, version: &str, args: &[&str], zone: &[RecordSet], what: &str) {
    let (_, log) = b.run(version, args).await;
    assert_eq!(
        sorted(&b.records().await),
        sorted(zone),
        "{version}: {what}\n{log}"
    );
}

#[tokio::test]
async fn dns_rule_07_after_the_handover_a_resurrected_blue_of_each_age_changes_nothing() {
    for version in AGES {
        let b = blues_zone(version).await;
        let before = b.agree(version, &BLUE_ARGS).await;
        assert!(
            before.len() > foreign().len() + 4,
            "{version} made the zone"
        );
        let args = green_args(has_aaaa(&before));
        b.objects(&company(GREEN_IP, GREEN_LB));
        b.change(&handover(&b, &args).await).await;
        let after = b.records().await;
        for t in after.iter().filter_map(switch::owner_of) {
            assert_ne!(
                t, "shop-blue",
                "{version}: a variant still carries blue's id"
            );
        }
        b.objects(&company(BLUE_IP, BLUE_LB));
        unchanged(&b, version, &BLUE_ARGS, &after, "resurrected").await;
        b.objects(&[]);
        unchanged(
            &b,
            version,
            &BLUE_ARGS,
            &after,
            "resurrected, with its ingresses gone",
        )
        .await;
        for f in foreign() {
            assert!(after.contains(&f), "{version}: {f:?}");
        }
    }
}

#[tokio::test]
async fn dns_rule_11_the_dry_run_of_the_binary_and_the_model_agree_before_and_after_the_handover() {
    for version in AGES {
        let b = blues_zone(version).await;
        let before = b.records().await;
        let args = green_args(has_aaaa(&before));
        let mut dry = args.clone();
        dry.push("--dry-run");
        b.objects(&company(GREEN_IP, GREEN_LB));
        // A zone whose names are only partly handed over: what is blue's is left alone, what is green's would be moved.
        let mut half = before.clone();
        for r in half
            .iter_mut()
            .filter(|r| r.rtype == "TXT" && r.values[0].contains("ingress/shop/web"))
        {
            r.values[0] = edns::rewrite_owner(&r.values[0], "shop-green").expect("an owner");
        }
        for (zone, empty) in [(before.clone(), true), (half, false)] {
            b.put(&zone).await;
            let (ok, said) = b.run(GREEN, &dry).await;
            assert!(ok, "{said}");
            let (changes, _) = b.model(GREEN, &args, &zone);
            let differ = log::differences(&log::announced(&said), &log::of_changes(&changes));
            assert_eq!(differ, Vec::<String>::new(), "blue {version}\n{said}");
            assert_eq!(changes.is_empty(), empty, "blue {version}");
            assert_eq!(
                sorted(&b.records().await),
                sorted(&zone),
                "a dry run writes nothing"
            );
        }
        b.put(&before).await;
        b.change(&handover(&b, &args).await).await;
        let (ok, said) = b.run(GREEN, &dry).await;
        assert!(ok, "{said}");
        assert!(log::announced(&said).is_empty(), "blue {version}: {said}");
    }
}

#[tokio::test]
async fn dns_rule_12_greens_first_loops_leave_the_zone_as_it_was_planned() {
    for version in AGES {
        let b = blues_zone(version).await;
        let args = green_args(has_aaaa(&b.records().await));
        b.objects(&company(GREEN_IP, GREEN_LB));
        b.change(&handover(&b, &args).await).await;
        let planned = b.records().await;
        for loop_number in 0..2 {
            unchanged(&b, GREEN, &args, &planned, &format!("loop {loop_number}")).await;
        }
        let green = config(GREEN, &args);
        for o in edns::ownership(&planned, &green) {
            let moved = HOSTS
                .iter()
                .any(|(h, _)| *h == o.key.name.trim_end_matches('.'));
            assert_eq!(
                moved,
                o.owner.as_deref() == Some("shop-green"),
                "blue {version}: {:?}",
                o.key
            );
        }
        // "All records are already up to date" is what a green says too that owns nothing.
        let mut wrong = args.clone();
        wrong.retain(|a| !a.starts_with("--txt-owner-id"));
        wrong.push("--txt-owner-id=shop-greem");
        b.objects(&company("198.51.100.99", GREEN_LB));
        let (ok, said) = b.run(GREEN, &wrong).await;
        assert!(
            ok && said.contains("All records are already up to date"),
            "{said}"
        );
        assert_eq!(sorted(&b.records().await), sorted(&planned));
    }
}

#[tokio::test]
async fn dns_rule_14_the_way_back_restores_the_zone_after_green_wrote_variants_of_its_own_and_blue_is_content()
 {
    for version in AGES {
        let b = blues_zone(version).await;
        let before = b.records().await;
        let listing = b.strict.zones()[0].listing();
        let args = green_args(has_aaaa(&before));
        b.objects(&company(GREEN_IP, GREEN_LB));
        b.change(&handover(&b, &args).await).await;
        // Somebody lets green manage AAAA: aliases get one, with TXTs of new names.
        b.agree(GREEN, &green_args(true)).await;
        let now = b.records().await;
        assert!(has_aaaa(&now), "blue {version}: green added AAAA");
        // No ExternalDNS of blue takes part: the old records come back in a batch whose condition is what is there.
        b.change(&switch::batch(&now, &before)).await;
        assert_eq!(b.strict.zones()[0].listing(), listing, "byte for byte");
        b.objects(&company(BLUE_IP, BLUE_LB));
        unchanged(&b, version, &BLUE_ARGS, &before, "back home").await;
    }
}

#[tokio::test]
async fn dns_rule_05_an_unannotated_ttl_may_be_lowered_in_the_zone_and_an_annotated_one_only_by_the_annotation()
 {
    for version in AGES {
        let b = blues_zone(version).await;
        let before = b.records().await;
        let with_ttl = |host: &str, ttl: u32| -> Vec<RecordSet> {
            let mut all = before.clone();
            for r in all
                .iter_mut()
                .filter(|r| r.rtype == "A" && r.name == format!("{host}."))
            {
                r.ttl = Some(ttl);
            }
            all
        };
        let lowered = with_ttl("a-team.shop.test", 5);
        b.put(&lowered).await;
        // 0.21.0 reads the host `a-team` by its typed TXT, the older ones by the legacy one: whoever owns it leaves the TTL alone.
        unchanged(
            &b,
            version,
            &BLUE_ARGS,
            &lowered,
            "an unannotated TTL is not compared",
        )
        .await;
        b.put(&with_ttl("www.shop.test", 5)).await;
        b.agree(version, &BLUE_ARGS).await;
        let www = |records: &[RecordSet]| {
            records
                .iter()
                .find(|r| r.name == "www.shop.test." && r.rtype == "A")
                .and_then(|r| r.ttl)
        };
        assert_eq!(
            www(&b.records().await),
            Some(20),
            "{version} puts an annotated one back"
        );
        let mut objects = company(BLUE_IP, BLUE_LB);
        objects[0]["metadata"]["annotations"][format!("{ALPHA}/ttl")] = json!("5");
        b.objects(&objects);
        b.agree(version, &BLUE_ARGS).await;
        assert_eq!(
            www(&b.records().await),
            Some(5),
            "{version} lowers it itself"
        );
        let texts = |records: &[RecordSet]| -> Vec<RecordSet> {
            sorted(records)
                .into_iter()
                .filter(|r| r.rtype == "TXT")
                .collect()
        };
        assert_eq!(
            texts(&b.records().await),
            texts(&before),
            "no registry TXT changed"
        );
    }
}

#[tokio::test]
async fn dns_rule_09_the_binary_takes_the_arguments_that_the_plan_renders_and_is_content() {
    let demo = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("plans/demo");
    let spec = crossfade::spec::load(&demo.join("migration.yaml")).unwrap();
    let snapshot = crossfade::snapshot::store::read(&demo.join("snapshot")).unwrap();
    let plan = crossfade::plan::plan(&spec, &snapshot);
    let deployment = plan
        .generated
        .iter()
        .find(|o| o["kind"] == "Deployment" && o["metadata"]["name"] == "external-dns")
        .expect("green's ExternalDNS");
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert!(container["image"].as_str().unwrap().ends_with(":v0.21.0"));
    let args: Vec<String> = serde_json::from_value(container["args"].clone()).unwrap();
    // Its objects are none here: upsert-only leaves whatever there is.
    let mut args: Vec<&str> = args
        .iter()
        .map(String::as_str)
        .filter(|a| !a.starts_with("--source"))
        .collect();
    args.push("--source=ingress");
    let b = Bench::new().await;
    b.put(&[
        rec("www.shop.test", "A", 20, &[BLUE_IP]),
        txt("a-www.shop.test", "shop-green", "ingress/x/y"),
    ])
    .await;
    let before = b.records().await;
    let (ok, said) = b.run(GREEN, &args).await;
    assert!(ok, "{said}");
    assert_eq!(sorted(&b.records().await), sorted(&before));
    for wanted in [
        "--policy=upsert-only",
        "--txt-owner-id=shop-green",
        "--annotation-prefix=external-dns.alpha.kubernetes.io/",
    ] {
        assert!(args.contains(&wanted), "{args:?}");
    }
    assert!(
        !args.iter().any(|a| a.contains("cache")),
        "no caches: {args:?}"
    );
}

#[tokio::test]
async fn dns_rule_18_green_that_is_told_the_low_ttl_keeps_it_when_its_load_balancer_moves() {
    let b = Bench::new().await;
    b.put(&[
        rec("www.shop.test", "A", 5, &[GREEN_IP]),
        txt("a-www.shop.test", "shop-green", "ingress/shop/web"),
    ])
    .await;
    b.objects(&[ingress(
        "web",
        &["www.shop.test"],
        Some("198.51.100.77"),
        &[],
    )]);
    let mut args = green_args(false);
    args.push("--min-ttl=5s");
    let after = b.agree(GREEN, &args).await;
    let www = after.iter().find(|r| r.rtype == "A").expect("kept");
    assert_eq!(
        (www.ttl, www.values.as_slice()),
        (Some(5), ["198.51.100.77".to_string()].as_slice())
    );
}
