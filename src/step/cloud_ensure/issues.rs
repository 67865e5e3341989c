//! What EKS's health issues mean, in plain words, and what to do about each (eks.md 1.2, 1.5, 1.6).

use crate::world::cloud::{Found, HealthIssue, Resource};

/// One code.
struct Row {
    code: &'static str,
    /// What it means.
    means: &'static str,
    /// What a person does about it.
    act: &'static str,
    /// Making it again may help although nobody did anything: it was a matter of time or of luck.
    again: bool,
}

const fn row(code: &'static str, means: &'static str, act: &'static str, again: bool) -> Row {
    Row {
        code,
        means,
        act,
        again,
    }
}

/// Codes that mean the same wherever they stand.
const COMMON: &[Row] = &[
    row(
        "InsufficientFreeAddresses",
        "a subnet has no free addresses left",
        "free addresses in the subnets named, or give green other subnets (green.subnets), then resume",
        false,
    ),
    row(
        "AccessDenied",
        "a role may not do what EKS or a node does with it",
        "see which role and action is meant; give its policy back, or the service control policy or boundary that forbids it, then resume",
        true,
    ),
    row(
        "InternalFailure",
        "EKS failed by itself",
        "wait some minutes and resume; if it stays, open a case with AWS support",
        true,
    ),
    row(
        "ClusterUnreachable",
        "EKS cannot reach the cluster's API server",
        "see whether a security group or a webhook of the cluster shuts EKS out, then resume",
        true,
    ),
    row(
        "Ec2SubnetNotFound",
        "a subnet of the plan is gone",
        "find out who removed it; then discover and plan again",
        false,
    ),
    row(
        "Ec2SecurityGroupNotFound",
        "a security group that it uses is gone",
        "find out who removed it; then roll back and go forward again: the cluster's own group cannot be made by hand",
        false,
    ),
];

/// Clusters (eks.md 1.2).
const CLUSTER: &[Row] = &[
    row(
        "IamRoleNotFound",
        "EKS does not see the cluster's role",
        "nothing, when the role was made a minute ago; else make the role again, then resume",
        true,
    ),
    row(
        "StsRegionalEndpointDisabled",
        "the regional endpoint of STS is switched off in this account",
        "switch it on (IAM, Account settings, Security Token Service endpoints), then resume",
        false,
    ),
    row(
        "VpcNotFound",
        "the VPC is gone",
        "find out who removed it; then discover and plan again",
        false,
    ),
    row(
        "Ec2ServiceNotSubscribed",
        "the account may not use EC2 in this region",
        "finish the account's sign-up or leave the region, then resume",
        false,
    ),
    row(
        "KmsGrantRevoked",
        "the grant with which EKS uses the KMS key was taken back",
        "make the key usable by the cluster's role again, then resume",
        false,
    ),
    row(
        "KmsKeyDisabled",
        "the KMS key is switched off",
        "switch the key on, then resume",
        false,
    ),
    row(
        "KmsKeyMarkedForDeletion",
        "the KMS key waits for its deletion",
        "cancel the deletion of the key, then resume",
        false,
    ),
    row(
        "KmsKeyNotFound",
        "the KMS key is gone",
        "name another key in migration.yaml, then plan again",
        false,
    ),
    row(
        "ResourceLimitExceeded",
        "a quota of the account is used up",
        "raise the quota that is named (Service Quotas), then resume",
        false,
    ),
    row(
        "UnsupportedVersion",
        "EKS does not offer this version any more",
        "set green.version to one that crossfade plan lists, then plan again",
        false,
    ),
];

