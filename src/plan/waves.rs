//! In which order objects are created on green (replay.md 3 and 4): waves by kind, and inside a wave owners before what they own (replay.md 10).

use super::model::Verdict;
use crate::rewrite::UID_OF;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Waves in order with the kinds that they hold. A wave ends before the next begins.
/// Custom resources go to `custom`.
const WAVES: &[(&str, &[&str])] = &[
    ("crds", &["CustomResourceDefinition"]),
    ("namespaces", &["Namespace"]),
    (
        "classes",
        &[
            "StorageClass",
            "PriorityClass",
            "RuntimeClass",
            "IngressClass",
            "VolumeSnapshotClass",
            "CSIDriver",
            "FlowSchema",
            "PriorityLevelConfiguration",
        ],
    ),
    ("accounts", &["ServiceAccount"]),
    // What needs no more than a namespace and an account is one stream, so that no kind waits for another's slowest request; what of it must
    // stand before what is told by object (`step::replay`): roles before bindings (replay.md 3), volumes and limits before claims
    // (replay.md 4), a Service before its Endpoints (replay.md 34, velero-io/velero#6280).
    // All keys of sealed-secrets and all certificates are among them: before their controllers (replay.md 42, 44).
    (
        "base",
        &[
            "ClusterRole",
            "Role",
            "ClusterRoleBinding",
            "RoleBinding",
            "Secret",
            "ConfigMap",
            "LimitRange",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "Service",
            "Endpoints",
            "EndpointSlice",
            "NetworkPolicy",
        ],
    ),
    // What answers the conversion webhook of a CRD; parked as all workloads.
    (OPERATORS, &[]),
    ("issuers", &["Issuer", "ClusterIssuer"]),
    (CUSTOM, &[]),
    (
        "workloads",
        &[
            "StatefulSet",
            "Deployment",
            "DaemonSet",
            "ReplicaSet",
            "Pod",
            "PodTemplate",
            "ReplicationController",
        ],
    ),
    ("jobs", &["CronJob", "Job"]),
    (
        "policies",
        &["PodDisruptionBudget", "HorizontalPodAutoscaler"],
    ),
    (
        "ingress",
        &["Ingress", "Gateway", "HTTPRoute", "DNSEndpoint"],
    ),
    // After everything that it may count: until the quota controller has counted once, the server refuses what is counted (replay.md 4).
    ("quotas", &["ResourceQuota"]),
];
const OPERATORS: &str = "operators";
const CUSTOM: &str = "custom";
/// Created after their backends run (replay.md 3, 63, 64).
const LAST: &[&str] = &[
    "APIService",
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
];
/// Groups of custom resources whose kinds have a wave of their own.
const KNOWN_GROUPS: &[&str] = &["cert-manager.io"];

/// Place of a wave among all.
#[cfg(test)]
pub(crate) fn wave_place(name: &str) -> Option<usize> {
    number(name)
}

/// Number and name of the wave that creates a kind; none for what [`is_last`].
pub(crate) fn wave_of(kind: &str) -> Option<(usize, &'static str)> {
    if is_last(kind) {
        return None;
    }
    let n = WAVES
        .iter()
        .position(|(_, kinds)| kinds.contains(&kind))
        .or_else(|| number(CUSTOM))?;
    Some((n, WAVES[n].0))
}

/// Whether a kind is created after its backends run.
pub(crate) fn is_last(kind: &str) -> bool {
    LAST.contains(&kind)
}

/// Whether green makes an object by itself: what people added to it is merged into it (replay.md 24 and 37, `step::replay_merge`).
pub(crate) fn is_merged(object: &str) -> bool {
    object.starts_with("serviceaccount/") && object.ends_with("/default")
}

fn number(wave: &str) -> Option<usize> {
    WAVES.iter().position(|(name, _)| *name == wave)
}

