//! Preflight checks: pure functions from snapshot and spec to findings. A check without input says so: it is never "ok".
//!
//! A family is a folder, a check a file in it with its entry (`pub(super) const CHECK: Check`), its function and nothing else; the family's
//! `mod.rs` lists them in `ALL`, [`FAMILIES`] lists the families. A finding names the object whose state is wrong, as it is spelled everywhere,
//! so that a waiver can name it too; findings of one check with one remedy are folded where people read them.

mod api;
mod cap;
mod dat;
mod dns;
mod git;
mod iam;
mod id;
pub mod ids;
pub mod image;
mod look;
mod net;
mod obs;
mod sng;
mod sto;
mod tls;
mod ver;
mod wl;
mod words;

#[cfg(test)]
mod company;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use crate::edns;
use crate::plan::fit;
use crate::plan::iam::Iam;
use crate::plan::model::{Finding, Name, Severity, Target, Verdict};
use crate::rewrite::{Context, template_path};
use crate::snapshot::model::Snapshot;
use crate::snapshot::roll::{Entry, Found};
use crate::spec::model::Spec;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An object of blue with what became of it: an [`Entry`] of the roll and its verdict.
pub struct BlueObject<'a> {
    entry: &'a Entry<'a>,
    /// Its verdict.
    pub verdict: Option<&'a Verdict>,
}

impl<'a> Deref for BlueObject<'a> {
    type Target = Entry<'a>;
    fn deref(&self) -> &Entry<'a> {
        self.entry
    }
}

impl<'a> BlueObject<'a> {
    /// Whether it is created on green.
    pub fn moves(&self) -> bool {
        self.verdict.is_some_and(|v| v.target.is_some())
    }
    /// The pod template (for a Pod the object itself): `metadata` and `spec`.
    pub fn template(&self) -> Option<&'a Value> {
        self.object.pointer(template_path(&self.id.kind)?)
    }
    /// Containers of the pod template; with `init` the init containers come first.
    pub fn containers(&self, init: bool) -> impl Iterator<Item = &'a Value> {
        let spec = self.template().and_then(|t| t.get("spec"));
        let list = move |key| {
            spec.and_then(|s| s.get(key))
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
        };
        init.then(|| list("initContainers"))
            .into_iter()
            .flatten()
            .chain(list("containers"))
    }
    /// Whether another object makes it (a Pod of a ReplicaSet, a Job of a CronJob).
    pub fn is_child(&self) -> bool {
        self.child
    }
    /// Replicas that it asks for; 1 when it does not say.
    pub fn replicas(&self) -> u64 {
        self.object
            .pointer("/spec/replicas")
            .and_then(Value::as_u64)
            .unwrap_or(1)
    }
}

/// Blue's objects beside their verdicts (sorted by object, as a plan has them), in the snapshot's order; of one given twice the first.
pub fn blue_objects<'a>(snapshot: &'a Found<'a>, verdicts: &'a [Verdict]) -> Vec<BlueObject<'a>> {
    let mut of: HashMap<&str, &Verdict> = verdicts.iter().map(|v| (v.object.as_str(), v)).collect();
    let mut seen = HashSet::new();
    snapshot
        .blue
        .entries()
        .iter()
        .filter(|e| seen.insert(e.name.as_str()))
        .map(|entry| BlueObject {
            entry,
            verdict: of.remove(entry.name.as_str()),
        })
        .collect()
}

/// What many checks ask for, made once.
#[derive(Default)]
pub struct Shared<'a> {
    /// Indexes into blue's objects, in order, by kind.
    kinds: BTreeMap<&'a str, Vec<usize>>,
    /// Pod templates of everything that green gets: object, template as green gets it.
    templates: Vec<(&'a str, &'a Value)>,
    /// The zones as the handover leaves them, and what green's ExternalDNS would do with each.
    after: Vec<dns::After<'a>>,
}

impl<'a> Shared<'a> {
    /// From blue's objects and the verdicts.
    pub fn of(blue: &'a [BlueObject<'a>], verdicts: &'a [Verdict]) -> Shared<'a> {
        let mut kinds: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (n, o) in blue.iter().enumerate() {
            kinds.entry(o.id.kind.as_str()).or_default().push(n);
        }
        Shared {
            kinds,
            templates: words::templates_of(verdicts).collect(),
            after: vec![],
        }
    }
    fn of_kind(&self, kind: &str) -> &[usize] {
        self.kinds.get(kind).map_or(&[], Vec::as_slice)
    }
}

