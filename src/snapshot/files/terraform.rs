//! What a Terraform state holds: `terraform show -json`, or a state file of version 4. Only what identifies a resource is kept.

use crate::error::{Error, Kind, Result};
use crate::snapshot::model::TerraformResource;
use crate::yaml;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Attributes that identify a resource or say what it hangs on. A state holds passwords and keys too: what is not here is dropped.
const IDENTIFYING: &[&str] = &[
    "addon_name",
    "alarm_name",
    "allocation_id",
    "arn",
    "bucket",
    "cluster_name",
    "fargate_profile_name",
    "from_port",
    "group_id",
    "id",
    "instance_profile",
    "ip_protocol",
    "key",
    "name",
    "namespace",
    "node_group_name",
    "policy_arn",
    "principal_arn",
    "protocol",
    "referenced_security_group_id",
    "resource_id",
    "role",
    "role_name",
    "route_table_id",
    "security_group_id",
    "service_account",
    "set_identifier",
    "source_security_group_id",
    "subnet_id",
    "to_port",
    "type",
    "url",
    "vpc_id",
    "zone_id",
];

/// Providers whose `id` names something. The id of a `random_string`, for one, is the random string itself.
const PROVIDERS: &[&str] = &["aws_", "helm_", "kubernetes_", "kubectl_", "awscc_"];

/// Whether a document is a Terraform state (or pretends to be near one).
pub(super) fn is_state(doc: &Value) -> bool {
    let raw = doc["version"].is_u64() && doc.get("terraform_version").is_some();
    raw || doc["format_version"].is_string()
}

/// The resources of one document.
pub(super) fn resources(doc: &Value, at: &str) -> Result<Vec<TerraformResource>> {
    let refuse =
        |what: String, remedy: &str| Err(Error::new(Kind::BadInput, what).at(at).remedy(remedy));
    let mut out = vec![];
    if doc["format_version"].is_string() {
        if doc.get("planned_values").is_some() || doc.get("resource_changes").is_some() {
            return refuse(
                "this is a Terraform plan, not a state".into(),
                "give the output of `terraform show -json` without a plan file",
            );
        }
        module(&doc["values"]["root_module"], &mut out);
    } else {
        let version = doc["version"].as_u64().unwrap_or_default();
        if version != 4 {
            return refuse(
                format!(
                    "this Terraform state is of version {version}; crossfade reads version 4 (Terraform 0.12 and newer)"
                ),
                "give the output of `terraform show -json` instead",
            );
        }
        for r in doc["resources"].as_array().into_iter().flatten() {
            raw(r, &mut out);
        }
    }
    Ok(out)
}

/// Reads one file, `green.terraformState` of migration.yaml.
pub fn terraform_file(path: &Path) -> Result<Vec<TerraformResource>> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|e| {
        Error::new(Kind::BadInput, format!("the Terraform state cannot be read: {e}"))
            .at(&name)
            .remedy("correct green.terraformState in migration.yaml, or write the file: `terraform show -json > FILE`")
    })?;
    let mut out = vec![];
    let mut any = false;
    for item in yaml::manifests(&text, &name) {
        let (doc, line) = item?;
        let at = format!("{name}:{line}");
        if !is_state(&doc) {
            return Err(Error::new(Kind::BadInput, "this is no Terraform state")
                .at(at)
                .remedy("write it with `terraform show -json > FILE`, or give terraform.tfstate"));
        }
        any = true;
        out.extend(resources(&doc, &at)?);
    }
    if !any {
        return Err(Error::new(Kind::BadInput, "the Terraform state is empty")
            .at(name)
            .remedy("write it with `terraform show -json > FILE`"));
    }
    Ok(sorted(out))
}

/// Sorted by address, each once.
pub(super) fn sorted(mut all: Vec<TerraformResource>) -> Vec<TerraformResource> {
    all.sort_by(|a, b| (&a.address, &a.attributes).cmp(&(&b.address, &b.attributes)));
    all.dedup();
    all
}

