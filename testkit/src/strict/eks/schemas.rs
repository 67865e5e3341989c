//! Settings of add-ons: the schema that DescribeAddonConfiguration tells, and the check against it (eks.md 1.5).
//! vpc-cni's is close to the real one, because what goes in decides whether nodes get addresses; the others take any object [?].

use serde_json::{Value, json};

use super::{Answer, bad, catalogue};
use crate::strict::http::{Refusal, Req};

/// Settings of the plug-in itself; all of them are text, numbers and flags too.
const CNI_ENV: &[&str] = &[
    "ADDITIONAL_ENI_TAGS",
    "ANNOTATE_POD_IP",
    "AWS_EC2_ENDPOINT",
    "AWS_EXTERNAL_SERVICE_CIDRS",
    "AWS_MANAGE_ENIS_NON_SCHEDULABLE",
    "AWS_VPC_CNI_NODE_PORT_SUPPORT",
    "AWS_VPC_ENI_MTU",
    "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG",
    "AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS",
    "AWS_VPC_K8S_CNI_EXTERNALSNAT",
    "AWS_VPC_K8S_CNI_LOGLEVEL",
    "AWS_VPC_K8S_CNI_LOG_FILE",
    "AWS_VPC_K8S_CNI_RANDOMIZESNAT",
    "AWS_VPC_K8S_CNI_VETHPREFIX",
    "AWS_VPC_K8S_PLUGIN_LOG_FILE",
    "AWS_VPC_K8S_PLUGIN_LOG_LEVEL",
    "CLUSTER_ENDPOINT",
    "DISABLE_INTROSPECTION",
    "DISABLE_LEAKED_ENI_CLEANUP",
    "DISABLE_METRICS",
    "DISABLE_NETWORK_RESOURCE_PROVISIONING",
    "DISABLE_POD_V6",
    "DISABLE_TCP_EARLY_DEMUX",
    "ENABLE_BANDWIDTH_PLUGIN",
    "ENABLE_POD_ENI",
    "ENABLE_PREFIX_DELEGATION",
    "ENABLE_SUBNET_DISCOVERY",
    "ENABLE_V4_EGRESS",
    "ENABLE_V6_EGRESS",
    "ENI_CONFIG_ANNOTATION_DEF",
    "ENI_CONFIG_LABEL_DEF",
    "INTROSPECTION_BIND_ADDRESS",
    "IP_COOLDOWN_PERIOD",
    "MAX_ENI",
    "MINIMUM_IP_TARGET",
    "NETWORK_POLICY_ENFORCING_MODE",
    "POD_SECURITY_GROUP_ENFORCING_MODE",
    "WARM_ENI_TARGET",
    "WARM_IP_TARGET",
    "WARM_PREFIX_TARGET",
];

fn schema(addon: &str) -> Value {
    let text = json!({"type": "string"});
    let object = json!({"type": "object"});
    if addon != "vpc-cni" {
        return json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"});
    }
    let env: serde_json::Map<String, Value> = CNI_ENV
        .iter()
        .map(|name| ((*name).to_owned(), text.clone()))
        .collect();
    json!({
        "$schema": "http://json-schema.org/draft-06/schema#",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "affinity": object,
            "enableNetworkPolicy": text,
            "enableWindowsIpam": text,
            "enableWindowsPrefixDelegation": text,
            "eniConfig": object,
            "env": {"type": "object", "additionalProperties": false, "properties": env},
            "init": object,
            "livenessProbeTimeoutSeconds": {"type": "integer"},
            "nodeAgent": object,
            "podAnnotations": object,
            "podLabels": object,
            "readinessProbeTimeoutSeconds": {"type": "integer"},
            "resources": object,
            "tolerations": {"type": "array"},
        },
    })
}

fn word(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(n) if n.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// What does not fit, in the words of EKS's validator.
fn misfits(value: &Value, schema: &Value, path: &str, out: &mut Vec<String>) {
    let wanted = schema["type"].as_str().unwrap_or("object");
    let found = word(value);
    if found != wanted && !(wanted == "number" && found == "integer") {
        out.push(format!("{path}: {found} found, {wanted} expected"));
        return;
    }
    for (key, inner) in value.as_object().into_iter().flatten() {
        let known = &schema["properties"][key.as_str()];
        if known.is_object() {
            misfits(inner, known, &format!("{path}.{key}"), out);
        } else if schema["additionalProperties"] == false {
            out.push(format!(
                "{path}.{key}: is not defined in the schema and the schema does not allow additional properties"
            ));
        }
    }
}

/// Refuses settings that the add-on does not have.
pub(super) fn check(addon: &str, values: &str) -> Result<(), Refusal> {
    const HEAD: &str = "ConfigurationValue provided in request is not supported:";
    let values: Value = serde_saphyr::from_str(values)
        .map_err(|_| bad(format!("{HEAD} it must be a JSON or YAML object")))?;
    let mut wrong = vec![];
    misfits(&values, &schema(addon), "$", &mut wrong);
    if wrong.is_empty() {
        return Ok(());
    }
    Err(bad(format!(
        "{HEAD} Json schema validation failed with error: [{}]",
        wrong.join(", ")
    )))
}

pub(super) fn describe(req: &Req) -> Answer {
    let name = req.query("addonName").unwrap_or("");
    let version = req.query("addonVersion").unwrap_or("");
    let offer = catalogue::offer(name).filter(|o| o.has_version(version));
    let Some(offer) = offer else {
        return Err(bad(format!(
            "Addon version specified is not supported: {name} {version}"
        )));
    };
    let roles: Vec<Value> = offer
        .needs_role
        .iter()
        .map(|account| {
            json!({
                "serviceAccount": account,
                "recommendedManagedPolicies": offer.policies,
            })
        })
        .collect();
    Ok(json!({
        "addonName": name,
        "addonVersion": version,
        "configurationSchema": schema(name).to_string(),
        "podIdentityConfiguration": roles,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plug_ins_settings_are_text_and_known_by_name() {
        check("vpc-cni", r#"{"env": {"WARM_IP_TARGET": "2"}}"#).expect("text");
        check("vpc-cni", "env:\n  ENABLE_PREFIX_DELEGATION: \"true\"\n").expect("YAML too");
        for (wrong, values) in [
            (
                "$.env.WARM_IP_TARGET: integer found, string expected",
                r#"{"env": {"WARM_IP_TARGET": 2}}"#,
            ),
            (
                "$.env.WARM_IPS: is not defined",
                r#"{"env": {"WARM_IPS": "2"}}"#,
            ),
            ("$.warm: is not defined", r#"{"warm": {}}"#),
            ("array found, object expected", "[]"),
        ] {
            let said = check("vpc-cni", values).expect_err(wrong).message;
            assert!(said.contains(wrong), "'{wrong}' is not in: {said}");
        }
    }
}
