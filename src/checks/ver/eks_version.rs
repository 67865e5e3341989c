//! EKS-version: how long the chosen version is supported (eks.md 1.1; a table only as offline fall-back).

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;
use crate::spec::model::Support;
use crate::world::cloud::ClusterVersion;
use std::collections::BTreeMap;

pub(super) const CHECK: Check = Check {
    id: "EKS-version",
    severity: Severity::Warning,
    question: "How long is green's version supported?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Choose a version in standard support.",
    source: "eks.md 1.1",
    run,
};

/// Support of the chosen version (eks.md 1.1; a table only as offline fall-back).
fn run(i: &Input, r: &mut Report) {
    let read = i
        .snapshot
        .aws
        .as_ref()
        .and_then(|a| a.cluster_versions.as_ref());
    if let Some(versions) = read {
        return by_eks(i, versions, r);
    }
    match i.cx.green_minor {
        m if m < 32 => r.blocker(
            "green.version",
            format!("EKS does not offer 1.{m} any more"),
            "Choose 1.35 or 1.36.",
        ),
        m @ 32..=34 => r.warning(
            "green.version",
            format!("1.{m} is in extended support, or will be within weeks"),
            "Choose 1.35 or 1.36.",
        ),
        m if m > 36 => r.blocker(
            "green.version",
            format!("EKS does not offer 1.{m} yet"),
            "Choose 1.35 or 1.36.",
        ),
        _ => {}
    }
}

/// Days before the end of standard support in which it is said.
const SOON: i32 = 90;

/// What EKS itself says (DescribeClusterVersions).
fn by_eks(i: &Input, versions: &BTreeMap<String, ClusterVersion>, r: &mut Report) {
    let want = &i.spec.green.version;
    let minor = |v: &str| v.split_once('.').and_then(|(_, m)| m.parse::<u32>().ok());
    let mut standard: Vec<&str> = versions
        .iter()
        .filter(|(_, v)| v.status == "STANDARD_SUPPORT")
        .map(|(name, _)| name.as_str())
        .collect();
    standard.sort_by_key(|v| minor(v));
    let remedy = format!("Choose one in standard support: {}.", standard.join(", "));
    let until = |day: &Option<String>| {
        day.as_ref()
            .map_or(String::new(), |d| format!(" until {d}"))
    };
    match versions.get(want) {
        None => r.blocker(
            "green.version",
            format!("EKS does not offer {want} in this region"),
            remedy,
        ),
        Some(v) if v.status == "UNSUPPORTED" => r.blocker(
            "green.version",
            format!("EKS makes no clusters of {want} any more"),
            remedy,
        ),
        Some(v) if v.status == "EXTENDED_SUPPORT" => {
            let text = format!(
                "{want} is in extended support{}, at a higher price an hour",
                until(&v.extended_until)
            );
            match i.spec.green.control_plane.support {
                Support::Extended => r.info("green.version", text, remedy),
                // EKS would upgrade such a cluster by force.
                Support::Standard => r.warning("green.version", text, remedy),
            }
        }
        Some(v) => {
            let end = v
                .standard_until
                .as_ref()
                .and_then(|d| d.parse::<jiff::civil::Date>().ok());
            if let (Some(end), Some(today)) = (end, i.today)
                && (end - today).get_days() <= SOON
            {
                r.warning(
                    "green.version",
                    format!("standard support of {want} ends on {end}"),
                    remedy,
                );
            }
        }
    }
}
