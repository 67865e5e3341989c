//! A quota that is used up: which one, its value, what is needed, how to raise it.

use crate::step::Cx;
use crate::world::Error;
use crate::world::cloud::{Inventory, Resource};

/// A quota as Service Quotas knows it.
#[derive(Debug, PartialEq, Eq)]
struct Quota {
    service: &'static str,
    code: &'static str,
    name: &'static str,
    /// AWS raises it when asked.
    adjustable: bool,
}

const fn quota(service: &'static str, code: &'static str, name: &'static str) -> Quota {
    Quota {
        service,
        code,
        name,
        adjustable: true,
    }
}

// Codes: eks.md 1.6 and 3, checks/cap/quotas.rs, AWS's own lists of quotas.
const CLUSTERS: Quota = quota("eks", "L-1194D53C", "Clusters");
const NODE_GROUPS: Quota = quota("eks", "L-6D54EA21", "Managed node groups per cluster");
const NODES: Quota = quota("eks", "L-BD136A63", "Nodes per managed node group");
const ENTRIES: Quota = quota("eks", "L-C56B9FC3", "Access entries per cluster");
const ROLES: Quota = quota("iam", "L-FE177D64", "Roles per account");
const ATTACHED: Quota = quota("iam", "L-0DA4ABF3", "Managed policies per role");
const TRUST: Quota = quota("iam", "L-C07B4B0D", "Role trust policy length");
const PROVIDERS: Quota = quota("iam", "L-858F3967", "OpenId connect providers per account");
const TEMPLATES: Quota = quota("ec2", "L-FB451C26", "Launch templates per Region");
const RULES: Quota = quota(
    "vpc",
    "L-0EA8095F",
    "Inbound or outbound rules per security group",
);
/// IAM has no quota to raise here (eks.md 3).
const INLINE: Quota = Quota {
    service: "iam",
    code: "inline policies",
    name: "Characters of all inline policies of a role",
    adjustable: false,
};

/// Which quota a refusal is about.
fn which(resource: &Resource, message: &str) -> Option<&'static Quota> {
    let m = message.to_lowercase();
    let exceeded = m.contains("limitexceeded")
        || m.contains("quota")
        || m.contains("limit exceeded")
        || m.contains("maximum number")
        || m.contains("maximum policy size");
    if !exceeded {
        return None;
    }
    Some(match resource {
        Resource::Cluster { .. } => &CLUSTERS,
        Resource::NodeGroup { .. } if m.contains("nodes per") || m.contains("maxsize") => &NODES,
        Resource::NodeGroup { .. } => &NODE_GROUPS,
        Resource::AccessEntry { .. } => &ENTRIES,
        Resource::OidcProvider { .. } => &PROVIDERS,
        Resource::LaunchTemplate { .. } => &TEMPLATES,
        Resource::SecurityGroupRule { .. } => &RULES,
        Resource::TrustStatement { .. } => &TRUST,
        Resource::Role { .. } if m.contains("aclsize") || m.contains("assumerolepolicy") => &TRUST,
        Resource::Role { .. } if m.contains("policiesperrole") || m.contains("attached") => {
            &ATTACHED
        }
        Resource::Role { .. } if m.contains("policy size") || m.contains("10240") => &INLINE,
        Resource::Role { .. } => &ROLES,
        _ => return None,
    })
}

/// The last number of a message: AWS ends its refusals with the value (`... for RolesPerAccount: 1000`).
fn value_in(message: &str) -> Option<u64> {
    message
        .split(|c: char| !c.is_ascii_digit())
        .rfind(|d| !d.is_empty())
        .and_then(|d| d.parse().ok())
}

/// How much is in use, where the inventory tells.
fn in_use(quota: &Quota, resource: &Resource, inventory: &Inventory) -> Option<usize> {
    let inside = |cluster: &str| inventory.clusters.iter().find(|c| c.name == cluster);
    match resource {
        Resource::Cluster { .. } => Some(inventory.clusters.len()),
        Resource::NodeGroup { cluster, .. } if *quota == NODE_GROUPS => {
            inside(cluster).map(|c| c.node_groups.len())
        }
        Resource::AccessEntry { cluster, .. } => inside(cluster).map(|c| c.access_entries.len()),
        Resource::Role { .. } if *quota == ROLES => Some(inventory.roles.len()),
        Resource::OidcProvider { .. } => Some(inventory.oidc_providers.len()),
        Resource::LaunchTemplate { .. } => inventory.launch_templates.as_ref().map(Vec::len),
        Resource::SecurityGroupRule { group, .. } => inventory
            .security_groups
            .iter()
            .find(|g| g.id == *group)
            .map(|g| g.ingress.len()),
        _ => None,
    }
}

