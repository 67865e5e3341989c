//! IAM: names, documents, sizes, quotas (eks.md 1.3, 3, 7). Conflicts of deletes are the emulator's own.

use super::documents::{identity, malformed, size, trust};
use crate::strict::State;
use crate::strict::http::{Refusal, Req, percent_decode};
use crate::strict::quotas;

/// eks.md 3; the other limits are quotas.
const MANAGED_POLICY: usize = 6_144;
const INLINE_POLICIES: usize = 10_240;
const POLICY_VERSIONS: usize = 5;

fn over_quota(what: &str, limit: impl std::fmt::Display) -> Refusal {
    Refusal::new(
        409,
        "LimitExceeded",
        format!("Cannot exceed quota for {what}: {limit}"),
    )
}

fn invalid(value: &str, field: &str, must: &str) -> Refusal {
    Refusal::new(
        400,
        "ValidationError",
        format!(
            "1 validation error detected: Value '{value}' at '{field}' failed to satisfy constraint: Member must {must}"
        ),
    )
}

pub(super) async fn check(state: &State, req: &Req) -> Result<(), Refusal> {
    let get = |name: &str| req.form(name).unwrap_or("");
    match req.action.as_str() {
        "CreateRole" => {
            name(get("RoleName"), "roleName", 64)?;
            path(req)?;
            tags(req)?;
            session_duration(req)?;
            boundary(state, req).await?;
            count(
                state,
                req,
                "ListRoles",
                "Roles",
                quotas::ROLES,
                "RolesPerAccount",
            )
            .await?;
            trust_policy(state, req, get("AssumeRolePolicyDocument")).await
        }
        "UpdateAssumeRolePolicy" => trust_policy(state, req, get("PolicyDocument")).await,
        "PutRolePermissionsBoundary" => boundary(state, req).await,
        "UpdateRole" => session_duration(req),
        "TagRole" | "TagPolicy" | "TagInstanceProfile" | "TagOpenIDConnectProvider" => tags(req),
        "CreateInstanceProfile" => {
            name(get("InstanceProfileName"), "instanceProfileName", 128)?;
            path(req)?;
            tags(req)?;
            let (code, what) = (quotas::INSTANCE_PROFILES, "InstanceProfilesPerAccount");
            count(
                state,
                req,
                "ListInstanceProfiles",
                "InstanceProfiles",
                code,
                what,
            )
            .await
        }
        "AttachRolePolicy" => attach(state, req, get("RoleName"), get("PolicyArn")).await,
        "CreatePolicy" => {
            name(get("PolicyName"), "policyName", 128)?;
            path(req)?;
            tags(req)?;
            managed(get("PolicyDocument"))?;
            let local = [("Scope", "Local")];
            let there = number_of(state, req, "ListPolicies", &local, "Policies").await;
            within(state, there, quotas::POLICIES, "PoliciesPerAccount")
        }
        "CreatePolicyVersion" => {
            managed(get("PolicyDocument"))?;
            let arn = [("PolicyArn", get("PolicyArn"))];
            let there = number_of(state, req, "ListPolicyVersions", &arn, "Versions").await;
            if there >= POLICY_VERSIONS {
                return Err(Refusal::new(
                    409,
                    "LimitExceeded",
                    "A managed policy can have up to 5 versions. Before you create a new version, you must delete an existing version.",
                ));
            }
            Ok(())
        }
        "PutRolePolicy" => {
            let (role, policy) = (get("RoleName"), get("PolicyName"));
            inline(state, req, role, policy, get("PolicyDocument")).await
        }
        "CreateOpenIDConnectProvider" => oidc_provider(state, req).await,
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
    Err(invalid(
        value,
        field,
        &format!(
            "have 1 to {most} characters and satisfy regular expression pattern: [\\w+=,.@-]+"
        ),
    ))
}

fn path(req: &Req) -> Result<(), Refusal> {
    let Some(path) = req.form("Path") else {
        return Ok(());
    };
    let sound = path == "/"
        || path.len() <= 512
            && path.len() > 2
            && path.starts_with('/')
            && path.ends_with('/')
            && path.chars().all(|c| ('\u{21}'..='\u{7e}').contains(&c));
    if sound {
        return Ok(());
    }
    Err(invalid(
        path,
        "path",
        "begin and end with / and have at most 512 characters without spaces",
    ))
}

/// Seconds: an hour to twelve.
fn session_duration(req: &Req) -> Result<(), Refusal> {
    match req.form("MaxSessionDuration") {
        Some(text)
            if !text
                .parse::<u32>()
                .is_ok_and(|n| (3_600..=43_200).contains(&n)) =>
        {
            Err(invalid(
                text,
                "maxSessionDuration",
                "have value between 3600 and 43200",
            ))
        }
        _ => Ok(()),
    }
}

fn tags(req: &Req) -> Result<(), Refusal> {
    for n in 1.. {
        let Some(key) = req.form(&format!("Tags.member.{n}.Key")) else {
            return Ok(());
        };
        let value = req.form(&format!("Tags.member.{n}.Value")).unwrap_or("");
        let plain = |t: &str| {
            t.chars()
                .all(|c| c.is_alphanumeric() || " _.:/=+-@".contains(c))
        };
        if n > 50 {
            return Err(over_quota("TagsPerResource", 50));
        }
        if key.is_empty() || key.chars().count() > 128 || !plain(key) {
            return Err(invalid(
                key,
                "tags.key",
                "have 1 to 128 letters, digits, spaces or _.:/=+-@",
            ));
        }
        if value.chars().count() > 256 || !plain(value) {
            return Err(invalid(
                value,
                "tags.value",
                "have at most 256 letters, digits, spaces or _.:/=+-@",
            ));
        }
        if key.to_lowercase().starts_with("aws:") {
            return Err(Refusal::new(
                400,
                "InvalidInput",
                "Caller is unauthorized to use system tags: aws: prefixed tag key names are not allowed for external use.",
            ));
        }
    }
    Ok(())
}

/// How many members a list of the account has.
async fn number_of(
    state: &State,
    req: &Req,
    action: &str,
    params: &[(&str, &str)],
    list: &str,
) -> usize {
    let (_, root) = state.ask("iam", &req.who, action, params).await;
    root.find(list).map_or(0, |l| l.children.len())
}

fn within(state: &State, there: usize, code: &str, what: &str) -> Result<(), Refusal> {
    match state.lock_controls().quota(code) {
        Some(quota) if there as u64 >= quota => Err(over_quota(what, quota)),
        _ => Ok(()),
    }
}

async fn count(
    state: &State,
    req: &Req,
    action: &str,
    list: &str,
    code: &str,
    what: &str,
) -> Result<(), Refusal> {
    let there = number_of(state, req, action, &[], list).await;
    within(state, there, code, what)
}

async fn trust_policy(state: &State, req: &Req, document: &str) -> Result<(), Refusal> {
    let delay = state.lock_controls().iam_delay;
    for arn in trust(document)? {
        let last = arn.rsplit('/').next().unwrap_or(&arn);
        let fresh = arn.contains(":role/") && state.lock_iam_clock().role_is_fresh(last, delay);
        if fresh || !principal_exists(state, &req.who, &arn).await {
            return Err(malformed(format!(
                "Invalid principal in policy: \"AWS\":\"{arn}\""
            )));
        }
    }
    match state.lock_controls().quota(quotas::TRUST_POLICY) {
        Some(quota) if size(document) as u64 > quota => Err(over_quota("ACLSizePerRole", quota)),
        _ => Ok(()),
    }
}

fn managed(document: &str) -> Result<(), Refusal> {
    identity(document)?;
    if size(document) > MANAGED_POLICY {
        return Err(over_quota("PolicySize", MANAGED_POLICY));
    }
    Ok(())
}

/// Roles and users of this account must exist; other accounts are not ours to know.
pub(super) async fn principal_exists(state: &State, who: &str, arn: &str) -> bool {
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

/// How AWS's managed policies begin; the emulator makes up any of them.
const AWS_POLICIES: &[&str] = &[
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
];

async fn policy_exists(state: &State, who: &str, arn: &str) -> bool {
    match arn.strip_prefix("arn:aws:iam::aws:policy/") {
        Some(path) => {
            let last = path.rsplit('/').next().unwrap_or(path);
            AWS_POLICIES.iter().any(|p| last.starts_with(p))
        }
        None => {
            let question = [("PolicyArn", arn)];
            state.ask("iam", who, "GetPolicy", &question).await.0 == 200
        }
    }
}

/// A permissions boundary is a policy that there is.
async fn boundary(state: &State, req: &Req) -> Result<(), Refusal> {
    match req.form("PermissionsBoundary") {
        Some(arn) if !policy_exists(state, &req.who, arn).await => Err(Refusal::new(
            404,
            "NoSuchEntity",
            format!("Scope ARN: {arn} does not exist or is not attachable."),
        )),
        _ => Ok(()),
    }
}

async fn attach(state: &State, req: &Req, role: &str, arn: &str) -> Result<(), Refusal> {
    let real = policy_exists(state, &req.who, arn).await;
    if !real {
        return Err(Refusal::new(
            404,
            "NoSuchEntity",
            format!("Policy {arn} does not exist or is not attachable."),
        ));
    }
    let question = [("RoleName", role)];
    let (status, root) = state
        .ask("iam", &req.who, "ListAttachedRolePolicies", &question)
        .await;
    let mut attached = Vec::new();
    root.find_all("PolicyArn", &mut attached);
    if status == 200 && !attached.iter().any(|a| a.text == arn) {
        within(
            state,
            attached.len(),
            quotas::POLICIES_PER_ROLE,
            "PoliciesPerRole",
        )?;
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
    identity(document)?;
    let mut total = size(document);
    let (_, root) = state
        .ask("iam", &req.who, "ListRolePolicies", &[("RoleName", role)])
        .await;
    let mut names = Vec::new();
    root.find_all("member", &mut names);
    for other in names.iter().filter(|n| n.text != policy) {
        let question = [("RoleName", role), ("PolicyName", &other.text)];
        let (_, root) = state.ask("iam", &req.who, "GetRolePolicy", &question).await;
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

async fn oidc_provider(state: &State, req: &Req) -> Result<(), Refusal> {
    let url = req.form("Url").unwrap_or("");
    let wrong = |why: String| Err(Refusal::new(400, "InvalidInput", why));
    if !url.starts_with("https://") || url.len() > 255 || url.contains('?') {
        return wrong(
            "Invalid Open ID Connect Provider URL: it must begin with https://, have at most 255 characters and no query"
                .into(),
        );
    }
    for n in 1.. {
        let Some(thumbprint) = req.form(&format!("ThumbprintList.member.{n}")) else {
            break;
        };
        // Optional since IAM fetches it itself (eks.md 3).
        if thumbprint.len() != 40 || !thumbprint.chars().all(|c| c.is_ascii_hexdigit()) {
            return wrong(format!(
                "Thumbprint must be 40 characters in length: '{thumbprint}'"
            ));
        }
    }
    tags(req)?;
    let (list, code) = ("OpenIDConnectProviderList", quotas::OIDC_PROVIDERS);
    let what = "OpenIdConnectProvidersPerAccount";
    count(state, req, "ListOpenIDConnectProviders", list, code, what).await
}
