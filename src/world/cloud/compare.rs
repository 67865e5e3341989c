//! Whether what is there is what was asked for, field by field: one rule for the plan, for both worlds and for a run.

use super::{Existing, Found, RUN_TAG, Resource};
use crate::object::sha256_hex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// In an inventory, user data is only its hash: it often holds secrets.
pub const HASHED: &str = "sha256:";

/// A field in which what is there differs from what is asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Difference {
    /// Field, as in `instanceTypes`.
    pub field: String,
    /// What is there.
    pub have: String,
    /// What is asked for.
    pub want: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}: {} instead of {}",
            self.field,
            short(&self.have),
            short(&self.want)
        )
    }
}

/// Lists in which AWS keeps no order.
const SETS: &[&str] = &[
    "subnets",
    "instanceTypes",
    "managedPolicies",
    "clientIds",
    "groups",
    "taints",
    "endpointCidrs",
    "namespaces",
    "securityGroups",
    "volumes",
    "logging",
];

/// Policy documents: IAM takes a list of one for the one.
const POLICIES: &[&str] = &["trust", "inlinePolicies", "statement"];

/// Choices that are AWS's when we make none.
const CHOICES: &[(&str, &str)] = &[
    ("addon", "version"),
    ("cluster", "serviceCidr"),
    // What may be taken away is said; what was added besides is more than we asked for, not less.
    ("cluster", "logging"),
    ("log-group", "retentionDays"),
    ("node-group", "maxUnavailable"),
];

/// The fields in which `have` differs from `want`; empty when it is what was asked for. A node group's size of the moment
/// does not count (an autoscaler moves it), nor does the order of lists in which AWS keeps none.
pub fn differences(have: &Resource, want: &Resource) -> Vec<Difference> {
    let (mut a, mut b) = (plain(have), plain(want));
    let kind = b
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or("")
        .to_owned();
    // Neither the way of a create nor the leave to create is told back.
    let mut left_out = vec!["desired", "conflicts", "create"];
    for (of, field) in CHOICES {
        if *of == kind && b.get(*field).is_none_or(Value::is_null) {
            left_out.push(field);
        }
    }
    if b.get("launchTemplate").is_some_and(|t| !t.is_null()) {
        left_out.push("diskGib");
    }
    if kind == "cluster" && b.get("publicEndpoint") == Some(&Value::Bool(false)) {
        left_out.push("endpointCidrs");
    }
    for field in left_out {
        a.remove(field);
        b.remove(field);
    }
    let fields: BTreeSet<String> = a.keys().chain(b.keys()).cloned().collect();
    fields
        .into_iter()
        .filter_map(|field| {
            let (x, y) = (a.get(&field), b.get(&field));
            (x != y).then(|| Difference {
                have: text(x, y, &field),
                want: text(y, x, &field),
                field,
            })
        })
        .collect()
}

/// Fields in a normal form; what says nothing (null, an empty list or map) is dropped.
fn plain(r: &Resource) -> Map<String, Value> {
    let Ok(Value::Object(mut m)) = serde_json::to_value(r) else {
        return Map::new();
    };
    for (field, value) in &mut m {
        if SETS.contains(&field.as_str())
            && let Some(list) = value.as_array_mut()
        {
            list.sort_by_key(Value::to_string);
            // EKS writes "everybody" as 0.0.0.0/0, and ::/0 besides in a cluster of IPv6 (eks.md 1.2).
            if field == "endpointCidrs" && list.iter().all(|c| c == "0.0.0.0/0" || c == "::/0") {
                list.clear();
            }
        }
        if POLICIES.contains(&field.as_str()) {
            one_for_a_list_of_one(value);
        }
        if field == "userData"
            && let Some(text) = value.as_str()
            && !text.starts_with(HASHED)
        {
            *value = Value::String(hashed(text));
        }
    }
    m.retain(|_, v| match v {
        Value::Null => false,
        Value::Array(a) => !a.is_empty(),
        Value::Object(o) => !o.is_empty(),
        _ => true,
    });
    m
}

/// User data as an inventory keeps it.
pub fn hashed(user_data: &str) -> String {
    format!("{HASHED}{}", sha256_hex(user_data))
}

fn one_for_a_list_of_one(value: &mut Value) {
    match value {
        Value::Array(list) => {
            list.iter_mut().for_each(one_for_a_list_of_one);
            if list.len() == 1 {
                *value = list.remove(0);
            }
        }
        Value::Object(m) => m.values_mut().for_each(one_for_a_list_of_one),
        _ => {}
    }
}

/// What a field says; of one that is left out for being what it usually is, that.
fn text(value: Option<&Value>, other: Option<&Value>, field: &str) -> String {
    match value {
        None if field == "supportType" => "STANDARD".into(),
        None => match other.and_then(Value::as_bool) {
            Some(on) => (!on).to_string(),
            None => "nothing".into(),
        },
        Some(Value::String(s)) => s.clone(),
        Some(v) => v.to_string(),
    }
}

/// For people: at most 120 characters.
fn short(text: &str) -> String {
    if text.chars().count() <= 120 {
        return text.into();
    }
    format!("{}...", text.chars().take(117).collect::<String>())
}

impl Existing {
    /// In what it differs from what is asked for, what crossfade never makes included.
    pub fn differences(&self, want: &Resource) -> Vec<Difference> {
        let mut out = differences(&self.resource, want);
        out.extend(self.extras.iter().map(|extra| Difference {
            field: "besides".into(),
            have: extra.clone(),
            want: "nothing".into(),
        }));
        out
    }

