//! Alerting rules of Prometheus: PrometheusRule objects, and rule files in ConfigMaps.

use crate::checks::look::{items, text};
use crate::checks::{BlueObject, Input};
use crate::yaml;
use serde_json::Value;

/// A rule.
pub(super) struct Rule<'a> {
    /// Object that holds it.
    pub object: &'a BlueObject<'a>,
    /// Name of the alert or of the recorded series.
    pub name: String,
    /// An alert, no recording rule.
    pub alert: bool,
    /// Expression.
    pub expr: String,
    /// Label `severity`.
    pub severity: String,
}

fn of_groups<'a>(object: &'a BlueObject<'a>, groups: &Value, out: &mut Vec<Rule<'a>>) {
    for rule in items(groups, "/groups").flat_map(|g| items(g, "/rules")) {
        let alert = text(rule, "/alert");
        let expr = match rule.get("expr") {
            Some(Value::String(s)) => s.clone(),
            Some(v) => v.to_string(),
            None => continue,
        };
        out.push(Rule {
            object,
            name: alert.or(text(rule, "/record")).unwrap_or("?").to_string(),
            alert: alert.is_some(),
            expr,
            severity: text(rule, "/labels/severity").unwrap_or("").to_lowercase(),
        });
    }
}

/// All rules that go to green.
pub(super) fn rules<'a>(i: &Input<'a>) -> Vec<Rule<'a>> {
    let mut out = vec![];
    for o in i.moving(&["PrometheusRule"]) {
        if let Some(spec) = o.object.get("spec") {
            of_groups(o, spec, &mut out);
        }
    }
    for o in i.moving(&["ConfigMap"]) {
        for (key, value) in o
            .object
            .get("data")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            let Some(value) = value.as_str() else {
                continue;
            };
            // Cheap words first: most ConfigMaps hold no rules.
            if !(value.contains("groups:") && value.contains("expr:")) {
                continue;
            }
            for (document, _) in yaml::manifests(value, key).into_iter().flatten() {
                of_groups(o, &document, &mut out);
            }
        }
    }
    out
}
