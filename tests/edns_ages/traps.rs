//! The traps, sprung by the binaries themselves.

use super::bench::*;
use super::rules::{BLUE_ARGS, green_args};
use crossfade::edns::{self, log};
use crossfade::world::dns::RecordSet;
use serde_json::json;

const WEB: &str = "ingress/shop/web";

fn web(address: Option<&str>) -> Vec<serde_json::Value> {
    vec![ingress("web", &["www.shop.test"], address, &[])]
}

fn address_of(records: &[RecordSet], host: &str) -> Option<String> {
    let r = records
        .iter()
        .find(|r| r.name == format!("{host}.") && r.rtype == "A")?;
    r.alias
        .as_ref()
        .map(|a| a.name.clone())
        .or_else(|| r.values.first().cloned())
}

#[tokio::test]
async fn dns_trap_01_a_legacy_txt_with_blues_owner_lets_0_10_2_flip_the_name_back() {
    let b = Bench::new().await;
    b.put(&[
        rec("www.shop.test", "A", 300, &[GREEN_IP]),
        txt("a-www.shop.test", "shop-green", WEB),
        txt("www.shop.test", "shop-blue", WEB),
    ])
    .await;
    b.objects(&web(Some(BLUE_IP)));
    let after = b.agree("0.10.2", &BLUE_ARGS).await;
    assert_eq!(
        address_of(&after, "www.shop.test").as_deref(),
        Some(BLUE_IP),
        "it fights"
    );
    // 0.14.2 and 0.21.0 read the typed one first.
    b.put(&[
        rec("www.shop.test", "A", 300, &[GREEN_IP]),
        txt("a-www.shop.test", "shop-green", WEB),
        txt("www.shop.test", "shop-blue", WEB),
    ])
    .await;
    for version in ["0.14.2", "0.21.0"] {
        let after = b.agree(version, &BLUE_ARGS).await;
        assert_eq!(
            address_of(&after, "www.shop.test").as_deref(),
            Some(GREEN_IP),
            "{version}"
        );
    }
}

#[tokio::test]
async fn dns_trap_04_a_blue_that_owns_the_name_deletes_greens_live_record_when_its_ingress_goes() {
    for (version, own) in [
        ("0.10.2", vec![txt("www.shop.test", "shop-blue", WEB)]),
        (
            "0.14.2",
            vec![
                txt("www.shop.test", "shop-blue", WEB),
                txt("a-www.shop.test", "shop-blue", WEB),
            ],
        ),
        ("0.21.0", vec![txt("a-www.shop.test", "shop-blue", WEB)]),
    ] {
        let b = Bench::new().await;
        let mut zone = own;
        zone.push(rec("www.shop.test", "A", 300, &[GREEN_IP]));
        b.put(&zone).await;
        b.objects(&[]);
        let after = b.agree(version, &BLUE_ARGS).await;
        assert_eq!(
            address_of(&after, "www.shop.test"),
            None,
            "{version} takes a live name away"
        );
    }
}

#[tokio::test]
async fn dns_trap_05_green_as_sync_with_blues_owner_deletes_a_name_whose_load_balancer_is_pending()
{
    let b = Bench::new().await;
    let zone = [
        rec("www.shop.test", "A", 300, &[BLUE_IP]),
        txt("a-www.shop.test", "shop-blue", WEB),
    ];
    b.put(&zone).await;
    b.objects(&web(None));
    let mut args: Vec<&str> = BLUE_ARGS.to_vec();
    args.retain(|a| !a.starts_with("--policy"));
    args.push("--policy=upsert-only");
    let kept = b.agree(GREEN, &args).await;
    assert_eq!(kept.len(), 2, "upsert-only keeps it");
    let gone = b.agree(GREEN, &BLUE_ARGS).await;
    assert!(
        gone.is_empty(),
        "sync deletes it in the first loop: {gone:?}"
    );
}