/// One step of creation: all its objects may be created at once.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Stage<'a> {
    /// Name of the wave, with `-2` and so on for what is owned by objects of the stage before.
    pub name: String,
    pub objects: Vec<&'a str>,
    /// Indices into `Plan.generated`.
    pub generated: Vec<usize>,
    /// How many of each kind, by API version and kind: the run looks at what green has of them by lists.
    counted: BTreeMap<(String, String), usize>,
}

impl Stage<'_> {
    fn count(&mut self, target: &Value) {
        let text = |key: &str| target[key].as_str().unwrap_or_default().to_string();
        *self
            .counted
            .entry((text("apiVersion"), text("kind")))
            .or_default() += 1;
    }
    /// API version, kind and how many.
    pub fn kinds(&self) -> Vec<(&str, &str, usize)> {
        self.counted
            .iter()
            .map(|((api, kind), n)| (api.as_str(), kind.as_str(), *n))
            .collect()
    }
}

/// Who is created when.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Layout<'a> {
    /// Before anything runs.
    pub stages: Vec<Stage<'a>>,
    /// When workloads run: custom resources that the server can only store after the conversion webhook has turned them (replay.md 61).
    pub late: Vec<Stage<'a>>,
    /// After that: what must find its backend (replay.md 63, 64).
    pub last: Vec<&'a str>,
    /// What green makes by itself once its namespace stands.
    pub merged: Vec<&'a str>,
}

/// Lays out the verdicts (sorted by object, as a plan has them) and green's own objects.
pub(super) fn layout<'a>(verdicts: &'a [Verdict], generated: &[Value]) -> Layout<'a> {
    let conversions = Conversions::of(verdicts);
    let mut places = Places {
        verdicts,
        conversions: &conversions,
        known: BTreeMap::new(),
        asked: BTreeSet::new(),
    };
    let mut stages: BTreeMap<(usize, usize), Stage> = BTreeMap::new();
    let mut out = Layout::default();
    for (n, v) in verdicts.iter().enumerate() {
        let Some(target) = &v.target else { continue };
        // A pod cannot be parked: it is created when the others wake (rule 45).
        if kind(target) == "Pod" {
            continue;
        }
        if is_last(kind(target)) {
            out.last.push(&v.object);
            continue;
        }
        if is_merged(&v.object) {
            out.merged.push(&v.object);
            continue;
        }
        let place = places.of(n, target);
        let stage = stages.entry(place).or_default();
        stage.objects.push(&v.object);
        stage.count(target);
    }
    for (n, g) in generated.iter().enumerate() {
        if let Some((wave, _)) = wave_of(kind(g)) {
            let stage = stages.entry((wave, 0)).or_default();
            stage.generated.push(n);
            stage.count(g);
        }
    }
    for ((wave, depth), mut stage) in stages {
        let name = WAVES.get(wave).map_or(CUSTOM, |(name, _)| name);
        stage.name = match depth {
            0 => name.to_string(),
            d => format!("{name}-{}", d + 1),
        };
        if wave < WAVES.len() {
            out.stages.push(stage);
        } else {
            out.late.push(stage);
        }
    }
    out
}

struct Places<'a> {
    verdicts: &'a [Verdict],
    conversions: &'a Conversions<'a>,
    /// Places of owners and owned; nothing else is looked up twice.
    known: BTreeMap<usize, (usize, usize)>,
    /// Guards against owners in a circle.
    asked: BTreeSet<usize>,
}

