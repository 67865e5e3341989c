//! GIT-02: images on both sides. Once green was read they are compared; who deploys, only a person knows.

use crate::checks::RUNNING;
use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) const CHECK: Check = Check {
    id: "GIT-02",
    severity: Severity::Blocker,
    question: "Do both sides run the same image, and does whoever deploys reach both?",
    needs: &[],
    answered: Answered::Person,
    remedy: "Deploy to both sides from the replay on, or stop deploying until open.",
    source: "checks.md GIT-02",
    run,
};

fn run(i: &Input, r: &mut Report) {
    let images = |o: &Value| -> BTreeSet<String> {
        o.pointer("/spec/template/spec/containers")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|c| Some(c.get("image")?.as_str()?.to_string()))
            .collect()
    };
    let mut moving = 0;
    for o in i.moving(RUNNING) {
        moving += 1;
        let there = i
            .snapshot
            .green
            .as_ref()
            .and_then(|g| g.find(&o.id.kind, o.id.namespace.as_deref(), &o.id.name));
        if let Some(there) = there {
            let (blue, green) = (images(o.object), images(there));
            if blue != green {
                let list = |s: &BTreeSet<String>| s.iter().cloned().collect::<Vec<_>>().join(", ");
                r.found(
                    &o.name,
                    format!("blue runs {}, green {}", list(&blue), list(&green)),
                );
            }
        }
    }
    if moving > 0 {
        r.ask("deployments", format!("who deploys these {moving} workloads, and does it reach both sides from the replay on?"));
    }
}
