//! Route 53 as AWS is, not as emulators are (eks.md 7, externaldns.md 4): through the SDK that the product uses.

mod strict_bench;

use aws_sdk_route53::Client;
use aws_sdk_route53::error::ProvideErrorMetadata;
use aws_sdk_route53::types::{
    AliasTarget, Change, ChangeAction, ChangeBatch, ChangeStatus, ResourceRecord,
    ResourceRecordSet, ResourceRecordSetFailover, RrType,
};
use strict_bench::{Layer, eventually, layer, route53};
use testkit::strict::{Fault, FaultKind};

struct Zone {
    _layer: Layer,
    api: Client,
    id: String,
}

async fn zone() -> Zone {
    let layer = layer().await.expect("layer");
    let api = route53(&layer.strict);
    let made = api
        .create_hosted_zone()
        .name("Shop.Test")
        .caller_reference("one")
        .send()
        .await
        .expect("zone");
    let id = made.hosted_zone.expect("zone").id;
    Zone {
        _layer: layer,
        api,
        id: id.trim_start_matches("/hostedzone/").to_owned(),
    }
}

fn set(name: &str, rtype: &str, ttl: i64, values: &[&str]) -> ResourceRecordSet {
    ResourceRecordSet::builder()
        .name(name)
        .r#type(RrType::from(rtype))
        .ttl(ttl)
        .set_resource_records(Some(
            values
                .iter()
                .map(|v| ResourceRecord::builder().value(*v).build().expect("value"))
                .collect(),
        ))
        .build()
        .expect("set")
}

fn weighted(name: &str, id: &str, weight: i64, value: &str) -> ResourceRecordSet {
    let mut set = set(name, "A", 60, &[value]);
    set.set_identifier = Some(id.to_owned());
    set.weight = Some(weight);
    set
}

fn alias(name: &str, rtype: &str, zone: &str, target: &str) -> ResourceRecordSet {
    ResourceRecordSet::builder()
        .name(name)
        .r#type(RrType::from(rtype))
        .alias_target(
            AliasTarget::builder()
                .hosted_zone_id(zone)
                .dns_name(target)
                .evaluate_target_health(true)
                .build()
                .expect("alias"),
        )
        .build()
        .expect("set")
}

const LB: &str = "a1b2-1.eu-west-1.elb.amazonaws.com";
const LB_ZONE: &str = "Z32O12XQLNTSW2";

fn create(set: ResourceRecordSet) -> (ChangeAction, ResourceRecordSet) {
    (ChangeAction::Create, set)
}
fn upsert(set: ResourceRecordSet) -> (ChangeAction, ResourceRecordSet) {
    (ChangeAction::Upsert, set)
}
fn delete(set: ResourceRecordSet) -> (ChangeAction, ResourceRecordSet) {
    (ChangeAction::Delete, set)
}

impl Zone {
    /// `Err` carries code and message.
    async fn change(
        &self,
        changes: Vec<(ChangeAction, ResourceRecordSet)>,
    ) -> Result<String, (String, String)> {
        let mut batch = ChangeBatch::builder();
        for (action, set) in changes {
            batch = batch.changes(
                Change::builder()
                    .action(action)
                    .resource_record_set(set)
                    .build()
                    .expect("change"),
            );
        }
        self.api
            .change_resource_record_sets()
            .hosted_zone_id(&self.id)
            .change_batch(batch.build().expect("batch"))
            .send()
            .await
            .map(|done| done.change_info.expect("info").id)
            .map_err(|error| {
                let error = error.into_service_error();
                let code = error.code().unwrap_or("no code").to_owned();
                // The typed InvalidChangeBatch carries its messages apart or as one text.
                (code, format!("{error:?}"))
            })
    }

    async fn accept(&self, changes: Vec<(ChangeAction, ResourceRecordSet)>) {
        self.change(changes).await.expect("accepted");
    }

