//! EC2: security groups and their rules, tags, subnets (eks.md 2.3, 7).

use std::collections::BTreeSet;

use crate::strict::State;
use crate::strict::http::{Refusal, Req};
use crate::strict::interfaces;
use crate::strict::log::reads_only;
use crate::strict::quotas;
use crate::strict::xml::Element;

/// One rule of a security group: protocol, ports, peer (group, CIDR or prefix list).
type Rule = (String, String, String, String);

fn protocol(text: &str) -> String {
    match text {
        "6" => "tcp",
        "17" => "udp",
        "1" => "icmp",
        "all" => "-1",
        other => other,
    }
    .to_lowercase()
}

fn rule(protocol_text: &str, from: &str, to: &str, peer: &str) -> Rule {
    let protocol = protocol(protocol_text);
    // Ports say nothing for "all traffic".
    let (from, to) = if protocol == "-1" {
        ("", "")
    } else {
        (from, to)
    };
    (protocol, from.to_owned(), to.to_owned(), peer.to_owned())
}

/// The rules that a request names.
fn rules_of(req: &Req) -> Vec<Rule> {
    let mut out = Vec::new();
    for n in 1.. {
        let field = |name: &str| req.form(&format!("IpPermissions.{n}.{name}"));
        let Some(protocol) = field("IpProtocol") else {
            break;
        };
        let (from, to) = (
            field("FromPort").unwrap_or(""),
            field("ToPort").unwrap_or(""),
        );
        for list in [
            "Groups.{m}.GroupId",
            "UserIdGroupPairs.{m}.GroupId",
            "IpRanges.{m}.CidrIp",
            "Ipv6Ranges.{m}.CidrIpv6",
            "PrefixListIds.{m}.PrefixListId",
        ] {
            for m in 1.. {
                match field(&list.replace("{m}", &m.to_string())) {
                    Some(peer) => out.push(rule(protocol, from, to, peer)),
                    None => break,
                }
            }
        }
    }
    if let (Some(protocol), Some(peer)) = (req.form("IpProtocol"), req.form("CidrIp")) {
        out.push(rule(
            protocol,
            req.form("FromPort").unwrap_or(""),
            req.form("ToPort").unwrap_or(""),
            peer,
        ));
    }
    out
}

/// The rules that a group has, in one direction.
fn rules_in(group: &Element, list: &str) -> BTreeSet<Rule> {
    let mut out = BTreeSet::new();
    let items = group
        .child(list)
        .map(|l| l.children.as_slice())
        .unwrap_or(&[]);
    for item in items {
        let get = |key: &str| item.text_of(key).unwrap_or("");
        for (peers, key) in [
            ("groups", "groupId"),
            ("ipRanges", "cidrIp"),
            ("ipv6Ranges", "cidrIpv6"),
            ("prefixListIds", "prefixListId"),
        ] {
            for peer in item
                .child(peers)
                .map(|p| p.children.as_slice())
                .unwrap_or(&[])
            {
                if let Some(peer) = peer.text_of(key) {
                    out.insert(rule(
                        get("ipProtocol"),
                        get("fromPort"),
                        get("toPort"),
                        peer,
                    ));
                }
            }
        }
    }
    out
}

async fn group(state: &State, who: &str, id: &str) -> Option<Element> {
    let (status, root) = state
        .ask("ec2", who, "DescribeSecurityGroups", &[("GroupId.1", id)])
        .await;
    root.find("securityGroupInfo")
        .and_then(|g| g.child("item"))
        .filter(|_| status == 200)
        .cloned()
}

pub(super) async fn check(state: &State, req: &Req) -> Result<(), Refusal> {
    if req.form("DryRun") == Some("true") && !reads_only(&req.action) {
        return Err(Refusal::new(
            412,
            "DryRunOperation",
            "Request would have succeeded, but DryRun flag is set.",
        ));
    }
    match req.action.as_str() {
        "AuthorizeSecurityGroupIngress"
        | "AuthorizeSecurityGroupEgress"
        | "RevokeSecurityGroupIngress"
        | "RevokeSecurityGroupEgress" => security_group_rules(state, req).await,
        "DeleteSecurityGroup" => referenced(state, req).await,
        "CreateSecurityGroup" => security_group(state, req).await,
        "CreateTags" => tags(state, req).await,
        "RunInstances" => instance_profile(state, req).await,
        "CreateSubnet" => subnet(state, req).await,
        "DeleteSubnet" => inhabited(state, req).await,
        _ => Ok(()),
    }
}

