//! STO-04: every class that a claim of green names exists there, once, with the same meaning. Single classes are judged by the rewrite.

use crate::checks::look::{count, items, text};
use crate::checks::{Answered, Check, Input, Need, Report, few};
use crate::object::annotation;
use crate::plan::model::Severity;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const CHECK: Check = Check {
    id: "STO-04",
    severity: Severity::Blocker,
    question: "Is a storage class without a counterpart on green, twice the default, or of one name with two meanings?",
    needs: &[Need::Blue],
    answered: Answered::Plan,
    remedy: "Map the class: give green one of that name, or change the claims on blue.",
    source: "checks.md STO-04",
    run,
};

const DEFAULT: &[&str] = &[
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];

fn run(i: &Input, r: &mut Report) {
    let classes = |v: &'_ [Value]| -> BTreeMap<String, Value> {
        v.iter()
            .filter(|o| o["kind"] == "StorageClass")
            .filter_map(|o| Some((text(o, "/metadata/name")?.to_string(), o.clone())))
            .collect()
    };
    let mut green = classes(i.generated);
    if let Some(g) = &i.snapshot.green {
        for (name, class) in classes(&g.objects) {
            green.entry(name).or_insert(class);
        }
    }
    let mut there: BTreeSet<String> = green.keys().cloned().collect();
    for o in i.moving(&["StorageClass"]) {
        there.insert(o.id.name.clone());
        let (Some(copy), Some(own)) = (o.on_green(), green.get(&o.id.name)) else {
            continue;
        };
        let differ: Vec<&str> = [
            "provisioner",
            "parameters",
            "volumeBindingMode",
            "allowedTopologies",
        ]
        .into_iter()
        .filter(|k| meaning(copy, k) != meaning(own, k))
        .collect();
        if !differ.is_empty() {
            r.found(
                &o.name,
                format!(
                    "green has a class of this name with another meaning ({})",
                    differ.join(", ")
                ),
            );
        }
    }
    let mut asked: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for o in i.moving(&["PersistentVolumeClaim", "StatefulSet"]) {
        let Some(v) = o.on_green() else { continue };
        let own =
            text(v, "/spec/storageClassName").filter(|_| o.id.kind == "PersistentVolumeClaim");
        let templates = items(v, "/spec/volumeClaimTemplates")
            .filter_map(|t| text(t, "/spec/storageClassName"));
        for class in own.into_iter().chain(templates) {
            // The empty class stands for static volumes.
            if !class.is_empty() && !there.contains(class) {
                asked.entry(class.into()).or_default().insert(&o.name);
            }
        }
    }
    for (class, objects) in asked {
        let all: Vec<&str> = objects.into_iter().collect();
        r.found(
            format!("storageclass/{class}"),
            format!(
                "green has no class {class}, which {} names: {}",
                count(all.len(), "object"),
                few(&all)
            ),
        );
    }
    let defaults: Vec<&str> = i
        .of_kind("StorageClass")
        .filter(|o| {
            DEFAULT
                .iter()
                .any(|k| annotation(o.object, k) == Some("true"))
        })
        .map(|o| o.id.name.as_str())
        .collect();
    if defaults.len() > 1 {
        r.warning(
            format!("storageclass/{}", defaults[0]),
            format!("blue has {} default classes ({}): claims without a class got whichever came first; on green they get gp3", defaults.len(), few(&defaults)),
            "Write the class into claims that need another one.",
        );
    }
}

/// A field with its default written out.
fn meaning(class: &Value, key: &str) -> Value {
    match (key, class.get(key)) {
        ("volumeBindingMode", None) => "Immediate".into(),
        (_, Some(v)) => v.clone(),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::{Blocker, Warning};
    use serde_json::{Value, json};

    fn claim(class: &str) -> Value {
        object(
            "v1",
            "PersistentVolumeClaim",
            "data",
            json!({"spec": {"storageClassName": class, "resources": {"requests": {"storage": "1Gi"}}}}),
        )
    }
    fn class(name: &str, body: Value) -> Value {
        object("storage.k8s.io/v1", "StorageClass", name, body)
    }

    #[test]
    fn a_class_that_nobody_makes_blocks_and_those_of_kops_are_mapped() {
        fires(
            &spec(),
            &with(vec![claim("fast")]),
            "STO-04",
            Blocker,
            "storageclass/fast",
        );
        silent(&spec(), &with(vec![claim("kops-ssd-1-17")]), "STO-04");
        let fast = class(
            "fast",
            json!({"provisioner": "ebs.csi.aws.com", "volumeBindingMode": "WaitForFirstConsumer"}),
        );
        silent(&spec(), &with(vec![claim("fast"), fast]), "STO-04");
    }

    #[test]
    fn a_gp3_of_blues_own_with_other_parameters_blocks() {
        let own = class(
            "gp3",
            json!({"provisioner": "ebs.csi.aws.com", "parameters": {"type": "gp3"}, "volumeBindingMode": "WaitForFirstConsumer"}),
        );
        fires(
            &spec(),
            &with(vec![own]),
            "STO-04",
            Blocker,
            "another meaning (parameters)",
        );
        let same = class(
            "gp3",
            json!({"provisioner": "ebs.csi.aws.com", "parameters": {"type": "gp3", "encrypted": "true"}, "volumeBindingMode": "WaitForFirstConsumer"}),
        );
        silent(&spec(), &with(vec![same]), "STO-04");
    }

    #[test]
    fn two_defaults_are_named() {
        let default = |name: &str| {
            class(
                name,
                json!({"provisioner": "ebs.csi.aws.com", "volumeBindingMode": "WaitForFirstConsumer",
            "metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}}),
            )
        };
        fires(
            &spec(),
            &with(vec![default("a"), default("b")]),
            "STO-04",
            Warning,
            "2 default classes (a, b)",
        );
    }
}
