//! Whether somebody else gets in: a token of an IAM principal is shown to the server.

use super::{LiveKube, Source};
use crate::world::cloud::principal_of;
use crate::world::kube::Admission;
use crate::world::{Class, Error, Result};
use http::{Method, Request};
use http_body_util::BodyExt;
use serde_json::{Value, json};

impl LiveKube {
    /// As a role that the caller assumes for this, or as the caller itself.
    pub(super) async fn admission(&self, principal: &str) -> Result<Admission> {
        let Source::Eks { aws, name } = &self.source else {
            return Err(Error::new(
                Class::Internal,
                self.side,
                "only EKS lets IAM principals in",
            ));
        };
        let me = principal_of(&aws.caller().await?);
        let credentials = if me == principal {
            None
        } else if !principal.contains(":role/") {
            return Ok(Admission::Unproven(format!(
                "{principal} is no role: only that user itself can show a token"
            )));
        } else {
            match aws.assume(principal).await {
                Ok(c) => Some(c),
                Err(e) if matches!(e.class, Class::Unauthorized | Class::Refused) => {
                    return Ok(Admission::Unproven(e.message));
                }
                Err(e) => return Err(e),
            }
        };
        let config = aws.eks_config(name, credentials.as_ref()).await?;
        let client = self.client(config)?;
        let at = format!("{} as {principal}", self.side);
        let who = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        let user = match self.show(&client, path, &who, &at).await {
            Ok(v) => v["status"]["userInfo"].clone(),
            Err(e) if e.class == Class::Unauthorized => return Ok(Admission::Refused(e.message)),
            Err(e) => return Err(e),
        };
        let may = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {"verb": "*", "group": "*", "version": "*", "resource": "*"}},
        });
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let admin = match self.show(&client, path, &may, &at).await {
            Ok(v) => v["status"]["allowed"] == true,
            Err(e) if e.class == Class::Unauthorized => false,
            Err(e) => return Err(e),
        };
        Ok(Admission::In {
            username: user["username"].as_str().unwrap_or_default().into(),
            groups: user["groups"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|g| g.as_str().map(Into::into))
                .collect(),
            admin,
        })
    }

    async fn show(
        &self,
        client: &kube::Client,
        path: &str,
        body: &Value,
        at: &str,
    ) -> Result<Value> {
        let internal = |e: String| Error::new(Class::Internal, at, e);
        let request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .header("accept", "application/json")
            .header("content-type", "application/json")
            .header("user-agent", super::USER_AGENT)
            .body(kube::client::Body::from(body.to_string().into_bytes()))
            .map_err(|e| internal(e.to_string()))?;
        let answer = client.send(request).await.map_err(|e| self.lost(at, &e))?;
        let status = answer.status();
        let bytes = answer
            .into_body()
            .collect()
            .await
            .map_err(|e| self.lost(at, &e))?
            .to_bytes();
        if !status.is_success() {
            return Err(super::kube_error::answer(
                self.side,
                at,
                status.as_u16(),
                &bytes,
                false,
            ));
        }
        serde_json::from_slice(&bytes).map_err(|e| internal(format!("the answer is no JSON: {e}")))
    }
}
