//! Where a resource stands in the root module, and by which id Terraform finds one that exists.

use super::hcl::{Expr, Part, quoted};
use super::inputs::{ACCOUNT_ROLES, SERVICE_ROLES, string};
use crate::world::cloud::Resource;

/// An import block.
#[derive(Clone, Debug, PartialEq)]
pub struct Import {
    /// Address.
    pub to: String,
    /// Id, as the provider takes it.
    pub id: Expr,
}

/// Account and caller, as far as they are known: an address takes no references.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Account id.
    pub account: Option<String>,
    /// Principal of the caller.
    pub caller: Option<String>,
}

impl Known {
    fn fill(&self, s: &str) -> String {
        let mut out = s.to_string();
        for (placeholder, value) in [("${account}", &self.account), ("${caller}", &self.caller)] {
            if let Some(value) = value {
                out = out.replace(placeholder, value);
            }
        }
        out
    }

    fn index(&self, s: &str) -> Option<String> {
        let key = self.fill(s);
        (!key.contains("${")).then(|| quoted(&[Part::Lit(key)]))
    }
}

/// Whether a role's trust names green's issuer: then it is made after the cluster.
pub fn after_cluster(resource: &Resource) -> bool {
    matches!(resource, Resource::Role { trust, .. } if trust.to_string().contains("${cluster."))
}

/// Module of a resource.
pub fn module(resource: &Resource) -> &'static str {
    match resource {
        Resource::Role { .. } if after_cluster(resource) => ACCOUNT_ROLES,
        Resource::Role { .. } => SERVICE_ROLES,
        Resource::OidcProvider { .. } => "oidc",
        Resource::Cluster { .. } => "cluster",
        Resource::Addon { name, .. } if early(name) => "addons_before_nodes",
        Resource::Addon { .. } => "addons",
        Resource::PodIdentityAssociation { .. } => "pod_identity",
        Resource::LogGroup { .. } => "logs",
        Resource::AccessEntry { .. } => "access",
        Resource::LaunchTemplate { .. } | Resource::NodeGroup { .. } => "nodes",
        Resource::SecurityGroupRule { .. }
        | Resource::Tag { .. }
        | Resource::TrustStatement { .. }
        | Resource::StateBucket { .. } => "shared",
    }
}

/// Add-ons without which no node becomes ready (eks.md 1.5).
pub fn early(addon: &str) -> bool {
    matches!(addon, "vpc-cni" | "kube-proxy" | "eks-pod-identity-agent")
}

/// Address of a resource itself, without what hangs on it; `None` when it has none, or only the run knows its key.
pub fn address(resource: &Resource, known: &Known) -> Option<String> {
    let module = module(resource);
    let at = |kind: &str, key: &str| {
        let key = known.index(key)?;
        Some(format!("module.{module}.{kind}[{key}]"))
    };
    match resource {
        Resource::Role { name, .. } => at("aws_iam_role.role", name),
        Resource::OidcProvider { .. } => Some(format!(
            "module.{module}.aws_iam_openid_connect_provider.green"
        )),
        Resource::Cluster { .. } => Some(format!("module.{module}.aws_eks_cluster.green")),
        Resource::Addon { name, .. } => at("aws_eks_addon.addon", name),
        Resource::PodIdentityAssociation {
            namespace,
            service_account,
            ..
        } => at(
            "aws_eks_pod_identity_association.account",
            &format!("{namespace}/{service_account}"),
        ),
        Resource::LogGroup { name, .. } => at("aws_cloudwatch_log_group.group", name),
        Resource::AccessEntry { principal, .. } => at("aws_eks_access_entry.entry", principal),
        Resource::LaunchTemplate { name, .. } => at("aws_launch_template.template", name),
        Resource::NodeGroup { name, .. } => at("aws_eks_node_group.group", name),
        Resource::SecurityGroupRule { .. } => at("aws_security_group_rule.ingress", &key(resource)),
        Resource::Tag { .. } => at("aws_ec2_tag.tag", &key(resource)),
        Resource::TrustStatement { .. } | Resource::StateBucket { .. } => None,
    }
}

/// Name of a resource in the map of its module.
pub fn key(resource: &Resource) -> String {
    match resource {
        Resource::Role { name, .. }
        | Resource::Addon { name, .. }
        | Resource::LogGroup { name, .. }
        | Resource::LaunchTemplate { name, .. }
        | Resource::NodeGroup { name, .. } => name.clone(),
        Resource::AccessEntry { principal, .. } => principal.clone(),
        Resource::PodIdentityAssociation {
            namespace,
            service_account,
            ..
        } => format!("{namespace}/{service_account}"),
        // What is only known once the cluster stands is no part of a name.
        other => {
            let id = crate::plan::diff::shown(&other.id(), "green");
            id.split_once('/')
                .map_or(id.clone(), |(_, rest)| rest.into())
        }
    }
}

