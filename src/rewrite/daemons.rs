//! Rule 52: DaemonSets. Agents of blue's nodes stay with them; the others are copied, and held from every node until they wake.

use super::work::{Work, items, template_path};
use crate::object::annotation;
use crate::plan::model::Severity;
use serde_json::{Value, json};

/// Node label that nothing carries: a DaemonSet that asks for it runs nowhere.
pub(crate) const PARKED: &str = "crossfade.dev/parked";
/// Annotation by which an owner says that an agent is to be copied all the same.
pub(crate) const COPY: &str = "crossfade.dev/copy";

/// What an agent of blue's nodes is for.
struct Agent {
    /// Part of the image's name.
    image: &'static str,
    /// What it is, for people.
    what: &'static str,
    /// What green has in its place.
    green: &'static str,
}

/// Agents that would fight with green's own (MoJ's migration: running both is harmful), by image.
const AGENTS: &[Agent] = &[
    agent(
        "uswitch/kiam",
        "gives AWS roles to pods (kiam)",
        "roles of service accounts",
    ),
    agent(
        "kube2iam",
        "gives AWS roles to pods (kube2iam)",
        "roles of service accounts",
    ),
    agent("calico/node", "blue's network (Calico)", "the VPC CNI"),
    agent("calico/cni", "blue's network (Calico)", "the VPC CNI"),
    agent("cilium/cilium", "blue's network (Cilium)", "the VPC CNI"),
    agent("weaveworks/weave", "blue's network (Weave)", "the VPC CNI"),
    agent(
        "weaveworks/weave-kube",
        "blue's network (Weave)",
        "the VPC CNI",
    ),
    agent("coreos/flannel", "blue's network (flannel)", "the VPC CNI"),
    agent("flannel/flannel", "blue's network (flannel)", "the VPC CNI"),
    agent("kube-router", "blue's network (kube-router)", "the VPC CNI"),
    agent(
        "amazon-k8s-cni",
        "blue's network (VPC CNI)",
        "the VPC CNI as an add-on",
    ),
    agent("kube-proxy", "kube-proxy", "kube-proxy as an add-on"),
    agent("k8s-dns-node-cache", "blue's DNS cache", "CoreDNS"),
    agent("node-local-dns", "blue's DNS cache", "CoreDNS"),
    agent(
        "aws-ebs-csi-driver",
        "the EBS driver",
        "the EBS driver as an add-on",
    ),
    agent(
        "aws-node-termination-handler",
        "drains nodes that AWS takes back",
        "managed node groups, which do that",
    ),
    agent("kops-controller", "a part of kops", "EKS"),
    agent("dns-controller", "a part of kops", "EKS"),
    agent(
        "kubernetes-autoscaler/node-problem",
        "watches blue's nodes",
        "EKS's node monitoring",
    ),
];

const fn agent(image: &'static str, what: &'static str, green: &'static str) -> Agent {
    Agent { image, what, green }
}

/// Agents that ship logs or measurements: two clusters would send to one place, and what they read differs.
const SHIPPERS: &[&str] = &[
    "fluentd",
    "fluent-bit",
    "fluentbit",
    "filebeat",
    "metricbeat",
    "logstash",
    "promtail",
    "vector",
    "datadog",
    "newrelic",
    "splunk",
    "sumologic",
    "telegraf",
    "node-exporter",
    "cloudwatch-agent",
    "dynatrace",
    "sysdig",
    "falco",
];

/// Whether an image is of this name: `registry/path/NAME:tag`, by whole parts of the path.
fn is(image: &str, name: &str) -> bool {
    let repository = image.split('@').next().unwrap_or(image);
    let repository = match repository.rsplit_once(':') {
        Some((r, tag)) if !tag.contains('/') => r,
        _ => repository,
    };
    let parts: Vec<&str> = repository.split('/').collect();
    let wanted: Vec<&str> = name.split('/').collect();
    parts.len() >= wanted.len() && parts[parts.len() - wanted.len()..] == wanted[..]
}

pub(super) fn rewrite(w: &mut Work) {
    let spec = format!(
        "{}/spec/containers",
        template_path("DaemonSet").unwrap_or_default()
    );
    let images: Vec<String> = items(w.original, &spec)
        .filter_map(|c| c["image"].as_str().map(String::from))
        .collect();
    let copied = annotation(w.original, COPY) == Some("true");
    let known = AGENTS
        .iter()
        .find(|a| images.iter().any(|i| is(i, a.image)));
    if let Some(a) = known.filter(|_| !copied) {
        w.skip(52);
        w.find(
            "SNG-04",
            Severity::Info,
            52,
            format!("an agent of blue's nodes that {}: it is not copied, green has {}", verb(a.what), a.green),
            format!("Nothing to do; annotate it `{COPY}: \"true\"` on blue if green is to have it all the same."),
        );
        return;
    }
    let shipper = images.iter().find(|i| {
        SHIPPERS
            .iter()
            .any(|s| i.rsplit('/').next().is_some_and(|n| n.contains(s)))
    });
    if let Some(image) = shipper {
        w.find(
            "SNG-04",
            Severity::Warning,
            52,
            format!("ships logs or measurements of its node ({image}): from unpark on both sides send to one place"),
            "Tell both sides apart by a field (cluster), and see that it reads containerd's logs.",
        );
    }
    let node_selector = format!(
        "/spec/template/spec/nodeSelector/{}",
        PARKED.replace('/', "~1")
    );
    w.park(&node_selector, json!("true"), "unpark", Value::Null, 52);
}

/// "is blue's network", but "gives roles".
fn verb(what: &str) -> String {
    if what.starts_with("gives") || what.starts_with("drains") || what.starts_with("watches") {
        what.into()
    } else {
        format!("is {what}")
    }
}

#[cfg(test)]
mod tests {
    use super::is;

    #[test]
    fn an_image_is_known_by_whole_parts_of_its_path() {
        assert!(is("quay.io/uswitch/kiam:v3.6", "uswitch/kiam"));
        assert!(is("jtblin/kube2iam:0.10", "kube2iam"));
        assert!(is("localhost:5000/calico/node@sha256:00", "calico/node"));
        assert!(!is("example.com/team/node:1", "calico/node"));
        assert!(!is("example.com/my-kube2iam:1", "kube2iam"));
    }
}
