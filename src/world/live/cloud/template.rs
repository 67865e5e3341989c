//! EC2 launch templates. What counts is a template's default version: the one that a node group takes when it names none.

use super::{LiveCloud, absent_is_fine, internal, optional, tag_map};
use crate::world::cloud::compare::hashed;
use crate::world::cloud::{Disk, Existing, Found, RUN_TAG, Resource, Status};
use crate::world::live::aws;
use crate::world::{Class, Error, Result};
use aws_sdk_ec2::types as ec2;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use std::collections::BTreeMap;

/// EC2 takes 16 KB of user data, before it is encoded.
const USER_DATA: usize = 16 * 1024;

fn number(n: u32, at: &str) -> Result<i32> {
    i32::try_from(n).map_err(|_| Error::new(Class::Refused, at, format!("{n} is too large")))
}

fn mapping(disk: &Disk, at: &str) -> Result<ec2::LaunchTemplateBlockDeviceMappingRequest> {
    let optional = |n: Option<u32>| n.map(|n| number(n, at)).transpose();
    Ok(ec2::LaunchTemplateBlockDeviceMappingRequest::builder()
        .device_name(&disk.device)
        .ebs(
            ec2::LaunchTemplateEbsBlockDeviceRequest::builder()
                .volume_size(number(disk.gib, at)?)
                .volume_type(ec2::VolumeType::from(disk.kind.as_str()))
                .set_iops(optional(disk.iops)?)
                .set_throughput(optional(disk.throughput)?)
                .encrypted(disk.encrypted)
                .set_kms_key_id(disk.kms_key.clone())
                .delete_on_termination(disk.delete_on_termination)
                .build(),
        )
        .build())
}

fn disk(m: &ec2::LaunchTemplateBlockDeviceMapping) -> Option<Disk> {
    let count = |n: Option<i32>| n.and_then(|n| u32::try_from(n).ok());
    let ebs = m.ebs()?;
    Some(Disk {
        device: m.device_name().unwrap_or_default().into(),
        gib: count(ebs.volume_size()).unwrap_or(0),
        kind: ebs.volume_type().map_or("", |t| t.as_str()).into(),
        iops: count(ebs.iops()),
        throughput: count(ebs.throughput()),
        encrypted: ebs.encrypted().unwrap_or(false),
        kms_key: ebs.kms_key_id().map(Into::into),
        delete_on_termination: ebs.delete_on_termination().unwrap_or(false),
    })
}

