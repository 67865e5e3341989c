//! Checks in front of the emulator's own services: what AWS refuses and the emulator accepts (measured on 1.5.33).
//! Unless a rule here refuses first, the emulator's answer counts.

mod documents;
mod ec2;
mod iam;
mod logs;
pub(crate) mod oidc;

use super::State;
use super::http::{Refusal, Reply, Req, xml_reply};
use super::upstream::text_of;
use super::xml::Element;
use super::{eks, instance_types, interfaces, launch, pages, quotas};

pub(crate) async fn handle(state: &State, req: &Req) -> Reply {
    if req.service == "ec2" {
        // What EKS has in EC2 comes and goes with time.
        eks::pass_time(state, &req.who).await;
    }
    let verdict = match req.service.as_str() {
        "iam" => iam::check(state, req).await,
        "ec2" => ec2::check(state, req).await,
        "sts" => sts(state, req).await,
        "logs" => logs::check(req),
        _ => Ok(()),
    };
    if let Err(refusal) = verdict {
        return refusal.reply(&req.service);
    }
    if req.service == "ec2"
        && let Some(reply) =
            launch::handle(state, req).or_else(|| instance_types::handle(state, req))
    {
        return pages::cut(state, req, reply).await;
    }
    if req.service == "ec2" && req.action == "DescribeNetworkInterfaces" {
        let reply = interfaces::describe(state, req).await;
        return pages::cut(state, req, reply).await;
    }
    if req.service == "iam"
        && let Some(reply) = oidc::handle(state, req).await
    {
        return reply;
    }
    let reply = state.forward(req).await;
    if reply.status().as_u16() != 200 {
        return reply;
    }
    let reply = match req.service.as_str() {
        "iam" => {
            state.lock_iam_clock().note(req);
            let reply = boundaries(state, req, reply).await;
            let reply = summary(state, req, reply).await;
            let reply = oidc::show(state, req, reply).await;
            learn(state, reply).await
        }
        "sts" => learn(state, reply).await,
        "ec2" if req.action == "DescribeSubnets" => {
            let (_, text) = text_of(reply).await;
            match Element::parse(&text) {
                Ok(root) => {
                    let mut out = String::new();
                    interfaces::count_addresses(state, &req.who, root)
                        .await
                        .write(&mut out);
                    xml_reply(200, out)
                }
                Err(why) => Refusal::new(500, "InternalError", why).reply("ec2"),
            }
        }
        _ => reply,
    };
    pages::cut(state, req, reply).await
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

/// GetAccountSummary tells the quotas in force; the emulator's are fixed (eks.md 3: `AssumeRolePolicySizeQuota` is the account's own).
async fn summary(state: &State, req: &Req, reply: Reply) -> Reply {
    if req.action != "GetAccountSummary" {
        return reply;
    }
    let (parts, body) = reply.into_parts();
    let (_, mut text) = text_of(Reply::new(body)).await;
    for (key, code) in [
        ("AssumeRolePolicySizeQuota", quotas::TRUST_POLICY),
        ("RolesQuota", quotas::ROLES),
        ("AttachedPoliciesPerRoleQuota", quotas::POLICIES_PER_ROLE),
        ("PoliciesQuota", quotas::POLICIES),
        ("InstanceProfilesQuota", quotas::INSTANCE_PROFILES),
    ] {
        let Some(value) = state.lock_controls().quota(code) else {
            continue;
        };
        let head = format!("<entry><key>{key}</key><value>");
        let entry = format!("{head}{value}</value></entry>");
        match text.find(&head) {
            Some(at) => {
                let end = text[at..]
                    .find("</entry>")
                    .map_or(text.len(), |n| at + n + 8);
                text.replace_range(at..end, &entry);
            }
            None => text = text.replacen("</SummaryMap>", &format!("{entry}</SummaryMap>"), 1),
        }
    }
    Reply::from_parts(parts, http_body_util::Full::new(text.into()))
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
    if arn.starts_with(&own) && !iam::principal_exists(state, &req.who, arn).await {
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