/// Names for a sentence: all up to four, else the first three and how many more.
pub fn few<T: AsRef<str>>(names: &[T]) -> String {
    let shown = if names.len() > 4 { 3 } else { names.len() };
    let text = names[..shown]
        .iter()
        .map(T::as_ref)
        .collect::<Vec<_>>()
        .join(", ");
    match names.len() - shown {
        0 => text,
        n => format!("{text} and {n} more"),
    }
}

/// What a check may look at.
pub struct Input<'a> {
    /// The spec, defaults filled in.
    pub spec: &'a Spec,
    /// What was found.
    pub snapshot: &'a Found<'a>,
    /// What green will be.
    pub target: &'a Target,
    /// Names that are handed over.
    pub names: &'a [Name],
    /// Blue's ExternalDNS instances by object.
    pub instances: &'a [(String, edns::Config)],
    /// Verdicts on blue's objects.
    pub verdicts: &'a [Verdict],
    /// Blue's objects, each beside its verdict.
    pub blue: &'a [BlueObject<'a>],
    /// The same by kind, and what else is made once.
    pub shared: Shared<'a>,
    /// Objects that only green has.
    pub generated: &'a [Value],
    /// What the rewrite knew.
    pub cx: &'a Context,
    /// What green must carry, and its nodes.
    pub load: &'a fit::Load,
    /// Addresses needed and there.
    pub network: &'a fit::NetworkFit,
    /// AWS rights of blue, and what becomes of them.
    pub iam: &'a Iam,
    /// Day of the snapshot: the only clock of a plan.
    pub today: Option<jiff::civil::Date>,
}

/// A check: one file, one line in its family's list.
pub struct Check {
    /// Stable id, as in `DNS-01`.
    pub id: &'static str,
    /// Severity of its findings unless the check says otherwise for one.
    pub severity: Severity,
    /// What it asks, one sentence that ends in `?`.
    pub question: &'static str,
    /// What it must be able to read. What is missing becomes a finding "not checked" with how to give it, and the check does not run.
    pub needs: &'static [Need],
    /// Who answers it.
    pub answered: Answered,
    /// What to do about a finding, one sentence.
    pub remedy: &'static str,
    /// Where the rule comes from, as in `checks.md DNS-01`.
    pub source: &'static str,
    /// The check itself.
    pub run: fn(&Input, &mut Report),
}

/// Who can answer a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    /// The planner, from the snapshot.
    Plan,
    /// The run: the named step kind asks again, or for the first time, right before or after it acts.
    Run(&'static str),
    /// Only a person: something outside of every API that crossfade reads. The finding says what to look at; a waiver with a reason answers it.
    Person,
}

/// Data that a check needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Blue's objects.
    Blue,
    /// Blue's objects with status, read live (a dump without Pods says nothing about what runs).
    Live,
    /// The kops Cluster document.
    Kops,
    /// The AWS inventory.
    Aws,
    /// A part of the inventory that may be missing by itself.
    Part(Part),
    /// Hosted zones with records.
    Zones,
    /// Green's API server.
    Green,
    /// The day on which the snapshot was taken.
    Day,
}

/// Parts of the inventory that may not have been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Customer managed policies.
    Policies,
    /// NAT gateways.
    NatGateways,
    /// Route tables.
    RouteTables,
    /// EBS volumes.
    Volumes,
    /// Auto scaling groups.
    AutoScalingGroups,
    /// Load balancers.
    LoadBalancers,
    /// Zones in which instance types are offered.
    Offerings,
    /// Service quotas.
    Quotas,
}

