//! Which resource of a Terraform state is the one that the plan means.

use crate::snapshot::model::TerraformResource;
use crate::world::cloud::Resource;

fn has(t: &TerraformResource, key: &str, value: &str) -> bool {
    t.attributes.get(key).is_some_and(|v| v == value)
}

/// Address of the resource, when Terraform keeps it.
pub fn address<'a>(want: &Resource, state: &'a [TerraformResource]) -> Option<&'a str> {
    state
        .iter()
        .find(|t| keeps(t, want))
        .map(|t| t.address.as_str())
}

fn keeps(t: &TerraformResource, want: &Resource) -> bool {
    // Ids of EKS's parts are `cluster:name` in the provider.
    let part = |kind: &str, cluster: &str, field: &str, name: &str| {
        t.kind == kind
            && (has(t, "id", &format!("{cluster}:{name}"))
                || has(t, "cluster_name", cluster) && has(t, field, name))
    };
    match want {
        Resource::Role { name, .. } => {
            t.kind == "aws_iam_role" && (has(t, "name", name) || has(t, "id", name))
        }
        Resource::OidcProvider { issuer, .. } => {
            let bare = issuer.trim_start_matches("https://");
            t.kind == "aws_iam_openid_connect_provider"
                && ["url", "arn", "id"].iter().any(|k| {
                    t.attributes.get(*k).is_some_and(|v| {
                        v.trim_start_matches("https://") == bare
                            || v.ends_with(&format!(":oidc-provider/{bare}"))
                    })
                })
        }
        Resource::Cluster { name, .. } => {
            t.kind == "aws_eks_cluster" && (has(t, "name", name) || has(t, "id", name))
        }
        Resource::NodeGroup { cluster, name, .. } => {
            part("aws_eks_node_group", cluster, "node_group_name", name)
        }
        Resource::Addon { cluster, name, .. } => part("aws_eks_addon", cluster, "addon_name", name),
        Resource::AccessEntry {
            cluster, principal, ..
        } => part("aws_eks_access_entry", cluster, "principal_arn", principal),
        Resource::LaunchTemplate { name, .. } => {
            t.kind == "aws_launch_template" && has(t, "name", name)
        }
        Resource::SecurityGroupRule {
            group,
            protocol,
            from_port,
            to_port,
            source_group,
            ..
        } => {
            let (proto, source) = match t.kind.as_str() {
                "aws_security_group_rule" if has(t, "type", "ingress") => {
                    ("protocol", "source_security_group_id")
                }
                "aws_vpc_security_group_ingress_rule" => {
                    ("ip_protocol", "referenced_security_group_id")
                }
                _ => return false,
            };
            has(t, "security_group_id", group)
                && has(t, proto, protocol)
                && has(t, source, source_group)
                && (protocol == "-1"
                    || has(t, "from_port", &from_port.to_string())
                        && has(t, "to_port", &to_port.to_string()))
        }
        Resource::Tag { resource, key, .. } => {
            t.kind == "aws_ec2_tag" && has(t, "resource_id", resource) && has(t, "key", key)
        }
        Resource::PodIdentityAssociation {
            cluster,
            namespace,
            service_account,
            ..
        } => {
            t.kind == "aws_eks_pod_identity_association"
                && has(t, "cluster_name", cluster)
                && has(t, "namespace", namespace)
                && has(t, "service_account", service_account)
        }
        Resource::LogGroup { name, .. } => {
            t.kind == "aws_cloudwatch_log_group" && (has(t, "name", name) || has(t, "id", name))
        }
        Resource::StateBucket { name, .. } => {
            t.kind == "aws_s3_bucket" && (has(t, "bucket", name) || has(t, "id", name))
        }
        // The provider has no resource for one statement of a trust policy.
        Resource::TrustStatement { .. } => false,
    }
}

/// The thing of Terraform's to which the plan adds a part: its next apply would take the part away again.
pub fn owner<'a>(want: &Resource, state: &'a [TerraformResource]) -> Option<&'a TerraformResource> {
    state.iter().find(|t| match want {
        Resource::Tag { resource, .. } => {
            matches!(
                t.kind.as_str(),
                "aws_subnet" | "aws_vpc" | "aws_security_group"
            ) && has(t, "id", resource)
        }
        Resource::TrustStatement { role, .. } => {
            t.kind == "aws_iam_role" && (has(t, "name", role) || has(t, "id", role))
        }
        // Only groups with inline rules lose a foreign rule, and the state's attributes do not tell which have some.
        Resource::SecurityGroupRule { group, .. } => {
            t.kind == "aws_security_group" && has(t, "id", group)
        }
        _ => false,
    })
}
