//! DNS-12: blue's ExternalDNS must stay stopped (externaldns.md rule 6, trap 22).

use crate::checks::{Answered, Check, Input, Report};
use crate::object::{annotation, label};
use crate::plan::model::Severity;
use serde_json::Value;

pub(super) const CHECK: Check = Check {
    id: "DNS-12",
    severity: Severity::Blocker,
    question: "Would something start blue's ExternalDNS again after it was stopped?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Pause its manager.",
    source: "checks.md DNS-12",
    run,
};

fn run(i: &Input, r: &mut Report) {
    for (object, _) in i.instances {
        // One that an operator makes is a child, and not among the objects that are judged.
        let child = || {
            let mut all = i.snapshot.blue.objects.iter();
            all.rfind(|o| {
                crate::object::ObjectId::of(o).is_some_and(|id| id.to_string() == *object)
            })
        };
        let Some(o) = i.object(object).map(|o| o.object).or_else(child) else {
            continue;
        };
        if o["kind"] != "Deployment" && o["kind"] != "StatefulSet" {
            r.blocker(
                object,
                "is no Deployment or StatefulSet: it cannot be stopped by its replica count",
                "Run blue's ExternalDNS as a Deployment.",
            );
        }
        let owners = o.pointer("/metadata/ownerReferences");
        for owner in owners.and_then(Value::as_array).into_iter().flatten() {
            let text = |k: &str| owner[k].as_str().unwrap_or("?").to_string();
            r.blocker(
                object,
                format!("is kept by {} {}, whose operator would start it again", text("kind"), text("name")),
                "Take the operator's resource out, or pause the operator, and run blue's ExternalDNS as a plain Deployment.",
            );
        }
        if label(o, "app.kubernetes.io/managed-by") == Some("kops")
            || label(o, "k8s-addon").is_some()
        {
            r.blocker(object, "is kept by kops's add-on manager, which may start it again (externaldns.md trap 22)", "Set externalDns.provider to none in the kops spec and run your own, or pause the add-on.");
        }
        for (mark, kinds) in [
            ("argocd.argoproj.io/instance", &["Application"][..]),
            ("kustomize.toolkit.fluxcd.io/name", &["Kustomization"]),
            ("helm.toolkit.fluxcd.io/name", &["HelmRelease"]),
        ] {
            let Some(name) = label(o, mark) else { continue };
            // A reconciler on blue is suspended by `freeze.hold` before anything is stopped; the old value is in the journal.
            let held = kinds
                .iter()
                .flat_map(|k| i.of_kind(k))
                .any(|k| k.id.name == name);
            if held {
                r.info(
                    object,
                    format!("is kept by {} {name}, which is suspended first", kinds[0]),
                    "Nothing to do.",
                );
            } else {
                r.blocker(
                    object,
                    format!(
                        "is kept by {} {name}, which is not on blue: it would start it again",
                        kinds[0]
                    ),
                    "Suspend its reconciler first.",
                );
            }
        }
        if annotation(o, "argocd.argoproj.io/tracking-id").is_some()
            && label(o, "argocd.argoproj.io/instance").is_none()
            && i.of_kind("Application").next().is_none()
        {
            r.blocker(
                object,
                "is kept by a GitOps tool, which would start it again",
                "Suspend its reconciler first.",
            );
        }
        let replicas = o
            .pointer("/spec/replicas")
            .and_then(Value::as_u64)
            .unwrap_or(1);
        if replicas != 1 {
            r.warning(
                object,
                format!("runs with {replicas} replicas"),
                "One replica writes; check why.",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::Blocker;

    #[test]
    fn an_instance_that_kops_or_a_gitops_tool_keeps_would_come_back() {
        let mut s = shop();
        s.blue.objects[0]["metadata"]["annotations"] = serde_json::json!({"argocd.argoproj.io/tracking-id": "dns:apps/Deployment:platform/external-dns"});
        fires(&spec(), &s, "DNS-12", Blocker, "GitOps");
        s.blue.objects[0]["metadata"]["annotations"] = serde_json::json!({});
        s.blue.objects[0]["metadata"]["labels"] =
            serde_json::json!({"k8s-addon": "external-dns.addons.k8s.io"});
        fires(&spec(), &s, "DNS-12", Blocker, "add-on manager");
    }

    #[test]
    fn a_deployment_that_nothing_keeps_can_be_stopped() {
        silent(&spec(), &shop(), "DNS-12");
    }
}
