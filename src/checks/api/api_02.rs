//! API-02: kinds that nobody serves. What the table of removals and blue's own CRDs tell, the rewrite says (src/rewrite/convert); here green's server is asked, once it stands.

use crate::checks::few;
use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const CHECK: Check = Check {
    id: "API-02",
    severity: Severity::Blocker,
    question: "Does green serve every kind and version that will be created there?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Install the CustomResourceDefinition, or correct the version.",
    source: "checks.md API-02",
    run,
};

fn run(i: &Input, r: &mut Report) {
    let Some(green) = i.snapshot.green.as_ref().filter(|g| !g.kinds.is_empty()) else {
        return;
    };
    let mut served: BTreeSet<(String, String)> = green
        .kinds
        .iter()
        .map(|k| (k.api_version(), k.kind.clone()))
        .collect();
    // Definitions that come along are served before their objects are written (replay.md 3).
    for o in i.moving(&["CustomResourceDefinition"]) {
        let spec = &o.object["spec"];
        for v in spec["versions"].as_array().into_iter().flatten() {
            let text = |v: &Value| v.as_str().unwrap_or("").to_string();
            served.insert((
                format!("{}/{}", text(&spec["group"]), text(&v["name"])),
                text(&spec["names"]["kind"]),
            ));
        }
    }
    let mut missing: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for o in i.blue.iter() {
        let Some(target) = o.verdict.and_then(|v| v.target.as_ref()) else {
            continue;
        };
        let key = (
            target["apiVersion"].as_str().unwrap_or("").to_string(),
            target["kind"].as_str().unwrap_or("").to_string(),
        );
        if !served.contains(&key) {
            missing.entry(key).or_default().push(o.name.clone());
        }
    }
    for ((version, kind), objects) in missing {
        r.found(
            format!("kind/{version}/{kind}"),
            format!(
                "green does not serve {kind} of {version}, which {} objects need: {}",
                objects.len(),
                few(&objects)
            ),
        );
    }
}
