//! WL-06: tags that move. The registry is not asked; what blue's nodes run is in the status of its pods.

use crate::checks::image::Image;
use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const CHECK: Check = Check {
    id: "WL-06",
    severity: Severity::Warning,
    question: "Could an image name mean other code on green than on blue?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Pin the digest, or use a tag that is never moved.",
    source: "checks.md WL-06",
    run,
};

/// Tags that by their name are moved.
const MOVED: &[&str] = &[
    "latest",
    "master",
    "main",
    "dev",
    "develop",
    "development",
    "stable",
    "edge",
    "nightly",
    "prod",
    "production",
    "staging",
    "release",
    "canary",
    "snapshot",
    "current",
    "head",
    "trunk",
    "test",
];

fn run(i: &Input, r: &mut Report) {
    let running = running(i);
    let mut twofold = BTreeSet::new();
    for o in i.moving(&[
        "Deployment",
        "StatefulSet",
        "DaemonSet",
        "ReplicaSet",
        "CronJob",
        "Job",
    ]) {
        let mut seen = BTreeSet::new();
        for text in o.containers(true).filter_map(|c| c.get("image")?.as_str()) {
            let image = Image::parse(text);
            if image.digest.is_some() || !seen.insert(text) {
                continue;
            }
            let digests: Vec<&String> = running.get(text).into_iter().flatten().collect();
            let now = match digests.as_slice() {
                [one] => format!("; blue runs {one}"),
                _ => String::new(),
            };
            match image.tag {
                None => r.found(
                    &o.name,
                    format!("{text} has no tag: green would run whatever is newest{now}"),
                ),
                Some(t) if MOVED.contains(&t.to_lowercase().as_str()) => {
                    r.found(&o.name, format!("{text} is a tag that moves: green would run whatever it means then{now}"));
                }
                Some(_) if digests.len() > 1 && twofold.insert(text) => r.found(
                    format!("image/{text}"),
                    format!(
                        "blue runs {} different images under this name: the tag was moved",
                        digests.len()
                    ),
                ),
                Some(_) => {}
            }
        }
    }
}

/// Digests that blue's pods run, by image as written.
fn running(i: &Input) -> BTreeMap<String, BTreeSet<String>> {
    let mut out: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for o in i.blue.iter().filter(|o| o.id.kind == "Pod") {
        for s in o
            .object
            .pointer("/status/containerStatuses")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let name = s["name"].as_str().unwrap_or("");
            let image = o
                .containers(false)
                .find(|c| c["name"] == name)
                .and_then(|c| c.get("image")?.as_str());
            let digest = s["imageID"].as_str().and_then(|d| d.split_once("@sha256:"));
            if let (Some(image), Some((_, hex))) = (image, digest) {
                out.entry(image.into())
                    .or_default()
                    .insert(format!("sha256:{hex}"));
            }
        }
    }
    out
}
