//! Every cloud resource of the target in the order of eks.md 0.4; what they are is decided in the rooms `iam`, `addons` and `access`.

use super::access::Access;
use super::addons::{Addons, S3_ACCOUNT};
use super::dns::Names;
use super::iam::{self, Iam, policy, trust};
use super::kops::role_name;
use super::model::{Target, TargetAddon, TargetRole};
use crate::rewrite::partition;
use crate::snapshot::model::Snapshot;
use crate::spec::model::Spec;
use crate::world::cloud::Resource;
use serde_json::Value;
use std::collections::BTreeMap;

/// Adds roles, add-ons, components and access to the target.
pub(super) fn complete(
    mut target: Target,
    spec: &Spec,
    names: &Names,
    iam: &Iam,
    addons: &Addons,
    access: &Access,
    snapshot: &Snapshot,
) -> Target {
    let region = &target.cluster.region;
    target.roles = iam::complete(spec, region, names, addons, snapshot, iam);
    target.addons = addons.addons.clone();
    for addon in &mut target.addons {
        addon.role = match (&addon.role, addon.name.as_str()) {
            (Some(what), _) => Some(role_name(&spec.green.name, what)),
            (None, "aws-mountpoint-s3-csi-driver") => role_of(&target.roles, S3_ACCOUNT),
            (None, _) => None,
        };
    }
    target.components = addons.components.clone();
    target.access = access.entries.clone();
    target
}

fn role_of(roles: &[TargetRole], account: &str) -> Option<String> {
    roles
        .iter()
        .find(|r| r.service_account.as_deref() == Some(account))
        .map(|r| r.name.clone())
}

/// ARN of a role of the target.
fn arn_of(target: &Target, region: &str, name: &str) -> String {
    let path = target
        .roles
        .iter()
        .find(|r| r.name == name)
        .and_then(|r| r.path.as_deref())
        .unwrap_or("/");
    format!(
        "arn:{}:iam::${{account}}:role{path}{name}",
        partition(region)
    )
}

/// ARN of a role that exists, with the path that the account lists it under.
fn existing_arn(snapshot: &Snapshot, region: &str, name: &str) -> String {
    let listed = snapshot
        .aws
        .iter()
        .flat_map(|a| &a.roles)
        .find(|r| r.name == name);
    match listed {
        Some(r) => r.arn.clone(),
        None => format!("arn:{}:iam::${{account}}:role/{name}", partition(region)),
    }
}

/// A resource with the ids of resources that must be there before it.
pub(super) struct Needed {
    pub resource: Resource,
    pub needs: Vec<String>,
}