/// A template's version in our words. Which device is the root, the image says, not the template: the first of the names that
/// EKS's images use, else the first one listed.
fn template_of(version: &ec2::LaunchTemplateVersion, tags: BTreeMap<String, String>) -> Existing {
    let name = version.launch_template_name().unwrap_or_default();
    let empty = ec2::ResponseLaunchTemplateData::builder().build();
    let data = version.launch_template_data().unwrap_or(&empty);
    let mut extras = vec![];
    let mut extra = |what: &str, value: Option<String>| {
        if let Some(v) = value {
            extras.push(format!("{what} {v}").trim_end().to_string());
        }
    };
    extra("image", data.image_id().map(Into::into));
    extra(
        "instance type",
        data.instance_type().map(|t| t.as_str().into()),
    );
    extra("key", data.key_name().map(Into::into));
    extra(
        "instance profile",
        data.iam_instance_profile()
            .and_then(|p| p.name().or(p.arn()))
            .map(Into::into),
    );
    extra(
        "behaviour at shutdown",
        data.instance_initiated_shutdown_behavior()
            .map(|b| b.as_str().into()),
    );
    extra(
        "spot market options",
        data.instance_market_options().map(|_| String::new()),
    );
    extra(
        "instance requirements",
        data.instance_requirements().map(|_| String::new()),
    );
    for interface in data.network_interfaces() {
        extra("subnet", interface.subnet_id().map(Into::into));
    }
    let mut disks: Vec<Disk> = data
        .block_device_mappings()
        .iter()
        .filter_map(disk)
        .collect();
    let root = ["/dev/xvda", "/dev/sda1"]
        .iter()
        .find_map(|d| disks.iter().position(|x| x.device == *d))
        .unwrap_or(0);
    let root = if disks.is_empty() {
        extra("the image's own volumes", Some(String::new()));
        Disk {
            device: String::new(),
            gib: 0,
            kind: String::new(),
            iops: None,
            throughput: None,
            encrypted: false,
            kms_key: None,
            delete_on_termination: true,
        }
    } else {
        disks.remove(root)
    };
    let mut security_groups = data.security_group_ids().to_vec();
    security_groups.extend(
        data.network_interfaces()
            .iter()
            .flat_map(|i| i.groups().to_vec()),
    );
    let metadata = data.metadata_options();
    let user_data = data.user_data().filter(|t| !t.is_empty()).map(|text| {
        let plain = BASE64.decode(text).unwrap_or_else(|_| text.into());
        hashed(&String::from_utf8_lossy(&plain))
    });
    let mut instance_tags = BTreeMap::new();
    for spec in data.tag_specifications() {
        instance_tags.extend(tag_map(spec.tags().iter().map(|t| (t.key(), t.value()))));
    }
    Existing {
        resource: Resource::LaunchTemplate {
            name: name.into(),
            root,
            volumes: disks,
            // EC2's own defaults where a template says nothing.
            http_tokens: metadata
                .and_then(|m| m.http_tokens())
                .map_or("optional", |t| t.as_str())
                .into(),
            hop_limit: metadata
                .and_then(|m| m.http_put_response_hop_limit())
                .and_then(|n| u32::try_from(n).ok())
                .unwrap_or(1),
            security_groups,
            user_data,
            tags: instance_tags,
            monitoring: data.monitoring().and_then(|m| m.enabled()).unwrap_or(false),
            tenancy: data
                .placement()
                .and_then(|p| p.tenancy())
                .map(|t| t.as_str().into()),
            cpu_credits: data
                .credit_specification()
                .and_then(|c| c.cpu_credits())
                .map(Into::into),
            associate_public_ip: data
                .network_interfaces()
                .iter()
                .find_map(|i| i.associate_public_ip_address()),
        },
        tags,
        status: Status::Ready,
        extras,
        attributes: [
            ("id", version.launch_template_id().map(String::from)),
            ("version", version.version_number().map(|n| n.to_string())),
        ]
        .into_iter()
        .filter_map(|(k, v)| Some((k.to_string(), v?)))
        .collect(),
        now: Default::default(),
    }
}

/// All templates of the account with their default versions.
pub(super) async fn read_all(client: &aws_sdk_ec2::Client) -> Result<Vec<Existing>> {
    let mut tags: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    let mut pages = client
        .describe_launch_templates()
        .into_paginator()
        .items()
        .send();
    while let Some(t) = pages.next().await {
        match t.map_err(|e| aws::error("launch templates", e)) {
            Ok(t) => {
                let own = tag_map(t.tags().iter().map(|t| (t.key(), t.value())));
                tags.insert(t.launch_template_id().unwrap_or_default().into(), own);
            }
            Err(e) => return Err(e),
        }
    }
    let mut out = vec![];
    // Without a name EC2 answers for all templates, if one of the two version words is given.
    let mut pages = client
        .describe_launch_template_versions()
        .versions("$Default")
        .into_paginator()
        .items()
        .send();
    while let Some(v) = pages.next().await {
        match v.map_err(|e| aws::error("launch templates", e)) {
            Ok(v) => {
                let own = tags.remove(v.launch_template_id().unwrap_or_default());
                out.push(template_of(&v, own.unwrap_or_default()));
            }
            Err(e) => return Err(e),
        }
    }
    out.sort_by_key(|e| e.resource.id());
    Ok(out)
}

impl LiveCloud {
    pub(super) async fn find_template(&self, resource: &Resource) -> Result<Option<Found>> {
        let Resource::LaunchTemplate { name, .. } = resource else {
            return Err(internal("launch-template", "not a launch template"));
        };
        let at = resource.id();
        let client = self.ec2().await;
        let answer = optional(
            client
                .describe_launch_templates()
                .launch_template_names(name)
                .send()
                .await
                .map_err(|e| aws::error(&at, e)),
        )?;
        let Some(template) = answer
            .and_then(|a| a.launch_templates)
            .and_then(|l| l.into_iter().next())
        else {
            return Ok(None);
        };
        let answer = optional(
            client
                .describe_launch_template_versions()
                .set_launch_template_id(template.launch_template_id().map(Into::into))
                .versions("$Default")
                .send()
                .await
                .map_err(|e| aws::error(&at, e)),
        )?;
        let Some(version) = answer
            .and_then(|a| a.launch_template_versions)
            .and_then(|l| l.into_iter().next())
        else {
            return Ok(None);
        };
        let tags = tag_map(template.tags().iter().map(|t| (t.key(), t.value())));
        let mut there = template_of(&version, tags);
        there.now.created = aws::when(template.create_time());
        Ok(Some(there.found(resource)))
    }