    /// As `find` answers.
    pub fn found(self, want: &Resource) -> Found {
        let differences = self.differences(want);
        Found {
            status: self.status,
            run: self.tags.get(RUN_TAG).cloned(),
            equal: differences.is_empty(),
            differences,
            attributes: self.attributes,
            created: self.now.created,
            issues: self.now.issues,
            doing: self.now.doing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn group(change: Value) -> Resource {
        let mut v = json!({"type": "node-group", "cluster": "green", "name": "nodes", "roleArn": "arn:aws:iam::000000000000:role/n",
            "subnets": ["subnet-a", "subnet-b"], "instanceTypes": ["m5.large"], "amiType": "AL2023_x86_64_STANDARD", "capacityType": "SPOT",
            "min": 1, "max": 4, "desired": 2, "diskGib": 64, "labels": {}, "taints": []});
        v.as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        serde_json::from_value(v).unwrap()
    }

    #[test]
    fn a_node_group_that_an_autoscaler_moved_is_still_the_one_that_was_asked_for() {
        assert_eq!(
            differences(
                &group(json!({"desired": 4, "subnets": ["subnet-b", "subnet-a"]})),
                &group(json!({}))
            ),
            []
        );
    }

    #[test]
    fn a_difference_names_the_field_and_both_values() {
        let d = differences(&group(json!({"max": 9})), &group(json!({})));
        assert_eq!(d.len(), 1);
        assert_eq!(d[0].to_string(), "max: 9 instead of 4");
        let d = differences(
            &group(json!({})),
            &group(json!({"taints": [{"key": "gpu", "value": "", "effect": "NoSchedule"}]})),
        );
        assert!(
            d[0].to_string().starts_with("taints: nothing instead of"),
            "{d:?}"
        );
    }

    #[test]
    fn with_a_launch_template_the_groups_own_disk_size_says_nothing() {
        let with = |gib: u32| group(json!({"launchTemplate": "green-nodes", "diskGib": gib}));
        assert_eq!(differences(&with(0), &with(64)), []);
        assert_eq!(
            differences(&group(json!({})), &with(64))[0].to_string(),
            "launchTemplate: nothing instead of green-nodes"
        );
    }

    #[test]
    fn update_limits_that_nobody_asked_for_are_ekss_own() {
        let ten = group(json!({"maxUnavailable": "10%"}));
        assert_eq!(differences(&ten, &group(json!({}))), []);
        assert_eq!(differences(&group(json!({})), &ten).len(), 1);
    }

    #[test]
    fn what_a_cluster_has_besides_logs_is_told_in_words_that_say_what_is_there() {
        let protected = cluster(
            json!({"deletionProtection": true, "supportType": "EXTENDED", "logging": ["audit"]}),
        );
        let said: Vec<String> = differences(&protected, &cluster(json!({})))
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            said,
            [
                "deletionProtection: true instead of false",
                "supportType: EXTENDED instead of STANDARD"
            ],
            "more logs than we asked for are no difference"
        );
        let said = differences(&cluster(json!({})), &protected);
        assert_eq!(said.len(), 3, "logs that are missing are: {said:?}");
    }

    fn cluster(change: Value) -> Resource {
        let mut v = json!({"type": "cluster", "name": "green", "version": "1.35", "roleArn": "r", "subnets": ["a", "b"],
            "serviceCidr": null, "publicEndpoint": true, "privateEndpoint": true});
        v.as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        serde_json::from_value(v).unwrap()
    }

    #[test]
    fn everybody_may_be_written_as_no_list_and_a_closed_endpoint_has_none() {
        let all = cluster(json!({"endpointCidrs": ["0.0.0.0/0"]}));
        assert_eq!(differences(&all, &cluster(json!({}))), []);
        let some = cluster(json!({"endpointCidrs": ["198.51.100.0/24"]}));
        assert_eq!(differences(&all, &some).len(), 1);
        let closed = cluster(json!({"publicEndpoint": false}));
        assert_eq!(
            differences(
                &cluster(json!({"publicEndpoint": false, "endpointCidrs": ["198.51.100.0/24"]})),
                &closed
            ),
            []
        );
    }

    #[test]
    fn user_data_is_compared_by_its_hash_and_a_policy_written_shorter_is_the_same_policy() {
        let template = |user_data: &str| -> Resource {
            serde_json::from_value(json!({"type": "launch-template", "name": "green-nodes",
                "root": {"device": "/dev/xvda", "gib": 64, "kind": "gp3", "encrypted": true, "deleteOnTermination": true},
                "httpTokens": "required", "hopLimit": 1, "userData": user_data, "monitoring": false}))
            .unwrap()
        };
        assert_eq!(
            differences(&template(&hashed("#!/bin/sh")), &template("#!/bin/sh")),
            []
        );
        assert_eq!(
            differences(&template(&hashed("#!/bin/sh")), &template("#!/bin/bash")).len(),
            1
        );
        let role = |action: Value| -> Resource {
            serde_json::from_value(json!({"type": "role", "name": "n", "managedPolicies": [], "inlinePolicies": {},
                "trust": {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": action}]}}))
            .unwrap()
        };
        assert_eq!(
            differences(
                &role(json!("sts:AssumeRole")),
                &role(json!(["sts:AssumeRole"]))
            ),
            []
        );
    }

    #[test]
    fn what_crossfade_never_makes_is_a_difference_too() {
        let e = Existing {
            resource: group(json!({})),
            tags: [(RUN_TAG.to_owned(), "run-1".to_owned())].into(),
            status: super::super::Status::Ready,
            extras: vec!["image ami-1".into()],
            attributes: Default::default(),
            now: Default::default(),
        };
        let found = e.found(&group(json!({})));
        assert!(!found.equal);
        assert_eq!(found.run.as_deref(), Some("run-1"));
        assert_eq!(
            found.differences[0].to_string(),
            "besides: image ami-1 instead of nothing"
        );
    }
}
