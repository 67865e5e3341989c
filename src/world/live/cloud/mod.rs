//! EKS, IAM, EC2 and STS through their APIs: one file per service, one function per thing that can be made.

mod attached;
mod bucket;
mod capacity;
mod ec2;
mod eks;
mod eks_read;
mod iam;
mod inventory;
mod json;
mod logs;
mod offers;
mod pod_identity;
mod template;
mod trust;

use super::aws::{self, AwsBase};
use crate::object::sha256_hex;
use crate::spec::model::Spec;
use crate::world::cloud::{Attached, Cloud, CloudIdentity, Found, Inventory, Resource, Status};
use crate::world::{Class, Error, Result};
use async_trait::async_trait;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The account.
pub(super) struct LiveCloud {
    aws: Arc<AwsBase>,
    asked: Arc<Asked>,
    /// Part of every client token, see [`Cloud::create_anew`].
    salt: String,
}

/// What migration.yaml makes an inventory look for besides what is always looked for.
#[derive(Clone)]
struct Asked {
    /// Kubernetes version of green.
    version: String,
    /// KMS keys.
    keys: BTreeSet<String>,
    /// Whether logs of green's control plane are kept.
    logs: bool,
    /// Bucket for crossfade's own records.
    bucket: Option<String>,
}

impl LiveCloud {
    pub(super) fn new(aws: Arc<AwsBase>, spec: &Spec) -> Self {
        let plane = &spec.green.control_plane;
        LiveCloud {
            aws,
            salt: String::new(),
            asked: Arc::new(Asked {
                version: spec.green.version.clone(),
                keys: plane
                    .secrets_key
                    .iter()
                    .chain(&spec.green.nodes.volume_key)
                    .cloned()
                    .collect(),
                logs: !plane.logs.is_empty(),
                bucket: spec.aws.state_bucket.as_ref().map(|b| b.name.clone()),
            }),
        }
    }
    /// Client token of a create.
    fn token(&self, run: &str, resource: &Resource) -> String {
        client_token(&format!("{run}{}", self.salt), resource)
    }
    fn asked(&self) -> &Asked {
        &self.asked
    }
    async fn eks(&self) -> aws_sdk_eks::Client {
        aws_sdk_eks::Client::new(self.aws.config().await)
    }
    async fn iam(&self) -> aws_sdk_iam::Client {
        aws_sdk_iam::Client::new(self.aws.config().await)
    }
    async fn ec2(&self) -> aws_sdk_ec2::Client {
        aws_sdk_ec2::Client::new(self.aws.config().await)
    }
}

/// The client token of a resource in a run: a repeat after a crash hits the same resource. 64 characters is EC2's limit.
fn client_token(run: &str, resource: &Resource) -> String {
    sha256_hex(format!("{run}/{}", resource.id()))[..48].to_string()
}

/// A [`Found`] that is ready, without a run.
fn ready(equal: bool, attributes: impl IntoIterator<Item = (&'static str, String)>) -> Found {
    Found {
        status: Status::Ready,
        run: None,
        equal,
        differences: vec![],
        attributes: attributes
            .into_iter()
            .map(|(k, v)| (k.to_string(), v))
            .collect(),
        created: None,
        issues: vec![],
        doing: None,
    }
}

/// Whether two lists hold the same things, in whatever order.
fn same_set<A: AsRef<str>, B: AsRef<str>>(
    a: impl IntoIterator<Item = A>,
    b: impl IntoIterator<Item = B>,
) -> bool {
    let mut a: Vec<String> = a.into_iter().map(|x| x.as_ref().to_string()).collect();
    let mut b: Vec<String> = b.into_iter().map(|x| x.as_ref().to_string()).collect();
    a.sort();
    b.sort();
    a == b
}

/// `None` for "not there", the value otherwise.
fn optional<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(v) => Ok(Some(v)),
        Err(e) if e.class == Class::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// "Not there" is fine for a delete.
fn absent_is_fine<T>(result: Result<T>) -> Result<()> {
    optional(result).map(|_| ())
}

fn internal(at: &str, what: &str) -> Error {
    Error::new(Class::Internal, at, what)
}

/// Tags as a map.
fn tag_map<'a>(
    tags: impl IntoIterator<Item = (Option<&'a str>, Option<&'a str>)>,
) -> BTreeMap<String, String> {
    tags.into_iter()
        .filter_map(|(k, v)| Some((k?.to_string(), v.unwrap_or_default().to_string())))
        .collect()
}

#[async_trait]
impl Cloud for LiveCloud {
    async fn assumable(&self, role: &str) -> Result<Option<String>> {
        match self.aws.assume(role).await {
            Ok(_) => Ok(None),
            Err(e) if matches!(e.class, Class::Unauthorized | Class::Refused) => {
                Ok(Some(e.message))
            }
            Err(e) => Err(e),
        }
    }

