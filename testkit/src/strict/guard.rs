//! Checks in front of the emulator's own services: what AWS refuses and the emulator accepts (measured on 1.5.33).
//! Unless a rule here refuses first, the emulator's answer counts.

use std::collections::BTreeSet;

use serde_json::Value;

use super::State;
use super::http::{Refusal, Reply, Req, percent_decode};
use super::log::reads_only;
use super::upstream::text_of;
use super::xml::Element;

pub(crate) async fn handle(state: &State, req: &Req) -> Reply {
    let verdict = match req.service.as_str() {
        "iam" => iam(state, req).await,
        "ec2" => ec2(state, req).await,
        "sts" => sts(state, req).await,
        _ => Ok(()),
    };
    if let Err(refusal) = verdict {
        return refusal.reply(&req.service);
    }
    if req.service == "ec2"
        && let Some(reply) =
            super::launch::handle(state, req).or_else(|| super::instance_types::handle(state, req))
    {
        return reply;
    }
    let reply = state.forward(req).await;
    let reply = if req.service == "iam" && reply.status().as_u16() == 200 {
        boundaries(state, req, reply).await
    } else {
        reply
    };
    if matches!(req.service.as_str(), "sts" | "iam") && reply.status().as_u16() == 200 {
        return learn(state, reply).await;
    }
    reply
}

/// Remembers the secrets that STS and IAM hand out: the token webhook checks signatures with them.
async fn learn(state: &State, reply: Reply) -> Reply {
    let (parts, body) = reply.into_parts();
    let (_, text) = text_of(Reply::new(body)).await;
    if text.contains("SecretAccessKey")
        && let Ok(root) = Element::parse(&text)
        && let (Some(id), Some(secret)) = (root.find("AccessKeyId"), root.find("SecretAccessKey"))
    {
        state.learn_key(&id.text, &secret.text);
    }
    Reply::from_parts(parts, http_body_util::Full::new(text.into()))
}

/// Keeps the boundaries of roles and adds them where the emulator leaves them out.
async fn boundaries(state: &State, req: &Req, reply: Reply) -> Reply {
    let role = req.form("RoleName").unwrap_or("").to_owned();
    match req.action.as_str() {
        "CreateRole" | "PutRolePermissionsBoundary" => {
            if let Some(arn) = req.form("PermissionsBoundary") {
                state.lock_boundaries().insert(role, arn.to_owned());
            }
            return reply;
        }
        "DeleteRole" | "DeleteRolePermissionsBoundary" => {
            state.lock_boundaries().remove(&role);
            return reply;
        }
        "GetAccountAuthorizationDetails" => {}
        _ => return reply,
    }
    let (parts, body) = reply.into_parts();
    let (_, mut text) = text_of(Reply::new(body)).await;
    for (role, arn) in state.lock_boundaries().iter() {
        let name = format!("<RoleName>{role}</RoleName>");
        let boundary = format!(
            "{name}<PermissionsBoundary><PermissionsBoundaryType>Policy</PermissionsBoundaryType><PermissionsBoundaryArn>{arn}</PermissionsBoundaryArn></PermissionsBoundary>"
        );
        text = text.replace(&name, &boundary);
    }
    Reply::from_parts(parts, http_body_util::Full::new(text.into()))
}

/// Non-white-space characters: how IAM counts policy sizes.
fn size(document: &str) -> usize {
    document.chars().filter(|c| !c.is_whitespace()).count()
}

fn over_quota(what: &str, limit: usize) -> Refusal {
    Refusal::new(
        409,
        "LimitExceeded",
        format!("Cannot exceed quota for {what}: {limit}"),
    )
}

fn malformed(message: impl Into<String>) -> Refusal {
    Refusal::new(400, "MalformedPolicyDocument", message)
}

/// Default quotas; trust policies may be raised to 4,096 on request (eks.md 3).
const TRUST_POLICY: usize = 2048;
const MANAGED_POLICY: usize = 6144;
const INLINE_POLICIES: usize = 10_240;
const ATTACHED_POLICIES: usize = 10;