/// Node groups (eks.md 1.6).
const NODE_GROUP: &[Row] = &[
    row(
        "AsgInstanceLaunchFailures",
        "EC2 could not start an instance: often no capacity of that type in a zone, a Spot price, or a KMS key that Auto Scaling may not use",
        "read the message; allow more instance types or zones (green.nodeGroups), or let the Auto Scaling service-linked role use the key; then resume",
        true,
    ),
    row(
        "InstanceLimitExceeded",
        "the account's quota of vCPUs for this kind of instance is used up",
        "raise it: aws service-quotas request-service-quota-increase --service-code ec2 --quota-code L-1216C47A (on demand, standard types) or L-34B43A08 (Spot); then resume",
        false,
    ),
    row(
        "Ec2SubnetInvalidConfiguration",
        "a public subnet does not give instances a public address by itself",
        "switch on auto-assign public IPv4 for that subnet, or use private subnets (green.subnets), then resume",
        false,
    ),
    row(
        "KubernetesLabelInvalid",
        "a label of the group is one that EKS or kubelet refuses (kubernetes.io, k8s.io, eks.amazonaws.com)",
        "leave it out under green.nodeGroups, then plan again",
        false,
    ),
    row(
        "IamNodeRoleNotFound",
        "EKS does not see the nodes' role",
        "nothing, when the role was made a minute ago; else make the role again, then resume",
        true,
    ),
    row(
        "IamInstanceProfileNotFound",
        "the instance profile that EKS made for the nodes is gone",
        "find out who removes instance profiles; then resume",
        true,
    ),
    row(
        "NodeCreationFailure",
        "instances run, but do not join the cluster within 20 to 25 minutes: no way out to the API (NAT, endpoints), a security group without the cluster's, or a role without AmazonEKSWorkerNodePolicy",
        "look at the console output of an instance that is named; open its way to the API; then resume",
        false,
    ),
    row(
        "Ec2LaunchTemplateNotFound",
        "the launch template is gone",
        "find out who removed it; then roll back the provision phase and go forward again",
        false,
    ),
    row(
        "Ec2LaunchTemplateVersionMismatch",
        "somebody gave the launch template another version",
        "set the template's default version back, then resume",
        false,
    ),
    row(
        "Ec2LaunchTemplateInvalidConfiguration",
        "EC2 refuses the launch template",
        "read the message; correct green.nodeGroups; then plan again",
        false,
    ),
    row(
        "Ec2LaunchTemplateMaxLimitExceeded",
        "the account's quota of launch templates is used up",
        "raise it: aws service-quotas request-service-quota-increase --service-code ec2 --quota-code L-FB451C26; then resume",
        false,
    ),
    row(
        "Ec2InstanceTypeDoesNotExist",
        "the region has no such instance type",
        "name another under green.nodeGroups, then plan again",
        false,
    ),
    row(
        "AmiIdNotFound",
        "the image is gone",
        "name another image or none, then plan again",
        false,
    ),
    row(
        "AutoScalingGroupNotFound",
        "the group's Auto Scaling group is gone",
        "find out who removed it; then resume",
        true,
    ),
    row(
        "AutoScalingGroupInvalidConfiguration",
        "somebody changed the Auto Scaling group that EKS made",
        "find out who changes it; then resume",
        true,
    ),
    row(
        "AutoScalingGroupRateLimitExceeded",
        "EKS asks Auto Scaling too often at the moment",
        "wait some minutes and resume",
        true,
    ),
    row(
        "IamThrottling",
        "EKS asks IAM too often at the moment",
        "wait some minutes and resume",
        true,
    ),
    row(
        "IamLimitExceeded",
        "a quota of IAM is used up",
        "raise the quota that is named (Service Quotas, us-east-1), then resume",
        false,
    ),
    row(
        "LimitExceeded",
        "a quota of the account is used up",
        "raise the quota that is named (Service Quotas), then resume",
        false,
    ),
    row(
        "PodEvictionFailure",
        "a pod could not be moved off a node: its PodDisruptionBudget allows none to go",
        "see which budget holds it, then resume",
        false,
    ),
    row(
        "Ec2SecurityGroupDeletionFailure",
        "EKS cannot delete the group's security group: something still uses it",
        "see which network interface or rule uses it; remove that; then try again",
        false,
    ),
];

/// Add-ons (eks.md 1.5).
const ADDON: &[Row] = &[
    row(
        "InsufficientNumberOfReplicas",
        "its pods do not run: no node can take them, or they crash",
        "see that nodes are Ready (kubectl get nodes) and what its pods say (kubectl -n kube-system describe pods); then resume",
        false,
    ),
    row(
        "ConfigurationConflict",
        "fields that it wants to own are somebody else's in the cluster",
        "take back what was changed by hand, or set the add-on's conflicts to OVERWRITE; then resume",
        false,
    ),
    row(
        "AdmissionRequestDenied",
        "a webhook or policy of the cluster refuses its objects",
        "let the webhook pass kube-system, then resume",
        false,
    ),
    row(
        "AddonPermissionFailure",
        "its role may not do what it needs",
        "see which action is denied; give it to the add-on's role; then resume",
        true,
    ),
    row(
        "UnsupportedAddonModification",
        "the add-on cannot be changed so",
        "read the message; correct its version or configuration; then plan again",
        false,
    ),
    row(
        "K8sResourceNotFound",
        "an object that it needs is gone from the cluster",
        "find out who removes it; then resume",
        true,
    ),
    row(
        "AddonSubscriptionNeeded",
        "it wants a subscription in AWS Marketplace",
        "subscribe, or leave it out (green.addons), then resume",
        false,
    ),
];

fn find(resource: &Resource, code: &str) -> Option<&'static Row> {
    let own = match resource {
        Resource::Cluster { .. } => CLUSTER,
        Resource::NodeGroup { .. } => NODE_GROUP,
        Resource::Addon { .. } => ADDON,
        _ => &[],
    };
    own.iter().chain(COMMON).find(|r| r.code == code)
}

