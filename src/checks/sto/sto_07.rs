//! STO-07: keys of encrypted volumes. The managed policy of the EBS driver grants no KMS at all (eks.md 4): the plan gives the driver's role
//! what it needs of keys of the account, which counts as far as the key's own policy trusts the account. Other keys need their owner.

use super::volumes::{self, EBS, Source};
use crate::checks::look::{count, text};
use crate::checks::{Answered, Check, Input, Need, Part, Report, few};
use crate::plan::model::Severity;
use crate::world::cloud::Key;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const CHECK: Check = Check {
    id: "STO-07",
    severity: Severity::Blocker,
    question: "May green's roles use the keys of encrypted volumes and classes?",
    needs: &[Need::Blue],
    answered: Answered::Plan,
    remedy: "Let green's role of the EBS driver use the key (kms:CreateGrant, Encrypt, Decrypt, ReEncrypt*, GenerateDataKey*, DescribeKey) in its key policy; a waiver with the statement answers it.",
    source: "checks.md STO-07",
    run,
};

fn run(i: &Input, r: &mut Report) {
    let region = i.cx.region.as_str();
    let mut keys: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for o in i.moving(&["StorageClass"]) {
        let key = text(o.object, "/parameters/kmsKeyId");
        if let Some(key) = key.filter(|k| !k.is_empty() && *k != "alias/aws/ebs") {
            keys.entry(key.into()).or_default().insert(o.name.clone());
        }
    }
    for (key, objects) in &keys {
        let all: Vec<&String> = objects.iter().collect();
        let mut arn = key.split(':').skip(3);
        let (of, account) = (arn.next().unwrap_or(""), arn.next().unwrap_or(""));
        let own = i.snapshot.aws.as_ref().map(|a| a.identity.account.as_str());
        let what = if !of.is_empty() && !region.is_empty() && of != region {
            format!("is in {of}, green is in {region}: it cannot be used there")
        } else if !account.is_empty() && own.is_some_and(|o| o != account) {
            format!(
                "is of account {account}: its policy there must let the role {} in",
                role(i)
            )
        } else if fact(i, key).is_some_and(|k| !trusts_account(k, &role(i))) {
            format!(
                "trusts neither its account nor the role {} in its policy: what the role's own policy says does not count",
                role(i)
            )
        } else if allowed(i, key) {
            continue;
        } else {
            format!(
                "is a customer key, and the role {} has no right to it",
                role(i)
            )
        };
        r.found(
            all[0].clone(),
            format!(
                "key {key} {what}; named by {}: {}",
                count(all.len(), "class"),
                few(&all)
            ),
        );
    }
    // Volumes: an ARN does not tell AWS's own key from a customer's.
    let handles: BTreeMap<String, &str> = volumes::all(i)
        .into_iter()
        .filter(|v| v.object.moves())
        .filter_map(|v| match v.source {
            Source::Csi(d, h) if d == EBS => Some((h, v.object.name.as_str())),
            _ => None,
        })
        .collect();
    if handles.is_empty() {
        return;
    }
    let Some(listed) = i.snapshot.aws.as_ref().and_then(|a| a.volumes.as_ref()) else {
        let (what, how) = Need::Part(Part::Volumes).words();
        r.not_checked("volumes", what, how);
        return;
    };
    let mut unknown: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for v in listed.iter().filter(|v| v.encrypted) {
        if let (Some(name), Some(key)) = (handles.get(&v.id), v.kms_key.as_deref())
            && !keys.contains_key(key)
            && !allowed(i, key)
            && fact(i, key).is_none_or(|k| k.manager != "AWS")
        {
            unknown.entry(key).or_default().push(name);
        }
    }
    for (key, names) in unknown {
        r.not_checked(
            names[0],
            &format!(
                "whether {key} is AWS's own key for EBS or a customer key, used by {}: {}",
                count(names.len(), "volume"),
                few(&names)
            ),
            format!(
                "Look with `aws kms describe-key`: KeyManager AWS is fine. {}",
                CHECK.remedy
            ),
        );
    }
}

/// Service account of the EBS driver.
const DRIVER: &str = "kube-system/ebs-csi-controller-sa";

/// The role that green's driver gets.
fn role(i: &Input) -> String {
    i.target
        .roles
        .iter()
        .find(|r| r.service_account.as_deref() == Some(DRIVER))
        .map_or_else(
            || format!("{}-ebs-csi", i.spec.green.name),
            |r| r.name.clone(),
        )
}

