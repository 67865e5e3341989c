//! Who on blue may use what: pods, their accounts, how they come to AWS rights, and what hints at the services that they call.

use super::policy::list;
use super::text;
use crate::object::{ObjectId, annotation};
use crate::plan::addons;
use crate::rewrite::template_path;
use crate::snapshot::kops::effective;
use crate::snapshot::model::Snapshot;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A workload with a pod template.
#[derive(Clone, Debug)]
pub struct Workload<'a> {
    /// `deployment/ns/name`.
    pub id: String,
    /// `ns/serviceaccount`.
    pub account: String,
    /// Images of all containers.
    pub images: Vec<&'a str>,
    /// Shares the node's network: reaches the node's role whatever the hop limit.
    pub host_network: bool,
    /// Role that kube2iam or kiam gives its pods.
    pub agent_role: Option<&'a str>,
    /// Role that its environment names beside a token that somebody mounted by hand.
    pub token_role: Option<&'a str>,
    /// Access keys in its environment.
    pub keys: bool,
    /// Must run on masters.
    pub on_masters: bool,
    /// A part of blue's platform that green has its own of.
    pub platform: bool,
    /// Arguments of all containers.
    pub args: Vec<&'a str>,
    spec: &'a Value,
    namespace: String,
}

fn items<'a>(v: &'a Value, path: &str) -> impl Iterator<Item = &'a Value> {
    crate::object::at(v, path)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// All workloads of blue, parents only.
pub fn workloads(snapshot: &Snapshot) -> Vec<Workload<'_>> {
    let mut out = vec![];
    for o in &snapshot.blue.objects {
        let Some(kind) = o.get("kind").and_then(Value::as_str) else {
            continue;
        };
        let Some(t) = template_path(kind) else {
            continue;
        };
        if items(o, "/metadata/ownerReferences").next().is_some() {
            continue;
        }
        let Some(id) = ObjectId::of(o) else { continue };
        let Some(spec) = o.pointer(&format!("{t}/spec")) else {
            continue;
        };
        let namespace = id.namespace.clone().unwrap_or_default();
        let account = text(spec, "/serviceAccountName")
            .or(text(spec, "/serviceAccount"))
            .unwrap_or("default");
        let env = |name: &str| {
            containers(spec)
                .flat_map(|c| items(c, "/env"))
                .find(|e| e["name"] == name)
        };
        let annotations = o.pointer(&format!("{t}/metadata/annotations"));
        out.push(Workload {
            account: format!("{namespace}/{account}"),
            images: containers(spec).filter_map(|c| text(c, "/image")).collect(),
            host_network: spec["hostNetwork"] == true,
            agent_role: annotations
                .and_then(|a| a.get("iam.amazonaws.com/role"))
                .and_then(Value::as_str),
            token_role: env("AWS_WEB_IDENTITY_TOKEN_FILE")
                .and(env("AWS_ROLE_ARN"))
                .and_then(|e| e["value"].as_str()),
            keys: env("AWS_ACCESS_KEY_ID").is_some(),
            on_masters: wants_masters(spec),
            platform: addons::of_platform(o, &id),
            args: containers(spec)
                .flat_map(|c| items(c, "/args").chain(items(c, "/command")))
                .filter_map(Value::as_str)
                .collect(),
            id: id.to_string(),
            namespace,
            spec,
        });
    }
    out.sort_by(|a, b| a.id.cmp(&b.id));
    out
}

fn containers(spec: &Value) -> impl Iterator<Item = &Value> {
    items(spec, "/initContainers").chain(items(spec, "/containers"))
}

/// Labels that only kops's control-plane nodes carry (kops.md 3).
fn is_master_label(key: &str, value: Option<&str>) -> bool {
    matches!(
        key,
        "node-role.kubernetes.io/master" | "node-role.kubernetes.io/control-plane"
    ) || key == "kubernetes.io/role" && value == Some("master")
}

