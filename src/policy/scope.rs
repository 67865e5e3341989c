//! Where an action is allowed: ARNs by name where the name is known, and conditions where only tags tell.

use super::table::{Kind, On, Only, Row};
use crate::plan::model::Plan;
use crate::world::cloud::{RUN_TAG, Resource};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Partition, region and account of the ARNs; `*` where not known.
pub(super) struct Place {
    pub partition: &'static str,
    pub region: String,
    pub account: String,
    /// Managed policies that roles of the plan get.
    pub policies: BTreeSet<String>,
}

impl Place {
    pub fn of(plan: &Plan) -> Place {
        let known = |v: Option<&String>| v.filter(|v| !v.is_empty()).cloned();
        let region = known(plan.basis.region.as_ref())
            .or(known(plan.spec.aws.region.as_ref()))
            .or(known(Some(&plan.target.cluster.region)))
            .unwrap_or_else(|| "*".into());
        Place {
            partition: if region.starts_with("cn-") {
                "aws-cn"
            } else if region.starts_with("us-gov-") {
                "aws-us-gov"
            } else {
                "aws"
            },
            account: known(plan.basis.account.as_ref())
                .or(known(plan.spec.aws.account.as_ref()))
                .unwrap_or_else(|| "*".into()),
            region,
            policies: BTreeSet::new(),
        }
    }

    fn iam(&self, what: &str) -> String {
        format!("arn:{}:iam::{}:{what}", self.partition, self.account)
    }
    fn regional(&self, service: &str, what: &str) -> String {
        format!(
            "arn:{}:{service}:{}:{}:{what}",
            self.partition, self.region, self.account
        )
    }
    fn eks(&self, what: &str) -> String {
        self.regional("eks", what)
    }
    fn ec2(&self, what: &str) -> String {
        self.regional("ec2", what)
    }
    /// What only the run knows, with what the plan knows of it filled in.
    fn filled(&self, text: &str) -> String {
        let mut text = text.replace("${account}", &self.account);
        while let Some(start) = text.find("${") {
            let end = text[start..]
                .find('}')
                .map_or(text.len(), |n| start + n + 1);
            text.replace_range(start..end, "*");
        }
        text
    }
}

/// Something that AWS is asked about.
pub(super) enum Subject {
    Plain(Kind),
    /// Green's cluster by name.
    Green(String),
    /// `s3://bucket/prefix`.
    Store(String),
    /// Ids of the hosted zones of the plan.
    Zones(Vec<String>),
    /// KMS keys by any of their names.
    Keys(Vec<String>),
    /// An IAM role.
    Principal(String),
    Thing {
        resource: Box<Resource>,
        /// The run makes it (and its rollback deletes it).
        made: bool,
    },
}

impl Subject {
    pub fn kind(&self) -> Kind {
        match self {
            Subject::Plain(kind) => *kind,
            Subject::Green(_) => Kind::Green,
            Subject::Store(_) => Kind::StateStore,
            Subject::Zones(_) => Kind::Zones,
            Subject::Keys(_) => Kind::Keys,
            Subject::Principal(_) => Kind::Principal,
            Subject::Thing { resource, .. } => Kind::of(resource),
        }
    }

    /// Whether a row counts for this one.
    pub fn does(&self, row: &Row) -> bool {
        match self {
            Subject::Thing { resource, made } => {
                (*made || !row.writes) && row.when.is_none_or(|when| when(resource))
            }
            // No zone: nothing to change.
            Subject::Zones(ids) => !ids.is_empty() || row.on != On::This && row.on != On::Changes,
            _ => true,
        }
    }
}