impl Need {
    /// Whether the snapshot has it.
    fn met(self, s: &Snapshot) -> bool {
        let part =
            |has: fn(&crate::world::cloud::Inventory) -> bool| s.aws.as_ref().is_some_and(has);
        match self {
            Need::Blue => !s.blue.objects.is_empty(),
            Need::Live => s.blue.of_kind("Pod").next().is_some(),
            Need::Kops => s.kops.cluster.is_some(),
            Need::Aws => s.aws.is_some(),
            Need::Zones => !s.zones.is_empty(),
            Need::Green => s.green.is_some(),
            Need::Day => s.taken.is_some(),
            Need::Part(Part::Policies) => part(|a| a.policies.is_some()),
            Need::Part(Part::NatGateways) => part(|a| a.nat_gateways.is_some()),
            Need::Part(Part::RouteTables) => part(|a| a.route_tables.is_some()),
            Need::Part(Part::Volumes) => part(|a| a.volumes.is_some()),
            Need::Part(Part::AutoScalingGroups) => part(|a| a.auto_scaling_groups.is_some()),
            Need::Part(Part::LoadBalancers) => part(|a| a.load_balancers.is_some()),
            Need::Part(Part::Offerings) => part(|a| a.offerings.is_some()),
            Need::Part(Part::Quotas) => part(|a| a.quotas.is_some()),
        }
    }
    /// Short name, for lists.
    pub fn title(self) -> &'static str {
        match self {
            Need::Blue => "blue's objects",
            Need::Live => "blue's running pods",
            Need::Kops => "the kops cluster",
            Need::Aws => "the AWS account",
            Need::Zones => "hosted zones",
            Need::Green => "green's API server",
            Need::Day => "the day of the snapshot",
            Need::Part(Part::Policies) => "customer managed policies",
            Need::Part(Part::NatGateways) => "NAT gateways",
            Need::Part(Part::RouteTables) => "route tables",
            Need::Part(Part::Volumes) => "EBS volumes",
            Need::Part(Part::AutoScalingGroups) => "auto scaling groups",
            Need::Part(Part::LoadBalancers) => "load balancers",
            Need::Part(Part::Offerings) => "offerings of instance types",
            Need::Part(Part::Quotas) => "service quotas",
        }
    }
    /// (what was missing, how to give it)
    pub fn words(self) -> (&'static str, &'static str) {
        match self {
            Need::Blue => (
                "blue's objects were not read",
                "Run discover with blue's kubeconfig, or give a `kubectl get -o yaml` dump of all kinds.",
            ),
            Need::Live => (
                "blue's Pods were not read",
                "Run discover with blue's kubeconfig, or add `kubectl get pods -A -o yaml` to the files.",
            ),
            Need::Kops => (
                "the kops Cluster document was not read",
                "Run discover with the state store, or give the output of `kops get all NAME -o yaml`.",
            ),
            Need::Aws => (
                "the AWS account was not read",
                "Run discover with AWS credentials, or add the output of the AWS CLI to the files.",
            ),
            Need::Zones => (
                "no hosted zone was read",
                "Run discover with AWS credentials, or add `aws route53 list-resource-record-sets` output to the files.",
            ),
            Need::Green => (
                "green's API server was not read: it does not exist yet, or was not reachable",
                "Ask again with `crossfade plan` when green stands.",
            ),
            Need::Day => (
                "the snapshot does not say on which day it was taken",
                "Run discover again.",
            ),
            Need::Part(Part::Policies) => (
                "customer managed policies were not read",
                "Run discover with AWS credentials, or add `aws iam get-account-authorization-details` output to the files.",
            ),
            Need::Part(Part::NatGateways) => (
                "NAT gateways were not read",
                "Run discover with AWS credentials, or add `aws ec2 describe-nat-gateways` output to the files.",
            ),
            Need::Part(Part::RouteTables) => (
                "route tables were not read",
                "Run discover with AWS credentials, or add `aws ec2 describe-route-tables` output to the files.",
            ),
            Need::Part(Part::Volumes) => (
                "EBS volumes were not read",
                "Run discover with AWS credentials, or add `aws ec2 describe-volumes` output to the files.",
            ),
            Need::Part(Part::AutoScalingGroups) => (
                "auto scaling groups were not read",
                "Add `aws autoscaling describe-auto-scaling-groups` output to the files of discover.",
            ),
            Need::Part(Part::LoadBalancers) => (
                "load balancers were not read",
                "Add `aws elbv2 describe-load-balancers` and `aws elb describe-load-balancers` output to the files of discover.",
            ),
            Need::Part(Part::Offerings) => (
                "offerings of instance types were not read",
                "Run discover with AWS credentials, or add `aws ec2 describe-instance-type-offerings --location-type availability-zone` output to the files.",
            ),
            Need::Part(Part::Quotas) => (
                "service quotas were not read",
                "Add `aws service-quotas list-service-quotas --service-code SERVICE` output (ec2, vpc, eks, elasticloadbalancing, iam) to the files of discover.",
            ),
        }
    }
}

/// The families, one a line: each is a folder with a file for each of its checks.
#[rustfmt::skip]
const FAMILIES: &[&[Check]] = &[
    id::ALL,
    iam::ALL,
    ver::ALL,
    api::ALL,
    wl::ALL,
    git::ALL,
    cap::ALL,
    net::ALL,
    dns::ALL,
    tls::ALL,
    sto::ALL,
    dat::ALL,
    obs::ALL,
    sng::ALL,
];

