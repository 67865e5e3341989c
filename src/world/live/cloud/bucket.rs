//! The bucket of crossfade's own records: read, compared, and made only when migration.yaml asks for it.

use super::{LiveCloud, absent_is_fine, internal, optional};
use crate::world::cloud::{Existing, Found, RUN_TAG, Resource, Status};
use crate::world::live::aws;
use crate::world::{Class, Error, Result};
use aws_sdk_s3::types as s3;
use std::collections::BTreeMap;

fn build<T>(at: &str, made: std::result::Result<T, impl std::fmt::Display>) -> Result<T> {
    made.map_err(|e| Error::new(Class::Internal, at, e.to_string()))
}

impl LiveCloud {
    async fn s3(&self) -> aws_sdk_s3::Client {
        let config = self.aws.config().await;
        let builder = aws_sdk_s3::config::Builder::from(config)
            .force_path_style(config.endpoint_url().is_some());
        aws_sdk_s3::Client::from_conf(builder.build())
    }

    /// What is there.
    pub(super) async fn bucket(&self, name: &str) -> Result<Option<Existing>> {
        let at = format!("state-bucket/{name}");
        let client = self.s3().await;
        let head = client
            .head_bucket()
            .bucket(name)
            .send()
            .await
            .map_err(|e| aws::error(&at, e));
        match head {
            Ok(_) => {}
            Err(e) if e.class == Class::NotFound => return Ok(None),
            // HEAD has no body, so 403 comes without a word.
            Err(e) if e.class == Class::Unauthorized || e.message.contains("403") => {
                return Err(Error::new(
                    Class::Unauthorized,
                    at,
                    "the bucket exists, and we may not look at it (s3:ListBucket): another account's, or closed to us",
                )
                .remedy(format!(
                    "give the caller s3:ListBucket on arn:aws:s3:::{name} (`crossfade policy` prints what a run needs), or name another bucket"
                )));
            }
            Err(e) => return Err(e),
        }
        let versioning = client
            .get_bucket_versioning()
            .bucket(name)
            .send()
            .await
            .map_err(|e| aws::error(&at, e))?;
        let encryption = optional(
            client
                .get_bucket_encryption()
                .bucket(name)
                .send()
                .await
                .map_err(|e| aws::error(&at, e)),
        )?;
        let block = optional(
            client
                .get_public_access_block()
                .bucket(name)
                .send()
                .await
                .map_err(|e| aws::error(&at, e)),
        )?;
        let tags = optional(
            client
                .get_bucket_tagging()
                .bucket(name)
                .send()
                .await
                .map_err(|e| aws::error(&at, e)),
        )?;
        let versioned = versioning.status() == Some(&s3::BucketVersioningStatus::Enabled);
        let encrypted = encryption
            .and_then(|e| e.server_side_encryption_configuration)
            .is_some_and(|c| {
                c.rules()
                    .iter()
                    .any(|r| r.apply_server_side_encryption_by_default().is_some())
            });
        let closed = block
            .and_then(|b| b.public_access_block_configuration)
            .is_some_and(|b| {
                [
                    b.block_public_acls(),
                    b.ignore_public_acls(),
                    b.block_public_policy(),
                    b.restrict_public_buckets(),
                ]
                .into_iter()
                .all(|on| on == Some(true))
            });
        let tags: BTreeMap<String, String> = tags
            .map(|t| t.tag_set)
            .unwrap_or_default()
            .into_iter()
            .map(|t| (t.key, t.value))
            .collect();
        Ok(Some(Existing {
            resource: Resource::StateBucket {
                name: name.into(),
                create: false,
                versioned,
                encrypted,
                closed,
            },
            tags,
            status: Status::Ready,
            extras: vec![],
            attributes: BTreeMap::new(),
            now: Default::default(),
        }))
    }

    pub(super) async fn find_bucket(&self, resource: &Resource) -> Result<Option<Found>> {
        let Resource::StateBucket { name, .. } = resource else {
            return Err(internal("state-bucket", "not a bucket"));
        };
        Ok(self.bucket(name).await?.map(|b| b.found(resource)))
    }

    /// Tagged from the first request on, so that a crash between two leaves no bucket that nobody knows; then closed before it
    /// can hold anything.
    pub(super) async fn create_bucket(&self, resource: &Resource, run: &str) -> Result<()> {
        let Resource::StateBucket { name, create, .. } = resource else {
            return Err(internal("state-bucket", "not a bucket"));
        };
        let at = resource.id();
        if !create {
            return Err(Error::new(
                Class::Refused,
                at,
                "there is no such bucket, and migration.yaml does not ask for it to be made",
            )
            .remedy("correct aws.stateBucket.name, make the bucket, or set aws.stateBucket.create: true"));
        }
        let client = self.s3().await;
        let region = self.aws.region().await?;
        let tag = build(&at, s3::Tag::builder().key(RUN_TAG).value(run).build())?;
        let mut configuration = s3::CreateBucketConfiguration::builder().tags(tag);
        // The one region that must not be named.
        if region != "us-east-1" {
            configuration = configuration
                .location_constraint(s3::BucketLocationConstraint::from(region.as_str()));
        }
        let made = client
            .create_bucket()
            .bucket(name)
            .create_bucket_configuration(configuration.build())
            .send()
            .await
            .map_err(|e| aws::error(&at, e));
        match made {
            Ok(_) => {}
            Err(e) if e.class == Class::AlreadyExists => {
                let found = self.find_bucket(resource).await?;
                if found.and_then(|f| f.run).as_deref() != Some(run) {
                    return Err(e);
                }
            }
            Err(e) => return Err(e),
        }
        client
            .put_public_access_block()
            .bucket(name)
            .public_access_block_configuration(
                s3::PublicAccessBlockConfiguration::builder()
                    .block_public_acls(true)
                    .ignore_public_acls(true)
                    .block_public_policy(true)
                    .restrict_public_buckets(true)
                    .build(),
            )
            .send()
            .await
            .map_err(|e| aws::error(&at, e))?;
        client
            .put_bucket_versioning()
            .bucket(name)
            .versioning_configuration(
                s3::VersioningConfiguration::builder()
                    .status(s3::BucketVersioningStatus::Enabled)
                    .build(),
            )
            .send()
            .await
            .map_err(|e| aws::error(&at, e))?;
        let by_default = build(
            &at,
            s3::ServerSideEncryptionByDefault::builder()
                .sse_algorithm(s3::ServerSideEncryption::Aes256)
                .build(),
        )?;
        let rules = build(
            &at,
            s3::ServerSideEncryptionConfiguration::builder()
                .rules(
                    s3::ServerSideEncryptionRule::builder()
                        .apply_server_side_encryption_by_default(by_default)
                        .build(),
                )
                .build(),
        )?;
        client
            .put_bucket_encryption()
            .bucket(name)
            .server_side_encryption_configuration(rules)
            .send()
            .await
            .map_err(|e| aws::error(&at, e))?;
        Ok(())
    }

    /// Only an empty one goes: S3 refuses any other, and what it holds is the record of runs.
    pub(super) async fn delete_bucket(&self, name: &str) -> Result<()> {
        let at = format!("state-bucket/{name}");
        let gone = self
            .s3()
            .await
            .delete_bucket()
            .bucket(name)
            .send()
            .await
            .map_err(|e| aws::error(&at, e));
        absent_is_fine(gone).map_err(|e| {
            if e.message.starts_with("BucketNotEmpty") {
                e.remedy("it holds records, which crossfade does not delete: move them away with all their versions, then repeat the command")
            } else {
                e
            }
        })
    }
}
