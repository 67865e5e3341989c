//! The cutover phase when things go wrong (issue 7, acceptance 4): each fault at each call of the phase, each with the right end. On the twin of
//! the demo company, whose own promises (foreign records untouched, no name without an answer, one writer) are watched all the time.

use async_trait::async_trait;
use crossfade::engine::{Engine, Options, Outcome, silent};
use crossfade::journal::Journal;
use crossfade::object::{ObjectId, Side};
use crossfade::plan::model::{Phase, Plan};
use crossfade::world::dns::{Change, Dns, RecordSet, Zone};
use crossfade::world::twin::{self, Fault, Twin};
use crossfade::world::{Result as WorldResult, World};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

#[derive(Clone)]
struct Company {
    twin: Twin,
    plan: Arc<Plan>,
    journal: Arc<Journal>,
}

impl Company {
    fn new() -> Company {
        let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("plans/demo");
        let spec = crossfade::spec::load(&demo.join("migration.yaml")).unwrap();
        let snapshot = crossfade::snapshot::store::read(&demo.join("snapshot")).unwrap();
        Company {
            plan: Arc::new(crossfade::plan::plan(&spec, &snapshot)),
            twin: Twin::new(&snapshot, &spec, twin::Options::default()),
            journal: Arc::new(Journal::memory()),
        }
    }
    /// The company with all done that comes before the cutover.
    async fn before_the_cutover() -> Company {
        let company = Company::new();
        company.forward(Some(Phase::Data)).await;
        company
    }
    /// The same moment once more: another world, another process.
    fn again(&self) -> Company {
        Company {
            twin: self.twin.fork(),
            plan: self.plan.clone(),
            journal: Arc::new(Journal::restart(self.journal.entries()).unwrap()),
        }
    }
    fn engine_on(&self, world: World) -> Engine {
        Engine::new(
            world,
            self.plan.clone(),
            self.journal.clone(),
            crossfade::step::registry(),
            silent(),
        )
        .options(Options {
            check_drift: false,
            ..Options::default()
        })
    }
    fn engine(&self) -> Engine {
        self.engine_on(self.twin.world())
    }
    async fn forward(&self, to: Option<Phase>) {
        let outcome = self.engine().forward(to).await.unwrap();
        assert_eq!(outcome.name(), "migrated", "{outcome:?}");
    }
    /// The same; the look at the pins before the first step ends a run at once, which is then started again.
    async fn forward_again(&self, what: &str) {
        let outcome = match self.engine().forward(Some(Phase::Cutover)).await {
            Ok(outcome) => outcome,
            Err(e) => {
                assert_eq!(e.kind, crossfade::error::Kind::Unreachable, "{what}: {e}");
                self.engine().forward(Some(Phase::Cutover)).await.unwrap()
            }
        };
        assert_eq!(outcome.name(), "migrated", "{what}: {outcome:?}");
    }
    fn zone_id(&self) -> String {
        self.plan.names[0].zone_id.clone()
    }
    async fn zone(&self) -> Vec<RecordSet> {
        self.twin
            .world()
            .dns
            .records(&self.zone_id())
            .await
            .unwrap()
    }
    async fn record(&self, host: &str, rtype: &str) -> Option<RecordSet> {
        self.zone()
            .await
            .into_iter()
            .find(|r| r.name == format!("{host}.") && r.rtype == rtype)
    }
    fn promises(&self, what: &str) {
        assert_eq!(self.twin.violations(), Vec::<String>::new(), "{what}");
    }
}

/// Calls of the cutover, its end, and the zone before and after.
async fn undisturbed(start: &Company) -> (Vec<twin::CallRecord>, Vec<RecordSet>, Vec<RecordSet>) {
    let company = start.again();
    let before = company.zone().await;
    let first = company.twin.call_count();
    company.forward(Some(Phase::Cutover)).await;
    let calls = company
        .twin
        .calls()
        .into_iter()
        .skip(first as usize)
        .collect();
    let after = company.zone().await;
    company.promises("undisturbed");
    assert_ne!(before, after);
    (calls, before, after)
}

