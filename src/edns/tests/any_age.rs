//! What holds for instances of any age.

use super::*;

#[test]
fn dns_rule_07_a_resurrected_blue_of_any_age_plans_nothing_on_a_handed_over_zone() {
    let mut records = handed_over(zone_0_10(), "shop-green");
    records.push(txt("cname-orders.shop.test", "shop-green", ORDERS));
    records.push(txt("cname-pay.shop.test", "shop-green", ORDERS));
    records.push(txt("a-www.shop.test", "shop-green", WEB));
    for r in &mut records {
        if r.name == "www.shop.test." && r.rtype == "A" {
            r.values = vec!["198.51.100.10".into()];
        }
    }
    for version in [
        "0.7.6", "0.10.2", "0.12.2", "0.13.4", "0.13.5", "0.14.2", "0.17.0", "0.21.0",
    ] {
        assert_eq!(
            plan(&blue(version), &records, &blue_objects()),
            vec![],
            "{version}"
        );
        assert_eq!(
            plan(&blue(version), &records, &[]),
            vec![],
            "{version}, no objects"
        );
    }
}

#[test]
fn dns_trap_16_the_typed_txt_of_an_apex_lies_outside_the_zone_and_is_never_written() {
    let mut apex = ingress(Some("198.51.100.10"), None);
    apex["spec"]["rules"][0]["host"] = json!("shop.test");
    let records = vec![
        rec("shop.test", "A", 300, &["198.51.100.10"]),
        txt("shop.test", "shop-green", WEB),
    ];
    assert_eq!(
        names(&plan(&green(), &records, &[apex.clone()])),
        ["UPSERT shop.test. A"],
        "every loop"
    );
    assert_eq!(
        names(&plan(&blue("0.10.2"), &[], &[apex])),
        ["CREATE shop.test. A", "CREATE shop.test. TXT"]
    );
}

#[test]
fn dns_trap_17_a_host_called_a_team_gives_its_ownership_to_team() {
    let records = vec![
        rec("a-team.shop.test", "A", 300, &["203.0.113.10"]),
        txt("a-team.shop.test", "shop-blue", WEB),
        rec("team.shop.test", "A", 300, &["192.0.2.9"]),
    ];
    let by = |v: &str| -> Vec<Option<String>> {
        ownership(&records, &config(v, &["--policy=sync"]))
            .into_iter()
            .map(|o| o.owner)
            .collect()
    };
    assert_eq!(by("0.10.2"), [Some("shop-blue".into()), None]);
    assert_eq!(by("0.21.0"), [None, Some("shop-blue".into())]);
}

#[test]
fn dns_trap_24_a_copied_target_annotation_keeps_green_pointing_at_blue() {
    let mut o = ingress(Some("198.51.100.10"), None);
    o["metadata"]["annotations"]["external-dns.alpha.kubernetes.io/target"] = json!("203.0.113.10");
    assert_eq!(desired(&[o], &green())[0].targets, ["203.0.113.10"]);
}

#[test]
fn section_1_3_each_age_writes_its_own_txt_names() {
    let written = |v: &str, object: Value| -> Vec<String> {
        names(&plan(
            &config(
                v,
                &[
                    "--txt-owner-id=o",
                    "--policy=upsert-only",
                    "--exclude-record-types=AAAA",
                    "--annotation-prefix=external-dns.alpha.kubernetes.io/",
                ],
            ),
            &[],
            &[object],
        ))
        .into_iter()
        .filter(|n| n.ends_with("TXT") && !n.contains("pay"))
        .map(|n| {
            n.split(' ')
                .nth(1)
                .map(|s| s.trim_end_matches(".shop.test.").to_string())
                .unwrap_or_default()
        })
        .collect()
    };
    for (version, on_alias, on_a) in [
        ("0.7.6", vec!["orders"], vec!["www"]),
        ("0.11.0", vec!["orders"], vec!["www"]),
        (
            "0.12.2",
            vec!["orders", "cname-orders"],
            vec!["www", "a-www"],
        ),
        (
            "0.14.2",
            vec!["orders", "cname-orders"],
            vec!["www", "a-www"],
        ),
        (
            "0.17.0",
            vec!["orders", "cname-orders"],
            vec!["www", "a-www"],
        ),
        ("0.18.0", vec!["cname-orders"], vec!["a-www"]),
        ("0.21.0", vec!["cname-orders"], vec!["a-www"]),
        ("0.22.0", vec!["a-orders"], vec!["a-www"]),
    ] {
        assert_eq!(
            written(version, service(Some(GREEN_LB))),
            on_alias,
            "{version} alias"
        );
        assert_eq!(
            written(version, ingress(Some("203.0.113.10"), None)),
            on_a,
            "{version} A"
        );
    }
}

#[test]
fn rewriting_the_owner_keeps_every_other_word_of_the_value() {
    let v = "\"heritage=external-dns,external-dns/dualstack=true,external-dns/owner=shop-blue,external-dns/resource=ingress/a/b\"";
    assert_eq!(
        rewrite_owner(v, "shop-green").as_deref(),
        Some(
            "\"heritage=external-dns,external-dns/dualstack=true,external-dns/owner=shop-green,external-dns/resource=ingress/a/b\""
        )
    );
    assert_eq!(rewrite_owner("\"v=spf1 -all\"", "shop-green"), None);
    assert_eq!(
        rewrite_owner("\"heritage=other,external-dns/owner=x\"", "y"),
        None
    );
}

#[test]
fn every_txt_variant_of_a_name_is_listed_for_the_rewrite() {
    let mut records = zone_0_10();
    records.push(txt("cname-orders.shop.test", "shop-blue", ORDERS));
    let o = ownership(&records, &blue("0.10.2"));
    let orders = o
        .iter()
        .find(|o| o.key.name == "orders.shop.test.")
        .expect("listed");
    let names: Vec<&str> = orders.txt.iter().map(|k| k.name.as_str()).collect();
    assert_eq!(names, ["orders.shop.test.", "cname-orders.shop.test."]);
    let mail = o
        .iter()
        .find(|o| o.key.name == "mail.shop.test.")
        .expect("listed");
    assert_eq!((mail.owner.clone(), mail.txt.len()), (None, 0));
}