fn text<'v>(v: &'v Value, key: &str) -> &'v str {
    v[key].as_str().unwrap_or_default()
}

/// A module of `terraform show -json`, with those in it.
fn module(module: &Value, out: &mut Vec<TerraformResource>) {
    for r in module["resources"].as_array().into_iter().flatten() {
        // Data sources are read by Terraform, not managed.
        if text(r, "mode") == "data" {
            continue;
        }
        let secret: BTreeSet<&str> = r["sensitive_values"]
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(_, v)| **v == true)
            .map(|(k, _)| k.as_str())
            .collect();
        out.push(TerraformResource {
            address: text(r, "address").into(),
            kind: text(r, "type").into(),
            attributes: attributes(text(r, "type"), &r["values"], &secret),
        });
    }
    for child in module["child_modules"].as_array().into_iter().flatten() {
        self::module(child, out);
    }
}

/// A resource of a state file, with its instances.
fn raw(r: &Value, out: &mut Vec<TerraformResource>) {
    if text(r, "mode") == "data" {
        return;
    }
    let (kind, name) = (text(r, "type"), text(r, "name"));
    let module = match text(r, "module") {
        "" => String::new(),
        m => format!("{m}."),
    };
    for i in r["instances"].as_array().into_iter().flatten() {
        let index = match &i["index_key"] {
            Value::String(key) => format!("[{}]", Value::from(key.as_str())),
            Value::Number(n) => format!("[{n}]"),
            _ => String::new(),
        };
        // Each is a path; the first part names the attribute.
        let secret: BTreeSet<&str> = i["sensitive_attributes"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|path| path.get(0)?.get("value")?.as_str())
            .collect();
        out.push(TerraformResource {
            address: format!("{module}{kind}.{name}{index}"),
            kind: kind.into(),
            attributes: attributes(kind, &i["attributes"], &secret),
        });
    }
}

