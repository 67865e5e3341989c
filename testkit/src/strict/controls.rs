//! What a test may turn on: denied actions, a policy to live under, quotas, IAM's slowness, failures, throttling, small pages,
//! interfaces that linger, keys that cannot be used. Nothing of it is on by itself, except AWS's default quotas.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Strict, lock, permit};
use crate::error::{Error, Result};

/// What ends badly instead of well ([`Strict::fail_next`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fails {
    /// The cluster ends FAILED instead of ACTIVE (eks.md 1.2).
    Cluster,
    /// The node group ends CREATE_FAILED (eks.md 1.6).
    NodeGroup,
    /// The add-on ends CREATE_FAILED (eks.md 1.5).
    Addon,
    /// The add-on is installed and stays DEGRADED until it is updated or made again (eks.md 1.5).
    AddonHealth,
    /// The next update of the cluster, node group or add-on of that name ends Failed (eks.md 1.2).
    Update,
}

#[derive(Debug, Clone)]
struct Failure {
    what: Fails,
    name: String,
    code: String,
    message: String,
}

/// Why a KMS key cannot be used ([`Strict::break_key`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyTrouble {
    Absent,
    Disabled,
    PendingDeletion,
    /// The key policy does not let the service use it.
    Denied,
}

/// One reason why something is not healthy, as EKS shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Issue {
    pub code: String,
    pub message: String,
}

#[derive(Debug, Default)]
pub(crate) struct Controls {
    quotas: BTreeMap<String, u64>,
    pub iam_delay: Duration,
    failures: Vec<Failure>,
    pub page_size: Option<usize>,
    pub eni_linger: Duration,
    keys: BTreeMap<String, KeyTrouble>,
}

impl Controls {
    /// The value in force: what a test said, else AWS's default; `None` where the layer counts without a limit.
    pub fn quota(&self, code: &str) -> Option<u64> {
        self.quotas
            .get(code)
            .copied()
            .or_else(|| super::quotas::default_of(code))
    }

    /// The failure that meets this thing, once.
    pub fn take_failure(&mut self, what: Fails, name: &str) -> Option<Issue> {
        let at = self
            .failures
            .iter()
            .position(|f| f.what == what && (f.name == "*" || f.name == name))?;
        let failure = self.failures.remove(at);
        Some(Issue {
            code: failure.code,
            message: failure.message,
        })
    }

    /// Trouble with a key, by whichever of its names it is asked for.
    pub fn key_trouble(&self, key: &str) -> Option<KeyTrouble> {
        let last = |text: &str| text.rsplit(':').next().unwrap_or(text).to_owned();
        let bare = |text: &str| last(text).trim_start_matches("key/").to_owned();
        self.keys
            .iter()
            .find(|(k, _)| bare(k) == bare(key))
            .map(|(_, trouble)| *trouble)
    }
}

impl Strict {
    /// An explicit deny for this IAM action (`eks:CreateCluster`, `iam:*`): 403 in the words of that service, until [`Strict::allow_all`].
    /// Also denied where another call needs it: `iam:PassRole`, `eks:TagResource`, `ec2:CreateTags`, `iam:CreateServiceLinkedRole`.
    pub fn deny(&self, action: &str) {
        lock(&self.state.permits).denied.push(action.to_owned());
    }

    /// From now on only what this policy document (or any of an array of them) allows, for every caller but the bench itself.
    /// Knows Action, NotAction, Resource, NotResource with wildcards and the conditions of strings, ARNs, Bool and Null; refuses
    /// a document that AWS would refuse, or a condition that it cannot judge.
    pub fn enforce(&self, policy: Value) -> Result<()> {
        let documents = match policy {
            Value::Array(documents) => documents,
            one => vec![one],
        };
        let policies = documents
            .iter()
            .map(permit::policy::Policy::parse)
            .collect::<Result<Vec<_>>>()?;
        lock(&self.state.permits).allowed = Some(policies);
        Ok(())
    }

