//! IAM: roles, OIDC providers, statements in other people's trust policies.

use super::{LiveCloud, absent_is_fine, optional, ready, same_set, trust};
use crate::world::cloud::compare::Difference;
use crate::world::cloud::{Found, RUN_TAG, Resource};
use crate::world::live::aws::{self, percent_decode};
use crate::world::{Class, Error, Result};
use aws_sdk_iam::types::Tag;
use serde_json::Value;
use std::collections::BTreeMap;

fn tag(run: &str) -> Result<Tag> {
    Tag::builder()
        .key(RUN_TAG)
        .value(run)
        .build()
        .map_err(|e| Error::new(Class::Internal, RUN_TAG, e.to_string()))
}

/// An IAM document as JSON. One that is none is kept as a string, so that nothing is lost.
pub(super) fn document(text: &str) -> Value {
    let plain = percent_decode(text);
    serde_json::from_str(&plain).unwrap_or(Value::String(plain))
}

/// For how long a new role may be unknown to other services: about a minute (eks.md 1.3), and as much again.
const YOUNG: i64 = 120;

impl LiveCloud {
    /// "Cannot be assumed" of a role that was made a moment ago means not yet; of an older one it means never, and waiting for it
    /// would hide that until the step's time is up.
    pub(super) async fn aged(&self, e: Error, role_arn: &str) -> Error {
        if e.class != Class::NotReady || !aws::iam_words(&e.message) {
            return e;
        }
        let name = role_arn.rsplit('/').next().unwrap_or(role_arn);
        let Ok(Some(role)) = self.trust_of(name).await else {
            return e;
        };
        let age = jiff::Timestamp::now().as_second() - role.create_date().secs();
        if age < YOUNG {
            return e;
        }
        Error {
            class: Class::Refused,
            ..e
        }
        .remedy(format!(
            "role {name} is there for {age} s, so this is not IAM being late: look at its trust policy and its policies, then resume"
        ))
    }

    async fn trust_of(&self, role: &str) -> Result<Option<aws_sdk_iam::types::Role>> {
        let at = format!("role/{role}");
        let answer = optional(
            self.iam()
                .await
                .get_role()
                .role_name(role)
                .send()
                .await
                .map_err(|e| aws::error(&at, e)),
        )?;
        Ok(answer.and_then(|a| a.role))
    }

    pub(super) async fn attached_policies(&self, role: &str) -> Result<Vec<String>> {
        let at = format!("role/{role}");
        let mut out = vec![];
        let mut pages = self
            .iam()
            .await
            .list_attached_role_policies()
            .role_name(role)
            .into_paginator()
            .items()
            .send();
        while let Some(p) = pages.next().await {
            let p = p.map_err(|e| aws::error(&at, e))?;
            out.extend(p.policy_arn().map(str::to_string));
        }
        Ok(out)
    }

    pub(super) async fn inline_names(&self, role: &str) -> Result<Vec<String>> {
        let at = format!("role/{role}");
        let mut out = vec![];
        let mut pages = self
            .iam()
            .await
            .list_role_policies()
            .role_name(role)
            .into_paginator()
            .items()
            .send();
        while let Some(p) = pages.next().await {
            out.push(p.map_err(|e| aws::error(&at, e))?);
        }
        Ok(out)
    }

    async fn inline(&self, role: &str) -> Result<BTreeMap<String, Value>> {
        let iam = self.iam().await;
        let mut out = BTreeMap::new();
        for name in self.inline_names(role).await? {
            let p = iam
                .get_role_policy()
                .role_name(role)
                .policy_name(&name)
                .send()
                .await
                .map_err(|e| aws::error(&format!("role/{role}"), e))?;
            out.insert(name, document(p.policy_document()));
        }
        Ok(out)
    }