fn wants_masters(spec: &Value) -> bool {
    let selector = spec["nodeSelector"]
        .as_object()
        .into_iter()
        .flatten()
        .any(|(k, v)| is_master_label(k, v.as_str()));
    let terms =
        "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    selector
        || items(spec, terms)
            .flat_map(|t| items(t, "/matchExpressions"))
            .any(|e| {
                matches!(e["operator"].as_str(), Some("Exists" | "In"))
                    && e["key"].as_str().is_some_and(|k| {
                        is_master_label(k, e.pointer("/values/0").and_then(Value::as_str))
                    })
            })
}

/// Whether pods without the node's network reach the node's role, and why it is thought so (kops.md 1.4, 5).
pub struct Imds {
    /// Nodes where they do, or might.
    pub open: bool,
    /// In words.
    pub why: String,
}

/// From the worker groups. Tokens required with a hop limit of 1 is the only setting that keeps pods away.
pub fn imds(snapshot: &Snapshot) -> Imds {
    let kops = effective(&snapshot.kops);
    let mut open = vec![];
    let mut workers = 0;
    for ig in &snapshot.kops.instance_groups {
        let role = text(ig, "/spec/role").unwrap_or("Node");
        if !role.eq_ignore_ascii_case("node") {
            continue;
        }
        workers += 1;
        let m = kops.imds(ig);
        let required = m.tokens.value.eq_ignore_ascii_case("required");
        let hops = m.hop_limit.value;
        let name = text(ig, "/metadata/name").unwrap_or("").to_string();
        if !required {
            open.push(format!("{name} (metadata without tokens)"));
        } else if hops > 1 {
            open.push(format!("{name} (hop limit {hops})"));
        }
    }
    if workers == 0 {
        return Imds {
            open: true,
            why: "the instance groups were not read, so any pod may".into(),
        };
    }
    Imds {
        why: if open.is_empty() {
            "tokens are required and the hop limit is 1: only pods in the node's network do".into()
        } else {
            format!("any pod does on {}", open.join(", "))
        },
        open: !open.is_empty(),
    }
}

/// Controllers that are known by their image, with the services that they call.
const BY_IMAGE: &[(&str, &[&str])] = &[
    ("external-dns", &["route53"]),
    ("cert-manager", &["route53"]),
    ("cluster-autoscaler", &["autoscaling"]),
    ("load-balancer-controller", &["elasticloadbalancing", "ec2"]),
    ("alb-ingress", &["elasticloadbalancing", "ec2"]),
    ("ebs-csi", &["ec2"]),
    ("efs-csi", &["elasticfilesystem"]),
    ("karpenter", &["ec2"]),
    ("kube2iam", &["sts"]),
    ("kiam", &["sts"]),
    ("velero", &["s3", "ec2"]),
    ("thanos", &["s3"]),
    ("loki", &["s3"]),
    ("cloudwatch", &["cloudwatch", "logs"]),
    ("fluent", &["logs", "firehose", "es"]),
    ("external-secrets", &["secretsmanager", "ssm"]),
    ("registry-creds", &["ecr"]),
    ("ecr-", &["ecr"]),
];

/// What the settings of a workload say, in lower case: images, environment, arguments, the ConfigMaps that it names.
pub struct Settings {
    text: String,
    images: String,
    aws: bool,
}

/// ConfigMaps by `ns/name`.
pub fn config_maps(snapshot: &Snapshot) -> BTreeMap<String, &Value> {
    snapshot
        .blue
        .of_kind("ConfigMap")
        .filter_map(|o| {
            Some((
                format!(
                    "{}/{}",
                    text(o, "/metadata/namespace")?,
                    text(o, "/metadata/name")?
                ),
                o.get("data")?,
            ))
        })
        .collect()
}

