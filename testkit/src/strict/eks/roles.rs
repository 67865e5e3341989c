//! What EKS looks up in EC2, IAM and KMS before it makes anything.

use serde_json::Value;

use super::{Subnet, bad};
use crate::strict::State;
use crate::strict::http::{Refusal, percent_decode};
use crate::strict::interfaces;

/// Whom a role has to trust, and how EKS says that it does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum For {
    /// eks.amazonaws.com may assume it.
    Cluster,
    /// ec2.amazonaws.com may assume it.
    Nodes,
    /// pods.eks.amazonaws.com may assume it and tag the session (eks.md 3).
    Pods,
    /// It is there: IRSA and access entries ask for no more.
    Existing,
}

impl For {
    fn service(self) -> &'static str {
        match self {
            For::Cluster => "eks.amazonaws.com",
            For::Nodes => "ec2.amazonaws.com",
            For::Pods => "pods.eks.amazonaws.com",
            For::Existing => "",
        }
    }

    /// The role is not there, or not yet (eks.md 1.3: IAM is eventually consistent).
    fn unknown(self, arn: &str) -> Refusal {
        let name = arn.rsplit('/').next().unwrap_or(arn);
        bad(match self {
            For::Nodes => format!("The role with name {name} cannot be found."),
            For::Pods => "Role provided in the request does not exist.".to_owned(),
            _ => format!(
                "Role with arn: {arn}, could not be assumed because it does not exist or the trusted entity is not correct"
            ),
        })
    }

    fn untrusting(self, arn: &str) -> Refusal {
        match self {
            For::Nodes => bad(format!(
                "Following required service principals [ec2.amazonaws.com] were not found in the trust relationships of nodeRole {arn}"
            )),
            For::Pods => bad("Trust policy of the role provided is invalid"),
            _ => self.unknown(arn),
        }
    }

    /// Policies that IAM has attached, and EKS does not see yet.
    fn bare(self) -> Option<Refusal> {
        const AWS: &str = "arn:aws:iam::aws:policy";
        let policies = match self {
            For::Cluster => format!("policy is attached: {AWS}/AmazonEKSClusterPolicy"),
            For::Nodes => format!(
                "policies [{AWS}/AmazonEKSWorkerNodePolicy, {AWS}/AmazonEC2ContainerRegistryPullOnly] are attached"
            ),
            _ => return None,
        };
        Some(bad(format!(
            "The provided role doesn't have the Amazon EKS Managed Policies associated with it. Please ensure the following {policies}"
        )))
    }
}

fn one_or_many(value: &Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items.clone(),
        Value::Null => vec![],
        other => vec![other.clone()],
    }
}

/// Whether a trust policy lets a service do all of this.
fn trusts(document: &Value, service: &str, actions: &[&str]) -> bool {
    actions.iter().all(|wanted| {
        one_or_many(&document["Statement"]).iter().any(|s| {
            s["Effect"] == "Allow"
                && one_or_many(&s["Principal"]["Service"])
                    .iter()
                    .any(|p| p == service)
                && one_or_many(&s["Action"])
                    .iter()
                    .any(|a| a == wanted || a == "sts:*" || a == "*")
        })
    })
}

impl State {
    /// Subnets as EC2 has them, in the order asked; refuses unknown ones.
    pub(crate) async fn subnets(&self, who: &str, ids: &[String]) -> Result<Vec<Subnet>, Refusal> {
        let mut out = Vec::new();
        for id in ids {
            let (status, root) = self
                .ask("ec2", who, "DescribeSubnets", &[("SubnetId.1", id)])
                .await;
            let root = interfaces::count_addresses(self, who, root).await;
            let item = root.find("subnetSet").and_then(|s| s.child("item"));
            let Some(item) = item.filter(|_| status == 200) else {
                return Err(bad(format!("The subnet ID '{id}' does not exist")));
            };
            let get = |key: &str| item.text_of(key).unwrap_or("").to_owned();
            out.push(Subnet {
                id: id.clone(),
                vpc: get("vpcId"),
                zone: get("availabilityZone"),
                zone_id: get("availabilityZoneId"),
                cidr: get("cidrBlock"),
                free: get("availableIpAddressCount").parse().unwrap_or(251),
            });
        }
        Ok(out)
    }

    /// Refuses a role that does not exist, that IAM has not told EKS of yet, or that does not trust whom it has to.
    /// Returns the role's unique id.
    pub(crate) async fn role_trusts(
        &self,
        who: &str,
        arn: &str,
        whom: For,
    ) -> Result<String, Refusal> {
        let name = arn
            .strip_prefix("arn:aws:iam::")
            .and_then(|rest| rest.split_once(":role/"))
            .map(|(_, path)| path.rsplit('/').next().unwrap_or(path))
            .ok_or_else(|| bad(format!("'{arn}' is not a role ARN")))?;
        let (status, root) = self.ask("iam", who, "GetRole", &[("RoleName", name)]).await;
        let delay = self.lock_controls().iam_delay;
        let role = root
            .find("Role")
            .filter(|r| status == 200 && r.text_of("Arn") == Some(arn))
            .filter(|_| !self.lock_iam_clock().role_is_fresh(name, delay))
            .ok_or_else(|| whom.unknown(arn))?;
        let trust = percent_decode(role.text_of("AssumeRolePolicyDocument").unwrap_or(""));
        let trust: Value = serde_json::from_str(&trust).unwrap_or_default();
        let actions: &[&str] = match whom {
            For::Existing => &[],
            For::Pods => &["sts:AssumeRole", "sts:TagSession"],
            _ => &["sts:AssumeRole"],
        };
        if !trusts(&trust, whom.service(), actions) {
            return Err(whom.untrusting(arn));
        }
        if self.lock_iam_clock().policies_are_fresh(name, delay)
            && let Some(refusal) = whom.bare()
        {
            return Err(refusal);
        }
        Ok(role.text_of("RoleId").unwrap_or("").to_owned())
    }
}
