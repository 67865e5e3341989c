//! `plan --server-dry-run`: green's own server is asked what it would make of every object (replay.md 20). Writes nothing: each POST has
//! `dryRun=All`, and a Secret carries stand-ins of the same shape, never its values.

use super::compare::{Options, compare};
use crate::error::Result;
use crate::object::ObjectId;
use crate::plan::model::{Finding, Plan, Severity};
use crate::plan::wave_of;
use crate::world::kube::{Answer, ApplyOptions, CreateOptions, Kube};
use crate::world::{self, Class};
use base64::Engine;
use futures::StreamExt;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const SOURCE: &str = "replay.md 20";

fn finding(id: &str, severity: Severity, object: &str, message: String, remedy: &str) -> Finding {
    Finding {
        id: id.into(),
        severity,
        object: object.into(),
        message,
        remedy: remedy.into(),
        source: SOURCE.into(),
        waived: None,
    }
}

/// Asks green about every target of a plan, in the order of the waves. `Err` when green does not answer at all.
pub async fn server_dry_run(green: &dyn Kube, plan: &Plan) -> Result<Vec<Finding>> {
    let kinds = green.kinds(true).await?;
    let served: BTreeSet<(String, &str)> = kinds
        .iter()
        .map(|k| (k.api_version(), k.kind.as_str()))
        .collect();
    let mut namespaces = BTreeSet::new();
    if let Some(kind) = kinds.iter().find(|k| k.kind == "Namespace") {
        for object in green.list(kind).await?.items {
            namespaces.extend(object["metadata"]["name"].as_str().map(String::from));
        }
    }
    // What comes with the replay itself.
    let mut coming_kinds: BTreeSet<(String, String)> = BTreeSet::new();
    // Wave, object, its id on green; of an object that only green has its place among these.
    let mut targets: Vec<(usize, String, ObjectId, Option<usize>)> = vec![];
    let mut note = |name: String, target: &Value, generated: Option<usize>| {
        let Some(id) = ObjectId::of(target) else {
            return;
        };
        if id.kind == "CustomResourceDefinition" {
            let text = |p: &str| target.pointer(p).and_then(Value::as_str).unwrap_or("");
            coming_kinds.insert((
                text("/spec/group").to_string(),
                text("/spec/names/kind").to_string(),
            ));
        }
        let wave = wave_of(&id.kind).map_or(usize::MAX, |(n, _)| n);
        targets.push((wave, name, id, generated));
    };
    for (n, object) in plan.generated.iter().enumerate() {
        let name = ObjectId::of(object).map(|id| id.to_string());
        note(name.unwrap_or_default(), object, Some(n));
    }
    for verdict in plan.verdicts.iter() {
        let verdict = verdict?;
        if let Some(target) = &verdict.target {
            note(verdict.object.clone(), target, None);
        }
    }
    targets.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));

    let mut findings = vec![];
    let mut waiting: BTreeMap<String, usize> = BTreeMap::new();
    let mut asked = vec![];
    for (_, name, id, generated) in targets {
        let group = id.group().to_string();
        if !served.contains(&(id.api_version.clone(), id.kind.as_str())) {
            if coming_kinds.contains(&(group, id.kind.clone())) {
                *waiting
                    .entry(format!("kind {} {}", id.kind, id.api_version))
                    .or_default() += 1;
            } else {
                findings.push(finding(
                    "DRY-01",
                    Severity::Blocker,
                    &name,
                    format!(
                        "green serves no {} {}, and no CRD of the plan brings it",
                        id.kind, id.api_version
                    ),
                    "Install what serves it on green, or list the object under workloads.skip.",
                ));
            }
            continue;
        }
        match &id.namespace {
            Some(ns) if !namespaces.contains(ns) => {
                *waiting.entry(format!("namespace {ns}")).or_default() += 1;
            }
            _ => asked.push((name, generated)),
        }
    }
    for (what, n) in waiting {
        findings.push(finding(
            "DRY-04",
            Severity::NotChecked,
            &what.replacen(' ', "/", 1),
            format!(
                "{n} object{} not checked: {} comes with the replay",
                if n == 1 { "" } else { "s" },
                if what.starts_with("kind") {
                    "the kind"
                } else {
                    "the namespace"
                }
            ),
            "Nothing to do; ask again after the replay of a rehearsal cluster, or look at the replay itself.",
        ));
    }
    let width = plan
        .spec
        .limits
        .write_concurrency
        .unwrap_or(16)
        .clamp(1, 64) as usize;
    // One target at a time is read from the plan, when its turn comes.
    let target = |name: &str, generated: Option<usize>| -> Result<Option<Value>> {
        match generated {
            Some(n) => Ok(plan.generated.get(n).cloned()),
            None => Ok(plan.verdicts.get(name)?.and_then(|v| v.target.clone())),
        }
    };
    let mut answers = futures::stream::iter(asked.into_iter().map(|(name, generated)| {
        let object = target(&name, generated);
        async move {
            let object = with_stand_ins(object?.unwrap_or_default());
            let answer = ask(green, &object).await;
            Ok::<_, crate::error::Error>((name, object, answer))
        }
    }))
    .buffered(width);
    while let Some(answered) = answers.next().await {
        let (name, object, answer) = answered?;
        match answer {
            Ok(answer) => findings.extend(of_answer(&name, &object, &answer)),
            Err(e) if e.class == Class::Conflict => findings.push(finding(
                "DRY-03",
                Severity::Warning,
                &name,
                format!("green has it already, held by somebody else: {}", e.message),
                "Release or rename it on green, or list the object under workloads.skip.",
            )),
            // The server went away in the middle: what follows would all say the same.
            Err(e) if e.is_transient() || e.class == Class::Unauthorized => return Err(e.into()),
            Err(e) => findings.push(finding(
                "DRY-01",
                Severity::Blocker,
                &name,
                format!("green refuses it: {}", e.message),
                "Change the object on blue, or what refuses it on green; then plan again.",
            )),
        }
    }
    findings.sort_by(|a, b| {
        (a.severity, &a.id, &a.object, &a.message).cmp(&(b.severity, &b.id, &b.object, &b.message))
    });
    Ok(findings)
}