/// The ARNs of a row for a subject.
pub(super) fn arns(on: On, subject: &Subject, place: &Place) -> BTreeSet<String> {
    match on {
        On::Any => BTreeSet::from(["*".to_string()]),
        On::Eks => [
            "cluster",
            "nodegroup",
            "addon",
            "access-entry",
            "podidentityassociation",
        ]
        .iter()
        .map(|k| place.eks(&format!("{k}/*")))
        .collect(),
        On::EksLogs => BTreeSet::from([place.regional("logs", "log-group:/aws/eks/*")]),
        On::Changes => BTreeSet::from([format!("arn:{}:route53:::change/*", place.partition)]),
        On::New("hostedzone") => {
            BTreeSet::from([format!("arn:{}:route53:::hostedzone/*", place.partition)])
        }
        On::New(kind) => BTreeSet::from([place.ec2(&format!("{kind}/*"))]),
        On::ServiceRole(service) => {
            BTreeSet::from([place.iam(&format!("role/aws-service-role/{service}/*"))])
        }
        On::Objects | On::This | On::ItsCluster | On::PassedRole | On::ItsKey | On::Inside(_) => {
            match subject {
                Subject::Plain(_) => BTreeSet::from(["*".to_string()]),
                Subject::Green(name) => BTreeSet::from([place.eks(&format!("cluster/{name}"))]),
                // An alias is no ARN that a right can be given on; the key behind it is not known here.
                Subject::Keys(names) => names
                    .iter()
                    .map(|n| {
                        if n.starts_with("arn:") && n.contains(":key/") {
                            n.clone()
                        } else {
                            place.regional("kms", "key/*")
                        }
                    })
                    .collect(),
                Subject::Principal(arn) => BTreeSet::from([arn.clone()]),
                Subject::Zones(ids) => ids
                    .iter()
                    .map(|id| format!("arn:{}:route53:::hostedzone/{id}", place.partition))
                    .collect(),
                Subject::Store(url) => BTreeSet::from([store(url, on, place)]),
                Subject::Thing { resource, .. } => of_thing(on, resource, place),
            }
        }
    }
}

fn store(url: &str, on: On, place: &Place) -> String {
    let rest = url.strip_prefix("s3://").unwrap_or(url);
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let prefix = prefix.trim_matches('/');
    let bucket = format!("arn:{}:s3:::{bucket}", place.partition);
    match (on, prefix) {
        (On::Objects, "") => format!("{bucket}/*"),
        (On::Objects, prefix) => format!("{bucket}/{prefix}/*"),
        _ => bucket,
    }
}

fn of_thing(on: On, resource: &Resource, place: &Place) -> BTreeSet<String> {
    let one = |arn: String| BTreeSet::from([arn]);
    match resource {
        Resource::Role { name, path, .. } => one(place.iam(&format!(
            "role{}{name}",
            path.as_deref().filter(|p| !p.is_empty()).unwrap_or("/")
        ))),
        // A mapping of a trust statement knows the name only, and a role may stand under a path.
        Resource::TrustStatement { role, .. } => BTreeSet::from([
            place.iam(&format!("role/{role}")),
            place.iam(&format!("role/*/{role}")),
        ]),
        Resource::OidcProvider { issuer, .. } => {
            let issuer = issuer.trim_start_matches("https://");
            one(place.iam(&format!(
                "oidc-provider/{}",
                // Known only once the cluster stands; every issuer of EKS in the region begins so.
                if issuer.starts_with("${") {
                    format!("oidc.eks.{}.*", place.region)
                } else {
                    place.filled(issuer)
                }
            )))
        }
        Resource::Cluster {
            name,
            role_arn,
            kms_key,
            ..
        } => one(match on {
            On::PassedRole => place.filled(role_arn),
            On::ItsKey => match kms_key {
                Some(k) if k.contains(":key/") => k.clone(),
                _ => place.regional("kms", "key/*"),
            },
            On::Inside(kind) => place.eks(&format!("{kind}/{name}/*")),
            _ => place.eks(&format!("cluster/{name}")),
        }),
        Resource::Addon {
            cluster,
            name,
            service_account_role,
            ..
        } => one(match on {
            On::PassedRole => place.filled(service_account_role.as_deref().unwrap_or("*")),
            On::ItsCluster => place.eks(&format!("cluster/{cluster}")),
            _ => place.eks(&format!("addon/{cluster}/{name}/*")),
        }),
        Resource::AccessEntry { cluster, .. } => one(match on {
            On::ItsCluster => place.eks(&format!("cluster/{cluster}")),
            _ => place.eks(&format!("access-entry/{cluster}/*")),
        }),
        Resource::NodeGroup {
            cluster,
            name,
            role_arn,
            ..
        } => one(match on {
            On::PassedRole => place.filled(role_arn),
            On::ItsCluster => place.eks(&format!("cluster/{cluster}")),
            _ => place.eks(&format!("nodegroup/{cluster}/{name}/*")),
        }),
        Resource::PodIdentityAssociation {
            cluster, role_arn, ..
        } => one(match on {
            On::PassedRole => place.filled(role_arn),
            On::ItsCluster => place.eks(&format!("cluster/{cluster}")),
            _ => place.eks(&format!("podidentityassociation/{cluster}/*")),
        }),
        // Some actions are asked for on the group, some on its streams (`:*`).
        Resource::LogGroup { name, .. } => {
            one(place.regional("logs", &format!("log-group:{name}*")))
        }
        Resource::StateBucket { name, .. } => one(format!("arn:{}:s3:::{name}", place.partition)),
        Resource::LaunchTemplate { .. } => one(place.ec2("launch-template/*")),
        // A rule is asked for on its group, and (by its id, at the way back) on itself.
        Resource::SecurityGroupRule { group, .. } => BTreeSet::from([
            place.ec2(&format!("security-group/{}", place.filled(group))),
            place.ec2("security-group-rule/*"),
        ]),
        Resource::Tag { resource, .. } => one(place.ec2(&format!(
            "{}/{}",
            kind_of_id(resource),
            place.filled(resource)
        ))),
    }
}