#[tokio::test]
async fn dns_trap_07_one_character_in_owner_or_prefix_means_silently_nothing() {
    let b = Bench::new().await;
    let zone = [
        rec("www.shop.test", "A", 300, &[BLUE_IP]),
        txt("a-www.shop.test", "shop-green", WEB),
    ];
    b.put(&zone).await;
    b.objects(&web(Some(GREEN_IP)));
    let mut owner = green_args(false);
    owner.retain(|a| !a.starts_with("--txt-owner-id"));
    owner.push("--txt-owner-id=shop-greem");
    let mut prefix = green_args(false);
    prefix.push("--txt-prefix=x-");
    for args in [owner, prefix] {
        let (ok, said) = b.run(GREEN, &args).await;
        assert!(
            ok && said.contains("All records are already up to date"),
            "{said}"
        );
        assert_eq!(sorted(&b.agree(GREEN, &args).await), sorted(&zone));
    }
    let moved = b.agree(GREEN, &green_args(false)).await;
    assert_eq!(
        address_of(&moved, "www.shop.test").as_deref(),
        Some(GREEN_IP)
    );
}

#[tokio::test]
async fn dns_trap_08_an_orphan_txt_makes_green_create_a_record_that_it_does_not_own() {
    let b = Bench::new().await;
    b.put(&[txt("a-www.shop.test", "shop-blue", WEB)]).await;
    b.objects(&web(Some(GREEN_IP)));
    let after = b.agree(GREEN, &green_args(false)).await;
    assert_eq!(
        address_of(&after, "www.shop.test").as_deref(),
        Some(GREEN_IP)
    );
    let green = config(GREEN, &green_args(false));
    assert_eq!(
        edns::ownership(&after, &green)[0].owner.as_deref(),
        Some("shop-blue"),
        "blue's for ever"
    );
    // The next move of its load balancer is not followed any more.
    b.objects(&web(Some("198.51.100.77")));
    let stuck = b.agree(GREEN, &green_args(false)).await;
    assert_eq!(
        address_of(&stuck, "www.shop.test").as_deref(),
        Some(GREEN_IP)
    );
}

#[tokio::test]
async fn dns_trap_09_the_migrate_flag_never_settles_and_as_sync_goes_for_what_is_not_desired() {
    let b = Bench::new().await;
    let zone = [
        rec("www.shop.test", "A", 300, &[GREEN_IP]),
        txt("a-www.shop.test", "shop-blue", WEB),
    ];
    b.put(&zone).await;
    // Identical endpoints, TTL and all. 0.21.0 does write them (later versions are reported not to, #6671), and again in each loop.
    b.objects(&[ingress(
        "web",
        &["www.shop.test"],
        Some(GREEN_IP),
        &[("ttl", "300")],
    )]);
    let mut args = green_args(false);
    args.push("--migrate-from-txt-owner=shop-blue");
    let first = b.agree(GREEN, &args).await;
    let green = config(GREEN, &green_args(false));
    let owner = edns::ownership(&first, &green)[0].owner.clone();
    assert_eq!(owner.as_deref(), Some("shop-green"));
    let (_, said) = b.run(GREEN, &args).await;
    let upsert = (
        "UPSERT".to_string(),
        "www.shop.test".to_string(),
        "A".to_string(),
    );
    assert!(
        log::announced(&said).contains(&upsert),
        "never settles: {said}"
    );
    // As sync, without the object: it goes for a record of blue's, and only that it makes the TXT's value anew saves the name.
    b.put(&zone).await;
    b.objects(&[]);
    args.retain(|a| !a.starts_with("--policy"));
    args.push("--policy=sync");
    let (ok, said) = b.run(GREEN, &args).await;
    let delete = (
        "DELETE".to_string(),
        "www.shop.test".to_string(),
        "A".to_string(),
    );
    assert!(log::announced(&said).contains(&delete), "{said}");
    assert!(!ok || said.contains("InvalidChangeBatch"), "{said}");
    assert_eq!(sorted(&b.agree(GREEN, &args).await), sorted(&zone));
}

