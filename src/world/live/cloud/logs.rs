//! CloudWatch log groups of EKS clusters.

use super::json::{self, LOGS};
use super::{LiveCloud, absent_is_fine, internal, optional};
use crate::world::cloud::{Existing, Found, Now, RUN_TAG, Resource, Status};
use crate::world::{Class, Result};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What EKS calls the log groups of its clusters.
const EKS: &str = "/aws/eks/";

impl LiveCloud {
    async fn logs(&self, operation: &str, at: &str, body: &Value) -> Result<Value> {
        json::call(&self.aws, &LOGS, operation, at, body).await
    }

    /// Log groups whose names begin so.
    async fn groups(&self, prefix: &str, at: &str) -> Result<Vec<Existing>> {
        let mut out = vec![];
        let mut token: Option<String> = None;
        loop {
            let mut body = json!({"logGroupNamePrefix": prefix});
            if let Some(t) = &token {
                body["nextToken"] = json!(t);
            }
            let page = self.logs("DescribeLogGroups", at, &body).await?;
            for g in page["logGroups"].as_array().into_iter().flatten() {
                let arn = g["arn"].as_str().unwrap_or_default();
                let tags = optional(
                    self.logs(
                        "ListTagsForResource",
                        at,
                        // The ARN of a group is listed with `:*` at its end, and tags are asked for without it.
                        &json!({"resourceArn": arn.trim_end_matches(":*")}),
                    )
                    .await,
                )?;
                let tags: BTreeMap<String, String> = tags
                    .and_then(|t| serde_json::from_value(t["tags"].clone()).ok())
                    .unwrap_or_default();
                out.push(Existing {
                    resource: Resource::LogGroup {
                        name: g["logGroupName"].as_str().unwrap_or_default().into(),
                        retention_days: g["retentionInDays"]
                            .as_u64()
                            .and_then(|d| u32::try_from(d).ok()),
                    },
                    tags,
                    status: Status::Ready,
                    extras: vec![],
                    attributes: BTreeMap::from([("arn".to_string(), arn.to_string())]),
                    // Milliseconds since 1970.
                    now: Now {
                        created: g["creationTime"]
                            .as_i64()
                            .and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok())
                            .map(|t| t.to_string()),
                        ..Now::default()
                    },
                });
            }
            token = page["nextToken"].as_str().map(String::from);
            if token.is_none() {
                return Ok(out);
            }
        }
    }

    /// All log groups of EKS clusters.
    pub(super) async fn eks_log_groups(&self) -> Result<Vec<Existing>> {
        let mut list = self.groups(EKS, "log groups").await?;
        list.sort_by_key(|g| g.resource.id());
        Ok(list)
    }

    pub(super) async fn find_log_group(&self, resource: &Resource) -> Result<Option<Found>> {
        let Resource::LogGroup { name, .. } = resource else {
            return Err(internal("log-group", "not a log group"));
        };
        let list = self.groups(name, &resource.id()).await?;
        Ok(list
            .into_iter()
            .find(|g| g.resource.id() == resource.id())
            .map(|g| g.found(resource)))
    }

    /// Two requests: the group with its tags, then how long it keeps what it holds. Repeating both is harmless.
    pub(super) async fn create_log_group(&self, resource: &Resource, run: &str) -> Result<()> {
        let Resource::LogGroup {
            name,
            retention_days,
        } = resource
        else {
            return Err(internal("log-group", "not a log group"));
        };
        let at = resource.id();
        let made = self
            .logs(
                "CreateLogGroup",
                &at,
                &json!({"logGroupName": name, "tags": {RUN_TAG: run}}),
            )
            .await;
        match made {
            Ok(_) => {}
            Err(e) if e.class == Class::AlreadyExists => {
                let found = self.find_log_group(resource).await?;
                if found.and_then(|f| f.run).as_deref() != Some(run) {
                    return Err(e);
                }
            }
            Err(e) => return Err(e),
        }
        if let Some(days) = retention_days {
            self.logs(
                "PutRetentionPolicy",
                &at,
                &json!({"logGroupName": name, "retentionInDays": days}),
            )
            .await?;
        }
        Ok(())
    }

    pub(super) async fn delete_log_group(&self, name: &str) -> Result<()> {
        absent_is_fine(
            self.logs(
                "DeleteLogGroup",
                &format!("log-group/{name}"),
                &json!({"logGroupName": name}),
            )
            .await,
        )
    }
}
