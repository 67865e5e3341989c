//! The account out of `aws ec2|iam|eks|sts` output.

use super::account::Account;
use super::gather::Found;
use super::not;
use crate::error::Result;
use crate::snapshot::model::NotChecked;
use crate::world::cloud::{
    CloudIdentity, EksCluster, IngressRule, Inventory, Role, SecurityGroup, Subnet, Vpc,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
struct Parts {
    account: Option<String>,
    arn: Option<String>,
    vpcs: Vec<Vpc>,
    subnets: Option<Vec<Subnet>>,
    groups: Option<Vec<SecurityGroup>>,
    roles: BTreeMap<String, Role>,
    roles_given: bool,
    /// Roles whose attached policies were given.
    attached: BTreeSet<String>,
    inline: Vec<(String, String, Value)>,
    oidc: Option<Vec<String>>,
    clusters: Option<BTreeMap<String, EksCluster>>,
    more: Account,
}

/// `None` when no AWS output was given; an error where a number has another shape. Takes what it knows out of `found`.
pub(super) fn inventory(
    found: &mut Found,
    kops: Option<&Value>,
    cluster: Option<&str>,
    volumes: &BTreeSet<String>,
    missing: &mut Vec<NotChecked>,
) -> Result<Option<Inventory>> {
    let mut p = Parts::default();
    let mut any = false;
    let mut rest = vec![];
    for doc in std::mem::take(&mut found.aws) {
        super::shape::numbers(&doc)?;
        // Both look: one document of IAM may hold parts of either.
        let more = p.more.take(&doc.value);
        if p.take(&doc.value) || more {
            any = true;
            if doc.value.get("NextToken").is_some_and(|t| !t.is_null()) {
                missing.push(not(
                    "aws.pages",
                    format!("{} is only the beginning of a listing", doc.at),
                ));
            }
        } else {
            rest.push(doc);
        }
    }
    found.aws = rest;
    if !any {
        missing.push(not(
            "aws.inventory",
            "no output of `aws ec2`, `aws iam` or `aws eks` was given",
        ));
        return Ok(None);
    }
    for (role, policy, document) in std::mem::take(&mut p.inline) {
        if let Some(r) = p.roles.get_mut(&role) {
            r.inline_policies.insert(policy, document);
        }
    }
    let owned = |tags: &BTreeMap<String, String>| {
        cluster.is_some_and(|c| {
            tags.get("KubernetesCluster").is_some_and(|v| v == c)
                || tags.contains_key(&format!("kubernetes.io/cluster/{c}"))
        })
    };
    let wanted = kops.and_then(|k| {
        // v1alpha2 keeps the id of an existing VPC at the top.
        k.pointer("/spec/networkID")
            .and_then(Value::as_str)
            .map(String::from)
    });
    let vpc = match p.vpcs.len() {
        1 => p.vpcs.pop(),
        _ => p
            .vpcs
            .into_iter()
            .find(|v| wanted.as_ref() == Some(&v.id) || owned(&v.tags)),
    };
    if vpc.is_none() {
        missing.push(not(
            "aws.vpc",
            "the VPC of the cluster was not given (`aws ec2 describe-vpcs`)",
        ));
    }
    let here = |id: &str| vpc.as_ref().is_none_or(|v| v.id == id);
    let mut part = |what: &str, absent: bool, command: &str| {
        if absent {
            missing.push(not(what, format!("`{command}` was not given")));
        }
    };
    part(
        "aws.subnets",
        p.subnets.is_none(),
        "aws ec2 describe-subnets",
    );
    part(
        "aws.security-groups",
        p.groups.is_none(),
        "aws ec2 describe-security-groups",
    );
    part(
        "aws.roles",
        !p.roles_given,
        "aws iam get-account-authorization-details",
    );
    part(
        "aws.oidc-providers",
        p.oidc.is_none(),
        "aws iam list-open-id-connect-providers",
    );
    part("aws.eks", p.clusters.is_none(), "aws eks list-clusters");
    part("aws.caller", p.arn.is_none(), "aws sts get-caller-identity");
    let mut roles: Vec<Role> = p.roles.into_values().collect();
    if p.roles_given {
        let open = roles
            .iter()
            .filter(|r| !p.attached.contains(&r.name))
            .count();
        if open > 0 {
            missing.push(not(
                "aws.role-policies",
                format!("policies attached to {open} of {} roles were not given (`aws iam get-account-authorization-details`)", roles.len()),
            ));
        }
    }
    let mut subnets: Vec<Subnet> = p
        .subnets
        .unwrap_or_default()
        .into_iter()
        .filter(|s| here(&s.vpc))
        .collect();
    let mut groups: Vec<SecurityGroup> = p
        .groups
        .unwrap_or_default()
        .into_iter()
        .filter(|g| here(&g.vpc))
        .collect();
    subnets.sort_by(|a, b| a.id.cmp(&b.id));
    groups.sort_by(|a, b| a.id.cmp(&b.id));
    roles.sort_by(|a, b| a.name.cmp(&b.name));
    let zone = subnets.first().map(|s| s.zone.clone()).unwrap_or_default();
    let region = zone
        .strip_suffix(|c: char| c.is_ascii_lowercase())
        .unwrap_or(&zone)
        .to_string();
    let account = p.account.or_else(|| {
        roles
            .first()
            .and_then(|r| r.arn.split(':').nth(4).map(String::from))
    });
    if account.is_none() {
        missing.push(not(
            "aws.account",
            "no account id was given (`aws sts get-caller-identity`)",
        ));
    }
    let mut inventory = Inventory {
        identity: CloudIdentity {
            account: account.unwrap_or_default(),
            region,
            arn: p.arn.unwrap_or_default(),
        },
        vpc,
        subnets,
        security_groups: groups,
        roles,
        oidc_providers: p.oidc.unwrap_or_default(),
        clusters: p.clusters.unwrap_or_default().into_values().collect(),
        ..Inventory::default()
    };
    p.more.fill(&mut inventory, cluster, volumes, missing);
    Ok(Some(inventory))
}

pub(super) fn text(v: &Value, key: &str) -> String {
    v[key].as_str().unwrap_or_default().to_string()
}

pub(super) fn list<'a>(v: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    v[key].as_array().into_iter().flatten()
}