#[tokio::test]
async fn dns_trap_10_a_lowered_ttl_jumps_to_300_at_greens_first_upsert() {
    let b = Bench::new().await;
    b.put(&[
        rec("www.shop.test", "A", 5, &[BLUE_IP]),
        txt("a-www.shop.test", "shop-green", WEB),
    ])
    .await;
    b.objects(&web(Some(GREEN_IP)));
    let after = b.agree(GREEN, &green_args(false)).await;
    assert_eq!(
        after.iter().find(|r| r.rtype == "A").and_then(|r| r.ttl),
        Some(300)
    );
}

#[tokio::test]
async fn dns_trap_11_a_registry_txt_with_another_ttl_cannot_be_deleted_by_external_dns() {
    for version in AGES {
        let b = Bench::new().await;
        let name = if version == GREEN {
            "a-www.shop.test"
        } else {
            "www.shop.test"
        };
        let mut zone = vec![
            rec("www.shop.test", "A", 300, &[BLUE_IP]),
            txt(name, "shop-blue", WEB),
        ];
        if version == "0.14.2" {
            zone.push(txt("a-www.shop.test", "shop-blue", WEB));
        }
        zone[1].ttl = Some(60);
        b.put(&zone).await;
        b.objects(&[]);
        let after = b.agree(version, &BLUE_ARGS).await;
        assert_eq!(
            sorted(&after),
            sorted(&zone),
            "{version}: Route 53 refuses the pair"
        );
    }
}

#[tokio::test]
async fn dns_trap_12_a_running_blue_reverts_an_annotated_ttl() {
    for version in AGES {
        let b = Bench::new().await;
        let objects = [ingress(
            "web",
            &["www.shop.test"],
            Some(BLUE_IP),
            &[("ttl", "120")],
        )];
        b.objects(&objects);
        let mut zone = b.agree(version, &BLUE_ARGS).await;
        for r in zone.iter_mut().filter(|r| r.rtype == "A") {
            r.ttl = Some(5);
        }
        b.put(&zone).await;
        let after = b.agree(version, &BLUE_ARGS).await;
        assert_eq!(
            after.iter().find(|r| r.rtype == "A").and_then(|r| r.ttl),
            Some(120),
            "{version}"
        );
    }
}

#[tokio::test]
async fn dns_trap_13_an_aaaa_that_green_added_is_not_seen_by_an_old_blue() {
    let b = Bench::new().await;
    b.objects(&[ingress("web", &["www.shop.test"], Some(GREEN_LB), &[])]);
    let made = b.agree(GREEN, &green_args(true)).await;
    assert!(
        made.iter().any(|r| r.rtype == "AAAA"),
        "every alias brings one"
    );
    // A way back that forgets it: the address and its TXT are blue's again.
    let mut back: Vec<RecordSet> = made
        .into_iter()
        .filter(|r| r.name != "cname-www.shop.test.")
        .collect();
    for r in back.iter_mut().filter(|r| r.rtype == "A") {
        if let Some(a) = &mut r.alias {
            a.name = format!("{BLUE_LB}.");
        }
    }
    back.push(txt("www.shop.test", "shop-blue", WEB));
    b.put(&back).await;
    b.objects(&[ingress("web", &["www.shop.test"], Some(BLUE_LB), &[])]);
    let after = b.agree("0.10.2", &BLUE_ARGS).await;
    let six = after
        .iter()
        .find(|r| r.rtype == "AAAA")
        .and_then(|r| r.alias.clone())
        .expect("still there");
    assert_eq!(
        six.name,
        format!("{GREEN_LB}."),
        "IPv6 clients stay on green"
    );
}

#[tokio::test]
async fn dns_trap_14_another_record_type_under_upsert_only_conflicts_in_every_loop() {
    let b = Bench::new().await;
    let zone = [
        rec("www.shop.test", "CNAME", 300, &["old.example.org"]),
        txt("cname-www.shop.test", "shop-green", WEB),
    ];
    b.put(&zone).await;
    b.objects(&web(Some(GREEN_IP)));
    let (ok, said) = b.run(GREEN, &green_args(false)).await;
    assert!(!ok || said.contains("InvalidChangeBatch"), "{said}");
    assert_eq!(
        sorted(&b.agree(GREEN, &green_args(false)).await),
        sorted(&zone)
    );
}