/// EC2's word for what an id is of, as its ARNs have it.
fn kind_of_id(id: &str) -> &str {
    match id.split('-').next().unwrap_or_default() {
        "subnet" => "subnet",
        "vpc" => "vpc",
        "sg" => "security-group",
        "vol" => "volume",
        "i" => "instance",
        "eni" => "network-interface",
        "rtb" => "route-table",
        "snap" => "snapshot",
        "lt" => "launch-template",
        _ => "*",
    }
}

/// The condition of a row for a subject, `Null` for none.
pub(super) fn condition(only: Only, subject: &Subject, place: &Place) -> Value {
    match only {
        Only::Always => Value::Null,
        Only::While(action) => json!({"StringEquals": {"ec2:CreateAction": action}}),
        Only::Ours => json!({"StringLike": {format!("aws:ResourceTag/{RUN_TAG}"): "*"}}),
        // Which service AWS names here for node roles and add-ons is not written down in one place: those that EKS hands roles to.
        Only::ForEks => json!({"StringEqualsIfExists": {"iam:PassedToService": [
            "ec2.amazonaws.com", "eks.amazonaws.com", "pods.eks.amazonaws.com"
        ]}}),
        Only::Service(service) => json!({"StringLike": {"iam:AWSServiceName": service}}),
        Only::FromTemplates => {
            json!({"ArnLike": {"ec2:LaunchTemplate": place.ec2("launch-template/*")}})
        }
        Only::ItsPolicies => {
            let policies: Vec<String> = place.policies.iter().map(|p| place.filled(p)).collect();
            json!({"ArnEquals": {"iam:PolicyARN": policies}})
        }
        Only::ItsBoundary => match subject {
            Subject::Thing { resource, .. } => match resource.as_ref() {
                Resource::Role {
                    boundary: Some(b), ..
                } => {
                    json!({"StringEquals": {"iam:PermissionsBoundary": place.filled(b)}})
                }
                _ => Value::Null,
            },
            _ => Value::Null,
        },
        Only::ItsKey => match subject {
            Subject::Thing { resource, .. } => match resource.as_ref() {
                Resource::Tag { key, .. } => {
                    json!({"ForAllValues:StringEquals": {"aws:TagKeys": [key]}})
                }
                _ => Value::Null,
            },
            _ => Value::Null,
        },
    }
}
