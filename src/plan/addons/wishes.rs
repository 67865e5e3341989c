//! What migration.yaml says of add-ons, and which versions EKS offers.

use super::{Addons, problem};
use crate::plan::iam::Problem;
use crate::plan::model::{Severity, TargetAddon};
use crate::snapshot::model::Snapshot;
use crate::spec::model::{AddonWish, Spec};
use crate::world::cloud::AddonOffers;
use serde_json::Value;

/// Applies the wishes, adds add-ons that only migration.yaml names, and pins versions: a plan that is approved says which.
pub(super) fn apply(spec: &Spec, snapshot: &Snapshot, out: &mut Addons) {
    for (name, wish) in &spec.green.addons {
        if !out.addons.iter().any(|a| a.name == *name) {
            out.addons.push(TargetAddon {
                name: name.clone(),
                ..TargetAddon::default()
            });
        }
        for addon in out.addons.iter_mut().filter(|a| a.name == *name) {
            wished(addon, wish);
        }
    }
    let offers = snapshot
        .aws
        .as_ref()
        .and_then(|a| a.addon_offers.as_ref())
        .filter(|o| o.kubernetes == spec.green.version);
    let Some(offers) = offers else {
        return;
    };
    for addon in &mut out.addons {
        pinned(addon, offers, spec, &mut out.problems);
    }
}

fn wished(addon: &mut TargetAddon, wish: &AddonWish) {
    if wish.version.is_some() {
        addon.version.clone_from(&wish.version);
    }
    if let Some(c) = wish.conflicts {
        addon.conflicts = Some(c.word().into());
    }
    if let Some(settings) = &wish.configuration {
        let mut all = addon.configuration.take().unwrap_or(Value::Null);
        merge(&mut all, settings);
        addon.configuration = Some(all).filter(|v| !v.is_null());
    }
}

/// Field by field; a list or a plain value replaces what was there.
fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(a), Value::Object(b)) => {
            for (k, v) in b {
                merge(a.entry(k.clone()).or_insert(Value::Null), v);
            }
        }
        (a, b) => *a = b.clone(),
    }
}

fn pinned(addon: &mut TargetAddon, offers: &AddonOffers, spec: &Spec, problems: &mut Vec<Problem>) {
    let object = format!("addon/{}", addon.name);
    let kubernetes = &offers.kubernetes;
    let Some(offer) = offers.addons.get(&addon.name) else {
        problems.push(problem(
            Severity::Blocker,
            &object,
            format!("EKS does not offer it for {kubernetes} in this region"),
            "Take it out of green.addons, install its chart yourself, or choose another version of green.",
        ));
        return;
    };
    match &addon.version {
        None => {
            addon.version = offer
                .default
                .clone()
                .or_else(|| offer.versions.first().cloned())
        }
        Some(v) if !offer.versions.contains(v) => {
            let newest: Vec<&str> = offer.versions.iter().take(3).map(String::as_str).collect();
            problems.push(problem(
                Severity::Blocker,
                &object,
                format!(
                    "EKS does not offer {v} for {kubernetes}; it offers {} and older ones",
                    newest.join(", ")
                ),
                "Correct green.addons, or leave the version to EKS.",
            ));
        }
        Some(_) => {}
    }
    let alone = addon.role.is_none() && spec.green.addons.contains_key(&addon.name);
    if offer.needs_role && alone {
        problems.push(problem(
            Severity::Warning,
            &object,
            "its pods call AWS, and crossfade gives them no role".into(),
            "Give its service account a role under green.roles.",
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::cloud::AddonOffer;
    use serde_json::json;

    #[test]
    fn settings_of_migration_yaml_go_over_those_of_blue_field_by_field() {
        let mut a =
            json!({"env": {"WARM_IP_TARGET": "2", "MINIMUM_IP_TARGET": "10"}, "list": [1, 2]});
        merge(
            &mut a,
            &json!({"env": {"WARM_IP_TARGET": "5"}, "list": [3]}),
        );
        assert_eq!(
            a,
            json!({"env": {"WARM_IP_TARGET": "5", "MINIMUM_IP_TARGET": "10"}, "list": [3]})
        );
        let mut none = Value::Null;
        merge(&mut none, &json!({"replicaCount": 3}));
        assert_eq!(none, json!({"replicaCount": 3}));
    }

    fn plan(wish: Value, offers: AddonOffers) -> Addons {
        let spec: Spec = serde_json::from_value(json!({"apiVersion": "crossfade.dev/v1alpha1", "kind": "Migration", "name": "shop",
            "blue": {"cluster": "shop.test"}, "green": {"name": "shop-green", "version": "1.35", "addons": wish}}))
        .unwrap();
        let snapshot = Snapshot {
            aws: Some(crate::world::cloud::Inventory {
                addon_offers: Some(offers),
                ..Default::default()
            }),
            ..Snapshot::default()
        };
        let mut out = Addons {
            addons: vec![TargetAddon {
                name: "coredns".into(),
                ..TargetAddon::default()
            }],
            ..Addons::default()
        };
        apply(&spec, &snapshot, &mut out);
        out
    }

    fn offers(kubernetes: &str) -> AddonOffers {
        let offer = |default: &str, all: &[&str], needs_role: bool| AddonOffer {
            default: Some(default.into()),
            versions: all.iter().map(|v| v.to_string()).collect(),
            needs_role,
        };
        AddonOffers {
            kubernetes: kubernetes.into(),
            addons: [
                (
                    "coredns".to_string(),
                    offer("v1.12", &["v1.13", "v1.12"], false),
                ),
                ("adot".to_string(), offer("v0.1", &["v0.1"], true)),
            ]
            .into(),
        }
    }

    #[test]
    fn an_approved_plan_says_which_version_and_it_is_ekss_default() {
        let p = plan(json!({}), offers("1.35"));
        assert_eq!(
            p.addons[0].version.as_deref(),
            Some("v1.12"),
            "not the newest"
        );
        assert!(p.problems.is_empty(), "{:?}", p.problems);
        let other = plan(json!({}), offers("1.34"));
        assert_eq!(
            other.addons[0].version, None,
            "what was read for another version of Kubernetes says nothing"
        );
    }

    #[test]
    fn a_version_that_eks_does_not_offer_stops_the_plan_and_names_those_it_does() {
        let p = plan(json!({"coredns": {"version": "v9"}}), offers("1.35"));
        assert_eq!(p.problems[0].severity, Severity::Blocker);
        assert!(
            p.problems[0].message.contains("v1.13, v1.12"),
            "{:?}",
            p.problems
        );
        let p = plan(json!({"nothing": {}}), offers("1.35"));
        assert!(p.problems[0].message.contains("does not offer it"));
    }

    #[test]
    fn an_addon_that_only_migration_yaml_names_is_installed_and_told_to_need_a_role() {
        let p = plan(json!({"adot": {"conflicts": "none"}}), offers("1.35"));
        let adot = p.addons.iter().find(|a| a.name == "adot").unwrap();
        assert_eq!(adot.conflicts.as_deref(), Some("NONE"));
        assert_eq!(adot.version.as_deref(), Some("v0.1"));
        assert!(
            p.problems
                .iter()
                .any(|x| x.object == "addon/adot" && x.message.contains("no role"))
        );
    }
}