impl Workload<'_> {
    /// Its settings.
    pub fn settings(&self, maps: &BTreeMap<String, &Value>) -> Settings {
        let mut words: Vec<String> = vec![];
        let mut names: BTreeSet<&str> = BTreeSet::new();
        let mut aws = false;
        for c in containers(self.spec) {
            for e in items(c, "/env") {
                let name = e["name"].as_str().unwrap_or("");
                aws |= matches!(
                    name,
                    "AWS_REGION" | "AWS_DEFAULT_REGION" | "AWS_SDK_LOAD_CONFIG"
                );
                words.push(name.into());
                words.extend(e["value"].as_str().map(String::from));
                names.extend(text(e, "/valueFrom/configMapKeyRef/name"));
            }
            names.extend(items(c, "/envFrom").filter_map(|f| text(f, "/configMapRef/name")));
        }
        words.extend(self.args.iter().map(|a| a.to_string()));
        names.extend(items(self.spec, "/volumes").filter_map(|v| text(v, "/configMap/name")));
        for n in names {
            if let Some(Value::Object(data)) = maps.get(&format!("{}/{n}", self.namespace)) {
                for (k, v) in data {
                    words.push(k.clone());
                    words.extend(v.as_str().map(String::from));
                }
            }
        }
        let text = words.join("\n").to_lowercase();
        Settings {
            aws: aws || text.contains(".amazonaws.com") || text.contains("aws_region"),
            images: self.images.join(" ").to_lowercase(),
            text,
        }
    }
}

/// Why a workload may use a statement. A hint is no proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// It names the very thing, or is the controller that is made for it.
    pub strong: bool,
    /// In words.
    pub why: String,
}

/// What hints at the use of a statement.
pub fn hint(statement: &Value, s: &Settings) -> Option<Hint> {
    let services: BTreeSet<String> = list(statement, "Action")
        .into_iter()
        .filter_map(|a| a.split_once(':'))
        .map(|(service, _)| service.to_lowercase())
        .collect();
    for resource in list(statement, "Resource") {
        if let Some(name) = thing(resource)
            && has_word(&s.text, &name)
        {
            return Some(Hint {
                strong: true,
                why: format!("names {name}"),
            });
        }
    }
    for (image, calls) in BY_IMAGE {
        if s.images.contains(image) && calls.iter().any(|c| services.contains(*c)) {
            return Some(Hint {
                strong: true,
                why: format!("runs {image}"),
            });
        }
    }
    for service in &services {
        if s.text.contains(&format!("{service}."))
            && s.text.contains(".amazonaws.com")
            && has_word(&s.text, service)
            || has_word(&s.text, &format!("{service}_"))
            || s.text.contains(&format!("{service}://"))
        {
            return Some(Hint {
                strong: false,
                why: format!("its settings speak of {service}"),
            });
        }
    }
    (s.aws).then(|| Hint {
        strong: false,
        why: "its settings name an AWS region or host".into(),
    })
}

/// Name of the thing in an ARN (bucket, queue, table, zone, role), in lower case, when it is one thing.
fn thing(arn: &str) -> Option<String> {
    let tail = arn.splitn(6, ':').nth(5)?;
    let service = arn.split(':').nth(2)?;
    let name = match service {
        "s3" => tail.split('/').next()?,
        _ => tail
            .rsplit(['/', ':'])
            .find(|p| !p.is_empty() && *p != "*")?,
    };
    let name = name.trim_end_matches(['*', '-']);
    let generic = matches!(
        name,
        "hostedzone" | "table" | "role" | "key" | "secret" | "parameter" | "change" | "function"
    );
    (name.len() >= 4 && !name.contains('*') && !generic).then(|| name.to_lowercase())
}

/// Whether a text holds a word that begins where no letter, digit or `-` stands before it.
fn has_word(text: &str, word: &str) -> bool {
    let open = word.ends_with('_');
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        let inner = |c: char| c.is_ascii_alphanumeric() || c == '-';
        !before.is_some_and(inner) && (open || !after.is_some_and(inner))
    })
}

