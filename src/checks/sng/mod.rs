//! SNG: what must never run twice.

mod sng_01;
mod sng_02;
mod sng_03;
mod sng_04;
mod sng_05;
mod sng_06;
mod sng_07;
mod sng_08;
#[cfg(test)]
mod tests;

use super::{BlueObject, Check, Input};
use crate::object::annotation;
use crate::rewrite::SINGLETON;
use serde_json::Value;

/// The family.
pub(super) const ALL: &[Check] = &[
    sng_01::CHECK,
    sng_02::CHECK,
    sng_03::CHECK,
    sng_04::CHECK,
    sng_05::CHECK,
    sng_06::CHECK,
    sng_07::CHECK,
    sng_08::CHECK,
];

/// Whether somebody has said that never two of it may run.
fn declared(i: &Input, o: &BlueObject) -> bool {
    annotation(o.object, SINGLETON) == Some("true") || i.spec.workloads.singletons.contains(&o.name)
}

/// Workloads that wake at unpark because nobody has said whether two of them may run. kube-system is left to add-ons, and ExternalDNS is
/// handed over by steps of its own.
fn undeclared<'i>(i: &'i Input<'_>) -> impl Iterator<Item = &'i BlueObject<'i>> {
    i.moving(&["Deployment", "StatefulSet"]).filter(move |o| {
        o.id.namespace.as_deref() != Some("kube-system")
            && annotation(o.object, SINGLETON).is_none()
            && !i.spec.workloads.singletons.contains(&o.name)
            && !i.instances.iter().any(|(x, _)| *x == o.name)
            && o.replicas() > 0
    })
}

/// Its name, and the commands and arguments of its containers, in lower case.
fn words(o: &BlueObject) -> Vec<String> {
    o.containers(false)
        .flat_map(|c| {
            ["command", "args"]
                .into_iter()
                .filter_map(|k| c.get(k)?.as_array())
                .flatten()
        })
        .filter_map(Value::as_str)
        .chain([o.id.name.as_str()])
        .map(str::to_lowercase)
        .collect()
}

/// Whether a new pod only starts when the old one is gone.
fn recreated(o: &BlueObject) -> bool {
    o.object
        .pointer("/spec/strategy/type")
        .is_some_and(|t| t == "Recreate")
}
