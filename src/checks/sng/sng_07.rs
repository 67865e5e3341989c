//! SNG-07: schema changes at start. The same image has made them on blue already, so it is a warning; they matter when a deployment falls into the migration.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;
use serde_json::Value;

pub(super) const CHECK: Check = Check {
    id: "SNG-07",
    severity: Severity::Blocker,
    question: "Does a pod change a schema when it starts?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Run schema changes once, before the freeze.",
    source: "checks.md SNG-07",
    run,
};

/// Words of commands that change schemas.
const WORDS: &[&str] = &[
    "migrat",
    "alembic upgrade",
    "flyway",
    "liquibase",
    "db:schema",
    "db:prepare",
    "syncdb",
    "goose up",
    "sqitch deploy",
    "dbmate up",
];

fn run(i: &Input, r: &mut Report) {
    for o in i.moving(&["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"]) {
        let changes = |c: &Value, keys: &[&str]| {
            keys.iter()
                .filter_map(|k| c.pointer(k))
                .map(|v| match v {
                    Value::Array(a) => a
                        .iter()
                        .filter_map(Value::as_str)
                        .collect::<Vec<_>>()
                        .join(" "),
                    v => v.as_str().unwrap_or("").to_string(),
                })
                .any(|t| {
                    let t = t.to_lowercase();
                    WORDS.iter().any(|w| t.contains(w))
                })
        };
        let init = o
            .template()
            .and_then(|t| t.pointer("/spec/initContainers")?.as_array())
            .into_iter()
            .flatten()
            .find(|c| changes(c, &["/name", "/image", "/command", "/args"]));
        let start = o.containers(false).find(|c| {
            changes(
                c,
                &["/command", "/args", "/lifecycle/postStart/exec/command"],
            )
        });
        let what = match (init, start) {
            (Some(c), _) => format!("init container {}", c["name"].as_str().unwrap_or("?")),
            (None, Some(c)) => format!(
                "the start of container {}",
                c["name"].as_str().unwrap_or("?")
            ),
            (None, None) => continue,
        };
        r.warning(
            &o.name,
            format!(
                "{what} seems to change a schema: green's first pod would do so in the shared store"
            ),
            CHECK.remedy,
        );
    }
}