async fn iam(state: &State, req: &Req) -> Result<(), Refusal> {
    let get = |name: &str| req.form(name).unwrap_or("");
    match req.action.as_str() {
        "CreateRole" => {
            name(get("RoleName"), "roleName", 64)?;
            trust_policy(state, req, get("AssumeRolePolicyDocument")).await
        }
        "UpdateAssumeRolePolicy" => trust_policy(state, req, get("PolicyDocument")).await,
        "CreateInstanceProfile" => name(get("InstanceProfileName"), "instanceProfileName", 128),
        "AttachRolePolicy" => attach(state, req, get("RoleName"), get("PolicyArn")).await,
        "CreatePolicy" | "CreatePolicyVersion" => {
            if req.action == "CreatePolicy" {
                name(get("PolicyName"), "policyName", 128)?;
            }
            if size(get("PolicyDocument")) > MANAGED_POLICY {
                return Err(over_quota("PolicySize", MANAGED_POLICY));
            }
            Ok(())
        }
        "PutRolePolicy" => {
            inline(
                state,
                req,
                get("RoleName"),
                get("PolicyName"),
                get("PolicyDocument"),
            )
            .await
        }
        "CreateOpenIDConnectProvider" if !get("Url").starts_with("https://") => Err(Refusal::new(
            400,
            "InvalidInput",
            "Invalid Open ID Connect Provider URL: it must begin with https://",
        )),
        _ => Ok(()),
    }
}

fn name(value: &str, field: &str, most: usize) -> Result<(), Refusal> {
    let plain = value
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "_+=,.@-".contains(c));
    if (1..=most).contains(&value.chars().count()) && plain {
        return Ok(());
    }
    Err(Refusal::new(
        400,
        "ValidationError",
        format!(
            "1 validation error detected: Value '{value}' at '{field}' failed to satisfy constraint: Member must have 1 to {most} characters and satisfy regular expression pattern: [\\w+=,.@-]+"
        ),
    ))
}

fn many(value: &Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items.clone(),
        Value::Null => vec![],
        other => vec![other.clone()],
    }
}

async fn trust_policy(state: &State, req: &Req, document: &str) -> Result<(), Refusal> {
    let policy: Value = serde_json::from_str(document)
        .map_err(|e| malformed(format!("This policy contains invalid Json: {e}")))?;
    let statements = many(&policy["Statement"]);
    if statements.is_empty() {
        return Err(malformed("Syntax errors in policy: there is no Statement."));
    }
    let mut sids = BTreeSet::new();
    for statement in &statements {
        if statement["Effect"] != "Allow" && statement["Effect"] != "Deny" {
            return Err(malformed(
                "Syntax errors in policy: Effect must be Allow or Deny.",
            ));
        }
        if many(&statement["Action"]).is_empty() && many(&statement["NotAction"]).is_empty() {
            return Err(malformed("Policy statement must contain actions."));
        }
        if statement["Principal"].is_null() && statement["NotPrincipal"].is_null() {
            return Err(malformed("Missing required field Principal"));
        }
        if !statement["Resource"].is_null() {
            return Err(malformed("Has prohibited field Resource"));
        }
        if let Some(sid) = statement["Sid"].as_str() {
            if !sid.chars().all(|c| c.is_ascii_alphanumeric()) {
                return Err(malformed(format!(
                    "Statement IDs (SID) must be alpha-numeric: '{sid}'"
                )));
            }
            if !sid.is_empty() && !sids.insert(sid.to_owned()) {
                return Err(malformed(format!(
                    "Statement IDs (SID) in a single policy must be unique: '{sid}'"
                )));
            }
        }
        for principal in many(&statement["Principal"]["AWS"]) {
            let arn = principal.as_str().unwrap_or("");
            if !principal_exists(state, &req.who, arn).await {
                return Err(malformed(format!(
                    "Invalid principal in policy: \"AWS\":\"{arn}\""
                )));
            }
        }
    }
    if size(document) > TRUST_POLICY {
        return Err(over_quota("ACLSizePerRole", TRUST_POLICY));
    }
    Ok(())
}

/// Roles and users of this account must exist; other accounts are not ours to know.
async fn principal_exists(state: &State, who: &str, arn: &str) -> bool {
    let own = format!("arn:aws:iam::{}:", state.config.account);
    let Some(resource) = arn.strip_prefix(&own) else {
        return true;
    };
    let last = resource.rsplit('/').next().unwrap_or(resource);
    let (action, key) = if resource.starts_with("role/") {
        ("GetRole", "RoleName")
    } else if resource.starts_with("user/") {
        ("GetUser", "UserName")
    } else {
        return true;
    };
    state.ask("iam", who, action, &[(key, last)]).await.0 == 200
}

