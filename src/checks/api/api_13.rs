//! API-13: webhooks and aggregated APIs. What one says itself is told by the rewrite (src/rewrite/convert/webhook.rs); here its backend is looked for.

use crate::checks::look::{items, text};
use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) const CHECK: Check = Check {
    id: "API-13",
    severity: Severity::Blocker,
    question: "Could an admission webhook or an aggregated API refuse every write on green?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Apply it last, mend it, or drop it.",
    source: "checks.md API-13",
    run,
};

/// replay.md 63 and 64: without its Service a webhook that fails closed blocks every write, and an aggregated API breaks discovery.
fn run(i: &Input, r: &mut Report) {
    let mut there: BTreeSet<String> = i
        .of_kind("Service")
        .filter(|o| o.moves())
        .map(|o| o.key())
        .collect();
    let of_green = i.snapshot.green.iter().flat_map(|g| g.of_kind("Service"));
    for s in of_green.chain(i.generated.iter().filter(|o| o["kind"] == "Service")) {
        there.insert(format!(
            "{}/{}",
            text(s, "/metadata/namespace").unwrap_or(""),
            text(s, "/metadata/name").unwrap_or("")
        ));
    }
    let missing = |service: Option<&Value>| -> Option<String> {
        let service = service?;
        let key = format!(
            "{}/{}",
            service["namespace"].as_str().unwrap_or(""),
            service["name"].as_str().unwrap_or("")
        );
        (!there.contains(&key)).then_some(key)
    };
    for o in i.moving(&[
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
    ]) {
        let Some(target) = o.on_green() else { continue };
        for hook in items(target, "/webhooks") {
            let Some(service) = missing(hook.pointer("/clientConfig/service")) else {
                continue;
            };
            let closed = hook["failurePolicy"] != "Ignore";
            let name = hook["name"].as_str().unwrap_or("?");
            let message = format!("{name} calls Service {service}, which does not come to green");
            if closed {
                r.blocker(
                    &o.name,
                    format!("{message}: every write that it asks about would be refused"),
                    "List it under workloads.skip, or let its Service come along.",
                );
            } else {
                r.warning(&o.name, message, "List it under workloads.skip.");
            }
        }
    }
    for o in i.moving(&["APIService"]) {
        let Some(target) = o.on_green() else { continue };
        if let Some(service) = missing(target.pointer("/spec/service")) {
            r.blocker(
                &o.name,
                format!("is served by Service {service}, which does not come to green: discovery and the deletion of namespaces would fail"),
                "List it under workloads.skip; green's add-on brings its own.",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::*;
    use crate::plan::model::Severity::{Blocker, Warning};
    use serde_json::{Value, json};

    fn hook(policy: &str) -> Value {
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "v"},
            "webhooks": [{"name": "v.shop.test", "sideEffects": "None", "failurePolicy": policy, "clientConfig": {"service": {"namespace": "n", "name": "hook"}}}]})
    }

    #[test]
    fn rule_63_a_webhook_that_fails_closed_without_its_service_blocks() {
        let object = "validatingwebhookconfiguration/v";
        let closed = snapshot(vec![hook("Fail")]);
        fires(
            &spec(),
            &closed,
            "API-13",
            Blocker,
            object,
            "Service n/hook",
        );
        fires(
            &spec(),
            &snapshot(vec![hook("Ignore")]),
            "API-13",
            Warning,
            object,
            "Service n/hook",
        );
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook", "namespace": "n"}, "spec": {}});
        let p = crate::plan::plan(&spec(), &snapshot(vec![hook("Fail"), service]));
        assert!(
            !said(&p, "API-13")
                .iter()
                .any(|m| m.contains("does not come"))
        );
    }

    #[test]
    fn rule_64_an_aggregated_api_without_its_service_blocks_and_what_the_server_keeps_is_not_copied()
     {
        let api = |labels: Value| {
            json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.metrics.shop.test", "labels": labels},
                "spec": {"group": "metrics.shop.test", "version": "v1", "service": {"namespace": "n", "name": "adapter"}}})
        };
        let object = "apiservice/v1.metrics.shop.test";
        fires(
            &spec(),
            &snapshot(vec![api(json!({}))]),
            "API-13",
            Blocker,
            object,
            "Service n/adapter",
        );
        let own = json!({"kube-aggregator.kubernetes.io/automanaged": "true"});
        quiet(&spec(), &snapshot(vec![api(own)]), "API-13");
    }
}
