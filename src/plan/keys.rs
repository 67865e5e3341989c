//! KMS keys of the customer: who must be allowed to use which, and whether he is (eks.md 1.2, 1.3, 4).

use super::model::{Finding, Severity, Target};
use crate::rewrite::partition;
use crate::snapshot::model::Snapshot;
use crate::spec::model::Spec;
use crate::world::cloud::Key;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Starts the instances of managed node groups, and so creates their volumes.
const AUTO_SCALING: &str =
    "role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling";
/// What EBS needs of a key for a volume that is attached to an instance (EC2 Auto Scaling's guide on encrypted volumes).
const OPERATIONS: &[&str] = &[
    "CreateGrant",
    "Decrypt",
    "DescribeKey",
    "Encrypt",
    "GenerateDataKey",
    "GenerateDataKeyWithoutPlaintext",
    "ReEncryptFrom",
    "ReEncryptTo",
];

/// What the EBS driver must be allowed to do with keys that storage classes or volumes of blue name (eks.md 1.3); `None`: with none.
pub(super) fn of_volumes(snapshot: &Snapshot, region: &str) -> Option<Value> {
    let keys = snapshot.aws.as_ref().and_then(|a| a.keys.as_ref());
    let mut arns: BTreeSet<String> = BTreeSet::new();
    for name in class_keys(snapshot) {
        let known = keys.and_then(|k| k.get(&name)).map(|k| k.arn.clone());
        match known {
            Some(arn) => arns.insert(arn),
            None if name.starts_with("arn:") && name.contains(":key/") => arns.insert(name),
            // A policy names keys, not aliases: STO-07 says so.
            None if name.contains("alias/") => false,
            None => arns.insert(format!(
                "arn:{}:kms:{region}:${{account}}:key/{name}",
                partition(region)
            )),
        };
    }
    // AWS's own key for EBS is open to whoever may use EBS.
    for volume in snapshot.aws.iter().flat_map(|a| a.volumes.iter().flatten()) {
        let key = volume.kms_key.as_ref().and_then(|k| keys?.get(k));
        arns.extend(
            key.filter(|k| k.manager == "CUSTOMER")
                .map(|k| k.arn.clone()),
        );
    }
    if arns.is_empty() {
        return None;
    }
    let arns: Vec<String> = arns.into_iter().collect();
    Some(json!({"Version": "2012-10-17", "Statement": [
        {"Sid": "Attach", "Effect": "Allow", "Action": ["kms:CreateGrant", "kms:ListGrants", "kms:RevokeGrant"],
            "Resource": arns, "Condition": {"Bool": {"kms:GrantIsForAWSResource": "true"}}},
        {"Sid": "Use", "Effect": "Allow", "Action": ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey*", "kms:ReEncrypt*"],
            "Resource": arns}
    ]}))
}

/// Keys that storage classes of EBS name.
fn class_keys(snapshot: &Snapshot) -> BTreeSet<String> {
    snapshot
        .blue
        .of_kind("StorageClass")
        .filter(|c| {
            matches!(
                c["provisioner"].as_str(),
                Some("kubernetes.io/aws-ebs" | "ebs.csi.aws.com")
            )
        })
        .filter_map(|c| c.pointer("/parameters/kmsKeyId")?.as_str())
        .filter(|k| !k.is_empty())
        .map(String::from)
        .collect()
}

