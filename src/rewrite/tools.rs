//! Rules 69 to 71 and what each tool is told about: Helm, GitOps, operators that own cloud things, meshes. The table is data (`tools.yaml`).

use super::helm;
use super::work::{Work, set, take};
use crate::helm as records;
use crate::object::label;
use crate::plan::model::{Finding, Park, Severity};
use crate::snapshot::model::Snapshot;
use serde::Deserialize;
use serde_json::Value;
use std::sync::OnceLock;

/// A tool of the table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tool {
    id: String,
    name: String,
    #[serde(default)]
    groups: Vec<String>,
    #[serde(default)]
    kinds: Vec<String>,
    #[serde(default)]
    labels: Vec<String>,
    #[serde(default)]
    annotations: Vec<String>,
    #[serde(default)]
    secrets: Vec<String>,
    does: String,
    remedy: String,
    severity: Severity,
    #[serde(default)]
    check: Option<String>,
    rule: u32,
    #[serde(default)]
    park: Vec<Asleep>,
    #[serde(default)]
    set: Vec<Always>,
    #[serde(default)]
    pauses: bool,
    #[serde(default)]
    refuse: Option<Refuse>,
}

/// How a kind is created asleep.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asleep {
    kind: String,
    field: String,
    parked: Value,
    #[serde(default)]
    awake: Value,
    #[serde(default)]
    absent: bool,
}

/// What an object says while both clusters live.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Always {
    at: String,
    value: Value,
    #[serde(default)]
    when: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Refuse {
    severity: Severity,
}

#[derive(Deserialize)]
struct Table {
    tools: Vec<Tool>,
}

fn tools() -> &'static [Tool] {
    static TABLE: OnceLock<Vec<Tool>> = OnceLock::new();
    TABLE.get_or_init(|| {
        serde_saphyr::from_str::<Table>(include_str!("tools.yaml"))
            .expect("the embedded table is read by a test")
            .tools
    })
}

impl Tool {
    /// Whether an object is one of the tool's own.
    fn owns(&self, group: &str, kind: &str) -> bool {
        let mine = |g: &String| {
            group == g
                || group
                    .strip_suffix(g.as_str())
                    .is_some_and(|head| head.ends_with('.'))
        };
        (self.kinds.is_empty() || self.kinds.iter().any(|k| k == kind))
            && self.groups.iter().any(mine)
    }
    /// Whether the tool keeps or made the object.
    fn keeps(&self, object: &Value) -> bool {
        let has = |part: &str, keys: &[String]| {
            !keys.is_empty()
                && object
                    .pointer(part)
                    .and_then(Value::as_object)
                    .is_some_and(|m| keys.iter().any(|k| m.contains_key(k)))
        };
        has("/metadata/labels", &self.labels)
            || has("/metadata/annotations", &self.annotations)
            || object["kind"] == "Secret" && has("/metadata/labels", &self.secrets)
    }
}

/// What tools keep and own.
pub(super) fn rewrite(w: &mut Work) {
    if records::is_record(w.original) {
        return helm::record(w);
    }
    if matches!(w.kind(), "ConfigMap" | "Secret") && label(w.original, "OWNER") == Some("TILLER") {
        w.skip(69);
        w.find(
            "API-12",
            Severity::Warning,
            69,
            "a record of Helm 2",
            "Move the release to Helm 3 first.",
        );
        return;
    }
    let group = w.id.group().to_string();
    let kind = w.id.kind.clone();
    for tool in tools() {
        if !group.is_empty() && tool.owns(&group, &kind) {
            own(w, tool);
        } else if tool.rule == 70 && tool.keeps(w.original) {
            w.tidied(70);
        }
    }
}

/// An object of the tool itself.
fn own(w: &mut Work, tool: &Tool) {
    let check = tool.check.as_deref().unwrap_or("GIT-01");
    if let Some(r) = &tool.refuse {
        w.refuse(tool.rule);
        w.find(
            check,
            r.severity,
            tool.rule,
            format!(
                "{}: owns things in AWS, and two clusters that reconcile it would fight over them",
                tool.name
            ),
            tool.remedy.clone(),
        );
        return;
    }
    let mut paused = false;
    for a in &tool.set {
        let applies = a
            .when
            .as_deref()
            .is_none_or(|p| w.object.pointer(p).is_some());
        if applies && w.object.pointer(&a.at) != Some(&a.value) {
            set(&mut w.object, &a.at, a.value.clone());
            w.changed(tool.rule);
        }
        paused |= applies;
    }
    if paused && tool.pauses {
        w.hold(tool.rule);
    }
    if let Some(p) = tool.park.iter().find(|p| p.kind == w.id.kind) {
        asleep(w, tool, p);
    }
}

