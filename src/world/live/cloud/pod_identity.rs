//! EKS Pod Identity: which service account has which role.

use super::eks::needs_cluster;
use super::{LiveCloud, absent_is_fine, internal, optional};
use crate::world::cloud::{Existing, Found, Now, RUN_TAG, Resource, Status};
use crate::world::live::aws;
use crate::world::{Class, Result};
use aws_sdk_eks::types as eks;

/// An association as DescribePodIdentityAssociation shows it.
fn association_of(a: &eks::PodIdentityAssociation) -> Existing {
    let mut extras = vec![];
    let mut extra = |what: &str, value: Option<&str>| {
        extras.extend(value.map(|v| format!("{what} {v}")));
    };
    // With one of these the pods get other rights than those of the role.
    extra("target role", a.target_role_arn());
    extra("session policy", a.policy());
    Existing {
        resource: Resource::PodIdentityAssociation {
            cluster: a.cluster_name().unwrap_or_default().into(),
            namespace: a.namespace().unwrap_or_default().into(),
            service_account: a.service_account().unwrap_or_default().into(),
            role_arn: a.role_arn().unwrap_or_default().into(),
        },
        tags: a
            .tags()
            .into_iter()
            .flatten()
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect(),
        status: Status::Ready,
        extras,
        attributes: [
            ("arn", a.association_arn()),
            ("id", a.association_id()),
            // An add-on made it and takes it away with itself.
            ("owner", a.owner_arn()),
        ]
        .into_iter()
        .filter_map(|(k, v)| Some((k.to_string(), v?.to_string())))
        .collect(),
        now: Now {
            created: aws::when(a.created_at()),
            ..Now::default()
        },
    }
}

/// The association of one account, or of all accounts of a cluster (`account` absent).
pub(super) async fn read(
    client: &aws_sdk_eks::Client,
    cluster: &str,
    account: Option<(&str, &str)>,
) -> Result<Vec<Existing>> {
    let at = match account {
        Some((ns, name)) => format!("pod-identity/{cluster}/{ns}/{name}"),
        None => format!("pod-identity/{cluster}"),
    };
    let mut pages = client
        .list_pod_identity_associations()
        .cluster_name(cluster)
        .set_namespace(account.map(|(ns, _)| ns.into()))
        .set_service_account(account.map(|(_, name)| name.into()))
        .into_paginator()
        .items()
        .send();
    let mut ids = vec![];
    while let Some(a) = pages.next().await {
        match a.map_err(|e| aws::error(&at, e)) {
            Ok(a) => ids.extend(a.association_id),
            // No cluster, no associations.
            Err(e) if e.class == Class::NotFound => return Ok(vec![]),
            Err(e) => return Err(e),
        }
    }
    let mut out = vec![];
    for id in ids {
        let answer = optional(
            client
                .describe_pod_identity_association()
                .cluster_name(cluster)
                .association_id(id)
                .send()
                .await
                .map_err(|e| aws::error(&at, e)),
        )?;
        out.extend(
            answer
                .and_then(|a| a.association)
                .map(|a| association_of(&a)),
        );
    }
    Ok(out)
}

impl LiveCloud {
    async fn association(&self, resource: &Resource) -> Result<Option<Existing>> {
        let Resource::PodIdentityAssociation {
            cluster,
            namespace,
            service_account,
            ..
        } = resource
        else {
            return Err(internal("pod-identity", "not an association"));
        };
        let account = Some((namespace.as_str(), service_account.as_str()));
        let list = read(&self.eks().await, cluster, account).await?;
        Ok(list.into_iter().next())
    }

    pub(super) async fn find_association(&self, resource: &Resource) -> Result<Option<Found>> {
        Ok(self.association(resource).await?.map(|a| a.found(resource)))
    }

    pub(super) async fn create_association(&self, resource: &Resource, run: &str) -> Result<()> {
        let Resource::PodIdentityAssociation {
            cluster,
            namespace,
            service_account,
            role_arn,
        } = resource
        else {
            return Err(internal("pod-identity", "not an association"));
        };
        let made = self
            .eks()
            .await
            .create_pod_identity_association()
            .cluster_name(cluster)
            .namespace(namespace)
            .service_account(service_account)
            .role_arn(role_arn)
            .client_request_token(self.token(run, resource))
            .tags(RUN_TAG, run)
            .send()
            .await
            .map_err(|e| needs_cluster(aws::error(&resource.id(), e)));
        match made {
            Ok(_) => Ok(()),
            Err(e) => Err(self.aged(e, role_arn).await),
        }
    }

    /// By its id: an account has one association at most, and the id is EKS's.
    pub(super) async fn delete_association(&self, resource: &Resource) -> Result<()> {
        let Resource::PodIdentityAssociation { cluster, .. } = resource else {
            return Err(internal("pod-identity", "not an association"));
        };
        let Some(found) = self.association(resource).await? else {
            return Ok(());
        };
        let id = found
            .attributes
            .get("id")
            .ok_or_else(|| internal(&resource.id(), "EKS lists the association without an id"))?;
        absent_is_fine(
            self.eks()
                .await
                .delete_pod_identity_association()
                .cluster_name(cluster)
                .association_id(id)
                .send()
                .await
                .map_err(|e| aws::error(&resource.id(), e)),
        )
    }
}
