//! What EKS describes, in the words in which crossfade would ask for it.

use super::eks::PROTECTED;
use super::optional;
use crate::world::cloud::{Existing, HealthIssue, Now, Resource, Status, Taint};
use crate::world::live::aws;
use crate::world::{Class, Result};
use aws_sdk_eks::primitives::DateTime;
use aws_sdk_eks::types as eks;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// Status words of all EKS resources, with what the service says is wrong.
/// DEGRADED is "pending": an add-on without nodes yet heals by itself (eks.md 1.5), and the step's own time limit ends the wait.
fn status(word: Option<&str>, issues: Vec<String>) -> Status {
    let issues = issues.join("; ");
    let with = |w: &str| {
        if issues.is_empty() {
            w.to_string()
        } else {
            format!("{w}: {issues}")
        }
    };
    match word.unwrap_or("UNKNOWN") {
        "ACTIVE" => Status::Ready,
        "DELETING" => Status::Deleting,
        w @ ("FAILED" | "CREATE_FAILED" | "DELETE_FAILED" | "UPDATE_FAILED") => {
            Status::Failed(with(w))
        }
        w => Status::Pending(with(w)),
    }
}

/// What EKS says of a thing at this moment.
fn now(word: Option<&str>, created: Option<&DateTime>, issues: Vec<HealthIssue>) -> Now {
    Now {
        created: aws::when(created),
        issues,
        doing: word
            .filter(|w| matches!(*w, "UPDATING" | "PENDING"))
            .map(Into::into),
    }
}

/// An issue, typed.
fn health(code: Option<&str>, message: Option<&str>, resources: &[String]) -> HealthIssue {
    HealthIssue {
        code: code.unwrap_or_default().into(),
        message: message.unwrap_or_default().into(),
        resources: resources.to_vec(),
    }
}

/// All of them in EKS's words.
fn words(issues: &[HealthIssue]) -> Vec<String> {
    issues
        .iter()
        .map(|i| issue(Some(&i.code), Some(&i.message), &i.resources))
        .collect()
}

fn issue(code: Option<&str>, message: Option<&str>, resources: &[String]) -> String {
    let mut text = format!(
        "{} {}",
        code.unwrap_or_default(),
        message.unwrap_or_default()
    );
    if !resources.is_empty() {
        text.push_str(&format!(" ({})", resources.join(", ")));
    }
    text.trim().to_string()
}

/// The API's spelling of a taint effect to Kubernetes's.
fn spelled(effect: Option<&eks::TaintEffect>) -> &'static str {
    match effect {
        Some(eks::TaintEffect::NoExecute) => "NoExecute",
        Some(eks::TaintEffect::PreferNoSchedule) => "PreferNoSchedule",
        _ => "NoSchedule",
    }
}

/// An add-on's settings come back as the text that was sent. Text that is no JSON (people also write YAML) stays a text.
fn settings(text: Option<&str>) -> Option<Value> {
    let text = text.map(str::trim).filter(|t| !t.is_empty())?;
    match serde_json::from_str(text) {
        Ok(Value::Object(m)) if m.is_empty() => None,
        Ok(v) => Some(v),
        Err(_) => Some(Value::String(text.into())),
    }
}

fn tags_of(tags: Option<&HashMap<String, String>>) -> BTreeMap<String, String> {
    tags.into_iter()
        .flatten()
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect()
}

fn count(n: Option<i32>) -> u32 {
    n.and_then(|n| u32::try_from(n).ok()).unwrap_or(0)
}

fn attributes<'a>(
    list: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
) -> BTreeMap<String, String> {
    list.into_iter()
        .filter_map(|(k, v)| Some((k.to_string(), v?.to_string())))
        .collect()
}

