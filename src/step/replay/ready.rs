//! Rules 3, 63, 64: a webhook or an aggregated API is created only when who answers for it runs. One with failurePolicy Fail and
//! nobody behind it stops every write on green; an APIService without a backend breaks discovery and the deletion of namespaces.

use crate::object::{ObjectId, label};
use crate::step::util::{at, kind_of, refused};
use crate::step::{Cx, StepResult};
use crate::world::{Class, Error};
use serde_json::Value;
use std::collections::BTreeSet;

/// Services that an object sends requests to as soon as it exists, as namespace and name.
pub fn backends(object: &Value) -> BTreeSet<(String, String)> {
    let service = |v: &Value| {
        Some((
            v["namespace"].as_str()?.to_string(),
            v["name"].as_str()?.to_string(),
        ))
    };
    match object["kind"].as_str() {
        Some("ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration") => {
            at(object, "/webhooks")
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|hook| service(at(hook, "/clientConfig/service")))
                .collect()
        }
        Some("APIService") => service(at(object, "/spec/service")).into_iter().collect(),
        _ => BTreeSet::new(),
    }
}

/// An error that passes (not ready) as long as nobody answers for one of the backends.
pub async fn alive(cx: &Cx, name: &str, object: &Value) -> StepResult<()> {
    for (namespace, service) in backends(object) {
        let id = ObjectId::new("v1", "Service", Some(&namespace), &service);
        let Some(there) = cx.world.green.get(&id).await? else {
            return Err(refused(
                name,
                format!("the service that answers for it, {id}, is not on green"),
                "copy that service too, or list this object under workloads.skip (replay.md 63, 64)",
            ));
        };
        if !answers(cx, &namespace, &service, &there).await? {
            return Err(Error::new(
                Class::NotReady,
                name,
                format!("nothing is ready behind {id}, which answers for it"),
            )
            .remedy(format!(
                "look why no pod of {id} is ready on green; with nobody there it would stop writes or discovery (replay.md 63, 64)"
            ))
            .into());
        }
    }
    Ok(())
}

/// Whether an endpoint of a Service is ready: by its slices, or by its pods as long as no controller made slices.
async fn answers(cx: &Cx, namespace: &str, service: &str, there: &Value) -> StepResult<bool> {
    let green = cx.world.green.as_ref();
    let kind = kind_of(green, "discovery.k8s.io/v1", "EndpointSlice").await?;
    let slices: Vec<Value> = green
        .list_page(&kind, Some(namespace), None)
        .await?
        .items
        .into_iter()
        .filter(|s| label(s, "kubernetes.io/service-name") == Some(service))
        .collect();
    if !slices.is_empty() {
        return Ok(slices.iter().any(|s| {
            at(s, "/endpoints")
                .as_array()
                .into_iter()
                .flatten()
                .any(|e| *at(e, "/conditions/ready") != Value::Bool(false))
        }));
    }
    let Some(selector) = at(there, "/spec/selector").as_object() else {
        return Ok(false);
    };
    let pods = green
        .list_page(&kind_of(green, "v1", "Pod").await?, Some(namespace), None)
        .await?;
    Ok(!selector.is_empty()
        && pods.items.iter().any(|pod| {
            selector
                .iter()
                .all(|(k, v)| v.as_str().is_some_and(|v| label(pod, k) == Some(v)))
                && at(pod, "/status/conditions")
                    .as_array()
                    .into_iter()
                    .flatten()
                    .any(|c| c["type"] == "Ready" && c["status"] == "True")
        }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rule_63_the_services_behind_a_webhook_are_all_asked_for_and_urls_are_not() {
        let hook = json!({"kind": "MutatingWebhookConfiguration", "webhooks": [
            {"clientConfig": {"service": {"namespace": "a", "name": "hook", "path": "/x"}}},
            {"clientConfig": {"service": {"namespace": "a", "name": "hook", "path": "/y"}}},
            {"clientConfig": {"url": "https://elsewhere.test"}}]});
        assert_eq!(
            backends(&hook).into_iter().collect::<Vec<_>>(),
            [("a".to_string(), "hook".to_string())]
        );
    }

    #[test]
    fn rule_64_an_aggregated_api_has_a_service_and_a_local_one_has_none() {
        let api = |service: Value| json!({"kind": "APIService", "spec": {"service": service}});
        assert_eq!(
            backends(&api(json!({"namespace": "m", "name": "metrics"}))).len(),
            1
        );
        assert!(backends(&api(Value::Null)).is_empty());
    }
}