    /// A role of which a crash left only a part is found with `equal: false` and our run: create it again.
    pub(super) async fn find_role(&self, resource: &Resource) -> Result<Option<Found>> {
        let Resource::Role {
            name,
            trust: wanted,
            managed_policies,
            inline_policies,
            boundary,
            path,
        } = resource
        else {
            return Err(super::internal("role", "not a role"));
        };
        let Some(role) = self.trust_of(name).await? else {
            return Ok(None);
        };
        let (attached, inline) = match (self.attached_policies(name).await, self.inline(name).await)
        {
            (Ok(a), Ok(i)) => (a, i),
            (Err(e), _) | (_, Err(e)) if e.class == Class::NotFound => return Ok(None),
            (Err(e), _) | (_, Err(e)) => return Err(e),
        };
        let live = document(role.assume_role_policy_document().unwrap_or_default());
        let mut differences = vec![];
        let mut differs = |field: &str, have: String, want: String| {
            differences.push(Difference {
                field: field.into(),
                have,
                want,
            });
        };
        let list = |l: &[String]| {
            let mut l = l.to_vec();
            l.sort();
            l.join(", ")
        };
        if !trust::same_policy(&live, wanted) {
            differs("trust", live.to_string(), wanted.to_string());
        }
        if !same_set(&attached, managed_policies) {
            differs("managedPolicies", list(&attached), list(managed_policies));
        }
        let same_inline = inline.len() == inline_policies.len()
            && inline_policies
                .iter()
                .all(|(k, v)| inline.get(k).is_some_and(|l| trust::same_policy(l, v)));
        if !same_inline {
            let names = |m: &BTreeMap<String, Value>| {
                m.iter()
                    .map(|(name, doc)| format!("{name} {doc}"))
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            differs("inlinePolicies", names(&inline), names(inline_policies));
        }
        let under = role
            .permissions_boundary()
            .and_then(|b| b.permissions_boundary_arn());
        if under != boundary.as_deref() {
            let said = |b: Option<&str>| b.unwrap_or("nothing").to_string();
            differs("boundary", said(under), said(boundary.as_deref()));
        }
        let wanted_path = path.as_deref().unwrap_or("/");
        if role.path() != wanted_path {
            differs("path", role.path().into(), wanted_path.into());
        }
        let mut found = ready(differences.is_empty(), [("arn", role.arn().to_string())]);
        found.differences = differences;
        found.created = aws::when(Some(role.create_date()));
        found.run = role
            .tags()
            .iter()
            .find(|t| t.key() == RUN_TAG)
            .map(|t| t.value().to_string());
        Ok(Some(found))
    }

    pub(super) async fn create_role(&self, resource: &Resource, run: &str) -> Result<()> {
        let Resource::Role {
            name,
            trust: wanted,
            managed_policies,
            inline_policies,
            boundary,
            path,
        } = resource
        else {
            return Err(super::internal("role", "not a role"));
        };
        let at = resource.id();
        let iam = self.iam().await;
        let made = iam
            .create_role()
            .role_name(name)
            .assume_role_policy_document(wanted.to_string())
            .description("made by crossfade")
            .set_permissions_boundary(boundary.clone())
            .set_path(path.clone())
            .tags(tag(run)?)
            .send()
            .await
            .map_err(|e| aws::error(&at, e));
        match made {
            Ok(_) => {}
            // Ours from before a crash: go on with its policies. Somebody else's: theirs it stays.
            Err(e) if e.class == Class::AlreadyExists => {
                let ours = self
                    .find_role(resource)
                    .await?
                    .and_then(|f| f.run)
                    .as_deref()
                    == Some(run);
                if !ours {
                    return Err(e.remedy(
                        "a role of that name exists and is not of this run: rename or remove it",
                    ));
                }
            }
            Err(e) => return Err(e),
        }
        for arn in managed_policies {
            iam.attach_role_policy()
                .role_name(name)
                .policy_arn(arn)
                .send()
                .await
                .map_err(|e| aws::error(&at, e))?;
        }
        for (policy, doc) in inline_policies {
            iam.put_role_policy()
                .role_name(name)
                .policy_name(policy)
                .policy_document(doc.to_string())
                .send()
                .await
                .map_err(|e| aws::error(&at, e))?;
        }
        Ok(())
    }

    /// Policies first: IAM refuses to delete a role that has some.
    pub(super) async fn delete_role(&self, name: &str) -> Result<()> {
        let at = format!("role/{name}");
        let iam = self.iam().await;
        if self.trust_of(name).await?.is_none() {
            return Ok(());
        }
        for arn in optional(self.attached_policies(name).await)?.unwrap_or_default() {
            absent_is_fine(
                iam.detach_role_policy()
                    .role_name(name)
                    .policy_arn(arn)
                    .send()
                    .await
                    .map_err(|e| aws::error(&at, e)),
            )?;
        }
        for policy in optional(self.inline_names(name).await)?.unwrap_or_default() {
            absent_is_fine(
                iam.delete_role_policy()
                    .role_name(name)
                    .policy_name(policy)
                    .send()
                    .await
                    .map_err(|e| aws::error(&at, e)),
            )?;
        }
        absent_is_fine(
            iam.delete_role()
                .role_name(name)
                .send()
                .await
                .map_err(|e| aws::error(&at, e)),
        )
    }

    /// ARN of the provider of an issuer. Its last part is the issuer without the scheme.
    pub(super) async fn oidc_arn(&self, issuer: &str) -> Result<Option<String>> {
        let host_path = issuer.trim_start_matches("https://").trim_end_matches('/');
        let list = self
            .iam()
            .await
            .list_open_id_connect_providers()
            .send()
            .await
            .map_err(|e| aws::error(&format!("oidc-provider/{host_path}"), e))?;
        Ok(list
            .open_id_connect_provider_list()
            .iter()
            .filter_map(|p| p.arn())
            .find(|arn| {
                arn.split_once(":oidc-provider/")
                    .is_some_and(|(_, i)| i == host_path)
            })
            .map(str::to_string))
    }

    pub(super) async fn find_oidc(&self, resource: &Resource) -> Result<Option<Found>> {
        let Resource::OidcProvider { issuer, client_ids } = resource else {
            return Err(super::internal("oidc-provider", "not a provider"));
        };
        let Some(arn) = self.oidc_arn(issuer).await? else {
            return Ok(None);
        };
        let answer = optional(
            self.iam()
                .await
                .get_open_id_connect_provider()
                .open_id_connect_provider_arn(&arn)
                .send()
                .await
                .map_err(|e| aws::error(&resource.id(), e)),
        )?;
        Ok(answer.map(|p| {
            let mut found = ready(
                same_set(p.client_id_list(), client_ids),
                [("arn", arn.clone())],
            );
            found.created = aws::when(p.create_date());
            found.run = p
                .tags()
                .iter()
                .find(|t| t.key() == RUN_TAG)
                .map(|t| t.value().to_string());
            found
        }))
    }

    pub(super) async fn create_oidc(&self, resource: &Resource, run: &str) -> Result<()> {
        let Resource::OidcProvider { issuer, client_ids } = resource else {
            return Err(super::internal("oidc-provider", "not a provider"));
        };
        let url = if issuer.contains("://") {
            issuer.clone()
        } else {
            format!("https://{issuer}")
        };
        // No thumbprint: IAM fetches it itself for issuers under a public authority, as EKS's are (eks.md 3).
        self.iam()
            .await
            .create_open_id_connect_provider()
            .url(url)
            .set_client_id_list(Some(client_ids.clone()))
            .tags(tag(run)?)
            .send()
            .await
            .map_err(|e| aws::error(&resource.id(), e))?;
        Ok(())
    }

    pub(super) async fn delete_oidc(&self, issuer: &str) -> Result<()> {
        let Some(arn) = self.oidc_arn(issuer).await? else {
            return Ok(());
        };
        absent_is_fine(
            self.iam()
                .await
                .delete_open_id_connect_provider()
                .open_id_connect_provider_arn(&arn)
                .send()
                .await
                .map_err(|e| aws::error(&arn, e)),
        )
    }

    pub(super) async fn find_statement(&self, resource: &Resource) -> Result<Option<Found>> {
        let Resource::TrustStatement {
            role,
            sid,
            statement,
        } = resource
        else {
            return Err(super::internal("trust-statement", "not a statement"));
        };
        let Some(role) = self.trust_of(role).await? else {
            return Ok(None);
        };
        let doc = document(role.assume_role_policy_document().unwrap_or_default());
        Ok(trust::statement(&doc, sid).map(|live| {
            ready(
                trust::same_policy(live, &trust::with_sid(sid, statement)),
                [("statement", live.to_string())],
            )
        }))
    }

    /// Read, add, write: IAM has no etag, so the moment between the two is as short as it can be.
    pub(super) async fn create_statement(&self, resource: &Resource) -> Result<()> {
        let Resource::TrustStatement {
            role,
            sid,
            statement,
        } = resource
        else {
            return Err(super::internal("trust-statement", "not a statement"));
        };
        let at = resource.id();
        let live = self
            .trust_of(role)
            .await?
            .ok_or_else(|| Error::new(Class::NotFound, &at, format!("there is no role {role}")))?;
        let doc = self.trust_document(&at, &live)?;
        if let Some(there) = trust::statement(&doc, sid) {
            if trust::same_policy(there, &trust::with_sid(sid, statement)) {
                return Ok(());
            }
            return Err(Error::new(
                Class::Conflict,
                at,
                format!("the trust policy has another statement under Sid {sid}"),
            )
            .remedy("remove that statement, or rename the migration"));
        }
        self.write_trust(&at, role, &trust::with(&doc, sid, statement))
            .await
    }

    pub(super) async fn delete_statement(&self, resource: &Resource) -> Result<()> {
        let Resource::TrustStatement {
            role,
            sid,
            statement,
        } = resource
        else {
            return Err(super::internal("trust-statement", "not a statement"));
        };
        let at = resource.id();
        let Some(live) = self.trust_of(role).await? else {
            return Ok(());
        };
        let doc = self.trust_document(&at, &live)?;
        let Some(there) = trust::statement(&doc, sid) else {
            return Ok(());
        };
        // Read again just now: what somebody made of it since is theirs.
        if !trust::same_policy(there, &trust::with_sid(sid, statement)) {
            return Err(Error::new(
                Class::Conflict,
                at,
                format!(
                    "the statement under Sid {sid} is not the one that this run added: {there}"
                ),
            )
            .remedy("see who changed it; remove it by hand if nobody needs it"));
        }
        self.write_trust(&at, role, &trust::without(&doc, sid))
            .await
    }

    fn trust_document(&self, at: &str, role: &aws_sdk_iam::types::Role) -> Result<Value> {
        let doc = document(role.assume_role_policy_document().unwrap_or_default());
        if !doc.is_object() {
            return Err(Error::new(
                Class::Refused,
                at,
                "the trust policy of the role is no JSON object; it is left alone",
            ));
        }
        Ok(doc)
    }

    async fn write_trust(&self, at: &str, role: &str, doc: &Value) -> Result<()> {
        self.iam()
            .await
            .update_assume_role_policy()
            .role_name(role)
            .policy_document(doc.to_string())
            .send()
            .await
            .map_err(|e| aws::error(at, e))?;
        Ok(())
    }
}
