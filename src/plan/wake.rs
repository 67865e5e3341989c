//! Who wakes before whom: operators of the whole cluster first, then who is called by others, by what environment, arguments and ConfigMaps say.

use super::model::Verdict;
use crate::rewrite::{keda_target, template_path};
use crate::snapshot::model::Snapshot;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Objects in the order in which they wake, with how many wake together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Order {
    /// Objects.
    pub objects: Vec<String>,
    /// Sizes of the levels; their sum is the number of objects.
    pub levels: Vec<usize>,
}

impl Order {
    fn push(&mut self, level: Vec<String>) {
        if !level.is_empty() {
            self.levels.push(level.len());
            self.objects.extend(level);
        }
    }
}

/// One workload that wakes.
struct Workload<'a> {
    object: &'a str,
    namespace: String,
    target: &'a Value,
}

fn items<'v>(object: &'v Value, pointer: &str) -> impl Iterator<Item = &'v Value> {
    object
        .pointer(pointer)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn text<'v>(object: &'v Value, pointer: &str) -> Option<&'v str> {
    object.pointer(pointer).and_then(Value::as_str)
}

fn namespace(object: &Value) -> String {
    text(object, "/metadata/namespace").unwrap_or("").into()
}

impl Workload<'_> {
    fn template(&self) -> Option<&Value> {
        self.target
            .pointer(template_path(self.target["kind"].as_str()?)?)
    }
    fn answers(&self, selector: &Value) -> bool {
        let Some(selector) = selector.as_object().filter(|s| !s.is_empty()) else {
            return false;
        };
        let labels = self.template().map(|t| &t["metadata"]["labels"]);
        labels.is_some_and(|l| selector.iter().all(|(k, v)| l.get(k) == Some(v)))
    }
}

/// What is known of the whole of green.
pub(super) struct Wake<'a> {
    verdicts: &'a [Verdict],
    /// Services by namespace and name, with their selectors.
    services: BTreeMap<(String, String), &'a Value>,
    /// Names of all Services: what no word of a text can be is not looked at twice.
    names: HashSet<&'a str>,
    /// ConfigMaps by namespace and name.
    config: BTreeMap<(String, String), &'a Value>,
    /// Service accounts (`namespace/name`) that may write custom resources in the whole cluster.
    operators: BTreeSet<String>,
    /// Services that API servers call: webhooks, aggregated APIs, conversions.
    called: BTreeSet<(String, String)>,
}

