//! Preflight checks: pure functions from snapshot and spec to findings. A check without input says so: it is never "ok".

mod capacity;
mod data;
mod dns;
mod identity;
mod network;
mod versions;

#[cfg(test)]
mod tests;

use crate::edns;
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
}

/// A check.
type Check = fn(&Input, &mut Report);

/// All checks, one line each.
const CHECKS: &[(&str, Check)] = &[
    ("READ-01", identity::everything_was_read),
    ("ID-02", identity::account_and_region),
    ("ID-03", identity::zones_are_public),
    ("ID-01", identity::green_is_not_blue),
    ("IAM-03", identity::roles_exist_and_fit),
    ("VER-01", versions::minors_apart),
    ("VER-05", versions::control_plane_settings),
    ("EKS-version", versions::support),
    ("CAP-03", capacity::requests_fit),
    ("CAP-04", capacity::subnets_have_addresses),
    ("CAP-07", capacity::one_instance_type),
    ("NET-01", network::service_range),
    ("NET-02", network::security_groups),
    ("NET-12", network::endpoint_mode),
    ("DNS-01", dns::owners),
    ("DNS-05", dns::formats),
    ("DNS-08", dns::ttl_on_alias),
    ("DNS-10", dns::batches),
    ("DNS-11", dns::other_writers),
    ("DNS-12", dns::stop_is_durable),
    ("DAT-03", data::sets_are_declared),
    ("SNG-01", data::singletons),
];

/// Collects findings of one check.
pub struct Report {
    id: &'static str,
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
            id: self.id.into(),
            severity,
            object: object.into(),
            message: message.into(),
            remedy: remedy.into(),
            source: match self.id {
                // Not in the catalogue: a fact about EKS itself.
                "EKS-version" => "eks.md 1.1".into(),
                "READ-01" => "DESIGN 5.4".into(),
                id => format!("checks.md {id}"),
            },
        });
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
    CHECKS
        .iter()
        .flat_map(|(id, check)| {
            let mut report = Report {
                id,
                findings: vec![],
            };
            check(input, &mut report);
            report.findings
        })
        .collect()
}