fn no_group(id: &str) -> Refusal {
    Refusal::new(
        400,
        "InvalidGroup.NotFound",
        format!("The security group '{id}' does not exist"),
    )
}

async fn security_group_rules(state: &State, req: &Req) -> Result<(), Refusal> {
    let Some(id) = req.form("GroupId") else {
        return Ok(());
    };
    let group_now = group(state, &req.who, id)
        .await
        .ok_or_else(|| no_group(id))?;
    let list = if req.action.ends_with("Ingress") {
        "ipPermissions"
    } else {
        "ipPermissionsEgress"
    };
    descriptions(req)?;
    let mut present = rules_in(&group_now, list);
    for rule in rules_of(req) {
        let (protocol, from, to, peer) = &rule;
        let words = format!(
            "peer: {peer}, {}, from port: {from}, to port: {to}, ALLOW",
            protocol.to_uppercase()
        );
        if req.action.starts_with("Revoke") {
            if !present.remove(&rule) {
                return Err(Refusal::new(
                    400,
                    "InvalidPermission.NotFound",
                    format!(
                        "The specified rule \"{words}\" does not exist in this security group."
                    ),
                ));
            }
            continue;
        }
        if peer.starts_with("sg-") && peer != id {
            let other = group(state, &req.who, peer)
                .await
                .ok_or_else(|| no_group(peer))?;
            if other.text_of("vpcId") != group_now.text_of("vpcId") {
                return Err(Refusal::new(
                    400,
                    "InvalidGroup.NotFound",
                    "You have specified two resources that belong to different networks.",
                ));
            }
        }
        check_peer(peer)?;
        if !present.insert(rule.clone()) {
            return Err(Refusal::new(
                400,
                "InvalidPermission.Duplicate",
                format!("the specified rule \"{words}\" already exists"),
            ));
        }
        // eks.md 2.3: 60 in each direction by default.
        let quota = state.lock_controls().quota(quotas::RULES_PER_GROUP);
        if quota.is_some_and(|q| present.len() as u64 > q) {
            return Err(Refusal::new(
                400,
                "RulesPerSecurityGroupLimitExceeded",
                "The maximum number of rules per security group has been reached.",
            ));
        }
    }
    Ok(())
}

fn invalid(message: impl Into<String>) -> Refusal {
    Refusal::new(400, "InvalidParameterValue", message)
}

/// What EC2 takes as the description of a group or a rule.
fn plain_description(text: &str) -> bool {
    text.chars().count() <= 255
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "._-:/()#,@[]+=&;{}!$* ".contains(c))
}

fn descriptions(req: &Req) -> Result<(), Refusal> {
    let wrong = req.form.iter().find(|(key, text)| {
        key.starts_with("IpPermissions.")
            && key.ends_with(".Description")
            && !plain_description(text)
    });
    match wrong {
        Some((_, text)) => Err(invalid(format!(
            "Invalid rule description '{text}'. Valid descriptions are strings less than 256 characters from the following set: a-zA-Z0-9. _-:/()#,@[]+=&;{{}}!$*"
        ))),
        None => Ok(()),
    }
}

/// A CIDR that a rule names is one.
fn check_peer(peer: &str) -> Result<(), Refusal> {
    if peer.contains('.') && cidr(peer).is_none() {
        return Err(invalid(format!("CIDR block {peer} is malformed")));
    }
    Ok(())
}