/// A cluster as DescribeCluster shows it.
pub(super) fn cluster_of(c: &eks::Cluster) -> Existing {
    let vpc = c.resources_vpc_config();
    let issues: Vec<HealthIssue> = c
        .health()
        .map(|h| h.issues())
        .unwrap_or_default()
        .iter()
        .map(|i| health(i.code().map(|c| c.as_str()), i.message(), i.resource_ids()))
        .collect();
    Existing {
        resource: Resource::Cluster {
            name: c.name().unwrap_or_default().into(),
            version: c.version().unwrap_or_default().into(),
            role_arn: c.role_arn().unwrap_or_default().into(),
            subnets: vpc.map(|v| v.subnet_ids().to_vec()).unwrap_or_default(),
            service_cidr: c
                .kubernetes_network_config()
                .and_then(|n| n.service_ipv4_cidr())
                .map(Into::into),
            public_endpoint: vpc.is_some_and(|v| v.endpoint_public_access()),
            private_endpoint: vpc.is_some_and(|v| v.endpoint_private_access()),
            endpoint_cidrs: vpc
                .map(|v| v.public_access_cidrs().to_vec())
                .unwrap_or_default(),
            logging: c
                .logging()
                .map(|l| l.cluster_logging())
                .unwrap_or_default()
                .iter()
                .filter(|s| s.enabled() == Some(true))
                .flat_map(|s| s.types())
                .map(|t| t.as_str().to_string())
                .collect(),
            kms_key: c
                .encryption_config()
                .iter()
                .find_map(|e| e.provider()?.key_arn().map(Into::into)),
            deletion_protection: c.deletion_protection() == Some(true),
            support_type: c
                .upgrade_policy()
                .and_then(|p| p.support_type())
                .map_or("STANDARD", |t| t.as_str())
                .into(),
            security_groups: vpc
                .map(|v| v.security_group_ids().to_vec())
                .unwrap_or_default(),
        },
        tags: tags_of(c.tags()),
        status: status(c.status().map(|s| s.as_str()), words(&issues)),
        extras: vec![],
        attributes: attributes([
            (
                "issuer",
                c.identity()
                    .and_then(|i| i.oidc())
                    .and_then(|o| o.issuer())
                    .map(|i| i.trim_start_matches("https://")),
            ),
            ("endpoint", c.endpoint()),
            ("caData", c.certificate_authority().and_then(|c| c.data())),
            (
                "securityGroup",
                vpc.and_then(|v| v.cluster_security_group_id()),
            ),
            ("version", c.version()),
            ("arn", c.arn()),
            ("vpc", vpc.and_then(|v| v.vpc_id())),
            (
                PROTECTED,
                (c.deletion_protection() == Some(true)).then_some("true"),
            ),
        ]),
        now: now(c.status().map(|s| s.as_str()), c.created_at(), issues),
    }
}

/// An add-on as DescribeAddon shows it.
pub(super) fn addon_of(a: &eks::Addon) -> Existing {
    let issues: Vec<HealthIssue> = a
        .health()
        .map(|h| h.issues())
        .unwrap_or_default()
        .iter()
        .map(|i| health(i.code().map(|c| c.as_str()), i.message(), i.resource_ids()))
        .collect();
    Existing {
        resource: Resource::Addon {
            cluster: a.cluster_name().unwrap_or_default().into(),
            name: a.addon_name().unwrap_or_default().into(),
            version: a.addon_version().map(Into::into),
            service_account_role: a.service_account_role_arn().map(Into::into),
            configuration: settings(a.configuration_values()),
            conflicts: "OVERWRITE".into(),
        },
        tags: tags_of(a.tags()),
        status: status(a.status().map(|s| s.as_str()), words(&issues)),
        extras: vec![],
        attributes: attributes([("version", a.addon_version()), ("arn", a.addon_arn())]),
        now: now(a.status().map(|s| s.as_str()), a.created_at(), issues),
    }
}

/// A node group as DescribeNodegroup shows it.
pub(super) fn node_group_of(g: &eks::Nodegroup) -> Existing {
    let issues: Vec<HealthIssue> = g
        .health()
        .map(|h| h.issues())
        .unwrap_or_default()
        .iter()
        .map(|i| health(i.code().map(|c| c.as_str()), i.message(), i.resource_ids()))
        .collect();
    let scaling = g.scaling_config();
    Existing {
        resource: Resource::NodeGroup {
            cluster: g.cluster_name().unwrap_or_default().into(),
            name: g.nodegroup_name().unwrap_or_default().into(),
            role_arn: g.node_role().unwrap_or_default().into(),
            subnets: g.subnets().to_vec(),
            instance_types: g.instance_types().to_vec(),
            ami_type: g.ami_type().map_or("", |a| a.as_str()).into(),
            capacity_type: g.capacity_type().map_or("", |c| c.as_str()).into(),
            min: count(scaling.and_then(|s| s.min_size())),
            max: count(scaling.and_then(|s| s.max_size())),
            desired: count(scaling.and_then(|s| s.desired_size())),
            disk_gib: count(g.disk_size()),
            labels: tags_of(g.labels()),
            taints: g
                .taints()
                .iter()
                .map(|t| Taint {
                    key: t.key().unwrap_or_default().into(),
                    value: t.value().unwrap_or_default().into(),
                    effect: spelled(t.effect()).into(),
                })
                .collect(),
            launch_template: g
                .launch_template()
                .and_then(|t| t.name().or(t.id()))
                .map(Into::into),
            max_unavailable: unavailable(g.update_config()),
            repair: g.node_repair_config().and_then(|r| r.enabled()) == Some(true),
        },
        tags: tags_of(g.tags()),
        status: status(g.status().map(|s| s.as_str()), words(&issues)),
        extras: vec![],
        attributes: attributes([("version", g.version()), ("arn", g.nodegroup_arn())]),
        now: now(g.status().map(|s| s.as_str()), g.created_at(), issues),
    }
}

