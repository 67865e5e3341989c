//! What is held on blue while it is left (step kind `freeze.hold`): GitOps reconcilers before anything else, KEDA's scalers of what is stopped,
//! the reclaim policy of every volume that still has a claim.

use super::model::Verdict;
use crate::object::ObjectId;
use crate::rewrite::{KEDA_PAUSED, KEDA_PAUSED_AT, annotation_pointer, keda_target};
use crate::snapshot::model::Snapshot;
use crate::step::hold::Hold;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Annotation by which Argo CD leaves an Application alone (since 2.6).
const SKIP_RECONCILE: &str = "argocd.argoproj.io/skip-reconcile";

fn text<'v>(object: &'v Value, pointer: &str) -> Option<&'v str> {
    object.pointer(pointer).and_then(Value::as_str)
}

fn hold(object: &Value, set: &[(&str, Value)]) -> Option<Hold> {
    Some(Hold {
        id: ObjectId::of(object)?,
        set: set
            .iter()
            .map(|(p, v)| (p.to_string(), v.clone()))
            .collect(),
    })
}

/// Whether an Application of Argo CD deploys into the cluster that it stands in.
fn here(application: &Value, blue: &str) -> bool {
    let server = text(application, "/spec/destination/server");
    let name = text(application, "/spec/destination/name");
    match (server, name) {
        (Some(s), _) => {
            let host = s
                .trim_start_matches("https://")
                .split(['/', ':'])
                .next()
                .unwrap_or("");
            host == "kubernetes.default.svc" || host.ends_with(&format!(".{blue}"))
        }
        (None, Some(n)) => n == "in-cluster" || n == blue,
        // Neither: Argo takes the cluster that it runs in.
        (None, None) => true,
    }
}

/// Reconcilers, in the order in which they are held: who writes others first (replay.md 70: before any scale change, or it is undone).
pub(super) fn gitops(snapshot: &Snapshot, blue: &str) -> Vec<Hold> {
    let mut found: Vec<(u8, Hold)> = vec![];
    for o in &snapshot.blue.objects {
        // Most objects are none of these: a look at the group is cheap.
        if ![
            "kustomize.toolkit.fluxcd.io/",
            "helm.toolkit.fluxcd.io/",
            "argoproj.io/",
        ]
        .iter()
        .any(|g| o["apiVersion"].as_str().is_some_and(|v| v.starts_with(g)))
        {
            continue;
        }
        let Some(id) = ObjectId::of(o) else { continue };
        let entry = match (id.group(), id.kind.as_str()) {
            ("kustomize.toolkit.fluxcd.io", "Kustomization")
            | ("helm.toolkit.fluxcd.io", "HelmRelease")
                if o.pointer("/spec/kubeConfig").is_none() =>
            {
                let rank = if id.kind == "Kustomization" { 2 } else { 3 };
                hold(o, &[("/spec/suspend", json!(true))]).map(|h| (rank, h))
            }
            // It writes the policy of its Applications back.
            ("argoproj.io", "ApplicationSet") => hold(
                o,
                &[("/spec/syncPolicy/applicationsSync", json!("create-only"))],
            )
            .map(|h| (0, h)),
            ("argoproj.io", "Application") if here(o, blue) => {
                let skip = annotation_pointer(SKIP_RECONCILE);
                // An app that another app keeps comes after it.
                let kept = crate::object::annotation(o, "argocd.argoproj.io/tracking-id").is_some()
                    || crate::object::label(o, "argocd.argoproj.io/instance").is_some();
                let set = [
                    ("/spec/syncPolicy/automated", Value::Null),
                    (skip.as_str(), json!("true")),
                ];
                hold(o, &set).map(|h| (if kept { 2 } else { 1 }, h))
            }
            _ => None,
        };
        found.extend(entry);
    }
    found.sort_by(|a, b| (a.0, &a.1.id).cmp(&(b.0, &b.1.id)));
    found.dedup_by(|a, b| a.1.id == b.1.id);
    found.into_iter().map(|(_, h)| h).collect()
}

/// KEDA's scalers of what is stopped on blue: it would start it again (replay.md 50).
pub(super) fn scalers(snapshot: &Snapshot, verdicts: &[Verdict]) -> Vec<Hold> {
    let stopped: BTreeSet<&str> = verdicts
        .iter()
        .filter(|v| v.park.as_ref().is_some_and(|p| p.wakes == "open"))
        .map(|v| v.object.as_str())
        .collect();
    let mut found: Vec<Hold> = snapshot
        .blue
        .objects
        .iter()
        .filter(|o| {
            o["apiVersion"]
                .as_str()
                .is_some_and(|v| v.starts_with("keda.sh/"))
        })
        .filter_map(|o| {
            let id = ObjectId::of(o)?;
            let (key, value) = match id.kind.as_str() {
                "ScaledObject" if stopped.contains(keda_target(o)?.as_str()) => {
                    (KEDA_PAUSED_AT, "0")
                }
                "ScaledJob" if stopped.contains(id.to_string().as_str()) => (KEDA_PAUSED, "true"),
                _ => return None,
            };
            hold(o, &[(annotation_pointer(key).as_str(), json!(value))])
        })
        .collect();
    found.sort_by(|a, b| a.id.cmp(&b.id));
    found.dedup_by(|a, b| a.id == b.id);
    found
}

/// Volumes with a claim that would be deleted with it: their data is the way back (replay.md 54).
pub(super) fn volumes(snapshot: &Snapshot) -> Vec<Hold> {
    let policy = "/spec/persistentVolumeReclaimPolicy";
    let mut found: Vec<Hold> = snapshot
        .blue
        .objects
        .iter()
        .filter(|o| {
            o["kind"] == "PersistentVolume" && text(o, policy).is_some_and(|p| p != "Retain")
        })
        .filter(|o| {
            o.pointer("/spec/claimRef").is_some()
                && o.pointer("/metadata/deletionTimestamp").is_none()
        })
        .filter_map(|o| hold(o, &[(policy, json!("Retain"))]))
        .collect();
    found.sort_by(|a, b| a.id.cmp(&b.id));
    found.dedup_by(|a, b| a.id == b.id);
    found
}
