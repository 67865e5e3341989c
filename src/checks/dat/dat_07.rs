//! DAT-07: files that are copied while they change: whether the last copy ends depends on how much changes in an hour (S24). Nothing that
//! crossfade reads tells.

use super::stores::{declared, stores};
use crate::checks::look::count;
use crate::checks::{Answered, Check, Input, Need, Report, few};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "DAT-07",
    severity: Severity::Warning,
    question: "Was it measured how much changes in the files that are copied, and at what rate they can be?",
    needs: &[Need::Blue],
    answered: Answered::Person,
    remedy: "Run the copy twice, an hour apart, and write down how long the second took.",
    source: "checks.md DAT-07",
    run,
};

fn run(i: &Input, r: &mut Report) {
    // A data set streams its changes; and a file system that both sides mount is not copied.
    let shared: Vec<String> = i
        .of_kind("PersistentVolumeClaim")
        .filter(|o| {
            o.object
                .pointer("/spec/accessModes")
                .is_some_and(|m| m.to_string().contains("ReadWriteMany"))
        })
        .map(|o| o.key())
        .collect();
    let copied: Vec<&str> = stores(i)
        .into_iter()
        .filter(|s| !declared(i, &s.object.id.name))
        .filter(|s| !s.claims.iter().all(|c| shared.contains(c)))
        .map(|s| s.object.name.as_str())
        .collect();
    if !copied.is_empty() {
        r.ask(
            copied[0],
            format!(
                "how much changes in an hour in the volumes of {}: {}",
                count(copied.len(), "workload"),
                few(&copied)
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::NotChecked;
    use serde_json::json;

    #[test]
    fn files_in_a_volume_are_asked_about_and_a_file_system_of_both_sides_is_not() {
        let app = || {
            workload(
                "Deployment",
                "uploads",
                "app:1",
                json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "files"}}]}),
            )
        };
        let claim = |mode: &str| {
            object(
                "v1",
                "PersistentVolumeClaim",
                "files",
                json!({"spec": {"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}}}),
            )
        };
        fires(
            &spec(),
            &with(vec![app(), claim("ReadWriteOnce")]),
            "DAT-07",
            NotChecked,
            "deployment/web/uploads",
        );
        silent(
            &spec(),
            &with(vec![app(), claim("ReadWriteMany")]),
            "DAT-07",
        );
    }
}