async fn ask(green: &dyn Kube, object: &Value) -> world::Result<Answer> {
    let options = CreateOptions {
        dry_run: true,
        strict: true,
    };
    match green.create_heard(object, options).await {
        // What is there already is asked about as the replay would write it.
        Err(e) if e.class == Class::AlreadyExists => {
            let options = ApplyOptions {
                dry_run: true,
                strict: true,
                force: true,
            };
            green.apply_heard(object, options).await
        }
        other => other,
    }
}

/// What the server warned of, and fields that come back other than they were sent.
fn of_answer(name: &str, sent: &Value, answer: &Answer) -> Vec<Finding> {
    let mut out: Vec<Finding> = answer
        .warnings
        .iter()
        .map(|w| {
            finding(
                "DRY-02",
                Severity::Warning,
                name,
                format!("green warns: {w}"),
                "A field that green does not know is dropped silently: take it out on blue, or install what knows it.",
            )
        })
        .collect();
    // Without managers: everything that differs from what was sent counts, defaults beside do not.
    let mut there = answer.object.clone();
    if let Some(meta) = there["metadata"].as_object_mut() {
        meta.remove("managedFields");
    }
    for field in compare(sent, sent, &there, &Options::default()).kept {
        // Stand-ins of a Secret say nothing.
        if sent["kind"] == "Secret" && field.path.last_key() != Some("type") {
            continue;
        }
        let text = |v: &Option<Value>| v.as_ref().map_or("nothing".into(), Value::to_string);
        out.push(finding(
            "DRY-03",
            Severity::Warning,
            name,
            format!(
                "green would store {}: {} instead of {}",
                field.path,
                text(&field.green),
                text(&field.base)
            ),
            "An admission webhook or policy of green changes it, or its server drops it: decide whether that is wanted.",
        ));
    }
    out
}

/// A Secret with values that pass the server's checks of its type and are nobody's.
fn with_stand_ins(mut target: Value) -> Value {
    if target["kind"] != "Secret" || target["apiVersion"] != "v1" {
        return target;
    }
    let base64 = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    if let Some(data) = target["data"].as_object_mut() {
        for (key, value) in data.iter_mut() {
            *value = json!(base64(match key.as_str() {
                ".dockerconfigjson" => r#"{"auths":{}}"#,
                ".dockercfg" => "{}",
                _ => "stand-in",
            }));
        }
    }
    target.as_object_mut().map(|o| o.shift_remove("stringData"));
    target
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(object: Value) -> Answer {
        Answer {
            object,
            warnings: vec![],
        }
    }

    #[test]
    fn rule_20_what_the_server_would_drop_or_change_is_a_finding_and_its_defaults_are_none() {
        let sent = json!({"apiVersion": "shop.test/v1", "kind": "Promotion", "metadata": {"name": "x"}, "spec": {"percent": 10, "unknown": "y", "image": "a"}});
        let back = json!({"apiVersion": "shop.test/v1", "kind": "Promotion", "metadata": {"name": "x", "uid": "1", "managedFields": [{"manager": "crossfade", "fieldsV1": {"f:spec": {"f:percent": {}, "f:image": {}}}}]},
            "spec": {"percent": 10, "image": "mirror/a", "mode": "default"}, "status": {}});
        let said = of_answer("promotion.shop.test/x", &sent, &answer(back));
        let messages: Vec<&str> = said.iter().map(|f| f.message.as_str()).collect();
        assert_eq!(said.len(), 2, "{messages:?}");
        assert!(messages[0].contains("spec.image: \"mirror/a\" instead of \"a\""));
        assert!(messages[1].contains("spec.unknown: nothing instead of \"y\""));
        let same = of_answer("x", &sent, &answer(sent.clone()));
        assert_eq!(same, vec![]);
    }

    #[test]
    fn what_the_server_warns_of_is_a_finding() {
        let sent = json!({"kind": "ConfigMap", "metadata": {"name": "x"}});
        let warned = Answer {
            object: sent.clone(),
            warnings: vec!["unknown field \"spec.x\"".into()],
        };
        let said = of_answer("configmap/n/x", &sent, &warned);
        assert_eq!(
            (said[0].id.as_str(), said[0].severity),
            ("DRY-02", Severity::Warning)
        );
    }

    #[test]
    fn a_secret_goes_to_the_dry_run_with_stand_ins_that_pass_the_checks_of_its_type() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson", "metadata": {"name": "x"},
            "data": {".dockerconfigjson": "hmac-sha256:from-blue", "more": "Q0FOQVJZ"}});
        let sent = with_stand_ins(secret);
        assert_eq!(sent["data"][".dockerconfigjson"], "eyJhdXRocyI6e319");
        assert!(!sent.to_string().contains("Q0FOQVJZ") && !sent.to_string().contains("hmac"));
    }
}