impl Places<'_> {
    /// Wave and depth: after each of its owners.
    fn of(&mut self, n: usize, target: &Value) -> (usize, usize) {
        if let Some(place) = self.known.get(&n) {
            return *place;
        }
        let mut place = (self.wave(target), 0);
        let mut owners = target
            .pointer("/metadata/ownerReferences")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|o| o["uid"].as_str()?.strip_prefix(UID_OF))
            .peekable();
        if owners.peek().is_none() {
            return place;
        }
        if !self.asked.insert(n) {
            return place;
        }
        for owner in owners {
            let verdicts = self.verdicts;
            let Ok(o) = verdicts.binary_search_by(|v| v.object.as_str().cmp(owner)) else {
                continue;
            };
            if let Some(t) = &verdicts[o].target {
                let (wave, depth) = self.of(o, t);
                place = place.max((wave, depth + 1));
            }
        }
        self.known.insert(n, place);
        place
    }

    fn wave(&self, target: &Value) -> usize {
        let group = group(target);
        let built_in = !group.contains('.') || group.ends_with(".k8s.io");
        let custom = number(CUSTOM).unwrap_or_default();
        if self.conversions.needed_by(target) {
            return WAVES.len();
        }
        if self.conversions.answered_by(target) {
            return number(OPERATORS).unwrap_or(custom);
        }
        if built_in || KNOWN_GROUPS.contains(&group) {
            wave_of(kind(target)).map_or(custom, |(n, _)| n)
        } else {
            // A kind of somebody's own may be called Service or Job.
            custom
        }
    }
}

/// CRDs that are converted by a webhook.
#[derive(Default)]
struct Conversions<'a> {
    /// Version that is stored, by (group, kind).
    stored: BTreeMap<(&'a str, &'a str), &'a str>,
    /// Labels that the webhooks' Services select, by namespace.
    backends: Vec<(&'a str, &'a serde_json::Map<String, Value>)>,
}

impl<'a> Conversions<'a> {
    fn of(verdicts: &'a [Verdict]) -> Self {
        let mut out = Conversions::default();
        let mut services = BTreeSet::new();
        let crds = verdicts
            .iter()
            .filter_map(|v| v.target.as_ref())
            .filter(|t| kind(t) == "CustomResourceDefinition");
        for crd in crds {
            let text = |p: &str| crd.pointer(p).and_then(Value::as_str);
            if text("/spec/conversion/strategy") != Some("Webhook") {
                continue;
            }
            let stored = crd
                .pointer("/spec/versions")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .find(|v| v["storage"] == true)
                .and_then(|v| v["name"].as_str());
            if let (Some(group), Some(kind), Some(stored)) =
                (text("/spec/group"), text("/spec/names/kind"), stored)
            {
                out.stored.insert((group, kind), stored);
            }
            let service = "/spec/conversion/webhook/clientConfig/service";
            if let (Some(ns), Some(name)) = (
                text(&format!("{service}/namespace")),
                text(&format!("{service}/name")),
            ) {
                services.insert(format!("service/{ns}/{name}"));
            }
        }
        for name in services {
            let found = verdicts
                .binary_search_by(|v| v.object.as_str().cmp(&name))
                .ok()
                .and_then(|n| verdicts[n].target.as_ref());
            if let Some(service) = found
                && let Some(selector) = service.pointer("/spec/selector").and_then(Value::as_object)
                && !selector.is_empty()
            {
                let ns = service
                    .pointer("/metadata/namespace")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                out.backends.push((ns, selector));
            }
        }
        out
    }

    /// Whether the server must call the webhook to store this object.
    fn needed_by(&self, target: &Value) -> bool {
        let version = target["apiVersion"]
            .as_str()
            .and_then(|a| a.rsplit('/').next());
        self.stored
            .get(&(group(target), kind(target)))
            .is_some_and(|stored| version != Some(stored))
    }

    /// Whether its pods answer such a webhook.
    fn answered_by(&self, target: &Value) -> bool {
        if self.backends.is_empty()
            || !matches!(kind(target), "Deployment" | "StatefulSet" | "DaemonSet")
        {
            return false;
        }
        let labels = target.pointer("/spec/template/metadata/labels");
        let ns = target
            .pointer("/metadata/namespace")
            .and_then(Value::as_str);
        self.backends.iter().any(|(n, selector)| {
            ns == Some(n)
                && selector
                    .iter()
                    .all(|(k, v)| labels.and_then(|l| l.get(k)) == Some(v))
        })
    }
}

fn kind(target: &Value) -> &str {
    target["kind"].as_str().unwrap_or_default()
}

fn group(target: &Value) -> &str {
    target["apiVersion"]
        .as_str()
        .and_then(|a| a.split_once('/'))
        .map_or("", |(g, _)| g)
}
