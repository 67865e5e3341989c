//! Why something is as it is in the plan: an object, a host, a node group, a finding.

use super::model::{Finding, Plan, Verdict};
use crate::error::{Error, Kind, Result};
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write;

/// An answer: the same facts as data and as text.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// What was asked.
    pub subject: String,
    /// `object`, `name`, `node_group`, `finding` or `step`.
    pub kind: String,
    /// The facts.
    pub facts: Value,
    /// For people.
    #[serde(skip)]
    pub text: String,
}

/// Explains an object (`kind/ns/name`), a host, a node or instance group, a finding id or a step id.
pub fn explain(plan: &Plan, what: &str) -> Result<Explanation> {
    let what = what.trim().trim_end_matches('.');
    let about = |object: &str| -> Vec<&Finding> {
        plan.findings
            .iter()
            .filter(|f| f.object == object)
            .collect()
    };
    let bare = what
        .strip_prefix("record/")
        .and_then(|r| r.split('/').next())
        .unwrap_or(what);
    let bare = bare.strip_prefix("host/").unwrap_or(bare);
    if let Some(v) = plan.verdicts.iter().find(|v| v.object == what) {
        return Ok(object(plan, v, &about(&v.object)));
    }
    if let Some(n) = plan.names.iter().find(|n| n.host == bare) {
        let mut text = format!(
            "{} ({}) is handed over in wave {}.\n",
            n.host, n.rtype, n.wave
        );
        let _ = writeln!(text, "It is wanted by {}.", n.object);
        let _ = match n.ttl {
            Some(t) => writeln!(
                text,
                "Its TTL is {t} s{}.",
                if n.ttl_annotation {
                    ", by annotation"
                } else {
                    ""
                }
            ),
            None => writeln!(text, "It is an alias and has no TTL of its own."),
        };
        let _ = writeln!(text, "Ownership is kept in {}.", n.txt.join(", "));
        return Ok(done(what, "name", json!({"name": n}), text, &[]));
    }
    let group = what
        .strip_prefix("node-group/")
        .or(what.strip_prefix("instancegroup/"))
        .unwrap_or(what);
    if let Some(g) = plan
        .target
        .node_groups
        .iter()
        .find(|g| g.name == group || g.instance_group == group)
    {
        let object = format!("instancegroup/{}", g.instance_group);
        let found: Vec<&Finding> = plan
            .findings
            .iter()
            .filter(|f| f.object.split(' ').next() == Some(object.as_str()))
            .collect();
        let text = format!(
            "Node group {} comes from instance group {}: {} {}, {} to {} nodes, {} now, {} GiB {}.\n",
            g.name,
            g.instance_group,
            g.capacity_type,
            g.instance_types.join(", "),
            g.min,
            g.max,
            g.desired,
            g.disk_gib,
            g.disk_type
        );
        return Ok(done(
            what,
            "node_group",
            json!({"node_group": g, "findings": found}),
            text,
            &found,
        ));
    }
    if let Some(s) = super::steps::by_id(plan).get(what) {
        let text = format!("{}: {}\nNeeds: {}\n", s.id, s.summary, s.needs.join(", "));
        return Ok(done(what, "step", json!({"step": s}), text, &[]));
    }
    let found: Vec<&Finding> = plan
        .findings
        .iter()
        .filter(|f| {
            f.id.eq_ignore_ascii_case(what)
                || f.object == what
                || f.object == format!("instancegroup/{group}")
        })
        .collect();
    if !found.is_empty() {
        return Ok(done(
            what,
            "finding",
            json!({"findings": found}),
            String::new(),
            &found,
        ));
    }
    let near: Vec<&str> = plan
        .verdicts
        .iter()
        .map(|v| v.object.as_str())
        .chain(plan.names.iter().map(|n| n.host.as_str()))
        .filter(|o| {
            o.contains(what)
                || what
                    .rsplit('/')
                    .next()
                    .is_some_and(|n| !n.is_empty() && o.ends_with(n))
        })
        .take(5)
        .collect();
    Err(Error::new(
        Kind::BadInput,
        format!("the plan knows nothing called `{what}`"),
    )
    .at(what)
    .remedy(if near.is_empty() {
        "Give an object as kind/namespace/name, a host, a node group or the id of a finding."
            .to_string()
    } else {
        format!("Did you mean {}?", near.join(", "))
    }))
}

fn object(plan: &Plan, v: &Verdict, findings: &[&Finding]) -> Explanation {
    let fate = serde_json::to_value(v.verdict).unwrap_or(Value::Null);
    let mut text = format!(
        "{} ({}) is {}",
        v.object,
        v.api_version,
        fate.as_str().unwrap_or("?")
    );
    if v.rules.is_empty() {
        text.push_str(".\n");
    } else {
        let _ = writeln!(text, " by {}.", v.rules.join(", "));
    }
    if let Some(p) = &v.park {
        let _ = writeln!(
            text,
            "It is created with {} parked and woken in phase {} to {}.",
            p.field, p.wakes, p.value
        );
    }
    let steps: Vec<&str> = plan
        .steps
        .iter()
        .filter(|s| {
            s.params
                .get("objects")
                .and_then(Value::as_array)
                .is_some_and(|a| a.iter().any(|o| o == v.object.as_str()))
        })
        .map(|s| s.id.as_str())
        .collect();
    if !steps.is_empty() {
        let _ = writeln!(text, "Steps: {}.", steps.join(", "));
    }
    done(
        &v.object,
        "object",
        json!({"verdict": v, "findings": findings, "steps": steps}),
        text,
        findings,
    )
}

fn done(
    subject: &str,
    kind: &str,
    facts: Value,
    mut text: String,
    findings: &[&Finding],
) -> Explanation {
    for f in findings {
        let severity = serde_json::to_value(f.severity).unwrap_or(Value::Null);
        let _ = writeln!(
            text,
            "{} {} {}: {} {} ({})",
            severity.as_str().unwrap_or(""),
            f.id,
            f.object,
            f.message,
            f.remedy,
            f.source
        );
    }
    Explanation {
        subject: subject.into(),
        kind: kind.into(),
        facts,
        text,
    }
}