/// Created asleep; awake with blue's value after open.
fn asleep(w: &mut Work, tool: &Tool, p: &Asleep) {
    let there = w.object.pointer(&p.field).filter(|v| !v.is_null()).cloned();
    let awake = match there {
        Some(v) if v == p.parked => {
            // Asleep on blue: it stays so.
            w.tidied(tool.rule);
            return;
        }
        Some(v) => v,
        None if p.absent => {
            w.tidied(tool.rule);
            return;
        }
        None => p.awake.clone(),
    };
    if p.parked.is_null() {
        take(&mut w.object, &p.field);
    } else {
        set(&mut w.object, &p.field, p.parked.clone());
    }
    w.park = Some(Park {
        field: p.field.clone(),
        wakes: "open".into(),
        value: awake,
    });
    w.hold(tool.rule);
    // The freeze holds reconcilers before anything else (plan/holds.rs).
    let (severity, how) = if tool.rule == 70 {
        (Severity::Warning, "the run suspends it there first")
    } else {
        (Severity::Blocker, "it has to be paused there first")
    };
    w.find(
        tool.check.as_deref().unwrap_or("GIT-01"),
        severity,
        tool.rule,
        format!(
            "{}: awake on blue, where it would undo every hold of the freeze: {how}; on green it is created asleep",
            tool.name
        ),
        tool.remedy.clone(),
    );
}

/// One line a tool: how much of it there is, and what crossfade does with it.
pub(crate) fn report(snapshot: &Snapshot) -> Vec<Finding> {
    let mut counts = vec![(0usize, 0usize); tools().len()];
    for o in &snapshot.blue.objects {
        let kind = o["kind"].as_str().unwrap_or("");
        let group = o["apiVersion"]
            .as_str()
            .and_then(|v| v.split_once('/'))
            .map_or("", |(g, _)| g);
        // What a controller made is its parent's.
        let child = o
            .pointer("/metadata/ownerReferences")
            .and_then(Value::as_array)
            .is_some_and(|a| a.iter().any(|r| r["controller"] == true));
        for (tool, (own, kept)) in tools().iter().zip(&mut counts) {
            if !group.is_empty() && tool.owns(group, kind) {
                *own += 1;
            } else if !child && tool.keeps(o) {
                *kept += 1;
            }
        }
    }
    let objects = |n: usize| match n {
        1 => "1 object".to_string(),
        n => format!("{n} objects"),
    };
    tools()
        .iter()
        .zip(counts)
        .filter(|(_, (own, kept))| own + kept > 0)
        .map(|(tool, (own, kept))| {
            let what = match (own, kept) {
                (own, 0) => format!("{} of its own", objects(own)),
                (0, kept) => format!("{} that it keeps", objects(kept)),
                (own, kept) => format!("{} of its own, {kept} that it keeps", objects(own)),
            };
            Finding {
                id: format!("TOOL-{}", tool.id),
                severity: tool.severity,
                object: format!("tool/{}", tool.id),
                message: format!("{}: {what}; {}", tool.name, tool.does),
                remedy: tool.remedy.clone(),
                source: format!("replay.md {}", tool.rule),
                waived: None,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::ids;
    use crate::rewrite::rules;

    #[test]
    fn each_row_of_the_table_can_be_recognised_and_names_a_rule_and_a_check_that_exist() {
        let mut ids_seen = std::collections::BTreeSet::new();
        for t in tools() {
            assert!(ids_seen.insert(&t.id), "{} twice", t.id);
            assert!(
                !(t.groups.is_empty() && t.labels.is_empty() && t.annotations.is_empty()),
                "{}",
                t.id
            );
            assert!(rules::by_id(&format!("replay.md {}", t.rule)).is_some());
            assert!(t.check.as_deref().is_none_or(ids::is_known), "{}", t.id);
            assert!(ids::is_known(&format!("TOOL-{}", t.id)));
            assert!(t.remedy.ends_with('.'), "{}", t.id);
        }
    }

    #[test]
    fn a_group_is_the_tools_by_its_last_parts_and_never_by_a_part_of_a_word() {
        let tool = |id: &str| tools().iter().find(|t| t.id == id).expect("a row");
        assert!(tool("crossplane").owns("s3.aws.crossplane.io", "Bucket"));
        assert!(!tool("crossplane").owns("notcrossplane.io", "Bucket"));
        assert!(!tool("argo-cd").owns("argoproj.io", "Rollout"));
    }
}
