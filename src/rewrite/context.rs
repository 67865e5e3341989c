//! What the rules know besides the object: the spec, the rest of blue, what green will be.

use super::work::{items, template_path, text};
use super::workloads::SINGLETON;
use crate::edns;
use crate::object::{ObjectId, annotation, label};
use crate::snapshot::model::Snapshot;
use crate::snapshot::roll::{Entry, Found};
use crate::spec::model::Spec;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// Label of the Secrets that hold the private keys of sealed-secrets (rule 42).
pub(super) const SEALING_KEY: &str = "sealedsecrets.bitnami.com/sealed-secrets-key";

/// Everything a rule may look at. Built once a plan; public fields may be filled in by the planner.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// Minor version of green, as in 36.
    pub green_minor: u32,
    /// Green's name.
    pub green_name: String,
    /// Region of green.
    pub region: String,
    /// AWS account, when known.
    pub account: Option<String>,
    /// Name of the kops cluster.
    pub blue_cluster: String,
    /// Green has IPv4 services only.
    pub green_ipv4_only: bool,
    /// TTL while the cutover lasts, seconds.
    pub low_ttl: u32,
    /// Objects (`ingress/ns/name`) whose TTL annotation carries the low TTL on green.
    pub lowered: BTreeSet<String>,
    /// Annotation prefix that blue's ExternalDNS reads.
    pub blue_prefix: String,
    /// Annotation prefix that green's reads.
    pub green_prefix: String,
    /// `spec.workloads.singletons`.
    pub singletons: BTreeSet<String>,
    /// `spec.workloads.skip`.
    pub skip: Vec<String>,
    /// `spec.workloads.replace`, longest first.
    pub replacements: Vec<(String, String)>,
    /// Objects that green has its own instead of, with the rule that says so.
    pub replaced: BTreeMap<String, String>,
    /// AWS role names or ARNs that pods ask for, by `namespace/serviceaccount` (kube2iam, kiam).
    pub pod_roles: BTreeMap<String, BTreeSet<String>>,
    /// Role ARN of each service account that needs one.
    pub sa_roles: BTreeMap<String, String>,
    /// Those of them that come to it by Pod Identity, not by an annotation.
    pub pod_identity: BTreeSet<String>,
    /// Service accounts whose pods need different roles.
    pub sa_conflicts: BTreeSet<String>,
    /// Value of the label that stands in for `kops.k8s.io/instancegroup` on green, by instance group that becomes a node group.
    pub node_groups: BTreeMap<String, String>,
    /// Label keys that EKS refuses, and the keys that stand in for them on green.
    pub label_keys: BTreeMap<String, String>,
    /// Labels that green's node groups carry; empty when not known.
    pub node_labels: BTreeSet<(String, String)>,
    /// Zones in which green has nodes; empty when not known.
    pub zones: BTreeSet<String>,
    /// `true`: the Service has a selector.
    pub services: BTreeMap<String, bool>,
    /// Custom kinds of blue: (group, kind) to the CRD's name.
    pub crds: BTreeMap<(String, String), String>,
    /// Versions in which blue's CRDs serve custom kinds, by (group, kind).
    pub served: BTreeMap<(String, String), BTreeSet<String>>,
    /// What each of Helm's records is to its release, by object.
    pub releases: BTreeMap<String, super::helm::Place>,
    /// Host names that blue's ExternalDNS keeps.
    pub owned_hosts: BTreeSet<String>,
    /// Groups and users that green's access entries give.
    pub known_groups: BTreeSet<String>,
    /// Roles that only grant a PodSecurityPolicy.
    pub psp_roles: BTreeSet<String>,
    /// Service accounts that no workload uses (besides `default`).
    pub outside_accounts: BTreeSet<String>,
    /// Accounts of controllers.
    pub controller_accounts: BTreeSet<String>,
    /// Replicas by (namespace, matchLabels as JSON).
    pub replicas_by_labels: BTreeMap<(String, String), u64>,
    /// `group/version` of APIs that another server than blue's own keeps and that green does not serve (replay.md 1).
    pub aggregated: BTreeSet<String>,
    /// (port, protocol) of node ports that green has given already, with the Service.
    pub green_node_ports: BTreeMap<(u64, String), String>,
    /// Init containers that speak of a job: namespace, workload, words of the command.
    pub job_waiters: Vec<(String, String, Vec<String>)>,
    /// Keys of sealed-secrets on blue.
    pub sealing_keys: usize,
    pub(super) owners: super::owners::Owners,
    /// PersistentVolumes that come along, and whether several nodes of both sides can mount them at once (NFS, EFS).
    pub volumes: BTreeMap<String, bool>,
    /// Volume of each bound claim, by `namespace/name`.
    pub claims: BTreeMap<String, String>,
    blue_ranges: Vec<(u32, u32)>,
    load_balancers: BTreeSet<String>,
}

