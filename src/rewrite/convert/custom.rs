//! Rule 62: a custom resource is written in the version in which it was read, so its definition must come along and serve that version.

use super::super::work::Work;
use crate::plan::model::Severity;

pub(super) fn current(w: &mut Work) {
    let group = w.id.group().to_string();
    let built_in = group.is_empty() || group.ends_with(".k8s.io") || !group.contains('.');
    if built_in {
        return;
    }
    w.tidied(62);
    let version = w.object["apiVersion"]
        .as_str()
        .and_then(|v| v.rsplit('/').next())
        .unwrap_or("")
        .to_string();
    match w.cx.served.get(&(group.clone(), w.id.kind.clone())) {
        None if group.ends_with("cert-manager.io") => {}
        None => w.find(
            "API-02",
            Severity::Warning,
            62,
            format!(
                "no CustomResourceDefinition of {group}/{} was found on blue",
                w.id.kind
            ),
            "Install the CRD on green before the replay.",
        ),
        Some(served) if !served.is_empty() && !served.contains(&version) => {
            let list: Vec<&str> = served.iter().map(String::as_str).collect();
            w.find(
                "API-02",
                Severity::Blocker,
                62,
                format!(
                    "is read as {version}, but its CustomResourceDefinition serves only {}",
                    list.join(", ")
                ),
                "Read the object from blue in a version that is served, or serve that version again.",
            );
        }
        Some(_) => {}
    }
}