async fn security_group(state: &State, req: &Req) -> Result<(), Refusal> {
    let name = req.form("GroupName").unwrap_or("");
    if name.to_lowercase().starts_with("sg-") || name.is_empty() || !plain_description(name) {
        return Err(invalid(format!(
            "Value ({name}) for parameter GroupName is invalid. Group names have at most 255 characters and may not be in the format sg-*"
        )));
    }
    let description = req.form("GroupDescription").unwrap_or("");
    if description.is_empty() {
        return Err(Refusal::new(
            400,
            "MissingParameter",
            "The request must contain the parameter GroupDescription",
        ));
    }
    if !plain_description(description) {
        return Err(invalid(
            "Invalid security group description. Valid descriptions are strings less than 256 characters from the following set: a-zA-Z0-9. _-:/()#,@[]+=&;{}!$*",
        ));
    }
    if let Some(vpc) = req.form("VpcId")
        && !state.vpc_exists(&req.who, vpc).await
    {
        return Err(Refusal::new(
            400,
            "InvalidVpcID.NotFound",
            format!("The vpc ID '{vpc}' does not exist"),
        ));
    }
    let (_, root) = state
        .ask("ec2", &req.who, "DescribeSecurityGroups", &[])
        .await;
    let there = root
        .find("securityGroupInfo")
        .map_or(0, |g| g.children.len());
    let quota = state.lock_controls().quota(quotas::GROUPS_PER_REGION);
    if quota.is_some_and(|q| there as u64 >= q) {
        return Err(Refusal::new(
            400,
            "SecurityGroupLimitExceeded",
            "The maximum number of security groups has been reached.",
        ));
    }
    Ok(())
}

/// An instance profile that IAM has not told EC2 of yet.
async fn instance_profile(state: &State, req: &Req) -> Result<(), Refusal> {
    let arn = req.form("IamInstanceProfile.Arn");
    let by_arn = arn.and_then(|a| a.rsplit('/').next());
    let Some(name) = req.form("IamInstanceProfile.Name").or(by_arn) else {
        return Ok(());
    };
    let delay = state.lock_controls().iam_delay;
    if state.lock_iam_clock().profile_is_fresh(name, delay) {
        return Err(invalid(format!(
            "Value ({name}) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name"
        )));
    }
    Ok(())
}

/// A group that another group's rules name, or that an interface carries, cannot go.
async fn referenced(state: &State, req: &Req) -> Result<(), Refusal> {
    let Some(id) = req.form("GroupId") else {
        return Ok(());
    };
    if let Some(interface) = interfaces::carrying(state, &req.who, id).await {
        return Err(Refusal::new(
            400,
            "DependencyViolation",
            format!("resource {id} has a dependent object: network interface {interface}"),
        ));
    }
    let (_, root) = state
        .ask("ec2", &req.who, "DescribeSecurityGroups", &[])
        .await;
    let groups = root
        .find("securityGroupInfo")
        .map(|g| g.children.as_slice())
        .unwrap_or(&[]);
    let user = groups.iter().find(|g| {
        g.text_of("groupId") != Some(id)
            && ["ipPermissions", "ipPermissionsEgress"]
                .iter()
                .any(|list| rules_in(g, list).iter().any(|r| r.3 == id))
    });
    match user {
        Some(user) => Err(Refusal::new(
            400,
            "DependencyViolation",
            format!(
                "resource {id} has a dependent object: a rule of {}",
                user.text_of("groupId").unwrap_or("another group")
            ),
        )),
        None => Ok(()),
    }
}

/// A subnet with an interface in it cannot go.
async fn inhabited(state: &State, req: &Req) -> Result<(), Refusal> {
    let Some(id) = req.form("SubnetId") else {
        return Ok(());
    };
    match interfaces::inside(state, &req.who, id).await {
        Some(_) => Err(Refusal::new(
            400,
            "DependencyViolation",
            format!("The subnet '{id}' has dependencies and cannot be deleted."),
        )),
        None => Ok(()),
    }
}

