//! DAT-06: stores with a quorum write their cluster's id and their members' addresses on disk: a disk under another member refuses or loses
//! data (S31). They move by their own snapshots or by joining, never by disks.

use super::stores::stores;
use crate::checks::look::count;
use crate::checks::{Answered, Check, Input, Need, Report, few};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "DAT-06",
    severity: Severity::Blocker,
    question: "Would disks move under a store that pins its cluster's identity?",
    needs: &[Need::Blue],
    answered: Answered::Plan,
    remedy: "Move it by its own snapshot and restore, or by replication, and list its claims under workloads.skip.",
    source: "checks.md DAT-06",
    run,
};

/// Images of such stores: the last part of the name, or a word of it.
const QUORUM: &[&str] = &[
    "cassandra",
    "cockroach",
    "consul",
    "couchbase",
    "elasticsearch",
    "etcd",
    "kafka",
    "mongo",
    "mongodb",
    "opensearch",
    "rabbitmq",
    "redpanda",
    "scylla",
    "solr",
    "zookeeper",
];

fn run(i: &Input, r: &mut Report) {
    let claims: Vec<(String, bool)> = i
        .of_kind("PersistentVolumeClaim")
        .map(|o| (o.key(), o.moves()))
        .collect();
    let mut disks: Vec<&str> = vec![];
    for s in stores(i) {
        let pinned = s
            .object
            .images()
            .iter()
            .any(|x| x.split(['-', '_']).any(|w| QUORUM.contains(&w)));
        // Claims that are skipped stay on blue: no disk moves. Without any claim in the snapshot they were not read, and would move.
        let moved = claims.is_empty()
            || claims
                .iter()
                .any(|(key, moves)| *moves && s.claims.iter().any(|c| key.starts_with(c.as_str())));
        if pinned && moved {
            disks.push(&s.object.name);
        }
    }
    if !disks.is_empty() {
        r.found(
            disks[0],
            format!("{} that keep their cluster's identity on disk: {}; a disk swap is refused by them or loses data", count(disks.len(), "store"), few(&disks)),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::Blocker;
    use crate::snapshot::model::Snapshot;
    use serde_json::json;

    fn store(image: &str) -> Snapshot {
        let mut set = workload("StatefulSet", "search", image, json!({}));
        set["spec"]["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}]);
        with(vec![
            set,
            object(
                "v1",
                "PersistentVolumeClaim",
                "data-search-0",
                json!({"spec": {"resources": {"requests": {"storage": "1Gi"}}}}),
            ),
        ])
    }

    #[test]
    fn the_disks_of_elasticsearch_do_not_move() {
        let s = store("docker.elastic.co/elasticsearch/elasticsearch:7.10.2");
        fires(&spec(), &s, "DAT-06", Blocker, "statefulset/web/search");
        let mut skip = spec();
        skip.workloads.skip = vec!["persistentvolumeclaim/web/data-search-0".into()];
        silent(&skip, &s, "DAT-06");
    }

    #[test]
    fn a_single_database_and_a_quorum_store_without_disks_are_fine() {
        silent(&spec(), &store("postgres:13"), "DAT-06");
        silent(
            &spec(),
            &with(vec![workload(
                "Deployment",
                "etcd",
                "quay.io/coreos/etcd:v3.5",
                json!({}),
            )]),
            "DAT-06",
        );
    }
}
