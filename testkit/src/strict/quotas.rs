//! Quotas by their codes in Service Quotas, and the API that tells them (the emulator has none: eks.md 7).

use serde_json::{Value, json};

use super::State;
use super::http::{Refusal, Reply, Req, json_reply};

pub const CLUSTERS: &str = "L-1194D53C";
pub const NODE_GROUPS: &str = "L-6D54EA21";
pub const NODES_PER_GROUP: &str = "L-BD136A63";
pub const CONTROL_PLANE_GROUPS: &str = "L-11427A54";
pub const PUBLIC_CIDRS: &str = "L-93A74D60";
pub const ROLES: &str = "L-FE177D64";
pub const OIDC_PROVIDERS: &str = "L-858F3967";
pub const POLICIES_PER_ROLE: &str = "L-0DA4ABF3";
pub const TRUST_POLICY: &str = "L-C07B4B0D";
pub const POLICIES: &str = "L-E95E4862";
pub const INSTANCE_PROFILES: &str = "L-6E65F664";
pub const RULES_PER_GROUP: &str = "L-0EA8095F";
pub const GROUPS_PER_REGION: &str = "L-E79EC296";
pub const GROUPS_PER_INTERFACE: &str = "L-2AFB9258";
pub const VCPUS_ON_DEMAND: &str = "L-1216C47A";
pub const VCPUS_SPOT: &str = "L-34B43A08";

/// service, code, name, default; no default: the layer does not limit it by itself.
const TABLE: &[(&str, &str, &str, Option<u64>)] = &[
    // eks.md 1.6
    ("eks", CLUSTERS, "Clusters", Some(100)),
    (
        "eks",
        NODE_GROUPS,
        "Managed node groups per cluster",
        Some(30),
    ),
    (
        "eks",
        NODES_PER_GROUP,
        "Nodes per managed node group",
        Some(450),
    ),
    (
        "eks",
        CONTROL_PLANE_GROUPS,
        "Control plane security groups per cluster",
        Some(4),
    ),
    (
        "eks",
        PUBLIC_CIDRS,
        "Public endpoint access CIDR ranges per cluster",
        Some(40),
    ),
    // eks.md 3
    ("iam", ROLES, "Roles per account", Some(1_000)),
    (
        "iam",
        OIDC_PROVIDERS,
        "OpenId connect providers per account",
        Some(100),
    ),
    (
        "iam",
        POLICIES_PER_ROLE,
        "Managed policies per role",
        Some(10),
    ),
    ("iam", TRUST_POLICY, "Role trust policy length", Some(2_048)),
    (
        "iam",
        POLICIES,
        "Customer managed policies per account",
        Some(1_500),
    ),
    (
        "iam",
        INSTANCE_PROFILES,
        "Instance profiles per account",
        Some(1_000),
    ),
    // eks.md 2.3
    (
        "vpc",
        RULES_PER_GROUP,
        "Inbound or outbound rules per security group",
        Some(60),
    ),
    (
        "vpc",
        GROUPS_PER_INTERFACE,
        "Security groups per network interface",
        Some(5),
    ),
    (
        "vpc",
        GROUPS_PER_REGION,
        "VPC security groups per Region",
        Some(2_500),
    ),
    (
        "ec2",
        VCPUS_ON_DEMAND,
        "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances",
        None,
    ),
    (
        "ec2",
        VCPUS_SPOT,
        "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests",
        None,
    ),
];

pub(crate) fn default_of(code: &str) -> Option<u64> {
    TABLE.iter().find(|q| q.1 == code).and_then(|q| q.3)
}

/// Service Quotas, as far as the layer knows quotas.
pub(crate) fn handle(state: &State, req: &Req) -> Reply {
    match answer(state, req) {
        Ok(body) => json_reply(200, &body),
        Err(refusal) => refusal.reply("servicequotas"),
    }
}

fn answer(state: &State, req: &Req) -> Result<Value, Refusal> {
    let body: Value = serde_json::from_slice(&req.body).unwrap_or_default();
    let service = body["ServiceCode"].as_str().unwrap_or("");
    let code = body["QuotaCode"].as_str().unwrap_or("");
    let default = req.action.contains("Default");
    let shown = |row: &(&str, &str, &str, Option<u64>)| {
        let value = if default {
            row.3
        } else {
            state.lock_controls().quota(row.1)
        };
        value.map(|value| {
            json!({
                "ServiceCode": row.0,
                "QuotaCode": row.1,
                "QuotaName": row.2,
                "QuotaArn": format!(
                    "arn:aws:servicequotas:{}:{}:{}/{}",
                    state.config.region, state.config.account, row.0, row.1
                ),
                "Value": value as f64,
                "Adjustable": row.1 != CONTROL_PLANE_GROUPS && row.1 != PUBLIC_CIDRS,
                "Unit": "None",
            })
        })
    };
    let missing = || {
        Refusal::new(
            400,
            "NoSuchResourceException",
            format!(
                "The request failed because the specified service or quota does not exist: {service} {code}"
            ),
        )
    };
    match req.action.as_str() {
        "GetServiceQuota" | "GetAWSDefaultServiceQuota" => TABLE
            .iter()
            .find(|q| q.0 == service && q.1 == code)
            .and_then(shown)
            .map(|quota| json!({"Quota": quota}))
            .ok_or_else(missing),
        "ListServiceQuotas" | "ListAWSDefaultServiceQuotas" => {
            let rows: Vec<Value> = TABLE
                .iter()
                .filter(|q| q.0 == service)
                .filter_map(shown)
                .collect();
            if rows.is_empty() {
                return Err(missing());
            }
            Ok(json!({"Quotas": rows}))
        }
        other => Err(Refusal::new(
            400,
            "UnknownOperationException",
            format!("the strict layer knows no Service Quotas call {other}"),
        )),
    }
}
