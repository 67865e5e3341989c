//! Rule 3: the classes of the records of a zone, in the layout of each age.

use super::*;

/// `name type: holder, kind, routing, TXTs` of each record.
fn lines(records: &[RecordSet], c: &Config) -> Vec<String> {
    classify(records, c)
        .into_iter()
        .map(|k| {
            let holder = match k.holder {
                Holder::Own => "own".to_string(),
                Holder::Other(o) => format!("of {o}"),
                Holder::Nobody => "nobody's".into(),
                Holder::Unreadable => "unreadable".into(),
            };
            let kind = if k.alias { "alias" } else { "ttl" };
            let txt: Vec<&str> = k
                .variants
                .keys()
                .map(|n| n.trim_end_matches(".shop.test."))
                .collect();
            format!(
                "{} {}: {holder}, {kind}, {}, [{}]",
                k.key.name.trim_end_matches(".shop.test."),
                k.key.rtype,
                k.routing,
                txt.join(" ")
            )
        })
        .collect()
}

/// www (an address) and orders (an alias) with the TXTs that a version leaves behind (externaldns.md 1.3), and a record of nobody.
fn layout(version: &str) -> Vec<RecordSet> {
    let c = blue(version);
    let mut records = vec![
        rec("mail.shop.test", "A", 300, &["192.0.2.25"]),
        alias("orders.shop.test", "A", BLUE_LB),
        rec("www.shop.test", "A", 20, &["203.0.113.10"]),
    ];
    let formats = txt_written_by(c.version);
    for (host, resource, word) in [
        (
            "orders",
            ORDERS,
            if c.version.at_least(22, 0) {
                "a"
            } else {
                "cname"
            },
        ),
        ("www", WEB, "a"),
    ] {
        if formats.legacy {
            records.push(txt(&format!("{host}.shop.test"), "shop-blue", resource));
        }
        if formats.typed {
            records.push(txt(
                &format!("{word}-{host}.shop.test"),
                "shop-blue",
                resource,
            ));
        }
    }
    records
}

#[test]
fn dns_rule_03_the_layout_of_each_age_is_classified() {
    for (version, orders, www) in [
        ("0.7.6", "orders", "www"),
        ("0.12.2", "cname-orders orders", "a-www www"),
        ("0.17.0", "cname-orders orders", "a-www www"),
        ("0.21.0", "cname-orders", "a-www"),
    ] {
        assert_eq!(
            lines(&layout(version), &blue(version)),
            [
                "mail A: nobody's, ttl, simple, []".to_string(),
                format!("orders A: own, alias, simple, [{orders}]"),
                format!("www A: own, ttl, simple, [{www}]"),
            ],
            "{version}"
        );
    }
    let c = config("0.22.0", &["--txt-owner-id=shop-blue", "--policy=sync"]);
    let mut records = vec![
        alias("orders.shop.test", "A", BLUE_LB),
        txt("a-orders.shop.test", "shop-blue", ORDERS),
    ];
    assert_eq!(
        lines(&records, &c),
        ["orders A: own, alias, simple, [a-orders]"]
    );
    records.push(txt("cname-orders.shop.test", "shop-green", ORDERS));
    assert!(
        classify(&records, &c)[0].disputed(),
        "two owners in two variants"
    );
}

#[test]
fn dns_rule_03_wildcard_apex_affixes_routing_and_the_host_a_team_are_classified() {
    let old = blue("0.10.2");
    let mut weighted = rec("api.shop.test", "A", 60, &["203.0.113.10"]);
    weighted.set_identifier = Some("blue".into());
    weighted.routing.insert("Weight".into(), json!(10));
    weighted
        .routing
        .insert("HealthCheckId".into(), json!("hc-1"));
    let mut of_weighted = txt("api.shop.test", "shop-blue", WEB);
    of_weighted.set_identifier = Some("blue".into());
    let records = vec![
        rec("shop.test", "A", 300, &["203.0.113.10"]),
        txt("shop.test", "shop-blue", WEB),
        rec("\\052.shop.test", "A", 300, &["203.0.113.10"]),
        txt("\\052.shop.test", "shop-blue", WEB),
        rec("a-team.shop.test", "A", 300, &["203.0.113.10"]),
        txt("a-team.shop.test", "shop-blue", WEB),
        weighted,
        of_weighted,
    ];
    assert_eq!(
        lines(&records, &old),
        [
            "shop.test. A: own, ttl, simple, [shop.test.]",
            "* A: own, ttl, simple, [*]",
            "a-team A: own, ttl, simple, [a-team]",
            "api A: own, ttl, Weight, [api]",
        ]
    );
    let prefixed = config(
        "0.17.0",
        &[
            "--txt-owner-id=shop-blue",
            "--txt-prefix=x-",
            "--policy=sync",
        ],
    );
    let records = vec![
        rec("www.shop.test", "A", 20, &["203.0.113.10"]),
        txt("x-a-www.shop.test", "shop-blue", WEB),
        txt("x-www.shop.test", "other-team", WEB),
    ];
    assert_eq!(
        lines(&records, &prefixed),
        ["www A: own, ttl, simple, [x-a-www x-www]"]
    );
    assert!(classify(&records, &prefixed)[0].disputed());
    let template = config(
        "0.17.0",
        &[
            "--txt-owner-id=shop-blue",
            "--txt-suffix=-%{record_type}-o",
            "--policy=sync",
        ],
    );
    let records = vec![
        rec("www.shop.test", "A", 20, &["203.0.113.10"]),
        txt("www-a-o.shop.test", "shop-blue", WEB),
    ];
    assert_eq!(
        lines(&records, &template),
        ["www A: own, ttl, simple, [www-a-o]"]
    );
}

#[test]
fn dns_trap_26_an_encrypted_txt_looks_like_nobodys_and_is_called_unreadable() {
    // AES-256-GCM as ExternalDNS writes it: base64 of nonce, text and tag; never longer words with spaces.
    let secret = format!(
        "\"{}\"",
        base64::Engine::encode(&base64::engine::general_purpose::STANDARD, [7u8; 90])
    );
    let records = vec![
        rec("www.shop.test", "A", 20, &["203.0.113.10"]),
        rec("a-www.shop.test", "TXT", 300, &[&secret]),
    ];
    let c = blue("0.17.0");
    assert_eq!(
        ownership(&records, &c)[0].owner,
        None,
        "nobody's to who has no key"
    );
    assert_eq!(classify(&records, &c)[0].holder, Holder::Unreadable);
    assert!(!looks_encrypted("\"v=spf1 include:_spf.example.org ~all\""));
    assert!(!looks_encrypted(
        "\"google-site-verification=abcdefghijklmnopqrstuvwxyz0123456789abcdefg\""
    ));
    assert!(!looks_encrypted(&heritage_value("shop-blue", WEB)));
}

#[test]
fn dns_trap_27_an_alias_is_one_with_a_ttl_of_zero_or_without() {
    let without = alias("orders.shop.test", "A", BLUE_LB);
    let with = RecordSet {
        ttl: Some(0),
        ..without.clone()
    };
    for r in [without, with] {
        assert!(classify(std::slice::from_ref(&r), &blue("0.10.2"))[0].alias);
        assert_eq!(switch::longest_ttl(&[r]), 60, "the load balancer's");
    }
}