    /// The batch is refused with this code, a message holding these words, and the zone stays as it was.
    async fn refuse(
        &self,
        code: &str,
        words: &str,
        changes: Vec<(ChangeAction, ResourceRecordSet)>,
    ) {
        let before = self.listing();
        let (found, message) = self.change(changes).await.expect_err(words);
        assert_eq!(found, code, "{message}");
        assert!(message.contains(words), "'{words}' is not in: {message}");
        assert_eq!(self.listing(), before, "a refused batch changed the zone");
    }

    fn listing(&self) -> String {
        let zones = self._layer.strict.zones();
        zones
            .iter()
            .find(|z| z.id == self.id)
            .expect("zone")
            .listing()
    }
}

const BATCH: &str = "InvalidChangeBatch";

#[tokio::test]
async fn a_batch_with_one_bad_change_leaves_the_zone_untouched() {
    let zone = zone().await;
    zone.accept(vec![create(set(
        "www.shop.test",
        "A",
        20,
        &["203.0.113.10"],
    ))])
    .await;
    zone.refuse(
        BATCH,
        "is not permitted in zone shop.test.",
        vec![
            upsert(set("www.shop.test", "A", 20, &["198.51.100.10"])),
            create(set("m.shop.test", "A", 20, &["198.51.100.10"])),
            delete(set("www.shop.test", "A", 20, &["203.0.113.10"])),
            create(set("www.elsewhere.test", "A", 20, &["198.51.100.10"])),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_record_that_exists_cannot_be_created_again_not_even_with_other_values() {
    let zone = zone().await;
    zone.accept(vec![create(set(
        "www.shop.test",
        "A",
        20,
        &["203.0.113.10"],
    ))])
    .await;
    for value in ["203.0.113.10", "198.51.100.10"] {
        zone.refuse(
            BATCH,
            "but it already exists",
            vec![create(set("WWW.shop.test.", "A", 20, &[value]))],
        )
        .await;
    }
}

#[tokio::test]
async fn a_delete_must_name_values_ttl_and_set_identifier_exactly() {
    let zone = zone().await;
    zone.accept(vec![
        create(set(
            "www.shop.test",
            "A",
            20,
            &["203.0.113.10", "203.0.113.11"],
        )),
        create(weighted("w.shop.test", "blue", 1, "203.0.113.10")),
        create(weighted("w.shop.test", "green", 0, "198.51.100.10")),
        create(alias("orders.shop.test", "A", LB_ZONE, LB)),
    ])
    .await;
    // The stale value that moto still accepts (eks.md 7).
    zone.accept(vec![upsert(set(
        "www.shop.test",
        "A",
        20,
        &["203.0.113.12"],
    ))])
    .await;
    let differs = "but the values provided do not match the current values";
    zone.refuse(
        BATCH,
        differs,
        vec![delete(set(
            "www.shop.test",
            "A",
            20,
            &["203.0.113.10", "203.0.113.11"],
        ))],
    )
    .await;
    zone.refuse(
        BATCH,
        differs,
        vec![delete(set("www.shop.test", "A", 300, &["203.0.113.12"]))],
    )
    .await;
    zone.refuse(
        BATCH,
        differs,
        vec![delete(weighted("w.shop.test", "blue", 2, "203.0.113.10"))],
    )
    .await;
    zone.refuse(
        BATCH,
        differs,
        vec![delete(alias(
            "orders.shop.test",
            "A",
            LB_ZONE,
            "b-2.eu-west-1.elb.amazonaws.com",
        ))],
    )
    .await;
    zone.refuse(
        BATCH,
        "but it was not found",
        vec![delete(set("w.shop.test", "A", 60, &["203.0.113.10"]))],
    )
    .await;
    zone.refuse(
        BATCH,
        "but it was not found",
        vec![delete(weighted("x.shop.test", "blue", 1, "203.0.113.10"))],
    )
    .await;
    // Exactly named, only that one goes.
    zone.accept(vec![delete(weighted(
        "w.shop.test",
        "blue",
        1,
        "203.0.113.10",
    ))])
    .await;
    assert!(
        zone.listing()
            .contains("<SetIdentifier>green</SetIdentifier>")
    );
    zone.accept(vec![delete(alias("orders.shop.test", "A", LB_ZONE, LB))])
        .await;
}

#[tokio::test]
async fn a_cname_stands_alone_and_never_at_the_apex() {
    let zone = zone().await;
    zone.accept(vec![
        create(set("www.shop.test", "A", 20, &["203.0.113.10"])),
        create(set("docs.shop.test", "CNAME", 20, &["docs.example.net"])),
    ])
    .await;
    let conflict = "conflicts with other records with the same DNS name";
    zone.refuse(
        BATCH,
        conflict,
        vec![create(set(
            "www.shop.test",
            "CNAME",
            20,
            &["x.example.net"],
        ))],
    )
    .await;
    zone.refuse(
        BATCH,
        conflict,
        vec![create(set("docs.shop.test", "TXT", 20, &["\"x\""]))],
    )
    .await;
    zone.refuse(
        BATCH,
        "not permitted at apex",
        vec![create(set("shop.test", "CNAME", 20, &["x.example.net"]))],
    )
    .await;
    // Replacing it in one batch is allowed: what counts is the zone afterwards.
    zone.accept(vec![
        delete(set("docs.shop.test", "CNAME", 20, &["docs.example.net"])),
        create(set("docs.shop.test", "A", 20, &["203.0.113.10"])),
    ])
    .await;
}

#[tokio::test]
async fn record_sets_of_one_name_and_type_share_one_routing_policy() {
    let zone = zone().await;
    zone.accept(vec![
        create(set("www.shop.test", "A", 20, &["203.0.113.10"])),
        create(weighted("w.shop.test", "blue", 100, "203.0.113.10")),
    ])
    .await;
    let others = "cannot be created as other RRSets exist with the same name and type";
    zone.refuse(
        BATCH,
        others,
        vec![upsert(weighted(
            "www.shop.test",
            "green",
            0,
            "198.51.100.10",
        ))],
    )
    .await;
    zone.refuse(
        BATCH,
        others,
        vec![create(set("w.shop.test", "A", 60, &["198.51.100.10"]))],
    )
    .await;
    let mut failover = set("w.shop.test", "A", 60, &["198.51.100.10"]);
    failover.set_identifier = Some("green".into());
    failover.failover = Some(ResourceRecordSetFailover::Primary);
    zone.refuse(BATCH, others, vec![create(failover.clone())])
        .await;
    failover.set_identifier = Some("blue".into());
    zone.refuse(
        BATCH,
        "Tried to change the routing policy",
        vec![upsert(failover)],
    )
    .await;
    zone.refuse(
        "InvalidInput",
        "Missing field 'SetIdentifier'",
        vec![create({
            let mut s = set("v.shop.test", "A", 60, &["198.51.100.10"]);
            s.weight = Some(1);
            s
        })],
    )
    .await;
}

#[tokio::test]
async fn an_alias_has_no_ttl_and_everything_else_has_one() {
    let zone = zone().await;
    let mut with_ttl = alias("orders.shop.test", "A", LB_ZONE, LB);
    with_ttl.ttl = Some(60);
    zone.refuse(
        "InvalidInput",
        "but found more than one",
        vec![create(with_ttl)],
    )
    .await;
    let mut without = set("www.shop.test", "A", 20, &["203.0.113.10"]);
    without.ttl = None;
    zone.refuse("InvalidInput", "but found none", vec![create(without)])
        .await;
    zone.accept(vec![create(alias("orders.shop.test", "A", LB_ZONE, LB))])
        .await;
    let listed = zone
        .api
        .list_resource_record_sets()
        .hosted_zone_id(&zone.id)
        .send()
        .await
        .expect("listing");
    let orders = listed
        .resource_record_sets
        .iter()
        .find(|r| r.name == "orders.shop.test.")
        .expect("orders");
    assert_eq!(orders.ttl, None, "trap 27: moto lists an alias with TTL 0");
    assert_eq!(
        orders.alias_target.as_ref().expect("alias").dns_name,
        format!("{LB}.")
    );
}

#[tokio::test]
async fn an_alias_to_a_wrong_or_unknown_zone_is_refused() {
    let zone = zone().await;
    let outside = "does not lie within the target zone";
    zone.refuse(
        BATCH,
        outside,
        vec![create(alias("o.shop.test", "A", "Z35SXDOTRQ7X7K", LB))],
    )
    .await;
    zone.refuse(
        BATCH,
        outside,
        vec![create(alias("o.shop.test", "A", "ZBOGUS", "x.example.net"))],
    )
    .await;
    zone.refuse(
        BATCH,
        "but that target was not found",
        vec![create(alias(
            "o.shop.test",
            "A",
            &zone.id,
            "gone.shop.test",
        ))],
    )
    .await;
    // A target made by the same batch is there.
    zone.accept(vec![
        create(set("www.shop.test", "A", 20, &["203.0.113.10"])),
        create(alias("o.shop.test", "A", &zone.id, "www.shop.test")),
    ])
    .await;
}

#[tokio::test]
async fn bad_values_are_refused() {
    let zone = zone().await;
    let long = format!("\"{}\"", "x".repeat(256));
    for (words, set) in [
        (
            "not a valid IPv4 address",
            set("a.shop.test", "A", 20, &["203.0.113.300"]),
        ),
        (
            "not a valid IPv4 address",
            set("a.shop.test", "A", 20, &["lb.example.net"]),
        ),
        (
            "not a valid IPv6 address",
            set("a.shop.test", "AAAA", 20, &["203.0.113.10"]),
        ),
        (
            "enclosed in quotation marks",
            set("a.shop.test", "TXT", 20, &["heritage=external-dns"]),
        ),
        ("Value is too long", set("a.shop.test", "TXT", 20, &[&long])),
        (
            "Duplicate Resource Record",
            set("a.shop.test", "A", 20, &["203.0.113.10", "203.0.113.10"]),
        ),
        (
            "may hold one value",
            set(
                "a.shop.test",
                "CNAME",
                20,
                &["a.example.net", "b.example.net"],
            ),
        ),
    ] {
        zone.refuse(BATCH, words, vec![create(set)]).await;
    }
}

#[tokio::test]
async fn a_batch_holds_1000_values_and_an_upsert_counts_twice() {
    let zone = zone().await;
    let many = |n: usize, action: ChangeAction| -> Vec<_> {
        (0..n)
            .map(|i| {
                (
                    action.clone(),
                    set(&format!("h{i}.shop.test"), "A", 20, &["203.0.113.10"]),
                )
            })
            .collect()
    };
    zone.refuse(
        BATCH,
        "Number of records limit of 1000 exceeded",
        many(501, ChangeAction::Upsert),
    )
    .await;
    zone.refuse(
        BATCH,
        "Number of records limit of 1000 exceeded",
        many(1001, ChangeAction::Create),
    )
    .await;
    zone.accept(many(1000, ChangeAction::Create)).await;
    let text = format!("\"{}\"", "x".repeat(250));
    let texts: Vec<_> = (0..64)
        .map(|i| upsert(set(&format!("t{i}.shop.test"), "TXT", 300, &[&text])))
        .collect();
    zone.refuse(BATCH, "Number of characters limit of 32000 exceeded", texts)
        .await;
}

#[tokio::test]
async fn the_zones_own_ns_and_soa_stay() {
    let zone = zone().await;
    let listed = zone
        .api
        .list_resource_record_sets()
        .hosted_zone_id(&zone.id)
        .send()
        .await
        .expect("listing");
    let types: Vec<&str> = listed
        .resource_record_sets
        .iter()
        .map(|r| r.r#type.as_str())
        .collect();
    assert_eq!(types, ["NS", "SOA"]);
    for own in listed.resource_record_sets {
        zone.refuse(BATCH, "A HostedZone must contain", vec![delete(own)])
            .await;
    }
}

#[tokio::test]
async fn a_wildcard_is_listed_in_octal_and_found_by_both_spellings() {
    let zone = zone().await;
    zone.accept(vec![create(set("*.Shop.test", "A", 20, &["203.0.113.10"]))])
        .await;
    assert!(zone.listing().contains("<Name>\\052.shop.test.</Name>"));
    zone.accept(vec![delete(set(
        "\\052.shop.test.",
        "A",
        20,
        &["203.0.113.10"],
    ))])
    .await;
}

#[tokio::test]
async fn listings_come_in_order_of_reversed_labels_in_pages_of_300_at_most() {
    let zone = zone().await;
    for n in 0..2 {
        let changes = (n * 200..(n + 1) * 200)
            .map(|i| {
                create(set(
                    &format!("h{i:03}.shop.test"),
                    "A",
                    20,
                    &["203.0.113.10"],
                ))
            })
            .collect();
        zone.accept(changes).await;
    }
    zone.accept(vec![
        create(weighted("h000.z.shop.test", "blue", 1, "203.0.113.10")),
        create(weighted("h000.z.shop.test", "green", 1, "203.0.113.11")),
    ])
    .await;
    let (mut names, mut pages) = (Vec::new(), 0);
    let (mut name, mut kind, mut id) = (None, None, None);
    loop {
        let page = zone
            .api
            .list_resource_record_sets()
            .hosted_zone_id(&zone.id)
            .max_items(1000)
            .set_start_record_name(name)
            .set_start_record_type(kind)
            .set_start_record_identifier(id)
            .send()
            .await
            .expect("page");
        assert!(page.resource_record_sets.len() <= 300);
        pages += 1;
        names.extend(page.resource_record_sets.iter().map(|r| {
            format!(
                "{} {} {}",
                r.name,
                r.r#type.as_str(),
                r.set_identifier.as_deref().unwrap_or("")
            )
        }));
        if !page.is_truncated {
            break;
        }
        (name, kind, id) = (
            page.next_record_name,
            page.next_record_type,
            page.next_record_identifier,
        );
    }
    assert_eq!(pages, 2);
    assert_eq!(names.len(), 404);
    assert_eq!(names[0], "shop.test. NS ");
    assert_eq!(names[2], "h000.shop.test. A ");
    assert_eq!(
        names[402..],
        ["h000.z.shop.test. A blue", "h000.z.shop.test. A green"]
    );
    // A page may begin within the sets of one name.
    let page = zone
        .api
        .list_resource_record_sets()
        .hosted_zone_id(&zone.id)
        .start_record_name("h000.z.shop.test")
        .start_record_type(RrType::A)
        .start_record_identifier("green")
        .send()
        .await
        .expect("page");
    assert_eq!(page.resource_record_sets.len(), 1);
}

#[tokio::test]
async fn a_change_is_pending_before_it_is_in_sync() {
    let zone = zone().await;
    let id = zone
        .change(vec![create(set(
            "www.shop.test",
            "A",
            20,
            &["203.0.113.10"],
        ))])
        .await
        .expect("change");
    let status = || async {
        let change = zone.api.get_change().id(&id).send().await.expect("change");
        change.change_info.expect("info").status
    };
    assert_eq!(status().await, ChangeStatus::Pending);
    eventually("INSYNC", || async {
        (status().await == ChangeStatus::Insync).then_some(())
    })
    .await;
    let unknown = zone
        .api
        .get_change()
        .id("C000")
        .send()
        .await
        .expect_err("unknown change");
    assert_eq!(unknown.into_service_error().code(), Some("NoSuchChange"));
}

#[tokio::test]
async fn zones_are_found_by_name_and_tagged_and_only_go_when_empty() {
    let zone = zone().await;
    let api = &zone.api;
    let again = api
        .create_hosted_zone()
        .name("shop.test")
        .caller_reference("one")
        .send()
        .await;
    assert_eq!(
        again
            .expect_err("same reference")
            .into_service_error()
            .code(),
        Some("HostedZoneAlreadyExists")
    );
    // Two zones of one name are legal, which is why tools must pin ids.
    let twin = api
        .create_hosted_zone()
        .name("shop.test")
        .caller_reference("two")
        .send()
        .await
        .expect("twin");
    let twin = twin.hosted_zone.expect("zone").id;
    let by_name = api
        .list_hosted_zones_by_name()
        .dns_name("shop.test")
        .max_items(1)
        .send()
        .await
        .expect("by name");
    assert_eq!(
        (by_name.hosted_zones.len(), by_name.is_truncated),
        (1, true)
    );
    api.change_tags_for_resource()
        .resource_type(aws_sdk_route53::types::TagResourceType::Hostedzone)
        .resource_id(&zone.id)
        .add_tags(
            aws_sdk_route53::types::Tag::builder()
                .key("team")
                .value("web")
                .build(),
        )
        .send()
        .await
        .expect("tags");
    let tags = api
        .list_tags_for_resources()
        .resource_type(aws_sdk_route53::types::TagResourceType::Hostedzone)
        .resource_ids(&zone.id)
        .send()
        .await
        .expect("tags");
    assert_eq!(tags.resource_tag_sets[0].tags()[0].value(), Some("web"));
    zone.accept(vec![create(set(
        "www.shop.test",
        "A",
        20,
        &["203.0.113.10"],
    ))])
    .await;
    let full = api
        .delete_hosted_zone()
        .id(&zone.id)
        .send()
        .await
        .expect_err("not empty");
    assert_eq!(full.into_service_error().code(), Some("HostedZoneNotEmpty"));
    api.delete_hosted_zone()
        .id(twin)
        .send()
        .await
        .expect("an empty zone goes");
    let gone = api
        .get_hosted_zone()
        .id("Z000")
        .send()
        .await
        .expect_err("unknown");
    assert_eq!(gone.into_service_error().code(), Some("NoSuchHostedZone"));
}

#[tokio::test]
async fn faults_throttle_fail_or_lose_the_reply_and_the_log_tells_what_really_changed() {
    let zone = zone().await;
    let strict = &zone._layer.strict;
    let www = || vec![create(set("www.shop.test", "A", 20, &["203.0.113.10"]))];
    let action = "ChangeResourceRecordSets";
    strict.inject(Fault::new("route53", action, FaultKind::Throttle));
    assert_eq!(
        zone.change(www()).await.expect_err("throttled").0,
        "Throttling"
    );
    strict.inject(Fault::new("route53", action, FaultKind::Error500));
    assert_eq!(
        zone.change(www()).await.expect_err("failed").0,
        "InternalFailure"
    );
    assert!(!zone.listing().contains("www"));
    strict.clear_faults();
    strict.inject(Fault::new("route53", action, FaultKind::LostReply));
    assert_eq!(zone.change(www()).await.expect_err("lost").0, "no code");
    assert!(
        zone.listing().contains("www"),
        "the call was done although its reply was lost"
    );
    let calls: Vec<_> = strict
        .calls()
        .into_iter()
        .filter(|c| c.action == action)
        .collect();
    let seen: Vec<(u16, bool)> = calls.iter().map(|c| (c.status, c.changed)).collect();
    assert_eq!(seen, [(400, false), (500, false), (200, true)]);
    assert_eq!(calls[2].who, "test");
    assert_eq!(calls[2].params["zone"], zone.id.as_str());
    assert_eq!(calls[2].params["changes"][0]["name"], "www.shop.test.");
    assert_eq!(calls[2].params["changes"][0]["values"][0], "203.0.113.10");
}

#[tokio::test]
async fn the_account_has_five_requests_a_second_when_asked_to() {
    let zone = zone().await;
    zone._layer.strict.throttle_route53(Some(5));
    let mut refused = 0;
    for _ in 0..8 {
        if let Err(error) = zone.api.list_hosted_zones().send().await {
            assert_eq!(error.into_service_error().code(), Some("Throttling"));
            refused += 1;
        }
    }
    assert!(refused >= 1, "eight requests at once were all served");
}
