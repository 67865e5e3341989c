//! 0.12 to 0.17: legacy and typed TXTs side by side.

use super::*;

#[test]
fn dns_trap_03_with_0_12_the_last_listed_variant_decides_so_ownership_depends_on_the_host_name() {
    // Route 53's order: `app` before `cname-app`, but `cname-foo` before `foo`.
    let app = [
        alias("app.shop.test", "A", BLUE_LB),
        txt("app.shop.test", "legacy-owner", ORDERS),
        txt("cname-app.shop.test", "typed-owner", ORDERS),
    ];
    let foo = [
        txt("cname-foo.shop.test", "typed-owner", ORDERS),
        alias("foo.shop.test", "A", BLUE_LB),
        txt("foo.shop.test", "legacy-owner", ORDERS),
    ];
    let old = blue("0.12.2");
    assert_eq!(
        ownership(&app, &old)[0].owner.as_deref(),
        Some("typed-owner")
    );
    assert_eq!(
        ownership(&foo, &old)[0].owner.as_deref(),
        Some("legacy-owner")
    );
    let new = blue("0.14.2");
    assert_eq!(
        ownership(&foo, &new)[0].owner.as_deref(),
        Some("typed-owner")
    );
}

#[test]
fn section_1_4_the_type_goes_between_prefix_and_label_or_into_the_template() {
    let p = config("0.17.0", &["--txt-prefix=Ext-", "--policy=sync"]);
    assert_eq!(
        txt_variants("www.shop.test", "A", true, &p),
        [
            "ext-www.shop.test.",
            "ext-cname-www.shop.test.",
            "ext-a-www.shop.test."
        ]
    );
    let s = config("0.17.0", &["--txt-suffix=-owner", "--policy=sync"]);
    assert_eq!(
        txt_variants("www.shop.test", "CNAME", false, &s),
        ["www-owner.shop.test.", "cname-www-owner.shop.test."]
    );
    let t = config(
        "0.17.0",
        &["--txt-prefix=%{record_type}-x.", "--policy=sync"],
    );
    assert_eq!(
        txt_variants("www.shop.test", "A", false, &t),
        ["-x.www.shop.test.", "a-x.www.shop.test."]
    );
    let records = vec![
        rec("www.shop.test", "A", 300, &["203.0.113.10"]),
        txt("a-x.www.shop.test", "me", WEB),
    ];
    assert_eq!(ownership(&records, &t)[0].owner.as_deref(), Some("me"));
    let records = vec![
        rec("www.shop.test", "CNAME", 300, &["x.example.org"]),
        txt("cname-www-owner.shop.test", "me", WEB),
    ];
    assert_eq!(ownership(&records, &s)[0].owner.as_deref(), Some("me"));
}

#[test]
fn the_first_loop_of_0_17_on_an_old_zone_adds_the_missing_typed_txts_force_update() {
    let got = names(&plan(&blue("0.17.0"), &zone_0_10(), &blue_objects()));
    assert!(
        got.contains(&"UPSERT www.shop.test. A".to_string()),
        "{got:?}"
    );
    assert!(
        got.contains(&"UPSERT a-www.shop.test. TXT".to_string()),
        "{got:?}"
    );
    assert!(
        got.contains(&"UPSERT www.shop.test. TXT".to_string()),
        "{got:?}"
    );
}