/// What stands in the zone but the identity of change order: records by key.
fn sorted(mut records: Vec<RecordSet>) -> Vec<RecordSet> {
    records.sort_by_key(RecordSet::key);
    records
}

#[tokio::test(start_paused = true)]
async fn dns_rule_15_any_call_of_the_cutover_may_fail_and_the_end_is_the_same() {
    let start = Company::before_the_cutover().await;
    let (calls, before, after) = undisturbed(&start).await;
    assert!(
        calls
            .iter()
            .filter(|c| c.what.starts_with("dns change"))
            .count()
            >= 3,
        "waves are batches"
    );
    let mut tried = 0;
    for (n, call) in calls.iter().enumerate() {
        // Every call on the zone, and every seventh of the others.
        if !call.what.starts_with("dns ") && n % 7 != 0 {
            continue;
        }
        for fault in [Fault::LostReply, Fault::NoConnection, Fault::Throttle] {
            let company = start.again();
            company
                .twin
                .fail_call(company.twin.call_count() + n as u64, fault);
            let what = format!("call {n} ({}) {fault:?}", call.what);
            company.forward_again(&what).await;
            assert_eq!(
                sorted(company.zone().await),
                sorted(after.clone()),
                "{what}"
            );
            company.promises(&what);
            if call.what.starts_with("dns change") {
                let outcome = company.engine().rollback(Some(Phase::Data)).await.unwrap();
                assert_eq!(outcome.name(), "restored", "{what}: {outcome:?}");
                assert_eq!(
                    sorted(company.zone().await),
                    sorted(before.clone()),
                    "{what}, and back"
                );
            }
            tried += 1;
        }
    }
    assert!(tried > 60, "{tried}");
}