async fn tags(state: &State, req: &Req) -> Result<(), Refusal> {
    let mut keys = BTreeSet::new();
    for n in 1.. {
        let Some(key) = req.form(&format!("Tag.{n}.Key")) else {
            break;
        };
        if key.to_lowercase().starts_with("aws:") {
            return Err(invalid(format!(
                "Tag keys starting with 'aws:' are reserved for internal use: '{key}'"
            )));
        }
        let value = req.form(&format!("Tag.{n}.Value")).unwrap_or("");
        if key.is_empty() || key.chars().count() > 128 {
            return Err(invalid(format!(
                "Tag key exceeds the maximum length of 128 characters: '{key}'"
            )));
        }
        if value.chars().count() > 256 {
            return Err(invalid(format!(
                "Tag value exceeds the maximum length of 256 characters: '{value}'"
            )));
        }
        keys.insert(key.to_owned());
    }
    for n in 1.. {
        let Some(id) = req.form(&format!("ResourceId.{n}")) else {
            break;
        };
        let question = match id.split('-').next() {
            Some("subnet") => Some(("DescribeSubnets", "SubnetId.1", "InvalidSubnetID.NotFound")),
            Some("vpc") => Some(("DescribeVpcs", "VpcId.1", "InvalidVpcID.NotFound")),
            Some("sg") => Some((
                "DescribeSecurityGroups",
                "GroupId.1",
                "InvalidGroup.NotFound",
            )),
            Some("vol") => Some(("DescribeVolumes", "VolumeId.1", "InvalidVolume.NotFound")),
            Some("i") => Some((
                "DescribeInstances",
                "InstanceId.1",
                "InvalidInstanceID.NotFound",
            )),
            _ => None,
        };
        if let Some((action, key, code)) = question
            && state.ask("ec2", &req.who, action, &[(key, id)]).await.0 != 200
        {
            return Err(Refusal::new(
                400,
                code,
                format!("The ID '{id}' does not exist"),
            ));
        }
        // eks.md 1.2, 7: 50 of one's own.
        let filter = [("Filter.1.Name", "resource-id"), ("Filter.1.Value.1", id)];
        let (_, root) = state.ask("ec2", &req.who, "DescribeTags", &filter).await;
        let mut all = keys.clone();
        let items = root.find("tagSet").map(|s| s.children.as_slice());
        for tag in items.unwrap_or(&[]) {
            let key = tag.text_of("key").unwrap_or("");
            if tag.text_of("resourceId") == Some(id) && !key.starts_with("aws:") {
                all.insert(key.to_owned());
            }
        }
        if all.len() > 50 {
            return Err(Refusal::new(
                400,
                "TagLimitExceeded",
                format!("The maximum number of Tags for {id} has been reached: 50"),
            ));
        }
    }
    Ok(())
}

async fn subnet(state: &State, req: &Req) -> Result<(), Refusal> {
    let (Some(vpc), Some(wanted)) = (req.form("VpcId"), req.form("CidrBlock").and_then(cidr))
    else {
        return Ok(());
    };
    let (_, root) = state
        .ask(
            "ec2",
            &req.who,
            "DescribeSubnets",
            &[("Filter.1.Name", "vpc-id"), ("Filter.1.Value.1", vpc)],
        )
        .await;
    let mut blocks = Vec::new();
    root.find_all("cidrBlock", &mut blocks);
    let overlaps = blocks
        .iter()
        .filter_map(|b| cidr(&b.text))
        .any(|(first, last)| first <= wanted.1 && wanted.0 <= last);
    if overlaps {
        return Err(Refusal::new(
            400,
            "InvalidSubnet.Conflict",
            format!(
                "The CIDR '{}' conflicts with another subnet",
                req.form("CidrBlock").unwrap_or("")
            ),
        ));
    }
    Ok(())
}

/// First and last address of a block.
fn cidr(text: &str) -> Option<(u32, u32)> {
    let (address, length) = text.split_once('/')?;
    let address = u32::from(address.parse::<std::net::Ipv4Addr>().ok()?);
    let length: u32 = length.parse().ok().filter(|l| *l <= 32)?;
    let host = u32::MAX.checked_shr(length).unwrap_or(0);
    Some((address & !host, address | host))
}
