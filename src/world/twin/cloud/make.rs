//! Creating and deleting: what AWS would refuse is refused, repeats of the same run are fine.

use super::{ADDON, CLUSTER, NODE_GROUP, NODES, State, Thing, timed};
use crate::world::cloud::{
    EksCluster, Existing, Found, IngressRule, Resource, SecurityGroup, Status, Subnet,
};
use crate::world::{Class, Error, Result};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A trust policy's statements; IAM takes one object for a list of one.
fn statements(trust: &Value) -> Vec<Value> {
    match &trust["Statement"] {
        Value::Array(a) => a.clone(),
        Value::Object(_) => vec![trust["Statement"].clone()],
        _ => vec![],
    }
}

fn found(equal: bool, attributes: BTreeMap<String, String>, run: Option<String>) -> Found {
    Found {
        status: Status::Ready,
        run,
        equal,
        differences: vec![],
        attributes,
        created: None,
        issues: vec![],
        doing: None,
    }
}

impl State {
    fn subnet(&self, id: &str) -> Option<&Subnet> {
        self.cloud.inventory.subnets.iter().find(|s| s.id == id)
    }

    fn tags_of(&mut self, id: &str) -> Option<&mut BTreeMap<String, String>> {
        let inv = &mut self.cloud.inventory;
        inv.subnets
            .iter_mut()
            .find(|s| s.id == id)
            .map(|s| &mut s.tags)
            .or_else(|| {
                inv.security_groups
                    .iter_mut()
                    .find(|g| g.id == id)
                    .map(|g| &mut g.tags)
            })
            .or_else(|| inv.vpc.as_mut().filter(|v| v.id == id).map(|v| &mut v.tags))
    }

    /// The trust policy of a role, made here or long before.
    fn trust_of(&mut self, role: &str) -> Option<&mut Value> {
        if let Some(Resource::Role { trust, .. }) = self
            .cloud
            .things
            .get_mut(&format!("role/{role}"))
            .map(|t| &mut t.resource)
        {
            return Some(trust);
        }
        self.cloud
            .inventory
            .roles
            .iter_mut()
            .find(|r| r.name == role)
            .map(|r| &mut r.trust)
    }