pub(super) fn tags(v: &Value) -> BTreeMap<String, String> {
    match &v["Tags"] {
        Value::Array(a) => a
            .iter()
            .map(|t| (text(t, "Key"), text(t, "Value")))
            .collect(),
        _ => BTreeMap::new(),
    }
}

/// Trust and inline policies come as JSON, or URL-encoded where the CLI did not decode them.
pub(super) fn policy(v: &Value) -> Value {
    let Some(encoded) = v.as_str() else {
        return v.clone();
    };
    let bytes = encoded.as_bytes();
    let (mut out, mut i) = (vec![], 0);
    while i < bytes.len() {
        let hex = (bytes[i] == b'%')
            .then(|| {
                encoded
                    .get(i + 1..i + 3)
                    .and_then(|h| u8::from_str_radix(h, 16).ok())
            })
            .flatten();
        out.push(hex.unwrap_or(bytes[i]));
        i += if hex.is_some() { 3 } else { 1 };
    }
    serde_json::from_slice(&out).unwrap_or_else(|_| v.clone())
}

impl Parts {
    /// Whether the document was AWS output that the inventory holds.
    fn take(&mut self, doc: &Value) -> bool {
        let has = |key: &str| doc.get(key).is_some();
        if has("Vpcs") {
            for v in list(doc, "Vpcs") {
                self.owner(v);
                let mut cidrs: Vec<String> = list(v, "CidrBlockAssociationSet")
                    .filter(|a| {
                        a.pointer("/CidrBlockState/State")
                            .is_none_or(|s| s == "associated")
                    })
                    .map(|a| text(a, "CidrBlock"))
                    .collect();
                if cidrs.is_empty() {
                    cidrs.push(text(v, "CidrBlock"));
                }
                self.vpcs.push(Vpc {
                    id: text(v, "VpcId"),
                    cidrs,
                    tags: tags(v),
                });
            }
        } else if has("Subnets") {
            let subnets = self.subnets.get_or_insert_default();
            for s in list(doc, "Subnets") {
                subnets.push(Subnet {
                    id: text(s, "SubnetId"),
                    vpc: text(s, "VpcId"),
                    zone: text(s, "AvailabilityZone"),
                    cidr: text(s, "CidrBlock"),
                    free_ips: s["AvailableIpAddressCount"]
                        .as_u64()
                        .and_then(|n| u32::try_from(n).ok())
                        .unwrap_or_default(),
                    tags: tags(s),
                });
            }
            list(doc, "Subnets").for_each(|s| self.owner(s));
        } else if has("SecurityGroups") {
            let groups = self.groups.get_or_insert_default();
            for g in list(doc, "SecurityGroups") {
                groups.push(SecurityGroup {
                    id: text(g, "GroupId"),
                    name: text(g, "GroupName"),
                    vpc: text(g, "VpcId"),
                    tags: tags(g),
                    ingress: list(g, "IpPermissions").flat_map(rules).collect(),
                });
            }
            list(doc, "SecurityGroups").for_each(|g| self.owner(g));
        } else if has("RoleDetailList") {
            self.roles_given = true;
            for r in list(doc, "RoleDetailList") {
                self.role(r);
                self.attached.insert(text(r, "RoleName"));
            }
        } else if has("Roles") {
            self.roles_given = true;
            list(doc, "Roles").for_each(|r| self.role(r));
        } else if has("RoleName") && has("PolicyDocument") {
            self.inline.push((
                text(doc, "RoleName"),
                text(doc, "PolicyName"),
                policy(&doc["PolicyDocument"]),
            ));
        } else if has("OpenIDConnectProviderList") {
            let providers = self.oidc.get_or_insert_default();
            for p in list(doc, "OpenIDConnectProviderList") {
                let arn = text(p, "Arn");
                providers.extend(
                    arn.split_once("oidc-provider/")
                        .map(|(_, issuer)| issuer.to_string()),
                );
            }
            providers.sort();
            providers.dedup();
        } else if doc.get("clusters").is_some_and(Value::is_array) {
            let clusters = self.clusters.get_or_insert_default();
            for name in list(doc, "clusters").filter_map(Value::as_str) {
                clusters.entry(name.into()).or_insert_with(|| named(name));
            }
        } else if let Some(c) = doc
            .get("cluster")
            .filter(|c| c["arn"].as_str().is_some_and(|a| a.contains(":eks:")))
        {
            let name = text(c, "name");
            let entry = self
                .clusters
                .get_or_insert_default()
                .entry(name.clone())
                .or_insert_with(|| named(&name));
            entry.version = text(c, "version");
            if let Some(t) = c["tags"].as_object() {
                entry.tags = t
                    .iter()
                    .map(|(k, v)| (k.clone(), v.as_str().unwrap_or_default().into()))
                    .collect();
            }
        } else if let Some((field, item)) = ["nodegroup", "addon", "accessEntry"]
            .into_iter()
            .find_map(|f| Some((f, doc.get(f).filter(|v| v["clusterName"].is_string())?)))
        {
            let name = text(item, "clusterName");
            let entry = self
                .clusters
                .get_or_insert_default()
                .entry(name.clone())
                .or_insert_with(|| named(&name));
            let (names, key) = match field {
                "nodegroup" => (&mut entry.node_groups, "nodegroupName"),
                "addon" => (&mut entry.addons, "addonName"),
                _ => (&mut entry.access_entries, "principalArn"),
            };
            names.push(text(item, key));
            names.sort();
            names.dedup();
        } else if has("UserId") && has("Account") && has("Arn") {
            self.account = Some(text(doc, "Account"));
            self.arn = Some(text(doc, "Arn"));
        } else {
            return false;
        }
        true
    }

