//! Preflight checks: pure functions from snapshot and spec to findings. A check without input says so: it is never "ok".

mod cap;
mod data;
mod dns;
mod identity;
mod net;
mod versions;
mod words;

#[cfg(test)]
mod tests;

use crate::edns;
use crate::plan::fit;
use crate::plan::model::{Finding, Name, Severity, Target, Verdict};
use crate::rewrite::Context;
use crate::snapshot::model::Snapshot;
use crate::spec::model::Spec;

/// What a check may look at.
pub struct Input<'a> {
    /// The spec, defaults filled in.
    pub spec: &'a Spec,
    /// What was found.
    pub snapshot: &'a Snapshot,
    /// What green will be.
    pub target: &'a Target,
    /// Names that are handed over.
    pub names: &'a [Name],
    /// Blue's ExternalDNS instances by object.
    pub instances: &'a [(String, edns::Config)],
    /// Verdicts on blue's objects.
    pub verdicts: &'a [Verdict],
    /// What the rewrite knew.
    pub cx: &'a Context,
    /// What green must carry, and its nodes.
    pub load: &'a fit::Load,
    /// Addresses needed and there.
    pub network: &'a fit::NetworkFit,
    /// Day of the snapshot: the only clock of a plan.
    pub today: Option<jiff::civil::Date>,
}

/// Checks of the first plan, until each has its own file.
const FOUNDERS: &[Check] = &[
    Check {
        id: "READ-01",
        severity: Severity::NotChecked,
        question: "Was everything read that a plan needs?",
        needs: &[],
        answered: Answered::Plan,
        remedy: "Read what is missing.",
        source: "DESIGN 5.4",
        run: identity::everything_was_read,
    },
    Check {
        id: "ID-02",
        severity: Severity::Blocker,
        question: "Differs from plan?",
        needs: &[],
        answered: Answered::Plan,
        remedy: "Switch identity, re-plan.",
        source: "checks.md ID-02",
        run: identity::account_and_region,
    },
    Check {
        id: "ID-03",
        severity: Severity::Blocker,
        question: "Zone is not the one resolvers are sent to?",
        needs: &[],
        answered: Answered::Plan,
        remedy: "Fix id or delegation.",
        source: "checks.md ID-03",
        run: identity::zones_are_public,
    },
    Check {
        id: "ID-01",
        severity: Severity::Blocker,
        question: "Differs from the pinned plan, or blue = green?",
        needs: &[],
        answered: Answered::Plan,
        remedy: "Re-pin with an explicit command.",
        source: "checks.md ID-01",
        run: identity::green_is_not_blue,
    },
    Check {
        id: "IAM-03",
        severity: Severity::Blocker,
        question: "Green's issuer/subject missing, or policy size limit reached by listing both?",
        needs: &[],
        answered: Answered::Plan,
        remedy: "Add, keep blue.",
        source: "checks.md IAM-03",
        run: identity::roles_exist_and_fit,
    },
    Check {
        id: "VER-01",
        severity: Severity::Warning,
        question: "More than 3 minors apart?",
        needs: &[],
        answered: Answered::Plan,
        remedy: "Read and confirm each.",
        source: "checks.md VER-01",
        run: versions::minors_apart,
    },
    Check {
        id: "VER-05",
        severity: Severity::Blocker,
        question: "Not available on a managed control plane?",
        needs: &[],
        answered: Answered::Plan,
        remedy: "Replace X.",
        source: "checks.md VER-05",
        run: versions::control_plane_settings,
    },
    Check {
        id: "EKS-version",
        severity: Severity::Warning,
        question: "How long is green's version supported?",
        needs: &[],
        answered: Answered::Plan,
        remedy: "Choose a version in standard support.",
        source: "eks.md 1.1",
        run: versions::support,
    },
    Check {
        id: "DNS-01",
        severity: Severity::Blocker,
        question: "Owner id missing, `default`, or equal?",
        needs: &[],
        answered: Answered::Plan,
        remedy: "Set ids first.",
        source: "checks.md DNS-01",
        run: dns::owners,
    },
    Check {
        id: "DNS-05",
        severity: Severity::Blocker,
        question: "Annotation prefix, TXT name format or policy default differ?",
        needs: &[],
        answered: Answered::Plan,
        remedy: "Set prefix, format, policy.",
        source: "checks.md DNS-05",
        run: dns::formats,
    },
    Check {
        id: "DNS-08",
        severity: Severity::Warning,
        question: "TTL annotation on an alias record?",
        needs: &[],
        answered: Answered::Plan,
        remedy: "Plan with the real TTL.",
        source: "checks.md DNS-08",
        run: dns::ttl_on_alias,
    },
    Check {
        id: "DNS-10",
        severity: Severity::Warning,
        question: "Over 1000 records or 32 000 characters, or n calls at 5/s exceed the window?",
        needs: &[],
        answered: Answered::Plan,
        remedy: "Split, pause other writers.",
        source: "checks.md DNS-10",
        run: dns::batches,
    },
    Check {
        id: "DNS-11",
        severity: Severity::Warning,
        question: "Other writers in the same zone?",
        needs: &[],
        answered: Answered::Plan,
        remedy: "Pause or scope.",
        source: "checks.md DNS-11",
        run: dns::other_writers,
    },
    Check {
        id: "DNS-12",
        severity: Severity::Blocker,
        question: "Stop is not durable (self-heal, replicas unset, add-on manager)?",
        needs: &[],
        answered: Answered::Plan,
        remedy: "Pause its manager.",
        source: "checks.md DNS-12",
        run: dns::stop_is_durable,
    },
    Check {
        id: "DAT-03",
        severity: Severity::Blocker,
        question: "Store without a comparison (counts, hashes, offsets)?",
        needs: &[],
        answered: Answered::Plan,
        remedy: "Define one.",
        source: "checks.md DAT-03",
        run: data::sets_are_declared,
    },
    Check {
        id: "SNG-01",
        severity: Severity::Blocker,
        question: "Active on both, or unrecorded original state?",
        needs: &[],
        answered: Answered::Plan,
        remedy: "Suspend one side.",
        source: "checks.md SNG-01",
        run: data::singletons,
    },
];

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

/// Every check, family by family.
pub fn all() -> impl Iterator<Item = &'static Check> {
    [FOUNDERS, cap::CHECKS, net::CHECKS].into_iter().flatten()
}

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
    #[allow(dead_code)]
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
pub fn run(input: &Input) -> Vec<Finding> {
    all()
        .flat_map(|check| {
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
        })
        .collect()
}
