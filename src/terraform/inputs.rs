//! What the modules are given: every field of every resource, in the words of `terraform/modules`. A field that a resource gets one
//! day does not compile until it stands here.

use super::hcl::{Expr, Key, Part, json, reference, text};
use crate::world::cloud::{Disk, Resource, Taint};
use std::collections::BTreeMap;

/// Module of the roles that do not wait for the cluster.
pub const SERVICE_ROLES: &str = "service_roles";
/// Module of the roles whose trust names green's issuer.
pub const ACCOUNT_ROLES: &str = "service_account_roles";

/// What placeholders and names of other resources become.
#[derive(Default)]
pub struct Names {
    /// Rendered roles: ARN as the plan spells it (with `${account}`), to module and name.
    pub roles: BTreeMap<String, (&'static str, String)>,
    /// Whether the cluster is rendered: then its name comes from the module, so that who needs it waits for it.
    pub cluster: bool,
}

/// Placeholders of [`Resource`] and what they are in the root module.
pub const PLACEHOLDERS: &[(&str, &str)] = &[
    ("${cluster.issuer}", "local.issuer"),
    ("${cluster.security_group}", "local.cluster_security_group"),
    ("${account}", "var.account"),
    ("${caller}", "var.caller"),
];

/// A string of the plan: its placeholders become references, everything else stays as it is.
pub fn template(s: &str) -> Vec<Part> {
    let mut out = vec![];
    let mut lit = String::new();
    let mut rest = s;
    while !rest.is_empty() {
        let found = PLACEHOLDERS.iter().find(|(p, _)| rest.starts_with(p));
        if let Some((placeholder, name)) = found {
            if !lit.is_empty() {
                out.push(Part::Lit(std::mem::take(&mut lit)));
            }
            out.push(Part::Ref((*name).into()));
            rest = &rest[placeholder.len()..];
        } else {
            let c = rest.chars().next().unwrap_or_default();
            lit.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    if !lit.is_empty() || out.is_empty() {
        out.push(Part::Lit(lit));
    }
    out
}

/// A string of the plan as an expression.
pub fn string(s: &str) -> Expr {
    Expr::Text(template(s))
}

fn strings<'a>(all: impl IntoIterator<Item = &'a String>) -> Expr {
    Expr::List(all.into_iter().map(|s| string(s)).collect())
}

fn map(all: &BTreeMap<String, String>) -> Expr {
    Expr::Object(
        all.iter()
            .map(|(k, v)| (Key::Text(template(k)), string(v)))
            .collect(),
    )
}

fn number(n: impl ToString) -> Expr {
    Expr::Number(n.to_string())
}

/// JSON as a string for AWS.
fn document(value: &serde_json::Value) -> Expr {
    Expr::Call("jsonencode", Box::new(json(value, &template)))
}

/// A subnet: an id, or what a person must fill in because the account was not read.
pub fn subnet(s: &str) -> Expr {
    if s.starts_with("subnet-") {
        text(s)
    } else {
        reference(format!(
            "var.subnets[{}]",
            super::hcl::quoted(&[Part::Lit(s.into())])
        ))
    }
}

fn subnets(all: &[String]) -> Expr {
    Expr::List(all.iter().map(|s| subnet(s)).collect())
}

/// Fields of an object, in order, absent ones left out.
struct Fields(Vec<(Key, Expr)>);

impl Fields {
    fn new() -> Self {
        Fields(vec![])
    }
    fn with(mut self, name: &str, value: Expr) -> Self {
        self.0.push((Key::Ident(name.into()), value));
        self
    }
    fn maybe(self, name: &str, value: Option<Expr>) -> Self {
        match value {
            Some(v) => self.with(name, v),
            None => self,
        }
    }
    fn filled(self, name: &str, value: Expr) -> Self {
        match &value {
            Expr::List(l) if l.is_empty() => self,
            Expr::Object(o) if o.is_empty() => self,
            _ => self.with(name, value),
        }
    }
}

impl Names {
    /// An ARN of a role: through the module that makes it, so that who needs it waits for it.
    fn role(&self, arn: &str) -> Expr {
        match self.roles.get(arn) {
            Some((module, name)) => reference(format!(
                "module.{module}.arns[{}]",
                super::hcl::quoted(&[Part::Lit(name.clone())])
            )),
            None => string(arn),
        }
    }

    /// The input of one resource: the entry of its module's map, or (of the cluster) all inputs. `None` for what has no place in
    /// Terraform. User data stands in a file beside: `file` names it.
    pub fn input(&self, resource: &Resource, file: Option<&str>) -> Option<Vec<(Key, Expr)>> {
        let fields = match resource {
            Resource::Role {
                name: _,
                trust,
                managed_policies,
                inline_policies,
                boundary,
                path,
            } => Fields::new()
                .with("trust", document(trust))
                .filled("managed_policies", strings(managed_policies))
                .filled(
                    "inline_policies",
                    Expr::Object(
                        inline_policies
                            .iter()
                            .map(|(k, v)| (Key::Text(template(k)), document(v)))
                            .collect(),
                    ),
                )
                .maybe("boundary", boundary.as_deref().map(string))
                .maybe("path", path.as_deref().map(string)),
            Resource::OidcProvider { issuer, client_ids } => Fields::new()
                .with("issuer", string(issuer.trim_start_matches("https://")))
                .with("client_ids", strings(client_ids)),
            Resource::Cluster {
                name,
                version,
                role_arn,
                subnets: _,
                service_cidr,
                public_endpoint,
                private_endpoint,
                endpoint_cidrs,
                logging,
                kms_key,
                deletion_protection,
                support_type,
                security_groups,
            } => Fields::new()
                .with("name", string(name))
                .with("kubernetes_version", string(version))
                .with("role_arn", self.role(role_arn))
                .with("subnets", reference("module.network.subnets"))
                .filled("security_groups", strings(security_groups))
                .maybe("service_cidr", service_cidr.as_deref().map(string))
                .with("private_endpoint", Expr::Bool(*private_endpoint))
                .with("public_endpoint", Expr::Bool(*public_endpoint))
                .filled("endpoint_cidrs", strings(endpoint_cidrs))
                .filled("logging", strings(logging))
                .maybe("kms_key", kms_key.as_deref().map(string))
                .with("deletion_protection", Expr::Bool(*deletion_protection))
                .with("support_type", string(support_type)),
            Resource::Addon {
                cluster: _,
                name: _,
                version,
                service_account_role,
                configuration,
                conflicts,
            } => Fields::new()
                .maybe("version", version.as_deref().map(string))
                .maybe(
                    "role_arn",
                    service_account_role.as_deref().map(|r| self.role(r)),
                )
                .maybe("configuration", configuration.as_ref().map(document))
                .with("conflicts", string(conflicts)),
            Resource::PodIdentityAssociation {
                cluster: _,
                namespace,
                service_account,
                role_arn,
            } => Fields::new()
                .with("namespace", string(namespace))
                .with("service_account", string(service_account))
                .with("role_arn", self.role(role_arn)),
            Resource::LogGroup {
                name: _,
                retention_days,
            } => Fields::new().maybe("retention_days", retention_days.map(number)),
            Resource::AccessEntry {
                cluster: _,
                principal: _,
                groups,
                policy,
                namespaces,
            } => Fields::new()
                .filled("groups", strings(groups))
                .maybe("policy", policy.as_deref().map(string))
                .filled("namespaces", strings(namespaces)),
            Resource::LaunchTemplate {
                name: _,
                root,
                volumes,
                http_tokens,
                hop_limit,
                security_groups,
                user_data,
                tags,
                monitoring,
                tenancy,
                cpu_credits,
                associate_public_ip,
            } => Fields::new()
                .with("root", disk(root))
                .filled("volumes", Expr::List(volumes.iter().map(disk).collect()))
                .with("http_tokens", string(http_tokens))
                .with("hop_limit", number(hop_limit))
                .filled("security_groups", strings(security_groups))
                .maybe(
                    "user_data",
                    user_data
                        .as_ref()
                        .zip(file)
                        .map(|(_, file)| reference(format!("file(\"${{path.module}}/{file}\")"))),
                )
                .filled("tags", map(tags))
                .with("monitoring", Expr::Bool(*monitoring))
                .maybe("tenancy", tenancy.as_deref().map(string))
                .maybe("cpu_credits", cpu_credits.as_deref().map(string))
                .maybe("associate_public_ip", associate_public_ip.map(Expr::Bool)),
            Resource::NodeGroup {
                cluster: _,
                name: _,
                role_arn,
                subnets: of,
                instance_types,
                ami_type,
                capacity_type,
                min,
                max,
                desired,
                disk_gib,
                labels,
                taints,
                launch_template,
                max_unavailable,
                repair,
            } => Fields::new()
                .with("role_arn", self.role(role_arn))
                .with("subnets", subnets(of))
                .with("instance_types", strings(instance_types))
                .with("ami_type", string(ami_type))
                .with("capacity_type", string(capacity_type))
                .with("min", number(min))
                .with("max", number(max))
                .with("desired", number(desired))
                .with("disk_gib", number(disk_gib))
                .filled("labels", map(labels))
                .filled("taints", Expr::List(taints.iter().map(taint).collect()))
                .maybe("launch_template", launch_template.as_deref().map(string))
                .maybe("max_unavailable", max_unavailable.as_deref().map(string))
                .with("repair", Expr::Bool(*repair)),
            Resource::SecurityGroupRule {
                group,
                protocol,
                from_port,
                to_port,
                source_group,
                description,
            } => Fields::new()
                .with("group", string(group))
                .with("protocol", string(protocol))
                .with("from_port", number(from_port))
                .with("to_port", number(to_port))
                .with("source_group", string(source_group))
                .with("description", string(description)),
            Resource::Tag {
                resource,
                key,
                value,
            } => Fields::new()
                .with("resource", string(resource))
                .with("key", string(key))
                .with("value", string(value)),
            Resource::TrustStatement { .. } | Resource::StateBucket { .. } => return None,
        };
        Some(fields.0)
    }
}

fn disk(d: &Disk) -> Expr {
    let Disk {
        device,
        gib,
        kind,
        iops,
        throughput,
        encrypted,
        kms_key,
        delete_on_termination,
    } = d;
    Expr::Object(
        Fields::new()
            .with("device", string(device))
            .with("gib", number(gib))
            .with("kind", string(kind))
            .maybe("iops", iops.map(number))
            .maybe("throughput", throughput.map(number))
            .with("encrypted", Expr::Bool(*encrypted))
            .maybe("kms_key", kms_key.as_deref().map(string))
            .with("delete_on_termination", Expr::Bool(*delete_on_termination))
            .0,
    )
}

fn taint(t: &Taint) -> Expr {
    let Taint { key, value, effect } = t;
    Expr::Object(
        Fields::new()
            .with("key", string(key))
            .with("value", string(value))
            .with("effect", string(effect))
            .0,
    )
}