impl Context {
    /// From the spec and the snapshot; what only the planner knows (node groups, zones, lowered names, generated objects) is filled in by it.
    pub fn new(spec: &Spec, snapshot: &Found) -> Context {
        let mut cx = Context {
            green_minor: super::served_by(&spec.green.version),
            green_name: spec.green.name.clone(),
            account: spec
                .aws
                .account
                .clone()
                .or_else(|| snapshot.aws.as_ref().map(|a| a.identity.account.clone())),
            region: spec
                .aws
                .region
                .clone()
                .or_else(|| snapshot.aws.as_ref().map(|a| a.identity.region.clone()))
                .unwrap_or_default(),
            blue_cluster: spec.blue.cluster.clone(),
            green_ipv4_only: true,
            low_ttl: spec.dns.low_ttl,
            blue_prefix: "external-dns.alpha.kubernetes.io/".into(),
            green_prefix: "external-dns.alpha.kubernetes.io/".into(),
            singletons: spec.workloads.singletons.iter().cloned().collect(),
            skip: spec.workloads.skip.clone(),
            known_groups: spec
                .green
                .access
                .iter()
                .flat_map(|a| a.groups.clone())
                .collect(),
            controller_accounts: super::accounts::CONTROLLER_ACCOUNTS
                .iter()
                .map(|s| s.to_string())
                .collect(),
            ..Context::default()
        };
        let mut replace: Vec<(String, String)> =
            spec.workloads.replace.clone().into_iter().collect();
        replace.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then(a.0.cmp(&b.0)));
        cx.replacements = replace;
        cx.ranges(snapshot);
        cx.owners = super::owners::Owners::of(snapshot.blue.entries());
        cx.index(snapshot);
        cx.green(snapshot);
        cx.roles(snapshot);
        cx
    }

    fn ranges(&mut self, snapshot: &Snapshot) {
        let Some(c) = &snapshot.kops.cluster else {
            return;
        };
        let get = |p: &str| c.pointer(p).and_then(Value::as_str);
        let network = get("/spec/networkCIDR").or(get("/spec/networking/networkCIDR"));
        let non_masq = get("/spec/nonMasqueradeCIDR").or(get("/spec/networking/nonMasqueradeCIDR"));
        for cidr in [
            Some(non_masq.unwrap_or("100.64.0.0/10")),
            get("/spec/serviceClusterIPRange"),
            get("/spec/podCIDR"),
            get("/spec/networking/podCIDR"),
        ]
        .into_iter()
        .flatten()
        {
            // With the VPC CNI pods have addresses of the VPC: those stay good.
            if Some(cidr) != network
                && let Some(r) = range(cidr)
            {
                self.blue_ranges.push(r);
            }
        }
    }

    fn index(&mut self, snapshot: &Found) {
        let mut used_accounts = BTreeSet::new();
        let mut accounts = BTreeSet::new();
        for Entry { id, object, .. } in snapshot.blue.entries() {
            let o = *object;
            let ns = id.namespace.clone().unwrap_or_default();
            if annotation(o, SINGLETON) == Some("true") {
                self.singletons.insert(id.to_string());
            }
            if let Some(t) = template_path(&id.kind) {
                self.waits_for_jobs(o, t, &ns, id);
                let sa = text(o, &format!("{t}/spec/serviceAccountName")).unwrap_or("default");
                used_accounts.insert(format!("{ns}/{sa}"));
            }
            match id.kind.as_str() {
                "Service" => {
                    let selector = o
                        .pointer("/spec/selector")
                        .and_then(Value::as_object)
                        .is_some_and(|s| !s.is_empty());
                    self.services.insert(format!("{ns}/{}", id.name), selector);
                    for lb in items(o, "/status/loadBalancer/ingress") {
                        self.load_balancers
                            .extend(lb["hostname"].as_str().map(|h| h.to_lowercase()));
                    }
                }
                "APIService" if o.pointer("/spec/service").is_some_and(|s| !s.is_null()) => {
                    if let (Some(g), Some(v)) = (text(o, "/spec/group"), text(o, "/spec/version")) {
                        self.aggregated.insert(format!("{g}/{v}"));
                    }
                }
                "Secret" if label(o, SEALING_KEY).is_some() => self.sealing_keys += 1,
                "PersistentVolume"
                    if !self.skips(&id.to_string(), "", &id.name)
                        && !super::storage::released(o) =>
                {
                    self.volumes
                        .insert(id.name.clone(), super::storage::shared(o));
                }
                "PersistentVolumeClaim" => {
                    if let Some(volume) = text(o, "/spec/volumeName") {
                        self.claims
                            .insert(format!("{ns}/{}", id.name), volume.into());
                    }
                }
                "CustomResourceDefinition" => {
                    if let (Some(g), Some(k)) =
                        (text(o, "/spec/group"), text(o, "/spec/names/kind"))
                    {
                        self.crds.insert((g.into(), k.into()), id.name.clone());
                        // v1beta1 may name one version only, in a field of its own.
                        let served = items(o, "/spec/versions")
                            .filter(|v| v["served"] != false)
                            .filter_map(|v| v["name"].as_str())
                            .chain(
                                text(o, "/spec/version")
                                    .filter(|_| items(o, "/spec/versions").next().is_none()),
                            )
                            .map(String::from)
                            .collect();
                        // Left out by the spec: green has one of its own, which nobody has read.
                        if !self.skips(&id.to_string(), "", &id.name) {
                            self.served.insert((g.into(), k.into()), served);
                        }
                    }
                }
                "ServiceAccount" => {
                    accounts.insert(format!("{ns}/{}", id.name));
                }
                "ClusterRole" | "Role" => {
                    let psp = items(o, "/rules").next().is_some()
                        && items(o, "/rules").all(|r| {
                            items(r, "/resources").next().is_some()
                                && items(r, "/resources").all(|x| x == "podsecuritypolicies")
                        });
                    if psp {
                        self.psp_roles.insert(id.name.clone());
                    }
                }
                "Deployment" | "StatefulSet" => {
                    if let Some(l) = o.pointer("/spec/selector/matchLabels") {
                        let n = o
                            .pointer("/spec/replicas")
                            .and_then(Value::as_u64)
                            .unwrap_or(1);
                        self.replicas_by_labels.insert((ns, l.to_string()), n);
                    }
                }
                _ => {}
            }
        }
        self.outside_accounts = accounts
            .into_iter()
            .filter(|a| !used_accounts.contains(a) && !a.ends_with("/default"))
            .collect();
    }

    /// Rule 39: which service account needs which role.
    fn roles(&mut self, snapshot: &Found) {
        let mut users: BTreeMap<String, Vec<Option<String>>> = BTreeMap::new();
        for Entry {
            id, object, child, ..
        } in snapshot.blue.entries()
        {
            let o = *object;
            // Children repeat what their parents say.
            if *child {
                continue;
            }
            let Some(t) = template_path(&id.kind) else {
                continue;
            };
            let sa = text(o, &format!("{t}/spec/serviceAccountName"))
                .or(text(o, &format!("{t}/spec/serviceAccount")))
                .unwrap_or("default");
            let role = o
                .pointer(&format!("{t}/metadata/annotations"))
                .and_then(|a| a.get("iam.amazonaws.com/role"))
                .and_then(Value::as_str);
            users
                .entry(format!(
                    "{}/{sa}",
                    id.namespace.as_deref().unwrap_or_default()
                ))
                .or_default()
                .push(role.map(String::from));
        }
        for (sa, roles) in users {
            let named: BTreeSet<String> = roles.iter().flatten().cloned().collect();
            if named.is_empty() {
                continue;
            }
            self.pod_roles.insert(sa.clone(), named.clone());
            // A pod of the account that has no role would gain one: on `default` that is as wrong as two roles.
            if named.len() > 1 || sa.ends_with("/default") {
                self.sa_conflicts.insert(sa);
            } else if let Some(arn) = named.first().and_then(|r| self.role_arn(r, snapshot)) {
                self.sa_roles.insert(sa, arn);
            }
        }
    }

    /// ARN of a role named on a pod: as given, as the account lists it, or made from the account id.
    pub fn role_arn(&self, role: &str, snapshot: &Snapshot) -> Option<String> {
        if role.starts_with("arn:") {
            return Some(role.into());
        }
        let listed = snapshot
            .aws
            .iter()
            .flat_map(|a| &a.roles)
            .find(|r| r.name == role.rsplit('/').next().unwrap_or(role));
        listed.map(|r| r.arn.clone()).or_else(|| {
            let account = self.account.as_ref()?;
            Some(format!(
                "arn:{}:iam::{account}:role/{}",
                partition(&self.region),
                role.trim_start_matches('/')
            ))
        })
    }

    pub(super) fn skips(&self, id: &str, namespace: &str, name: &str) -> bool {
        self.skip
            .iter()
            .any(|s| s == id || *s == format!("{namespace}/{name}"))
    }

    /// Rule 28: who waits for a Job before it starts (`kubectl wait job/NAME`, k8s-wait-for `job NAME`).
    fn waits_for_jobs(&mut self, o: &Value, template: &str, ns: &str, id: &ObjectId) {
        let words: Vec<String> = items(o, &format!("{template}/spec/initContainers"))
            .flat_map(|c| items(c, "/command").chain(items(c, "/args")))
            .filter_map(Value::as_str)
            .flat_map(|w| {
                w.split(|c: char| c.is_whitespace() || matches!(c, '/' | '"' | '\'' | '=' | ','))
            })
            .map(String::from)
            .collect();
        let jobs = ["job", "jobs", "job.batch", "jobs.batch"];
        if words.iter().any(|w| jobs.contains(&w.as_str()))
            && items(o, "/metadata/ownerReferences").next().is_none()
        {
            self.job_waiters.push((ns.into(), id.to_string(), words));
        }
    }

    /// Whether an address belongs to blue's pods or services.
    pub fn is_blue_address(&self, ip: &str) -> bool {
        ip.parse::<Ipv4Addr>().is_ok_and(|ip| {
            self.blue_ranges
                .iter()
                .any(|(from, to)| (*from..=*to).contains(&ip.into()))
        })
    }

    /// Whether a CIDR lies in blue's pod or service range.
    pub(crate) fn is_blue_range(&self, cidr: &str) -> bool {
        range(cidr).is_some_and(|(a, b)| {
            self.blue_ranges
                .iter()
                .any(|(from, to)| *from <= a && b <= *to)
        })
    }

    /// Text with the declared replacements applied, each place once, longest first; `None` when nothing matched.
    pub(super) fn replace(&self, text: &str) -> Option<String> {
        let mut out = String::new();
        let mut rest = text;
        let mut hit = false;
        'outer: while !rest.is_empty() {
            for (from, to) in self.replacements.iter().filter(|(f, _)| !f.is_empty()) {
                if let Some(tail) = rest.strip_prefix(from.as_str()) {
                    out.push_str(to);
                    rest = tail;
                    hit = true;
                    continue 'outer;
                }
            }
            let next = rest.chars().next().map_or(0, char::len_utf8);
            out.push_str(&rest[..next]);
            rest = &rest[next..];
        }
        hit.then_some(out)
    }

    /// Words in a text that only mean something on blue (NET-06).
    pub(crate) fn blue_literals(&self, text: &str) -> Vec<String> {
        let mut out: Vec<String> = text
            .split(|c: char| !(c.is_ascii_alphanumeric() || c == '.' || c == '-'))
            .map(|w| w.trim_matches(['.', '-']))
            .filter(|w| {
                let lower = w.to_lowercase();
                self.is_blue_address(w)
                    || self.load_balancers.contains(&lower)
                    || lower.starts_with("ip-") && lower.ends_with(".compute.internal")
                    || !self.blue_cluster.is_empty()
                        && (lower == format!("api.{}", self.blue_cluster)
                            || lower.ends_with(&format!(".internal.{}", self.blue_cluster)))
            })
            .map(String::from)
            .collect();
        out.dedup();
        out
    }

    /// Once all else is known: which of Helm's records move (rule 69).
    pub fn learn_releases(&mut self, snapshot: &Snapshot) {
        self.releases = super::helm::places(snapshot, self);
    }

    /// Learns what blue's ExternalDNS instances read and own.
    pub fn learn_dns(&mut self, configs: &[(String, edns::Config)], hosts: BTreeSet<String>) {
        if let Some((_, c)) = configs.first() {
            // Green is told to read the same prefix (externaldns.md rule 9).
            self.blue_prefix = c.annotation_prefix.clone();
            self.green_prefix = c.annotation_prefix.clone();
        }
        self.owned_hosts = hosts;
    }

    /// Rules that no object of blue's needs any more because green has its own (ExternalDNS): the workload, and what only it uses.
    pub fn replace_external_dns(&mut self, snapshot: &Found, workloads: &BTreeSet<String>) {
        const RULE: &str = "externaldns.md rule 9";
        let mut accounts = BTreeSet::new();
        let mut others = BTreeSet::new();
        for Entry {
            name,
            id,
            object,
            child,
        } in snapshot.blue.entries()
        {
            let o = *object;
            let Some(t) = template_path(&id.kind) else {
                continue;
            };
            if *child {
                continue;
            }
            let sa = text(o, &format!("{t}/spec/serviceAccountName")).unwrap_or("default");
            let key = (id.namespace.clone().unwrap_or_default(), sa.to_string());
            if workloads.contains(name) {
                self.replaced.insert(name.clone(), RULE.into());
                accounts.insert(key);
            } else {
                others.insert(key);
            }
        }
        accounts.retain(|a| !others.contains(a) && a.1 != "default");
        // Green's instance has a role of its own.
        for (ns, name) in &accounts {
            let key = format!("{ns}/{name}");
            self.sa_roles.remove(&key);
            self.pod_roles.remove(&key);
            self.sa_conflicts.remove(&key);
        }
        let mut roles = BTreeSet::new();
        let mut kept_roles = BTreeSet::new();
        for Entry {
            name, id, object, ..
        } in snapshot.blue.entries()
        {
            let o = *object;
            if id.kind == "ServiceAccount"
                && accounts.contains(&(id.namespace.clone().unwrap_or_default(), id.name.clone()))
            {
                self.replaced.insert(name.clone(), RULE.into());
            }
            if !matches!(id.kind.as_str(), "ClusterRoleBinding" | "RoleBinding") {
                continue;
            }
            let only_ours = items(o, "/subjects").next().is_some()
                && items(o, "/subjects").all(|s| {
                    let ns = s["namespace"]
                        .as_str()
                        .or(id.namespace.as_deref())
                        .unwrap_or("");
                    s["kind"] == "ServiceAccount"
                        && accounts.contains(&(
                            ns.to_string(),
                            s["name"].as_str().unwrap_or("").to_string(),
                        ))
                });
            let role = (
                text(o, "/roleRef/kind").unwrap_or("").to_string(),
                text(o, "/roleRef/name").unwrap_or("").to_string(),
            );
            if only_ours {
                self.replaced.insert(name.clone(), RULE.into());
                roles.insert(role);
            } else {
                kept_roles.insert(role);
            }
        }
        for Entry {
            name, id, object, ..
        } in snapshot.blue.entries()
        {
            let o = *object;
            let role = (id.kind.clone(), id.name.clone());
            if roles.contains(&role)
                && !kept_roles.contains(&role)
                && label(o, "kubernetes.io/bootstrapping").is_none()
            {
                self.replaced.insert(name.clone(), RULE.into());
            }
        }
    }
}

/// Partition of a region.
pub(crate) fn partition(region: &str) -> &'static str {
    if region.starts_with("cn-") {
        "aws-cn"
    } else if region.starts_with("us-gov-") {
        "aws-us-gov"
    } else {
        "aws"
    }
}

/// Minor number of a version as people write it.
pub(crate) fn minor(version: &str) -> Option<u32> {
    let v = version.rsplit('/').find(|p| p.contains('.'))?;
    v.trim_start_matches('v')
        .split(['.', '-', '+'])
        .nth(1)?
        .parse()
        .ok()
}

/// First and last address of an IPv4 CIDR.
pub(crate) fn range(cidr: &str) -> Option<(u32, u32)> {
    let (ip, bits) = cidr.split_once('/')?;
    let ip: u32 = ip.parse::<Ipv4Addr>().ok()?.into();
    let bits: u32 = bits.parse().ok().filter(|b| *b <= 32)?;
    let mask = if bits == 0 {
        0
    } else {
        u32::MAX << (32 - bits)
    };
    Some((ip & mask, (ip & mask) | !mask))
}