fn attributes(kind: &str, values: &Value, secret: &BTreeSet<&str>) -> BTreeMap<String, String> {
    if !PROVIDERS.iter().any(|p| kind.starts_with(p)) {
        return BTreeMap::new();
    }
    IDENTIFYING
        .iter()
        .filter(|key| !secret.contains(*key))
        .filter_map(|key| {
            let value = match &values[*key] {
                Value::String(s) if !s.is_empty() && s.len() <= 2048 => s.clone(),
                Value::Number(n) => n.to_string(),
                _ => return None,
            };
            Some((key.to_string(), value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown() -> Value {
        json!({"format_version": "1.0", "terraform_version": "1.5.7", "values": {"outputs": {"password": {"value": "CANARY"}}, "root_module": {
            "resources": [
                {"address": "data.aws_caller_identity.me", "mode": "data", "type": "aws_caller_identity", "name": "me", "values": {"id": "1"}},
                {"address": "random_string.db", "mode": "managed", "type": "random_string", "name": "db", "values": {"id": "CANARY", "result": "CANARY"}},
                {"address": "aws_db_instance.db", "mode": "managed", "type": "aws_db_instance", "name": "db",
                 "values": {"id": "db-1", "password": "CANARY", "name": "CANARY"}, "sensitive_values": {"name": true, "tags": {}}},
            ],
            "child_modules": [{"address": "module.eks", "resources": [
                {"address": "module.eks.aws_eks_cluster.this[0]", "mode": "managed", "type": "aws_eks_cluster", "name": "this", "index": 0,
                 "values": {"id": "shop-green", "name": "shop-green", "arn": "arn:aws:eks:eu-west-1:000000000000:cluster/shop-green", "certificate_authority": [{"data": "CANARY"}]}}]}]}}})
    }

    fn raw_state() -> Value {
        json!({"version": 4, "terraform_version": "1.5.7", "serial": 3, "lineage": "x", "outputs": {"password": {"value": "CANARY", "type": "string"}}, "resources": [
            {"mode": "data", "type": "aws_caller_identity", "name": "me", "instances": [{"attributes": {"id": "1"}}]},
            {"mode": "managed", "type": "random_string", "name": "db", "instances": [{"attributes": {"id": "CANARY", "result": "CANARY"}}]},
            {"mode": "managed", "type": "aws_db_instance", "name": "db", "instances": [{"attributes": {"id": "db-1", "password": "CANARY", "name": "CANARY"},
              "sensitive_attributes": [[{"type": "get_attr", "value": "name"}]]}]},
            {"module": "module.eks", "mode": "managed", "type": "aws_eks_cluster", "name": "this", "instances": [{"index_key": 0, "attributes":
              {"id": "shop-green", "name": "shop-green", "arn": "arn:aws:eks:eu-west-1:000000000000:cluster/shop-green"}}]},
        ]})
    }

    #[test]
    fn both_forms_of_a_state_name_the_same_resources_and_no_secret() {
        let a = sorted(resources(&shown(), "a").expect("shown"));
        let b = sorted(resources(&raw_state(), "b").expect("raw"));
        assert_eq!(a, b);
        let addresses: Vec<&str> = a.iter().map(|r| r.address.as_str()).collect();
        assert_eq!(
            addresses,
            [
                "aws_db_instance.db",
                "module.eks.aws_eks_cluster.this[0]",
                "random_string.db"
            ]
        );
        assert_eq!(a[1].kind, "aws_eks_cluster");
        assert_eq!(
            a[1].attributes["arn"],
            "arn:aws:eks:eu-west-1:000000000000:cluster/shop-green"
        );
        assert_eq!(
            a[0].attributes,
            BTreeMap::from([("id".into(), "db-1".into())])
        );
        assert!(a[2].attributes.is_empty());
        assert!(!serde_json::to_string(&a).expect("json").contains("CANARY"));
    }

    #[test]
    fn instances_by_key_have_the_address_that_terraform_prints() {
        let state = json!({"version": 4, "terraform_version": "1.0.0", "resources": [
            {"module": "module.a[\"x\"]", "mode": "managed", "type": "aws_ec2_tag", "name": "t", "instances": [
                {"index_key": "sub/1", "attributes": {"key": "k", "resource_id": "subnet-1", "value": "v"}}]}]});
        let all = resources(&state, "s").expect("read");
        assert_eq!(all[0].address, "module.a[\"x\"].aws_ec2_tag.t[\"sub/1\"]");
        assert_eq!(
            all[0].attributes,
            BTreeMap::from([
                ("key".into(), "k".into()),
                ("resource_id".into(), "subnet-1".into())
            ])
        );
    }

    #[test]
    fn a_plan_an_old_state_and_something_else_are_refused_with_what_to_give() {
        let plan = json!({"format_version": "1.2", "planned_values": {}, "resource_changes": []});
        assert!(
            resources(&plan, "p")
                .expect_err("plan")
                .message
                .contains("plan")
        );
        let old = json!({"version": 3, "terraform_version": "0.11.14", "modules": []});
        let e = resources(&old, "o").expect_err("old");
        assert!(
            e.message.contains("version 3") && e.remedy.contains("show -json"),
            "{e:?}"
        );
        // Nothing managed is a state too.
        assert_eq!(
            resources(&json!({"format_version": "1.0"}), "e").expect("empty"),
            []
        );
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("s.json");
        for text in ["{\"a\": 1}", ""] {
            std::fs::write(&path, text).expect("written");
            assert_eq!(terraform_file(&path).expect_err(text).kind, Kind::BadInput);
        }
        std::fs::write(&path, raw_state().to_string()).expect("written");
        assert_eq!(terraform_file(&path).expect("read").len(), 3);
        assert!(
            terraform_file(&dir.path().join("none"))
                .expect_err("absent")
                .remedy
                .contains("terraformState")
        );
    }
}