    pub(super) async fn create_template(&self, resource: &Resource, run: &str) -> Result<()> {
        let Resource::LaunchTemplate {
            name,
            root,
            volumes,
            http_tokens,
            hop_limit,
            security_groups,
            user_data,
            tags,
            monitoring,
            tenancy,
            cpu_credits,
            associate_public_ip,
        } = resource
        else {
            return Err(internal("launch-template", "not a launch template"));
        };
        let at = resource.id();
        if let Some(text) = user_data
            && text.len() > USER_DATA
        {
            return Err(Error::new(
                Class::Refused,
                &at,
                format!(
                    "the user data has {} bytes, EC2 takes {USER_DATA}",
                    text.len()
                ),
            ));
        }
        let mut mappings = vec![mapping(root, &at)?];
        for volume in volumes {
            mappings.push(mapping(volume, &at)?);
        }
        let mut data = ec2::RequestLaunchTemplateData::builder()
            .set_block_device_mappings(Some(mappings))
            .metadata_options(
                ec2::LaunchTemplateInstanceMetadataOptionsRequest::builder()
                    .http_endpoint(ec2::LaunchTemplateInstanceMetadataEndpointState::Enabled)
                    .http_tokens(ec2::LaunchTemplateHttpTokensState::from(
                        http_tokens.as_str(),
                    ))
                    .http_put_response_hop_limit(number(*hop_limit, &at)?)
                    .build(),
            )
            .monitoring(
                ec2::LaunchTemplatesMonitoringRequest::builder()
                    .enabled(*monitoring)
                    .build(),
            )
            .set_user_data(user_data.as_ref().map(|t| BASE64.encode(t)));
        let groups = (!security_groups.is_empty()).then(|| security_groups.clone());
        // Groups stand either on the instance or on its interface: EC2 refuses both.
        data = match associate_public_ip {
            Some(public) => data.network_interfaces(
                ec2::LaunchTemplateInstanceNetworkInterfaceSpecificationRequest::builder()
                    .device_index(0)
                    .associate_public_ip_address(*public)
                    .set_groups(groups)
                    .build(),
            ),
            None => data.set_security_group_ids(groups),
        };
        if let Some(tenancy) = tenancy {
            data = data.placement(
                ec2::LaunchTemplatePlacementRequest::builder()
                    .tenancy(ec2::Tenancy::from(tenancy.as_str()))
                    .build(),
            );
        }
        if let Some(credits) = cpu_credits {
            data = data.credit_specification(
                ec2::CreditSpecificationRequest::builder()
                    .cpu_credits(credits)
                    .build(),
            );
        }
        if !tags.is_empty() {
            let list: Vec<ec2::Tag> = tags
                .iter()
                .map(|(k, v)| ec2::Tag::builder().key(k).value(v).build())
                .collect();
            for kind in [ec2::ResourceType::Instance, ec2::ResourceType::Volume] {
                data = data.tag_specifications(
                    ec2::LaunchTemplateTagSpecificationRequest::builder()
                        .resource_type(kind)
                        .set_tags(Some(list.clone()))
                        .build(),
                );
            }
        }
        self.ec2()
            .await
            .create_launch_template()
            .launch_template_name(name)
            .launch_template_data(data.build())
            .client_token(self.token(run, resource))
            .tag_specifications(
                ec2::TagSpecification::builder()
                    .resource_type(ec2::ResourceType::LaunchTemplate)
                    .tags(ec2::Tag::builder().key(RUN_TAG).value(run).build())
                    .build(),
            )
            .send()
            .await
            .map_err(|e| aws::error(&at, e))?;
        Ok(())
    }

    pub(super) async fn delete_template(&self, name: &str) -> Result<()> {
        absent_is_fine(
            self.ec2()
                .await
                .delete_launch_template()
                .launch_template_name(name)
                .send()
                .await
                .map_err(|e| aws::error(&format!("launch-template/{name}"), e)),
        )
    }
}
