//! OBS-05: the drain is measured by requests per host on blue's ingress (S01, S23); without a counter it is only waited for.

use crate::checks::look::{annotations, count, items, text};
use crate::checks::{Answered, BlueObject, Check, Input, Need, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "OBS-05",
    severity: Severity::Blocker,
    question: "Is there a counter of requests per host and side?",
    needs: &[Need::Blue],
    answered: Answered::Person,
    remedy: "Let blue's ingress count requests per host, and scrape it; without that the drain can only be waited for.",
    source: "checks.md OBS-05",
    run,
};

/// Images of ingress controllers.
const CONTROLLERS: &[&str] = &[
    "ambassador",
    "contour",
    "controller",
    "emissary",
    "haproxy-ingress",
    "kong",
    "kubernetes-ingress",
    "kubernetes-ingress-controller",
    "nginx-ingress",
    "nginx-ingress-controller",
    "skipper",
    "traefik",
    "voyager",
];

/// Whether a workload is an ingress controller; `controller` is ingress-nginx's image, but not only its.
pub(super) fn is_controller(o: &BlueObject) -> bool {
    o.containers(false)
        .filter_map(|c| text(c, "/image"))
        .any(|image| {
            let path = image.split('@').next().unwrap_or(image);
            let path = path.rsplit_once(':').map_or(path, |(p, _)| p);
            let last = path.rsplit('/').next().unwrap_or(path);
            CONTROLLERS.contains(&last) && (last != "controller" || path.contains("ingress-nginx"))
        })
}

fn run(i: &Input, r: &mut Report) {
    if i.names.is_empty() {
        return;
    }
    let mut seen = 0;
    for o in ["Deployment", "DaemonSet", "StatefulSet"]
        .iter()
        .flat_map(|k| i.of_kind(k))
        .filter(|o| is_controller(o))
    {
        seen += 1;
        let off = ["--metrics-per-host=false", "--enable-metrics=false"];
        if let Some(a) = o.arguments().find(|a| off.contains(a)) {
            r.found(&o.name, format!("has {a}: requests of a host cannot be counted on blue, so nobody sees when it is drained"));
            continue;
        }
        let scraped = |v| annotations(v).any(|(k, v)| k == "prometheus.io/scrape" && v == "true");
        let ns = o.id.namespace.as_deref();
        let monitored = scraped(o.object)
            || o.template().is_some_and(scraped)
            || i.of_kind("Service")
                .any(|s| s.id.namespace.as_deref() == ns && scraped(s.object))
            || ["ServiceMonitor", "PodMonitor"]
                .iter()
                .flat_map(|k| i.of_kind(k))
                .any(|m| {
                    m.id.namespace.as_deref() == ns
                        || items(m.object, "/spec/namespaceSelector/matchNames")
                            .any(|n| n.as_str() == ns)
                        || m.object.pointer("/spec/namespaceSelector/any") == Some(&true.into())
                });
        if !monitored {
            r.warning(&o.name, "is scraped by nobody that the objects tell of: its request counter would not be seen", CHECK.remedy);
        }
    }
    if seen == 0 {
        r.ask("ingress", format!("where requests of {} are counted, per host and side: no ingress controller is known among blue's workloads", count(i.names.len(), "host")));
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::{Blocker, NotChecked, Warning};
    use crate::snapshot::model::Snapshot;
    use serde_json::json;

    fn nginx(args: &[&str], scraped: bool) -> Snapshot {
        let mut s = shop();
        let mut c = workload(
            "Deployment",
            "nginx",
            "k8s.gcr.io/ingress-nginx/controller:v0.49.3",
            json!({}),
        );
        c["spec"]["template"]["spec"]["containers"][0]["args"] = json!(args);
        if scraped {
            c["spec"]["template"]["metadata"]["annotations"] =
                json!({"prometheus.io/scrape": "true"});
        }
        s.blue.objects.push(c);
        s
    }

    #[test]
    fn an_ingress_that_does_not_count_hosts_blocks_and_one_that_nobody_scrapes_is_named() {
        fires(
            &spec(),
            &nginx(&["--metrics-per-host=false"], true),
            "OBS-05",
            Blocker,
            "deployment/web/nginx",
        );
        fires(
            &spec(),
            &nginx(&[], false),
            "OBS-05",
            Warning,
            "scraped by nobody",
        );
        fires(
            &spec(),
            &shop(),
            "OBS-05",
            NotChecked,
            "no ingress controller is known",
        );
    }

    #[test]
    fn a_scraped_ingress_is_fine() {
        silent(&spec(), &nginx(&[], true), "OBS-05");
    }
}