    async fn identity(&self) -> Result<CloudIdentity> {
        let region = self.aws.region().await?;
        let me = aws_sdk_sts::Client::new(self.aws.config().await)
            .get_caller_identity()
            .send()
            .await
            .map_err(|e| aws::error("sts:GetCallerIdentity", e))?;
        Ok(CloudIdentity {
            account: me.account().unwrap_or_default().into(),
            region,
            arn: me.arn().unwrap_or_default().into(),
        })
    }

    async fn find(&self, resource: &Resource) -> Result<Option<Found>> {
        match resource {
            Resource::Role { .. } => self.find_role(resource).await,
            Resource::OidcProvider { .. } => self.find_oidc(resource).await,
            Resource::TrustStatement { .. } => self.find_statement(resource).await,
            Resource::Cluster { .. } => self.find_cluster(resource).await,
            Resource::Addon { .. } => self.find_addon(resource).await,
            Resource::AccessEntry { .. } => self.find_access(resource).await,
            Resource::NodeGroup { .. } => self.find_node_group(resource).await,
            Resource::LaunchTemplate { .. } => self.find_template(resource).await,
            Resource::SecurityGroupRule { .. } => self.find_rule(resource).await,
            Resource::Tag { .. } => self.find_tag(resource).await,
            Resource::PodIdentityAssociation { .. } => self.find_association(resource).await,
            Resource::LogGroup { .. } => self.find_log_group(resource).await,
            Resource::StateBucket { .. } => self.find_bucket(resource).await,
        }
    }

    async fn create(&self, resource: &Resource, run: &str) -> Result<()> {
        match resource {
            Resource::Role { .. } => self.create_role(resource, run).await,
            Resource::OidcProvider { .. } => self.create_oidc(resource, run).await,
            Resource::TrustStatement { .. } => self.create_statement(resource).await,
            Resource::Cluster { .. } => self.create_cluster(resource, run).await,
            Resource::Addon { .. } => self.create_addon(resource, run).await,
            Resource::AccessEntry { .. } => self.create_access(resource, run).await,
            Resource::NodeGroup { .. } => self.create_node_group(resource, run).await,
            Resource::LaunchTemplate { .. } => self.create_template(resource, run).await,
            Resource::SecurityGroupRule { .. } => self.create_rule(resource, run).await,
            Resource::Tag { .. } => self.create_tag(resource).await,
            Resource::PodIdentityAssociation { .. } => self.create_association(resource, run).await,
            Resource::LogGroup { .. } => self.create_log_group(resource, run).await,
            Resource::StateBucket { .. } => self.create_bucket(resource, run).await,
        }
    }

    async fn create_anew(&self, resource: &Resource, run: &str, salt: &str) -> Result<()> {
        let salted = LiveCloud {
            aws: self.aws.clone(),
            asked: self.asked.clone(),
            salt: format!("/{salt}"),
        };
        salted.create(resource, run).await
    }

    async fn attached(&self, resource: &Resource, run: &str) -> Result<Vec<Attached>> {
        self.hung_on(resource, run).await
    }

    async fn delete(&self, resource: &Resource) -> Result<()> {
        match resource {
            Resource::Role { name, .. } => self.delete_role(name).await,
            Resource::OidcProvider { issuer, .. } => self.delete_oidc(issuer).await,
            Resource::TrustStatement { .. } => self.delete_statement(resource).await,
            Resource::Cluster { .. } => self.delete_cluster(resource).await,
            Resource::Addon { cluster, name, .. } => self.delete_addon(cluster, name).await,
            Resource::AccessEntry {
                cluster, principal, ..
            } => self.delete_access(cluster, principal).await,
            Resource::NodeGroup { cluster, name, .. } => {
                self.delete_node_group(cluster, name).await
            }
            Resource::LaunchTemplate { name, .. } => self.delete_template(name).await,
            Resource::SecurityGroupRule { .. } => self.delete_rule(resource).await,
            Resource::Tag { .. } => self.delete_tag(resource).await,
            Resource::PodIdentityAssociation { .. } => self.delete_association(resource).await,
            Resource::LogGroup { name, .. } => self.delete_log_group(name).await,
            Resource::StateBucket { name, .. } => self.delete_bucket(name).await,
        }
    }

    async fn inventory(&self, kops_cluster: &str) -> Result<Inventory> {
        self.read_inventory(kops_cluster).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(resource: &str) -> Resource {
        Resource::Tag {
            resource: resource.into(),
            key: "k".into(),
            value: "v".into(),
        }
    }

    #[test]
    fn a_client_token_is_the_same_again_for_the_same_run_and_resource_only() {
        let a = client_token("run-1", &tag("subnet-1"));
        assert_eq!(a, client_token("run-1", &tag("subnet-1")));
        assert_ne!(a, client_token("run-2", &tag("subnet-1")));
        assert_ne!(a, client_token("run-1", &tag("subnet-2")));
        assert!(a.len() <= 64);
    }

    #[test]
    fn sets_do_not_care_for_order_but_for_repeats() {
        assert!(same_set(["a", "b"], ["b", "a"]));
        assert!(!same_set(["a", "a"], ["a", "b"]));
    }
}