#[tokio::test]
async fn dns_trap_16_an_apex_gets_an_upsert_in_every_loop_because_its_typed_txt_can_never_be() {
    let b = Bench::new().await;
    let zone = [
        rec("shop.test", "A", 300, &[GREEN_IP]),
        txt("shop.test", "shop-green", WEB),
    ];
    b.put(&zone).await;
    b.objects(&[ingress("web", &["shop.test"], Some(GREEN_IP), &[])]);
    for _ in 0..2 {
        let (_, said) = b.run(GREEN, &green_args(false)).await;
        let upsert = (
            "UPSERT".to_string(),
            "shop.test".to_string(),
            "A".to_string(),
        );
        assert!(log::announced(&said).contains(&upsert), "{said}");
        assert_eq!(
            sorted(&b.records().await),
            sorted(&zone),
            "of what is there already"
        );
    }
}

#[tokio::test]
async fn dns_trap_17_the_legacy_txt_of_a_team_is_read_as_the_typed_one_of_team() {
    let b = Bench::new().await;
    let zone = [
        rec("a-team.shop.test", "A", 300, &[BLUE_IP]),
        txt("a-team.shop.test", "shop-blue", "ingress/shop/team"),
    ];
    let team = |ip: &str| vec![ingress("team", &["a-team.shop.test"], Some(ip), &[])];
    for (version, follows) in [("0.10.2", true), ("0.14.2", false), ("0.21.0", false)] {
        b.put(&zone).await;
        b.objects(&team("203.0.113.77"));
        let after = b.agree(version, &BLUE_ARGS).await;
        let moved = address_of(&after, "a-team.shop.test").as_deref() == Some("203.0.113.77");
        assert_eq!(moved, follows, "{version}");
    }
}

#[tokio::test]
async fn dns_trap_18_a_wildcards_txt_follows_the_replacement_and_a_side_without_it_owns_nothing() {
    let b = Bench::new().await;
    b.objects(&[ingress("web", &["*.shop.test"], Some(BLUE_IP), &[])]);
    let mut with: Vec<&str> = BLUE_ARGS.to_vec();
    with.push("--txt-wildcard-replacement=any");
    for version in AGES {
        b.put(&[]).await;
        b.objects(&[ingress("web", &["*.shop.test"], Some(BLUE_IP), &[])]);
        let made = b.agree(version, &with).await;
        assert!(
            made.iter().any(|r| r.name.contains("any.shop.test")),
            "{version}: {made:?}"
        );
        b.objects(&[ingress("web", &["*.shop.test"], Some("203.0.113.77"), &[])]);
        let after = b.agree(version, &BLUE_ARGS).await;
        assert_eq!(
            address_of(&after, "*.shop.test").as_deref(),
            Some(BLUE_IP),
            "{version} without it: not its own"
        );
    }
    let listing = b.strict.zones()[0].listing();
    assert!(
        listing.contains("\\052.shop.test"),
        "as Route 53 lists it: {listing}"
    );
}

#[tokio::test]
async fn dns_trap_19_a_weighted_record_and_its_txt_carry_identifier_and_weight() {
    for version in AGES {
        let b = Bench::new().await;
        let mut other = rec("www.shop.test", "A", 60, &["192.0.2.1"]);
        other.set_identifier = Some("theirs".into());
        other.routing.insert("Weight".into(), json!(5));
        b.put(std::slice::from_ref(&other)).await;
        b.objects(&[ingress(
            "web",
            &["www.shop.test"],
            Some(BLUE_IP),
            &[
                ("set-identifier", "ours"),
                ("aws-weight", "95"),
                ("ttl", "60"),
            ],
        )]);
        let (_, said) = b.run(version, &BLUE_ARGS).await;
        let made = b.records().await;
        let ours: Vec<&RecordSet> = made
            .iter()
            .filter(|r| r.set_identifier.as_deref() == Some("ours"))
            .collect();
        assert!(ours.len() >= 2, "{version}: a record and its TXT\n{said}");
        assert!(
            ours.iter().all(|r| r.routing["Weight"] == json!(95)),
            "{version}: {ours:?}"
        );
        // Its ingress goes: only its own set does.
        b.objects(&[]);
        let after = b.agree(version, &BLUE_ARGS).await;
        assert_eq!(after, [other], "{version}");
    }
}