    /// Things that are parts of others (rules, tags, statements) or were there before.
    pub(super) fn find_in_inventory(&self, resource: &Resource) -> Option<Found> {
        let inv = &self.cloud.inventory;
        match resource {
            Resource::SecurityGroupRule {
                group,
                protocol,
                from_port,
                to_port,
                source_group,
                description,
            } => {
                let g = inv.security_groups.iter().find(|g| g.id == *group)?;
                let rule = g.ingress.iter().find(|r| {
                    r.protocol == *protocol
                        && r.from_port == *from_port
                        && r.to_port == *to_port
                        && r.source_group.as_deref() == Some(source_group)
                })?;
                Some(found(
                    rule.description.as_deref() == Some(description),
                    BTreeMap::new(),
                    None,
                ))
            }
            Resource::Tag {
                resource,
                key,
                value,
            } => {
                let tags = inv
                    .subnets
                    .iter()
                    .find(|s| s.id == *resource)
                    .map(|s| &s.tags)
                    .or_else(|| {
                        inv.security_groups
                            .iter()
                            .find(|g| g.id == *resource)
                            .map(|g| &g.tags)
                    })
                    .or_else(|| {
                        inv.vpc
                            .as_ref()
                            .filter(|v| v.id == *resource)
                            .map(|v| &v.tags)
                    })?;
                let have = tags.get(key)?;
                Some(found(
                    have == value,
                    BTreeMap::from([("value".into(), have.clone())]),
                    None,
                ))
            }
            Resource::TrustStatement {
                role,
                sid,
                statement,
            } => {
                let own = format!("role/{role}");
                let trust = match self.cloud.things.get(&own).map(|t| &t.resource) {
                    Some(Resource::Role { trust, .. }) => trust,
                    _ => &inv.roles.iter().find(|r| r.name == *role)?.trust,
                };
                let have = statements(trust)
                    .into_iter()
                    .find(|s| s["Sid"] == json!(sid))?;
                let mut want = statement.clone();
                want["Sid"] = json!(sid);
                Some(found(
                    crate::object::canonical(&have) == crate::object::canonical(&want),
                    BTreeMap::new(),
                    None,
                ))
            }
            Resource::Role {
                name,
                trust,
                managed_policies,
                inline_policies,
                boundary,
                ..
            } => {
                let r = inv.roles.iter().find(|r| r.name == *name)?;
                let mut have = r.managed_policies.clone();
                let mut want = managed_policies.clone();
                have.sort();
                want.sort();
                Some(found(
                    crate::object::canonical(&r.trust) == crate::object::canonical(trust)
                        && have == want
                        && r.inline_policies == *inline_policies
                        && r.boundary == *boundary,
                    BTreeMap::from([("arn".into(), r.arn.clone())]),
                    r.tags.get(crate::world::cloud::RUN_TAG).cloned(),
                ))
            }
            Resource::OidcProvider { issuer, .. } => {
                let bare = issuer.trim_start_matches("https://");
                inv.oidc_providers
                    .iter()
                    .any(|p| p == bare)
                    .then(|| found(true, BTreeMap::new(), None))
            }
            Resource::Cluster { name, version, .. } => {
                let c = inv.clusters.iter().find(|c| c.name == *name)?;
                let mut f = match self.part(c, resource) {
                    Some(part) => part.found(resource),
                    None => found(
                        c.version == *version,
                        BTreeMap::new(),
                        c.tags.get(crate::world::cloud::RUN_TAG).cloned(),
                    ),
                };
                f.attributes.extend([
                    ("issuer".into(), self.cloud.issuer(name)),
                    ("endpoint".into(), format!("https://{name}.eks.invalid")),
                    ("caData".into(), self.green.identity.ca_sha256.clone()),
                    ("securityGroup".into(), self.cloud.cluster_group(name)),
                ]);
                Some(f)
            }
            Resource::NodeGroup { cluster, name, .. } => {
                self.listed(cluster, resource, |c| c.node_groups.contains(name))
            }
            Resource::Addon { cluster, name, .. } => {
                self.listed(cluster, resource, |c| c.addons.contains(name))
            }
            Resource::AccessEntry {
                cluster, principal, ..
            } => self.listed(cluster, resource, |c| c.access_entries.contains(principal)),
            Resource::LaunchTemplate { .. } => inv
                .launch_templates
                .iter()
                .flatten()
                .find(|t| t.resource.id() == resource.id())
                .map(|t| t.clone().found(resource)),
            Resource::PodIdentityAssociation { cluster, .. } => {
                self.listed(cluster, resource, |_| false)
            }
            Resource::LogGroup { .. } | Resource::StateBucket { .. } => inv
                .log_groups
                .iter()
                .flatten()
                .chain(&inv.state_bucket)
                .find(|t| t.resource.id() == resource.id())
                .map(|t| t.clone().found(resource)),
        }
    }

    fn listed(
        &self,
        cluster: &str,
        resource: &Resource,
        has: impl Fn(&EksCluster) -> bool,
    ) -> Option<Found> {
        let c = self
            .cloud
            .inventory
            .clusters
            .iter()
            .find(|c| c.name == cluster)?;
        if let Some(part) = self.part(c, resource) {
            return Some(part.found(resource));
        }
        // Made before us; the snapshot has only its name, so nobody can say whether it is as we want it.
        has(c).then(|| found(false, BTreeMap::new(), None))
    }

    /// What the snapshot says of a part of a cluster that was there before.
    fn part(&self, cluster: &EksCluster, resource: &Resource) -> Option<Existing> {
        let id = resource.id();
        cluster
            .parts
            .iter()
            .flatten()
            .find(|p| p.resource.id() == id)
            .cloned()
    }

    fn active_cluster(&self, name: &str, at: &str) -> Result<()> {
        if self.cloud.inventory.clusters.iter().any(|c| c.name == name) {
            return Ok(());
        }
        match self.cloud.things.get(&format!("cluster/{name}")) {
            None => Err(Error::new(
                Class::NotFound,
                at,
                format!("ResourceNotFoundException: no cluster found for name {name}"),
            )),
            Some(t) if t.deleted.is_some() || !timed(self.now, t.made, self.secs(CLUSTER.0)) => {
                Err(Error::new(
                    Class::NotReady,
                    at,
                    format!("ResourceInUseException: cluster {name} is not ACTIVE"),
                ))
            }
            Some(_) => Ok(()),
        }
    }