/// What is wrong with a thing, and what to do.
#[derive(Debug, PartialEq)]
pub(super) struct Explained {
    /// One line.
    pub why: String,
    /// What a person does.
    pub act: String,
    /// Making it again may help although nobody did anything.
    pub again: bool,
}

/// In plain words; `status` is EKS's own word with what it adds.
pub(super) fn explain(resource: &Resource, status: &str, issues: &[HealthIssue]) -> Explained {
    let word = status.split([':', ' ']).next().unwrap_or(status);
    if issues.is_empty() {
        return Explained {
            why: format!("{}: {status}, and EKS names no reason", resource.id()),
            act: "look at it in the EKS console; cure the cause, then resume, or roll back".into(),
            again: false,
        };
    }
    let mut said = vec![];
    let mut acts: Vec<String> = vec![];
    let mut again = true;
    for issue in issues {
        let row = find(resource, &issue.code);
        let means = row.map_or("", |r| r.means);
        let mut text = match means {
            "" => issue.code.clone(),
            _ => format!("{means} ({})", issue.code),
        };
        if !issue.message.is_empty() {
            text.push_str(&format!(", in EKS's words: {}", issue.message.trim()));
        }
        if !issue.resources.is_empty() {
            text.push_str(&format!(" [{}]", issue.resources.join(", ")));
        }
        said.push(text);
        again &= row.is_some_and(|r| r.again);
        let act = row.map_or(
            "read EKS's words; cure the cause, then resume, or roll back",
            |r| r.act,
        );
        if !acts.iter().any(|a| a == act) {
            acts.push(act.into());
        }
    }
    Explained {
        why: format!("{}: {word}: {}", resource.id(), said.join("; ")),
        act: acts.join("; or: "),
        again,
    }
}

/// The same of what was found.
pub(super) fn of(resource: &Resource, status: &str, found: &Found) -> Explained {
    explain(resource, status, &found.issues)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node_group() -> Resource {
        serde_json::from_value(json!({"type": "node-group", "cluster": "green", "name": "nodes", "roleArn": "arn:aws:iam::000000000000:role/n",
            "subnets": ["subnet-a"], "instanceTypes": ["m5.large"], "amiType": "AL2023_x86_64_STANDARD", "capacityType": "ON_DEMAND",
            "min": 1, "max": 2, "desired": 1, "diskGib": 20, "labels": {}, "taints": []}))
        .unwrap()
    }

    fn issue(code: &str) -> HealthIssue {
        HealthIssue {
            code: code.into(),
            message: "as EKS says it".into(),
            resources: vec!["subnet-a".into()],
        }
    }

    #[test]
    fn an_issue_is_told_in_plain_words_with_what_to_do() {
        let e = explain(
            &node_group(),
            "CREATE_FAILED: InsufficientFreeAddresses as EKS says it",
            &[issue("InsufficientFreeAddresses")],
        );
        assert_eq!(
            e.why,
            "node-group/green/nodes: CREATE_FAILED: a subnet has no free addresses left (InsufficientFreeAddresses), \
             in EKS's words: as EKS says it [subnet-a]"
        );
        assert!(e.act.contains("green.subnets"), "{}", e.act);
        assert!(!e.again, "no repeat frees an address");
    }

    #[test]
    fn a_repeat_helps_only_when_it_may_help_with_every_issue() {
        let passing = issue("IamNodeRoleNotFound");
        let lasting = issue("InstanceLimitExceeded");
        assert!(
            explain(
                &node_group(),
                "CREATE_FAILED",
                std::slice::from_ref(&passing)
            )
            .again
        );
        assert!(!explain(&node_group(), "CREATE_FAILED", &[passing, lasting]).again);
        // A code that nobody knows is no reason to delete anything.
        assert!(!explain(&node_group(), "CREATE_FAILED", &[issue("Unheard")]).again);
    }

    #[test]
    fn every_code_that_the_reference_lists_has_words_of_its_own() {
        // eks.md 1.2 and 1.6.
        let cluster = serde_json::from_value::<Resource>(json!({"type": "cluster", "name": "green", "version": "1.35", "roleArn": "r", "subnets": [], "serviceCidr": null, "publicEndpoint": true, "privateEndpoint": true})).unwrap();
        for code in [
            "InsufficientFreeAddresses",
            "IamRoleNotFound",
            "Ec2SubnetNotFound",
            "StsRegionalEndpointDisabled",
        ] {
            assert!(find(&cluster, code).is_some(), "{code}");
        }
        for code in [
            "AsgInstanceLaunchFailures",
            "InsufficientFreeAddresses",
            "InstanceLimitExceeded",
            "Ec2SubnetInvalidConfiguration",
            "KubernetesLabelInvalid",
            "IamNodeRoleNotFound",
            "AccessDenied",
            "NodeCreationFailure",
        ] {
            assert!(find(&node_group(), code).is_some(), "{code}");
        }
    }
}
