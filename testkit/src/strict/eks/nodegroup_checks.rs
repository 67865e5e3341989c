//! What EKS refuses of a node group before it makes one (eks.md 1.6).

use serde_json::{Value, json};

use super::{bad, bad_request, over_limit, text, texts};
use crate::strict::http::Refusal;
use crate::strict::launch::Template;
use crate::strict::{State, quotas};

const EFFECTS: &[&str] = &["NO_SCHEDULE", "NO_EXECUTE", "PREFER_NO_SCHEDULE"];
pub(super) const AMI_TYPES: &[&str] = &[
    "AL2_x86_64",
    "AL2_x86_64_GPU",
    "AL2_ARM_64",
    "CUSTOM",
    "AL2023_x86_64_STANDARD",
    "AL2023_ARM_64_STANDARD",
    "AL2023_x86_64_NEURON",
    "AL2023_x86_64_NVIDIA",
    "AL2023_ARM_64_NVIDIA",
    "BOTTLEROCKET_ARM_64",
    "BOTTLEROCKET_x86_64",
    "BOTTLEROCKET_ARM_64_FIPS",
    "BOTTLEROCKET_x86_64_FIPS",
    "BOTTLEROCKET_ARM_64_NVIDIA",
    "BOTTLEROCKET_x86_64_NVIDIA",
    "WINDOWS_CORE_2019_x86_64",
    "WINDOWS_FULL_2019_x86_64",
    "WINDOWS_CORE_2022_x86_64",
    "WINDOWS_FULL_2022_x86_64",
    "WINDOWS_CORE_2025_x86_64",
    "WINDOWS_FULL_2025_x86_64",
    "BOTTLEROCKET_ARM_64_NVIDIA_FIPS",
    "BOTTLEROCKET_x86_64_NVIDIA_FIPS",
];

pub(super) fn check_labels(labels: &Value) -> Result<(), Refusal> {
    for (key, value) in labels.as_object().into_iter().flatten() {
        if ["kubernetes.io/", "k8s.io/", "eks.amazonaws.com/"]
            .iter()
            .any(|reserved| key.contains(reserved))
        {
            return Err(bad(format!(
                "Label cannot contain reserved prefixes [kubernetes.io/, k8s.io/, eks.amazonaws.com/]: '{key}'"
            )));
        }
        let value = value.as_str().unwrap_or("\u{0}");
        let plain = |t: &str| {
            t.chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        };
        let name = key.rsplit('/').next().unwrap_or(key);
        if name.is_empty() || name.len() > 63 || !plain(name) || value.len() > 63 || !plain(value) {
            return Err(bad(format!("Invalid label '{key}={value}'")));
        }
    }
    Ok(())
}

pub(super) fn check_taints(taints: &[Value]) -> Result<(), Refusal> {
    if taints.len() > 50 {
        return Err(bad("A node group can have 50 taints at most"));
    }
    for taint in taints {
        let effect = text(taint, "effect").unwrap_or("");
        if !EFFECTS.contains(&effect) {
            return Err(bad(format!(
                "taint effect must be one of {EFFECTS:?}, not '{effect}'"
            )));
        }
        let (key, value) = (
            text(taint, "key").unwrap_or(""),
            text(taint, "value").unwrap_or(""),
        );
        if key.is_empty() || key.len() > 63 || value.len() > 63 {
            return Err(bad(format!(
                "Invalid taint '{key}={value}': keys have 1 to 63 characters, values at most 63"
            )));
        }
    }
    Ok(())
}

pub(super) fn check_scaling(state: &State, scaling: &Value) -> Result<Value, Refusal> {
    if scaling.is_null() {
        return Ok(json!({"minSize": 1, "maxSize": 2, "desiredSize": 2}));
    }
    let get = |key: &str| {
        scaling[key].as_u64().ok_or_else(|| {
            bad(format!(
                "scalingConfig needs minSize, maxSize and desiredSize; {key} is missing"
            ))
        })
    };
    let (min, max, desired) = (get("minSize")?, get("maxSize")?, get("desiredSize")?);
    if max < 1 || min > max {
        return Err(bad(format!(
            "Minimum capacity {min} can't be greater than maximum size {max}"
        )));
    }
    if desired < min || desired > max {
        return Err(bad(format!(
            "desired capacity {desired} must be between {min} and {max}"
        )));
    }
    let quota = state.lock_controls().quota(quotas::NODES_PER_GROUP);
    if let Some(quota) = quota.filter(|q| max > *q) {
        return Err(over_limit(format!(
            "A node group can have {quota} nodes at most, not {max}"
        )));
    }
    Ok(scaling.clone())
}

