//! Everything that a cluster holds, to be compared with itself later.

use kube::Client;
use kube::api::{Api, DynamicObject, ListParams};
use kube::discovery::{Discovery, verbs};
use serde_json::Value;
use std::collections::BTreeMap;

/// Kinds that report all the time, or that the server keeps for itself.
const REPORTS: &[&str] = &[
    "Event",
    "Lease",
    "LeaseCandidate",
    "ComponentStatus",
    "APIService",
    "CSINode",
    "StorageVersion",
];

/// Every object by `Kind.group/namespace/name`, without what moves by itself: versions, managed fields, nodes' status.
pub async fn everything(client: &Client) -> BTreeMap<String, Value> {
    let discovery = Discovery::new(client.clone())
        .run()
        .await
        .expect("the server says what it serves");
    let mut found = BTreeMap::new();
    for group in discovery.groups() {
        for (resource, capabilities) in group.recommended_resources() {
            if REPORTS.contains(&resource.kind.as_str())
                || !capabilities.supports_operation(verbs::LIST)
                || !capabilities.supports_operation(verbs::CREATE)
            {
                continue;
            }
            let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
            let list = api
                .list(&ListParams::default())
                .await
                .unwrap_or_else(|e| panic!("{}: {e}", resource.plural));
            for object in list {
                let mut object = serde_json::to_value(object).expect("it is JSON");
                object["apiVersion"] = resource.api_version.clone().into();
                object["kind"] = resource.kind.clone().into();
                let text = |p: &str| object.pointer(p).and_then(Value::as_str).unwrap_or("");
                let name = format!(
                    "{}.{}/{}/{}",
                    resource.kind,
                    resource.group,
                    text("/metadata/namespace"),
                    text("/metadata/name")
                );
                for key in ["resourceVersion", "managedFields"] {
                    object["metadata"].as_object_mut().map(|m| m.remove(key));
                }
                if resource.kind == "Node" {
                    object.as_object_mut().map(|o| o.remove("status"));
                }
                found.insert(name, object);
            }
        }
    }
    found
}

/// What is different, one line each.
pub fn difference(
    before: &BTreeMap<String, Value>,
    after: &BTreeMap<String, Value>,
) -> Vec<String> {
    let mut lines = vec![];
    for (name, old) in before {
        match after.get(name) {
            None => lines.push(format!("gone: {name}")),
            Some(new) if new != old => lines.push(format!("changed: {name}\n  {old}\n  {new}")),
            Some(_) => {}
        }
    }
    let new = after.keys().filter(|name| !before.contains_key(*name));
    lines.extend(new.map(|name| format!("new: {name}")));
    lines
}