/// Every check, family by family.
pub fn all() -> impl Iterator<Item = &'static Check> {
    FAMILIES.iter().copied().flatten()
}

/// The entry of an id.
pub fn find(id: &str) -> Option<&'static Check> {
    all().find(|c| c.id == id)
}

impl<'a> Input<'a> {
    /// Objects of these kinds that are created on green and that no other object makes.
    pub fn moving(&self, kinds: &[&str]) -> impl Iterator<Item = &'a BlueObject<'a>> {
        // In the snapshot's order, whichever kinds are asked for.
        let mut all: Vec<usize> = kinds
            .iter()
            .flat_map(|k| self.shared.of_kind(k).iter().copied())
            .collect();
        all.sort_unstable();
        let blue = self.blue;
        all.into_iter()
            .map(|n| &blue[n])
            .filter(|o| o.moves() && !o.is_child())
    }
}

/// Kinds that keep pods running.
pub const RUNNING: &[&str] = &["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"];

/// Collects findings of one check.
pub struct Report {
    check: &'static Check,
    findings: Vec<Finding>,
}

impl Report {
    fn say(
        &mut self,
        severity: Severity,
        object: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.findings.push(Finding {
            id: self.check.id.into(),
            severity,
            object: object.into(),
            message: message.into(),
            remedy: remedy.into(),
            source: self.check.source.into(),
            waived: None,
        });
    }
    /// A finding with the severity and remedy of the check.
    fn found(&mut self, object: impl Into<String>, message: impl Into<String>) {
        self.say(self.check.severity, object, message, self.check.remedy);
    }
    fn blocker(
        &mut self,
        object: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.say(Severity::Blocker, object, message, remedy);
    }
    fn warning(
        &mut self,
        object: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.say(Severity::Warning, object, message, remedy);
    }
    fn info(
        &mut self,
        object: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.say(Severity::Info, object, message, remedy);
    }
    /// For checks that the run or a person answers: what to look at. Said once, and only where this cluster gives reason to ask.
    fn ask(&mut self, object: impl Into<String>, what: impl std::fmt::Display) {
        let (message, how) = match self.check.answered {
            Answered::Plan => (format!("not checked: {what}"), String::new()),
            Answered::Run(step) => (
                format!("not checked by a plan: {what}"),
                format!(" The run asks it (step {step})."),
            ),
            Answered::Person => (
                format!("a person must answer: {what}"),
                format!(
                    " Answer in migration.yaml: `waivers: [{{check: {}, reason: ...}}]`.",
                    self.check.id
                ),
            ),
        };
        self.say(
            Severity::NotChecked,
            object,
            message,
            format!("{}{how}", self.check.remedy),
        );
    }
    /// The input of the check is missing: neither good nor bad.
    fn not_checked(&mut self, object: impl Into<String>, what: &str, remedy: impl Into<String>) {
        self.say(
            Severity::NotChecked,
            object,
            format!("not checked: {what}"),
            remedy,
        );
    }
}

/// Runs every check.
pub fn run(mut input: Input) -> Vec<Finding> {
    input.shared.after = dns::dry_run(&input);
    let checks: Vec<&'static Check> = all().collect();
    let threads = match std::thread::available_parallelism() {
        // A thread costs more than a small company's checks.
        Ok(n) if input.blue.len() > 2000 => n.get().min(8),
        _ => 1,
    };
    // Each checks by itself, so the order in which they end says nothing: findings come in the order of the list.
    let next = AtomicUsize::new(0);
    let one = || {
        let mut done = vec![];
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            let Some(check) = checks.get(n).copied() else {
                return done;
            };
            done.push((n, answer(check, &input)));
        }
    };
    let mut done: BTreeMap<usize, Vec<Finding>> = BTreeMap::new();
    std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..threads).map(|_| scope.spawn(one)).collect();
        done.extend(one());
        for helper in helpers {
            match helper.join() {
                Ok(findings) => done.extend(findings),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    done.into_values().flatten().collect()
}

/// What one check says.
fn answer(check: &'static Check, input: &Input) -> Vec<Finding> {
    let mut report = Report {
        check,
        findings: vec![],
    };
    let missing: Vec<Need> = check
        .needs
        .iter()
        .copied()
        .filter(|n| !n.met(input.snapshot))
        .collect();
    for need in &missing {
        let (what, how) = need.words();
        report.not_checked(check.id, what, how);
    }
    if missing.is_empty() {
        (check.run)(input, &mut report);
    }
    report.findings
}