/// The group's launch template, when it names one: it exists, and EKS may use it (eks.md 1.6).
pub(super) fn template(state: &State, body: &Value) -> Result<Option<Template>, Refusal> {
    let wanted = &body["launchTemplate"];
    if !wanted.is_object() {
        return Ok(None);
    }
    let (id, name) = (text(wanted, "id"), text(wanted, "name"));
    if id.is_some() == name.is_some() {
        return Err(bad(
            "Specify either the id or the name of the launch template",
        ));
    }
    let Some(found) = state.lock_launch().find(id, name).cloned() else {
        return Err(bad_request(format!(
            "Launch template {} was not found",
            id.or(name).unwrap_or("")
        )));
    };
    if let Some(version) = text(wanted, "version")
        && !["1", "$Default", "$Latest"].contains(&version)
    {
        return Err(bad_request(format!(
            "Version {version} of launch template {} was not found",
            found.name
        )));
    }
    match found.unfit(body) {
        Some(why) => Err(bad(why)),
        None => Ok(Some(found)),
    }
}

/// 1 to 100 nodes or percent, one of the two (eks.md 1.6).
pub(super) fn check_update(config: &Value) -> Result<(), Refusal> {
    let given: Vec<&Value> = ["maxUnavailable", "maxUnavailablePercentage"]
        .iter()
        .map(|k| &config[*k])
        .filter(|v| !v.is_null())
        .collect();
    let sound = given.len() <= 1
        && given
            .iter()
            .all(|v| v.as_u64().is_some_and(|n| (1..=100).contains(&n)));
    if sound {
        return Ok(());
    }
    Err(bad(
        "updateConfig takes maxUnavailable or maxUnavailablePercentage, 1 to 100",
    ))
}

pub(super) fn check_template(body: &Value) -> Result<(), Refusal> {
    if body["launchTemplate"].is_object() {
        for key in ["diskSize", "remoteAccess"] {
            if !body[key].is_null() {
                return Err(bad(format!(
                    "{key} cannot be specified together with a launch template"
                )));
            }
        }
    }
    if texts(body, "instanceTypes").len() > 20 {
        return Err(bad("A node group can have 20 instance types at most"));
    }
    Ok(())
}

/// Automatic repair: what it may do is in the API's own words, not in eksctl's (eks.md 1.6).
pub(super) fn check_repair(config: &Value) -> Result<(), Refusal> {
    for rule in config["nodeRepairConfigOverrides"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let action = text(rule, "repairAction").unwrap_or("");
        if !["Replace", "Reboot", "NoAction"].contains(&action) {
            return Err(bad(format!(
                "repairAction must be Replace, Reboot or NoAction, not '{action}'"
            )));
        }
    }
    for pair in [
        [
            "maxUnhealthyNodeThresholdCount",
            "maxUnhealthyNodeThresholdPercentage",
        ],
        [
            "maxParallelNodesRepairedCount",
            "maxParallelNodesRepairedPercentage",
        ],
    ] {
        if pair.iter().all(|key| !config[*key].is_null()) {
            return Err(bad(format!("Specify either {} or {}", pair[0], pair[1])));
        }
    }
    Ok(())
}

/// Types that there are, of the architecture of the image (eks.md 1.6).
pub(super) fn check_types(body: &Value) -> Result<(), Refusal> {
    let ami = text(body, "amiType").unwrap_or("AL2023_x86_64_STANDARD");
    for kind in texts(body, "instanceTypes") {
        // Types that the layer's table lacks are believed.
        let Some(found) = crate::strict::instance_types::size_of(&kind) else {
            if !kind.contains('.') {
                return Err(bad(format!(
                    "The following supplied instance types do not exist: [{kind}]"
                )));
            }
            continue;
        };
        if ami != "CUSTOM" && found.arm != ami.contains("ARM_64") {
            return Err(bad(format!(
                "[{kind}] is not a valid instance type for requested amiType {ami}"
            )));
        }
    }
    Ok(())
}
