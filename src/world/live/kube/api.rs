//! The calls.

use super::{LiveKube, RESTARTS, asked, path_of};
use crate::object::ObjectId;
use crate::world::kube::{
    Admission, Answer, ApiKind, ApplyOptions, ClusterIdentity, CreateOptions, FIELD_MANAGER, Kube,
    KubeVersion, ListPage, Listing, PAGE,
};
use crate::world::{Class, Error, Result};
use async_trait::async_trait;
use http::Method;
use serde_json::{Value, json};

#[async_trait]
impl Kube for LiveKube {
    async fn version(&self) -> Result<KubeVersion> {
        let v = self.get_json("/version").await?;
        let git_version = v["gitVersion"].as_str().unwrap_or_default().to_string();
        // EKS says "36+"; a build without version says "v0.0.0-master".
        let digits = |s: &str| {
            s.chars()
                .take_while(char::is_ascii_digit)
                .collect::<String>()
        };
        let minor = digits(v["minor"].as_str().unwrap_or_default())
            .parse()
            .or_else(|_| digits(git_version.split('.').nth(1).unwrap_or_default()).parse())
            .map_err(|_| {
                Error::new(
                    Class::Internal,
                    self.side,
                    format!("/version makes no sense: {v}"),
                )
            })?;
        Ok(KubeVersion { git_version, minor })
    }

    async fn identity(&self) -> Result<ClusterIdentity> {
        let ns = self.get_json("/api/v1/namespaces/kube-system").await?;
        let uid = crate::object::uid(&ns).ok_or_else(|| {
            Error::new(
                Class::Internal,
                self.side,
                "namespace kube-system has no uid",
            )
        })?;
        let ca_sha256 = self.connection().await?.ca_sha256.clone();
        Ok(ClusterIdentity {
            uid: uid.into(),
            ca_sha256,
        })
    }

    async fn admits(&self, principal: &str) -> Result<Admission> {
        self.admission(principal).await
    }

    async fn kinds(&self, refresh: bool) -> Result<Vec<ApiKind>> {
        Ok(self.cached_kinds(refresh).await?.to_vec())
    }

    async fn list(&self, kind: &ApiKind) -> Result<Listing> {
        let mut restarts = 0;
        'again: loop {
            // The last attempt asks for everything at once: expired tokens cannot stop that one.
            let limit = if restarts < RESTARTS { PAGE } else { 0 };
            let (mut items, mut token) = (vec![], String::new());
            loop {
                let page = match self.page(kind, None, limit, &token).await {
                    Err(e) if e.class == Class::Gone && restarts < RESTARTS => {
                        restarts += 1;
                        continue 'again;
                    }
                    other => other?,
                };
                items.extend(page.items);
                match page.continue_token {
                    Some(next) => token = next,
                    None => {
                        return Ok(Listing {
                            items,
                            resource_version: page.resource_version,
                        });
                    }
                }
            }
        }
    }

    async fn list_page(
        &self,
        kind: &ApiKind,
        namespace: Option<&str>,
        continue_token: Option<&str>,
    ) -> Result<ListPage> {
        // Secrets may weigh a MiB each (Helm releases do): a page of them is kept small.
        let limit = match (kind.group.as_str(), kind.kind.as_str()) {
            ("", "Secret") => PAGE / 5,
            _ => PAGE,
        };
        self.page(kind, namespace, limit, continue_token.unwrap_or_default())
            .await
    }

    async fn get(&self, id: &ObjectId) -> Result<Option<Value>> {
        let Some(kind) = self.kind_of(id).await? else {
            return Ok(None);
        };
        let path = path_of(&kind, id.namespace.as_deref(), Some(&id.name));
        match self.call(Method::GET, &path, None, &self.place(id)).await {
            Ok(v) => Ok(Some(v)),
            Err(e) if e.class == Class::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    async fn create(&self, object: &Value, options: CreateOptions) -> Result<Value> {
        Ok(self.create_heard(object, options).await?.object)
    }

    async fn create_heard(&self, object: &Value, options: CreateOptions) -> Result<Answer> {
        let id = ObjectId::of(object).ok_or_else(|| {
            Error::new(
                Class::Internal,
                self.side,
                "an object without apiVersion, kind or name cannot be created",
            )
        })?;
        let kind = self.served(&id).await?;
        let mut path = format!(
            "{}?fieldManager={FIELD_MANAGER}",
            path_of(&kind, id.namespace.as_deref(), None)
        );
        path.push_str(asked(options.dry_run, options.strict));
        Ok(self
            .heard(
                Method::POST,
                &path,
                Some(("application/json", object)),
                &self.place(&id),
            )
            .await?)
    }

    async fn apply_heard(&self, object: &Value, options: ApplyOptions) -> Result<Answer> {
        let id = ObjectId::of(object).ok_or_else(|| {
            Error::new(
                Class::Internal,
                self.side,
                "an object without apiVersion, kind or name cannot be applied",
            )
        })?;
        let kind = self.served(&id).await?;
        let mut path = format!(
            "{}?fieldManager={FIELD_MANAGER}&force={}",
            path_of(&kind, id.namespace.as_deref(), Some(&id.name)),
            options.force,
        );
        path.push_str(asked(options.dry_run, options.strict));
        // JSON is YAML.
        Ok(self
            .heard(
                Method::PATCH,
                &path,
                Some(("application/apply-patch+yaml", object)),
                &self.place(&id),
            )
            .await?)
    }

    async fn merge(&self, id: &ObjectId, body: &Value) -> Result<Value> {
        let kind = self.served(id).await?;
        let path = format!(
            "{}?fieldManager={FIELD_MANAGER}",
            path_of(&kind, id.namespace.as_deref(), Some(&id.name))
        );
        Ok(self
            .call(
                Method::PATCH,
                &path,
                Some(("application/merge-patch+json", body)),
                &self.place(id),
            )
            .await?)
    }

    async fn delete(&self, id: &ObjectId, uid: &str) -> Result<()> {
        let Some(kind) = self.kind_of(id).await? else {
            return Err(Error::new(
                Class::NotFound,
                self.place(id),
                format!("{} {} is not served", id.api_version, id.kind),
            ));
        };
        let path = path_of(&kind, id.namespace.as_deref(), Some(&id.name));
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions",
            "preconditions": {"uid": uid}, "propagationPolicy": "Background",
        });
        self.call(
            Method::DELETE,
            &path,
            Some(("application/json", &options)),
            &self.place(id),
        )
        .await?;
        Ok(())
    }
}