/// Findings of all keys that green uses.
pub(super) fn findings(spec: &Spec, snapshot: &Snapshot, target: &Target) -> Vec<Finding> {
    let mut out = vec![];
    let mut say = |severity: Severity, object: &str, message: String, remedy: String| {
        out.push(Finding {
            id: "EKS-key".into(),
            severity,
            object: object.into(),
            message,
            remedy,
            source: "eks.md 1.2, 4".into(),
            waived: None,
        });
    };
    let keys = snapshot.aws.as_ref().and_then(|a| a.keys.as_ref());
    let plane = &spec.green.control_plane;
    if let Some(name) = &plane.secrets_key {
        let object = "green.controlPlane.secretsKey";
        let region = name.split(':').nth(3).unwrap_or("");
        if !target.cluster.region.is_empty() && region != target.cluster.region {
            say(
                Severity::Blocker,
                object,
                format!("the key is in {region}, green in {}", target.cluster.region),
                "Name a key of green's region.".into(),
            );
        }
        match fact(keys, name) {
            Fact::NotRead => say(
                Severity::NotChecked,
                object,
                format!("{name} was not read: whether EKS can use it is not known"),
                "Run discover with this migration.yaml and with kms:DescribeKey.".into(),
            ),
            Fact::Absent => say(
                Severity::Blocker,
                object,
                format!("{name} is not there, or not visible to the caller"),
                "Correct the ARN; crossfade makes no keys.".into(),
            ),
            Fact::Known(key) => {
                if let Some(why) = unusable(key) {
                    say(Severity::Blocker, object, why, "Name another key.".into());
                }
            }
        }
    }
    let mut named: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for group in &target.node_groups {
        let template = &group.launch_template;
        for disk in std::iter::once(&template.root).chain(&template.volumes) {
            if let Some(key) = &disk.kms_key {
                named.entry(key).or_default().insert(&group.name);
            }
        }
    }
    let account = spec.aws.account.as_deref().unwrap_or("ACCOUNT");
    let who = format!(
        "arn:{}:iam::{account}:{AUTO_SCALING}",
        partition(&target.cluster.region)
    );
    for (name, groups) in named {
        let object = format!("key/{name}");
        let groups: Vec<&str> = groups.into_iter().collect();
        let remedy = format!(
            "aws kms create-grant --key-id {name} --grantee-principal {who} --operations {}",
            OPERATIONS.join(" ")
        );
        match fact(keys, name) {
            Fact::NotRead => say(
                Severity::NotChecked,
                &object,
                format!(
                    "volumes of {} are encrypted with it, and it was not read: without leave for {AUTO_SCALING} no node starts",
                    groups.join(", ")
                ),
                format!(
                    "Run discover with this migration.yaml and with kms:DescribeKey, kms:GetKeyPolicy and kms:ListGrants; or see to it: {remedy}"
                ),
            ),
            Fact::Absent => say(
                Severity::Blocker,
                &object,
                format!(
                    "volumes of {} are to be encrypted with it, and it is not there, or not visible to the caller",
                    groups.join(", ")
                ),
                "Correct the key on blue or under green.nodes.volumeKey.".into(),
            ),
            Fact::Known(key) => {
                if let Some(why) = unusable(key) {
                    say(Severity::Blocker, &object, why, "Name another key.".into());
                } else if key.manager != "AWS" && !lets_in(key, &who) {
                    let (severity, but) = match key.policy {
                        Some(_) => (Severity::Blocker, ""),
                        None => (Severity::Warning, " (its policy was not readable)"),
                    };
                    say(
                        severity,
                        &object,
                        format!(
                            "volumes of {} are encrypted with it, and neither its policy nor a grant lets {AUTO_SCALING} use it{but}: no node would start",
                            groups.join(", ")
                        ),
                        format!("{remedy}, then discover again."),
                    );
                }
            }
        }
    }
    out
}

enum Fact<'a> {
    NotRead,
    Absent,
    Known(&'a Key),
}

fn fact<'a>(keys: Option<&'a BTreeMap<String, Key>>, name: &str) -> Fact<'a> {
    match keys {
        None => Fact::NotRead,
        // The same key may be known by another of its names.
        Some(all) => match all
            .get(name)
            .or_else(|| all.values().find(|k| k.arn == name))
        {
            Some(key) => Fact::Known(key),
            None => Fact::Absent,
        },
    }
}

fn unusable(key: &Key) -> Option<String> {
    if !key.state.is_empty() && key.state != "Enabled" {
        return Some(format!("{} is {}", key.arn, key.state));
    }
    (!key.spec.is_empty() && key.spec != "SYMMETRIC_DEFAULT").then(|| {
        format!(
            "{} is of type {}: EKS and EBS take symmetric keys only",
            key.arn, key.spec
        )
    })
}

/// Whether a key's policy or a grant lets a principal use it. The account's root in a policy only passes the question on to the
/// principal's own policies, and a service-linked role has none about KMS.
fn lets_in(key: &Key, who: &str) -> bool {
    if key
        .grants
        .get(who)
        .is_some_and(|ops| OPERATIONS.iter().all(|o| ops.iter().any(|x| x == o)))
    {
        return true;
    }
    let statements = match key.policy.as_ref().map(|p| &p["Statement"]) {
        Some(Value::Array(list)) => list.iter().collect(),
        Some(one @ Value::Object(_)) => vec![one],
        _ => vec![],
    };
    statements.into_iter().any(|s| {
        let principals = match &s["Principal"] {
            Value::String(all) => vec![all.as_str()],
            p => match &p["AWS"] {
                Value::String(one) => vec![one.as_str()],
                Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
                _ => vec![],
            },
        };
        s["Effect"] == "Allow"
            && principals.iter().any(|p| *p == who || *p == "*")
            && actions(s)
                .iter()
                .any(|a| *a == "kms:*" || a.starts_with("kms:GenerateDataKey"))
    })
}

