//! STO-06: a volume from a snapshot is filled from S3 as it is read: 130 MB/s for gp3 (practice.md 5).

use super::volumes::{self, EBS, Source, gib};
use crate::checks::look::count;
use crate::checks::{Answered, Check, Input, Need, Report, few};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "STO-06",
    severity: Severity::Warning,
    question: "Does filling volumes from snapshots take longer than writes may be closed?",
    needs: &[Need::Blue],
    answered: Answered::Plan,
    remedy: "Re-attach the volumes in their zone instead, fill ahead (fast snapshot restore, a paid initialization rate), or use a faster type.",
    source: "checks.md STO-06",
    run,
};

/// Bytes a second at which a gp3 volume fills from its snapshot.
const RATE: u64 = 130_000_000;

fn run(i: &Input, r: &mut Report) {
    let window = u64::from(i.spec.limits.write_closed_seconds);
    let mut slow: Vec<(u64, &str)> = volumes::all(i)
        .into_iter()
        .filter(|v| v.object.moves() && matches!(&v.source, Source::Csi(d, _) if d == EBS))
        .map(|v| (v.size, v.object.name.as_str()))
        .filter(|(size, _)| size / RATE > window)
        .collect();
    slow.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    if let Some((largest, first)) = slow.first() {
        let names: Vec<String> = slow
            .iter()
            .map(|(s, n)| format!("{n} ({} GiB)", gib(*s)))
            .collect();
        let minutes = largest / RATE / 60;
        r.found(
            *first,
            format!("{} would read slowly for up to {} h {} min if made from snapshots, writes may be closed for {window} s: {}", count(slow.len(), "volume"), minutes / 60, minutes % 60, few(&names)),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::Warning;
    use crate::snapshot::model::Snapshot;
    use serde_json::json;

    fn volume(size: &str) -> Snapshot {
        with(vec![object(
            "v1",
            "PersistentVolume",
            "pv-1",
            json!({"spec": {"capacity": {"storage": size}, "awsElasticBlockStore": {"volumeID": "vol-1"}}}),
        )])
    }

    #[test]
    fn a_tebibyte_fills_for_hours_and_a_small_volume_within_the_window() {
        // 1 TiB at 130 MB/s: 8457 s.
        fires(&spec(), &volume("1Ti"), "STO-06", Warning, "2 h 20 min");
        // 30 GiB: 247 s, the window is 300 s.
        silent(&spec(), &volume("30Gi"), "STO-06");
    }
}
