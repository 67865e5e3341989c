//! One real migration, there and back: the released binary moves the company "shop" between real servers while its clients
//! read and its writers write; and again with a SIGKILL in every phase.

mod bench;

use bench::{Shop, diff_lines};
use crossfade::plan::model::Phase;
use serde_json::Value;
use std::collections::BTreeSet;
use testkit::fixture::MANAGED_NAMES;
use testkit::servers::Side;

/// Records of the zone that belong to somebody else, by name.
const FOREIGN: &[&str] = &["mail", "legacy", "api", "api.internal"];

#[tokio::test(flavor = "multi_thread")]
async fn shop_moves_to_green_and_back_and_nobody_loses_anything() {
    let shop = Shop::open().await;
    let start = shop.observe("start").await;
    let zone = shop.bench.record_sets();
    let foreign = shop.foreign_records(FOREIGN);
    let (clients, writers) = shop.traffic().await;

    shop.run(&["discover", "plans/shop"]).await.expect(0);
    shop.run(&["plan", "plans/shop"]).await.expect(2);
    let digest = shop.plan().digest;
    shop.run(&["plan", "plans/shop"]).await.expect(2);
    assert_eq!(shop.plan().digest, digest, "the same plan twice");
    // Nothing runs before somebody approved it.
    shop.run(&["migrate", "plans/shop"]).await.expect(4);
    shop.run(&["review", "plans/shop", "--approve", "all"])
        .await
        .expect(0);
    let calls_before = shop.bench.calls().len();
    shop.run(&["migrate", "plans/shop"]).await.expect(0);

    // Every host answers from green by DNS; writes go there.
    for host in MANAGED_NAMES {
        assert_eq!(shop.served_by(host).await, (200, "green".into()), "{host}");
    }
    shop.until_written_on("green", &writers).await;
    assert_eq!(shop.foreign_records(FOREIGN), foreign);
    let there = shop.observe("there").await;

    // A second migrate writes nothing.
    let (calls, audit) = (
        shop.product_changes(),
        shop.audited_writes(Side::Blue).len(),
    );
    let green_audit = shop.audited_writes(Side::Green).len();
    shop.run(&["migrate", "plans/shop"]).await.expect(0);
    assert_eq!(shop.product_changes(), calls, "no call that changes AWS");
    assert_eq!(shop.audited_writes(Side::Blue).len(), audit);
    assert_eq!(shop.audited_writes(Side::Green).len(), green_audit);

    shop.run(&["rollback", "plans/shop"]).await.expect(0);
    shop.until_written_on("blue", &writers).await;
    let reads = clients.stop();
    let written = writers.stop().await;

    // The zone as it was, byte for byte; everything else as it was.
    assert_eq!(shop.bench.record_sets(), zone);
    assert_eq!(shop.foreign_records(FOREIGN), foreign);
    let back = shop.observe("back").await;
    assert_eq!(
        diff_lines(&start, &back),
        Vec::<String>::new(),
        "after the rollback"
    );
    for host in MANAGED_NAMES {
        assert_eq!(shop.served_by(host).await, (200, "blue".into()), "{host}");
    }
    // Blue's ExternalDNS runs and plans no change: two of its loops leave the zone alone.
    tokio::time::sleep(std::time::Duration::from_secs(7)).await;
    assert_eq!(
        shop.bench.record_sets(),
        zone,
        "blue's ExternalDNS is content"
    );

    // No client saw an error at all, no writer saw another than "closed for now".
    assert!(reads.samples.len() > 500, "{} reads", reads.samples.len());
    assert!(reads.failures().is_empty(), "{}", reads.failure_summary());
    assert_eq!(written.errors, vec![], "errors of writers");
    let sides: BTreeSet<&str> = written.acked.iter().map(|a| a.side.as_str()).collect();
    assert_eq!(
        sides,
        BTreeSet::from(["blue", "green"]),
        "both sides took writes"
    );
    // Every acknowledged row is in blue's database, those that green took too.
    let missing = written.missing_from(shop.rows(Side::Blue).await);
    assert!(missing.is_empty(), "lost: {missing:?}");
    let limit = std::time::Duration::from_secs(120);
    assert!(
        written.longest_pause() < limit,
        "writes closed for {:?}",
        written.longest_pause()
    );

    // Blue's audit log: no delete, and no write that the plan does not name.
    let plan = shop.plan();
    let named = bench::objects_that_steps_write_on_blue(&plan);
    for write in shop.audited_writes(Side::Blue) {
        assert_eq!(write.verb, "patch", "{write:?}");
        assert!(
            named.contains(&write.object),
            "{write:?} is not among {named:?}"
        );
    }
    // The call log: what was deleted in AWS is what this run had made.
    shop.only_own_things_were_deleted(calls_before);

    // The twin of the same snapshot ends in the same observable state, there and back.
    let (twin_there, twin_back) = shop.twin().await;
    assert_eq!(
        diff_lines(&bench::comparable(&there), &bench::comparable(&twin_there)),
        Vec::<String>::new(),
        "bench (left) and twin (right) after the migration"
    );
    assert_eq!(
        diff_lines(&bench::comparable(&back), &bench::comparable(&twin_back)),
        Vec::<String>::new(),
        "bench (left) and twin (right) after the rollback"
    );

    shop.no_secret_on_disk();
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_once_in_each_phase_the_same_command_goes_on_there_and_back() {
    let shop = Shop::open().await;
    let start = shop.observe("start").await;
    let zone = shop.bench.record_sets();
    let (clients, writers) = shop.traffic().await;
    shop.run(&["discover", "plans/shop"]).await.expect(0);
    shop.run(&["plan", "plans/shop"]).await.expect(2);
    shop.run(&["review", "plans/shop", "--approve", "all"])
        .await
        .expect(0);

    let mut killed = BTreeSet::new();
    let phases: Vec<Phase> = Phase::ALL
        .into_iter()
        .filter(|p| *p != Phase::Preflight)
        .collect();
    while let Some(phases_at_work) = shop.run_until_killed("migrate", &phases, &killed).await {
        killed.extend(phases_at_work);
    }
    assert!(
        phases.iter().all(|p| killed.contains(p)),
        "killed in {killed:?}"
    );
    for host in MANAGED_NAMES {
        assert_eq!(shop.served_by(host).await, (200, "green".into()), "{host}");
    }
    shop.until_written_on("green", &writers).await;

    // The undo of the soak does nothing: too quick to be hit.
    let phases: Vec<Phase> = phases.into_iter().filter(|p| *p != Phase::Soak).collect();
    let mut killed = BTreeSet::new();
    while let Some(phases_at_work) = shop.run_until_killed("rollback", &phases, &killed).await {
        killed.extend(phases_at_work);
    }
    assert!(
        phases.iter().all(|p| killed.contains(p)),
        "killed on the way back in {killed:?}"
    );
    shop.until_written_on("blue", &writers).await;
    let reads = clients.stop();
    let written = writers.stop().await;
    assert_eq!(shop.bench.record_sets(), zone);
    let back: Value = shop.observe("back").await;
    assert_eq!(diff_lines(&start, &back), Vec::<String>::new());
    assert!(reads.failures().is_empty(), "{}", reads.failure_summary());
    let missing = written.missing_from(shop.rows(Side::Blue).await);
    assert!(missing.is_empty(), "lost: {missing:?}");
    shop.only_own_things_were_deleted(0);
}

/// Run by [`Shop::observe`] in the bench's environment: the AWS SDK reads its endpoint there.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by the tests above in a process of its own"]
async fn write_observation() {
    bench::write_observation().await;
}