/// All cloud resources with what they need.
pub(super) fn all(target: &Target, spec: &Spec, snapshot: &Snapshot) -> Vec<Needed> {
    let green = spec.green.name.clone();
    let region = target.cluster.region.clone();
    let mut out: Vec<Needed> = vec![];
    let mut add = |resource: Resource, needs: &[String]| -> String {
        let id = resource.id();
        out.push(Needed {
            resource,
            needs: needs.to_vec(),
        });
        id
    };
    if let Some(bucket) = &spec.aws.state_bucket {
        add(Resource::state_bucket(&bucket.name, bucket.create), &[]);
    }
    let mut roles: BTreeMap<String, String> = BTreeMap::new();
    for r in target.roles.iter().filter(|r| r.service.is_some()) {
        let trust = trust::service(r.service.as_deref().unwrap_or_default());
        roles.insert(r.name.clone(), add(role(r, trust), &[]));
    }
    let of = |roles: &BTreeMap<String, String>, what: &str| -> Vec<String> {
        roles
            .get(&role_name(&green, what))
            .cloned()
            .into_iter()
            .collect()
    };
    // Also those that only load balancers use: green's controllers skip a subnet that carries blue's tag alone (eks.md 2.2.6).
    let mut tagged: Vec<String> = target.cluster.subnets.clone();
    for subnet in snapshot.aws.iter().flat_map(|a| &a.subnets) {
        let for_balancers = ["kubernetes.io/role/elb", "kubernetes.io/role/internal-elb"]
            .iter()
            .any(|role| subnet.tags.contains_key(*role));
        if for_balancers && !tagged.contains(&subnet.id) {
            tagged.push(subnet.id.clone());
        }
    }
    for s in &tagged {
        add(
            Resource::Tag {
                resource: s.clone(),
                key: format!("kubernetes.io/cluster/{green}"),
                value: "shared".into(),
            },
            &[],
        );
    }
    let plane = &spec.green.control_plane;
    let mut before_cluster = of(&roles, "cluster");
    if !plane.logs.is_empty() {
        // EKS makes the group by itself when nobody did, without retention, and leaves it behind (eks.md 1.2).
        before_cluster.push(add(
            Resource::LogGroup {
                name: format!("/aws/eks/{green}/cluster"),
                retention_days: plane.log_days,
            },
            &[],
        ));
    }
    let cluster = add(
        Resource::Cluster {
            name: green.clone(),
            version: target.cluster.version.clone(),
            role_arn: arn_of(target, &region, &role_name(&green, "cluster")),
            subnets: target.cluster.subnets.clone(),
            service_cidr: spec.green.service_cidr.clone(),
            public_endpoint: spec.green.public_endpoint,
            private_endpoint: true,
            endpoint_cidrs: spec.green.endpoint_cidrs.clone(),
            logging: plane.logs.clone(),
            kms_key: plane.secrets_key.clone(),
            deletion_protection: plane.deletion_protection,
            support_type: plane.support.word().into(),
            security_groups: plane.security_groups.clone(),
        },
        &before_cluster,
    );
    let oidc = add(
        Resource::OidcProvider {
            issuer: "https://${cluster.issuer}".into(),
            client_ids: vec!["sts.amazonaws.com".into()],
        },
        std::slice::from_ref(&cluster),
    );
    add(
        Resource::AccessEntry {
            cluster: green.clone(),
            principal: "${caller}".into(),
            groups: vec![],
            policy: Some("AmazonEKSClusterAdminPolicy".into()),
            namespaces: vec![],
        },
        std::slice::from_ref(&cluster),
    );
    for a in &target.access {
        add(
            Resource::AccessEntry {
                cluster: green.clone(),
                principal: a.principal.clone(),
                groups: a.groups.clone(),
                policy: a.policy.clone(),
                namespaces: vec![],
            },
            std::slice::from_ref(&cluster),
        );
    }
    for r in target
        .roles
        .iter()
        .filter(|r| r.service.is_none() && !r.existing)
    {
        let accounts: Vec<&str> = r.service_account.as_deref().into_iter().collect();
        let id = if r.pod_identity {
            // Green's name is enough for this trust: nothing of it waits for the cluster.
            let document = policy::document([trust::pods(&region, &green, None)]);
            add(role(r, document), &[])
        } else {
            let document = policy::document([trust::statement(&region, None, &accounts)]);
            add(role(r, document), std::slice::from_ref(&oidc))
        };
        roles.insert(r.name.clone(), id);
    }
    // Accounts that share a role share a statement: the quota of a trust policy counts characters (eks.md 3).
    let mut shared: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for r in target.roles.iter().filter(|r| r.existing) {
        shared
            .entry(&r.name)
            .or_default()
            .extend(r.service_account.as_deref());
    }
    for (name, accounts) in shared {
        for (sid, statement) in trust::added(spec, &region, name, &accounts) {
            let of_pods = statement["Principal"]["Service"].is_string();
            let id = add(
                Resource::TrustStatement {
                    role: name.into(),
                    statement,
                    sid,
                },
                if of_pods {
                    &[]
                } else {
                    std::slice::from_ref(&oidc)
                },
            );
            if of_pods {
                roles.insert(name.to_string(), id);
            }
        }
    }
    // Pods see their role only when the association stands before they do: everything of this phase does before unpark.
    let mut associated: BTreeMap<String, String> = BTreeMap::new();
    for r in target.roles.iter().filter(|r| r.pod_identity) {
        let Some((namespace, name)) = r.service_account.as_deref().and_then(|a| a.split_once('/'))
        else {
            continue;
        };
        let mut needs = vec![cluster.clone()];
        needs.extend(roles.get(&r.name).cloned());
        let id = add(
            Resource::PodIdentityAssociation {
                cluster: green.clone(),
                namespace: namespace.into(),
                service_account: name.into(),
                role_arn: if r.existing {
                    existing_arn(snapshot, &region, &r.name)
                } else {
                    arn_of(target, &region, &r.name)
                },
            },
            &needs,
        );
        associated.insert(r.name.clone(), id);
    }
    let addon = |a: &TargetAddon| Resource::Addon {
        cluster: green.clone(),
        name: a.name.clone(),
        version: a.version.clone(),
        service_account_role: a
            .role
            .as_ref()
            .filter(|r| !associated.contains_key(*r))
            .map(|r| arn_of(target, &region, r)),
        configuration: a.configuration.clone(),
        conflicts: a.conflicts.clone().unwrap_or_else(|| "OVERWRITE".into()),
    };
    let needs_role = |a: &TargetAddon| {
        let role = a.role.as_ref()?;
        associated.get(role).or_else(|| roles.get(role)).cloned()
    };
    // Without the CNI nodes stay NotReady (eks.md 1.5).
    let early = |a: &TargetAddon| {
        matches!(
            a.name.as_str(),
            "vpc-cni" | "kube-proxy" | "eks-pod-identity-agent"
        )
    };
    let mut before_nodes = vec![];
    for a in target.addons.iter().filter(|a| early(a)) {
        let mut needs = vec![cluster.clone()];
        needs.extend(needs_role(a));
        before_nodes.push(add(addon(a), &needs));
    }
    before_nodes.extend(of(&roles, "node"));
    let mut nodes = vec![];
    for g in &target.node_groups {
        let t = &g.launch_template;
        // A template with groups of its own must name the cluster's too, so it waits for the cluster.
        let template = add(
            Resource::LaunchTemplate {
                name: t.name.clone(),
                root: t.root.clone(),
                volumes: t.volumes.clone(),
                http_tokens: t.http_tokens.clone(),
                hop_limit: t.hop_limit,
                security_groups: t.security_groups.clone(),
                user_data: t.user_data.clone(),
                tags: t.tags.clone(),
                monitoring: t.monitoring,
                tenancy: t.tenancy.clone(),
                cpu_credits: t.cpu_credits.clone(),
                associate_public_ip: t.associate_public_ip,
            },
            if t.security_groups.is_empty() {
                &[]
            } else {
                std::slice::from_ref(&cluster)
            },
        );
        let mut needs = before_nodes.clone();
        needs.push(template);
        nodes.push(add(
            Resource::NodeGroup {
                cluster: green.clone(),
                name: g.name.clone(),
                role_arn: arn_of(target, &region, &role_name(&green, "node")),
                subnets: g.subnets.clone(),
                instance_types: g.instance_types.clone(),
                ami_type: g.ami_type.clone(),
                capacity_type: g.capacity_type.clone(),
                min: g.min,
                max: g.max,
                desired: g.desired,
                disk_gib: g.disk_gib,
                labels: g.labels.clone(),
                taints: g.taints.clone(),
                launch_template: Some(t.name.clone()),
                max_unavailable: g.max_unavailable.clone(),
                repair: spec.green.nodes.repair,
            },
            &needs,
        ));
    }
    let mut late = nodes.clone();
    late.push(cluster.clone());
    for a in target.addons.iter().filter(|a| !early(a)) {
        let mut needs = late.clone();
        needs.extend(needs_role(a));
        add(addon(a), &needs);
    }
    // Rules of other people's groups that let blue's nodes in, once more for green's (eks.md 2.3): added beside them, never edited.
    for trust in super::trust::trust_of_blue(snapshot, spec, target) {
        if let super::trust::NodeTrust::Mirrored { rule, .. } = trust {
            add(*rule, std::slice::from_ref(&cluster));
        }
    }
    out
}

/// A role of the target as a resource.
fn role(r: &TargetRole, trust: Value) -> Resource {
    Resource::Role {
        name: r.name.clone(),
        trust,
        managed_policies: r
            .policies
            .iter()
            .filter(|p| !r.inline_policies.contains_key(*p))
            .cloned()
            .collect(),
        inline_policies: r.inline_policies.clone(),
        boundary: r.boundary.clone(),
        path: r.path.clone(),
    }
}

#[cfg(test)]
#[path = "resources_tests.rs"]
mod tests;