    /// No deny and no policy any more.
    pub fn allow_all(&self) {
        let mut permits = lock(&self.state.permits);
        permits.denied.clear();
        permits.allowed = None;
    }

    /// Every IAM action that calls have needed since the layer started or [`Strict::forget_permissions`], each with the ARNs that it
    /// was needed for, those of other services' calls included (`iam:PassRole` ...). `sts:GetCallerIdentity` needs none.
    pub fn permissions_used(&self) -> BTreeMap<String, std::collections::BTreeSet<String>> {
        lock(&self.state.permits).used.clone()
    }

    pub fn forget_permissions(&self) {
        lock(&self.state.permits).used.clear();
    }

    /// Sets a quota by its code in Service Quotas (`L-1194D53C` clusters, `L-6D54EA21` node groups per cluster, `L-BD136A63` nodes per
    /// group, `L-11427A54` security groups of a control plane, `L-FE177D64` roles, `L-858F3967` OIDC providers, `L-0DA4ABF3` policies a
    /// role, `L-C07B4B0D` trust policy, `L-0EA8095F` rules a group, `L-1216C47A` and `L-34B43A08` vCPUs on demand and spot ...).
    pub fn quota(&self, code: &str, value: u64) {
        lock(&self.state.controls)
            .quotas
            .insert(code.to_owned(), value);
    }

    /// How long IAM's changes take to reach the others (eks.md 1.3, 3): a new role, a changed trust policy or a newly attached policy is
    /// refused by EKS, a new role is no principal of a trust policy and a new instance profile is unknown to EC2. Zero by default.
    pub fn iam_delay(&self, delay: Duration) {
        lock(&self.state.controls).iam_delay = delay;
    }

    /// The next creation (or update) of that name, or of any with `*`, ends badly, with this health issue. Once; call again for more.
    pub fn fail_next(&self, what: Fails, name: &str, code: &str, message: &str) {
        lock(&self.state.controls).failures.push(Failure {
            what,
            name: name.to_owned(),
            code: code.to_owned(),
            message: message.to_owned(),
        });
    }

    /// A token bucket for a service (`iam`), an operation (`eks:CreateCluster`) or several (`ec2:Describe*`): as many at once and then a
    /// second, the rest is throttled in the words of the service. 0 takes the bucket away.
    pub fn throttle(&self, what: &str, per_second: u32) {
        lock(&self.state.buckets).set(what, per_second);
    }

    /// Pages hold this many items at most, whatever the caller asks for, as AWS may always do (IAM, EC2, EKS).
    pub fn page_size(&self, most: Option<usize>) {
        lock(&self.state.controls).page_size = most;
    }

    /// How long interfaces of EKS stay after their node group or cluster is gone; their security groups cannot be deleted as long.
    pub fn eni_linger(&self, time: Duration) {
        lock(&self.state.controls).eni_linger = time;
    }

    /// Makes a KMS key (ARN, id or `alias/NAME`) one that EKS and EC2 cannot use.
    pub fn break_key(&self, key: &str, trouble: KeyTrouble) {
        lock(&self.state.controls)
            .keys
            .insert(key.to_owned(), trouble);
    }

    /// Makes a symmetric KMS key in the emulator; gives back its ARN.
    pub async fn make_key(&self) -> Result<String> {
        let (status, answer) = self
            .state
            .ask_json("kms", "test", "TrentService.CreateKey", &json!({}))
            .await;
        answer["KeyMetadata"]["Arn"]
            .as_str()
            .map(str::to_owned)
            .ok_or_else(|| {
                Error::new(format!(
                    "the emulator made no KMS key: it answered {status} {answer}"
                ))
            })
    }

    /// The key can be used again.
    pub fn mend_key(&self, key: &str) {
        lock(&self.state.controls).keys.remove(key);
    }
}