/// Import blocks of a resource of the plan that exists as `made`; why not when there can be none.
pub fn imports(resource: &Resource, made: &Resource, known: &Known) -> Result<Vec<Import>, String> {
    let to = address(resource, known)
        .ok_or("its address holds what only the run knows; import it by hand")?;
    let module = module(resource);
    let own = |id: String| -> Vec<Import> {
        vec![Import {
            to: to.clone(),
            id: string(&known.fill(&id)),
        }]
    };
    Ok(match made {
        Resource::Role {
            name,
            managed_policies,
            inline_policies,
            ..
        } => {
            let mut out = own(name.clone());
            let mut part = |kind: &str, what: &str, id: String| -> Result<(), String> {
                let index = known
                    .index(&format!("{name}/{what}"))
                    .ok_or("the ARN of one of its policies is not known; import it by hand")?;
                out.push(Import {
                    to: format!("module.{module}.{kind}[{index}]"),
                    id: string(&known.fill(&id)),
                });
                Ok(())
            };
            for arn in managed_policies {
                part(
                    "aws_iam_role_policy_attachment.managed",
                    arn,
                    format!("{name}/{arn}"),
                )?;
            }
            for policy in inline_policies.keys() {
                part(
                    "aws_iam_role_policy.inline",
                    policy,
                    format!("{name}:{policy}"),
                )?;
            }
            out
        }
        Resource::OidcProvider { issuer, .. } => own(format!(
            "arn:aws:iam::${{account}}:oidc-provider/{}",
            issuer.trim_start_matches("https://")
        )),
        Resource::Cluster { name, .. } | Resource::LogGroup { name, .. } => own(name.clone()),
        Resource::Addon { cluster, name, .. } | Resource::NodeGroup { cluster, name, .. } => {
            own(format!("{cluster}:{name}"))
        }
        Resource::AccessEntry {
            cluster,
            principal,
            policy,
            ..
        } => {
            let mut out = own(format!("{cluster}:{principal}"));
            if let Some(policy) = policy {
                let principal = known.fill(principal);
                let partition = principal.split(':').nth(1).unwrap_or("aws").to_string();
                out.push(Import {
                    to: to.replace("aws_eks_access_entry.entry", "aws_eks_access_policy_association.policy"),
                    id: string(&format!(
                        "{cluster}#{principal}#arn:{partition}:eks::aws:cluster-access-policy/{policy}"
                    )),
                });
            }
            out
        }
        // Terraform wants its id, which only EC2 knows: it is looked up by name.
        Resource::LaunchTemplate { name, .. } => vec![Import {
            to: to.clone(),
            id: Expr::Ref(format!(
                "data.aws_launch_template.made[{}].id",
                quoted(&[Part::Lit(name.clone())])
            )),
        }],
        Resource::SecurityGroupRule {
            group,
            protocol,
            from_port,
            to_port,
            source_group,
            ..
        } => {
            // All protocols, and with them all ports, are spelled otherwise here.
            let (protocol, from, to_port) = match protocol.as_str() {
                "-1" => ("all", 0, 65536),
                p => (p, *from_port, *to_port),
            };
            own(format!(
                "{group}_ingress_{protocol}_{from}_{to_port}_{source_group}"
            ))
        }
        Resource::Tag { resource, key, .. } => own(format!("{resource},{key}")),
        Resource::PodIdentityAssociation { cluster, .. } => {
            return Err(format!(
                "its id is EKS's own: aws eks list-pod-identity-associations --cluster-name {cluster}, then terraform import '{to}' {cluster},ID"
            ));
        }
        Resource::TrustStatement { .. } | Resource::StateBucket { .. } => vec![],
    })
}

/// Id by which `terraform import` finds a resource with everything filled in; `None` where only AWS knows it.
pub fn import_id(resource: &Resource, known: &Known) -> Option<String> {
    let first = imports(resource, resource, known)
        .ok()?
        .into_iter()
        .next()?;
    match first.id {
        Expr::Text(parts) => parts
            .into_iter()
            .map(|p| match p {
                Part::Lit(s) => Some(s),
                Part::Ref(_) => None,
            })
            .collect(),
        _ => None,
    }
}
