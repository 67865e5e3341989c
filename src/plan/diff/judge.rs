//! What becomes of a resource that is there already: one judgement, made when the plan is written and again when it runs.

use crate::plan::model::ResourceState;
use crate::world::cloud::Resource;
use crate::world::cloud::compare::Difference;

/// Fields without which green does not work, or somebody gets other rights than declared. In all other fields what is there
/// is used as it is, and the plan says so.
const HARD: &[(&str, &[&str])] = &[
    ("cluster", &["version", "kmsKey", "content"]),
    ("node-group", &["labels", "taints", "content"]),
    ("launch-template", &["securityGroups", "content"]),
    (
        "role",
        &[
            "trust",
            "managedPolicies",
            "inlinePolicies",
            "boundary",
            "path",
            "content",
        ],
    ),
    (
        "access-entry",
        &["groups", "policy", "namespaces", "besides", "content"],
    ),
    ("oidc-provider", &["clientIds", "content"]),
    ("tag", &["value", "content"]),
    ("trust-statement", &["statement", "content"]),
    // Whoever described the rule otherwise: it lets in whom it must.
    ("security-group-rule", &[]),
    ("addon", &[]),
    // Another role: other rights than declared.
    ("pod-identity", &["roleArn", "besides", "content"]),
    ("log-group", &["content"]),
    // An open or unversioned bucket is no place for the record of a run.
    (
        "state-bucket",
        &["versioned", "encrypted", "closed", "content"],
    ),
];

/// What was found, as far as it matters here.
pub struct Seen<'a> {
    /// Run that made it, by its tag.
    pub run: Option<&'a str>,
    /// In which fields it differs.
    pub differences: &'a [Difference],
    /// Whether somebody said `green.adopt`.
    pub consent: bool,
    /// Address in the Terraform state.
    pub terraform: Option<&'a str>,
}

/// A judgement.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// What is done with it.
    pub state: ResourceState,
    /// Differences that stop the plan.
    pub hard: Vec<Difference>,
    /// Differences with which it is used all the same.
    pub soft: Vec<Difference>,
}

/// Judges a resource that exists.
pub fn judge(want: &Resource, seen: &Seen) -> Judged {
    let id = want.id();
    let kind = id.split('/').next().unwrap_or("");
    let fields = HARD
        .iter()
        .find(|(k, _)| *k == kind)
        .map_or(&["content"] as &[&str], |(_, f)| f);
    let (hard, soft): (Vec<Difference>, Vec<Difference>) = seen
        .differences
        .iter()
        .cloned()
        .partition(|d| fields.contains(&d.field.as_str()) && !equivalent(want, d));
    let state = if seen.terraform.is_some() {
        ResourceState::Terraform
    } else if !additive(want) && seen.run.is_none() && !seen.consent {
        ResourceState::Foreign
    } else if !hard.is_empty() {
        ResourceState::Differs
    } else if !additive(want) && seen.run.is_none() {
        ResourceState::Adopt
    } else {
        ResourceState::ExistsEqual
    };
    Judged { state, hard, soft }
}

/// Parts of other people's things: who made them does not matter, their exact content does. An OIDC provider carries no more
/// than the name of its issuer, which is the cluster's.
pub fn additive(r: &Resource) -> bool {
    matches!(
        r,
        Resource::Tag { .. }
            | Resource::SecurityGroupRule { .. }
            | Resource::TrustStatement { .. }
            | Resource::OidcProvider { .. }
            // migration.yaml names it: that is consent enough.
            | Resource::StateBucket { .. }
    )
}

/// Other words for the same: controllers accept `owned` and `shared` alike, and labels may be more than we asked for.
fn equivalent(want: &Resource, d: &Difference) -> bool {
    let cluster_tag = |key: &str| key.starts_with("kubernetes.io/cluster/");
    match want {
        Resource::Tag { key, .. } => {
            cluster_tag(key) && d.field == "value" && matches!(d.have.as_str(), "owned" | "shared")
        }
        Resource::NodeGroup { labels, .. } if d.field == "labels" => {
            let have: std::collections::BTreeMap<String, String> =
                serde_json::from_str(&d.have).unwrap_or_default();
            labels.iter().all(|(k, v)| have.get(k) == Some(v))
        }
        // Nobody asked for a key of their own: one that is there does no harm.
        Resource::Cluster { kms_key: None, .. } => d.field == "kmsKey",
        _ => false,
    }
}

/// Whether `green.adopt` names a resource, by its id or with a final `*` for all whose ids begin so.
pub fn consents(adopt: &[String], ids: &[&str]) -> bool {
    adopt.iter().any(|line| match line.strip_suffix('*') {
        Some(start) => ids.iter().any(|id| id.starts_with(start)),
        None => ids.contains(&line.as_str()),
    })
}

/// An id for people: what is only known once the cluster stands goes by its role in the plan.
pub fn shown(id: &str, cluster: &str) -> String {
    id.replace("${cluster.issuer}", cluster)
        .replace("${cluster.security_group}", "green")
        .replace("${caller}", "caller")
}

/// What to write into migration.yaml.
pub fn consent_line(id: &str) -> String {
    format!("write under green.adopt in migration.yaml:  - {id}")
}
