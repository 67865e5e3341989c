//! Who may do what: denied actions and a policy to live under, judged before a call is looked at any further, and refused in the
//! words of the service that was called.

mod needs;
pub(crate) mod policy;
mod tags;

use std::collections::{BTreeMap, BTreeSet};

use super::http::{Refusal, Req, unique_id};
use super::{State, lock};
use policy::{Need, Policy, Verdict, like, verdict};

/// What is forbidden now, and what was needed so far.
#[derive(Debug, Default)]
pub(crate) struct Permits {
    /// IAM actions with wildcards, or `service:Operation` as the call log names it.
    pub denied: Vec<String>,
    pub allowed: Option<Vec<Policy>>,
    /// Action -> ARNs.
    pub used: BTreeMap<String, BTreeSet<String>>,
    /// Services whose service-linked role stands: made with the first cluster and the first node group (eks.md 1.3).
    pub service_roles: BTreeSet<&'static str>,
}

/// Refuses a call that its caller may not make.
pub(crate) async fn check(state: &State, req: &Req) -> Result<(), Refusal> {
    let mut needs = needs::of(state, req).await;
    let logged = format!("{}:{}", req.service, req.action);
    let (denied, allowed) = {
        let mut permits = lock(&state.permits);
        for need in &needs {
            permits
                .used
                .entry(need.action.clone())
                .or_default()
                .insert(need.resource.clone());
        }
        (permits.denied.clone(), permits.allowed.clone())
    };
    for need in &needs {
        let first = std::ptr::eq(need, &needs[0]);
        let met = denied
            .iter()
            .any(|d| like(d, &need.action, true) || first && like(d, &logged, true));
        if met {
            return Err(words(state, req, need, Verdict::Explicit).await);
        }
    }
    let Some(policies) = allowed else {
        return Ok(());
    };
    if policies.iter().any(Policy::asks_for_resource_tags) {
        for need in &mut needs {
            tags::add(state, req, need).await;
        }
    }
    for need in &needs {
        let verdict = verdict(&policies, need);
        if verdict != Verdict::Allowed {
            return Err(words(state, req, need, verdict).await);
        }
    }
    Ok(())
}

/// The service-linked role stands from now on.
pub(crate) fn service_role_made(state: &State, service: &'static str) {
    lock(&state.permits).service_roles.insert(service);
}

async fn words(state: &State, req: &Req, need: &Need, verdict: Verdict) -> Refusal {
    let (_, root) = state.ask("sts", &req.who, "GetCallerIdentity", &[]).await;
    let caller = root
        .find("Arn")
        .map_or_else(|| "anonymous".to_owned(), |a| a.text.clone());
    let resource = match need.resource.as_str() {
        "*" => String::from("*"),
        arn if req.service == "s3" => format!("\"{arn}\""),
        arn => arn.to_owned(),
    };
    let why = match verdict {
        Verdict::Explicit => "with an explicit deny in an identity-based policy".to_owned(),
        _ => format!(
            "because no identity-based policy allows the {} action",
            need.action
        ),
    };
    let sentence = format!(
        "User: {caller} is not authorized to perform: {} on resource: {resource} {why}",
        need.action
    );
    let encoded = || {
        let id = unique_id().replace('-', "");
        format!("Encoded authorization failure message: {id}{id}")
    };
    match (req.service.as_str(), need.action.as_str()) {
        // EKS asks for these itself, in the name of the caller.
        ("eks", "iam:CreateServiceLinkedRole") => Refusal::new(
            400,
            "InvalidRequestException",
            format!(
                "Failed to create service linked role: {} due to missing permissions for 'iam:CreateServiceLinkedRole'",
                service_role(&need.resource)
            ),
        ),
        ("eks", "iam:GetRole") => Refusal::new(
            400,
            "InvalidRequestException",
            format!(
                "Failed to validate if SLR: {} already exists due to missing permissions for 'iam:GetRole'",
                service_role(&need.resource)
            ),
        ),
        ("eks", "ec2:RunInstances") => Refusal::new(
            400,
            "InvalidRequestException",
            format!(
                "You are not authorized to launch instances with this launch template. {}",
                encoded()
            ),
        ),
        ("eks", _) => Refusal::new(403, "AccessDeniedException", sentence),
        ("ec2", _) => Refusal::new(
            403,
            "UnauthorizedOperation",
            format!(
                "You are not authorized to perform this operation. {sentence}. {}",
                encoded()
            ),
        ),
        (service, _) if super::http::speaks_json(service) => {
            Refusal::new(400, "AccessDeniedException", sentence)
        }
        ("elasticfilesystem" | "lambda", _) => Refusal::new(403, "AccessDeniedException", sentence),
        _ => Refusal::new(403, "AccessDenied", sentence),
    }
}

fn service_role(arn: &str) -> &str {
    arn.rsplit('/').next().unwrap_or(arn)
}