#[tokio::test]
async fn dns_trap_20_a_private_zone_of_the_same_name_gets_the_change_as_well() {
    for version in AGES {
        let b = Bench::new().await;
        let private = b.zone_named("shop.test", true).await;
        b.objects(&web(Some(BLUE_IP)));
        b.run(version, &BLUE_ARGS).await;
        assert!(
            b.records_of(&private).await.is_empty(),
            "{version} with --aws-zone-type=public"
        );
        let both: Vec<&str> = BLUE_ARGS
            .iter()
            .copied()
            .filter(|a| !a.starts_with("--aws-zone-type"))
            .collect();
        b.put(&[]).await;
        b.run(version, &both).await;
        let inside = b.records_of(&private).await;
        assert_eq!(
            address_of(&inside, "www.shop.test").as_deref(),
            Some(BLUE_IP),
            "{version} without"
        );
    }
}

#[tokio::test]
async fn dns_trap_26_an_encrypted_txt_without_the_key_looks_like_nobodys() {
    for version in ["0.14.2", "0.21.0"] {
        let b = Bench::new().await;
        b.objects(&web(Some(BLUE_IP)));
        let mut with: Vec<&str> = BLUE_ARGS.to_vec();
        with.extend([
            "--txt-encrypt-enabled",
            "--txt-encrypt-aes-key=0123456789abcdef0123456789abcdef",
        ]);
        let (ok, said) = b.run(version, &with).await;
        assert!(ok, "{version}: {said}");
        let made = b.records().await;
        let blue = config(version, &BLUE_ARGS);
        let www = edns::classify(&made, &blue)
            .into_iter()
            .find(|c| c.key.rtype == "A")
            .expect("made");
        assert_eq!(www.holder, edns::Holder::Unreadable, "{version}: {made:?}");
        b.objects(&web(Some("203.0.113.77")));
        let (_, said) = b.run(version, &BLUE_ARGS).await;
        assert_eq!(
            sorted(&b.records().await),
            sorted(&made),
            "{version} without the key leaves it alone\n{said}"
        );
    }
}

#[tokio::test]
async fn dns_trap_28_of_several_txt_values_only_the_first_is_read() {
    for version in AGES {
        let b = Bench::new().await;
        let name = if version == GREEN {
            "a-www.shop.test"
        } else {
            "www.shop.test"
        };
        let heritage = edns::heritage_value("shop-blue", WEB);
        let mut own = vec![
            rec("www.shop.test", "A", 300, &[BLUE_IP]),
            rec(name, "TXT", 300, &[&heritage, "\"v=spf1 -all\""]),
        ];
        if version == "0.14.2" {
            own.push(txt("a-www.shop.test", "shop-blue", WEB));
        }
        b.put(&own).await;
        b.objects(&web(Some(BLUE_IP)));
        let (_, said) = b.run(version, &BLUE_ARGS).await;
        assert_eq!(
            sorted(&b.records().await),
            sorted(&own),
            "{version} owns it and is content\n{said}"
        );
        own[1].values.reverse();
        b.put(&own).await;
        b.objects(&web(Some("203.0.113.77")));
        if version != "0.14.2" {
            let after = b.agree(version, &BLUE_ARGS).await;
            assert_eq!(
                address_of(&after, "www.shop.test").as_deref(),
                Some(BLUE_IP),
                "{version}: not its own now"
            );
        }
    }
}