    /// A node group's template exists and lets the nodes reach the control plane (eks.md 1.6, trap 2).
    fn usable_template(&self, name: &str, cluster: &str, at: &str) -> Result<()> {
        let id = format!("launch-template/{name}");
        let made = self.cloud.things.get(&id).map(|t| &t.resource);
        let before = self
            .cloud
            .inventory
            .launch_templates
            .iter()
            .flatten()
            .map(|t| &t.resource)
            .find(|r| r.id() == id);
        let Some(Resource::LaunchTemplate {
            security_groups, ..
        }) = made.or(before)
        else {
            return Err(Error::new(
                Class::Refused,
                at,
                format!("InvalidRequestException: the launch template {name} does not exist"),
            ));
        };
        let own = self.cloud.cluster_group(cluster);
        if !security_groups.is_empty() && !security_groups.contains(&own) {
            return Err(Error::new(
                Class::Refused,
                at,
                format!(
                    "NodeCreationFailure: the launch template {name} names security groups without the cluster's own {own}: no node would join"
                ),
            ));
        }
        Ok(())
    }

    /// One create request.
    pub fn create_resource(&mut self, resource: &Resource, run: &str) -> Result<()> {
        let at = resource.id();
        let refuse = |why: String| Err(Error::new(Class::Refused, &at, why));
        if serde_json::to_string(resource).is_ok_and(|t| t.contains("${")) {
            return refuse("InvalidParameterException: a placeholder was not filled in".into());
        }
        if let Some(have) = self.find_resource(resource) {
            if have.status == Status::Deleting {
                return Err(Error::new(Class::NotReady, &at, "it is being deleted"));
            }
            // The client token makes a repeat of the same request find what it made.
            let ours = have.run.as_deref() == Some(run) || have.run.is_none();
            return if have.equal && ours {
                Ok(())
            } else {
                Err(Error::new(
                    Class::AlreadyExists,
                    &at,
                    "it exists already, made by somebody else or made differently",
                ))
            };
        }
        self.trouble_with(resource)?;
        let mut later = vec![];
        match resource {
            Resource::Role {
                name,
                trust,
                managed_policies,
                ..
            } => {
                if name.is_empty() || name.len() > 64 {
                    return refuse("ValidationError: a role name has 1 to 64 characters".into());
                }
                if statements(trust).is_empty() || trust.to_string().len() > 2048 {
                    return refuse("MalformedPolicyDocument: the trust policy has no statement or is longer than 2048 characters".into());
                }
                if let Some(bad) = managed_policies
                    .iter()
                    .find(|p| !p.starts_with("arn:aws:iam::"))
                {
                    return refuse(format!("NoSuchEntity: policy {bad} does not exist"));
                }
            }
            Resource::OidcProvider { issuer, .. } => {
                if !issuer.starts_with("https://") {
                    return refuse("InvalidInput: the issuer must begin with https://".into());
                }
            }
            Resource::Cluster {
                name,
                version,
                role_arn,
                subnets,
                logging,
                kms_key,
                security_groups,
                ..
            } => {
                if let Some(odd) = logging.iter().find(|l| {
                    !matches!(
                        l.as_str(),
                        "api" | "audit" | "authenticator" | "controllerManager" | "scheduler"
                    )
                }) {
                    return refuse(format!(
                        "InvalidParameterException: {odd} is no log type of a cluster"
                    ));
                }
                if let Some(key) = kms_key.as_ref().filter(|k| !k.starts_with("arn:")) {
                    return refuse(format!(
                        "InvalidParameterException: {key} is not the ARN of a key"
                    ));
                }
                if security_groups.len() > 4 {
                    return refuse(
                        "InvalidParameterException: a cluster takes at most 4 security groups"
                            .into(),
                    );
                }
                if let Some(odd) = security_groups.iter().find(|g| {
                    !self
                        .cloud
                        .inventory
                        .security_groups
                        .iter()
                        .any(|x| x.id == **g)
                }) {
                    return refuse(format!(
                        "InvalidParameterException: the security group '{odd}' does not exist"
                    ));
                }
                let ok = name.len() <= 100
                    && name.starts_with(|c: char| c.is_ascii_alphanumeric())
                    && name
                        .chars()
                        .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
                if !ok {
                    return refuse(
                        "InvalidParameterException: the cluster name is not valid".into(),
                    );
                }
                if !matches!(version.as_str(), "1.33" | "1.34" | "1.35" | "1.36") {
                    return refuse(format!(
                        "InvalidParameterException: unsupported Kubernetes version {version}"
                    ));
                }
                if !self.cloud.role_exists(role_arn) {
                    return refuse(format!(
                        "InvalidParameterException: role {role_arn} does not exist"
                    ));
                }
                if subnets.len() < 2 {
                    return refuse(
                        "InvalidParameterException: subnets in at least two zones are needed"
                            .into(),
                    );
                }
                if !self.cloud.inventory.subnets.is_empty() {
                    let zones: std::collections::BTreeSet<_> = subnets
                        .iter()
                        .filter_map(|s| self.subnet(s))
                        .map(|s| s.zone.clone())
                        .collect();
                    if let Some(missing) = subnets.iter().find(|s| self.subnet(s).is_none()) {
                        return refuse(format!(
                            "InvalidParameterException: the subnet ID '{missing}' does not exist"
                        ));
                    }
                    if zones.len() < 2 {
                        return refuse(
                            "InvalidParameterException: subnets must be in at least two zones"
                                .into(),
                        );
                    }
                }
                let group = SecurityGroup {
                    id: self.cloud.cluster_group(name),
                    name: format!("eks-cluster-sg-{name}"),
                    vpc: self
                        .cloud
                        .inventory
                        .vpc
                        .as_ref()
                        .map(|v| v.id.clone())
                        .unwrap_or_default(),
                    tags: BTreeMap::from([("aws:eks:cluster-name".into(), name.clone())]),
                    ingress: vec![],
                };
                self.cloud.inventory.security_groups.push(group);
                self.cloud
                    .inventory
                    .security_groups
                    .sort_by(|a, b| a.id.cmp(&b.id));
            }
            Resource::Addon {
                cluster,
                service_account_role,
                ..
            } => {
                self.active_cluster(cluster, &at)?;
                if let Some(role) = service_account_role
                    && !self.cloud.role_exists(role)
                {
                    return refuse(format!(
                        "InvalidParameterException: role {role} does not exist"
                    ));
                }
                later = vec![ADDON.0];
            }
            Resource::AccessEntry {
                cluster,
                principal,
                groups,
                ..
            } => {
                self.active_cluster(cluster, &at)?;
                if !principal.starts_with("arn:aws:iam::") {
                    return refuse(format!(
                        "InvalidParameterException: {principal} is not the ARN of an IAM role or user"
                    ));
                }
                if let Some(g) = groups.iter().find(|g| g.starts_with("system:")) {
                    return refuse(format!(
                        "InvalidParameterException: the group {g} must not begin with system:"
                    ));
                }
            }
            Resource::PodIdentityAssociation {
                cluster, role_arn, ..
            } => {
                self.active_cluster(cluster, &at)?;
                if !self.cloud.trusts(role_arn, "pods.eks.amazonaws.com") {
                    return refuse(format!(
                        "InvalidParameterException: {role_arn} does not exist or does not trust pods.eks.amazonaws.com"
                    ));
                }
            }
            Resource::LogGroup { name, .. } => {
                let plain = |c: char| c.is_ascii_alphanumeric() || "_-/.#".contains(c);
                if !(1..=512).contains(&name.len()) || !name.chars().all(plain) {
                    return refuse(format!(
                        "InvalidParameterException: {name:?} is no name of a log group"
                    ));
                }
            }
            Resource::StateBucket { name, create, .. } => {
                if !create {
                    return refuse(format!(
                        "NoSuchBucket: {name} is not there, and nobody asked for it to be made"
                    ));
                }
            }
            Resource::NodeGroup {
                cluster,
                name,
                role_arn,
                subnets,
                min,
                max,
                desired,
                instance_types,
                launch_template,
                ..
            } => {
                self.active_cluster(cluster, &at)?;
                if let Some(template) = launch_template {
                    self.usable_template(template, cluster, &at)?;
                }
                if name.len() > 63 || !self.cloud.role_exists(role_arn) {
                    return refuse(format!(
                        "InvalidParameterException: role {role_arn} does not exist, or the name is too long"
                    ));
                }
                if min > desired || desired > max || *max == 0 {
                    return refuse(format!(
                        "InvalidParameterException: sizes {min} <= {desired} <= {max} do not hold"
                    ));
                }
                if subnets.is_empty() || instance_types.is_empty() {
                    return refuse(
                        "InvalidParameterException: subnets and instance types must not be empty"
                            .into(),
                    );
                }
                later = vec![NODES, NODE_GROUP.0];
            }
            Resource::LaunchTemplate {
                name,
                security_groups,
                user_data,
                tags,
                hop_limit,
                http_tokens,
                ..
            } => {
                let plain = |c: char| c.is_ascii_alphanumeric() || "()./_-".contains(c);
                if !(3..=128).contains(&name.len()) || !name.chars().all(plain) {
                    return refuse(format!(
                        "InvalidLaunchTemplateName.MalformedException: {name:?} must have 3 to 128 letters, digits or any of ()./_-"
                    ));
                }
                if user_data.as_ref().is_some_and(|t| t.len() > 16 * 1024) {
                    return refuse("InvalidUserData.Malformed: user data has at most 16 KB".into());
                }
                if !(1..=64).contains(hop_limit)
                    || !matches!(http_tokens.as_str(), "required" | "optional")
                {
                    return refuse(format!(
                        "InvalidParameterValue: metadata options {http_tokens}, {hop_limit} hops"
                    ));
                }
                if let Some(key) = tags.keys().find(|k| k.to_lowercase().starts_with("aws:")) {
                    return refuse(format!("InvalidParameterValue: the tag {key} is reserved"));
                }
                if let Some(group) = security_groups.iter().find(|g| {
                    !self
                        .cloud
                        .inventory
                        .security_groups
                        .iter()
                        .any(|x| x.id == **g)
                }) {
                    return refuse(format!("InvalidGroup.NotFound: {group} does not exist"));
                }
            }
            Resource::SecurityGroupRule {
                group,
                protocol,
                from_port,
                to_port,
                source_group,
                description,
            } => {
                let rule = IngressRule {
                    protocol: protocol.clone(),
                    from_port: *from_port,
                    to_port: *to_port,
                    source_group: Some(source_group.clone()),
                    cidr: None,
                    description: Some(description.clone()),
                };
                if !self
                    .cloud
                    .inventory
                    .security_groups
                    .iter()
                    .any(|g| g.id == *source_group)
                {
                    return Err(Error::new(
                        Class::NotFound,
                        &at,
                        format!("InvalidGroup.NotFound: {source_group}"),
                    ));
                }
                let Some(g) = self
                    .cloud
                    .inventory
                    .security_groups
                    .iter_mut()
                    .find(|g| g.id == *group)
                else {
                    return Err(Error::new(
                        Class::NotFound,
                        &at,
                        format!("InvalidGroup.NotFound: {group}"),
                    ));
                };
                g.ingress.push(rule);
                return Ok(());
            }
            Resource::Tag {
                resource,
                key,
                value,
            } => {
                return match self.tags_of(resource) {
                    Some(tags) => {
                        tags.insert(key.clone(), value.clone());
                        Ok(())
                    }
                    None => Err(Error::new(
                        Class::NotFound,
                        &at,
                        format!("{resource} does not exist"),
                    )),
                };
            }
            Resource::TrustStatement {
                role,
                sid,
                statement,
            } => {
                let Some(trust) = self.trust_of(role) else {
                    return Err(Error::new(
                        Class::NotFound,
                        &at,
                        format!("NoSuchEntity: role {role}"),
                    ));
                };
                let mut list = statements(trust);
                let mut new = statement.clone();
                new["Sid"] = json!(sid);
                list.push(new);
                let mut changed = trust.clone();
                changed["Statement"] = json!(list);
                if changed.to_string().len() > 2048 {
                    return refuse(
                        "LimitExceeded: the trust policy would exceed 2048 characters".into(),
                    );
                }
                *trust = changed;
                return Ok(());
            }
        }
        let made = self.now;
        let fate = self.cloud.trouble.fate(&at);
        self.cloud.things.insert(
            at,
            Thing {
                resource: resource.clone(),
                run: Some(run.into()),
                made,
                deleted: None,
                fate,
            },
        );
        self.cloud_later(&later);
        Ok(())
    }

