//! ID-09: blue's own backups and state, which must outlive the migration.

use crate::checks::few;
use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) const CHECK: Check = Check {
    id: "ID-09",
    severity: Severity::Blocker,
    question: "Would a lifecycle rule or a clean-up job delete what the way back needs?",
    needs: &[],
    answered: Answered::Person,
    remedy: "Suspend the rule until finalize.",
    source: "checks.md ID-09",
    run,
};

/// Days of etcd backups below which a migration with its soak may outlive them.
const FEW_DAYS: u64 = 14;

fn run(i: &Input, r: &mut Report) {
    let mut places = BTreeSet::new();
    places.extend(
        i.spec
            .blue
            .state_store
            .clone()
            .filter(|s| s.starts_with("s3://")),
    );
    if let Some(c) = &i.snapshot.kops.cluster {
        for p in ["/spec/configBase", "/spec/configStore/base"] {
            places.extend(c.pointer(p).and_then(Value::as_str).map(String::from));
        }
        for e in c
            .pointer("/spec/etcdClusters")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let name = e["name"].as_str().unwrap_or("?");
            places.extend(
                e.pointer("/backups/backupStore")
                    .and_then(Value::as_str)
                    .map(String::from),
            );
            // etcd-manager deletes its own backups after this many days; 90 when the field is absent (kops docs, etcd backups).
            if let Some(days) = e
                .pointer("/manager/backupRetentionDays")
                .and_then(Value::as_u64)
                .filter(|d| *d < FEW_DAYS)
            {
                r.warning(
                    format!("kops/spec.etcdClusters.{name}"),
                    format!("keeps backups of etcd for {days} days only: blue's own backup may be gone while the way back is still open"),
                    "Raise manager.backupRetentionDays until finalize.",
                );
            }
        }
    }
    let buckets: Vec<String> = places.into_iter().collect();
    if !buckets.is_empty() {
        r.ask(
            "state store",
            format!(
                "do lifecycle rules or clean-up jobs delete from {}? (`aws s3api get-bucket-lifecycle-configuration`)",
                few(&buckets)
            ),
        );
    }
}