/// How many more the plan makes of this kind, this one included: steps that are not done.
fn needed(cx: &Cx, resource: &Resource) -> usize {
    let kind = |id: &str| id.split('/').next().unwrap_or("").to_owned();
    let mine = kind(&resource.id());
    let outputs = cx.outputs.read().unwrap_or_else(|p| p.into_inner());
    cx.plan
        .steps
        .iter()
        .filter(|s| s.kind == "cloud.ensure" && !outputs.contains_key(&s.id))
        .filter(|s| s.params["resource"]["type"].as_str() == Some(&mine))
        .count()
        .max(1)
}

/// A refusal with the quota that it is about; any other stays as it is.
pub(super) async fn explain(cx: &Cx, resource: &Resource, error: Error) -> Error {
    let Some(quota) = which(resource, &error.message) else {
        return error;
    };
    // Reading the account is worth its calls here, and no reason to say less when it fails.
    let inventory = cx
        .world
        .cloud
        .inventory(&cx.plan.spec.blue.cluster)
        .await
        .ok();
    let key = format!("{}/{}", quota.service, quota.code);
    let known = inventory
        .as_ref()
        .and_then(|i| i.quotas.as_ref())
        .and_then(|q| q.get(&key))
        .map(|q| q.value as u64);
    let value = known.or_else(|| value_in(&error.message));
    let used = inventory.as_ref().and_then(|i| in_use(quota, resource, i));
    told(quota, value, used, needed(cx, resource), error)
}

fn told(
    quota: &Quota,
    value: Option<u64>,
    used: Option<usize>,
    more: usize,
    error: Error,
) -> Error {
    let length = [&TRUST, &INLINE, &RULES, &ATTACHED].contains(&quota);
    let mut text = format!(
        "the quota {} ({}/{}) is used up",
        quota.name, quota.service, quota.code
    );
    if let Some(value) = value {
        text.push_str(&format!(": its value is {value}"));
    }
    if let Some(used) = used {
        text.push_str(&format!(", {used} are in use"));
    }
    if !length {
        text.push_str(&format!(", the plan needs {more} more"));
    }
    text.push_str(&format!(". AWS says: {}", error.message));
    let wanted = match (value, used) {
        (_, Some(used)) if !length => (used + more).to_string(),
        (Some(value), _) if !length => (value + more as u64).to_string(),
        _ => "VALUE".into(),
    };
    let remedy = if quota.adjustable {
        // IAM's quotas are of the account, not of a region: they are asked for in us-east-1.
        let region = if quota.service == "iam" {
            " --region us-east-1"
        } else {
            ""
        };
        format!(
            "raise it: aws service-quotas request-service-quota-increase --service-code {} --quota-code {} --desired-value {wanted}{region} \
             (small steps are granted within minutes), or remove what is not needed; then the same command goes on",
            quota.service, quota.code
        )
    } else {
        "AWS does not raise it: write shorter policies or use managed ones; then plan again".into()
    };
    Error {
        message: text,
        ..error
    }
    .remedy(remedy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Class;
    use serde_json::json;

    fn role() -> Resource {
        serde_json::from_value(
            json!({"type": "role", "name": "green-node", "trust": {}, "managedPolicies": [], "inlinePolicies": {}}),
        )
        .unwrap()
    }

    #[test]
    fn a_refusal_for_a_quota_names_quota_value_need_and_how_to_raise_it() {
        let said = "LimitExceeded: Cannot exceed quota for RolesPerAccount: 1000";
        let quota = which(&role(), said).unwrap();
        assert_eq!(quota.code, "L-FE177D64");
        let error = Error::new(Class::Refused, "role/green-node", said);
        let told = told(quota, value_in(said), Some(1000), 4, error);
        assert_eq!(
            told.message,
            "the quota Roles per account (iam/L-FE177D64) is used up: its value is 1000, 1000 are in use, the plan needs 4 more. \
             AWS says: LimitExceeded: Cannot exceed quota for RolesPerAccount: 1000"
        );
        assert!(
            told.remedy
                .contains("--quota-code L-FE177D64 --desired-value 1004 --region us-east-1"),
            "{}",
            told.remedy
        );
    }

    #[test]
    fn what_iam_counts_on_a_role_is_told_apart_by_its_words() {
        let code = |said: &str| which(&role(), said).map(|q| q.code);
        assert_eq!(
            code("LimitExceeded: Cannot exceed quota for PoliciesPerRole: 10"),
            Some("L-0DA4ABF3")
        );
        assert_eq!(
            code("LimitExceeded: Cannot exceed quota for ACLSizePerRole: 2048"),
            Some("L-C07B4B0D")
        );
        assert_eq!(
            code("MalformedPolicyDocument: This policy contains invalid Json"),
            None
        );
    }
}