/// An access entry with its policies. crossfade gives an entry one policy at most, and people the type STANDARD.
pub(super) fn access_of(
    entry: &eks::AccessEntry,
    policies: &[eks::AssociatedAccessPolicy],
) -> Existing {
    let short = |p: &eks::AssociatedAccessPolicy| {
        let arn = p.policy_arn().unwrap_or_default();
        arn.rsplit('/').next().unwrap_or(arn).to_string()
    };
    let mut extras: Vec<String> = policies
        .iter()
        .skip(1)
        .map(|p| format!("access policy {}", short(p)))
        .collect();
    if let Some(kind) = entry.r#type().filter(|t| *t != "STANDARD") {
        extras.push(format!("type {kind}"));
    }
    let first = policies.first();
    Existing {
        resource: Resource::AccessEntry {
            cluster: entry.cluster_name().unwrap_or_default().into(),
            principal: entry.principal_arn().unwrap_or_default().into(),
            groups: entry.kubernetes_groups().to_vec(),
            policy: first.map(short),
            // The whole cluster is the scope without a namespace.
            namespaces: first
                .and_then(|p| p.access_scope())
                .map(|s| s.namespaces().to_vec())
                .unwrap_or_default(),
        },
        tags: tags_of(entry.tags()),
        status: Status::Ready,
        extras,
        attributes: attributes([("arn", entry.access_entry_arn())]),
        now: now(None, entry.created_at(), vec![]),
    }
}

/// `1` or `10%`, as a node group has it.
fn unavailable(config: Option<&eks::NodegroupUpdateConfig>) -> Option<String> {
    let c = config?;
    match (c.max_unavailable(), c.max_unavailable_percentage()) {
        (_, Some(p)) => Some(format!("{p}%")),
        (Some(n), None) => Some(n.to_string()),
        (None, None) => None,
    }
}

/// An access entry with its policies; `None` when there is none.
pub(super) async fn read_access(
    client: &aws_sdk_eks::Client,
    cluster: &str,
    principal: &str,
    at: &str,
) -> Result<Option<Existing>> {
    let answer = optional(
        client
            .describe_access_entry()
            .cluster_name(cluster)
            .principal_arn(principal)
            .send()
            .await
            .map_err(|e| aws::error(at, e)),
    )?;
    let Some(entry) = answer.and_then(|a| a.access_entry) else {
        return Ok(None);
    };
    let mut policies = vec![];
    let mut pages = client
        .list_associated_access_policies()
        .cluster_name(cluster)
        .principal_arn(principal)
        .into_paginator()
        .items()
        .send();
    while let Some(p) = pages.next().await {
        match p.map_err(|e| aws::error(at, e)) {
            Ok(p) => policies.push(p),
            Err(e) if e.class == Class::NotFound => return Ok(None),
            Err(e) => return Err(e),
        }
    }
    Ok(Some(access_of(&entry, &policies)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_degraded_addon_may_heal_and_a_failed_one_says_why() {
        assert_eq!(status(Some("ACTIVE"), vec![]), Status::Ready);
        assert_eq!(
            status(
                Some("DEGRADED"),
                vec!["InsufficientNumberOfReplicas no nodes".into()]
            ),
            Status::Pending("DEGRADED: InsufficientNumberOfReplicas no nodes".into())
        );
        assert_eq!(
            status(
                Some("CREATE_FAILED"),
                vec![issue(Some("AccessDenied"), Some("role"), &["i-1".into()])]
            ),
            Status::Failed("CREATE_FAILED: AccessDenied role (i-1)".into())
        );
        assert_eq!(status(Some("DELETING"), vec![]), Status::Deleting);
        assert_eq!(status(None, vec![]), Status::Pending("UNKNOWN".into()));
    }
}