/// What was read of a key.
fn fact<'a>(i: &'a Input, key: &str) -> Option<&'a Key> {
    let keys = i.snapshot.aws.as_ref()?.keys.as_ref()?;
    keys.get(key)
        .or_else(|| keys.values().find(|k| k.arn == key))
}

/// Whether a key's policy leaves the decision to policies of its account, or names the role; a policy that was not readable is taken to.
fn trusts_account(key: &Key, role: &str) -> bool {
    key.policy.as_ref().is_none_or(|p| {
        let text = p.to_string();
        text.contains(":root\"") || text.contains(&format!("/{role}\""))
    })
}

/// Whether an inline policy of that role names the key: as planned, or as the account has it already.
fn allowed(i: &Input, key: &str) -> bool {
    let name = role(i);
    let planned = i
        .target
        .roles
        .iter()
        .filter(|r| r.name == name)
        .flat_map(|r| r.inline_policies.values());
    let there = i
        .snapshot
        .aws
        .iter()
        .flat_map(|a| &a.roles)
        .filter(|r| r.name == name)
        .flat_map(|r| r.inline_policies.values());
    planned.chain(there).any(|p| p.to_string().contains(key))
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::{Blocker, NotChecked};
    use crate::world::cloud::{Key, Volume};
    use serde_json::json;

    const KEY: &str = "arn:aws:kms:eu-west-1:000000000000:key/1";

    #[test]
    fn the_drivers_role_gets_the_accounts_own_keys_and_other_keys_need_their_owner() {
        let class = |key: &str| {
            with(vec![object(
                "storage.k8s.io/v1",
                "StorageClass",
                "secret",
                json!({"provisioner": "ebs.csi.aws.com", "volumeBindingMode": "WaitForFirstConsumer", "parameters": {"encrypted": "true", "kmsKeyId": key}}),
            )])
        };
        let mut s = class(KEY);
        silent(&spec(), &s, "STO-07");
        let plan = crate::plan::plan(&spec(), &s);
        let role = plan
            .target
            .roles
            .iter()
            .find(|r| r.name.contains("ebs-csi"))
            .expect("the EBS driver has a role");
        assert!(role.inline_policies["keys"].to_string().contains(KEY));
        // A key whose policy trusts nobody of the account: the role's own policy is worth nothing.
        if let Some(a) = &mut s.aws {
            let key = Key {
                arn: KEY.into(),
                state: "Enabled".into(),
                manager: "CUSTOMER".into(),
                spec: "SYMMETRIC_DEFAULT".into(),
                policy: Some(
                    json!({"Statement": [{"Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::000000000000:role/vault-admin"}, "Action": "kms:*", "Resource": "*"}]}),
                ),
                ..Key::default()
            };
            a.keys = Some([(KEY.to_string(), key)].into());
        }
        fires(&spec(), &s, "STO-07", Blocker, "does not count");
        for (key, why) in [
            (
                "arn:aws:kms:eu-west-1:111111111111:key/1",
                "account 111111111111",
            ),
            (
                "arn:aws:kms:us-east-1:000000000000:key/1",
                "is in us-east-1",
            ),
            ("alias/secret", "has no right to it"),
        ] {
            fires(&spec(), &class(key), "STO-07", Blocker, why);
        }
    }

    #[test]
    fn the_key_of_a_volume_is_asked_about_and_a_plain_volume_is_fine() {
        let mut s = with(vec![object(
            "v1",
            "PersistentVolume",
            "pv-1",
            json!({"spec": {"awsElasticBlockStore": {"volumeID": "vol-1"}}}),
        )]);
        fires(
            &spec(),
            &s,
            "STO-07",
            NotChecked,
            "EBS volumes were not read",
        );
        let mut v = Volume {
            id: "vol-1".into(),
            zone: "eu-west-1a".into(),
            size_gib: 1,
            kind: "gp2".into(),
            encrypted: true,
            kms_key: Some(KEY.into()),
            attached_to: None,
            tags: Default::default(),
        };
        if let Some(a) = &mut s.aws {
            a.volumes = Some(vec![v.clone()]);
        }
        fires(&spec(), &s, "STO-07", NotChecked, "persistentvolume/pv-1");
        v.encrypted = false;
        if let Some(a) = &mut s.aws {
            a.volumes = Some(vec![v]);
        }
        silent(&spec(), &s, "STO-07");
    }
}