    /// One delete request; absent is fine.
    pub fn delete_resource(&mut self, resource: &Resource) -> Result<()> {
        let at = resource.id();
        match resource {
            Resource::SecurityGroupRule {
                group,
                protocol,
                from_port,
                to_port,
                source_group,
                ..
            } => {
                if let Some(g) = self
                    .cloud
                    .inventory
                    .security_groups
                    .iter_mut()
                    .find(|g| g.id == *group)
                {
                    g.ingress.retain(|r| {
                        !(r.protocol == *protocol
                            && r.from_port == *from_port
                            && r.to_port == *to_port
                            && r.source_group.as_deref() == Some(source_group))
                    });
                }
                return Ok(());
            }
            Resource::Tag { resource, key, .. } => {
                if let Some(tags) = self.tags_of(resource) {
                    tags.remove(key);
                }
                return Ok(());
            }
            Resource::TrustStatement { role, sid, .. } => {
                if let Some(trust) = self.trust_of(role) {
                    let mut list = statements(trust);
                    let before = list.len();
                    list.retain(|s| s["Sid"] != json!(sid));
                    if list.len() != before {
                        trust["Statement"] = json!(list);
                    }
                }
                return Ok(());
            }
            _ => {}
        }
        if !self.cloud.things.contains_key(&at) {
            return match self.find_in_inventory(resource) {
                Some(_) => Err(Error::new(
                    Class::Refused,
                    &at,
                    "it was there before the simulation began: nobody here made it",
                )),
                None => Ok(()),
            };
        }
        let mut later = vec![];
        match resource {
            Resource::Cluster { name, .. } => {
                let groups: Vec<&Thing> = self
                    .cloud
                    .things
                    .iter()
                    .filter(|(id, _)| id.starts_with(&format!("node-group/{name}/")))
                    .map(|(_, t)| t)
                    .collect();
                if !groups.is_empty() {
                    let class = if groups.iter().all(|t| t.deleted.is_some()) {
                        Class::NotReady
                    } else {
                        Class::Refused
                    };
                    return Err(Error::new(
                        class,
                        &at,
                        "ResourceInUseException: the cluster has node groups attached",
                    ));
                }
                let group = self.cloud.cluster_group(name);
                if let Some(g) = self.cloud.inventory.security_groups.iter().find(|g| {
                    g.id != group
                        && g.ingress
                            .iter()
                            .any(|r| r.source_group.as_deref() == Some(&group))
                }) {
                    return Err(Error::new(
                        Class::Refused,
                        &at,
                        format!(
                            "DependencyViolation: {} still refers to the cluster's security group",
                            g.id
                        ),
                    ));
                }
                later = vec![CLUSTER.1];
            }
            Resource::NodeGroup { .. } => later = vec![NODE_GROUP.1],
            Resource::LaunchTemplate { name, .. } => {
                // EC2 allows it; the node group would then be DEGRADED (Ec2LaunchTemplateNotFound). A planner's mistake: say so.
                let used = self.cloud.things.values().any(|t| {
                    matches!(&t.resource, Resource::NodeGroup { launch_template: Some(l), .. } if l == name)
                });
                if used {
                    return Err(Error::new(
                        Class::Refused,
                        &at,
                        "a node group still uses it",
                    ));
                }
            }
            Resource::Addon { .. } => later = vec![ADDON.1],
            Resource::Role { name, .. } => {
                let arn = self.cloud.role_arn(name);
                let used = self.cloud.things.values().any(|t| match &t.resource {
                    Resource::NodeGroup { role_arn, .. } | Resource::Cluster { role_arn, .. } => {
                        *role_arn == arn
                    }
                    _ => false,
                });
                // IAM allows it; EKS would then be unable to remove what the role was for. A planner's mistake: say so.
                if used {
                    return Err(Error::new(
                        Class::Refused,
                        &at,
                        format!("{arn} is still used by a cluster or node group"),
                    ));
                }
            }
            _ => {}
        }
        let now = self.now;
        if later.is_empty() {
            self.cloud.things.remove(&at);
        } else if let Some(thing) = self.cloud.things.get_mut(&at) {
            thing.deleted.get_or_insert(now);
            self.cloud_later(&later);
        }
        Ok(())
    }
}