/// Access keys by name of a Secret's field or an environment variable.
pub fn is_key_name(name: &str) -> bool {
    let n: String = name
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect();
    [
        "awsaccesskeyid",
        "awssecretaccesskey",
        "s3accesskey",
        "s3secretkey",
    ]
    .iter()
    .any(|k| n.ends_with(k))
}

/// Service accounts of blue with the role in their annotation (a self-made pod identity webhook).
pub fn annotated(snapshot: &Snapshot) -> BTreeMap<String, String> {
    snapshot
        .blue
        .of_kind("ServiceAccount")
        .filter_map(|o| {
            let role = annotation(o, "eks.amazonaws.com/role-arn")?;
            Some((
                format!(
                    "{}/{}",
                    text(o, "/metadata/namespace")?,
                    text(o, "/metadata/name")?
                ),
                role.to_string(),
            ))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn settings(text: &str, images: &str) -> Settings {
        Settings {
            text: text.into(),
            images: images.into(),
            aws: text.contains("aws_region"),
        }
    }

    #[test]
    fn a_bucket_name_in_the_settings_is_a_strong_hint_a_region_a_weak_one_and_a_longer_name_none() {
        let s3 = json!({"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::orders-assets/*"});
        let h = hint(
            &s3,
            &settings("assets_url\ns3://orders-assets/img", "web:1"),
        )
        .expect("a hint");
        assert_eq!((h.strong, h.why.as_str()), (true, "names orders-assets"));
        let h = hint(&s3, &settings("aws_region\neu-west-1", "web:1")).expect("a hint");
        assert!(!h.strong, "{h:?}");
        assert_eq!(hint(&s3, &settings("my-orders-assets-2", "web:1")), None);
    }

    #[test]
    fn a_queue_in_an_arn_is_found_in_a_queue_url_and_a_hosted_zone_pattern_names_nothing() {
        let sqs = json!({"Effect": "Allow", "Action": ["sqs:*"], "Resource": ["arn:aws:sqs:eu-west-1:000000000000:shop-orders"]});
        let url = "https://sqs.eu-west-1.amazonaws.com/000000000000/shop-orders";
        assert!(hint(&sqs, &settings(url, "")).is_some_and(|h| h.strong));
        assert_eq!(thing("arn:aws:route53:::hostedzone/*"), None);
        assert_eq!(thing("*"), None);
    }

    #[test]
    fn a_controller_is_known_by_its_image() {
        let dns = json!({"Effect": "Allow", "Action": "route53:ListHostedZones", "Resource": "*"});
        let h = hint(
            &dns,
            &settings("", "quay.io/jetstack/cert-manager-controller:v1.5"),
        )
        .expect("a hint");
        assert_eq!(h.why, "runs cert-manager");
    }

    #[test]
    fn pods_are_kept_from_the_nodes_role_only_by_tokens_with_a_hop_limit_of_one() {
        let with = |version: &str, metadata: Value| {
            let mut s = Snapshot::default();
            s.kops.cluster = Some(json!({"spec": {"kubernetesVersion": version}}));
            s.kops.instance_groups = vec![
                json!({"metadata": {"name": "nodes"}, "spec": {"role": "Node", "instanceMetadata": metadata}}),
            ];
            imds(&s)
        };
        assert!(with("v1.21.14", Value::Null).open, "no tokens before 1.27");
        assert!(!with("v1.27.0", Value::Null).open, "required from 1.27");
        assert!(
            !with(
                "1.22.1",
                json!({"httpTokens": "required", "httpPutResponseHopLimit": 1})
            )
            .open
        );
        let three = with(
            "1.22.1",
            json!({"httpTokens": "required", "httpPutResponseHopLimit": 3}),
        );
        assert!(
            three.open && three.why.contains("hop limit 3"),
            "{}",
            three.why
        );
        assert!(
            imds(&Snapshot::default()).open,
            "what was not read is not safe"
        );
    }
}