#[tokio::test(start_paused = true)]
async fn dns_rule_15_a_crash_between_any_two_calls_on_the_zone_then_resume_or_rollback() {
    let start = Company::before_the_cutover().await;
    let (calls, before, after) = undisturbed(&start).await;
    for (n, call) in calls.iter().enumerate() {
        if !call.what.starts_with("dns ") {
            continue;
        }
        for (fault, back) in [
            (Fault::HangBefore, false),
            (Fault::HangAfter, false),
            (Fault::HangBefore, true),
            (Fault::HangAfter, true),
        ] {
            let company = start.again();
            company
                .twin
                .fail_call(company.twin.call_count() + n as u64, fault);
            let engine = company.engine();
            tokio::select! {
                outcome = engine.forward(Some(Phase::Cutover)) => panic!("{outcome:?}"),
                () = company.twin.hung() => {}
            }
            drop(engine);
            let next = Company {
                twin: company.twin.clone(),
                plan: company.plan.clone(),
                journal: Arc::new(Journal::restart(company.journal.entries()).unwrap()),
            };
            let what = format!("call {n} ({}) {fault:?} back={back}", call.what);
            if back {
                let outcome = next.engine().rollback(Some(Phase::Data)).await.unwrap();
                assert_eq!(outcome.name(), "restored", "{what}: {outcome:?}");
                assert_eq!(sorted(next.zone().await), sorted(before.clone()), "{what}");
            } else {
                next.forward(Some(Phase::Cutover)).await;
                assert_eq!(sorted(next.zone().await), sorted(after.clone()), "{what}");
            }
            next.promises(&what);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn dns_trap_25_a_throttling_storm_in_the_middle_of_the_handover_passes() {
    let start = Company::before_the_cutover().await;
    let (_, _, after) = undisturbed(&start).await;
    for part in ["dns change", "dns records", "dns in-sync"] {
        let company = start.again();
        company.twin.fail_matching(part, 6, Fault::Throttle);
        company.forward(Some(Phase::Cutover)).await;
        assert_eq!(
            sorted(company.zone().await),
            sorted(after.clone()),
            "{part}"
        );
        company.promises(part);
    }
    // One that does not pass stops the run, which goes on later as if nothing had been.
    let company = start.again();
    company
        .twin
        .fail_matching("dns change", 1000, Fault::Throttle);
    let outcome = company
        .engine()
        .forward(Some(Phase::Cutover))
        .await
        .unwrap();
    assert!(
        matches!(&outcome, Outcome::Stopped { step, .. } if step.starts_with("cutover/handover/")),
        "{outcome:?}"
    );
    company.twin.clear_faults();
    company.forward(Some(Phase::Cutover)).await;
    assert_eq!(sorted(company.zone().await), sorted(after));
    company.promises("after the storm");
}

/// What somebody does before the n-th call.
type Before = (usize, Box<dyn FnOnce() + Send>);

/// Route 53 with somebody who acts right before the n-th batch of ours.
struct Meddled {
    inner: Arc<dyn Dns>,
    before: Mutex<Option<Before>>,
}

#[async_trait]
impl Dns for Meddled {
    async fn zones(&self) -> WorldResult<Vec<Zone>> {
        self.inner.zones().await
    }
    async fn records(&self, zone_id: &str) -> WorldResult<Vec<RecordSet>> {
        self.inner.records(zone_id).await
    }
    async fn change(
        &self,
        zone_id: &str,
        changes: &[Change],
        comment: &str,
    ) -> WorldResult<String> {
        let act = {
            let mut before = self.before.lock().unwrap();
            match before.as_mut() {
                Some((0, _)) => before.take().map(|(_, act)| act),
                Some((n, _)) => {
                    *n -= 1;
                    None
                }
                None => None,
            }
        };
        if let Some(act) = act {
            act();
        }
        self.inner.change(zone_id, changes, comment).await
    }
    async fn in_sync(&self, change_id: &str) -> WorldResult<bool> {
        self.inner.in_sync(change_id).await
    }
}

fn meddled(company: &Company, batch: usize, act: impl FnOnce() + Send + 'static) -> World {
    let mut world = company.twin.world();
    world.dns = Arc::new(Meddled {
        inner: world.dns.clone(),
        before: Mutex::new(Some((batch, Box::new(act)))),
    });
    world
}

#[tokio::test(start_paused = true)]
async fn dns_rule_15_a_foreign_edit_between_read_and_write_is_seen_and_only_that_name_waits() {
    let start = Company::before_the_cutover().await;
    let waves: BTreeSet<u32> = start.plan.names.iter().map(|n| n.wave).collect();
    for name in start
        .plan
        .names
        .iter()
        .filter(|n| n.wave > 0 && n.ttl.is_some())
    {
        let batch = waves.iter().position(|w| *w == name.wave).unwrap();
        let company = start.again();
        let (twin, zone) = (company.twin.clone(), name.zone_id.clone());
        let old = company.record(&name.host, &name.rtype).await.unwrap();
        let edited = RecordSet {
            values: vec!["192.0.2.99".into()],
            ..old.clone()
        };
        let change = [Change::Delete(old.clone()), Change::Create(edited.clone())];
        let world = meddled(&company, batch, move || {
            twin.somebody_changes_records(&zone, &change).unwrap();
        });
        let outcome = company
            .engine_on(world)
            .forward(Some(Phase::Cutover))
            .await
            .unwrap();
        // The edit is never written over blindly: it is seen, the others go on, and the last step of the phase takes the name up as it is now.
        assert_eq!(outcome.name(), "migrated", "{}: {outcome:?}", name.host);
        let entries = format!("{:?}", company.journal.entries());
        assert!(
            entries.contains("changed by somebody since it was read"),
            "{}: the journal says so",
            name.host
        );
        assert!(entries.contains("192.0.2.99"), "with what was found");
        // And the way back gives the edit back, not what was there before it.
        let outcome = company.engine().rollback(Some(Phase::Data)).await.unwrap();
        assert_eq!(outcome.name(), "restored", "{}: {outcome:?}", name.host);
        assert_eq!(
            company.record(&name.host, &name.rtype).await,
            Some(edited),
            "{}",
            name.host
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_is_refused_for_one_name_holds_only_that_name_and_the_run_stops_before_green_takes_over()
 {
    let start = Company::before_the_cutover().await;
    let (_, before, after) = undisturbed(&start).await;
    for name in start.plan.names.iter().filter(|n| n.wave > 0) {
        let company = start.again();
        // Another team's TXT where green's ownership has to stand: Route 53 refuses the batch for that name.
        let word = if name.ttl.is_none() { "cname" } else { "a" };
        let stone = RecordSet {
            name: format!("{word}-{}.", name.host),
            rtype: "TXT".into(),
            ttl: Some(300),
            values: vec!["\"heritage=external-dns,external-dns/owner=other-team,external-dns/resource=ingress/x/y\"".into()],
            alias: None,
            set_identifier: None,
            routing: Default::default(),
        };
        let zone = name.zone_id.clone();
        company
            .twin
            .somebody_changes_records(&zone, &[Change::Create(stone.clone())])
            .unwrap();
        let outcome = company
            .engine()
            .forward(Some(Phase::Cutover))
            .await
            .unwrap();
        let Outcome::Stopped { step, why, .. } = &outcome else {
            panic!("{}: {outcome:?}", name.host);
        };
        assert!(step.starts_with("cutover/handover/held/"), "{step}");
        assert!(
            why.contains(&name.host) && why.contains("already exists"),
            "{why}"
        );
        // All others are on green, this one is on blue as it was, and green's ExternalDNS does not run yet.
        for r in &after {
            let of_name = r
                .name
                .trim_end_matches('.')
                .trim_start_matches("cname-")
                .trim_start_matches("a-")
                == name.host;
            if !of_name {
                assert!(company.zone().await.contains(r), "{}: {r:?}", name.host);
            }
        }
        let kept = before
            .iter()
            .find(|r| r.name == format!("{}.", name.host) && r.rtype == name.rtype);
        assert_eq!(company.record(&name.host, &name.rtype).await.as_ref(), kept);
        assert!(company.zone().await.contains(&stone), "the other team's");
        // The stone is taken away, the run goes on.
        company
            .twin
            .somebody_changes_records(&zone, &[Change::Delete(stone.clone())])
            .unwrap();
        company.forward(Some(Phase::Cutover)).await;
        assert_eq!(
            sorted(company.zone().await),
            sorted(after.clone()),
            "{}",
            name.host
        );
        company.promises(&name.host);
    }
    // Or back from there, with the stone still in the way.
    let company = start.again();
    let name = start
        .plan
        .names
        .iter()
        .find(|n| n.wave > 0 && n.ttl.is_some())
        .unwrap();
    let stone = RecordSet {
        name: format!("a-{}.", name.host),
        rtype: "TXT".into(),
        ttl: Some(300),
        values: vec!["\"heritage=external-dns,external-dns/owner=other-team,external-dns/resource=ingress/x/y\"".into()],
        alias: None,
        set_identifier: None,
        routing: Default::default(),
    };
    company
        .twin
        .somebody_changes_records(&name.zone_id, &[Change::Create(stone.clone())])
        .unwrap();
    let outcome = company
        .engine()
        .forward(Some(Phase::Cutover))
        .await
        .unwrap();
    assert_eq!(outcome.name(), "stopped");
    let outcome = company.engine().rollback(Some(Phase::Data)).await.unwrap();
    assert_eq!(outcome.name(), "restored", "{outcome:?}");
    let mut with = before.clone();
    with.push(stone);
    assert_eq!(sorted(company.zone().await), sorted(with));
}

#[tokio::test(start_paused = true)]
async fn dns_rule_10_a_name_whose_load_balancer_on_green_is_gone_waits_alone_and_says_so() {
    let start = Company::before_the_cutover().await;
    let (_, _, after) = undisturbed(&start).await;
    let name = start
        .plan
        .names
        .iter()
        .find(|n| n.wave > 0 && n.object.starts_with("service/"))
        .unwrap();
    let company = start.again();
    let mut parts = name.object.split('/').skip(1);
    let id = ObjectId::new("v1", "Service", parts.next(), parts.next().unwrap());
    let there = company.twin.world().green.get(&id).await.unwrap().unwrap();
    let hostname = there["status"]["loadBalancer"].clone();
    company.twin.somebody_merges(Side::Green, &id, &json!({"metadata": {"annotations": {"external-dns.alpha.kubernetes.io/hostname": "elsewhere.shop.test"}}})).unwrap();
    let outcome = company
        .engine()
        .forward(Some(Phase::Cutover))
        .await
        .unwrap();
    let Outcome::Stopped { step, why, .. } = &outcome else {
        panic!("{outcome:?}")
    };
    assert!(step.starts_with("cutover/handover/held/"), "{step}: {why}");
    assert!(
        why.contains(&name.host) && why.contains("no load balancer address, or lost the host"),
        "{why}"
    );
    assert!(!hostname.is_null());
    let notes =
        there["metadata"]["annotations"]["external-dns.alpha.kubernetes.io/hostname"].clone();
    company.twin.somebody_merges(Side::Green, &id, &json!({"metadata": {"annotations": {"external-dns.alpha.kubernetes.io/hostname": notes}}})).unwrap();
    company.forward(Some(Phase::Cutover)).await;
    assert_eq!(sorted(company.zone().await), sorted(after));
}

#[tokio::test(start_paused = true)]
async fn dns_rule_06_a_writer_that_goes_on_after_blues_externaldns_was_stopped_fails_the_phase() {
    let start = Company::before_the_cutover().await;
    let company = start.again();
    let name = start
        .plan
        .names
        .iter()
        .find(|n| n.ttl.is_some())
        .unwrap()
        .clone();
    let engine = company.engine();
    let (twin, other) = (company.twin.clone(), name.clone());
    let writer = async move {
        for n in 0u32.. {
            tokio::time::sleep(std::time::Duration::from_secs(2)).await;
            let zone = twin.world().dns.records(&other.zone_id).await.unwrap();
            let old = zone
                .into_iter()
                .find(|r| r.name == format!("{}.", other.host) && r.rtype == other.rtype)
                .unwrap();
            let new = RecordSet {
                ttl: Some(10 + n % 2),
                ..old.clone()
            };
            let _ = twin.somebody_changes_records(
                &other.zone_id,
                &[Change::Delete(old), Change::Create(new)],
            );
        }
    };
    let outcome = tokio::select! {
        outcome = engine.forward(Some(Phase::Cutover)) => outcome.unwrap(),
        () = writer => unreachable!(),
    };
    let Outcome::Stopped { step, why, .. } = &outcome else {
        panic!("{outcome:?}")
    };
    assert!(step.starts_with("cutover/stop/"), "{step}");
    assert!(
        why.contains("somebody else writes them") && why.contains(&name.host),
        "{why}"
    );
}

#[tokio::test(start_paused = true)]
async fn dns_rule_06_what_other_teams_write_in_the_zone_does_not_stop_the_cutover() {
    let start = Company::before_the_cutover().await;
    let company = start.again();
    let zone = start.zone_id();
    let engine = company.engine();
    let twin = company.twin.clone();
    let challenge = |n: u32| RecordSet {
        name: "_acme-challenge.mail.shop.test.".into(),
        rtype: "TXT".into(),
        ttl: Some(60),
        values: vec![format!("\"token-{n}\"")],
        alias: None,
        set_identifier: None,
        routing: Default::default(),
    };
    let solver = async move {
        for n in 0u32.. {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            let _ = twin.somebody_changes_records(&zone, &[Change::Upsert(challenge(n))]);
        }
    };
    let outcome = tokio::select! {
        outcome = engine.forward(Some(Phase::Cutover)) => outcome.unwrap(),
        () = solver => unreachable!(),
    };
    assert_eq!(outcome.name(), "migrated", "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn dns_trap_22_a_blue_that_somebody_starts_again_between_two_waves_stops_the_run_and_can_do_no_harm()
 {
    let start = Company::before_the_cutover().await;
    let (_, before, _) = undisturbed(&start).await;
    let stop = start
        .plan
        .steps
        .iter()
        .find(|s| s.kind == "edns.stop")
        .unwrap();
    let mut parts = stop.params["object"].as_str().unwrap().split('/').skip(1);
    let id = ObjectId::new("apps/v1", "Deployment", parts.next(), parts.next().unwrap());
    let company = start.again();
    let twin = company.twin.clone();
    let of = id.clone();
    // Right before the canary's batch: kops's add-on manager puts the replica back.
    let world = meddled(&company, 0, move || {
        twin.somebody_merges(Side::Blue, &of, &json!({"spec": {"replicas": 1}}))
            .unwrap();
    });
    let outcome = company
        .engine_on(world)
        .forward(Some(Phase::Cutover))
        .await
        .unwrap();
    let Outcome::Stopped { why, .. } = &outcome else {
        panic!("{outcome:?}")
    };
    assert!(why.contains("started again by somebody"), "{why}");
    // It runs, and plans nothing on the canary, whose every TXT is green's (rule 7).
    let zone = company.zone().await;
    tokio::time::sleep(std::time::Duration::from_secs(600)).await;
    assert_eq!(company.zone().await, zone);
    company
        .twin
        .somebody_merges(Side::Blue, &id, &json!({"spec": {"replicas": 0}}))
        .unwrap();
    company.forward(Some(Phase::Cutover)).await;
    let outcome = company.engine().rollback(Some(Phase::Data)).await.unwrap();
    assert_eq!(outcome.name(), "restored", "{outcome:?}");
    assert_eq!(sorted(company.zone().await), sorted(before));
}

#[tokio::test(start_paused = true)]
async fn dns_rule_14_any_wave_comes_back_without_blues_externaldns_also_after_greens_added_variants()
 {
    let start = Company::before_the_cutover().await;
    let before = start.zone().await;
    let company = start.again();
    company.forward(Some(Phase::Cutover)).await;
    // Somebody lets green's ExternalDNS manage AAAA: it adds records and TXTs of its own.
    let at = start
        .plan
        .steps
        .iter()
        .find(|s| s.kind == "edns.start")
        .unwrap();
    let mut parts = at.params["object"].as_str().unwrap().split('/').skip(1);
    let id = ObjectId::new("apps/v1", "Deployment", parts.next(), parts.next().unwrap());
    let mut d = company.twin.world().green.get(&id).await.unwrap().unwrap();
    let args: Vec<String> =
        serde_json::from_value(d["spec"]["template"]["spec"]["containers"][0]["args"].clone())
            .unwrap();
    let mut args: Vec<String> = args
        .into_iter()
        .filter(|a| !a.starts_with("--exclude-record-types"))
        .collect();
    args.push("--managed-record-types=AAAA".into());
    d["spec"]["template"]["spec"]["containers"][0]["args"] = json!(args);
    let containers = d["spec"]["template"]["spec"]["containers"].clone();
    company
        .twin
        .somebody_merges(
            Side::Green,
            &id,
            &json!({"spec": {"template": {"spec": {"containers": containers}}}}),
        )
        .unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(300)).await;
    assert!(
        company.zone().await.iter().any(|r| r.rtype == "AAAA"),
        "{:?}",
        company.twin.external_dns_log()
    );
    // Blue's ExternalDNS cannot be started any more: its image is gone.
    let stop = start
        .plan
        .steps
        .iter()
        .find(|s| s.kind == "edns.stop")
        .unwrap();
    let calls_blue = company.twin.blue_writes().len();
    let outcome = company.engine().rollback(Some(Phase::Data)).await.unwrap();
    assert_eq!(outcome.name(), "restored", "{outcome:?}");
    assert_eq!(sorted(company.zone().await), sorted(before));
    // It was started last, when every record was back already: of blue only that one write.
    let writes: Vec<String> = company.twin.blue_writes()[calls_blue..]
        .iter()
        .map(|w| w.object.clone())
        .collect();
    assert!(
        writes.iter().all(|o| stop.params["object"] == o.as_str()),
        "{writes:?}"
    );
    company.promises("back");
}
