//! The observable state: equal when the same was done, and different where something differs.

use super::company::*;
use crate::world::observe::{diff, observable};
use crate::world::twin::{Options, Twin};
use serde_json::json;

fn args() -> (Vec<String>, Vec<String>) {
    (vec![ZONE.to_owned()], vec!["orders".to_owned()])
}

#[tokio::test(start_paused = true)]
async fn waiting_changes_nothing_and_two_worlds_with_other_seeds_look_the_same() {
    let (zones, sets) = args();
    let (_, w) = company();
    let before = observable(&w, &zones, &sets).await.unwrap();
    pass(3600).await;
    assert_eq!(
        diff(&before, &observable(&w, &zones, &sets).await.unwrap()),
        Vec::<String>::new()
    );
    let other = Twin::new(
        &snapshot(),
        &spec(),
        Options {
            seed: 77,
            ..Options::default()
        },
    )
    .world();
    assert_eq!(
        diff(&before, &observable(&other, &zones, &sets).await.unwrap()),
        Vec::<String>::new()
    );
    assert_eq!(before["green"], json!({}));
    assert_eq!(before["data"]["orders"]["blue"], json!({"writable": true}));
}

#[tokio::test(start_paused = true)]
async fn replicas_records_and_what_green_has_are_seen_by_name() {
    let (zones, sets) = args();
    let (_, w) = company();
    let before = observable(&w, &zones, &sets).await.unwrap();
    scale(w.blue.as_ref(), "storefront", "web", 1).await;
    green_up(&w).await;
    green_workloads(&w).await;
    let d = diff(&before, &observable(&w, &zones, &sets).await.unwrap());
    assert!(
        d.contains(&"blue > deployment/storefront/web > spec > replicas: 3 -> 1".to_owned()),
        "{d:#?}"
    );
    assert!(
        d.iter()
            .any(|l| l.starts_with("green > deployment/storefront/web: absent ->")),
        "{d:#?}"
    );
    assert!(
        d.iter()
            .any(|l| l.starts_with("cloud > clusters > shop-green: absent ->")),
        "{d:#?}"
    );
    assert!(!d.iter().any(|l| l.contains("zones")), "{d:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_load_balancers_made_up_name_does_not_count_but_whose_it_is_does() {
    let (zones, sets) = args();
    let (_, w) = company();
    let o = observable(&w, &zones, &sets).await.unwrap();
    let orders = o["zones"][ZONE]
        .as_array()
        .unwrap()
        .iter()
        .find(|r| r["name"] == "orders.shop.test.")
        .unwrap();
    assert_eq!(
        orders["alias"]["name"],
        "<load balancer of blue service/orders/orders>"
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_server_fills_in_does_not_count_and_what_a_person_chose_does() {
    let (zones, sets) = args();
    let plain = snapshot();
    let mut filled = snapshot();
    for o in &mut filled.blue.objects {
        if o["kind"] == "Deployment" {
            o["spec"]["progressDeadlineSeconds"] = json!(600);
            o["spec"]["template"]["spec"]["dnsPolicy"] = json!("ClusterFirst");
            o["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"] =
                json!("IfNotPresent");
            if o["metadata"]["name"] == "web" {
                o["spec"]["strategy"] = json!({"type":"RollingUpdate","rollingUpdate":{"maxSurge":"25%","maxUnavailable":"25%"}});
            }
        }
    }
    let a = observable(&of(&plain).1, &zones, &sets).await.unwrap();
    let b = observable(&of(&filled).1, &zones, &sets).await.unwrap();
    assert_eq!(diff(&a, &b), Vec::<String>::new());
    for o in &mut filled.blue.objects {
        if o["metadata"]["name"] == "web" && o["kind"] == "Deployment" {
            o["spec"]["template"]["spec"]["dnsPolicy"] = json!("Default");
        }
    }
    let c = observable(&of(&filled).1, &zones, &sets).await.unwrap();
    assert_eq!(
        diff(&a, &c),
        [
            "blue > deployment/storefront/web > spec > template > spec > dnsPolicy: absent -> \"Default\""
        ]
    );
}