fn actions(statement: &Value) -> Vec<&str> {
    match &statement["Action"] {
        Value::String(one) => vec![one],
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        _ => vec![],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHO: &str = "arn:aws:iam::000000000000:role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling";

    fn key(policy: Value) -> Key {
        Key {
            arn: "arn:aws:kms:eu-west-1:000000000000:key/k".into(),
            state: "Enabled".into(),
            manager: "CUSTOMER".into(),
            spec: "SYMMETRIC_DEFAULT".into(),
            policy: Some(policy),
            ..Key::default()
        }
    }

    #[test]
    fn a_policy_that_trusts_the_account_lets_no_service_linked_role_in_and_a_grant_does() {
        let root = json!({"Statement": [{"Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::000000000000:root"}, "Action": "kms:*", "Resource": "*"}]});
        let mut k = key(root);
        assert!(!lets_in(&k, WHO));
        k.grants
            .insert(WHO.into(), vec!["Decrypt".into(), "DescribeKey".into()]);
        assert!(!lets_in(&k, WHO), "a grant for reading makes no volume");
        k.grants.insert(
            WHO.into(),
            OPERATIONS.iter().map(|o| o.to_string()).collect(),
        );
        assert!(lets_in(&k, WHO));
        let named = json!({"Statement": {"Effect": "Allow", "Principal": {"AWS": [WHO]}, "Action": ["kms:Decrypt", "kms:GenerateDataKey*"], "Resource": "*"}});
        assert!(lets_in(&key(named), WHO));
    }

    #[test]
    fn a_key_that_is_about_to_go_or_signs_is_no_key_for_a_cluster() {
        let mut k = key(json!({}));
        assert_eq!(unusable(&k), None);
        k.spec = "RSA_2048".into();
        assert!(unusable(&k).unwrap().contains("RSA_2048"));
        k.state = "PendingDeletion".into();
        assert!(unusable(&k).unwrap().ends_with("is PendingDeletion"));
    }

    #[test]
    fn the_ebs_driver_may_use_the_keys_of_classes_and_of_customers_volumes_only() {
        let mut s = Snapshot::default();
        assert_eq!(of_volumes(&s, "eu-west-1"), None);
        s.blue.objects.push(json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "vault"},
            "provisioner": "kubernetes.io/aws-ebs", "parameters": {"encrypted": "true", "kmsKeyId": "1234"}}));
        s.blue.objects.push(json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "nfs"},
            "provisioner": "nfs.csi.k8s.io", "parameters": {"kmsKeyId": "not-of-ebs"}}));
        let volume = |id: &str, key: &str| crate::world::cloud::Volume {
            id: id.into(),
            zone: "eu-west-1a".into(),
            size_gib: 8,
            kind: "gp3".into(),
            encrypted: true,
            kms_key: Some(key.into()),
            attached_to: None,
            tags: BTreeMap::new(),
        };
        let of_aws = Key {
            manager: "AWS".into(),
            arn: "arn:aws:kms:eu-west-1:000000000000:key/ebs".into(),
            ..key(json!({}))
        };
        s.aws = Some(crate::world::cloud::Inventory {
            volumes: Some(vec![volume("vol-1", "k"), volume("vol-2", "ebs")]),
            keys: Some(
                [
                    ("k".to_string(), key(json!({}))),
                    ("ebs".to_string(), of_aws),
                ]
                .into(),
            ),
            ..Default::default()
        });
        let policy = of_volumes(&s, "eu-west-1").unwrap();
        assert_eq!(
            policy["Statement"][1]["Resource"],
            json!([
                "arn:aws:kms:eu-west-1:${account}:key/1234",
                "arn:aws:kms:eu-west-1:000000000000:key/k"
            ])
        );
        assert_eq!(
            policy["Statement"][0]["Condition"],
            json!({"Bool": {"kms:GrantIsForAWSResource": "true"}}),
            "grants for EBS, for nobody else"
        );
    }
}