impl<'a> Wake<'a> {
    /// From what is copied; `snapshot` for the roles, which are many and rarely changed.
    pub(super) fn new(verdicts: &'a [Verdict], snapshot: &'a Snapshot) -> Wake<'a> {
        let mut wake = Wake {
            verdicts,
            services: BTreeMap::new(),
            names: HashSet::new(),
            config: BTreeMap::new(),
            operators: BTreeSet::new(),
            called: BTreeSet::new(),
        };
        for target in verdicts.iter().filter_map(|v| v.target.as_ref()) {
            let key = || {
                let name = text(target, "/metadata/name").unwrap_or("");
                (namespace(target), name.to_string())
            };
            match target["kind"].as_str() {
                Some("Service") => {
                    wake.names.extend(text(target, "/metadata/name"));
                    wake.services.insert(key(), &target["spec"]["selector"]);
                }
                Some("ConfigMap") => {
                    wake.config.insert(key(), &target["data"]);
                }
                Some("ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration") => {
                    for hook in items(target, "/webhooks") {
                        wake.call(&hook["clientConfig"]["service"]);
                    }
                }
                Some("APIService") => wake.call(&target["spec"]["service"]),
                Some("CustomResourceDefinition") => {
                    let client = "/spec/conversion/webhook/clientConfig/service";
                    wake.call(target.pointer(client).unwrap_or(&Value::Null));
                }
                _ => {}
            }
        }
        wake.accounts(snapshot);
        wake
    }

    fn call(&mut self, service: &Value) {
        if let (Some(ns), Some(name)) = (service["namespace"].as_str(), service["name"].as_str()) {
            self.called.insert((ns.into(), name.into()));
        }
    }

    /// Who may write custom resources everywhere keeps them: an operator.
    fn accounts(&mut self, snapshot: &Snapshot) {
        let objects = &snapshot.blue.objects;
        let of_kind = |kind: &'static str| objects.iter().filter(move |o| o["kind"] == kind);
        let groups: BTreeSet<&str> = of_kind("CustomResourceDefinition")
            .filter_map(|o| text(o, "/spec/group"))
            .collect();
        if groups.is_empty() {
            return;
        }
        let writes = |rule: &Value| {
            items(rule, "/verbs")
                .any(|v| matches!(v.as_str(), Some("*" | "create" | "update" | "patch")))
                && items(rule, "/apiGroups")
                    .filter_map(Value::as_str)
                    .any(|g| g == "*" || groups.contains(g))
        };
        let roles: BTreeSet<&str> = of_kind("ClusterRole")
            .filter(|o| items(o, "/rules").any(writes))
            .filter_map(|o| text(o, "/metadata/name"))
            .collect();
        for binding in of_kind("ClusterRoleBinding") {
            if !text(binding, "/roleRef/name").is_some_and(|r| roles.contains(r)) {
                continue;
            }
            for s in items(binding, "/subjects").filter(|s| s["kind"] == "ServiceAccount") {
                let part = |k: &str| s[k].as_str().unwrap_or("");
                self.operators
                    .insert(format!("{}/{}", part("namespace"), part("name")));
            }
        }
    }

    fn workloads(&self, phase: &str) -> Vec<Workload<'a>> {
        self.verdicts
            .iter()
            .filter(|v| v.park.as_ref().is_some_and(|p| p.wakes == phase))
            .filter_map(|v| {
                let target = v.target.as_ref()?;
                Some(Workload {
                    object: &v.object,
                    namespace: namespace(target),
                    target,
                })
            })
            .collect()
    }

    fn is_operator(&self, w: &Workload) -> bool {
        if w.target["kind"] == "DaemonSet" {
            // Networks, volumes and meshes of nodes: others need them to start.
            return true;
        }
        let account = w
            .template()
            .and_then(|t| text(t, "/spec/serviceAccountName"))
            .unwrap_or("default");
        self.operators
            .contains(&format!("{}/{account}", w.namespace))
            || self.called.iter().any(|(ns, name)| {
                *ns == w.namespace
                    && self
                        .services
                        .get(&(ns.clone(), name.clone()))
                        .is_some_and(|s| w.answers(s))
            })
    }

    /// What wakes at unpark: operators of the cluster, and the rest.
    pub(super) fn at_unpark(&self) -> (Order, Order) {
        let all = self.workloads("unpark");
        let operators: BTreeSet<&str> = all
            .iter()
            .filter(|w| self.is_operator(w))
            .map(|w| w.object)
            .collect();
        let (operators, rest): (Vec<Workload>, Vec<Workload>) = all.into_iter().partition(|w| {
            // A scaler goes with its target.
            let target = keda_target(w.target).filter(|_| w.target["kind"] == "ScaledObject");
            operators.contains(target.as_deref().unwrap_or(w.object))
        });
        (self.order(operators), self.order(rest))
    }

    /// What wakes at open, of these objects.
    pub(super) fn at_open(&self, objects: &[&str]) -> Order {
        let wanted: BTreeSet<&str> = objects.iter().copied().collect();
        let mut all = self.workloads("open");
        all.retain(|w| wanted.contains(w.object));
        self.order(all)
    }

    /// Level by level: each after all that it calls. In a circle the first by name goes first.
    fn order(&self, workloads: Vec<Workload>) -> Order {
        let index: BTreeMap<&str, usize> = workloads
            .iter()
            .enumerate()
            .map(|(n, w)| (w.object, n))
            .collect();
        let mut of_namespace: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (n, w) in workloads.iter().enumerate() {
            of_namespace.entry(&w.namespace).or_default().push(n);
        }
        let needs: Vec<BTreeSet<usize>> = workloads
            .iter()
            .enumerate()
            .map(|(n, w)| {
                // A scaler is released right before its target, in the same level.
                if w.target["kind"] == "ScaledObject" {
                    return BTreeSet::new();
                }
                let mut needs = self.called_by(w, &workloads, &of_namespace);
                needs.remove(&n);
                needs
            })
            .collect();
        let mut level: Vec<Option<usize>> = vec![None; workloads.len()];
        let mut left: BTreeSet<usize> = (0..workloads.len()).collect();
        while !left.is_empty() {
            let mut ready: Vec<usize> = left
                .iter()
                .copied()
                .filter(|n| needs[*n].iter().all(|k| !left.contains(k)))
                .collect();
            if ready.is_empty() {
                ready.extend(left.iter().next().copied());
            }
            for n in ready {
                let at = needs[n]
                    .iter()
                    .filter_map(|k| level[*k])
                    .map(|l| l + 1)
                    .max();
                level[n] = Some(at.unwrap_or(0));
                left.remove(&n);
            }
        }
        // By name, a scaler right before its target.
        let mut levels: BTreeMap<usize, Vec<(String, bool, String)>> = BTreeMap::new();
        for (n, w) in workloads.iter().enumerate() {
            let mut at = level[n].unwrap_or(0);
            let mut place = w.object.to_string();
            let scaler = w.target["kind"] == "ScaledObject";
            if scaler && let Some(target) = keda_target(w.target) {
                at = index
                    .get(target.as_str())
                    .and_then(|t| level[*t])
                    .unwrap_or(at);
                place = target;
            }
            levels
                .entry(at)
                .or_default()
                .push((place, !scaler, w.object.to_string()));
        }
        let mut order = Order::default();
        for (_, mut level) in levels {
            level.sort();
            order.push(level.into_iter().map(|(_, _, o)| o).collect());
        }
        order
    }

    /// Which of the workloads answer for the Services that a workload names.
    fn called_by(
        &self,
        w: &Workload,
        all: &[Workload],
        of_namespace: &BTreeMap<&str, Vec<usize>>,
    ) -> BTreeSet<usize> {
        let mut words = BTreeSet::new();
        if let Some(template) = w.template() {
            self.words(w, template, &mut words);
        }
        let mut out = BTreeSet::new();
        for word in &words {
            let mut parts = word.split('.');
            let name = parts.next().unwrap_or("");
            let ns = parts.next().unwrap_or(&w.namespace);
            let Some(selector) = self.services.get(&(ns.to_string(), name.to_string())) else {
                continue;
            };
            let near = of_namespace.get(ns).into_iter().flatten().copied();
            out.extend(near.filter(|n| all[*n].answers(selector)));
        }
        out
    }

    /// Everything that may be a host name in environment, arguments and the ConfigMaps that are used.
    fn words(&self, w: &Workload, template: &Value, out: &mut BTreeSet<String>) {
        let mut config: BTreeSet<&str> = items(template, "/spec/volumes")
            .filter_map(|v| text(v, "/configMap/name"))
            .collect();
        for list in ["/spec/initContainers", "/spec/containers"] {
            for c in items(template, list) {
                for part in ["/command", "/args"] {
                    for s in items(c, part).filter_map(Value::as_str) {
                        self.hosts(s, out);
                    }
                }
                for e in items(c, "/env") {
                    if let Some(v) = e["value"].as_str() {
                        self.hosts(v, out);
                    }
                    config.extend(text(e, "/valueFrom/configMapKeyRef/name"));
                }
                config.extend(items(c, "/envFrom").filter_map(|e| text(e, "/configMapRef/name")));
            }
        }
        for name in config {
            let data = self.config.get(&(w.namespace.clone(), name.to_string()));
            for v in data
                .and_then(|d| d.as_object())
                .into_iter()
                .flat_map(|d| d.values())
            {
                self.hosts(v.as_str().unwrap_or(""), out);
            }
        }
    }

    /// Words of a text that begin with the name of a Service.
    fn hosts(&self, value: &str, out: &mut BTreeSet<String>) {
        let words = value.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '.'));
        for word in words {
            let word = word.trim_matches(['.', '-']);
            let first = word.split('.').next().unwrap_or("");
            if !first.is_empty() && self.names.contains(first) {
                out.insert(word.into());
            }
        }
    }
}
