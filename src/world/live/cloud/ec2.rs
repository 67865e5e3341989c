//! EC2: additive security-group rules and tags.

use super::{LiveCloud, ready};
use crate::world::cloud::{Found, RUN_TAG, Resource};
use crate::world::live::aws;
use crate::world::{Class, Error, Result};
use aws_sdk_ec2::types::{
    Filter, IpPermission, ResourceType, SecurityGroupRule, Tag, TagSpecification, UserIdGroupPair,
};

fn filter(name: &str, value: &str) -> Filter {
    Filter::builder().name(name).values(value).build()
}

fn port(p: Option<i32>) -> i32 {
    // EC2 lists "all ports" of protocol -1 as -1 or as nothing.
    p.unwrap_or(-1)
}

fn permission(resource: &Resource) -> Result<IpPermission> {
    let Resource::SecurityGroupRule {
        protocol,
        from_port,
        to_port,
        source_group,
        description,
        ..
    } = resource
    else {
        return Err(super::internal("security-group-rule", "not a rule"));
    };
    let pair = UserIdGroupPair::builder()
        .group_id(source_group)
        .description(description)
        .build();
    let all = protocol == "-1";
    Ok(IpPermission::builder()
        .ip_protocol(protocol)
        .set_from_port((!all).then_some(*from_port))
        .set_to_port((!all).then_some(*to_port))
        .user_id_group_pairs(pair)
        .build())
}

impl LiveCloud {
    async fn rule(&self, resource: &Resource) -> Result<Option<SecurityGroupRule>> {
        let Resource::SecurityGroupRule {
            group,
            protocol,
            from_port,
            to_port,
            source_group,
            ..
        } = resource
        else {
            return Err(super::internal("security-group-rule", "not a rule"));
        };
        let at = resource.id();
        let mut pages = self
            .ec2()
            .await
            .describe_security_group_rules()
            .filters(filter("group-id", group))
            .into_paginator()
            .items()
            .send();
        while let Some(rule) = pages.next().await {
            let rule = match rule.map_err(|e| aws::error(&at, e)) {
                Ok(r) => r,
                Err(e) if e.class == Class::NotFound => return Ok(None),
                Err(e) => return Err(e),
            };
            let source = rule.referenced_group_info().and_then(|g| g.group_id());
            let all = protocol == "-1";
            if rule.is_egress() != Some(true)
                && rule.ip_protocol() == Some(protocol)
                && source == Some(source_group)
                && (all
                    || (port(rule.from_port()) == *from_port && port(rule.to_port()) == *to_port))
            {
                return Ok(Some(rule));
            }
        }
        Ok(None)
    }

    /// A rule cannot exist twice: protocol, ports and source *are* the rule. The description tells whose it is.
    pub(super) async fn find_rule(&self, resource: &Resource) -> Result<Option<Found>> {
        let Resource::SecurityGroupRule { description, .. } = resource else {
            return Err(super::internal("security-group-rule", "not a rule"));
        };
        Ok(self.rule(resource).await?.map(|rule| {
            let text = rule.description().unwrap_or_default().to_string();
            let mut found = ready(
                text == *description,
                [
                    (
                        "ruleId",
                        rule.security_group_rule_id()
                            .unwrap_or_default()
                            .to_string(),
                    ),
                    ("description", text),
                ],
            );
            found.run = rule
                .tags()
                .iter()
                .find(|t| t.key() == Some(RUN_TAG))
                .and_then(|t| t.value().map(str::to_string));
            found
        }))
    }

    pub(super) async fn create_rule(&self, resource: &Resource, run: &str) -> Result<()> {
        let Resource::SecurityGroupRule { group, .. } = resource else {
            return Err(super::internal("security-group-rule", "not a rule"));
        };
        self.ec2()
            .await
            .authorize_security_group_ingress()
            .group_id(group)
            .ip_permissions(permission(resource)?)
            .tag_specifications(
                TagSpecification::builder()
                    .resource_type(ResourceType::SecurityGroupRule)
                    .tags(Tag::builder().key(RUN_TAG).value(run).build())
                    .build(),
            )
            .send()
            .await
            .map_err(|e| aws::error(&resource.id(), e))?;
        Ok(())
    }

    /// By the rule's own id: a revoke by content would also hit a rule that somebody made again in the meantime.
    pub(super) async fn delete_rule(&self, resource: &Resource) -> Result<()> {
        let Resource::SecurityGroupRule { group, .. } = resource else {
            return Err(super::internal("security-group-rule", "not a rule"));
        };
        let Some(rule) = self.rule(resource).await? else {
            return Ok(());
        };
        let id = rule
            .security_group_rule_id()
            .ok_or_else(|| super::internal(&resource.id(), "EC2 lists the rule without an id"))?;
        super::absent_is_fine(
            self.ec2()
                .await
                .revoke_security_group_ingress()
                .group_id(group)
                .security_group_rule_ids(id)
                .send()
                .await
                .map_err(|e| aws::error(&resource.id(), e)),
        )
    }

    pub(super) async fn find_tag(&self, resource: &Resource) -> Result<Option<Found>> {
        let Resource::Tag {
            resource: id,
            key,
            value,
        } = resource
        else {
            return Err(super::internal("tag", "not a tag"));
        };
        let answer = self
            .ec2()
            .await
            .describe_tags()
            .filters(filter("resource-id", id))
            .filters(filter("key", key))
            .send()
            .await
            .map_err(|e| aws::error(&resource.id(), e))?;
        Ok(answer
            .tags()
            .iter()
            .find(|t| t.resource_id() == Some(id) && t.key() == Some(key))
            .map(|t| {
                let live = t.value().unwrap_or_default().to_string();
                ready(live == *value, [("value", live)])
            }))
    }

    /// CreateTags overwrites; a tag that says something else belongs to somebody else.
    pub(super) async fn create_tag(&self, resource: &Resource) -> Result<()> {
        let Resource::Tag {
            resource: id,
            key,
            value,
        } = resource
        else {
            return Err(super::internal("tag", "not a tag"));
        };
        match self.find_tag(resource).await? {
            Some(found) if found.equal => return Ok(()),
            Some(found) => {
                return Err(Error::new(
                    Class::Conflict,
                    resource.id(),
                    format!(
                        "the tag is there with another value: {:?} instead of {value:?}",
                        found
                            .attributes
                            .get("value")
                            .map(String::as_str)
                            .unwrap_or_default()
                    ),
                ));
            }
            None => {}
        }
        self.ec2()
            .await
            .create_tags()
            .resources(id)
            .tags(Tag::builder().key(key).value(value).build())
            .send()
            .await
            .map_err(|e| aws::error(&resource.id(), e))?;
        Ok(())
    }

    /// With the value: EC2 then deletes the tag only if it still says what we wrote.
    pub(super) async fn delete_tag(&self, resource: &Resource) -> Result<()> {
        let Resource::Tag {
            resource: id,
            key,
            value,
        } = resource
        else {
            return Err(super::internal("tag", "not a tag"));
        };
        super::absent_is_fine(
            self.ec2()
                .await
                .delete_tags()
                .resources(id)
                .tags(Tag::builder().key(key).value(value).build())
                .send()
                .await
                .map_err(|e| aws::error(&resource.id(), e)),
        )
    }
}
