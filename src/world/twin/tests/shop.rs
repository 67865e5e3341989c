//! The first company, from the same files that the bench loads into real servers.

use super::company::{pass, spec};
use crate::object::Side;
use crate::snapshot::files::from_files;
use crate::snapshot::mask::Key;
use crate::snapshot::model::Snapshot;
use crate::world::observe::{diff, observable};
use crate::world::twin::{Options, Twin};
use std::path::Path;
use std::time::Duration;

fn key() -> Key {
    Key::from_bytes([3; 32])
}

/// The fixture as the company wrote it: no status, no records of its ExternalDNS.
fn written() -> Snapshot {
    let shop = Path::new(env!("CARGO_MANIFEST_DIR")).join("testkit/fixtures/shop");
    let paths = ["kops/get-all.yaml", "kops/state/shop.test/addons", "blue", "nodes.yaml", "aws", "zone.json"]
        .map(|p| shop.join(p))
        .to_vec();
    let mut read = from_files(&paths, None, &key()).expect("the fixture can be read");
    // Two files of the fixture are parts of one zone.
    let parts: Vec<_> = read.snapshot.zones.drain(..).collect();
    let mut one = parts[0].clone();
    one.zone.id = "ZSHOP".into();
    for p in &parts[1..] {
        one.records.extend(p.records.iter().filter(|r| !parts[0].records.contains(r)).cloned());
    }
    read.snapshot.zones = vec![one];
    read.snapshot
}

fn settled(snapshot: &Snapshot, warm_up: u64) -> Twin {
    Twin::new(
        snapshot,
        &spec(),
        Options {
            warm_up: Duration::from_secs(warm_up),
            ..Options::default()
        },
    )
}

#[tokio::test(start_paused = true)]
async fn shop_serves_its_six_names_and_rests() {
    let t = settled(&written(), 120);
    let names: Vec<String> = t.traffic().hosts;
    assert_eq!(
        names,
        ["gateway", "m", "orders", "pay", "status", "www"].map(|n| format!("{n}.shop.test")),
        "{:?}",
        t.external_dns_log()
    );
    let began = t.external_dns_log().len();
    pass(3600).await;
    assert_eq!(t.external_dns_log().len(), began, "{:?}", t.external_dns_log());
    assert_eq!(t.violations(), Vec::<String>::new());
    assert!(t.traffic().acknowledged > 100);
}

#[tokio::test(start_paused = true)]
async fn what_is_discovered_of_a_twin_makes_the_same_company_again() {
    let first = settled(&written(), 120);
    let world = first.world();
    let mut discovered = crate::snapshot::discover::live(&world, &spec(), Ok(written().kops), &key())
        .await
        .expect("reads");
    assert!(discovered.green.is_none());
    discovered.zones.sort_by(|a, b| a.zone.id.cmp(&b.zone.id));
    let second = settled(&discovered, 0);
    let (zones, sets) = (vec!["ZSHOP".to_owned()], vec!["orders".to_owned()]);
    let a = observable(&world, &zones, &sets).await.unwrap();
    let b = observable(&second.world(), &zones, &sets).await.unwrap();
    let d = diff(&a, &b);
    // A masked secret is masked again with the same key only if its values were read in clear.
    let d: Vec<_> = d.into_iter().filter(|l| !l.contains("> secret/")).collect();
    assert_eq!(d, Vec::<String>::new());
    pass(600).await;
    assert_eq!(second.external_dns_log(), Vec::<String>::new());
    assert_eq!(second.violations(), Vec::<String>::new());
    assert_eq!(
        world.kube(Side::Blue).identity().await.unwrap(),
        second.world().blue.identity().await.unwrap()
    );
}
