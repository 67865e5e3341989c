//! STO-08: a claim that was enlarged by hand, or whose template still asks for less: the restore would not fit.

use crate::checks::look::{bytes, count, items, text};
use crate::checks::{Answered, Check, Input, Need, Report, few};
use crate::plan::model::Severity;
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) const CHECK: Check = Check {
    id: "STO-08",
    severity: Severity::Warning,
    question: "Does a claim or a claim template ask for less than the volume holds?",
    needs: &[Need::Blue],
    answered: Answered::Plan,
    remedy: "Use the size of the claim's status on green: raise the request, and the template's.",
    source: "checks.md STO-08",
    run,
};

fn requested(v: &Value) -> Option<&str> {
    text(v, "/spec/resources/requests/storage")
}

fn run(i: &Input, r: &mut Report) {
    let claims: BTreeMap<String, (&str, &Value)> = i
        .of_kind("PersistentVolumeClaim")
        .map(|o| (o.key(), (o.name.as_str(), o.object)))
        .collect();
    let mut small: BTreeMap<String, String> = BTreeMap::new();
    let less = |asked: Option<&str>, claim: &Value| -> Option<(String, String)> {
        let (asked, has) = (asked?, text(claim, "/status/capacity/storage")?);
        (bytes(asked)? < bytes(has)?).then(|| (asked.into(), has.into()))
    };
    for (name, claim) in claims.values() {
        if let Some((asked, has)) = less(requested(claim), claim) {
            small.insert(
                name.to_string(),
                format!("{name} (asks for {asked}, has {has})"),
            );
        }
    }
    for o in i.moving(&["StatefulSet"]) {
        let ns = o.id.namespace.as_deref().unwrap_or("");
        for t in items(o.object, "/spec/volumeClaimTemplates") {
            let prefix = format!(
                "{ns}/{}-{}-",
                text(t, "/metadata/name").unwrap_or(""),
                o.id.name
            );
            let largest = claims
                .range(prefix.clone()..)
                .take_while(|(k, _)| k.starts_with(&prefix))
                .filter(|(k, _)| k[prefix.len()..].parse::<u32>().is_ok())
                .find_map(|(_, (_, claim))| less(requested(t), claim));
            if let Some((asked, has)) = largest {
                small.insert(
                    o.name.clone(),
                    format!("{} (template asks for {asked}, a claim has {has})", o.name),
                );
            }
        }
    }
    if let Some(first) = small.keys().next() {
        let all: Vec<&String> = small.values().collect();
        r.found(
            first.clone(),
            format!(
                "{} with a smaller request than its volume: {}",
                count(all.len(), "object"),
                few(&all)
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::Warning;
    use crate::snapshot::model::Snapshot;
    use serde_json::json;

    fn store(template: &str, asked: &str, has: &str) -> Snapshot {
        let mut set = workload("StatefulSet", "db", "db:1", json!({}));
        set["spec"]["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": template}}}}]);
        with(vec![
            set,
            object(
                "v1",
                "PersistentVolumeClaim",
                "data-db-0",
                json!({"spec": {"resources": {"requests": {"storage": asked}}}, "status": {"capacity": {"storage": has}}}),
            ),
        ])
    }

    #[test]
    fn a_template_and_a_claim_that_ask_for_less_than_there_is_are_named() {
        fires(
            &spec(),
            &store("10Gi", "50Gi", "50Gi"),
            "STO-08",
            Warning,
            "template asks for 10Gi, a claim has 50Gi",
        );
        fires(
            &spec(),
            &store("50Gi", "10Gi", "50Gi"),
            "STO-08",
            Warning,
            "data-db-0 (asks for 10Gi, has 50Gi)",
        );
    }

    #[test]
    fn equal_sizes_in_other_words_are_fine() {
        silent(&spec(), &store("1Gi", "1024Mi", "1Gi"), "STO-08");
    }
}
