//! Rules of `green.controlPlane`, `green.identity`, `green.nodes` and `aws.stateBucket`.

use super::*;

/// Log types of a cluster (eks.md 1.2).
const LOGS: &[&str] = &[
    "api",
    "audit",
    "authenticator",
    "controllerManager",
    "scheduler",
];
/// Days that CloudWatch takes for a log group (API reference of PutRetentionPolicy).
const DAYS: &[u32] = &[
    1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922,
    3288, 3653,
];
/// Security groups of a control plane: the quota, which cannot be raised (eks.md 1.6).
const GROUPS: usize = 4;

impl Checker<'_> {
    pub(super) fn control_plane(&self, spec: &Spec) -> Result<()> {
        let plane = &spec.green.control_plane;
        let at = |key: &'static str| ["green", "controlPlane", key];
        for (i, log) in plane.logs.iter().enumerate() {
            if !LOGS.contains(&log.as_str()) {
                let i = i.to_string();
                let near = yaml::nearest(log, LOGS.iter().copied())
                    .map(|n| format!("did you mean `{n}`? "))
                    .unwrap_or_default();
                return Err(self.refuse(
                    &["green", "controlPlane", "logs", &i],
                    format!("`{log}` is no log of a control plane"),
                    format!("{near}EKS has {}", LOGS.join(", ")),
                ));
            }
        }
        self.unique(&at("logs"), plane.logs.iter().map(String::as_str))?;
        if let Some(days) = plane.log_days {
            if !DAYS.contains(&days) {
                let next = DAYS.iter().find(|d| **d > days).copied().unwrap_or(3653);
                return Err(self.refuse(
                    &at("logDays"),
                    format!("CloudWatch keeps no logs for {days} days"),
                    format!("give {next}, or another of its steps: {}", list(DAYS)),
                ));
            }
            if plane.logs.is_empty() {
                return Err(self.refuse(
                    &at("logDays"),
                    "there are no logs to keep",
                    "name some under `green.controlPlane.logs`, or remove this line",
                ));
            }
        }
        if let Some(key) = &plane.secrets_key
            && !key_arn(key)
        {
            return Err(self.refuse(
                &at("secretsKey"),
                format!("`{key}` is no ARN of a KMS key"),
                "write it as arn:aws:kms:REGION:ACCOUNT:key/ID (no alias: EKS takes the key itself)",
            ));
        }
        if plane.security_groups.len() > GROUPS {
            return Err(self.refuse(
                &at("securityGroups"),
                format!("{} security groups", plane.security_groups.len()),
                format!("a control plane takes {GROUPS} at most"),
            ));
        }
        for (i, group) in plane.security_groups.iter().enumerate() {
            if !group.starts_with("sg-") {
                let i = i.to_string();
                return Err(self.refuse(
                    &["green", "controlPlane", "securityGroups", &i],
                    format!("`{group}` is no security group id"),
                    "write it as `sg-...`",
                ));
            }
        }
        self.unique(
            &at("securityGroups"),
            plane.security_groups.iter().map(String::as_str),
        )?;
        if let Some(key) = &spec.green.nodes.volume_key {
            self.not_empty(&["green", "nodes", "volumeKey"], key)?;
        }
        Ok(())
    }

    pub(super) fn identity(&self, spec: &Spec) -> Result<()> {
        for account in spec.green.identity.accounts.keys() {
            let good = account
                .split_once('/')
                .is_some_and(|(ns, name)| !ns.is_empty() && !name.is_empty());
            if !good || account.contains('*') {
                return Err(self.refuse(
                    &["green", "identity", "accounts", account],
                    format!("`{account}` names no service account"),
                    "write it as `namespace/name`, without patterns",
                ));
            }
        }
        Ok(())
    }

    pub(super) fn state_bucket(&self, spec: &Spec) -> Result<()> {
        let Some(bucket) = &spec.aws.state_bucket else {
            return Ok(());
        };
        let name = &bucket.name;
        // S3's rules for names of general purpose buckets.
        let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let good = (3..=63).contains(&name.len())
            && name.starts_with(edge)
            && name.ends_with(edge)
            && name.chars().all(|c| edge(c) || matches!(c, '-' | '.'))
            && !name.contains("..");
        if !good {
            return Err(self.refuse(
                &["aws", "stateBucket", "name"],
                format!("`{name}` cannot name a bucket"),
                "use 3 to 63 lower-case letters, digits, `-` and `.`, beginning and ending with a letter or digit (no s3:// in front)",
            ));
        }
        Ok(())
    }
}

fn key_arn(text: &str) -> bool {
    let parts: Vec<&str> = text.splitn(6, ':').collect();
    matches!(parts.as_slice(), ["arn", _, "kms", region, account, key]
        if !region.is_empty() && account.len() == 12 && key.starts_with("key/"))
}

fn list(days: &[u32]) -> String {
    let all: Vec<String> = days.iter().map(u32::to_string).collect();
    all.join(", ")
}
