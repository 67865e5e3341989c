//! What is asked: a field of a kops document, a thing with its kind in front, or any text.

/// A question, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Query {
    /// A field: which documents (`None`: all), and its path.
    Field {
        document: Option<String>,
        path: String,
    },
    /// `node-group/NAME`.
    NodeGroup(String),
    /// `role/NAME`.
    Role(String),
    /// `addon/NAME`.
    Addon(String),
    /// `subnet/ID`.
    Subnet(String),
    /// `finding/ID`.
    Finding(String),
    /// `record/HOST` or `record/HOST/TYPE`.
    Record(String),
    /// `rule/30` or `replay.md 30`, as verdicts spell it.
    Rule(String),
    /// `cluster`.
    Cluster,
    /// Anything else, kinds spelled in full.
    Text(String),
}

/// Short names and plurals of kinds, as kubectl takes them.
const KINDS: &[(&str, &[&str])] = &[
    ("configmap", &["cm"]),
    ("cronjob", &["cj"]),
    ("customresourcedefinition", &["crd", "crds"]),
    ("daemonset", &["ds"]),
    ("deployment", &["deploy"]),
    ("endpoints", &["ep"]),
    ("horizontalpodautoscaler", &["hpa"]),
    ("ingress", &["ing"]),
    ("ingressclass", &[]),
    ("job", &[]),
    ("limitrange", &["limits"]),
    ("namespace", &["ns"]),
    ("networkpolicy", &["netpol"]),
    ("node", &["no"]),
    ("persistentvolume", &["pv"]),
    ("persistentvolumeclaim", &["pvc"]),
    ("pod", &["po"]),
    ("poddisruptionbudget", &["pdb"]),
    ("podsecuritypolicy", &["psp"]),
    ("priorityclass", &["pc"]),
    ("replicaset", &["rs"]),
    ("replicationcontroller", &["rc"]),
    ("resourcequota", &["quota"]),
    ("role", &[]),
    ("rolebinding", &[]),
    ("clusterrole", &[]),
    ("clusterrolebinding", &[]),
    ("secret", &[]),
    ("service", &["svc"]),
    ("serviceaccount", &["sa"]),
    ("statefulset", &["sts"]),
    ("storageclass", &["sc"]),
];

/// The kind behind a short name, a plural or another case.
fn kind(word: &str) -> Option<&'static str> {
    let word = word.to_lowercase();
    KINDS.iter().find_map(|(kind, short)| {
        let plural = match kind.strip_suffix('y') {
            Some(stem) => format!("{stem}ies"),
            None if kind.ends_with("ss") => format!("{kind}es"),
            None if kind.ends_with('s') => kind.to_string(),
            None => format!("{kind}s"),
        };
        (word == *kind || word == plural || short.contains(&word.as_str())).then_some(*kind)
    })
}

impl Query {
    /// Reads what somebody typed.
    pub fn read(what: &str) -> Query {
        let what = what.trim().trim_end_matches('.');
        if what == "cluster" {
            return Query::Cluster;
        }
        if let Some(field) = field(what) {
            return field;
        }
        let number = ["rule/", "rule ", "replay.md ", "replay.md/"];
        if let Some(n) = number.iter().find_map(|p| what.strip_prefix(p))
            && let Ok(n) = n.trim().parse::<u32>()
        {
            return Query::Rule(format!("replay.md {n}"));
        }
        let Some((head, rest)) = what.split_once('/') else {
            return Query::Text(what.into());
        };
        let rest = rest.to_string();
        match head {
            "node-group" | "nodegroup" | "node-groups" | "ng" => return Query::NodeGroup(rest),
            // A Kubernetes Role has a namespace, a role of AWS none.
            "role" | "roles" if !rest.contains('/') => return Query::Role(rest),
            "addon" | "addons" | "add-on" => return Query::Addon(rest),
            "subnet" | "subnets" => return Query::Subnet(rest),
            "finding" | "findings" | "check" => return Query::Finding(rest),
            // `record/www.shop.test/A` is how findings and journals spell a record; the plan's names go by host.
            "record" | "records" => {
                let host = rest.split('/').next().unwrap_or_default();
                return Query::Record(host.trim_end_matches('.').into());
            }
            "cluster" | "clusters" => return Query::Cluster,
            _ => {}
        }
        Query::Text(match kind(head) {
            Some(kind) => format!("{kind}/{rest}"),
            None => what.into(),
        })
    }
}