    fn owner(&mut self, v: &Value) {
        if self.account.is_none() {
            self.account = v["OwnerId"].as_str().map(String::from);
        }
    }

    fn role(&mut self, r: &Value) {
        if text(r, "Path").starts_with("/aws-service-role/") {
            return;
        }
        let name = text(r, "RoleName");
        let old = self.roles.remove(&name);
        let mut role = old.unwrap_or_else(|| Role {
            name: name.clone(),
            arn: text(r, "Arn"),
            trust: policy(&r["AssumeRolePolicyDocument"]),
            managed_policies: vec![],
            inline_policies: BTreeMap::new(),
            boundary: None,
            tags: BTreeMap::new(),
        });
        if let Some(b) = r
            .pointer("/PermissionsBoundary/PermissionsBoundaryArn")
            .and_then(Value::as_str)
        {
            role.boundary = Some(b.into());
        }
        role.managed_policies
            .extend(list(r, "AttachedManagedPolicies").map(|p| text(p, "PolicyArn")));
        role.managed_policies.sort();
        role.managed_policies.dedup();
        for p in list(r, "RolePolicyList") {
            role.inline_policies
                .insert(text(p, "PolicyName"), policy(&p["PolicyDocument"]));
        }
        role.tags.extend(tags(r));
        self.roles.insert(name, role);
    }
}

fn named(name: &str) -> EksCluster {
    EksCluster {
        name: name.into(),
        version: String::new(),
        node_groups: vec![],
        addons: vec![],
        access_entries: vec![],
        tags: BTreeMap::new(),
        parts: None,
    }
}

/// One rule for each source of a permission, as EC2 counts them.
fn rules(p: &Value) -> Vec<IngressRule> {
    let port = |key: &str| {
        p[key]
            .as_i64()
            .and_then(|n| i32::try_from(n).ok())
            .unwrap_or(-1)
    };
    let rule = |source_group: Option<String>, cidr: Option<String>, from: &Value| IngressRule {
        protocol: text(p, "IpProtocol"),
        from_port: port("FromPort"),
        to_port: port("ToPort"),
        source_group,
        cidr,
        description: from["Description"].as_str().map(String::from),
    };
    let mut out = vec![];
    out.extend(list(p, "UserIdGroupPairs").map(|g| rule(Some(text(g, "GroupId")), None, g)));
    out.extend(list(p, "IpRanges").map(|r| rule(None, Some(text(r, "CidrIp")), r)));
    out.extend(list(p, "Ipv6Ranges").map(|r| rule(None, Some(text(r, "CidrIpv6")), r)));
    out.extend(list(p, "PrefixListIds").map(|r| rule(None, Some(text(r, "PrefixListId")), r)));
    out
}