async fn attach(state: &State, req: &Req, role: &str, arn: &str) -> Result<(), Refusal> {
    let unknown = || {
        Refusal::new(
            404,
            "NoSuchEntity",
            format!("Policy {arn} does not exist or is not attachable."),
        )
    };
    match arn.strip_prefix("arn:aws:iam::aws:policy/") {
        // The emulator makes up any AWS managed policy; those that AWS has begin like this.
        Some(path) => {
            let last = path.rsplit('/').next().unwrap_or(path);
            let real = [
                "Amazon",
                "AWS",
                "CloudWatch",
                "IAM",
                "EC2",
                "ElasticLoadBalancing",
                "ReadOnlyAccess",
                "AdministratorAccess",
                "PowerUserAccess",
                "ViewOnlyAccess",
                "SecurityAudit",
            ]
            .iter()
            .any(|p| last.starts_with(p));
            if !real {
                return Err(unknown());
            }
        }
        None => {
            let (status, _) = state
                .ask("iam", &req.who, "GetPolicy", &[("PolicyArn", arn)])
                .await;
            if status != 200 {
                return Err(unknown());
            }
        }
    }
    let (status, root) = state
        .ask(
            "iam",
            &req.who,
            "ListAttachedRolePolicies",
            &[("RoleName", role)],
        )
        .await;
    let mut attached = Vec::new();
    root.find_all("PolicyArn", &mut attached);
    if status == 200
        && attached.len() >= ATTACHED_POLICIES
        && !attached.iter().any(|a| a.text == arn)
    {
        return Err(over_quota("PoliciesPerRole", ATTACHED_POLICIES));
    }
    Ok(())
}

async fn inline(
    state: &State,
    req: &Req,
    role: &str,
    policy: &str,
    document: &str,
) -> Result<(), Refusal> {
    name(policy, "policyName", 128)?;
    let mut total = size(document);
    let (_, root) = state
        .ask("iam", &req.who, "ListRolePolicies", &[("RoleName", role)])
        .await;
    let mut names = Vec::new();
    root.find_all("member", &mut names);
    for other in names.iter().filter(|n| n.text != policy) {
        let (_, root) = state
            .ask(
                "iam",
                &req.who,
                "GetRolePolicy",
                &[("RoleName", role), ("PolicyName", &other.text)],
            )
            .await;
        total += root
            .find("PolicyDocument")
            .map_or(0, |d| size(&percent_decode(&d.text)));
    }
    if total > INLINE_POLICIES {
        return Err(Refusal::new(
            409,
            "LimitExceeded",
            format!("Maximum policy size of {INLINE_POLICIES} bytes exceeded for role {role}"),
        ));
    }
    Ok(())
}

/// The emulator assumes any role, also one that does not exist.
async fn sts(state: &State, req: &Req) -> Result<(), Refusal> {
    if !matches!(
        req.action.as_str(),
        "AssumeRole" | "AssumeRoleWithWebIdentity"
    ) {
        return Ok(());
    }
    let arn = req.form("RoleArn").unwrap_or("");
    let own = format!("arn:aws:iam::{}:role/", state.config.account);
    if arn.starts_with(&own) && !principal_exists(state, &req.who, arn).await {
        return Err(Refusal::new(
            403,
            "AccessDenied",
            format!(
                "User is not authorized to perform: sts:{} on resource: {arn}",
                req.action
            ),
        ));
    }
    Ok(())
}

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

/// Rules in each direction of a group, by default (eks.md 2.3).
const RULES_PER_GROUP: usize = 60;

async fn ec2(state: &State, req: &Req) -> Result<(), Refusal> {
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
        "CreateTags" => tags(state, req).await,
        "CreateSubnet" => subnet(state, req).await,
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
        if peer.starts_with("sg-") && peer != id && group(state, &req.who, peer).await.is_none() {
            return Err(no_group(peer));
        }
        if !present.insert(rule.clone()) {
            return Err(Refusal::new(
                400,
                "InvalidPermission.Duplicate",
                format!("the specified rule \"{words}\" already exists"),
            ));
        }
        if present.len() > RULES_PER_GROUP {
            return Err(Refusal::new(
                400,
                "RulesPerSecurityGroupLimitExceeded",
                format!(
                    "The maximum number of rules per security group has been reached: {RULES_PER_GROUP}"
                ),
            ));
        }
    }
    Ok(())
}

/// A group that another group's rules name cannot go.
async fn referenced(state: &State, req: &Req) -> Result<(), Refusal> {
    let Some(id) = req.form("GroupId") else {
        return Ok(());
    };
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

async fn tags(state: &State, req: &Req) -> Result<(), Refusal> {
    for n in 1.. {
        let Some(key) = req.form(&format!("Tag.{n}.Key")) else {
            break;
        };
        if key.to_lowercase().starts_with("aws:") {
            return Err(Refusal::new(
                400,
                "InvalidParameterValue",
                format!("Tag keys starting with 'aws:' are reserved for internal use: '{key}'"),
            ));
        }
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