/// `spec.a.b`, `cluster/spec.a`, `instancegroup/nodes/spec.a`, `nodes/spec.a`.
fn field(what: &str) -> Option<Query> {
    let is_path = |p: &str| {
        ["spec.", "metadata."].iter().any(|h| p.starts_with(h)) || p == "spec" || p == "metadata"
    };
    if is_path(what) {
        return Some(Query::Field {
            document: None,
            path: what.into(),
        });
    }
    // A key in the path may hold slashes (`spec.nodeLabels["a/b"]`): the document ends where the path begins.
    let at = ["/spec.", "/metadata.", "/spec"]
        .iter()
        .filter_map(|h| what.find(h))
        .min()?;
    let (document, path) = (&what[..at], &what[at + 1..]);
    is_path(path).then(|| {
        let document = document.strip_prefix("kops/").unwrap_or(document);
        let document = match document {
            "kops" | "cluster" => "cluster".to_string(),
            d => match ["instancegroup/", "instancegroups/", "ig/"]
                .iter()
                .find_map(|h| d.strip_prefix(h))
            {
                Some(name) => format!("instancegroup/{name}"),
                None => format!("instancegroup/{d}"),
            },
        };
        Query::Field {
            document: Some(document),
            path: path.into(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_understood_as_kubectl_spells_them() {
        let text = |w: &str| match Query::read(w) {
            Query::Text(t) => t,
            other => panic!("{w}: {other:?}"),
        };
        for (asked, wanted) in [
            ("deploy/orders/orders", "deployment/orders/orders"),
            ("deployments/orders/orders", "deployment/orders/orders"),
            ("Deployment/orders/orders", "deployment/orders/orders"),
            ("svc/a/b", "service/a/b"),
            ("ing/a/b", "ingress/a/b"),
            ("ingresses/a/b", "ingress/a/b"),
            ("netpol/a/b", "networkpolicy/a/b"),
            ("networkpolicies/a/b", "networkpolicy/a/b"),
            ("storageclasses/gp2", "storageclass/gp2"),
            ("endpoints/a/b", "endpoints/a/b"),
            ("role/a/b", "role/a/b"),
            ("www.shop.test", "www.shop.test"),
            ("widget.example.com/a/b", "widget.example.com/a/b"),
        ] {
            assert_eq!(text(asked), wanted);
        }
        assert_eq!(
            Query::read("role/shop-green-node"),
            Query::Role("shop-green-node".into())
        );
        assert_eq!(
            Query::read("record/www.shop.test./A"),
            Query::Record("www.shop.test".into())
        );
        assert_eq!(Query::read("cluster"), Query::Cluster);
        for rule in ["rule/30", "replay.md 30", "rule 030"] {
            assert_eq!(Query::read(rule), Query::Rule("replay.md 30".into()));
        }
    }

    #[test]
    fn a_field_is_understood_with_and_without_its_document() {
        let of = |w: &str| match Query::read(w) {
            Query::Field { document, path } => (document.unwrap_or_default(), path),
            other => panic!("{w}: {other:?}"),
        };
        let pair = |d: &str, p: &str| (d.to_string(), p.to_string());
        assert_eq!(of("spec.kubelet.maxPods"), pair("", "spec.kubelet.maxPods"));
        assert_eq!(of("cluster/spec.api"), pair("cluster", "spec.api"));
        assert_eq!(of("kops/spec.api"), pair("cluster", "spec.api"));
        assert_eq!(
            of("nodes/spec.minSize"),
            pair("instancegroup/nodes", "spec.minSize")
        );
        assert_eq!(
            of("ig/nodes/spec.minSize"),
            pair("instancegroup/nodes", "spec.minSize")
        );
        assert_eq!(
            of("instancegroup/nodes/spec.nodeLabels[\"a/spec\"]"),
            pair("instancegroup/nodes", "spec.nodeLabels[\"a/spec\"]")
        );
    }
}
