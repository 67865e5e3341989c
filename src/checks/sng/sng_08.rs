//! SNG-08: locks in shared stores. Leases, and locks in Endpoints or ConfigMaps, are never copied (replay.md 22, 23): each cluster elects by itself there.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;
use serde_json::Value;

pub(super) const CHECK: Check = Check {
    id: "SNG-08",
    severity: Severity::Warning,
    question: "Do both sides elect one leader in one shared place?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Let each side elect by itself, or use it on purpose and know which side leads.",
    source: "checks.md SNG-08",
    run,
};

/// Parts of names of variables and arguments that point at a lock outside of the cluster.
const LOCKS: &[&str] = &[
    "SHEDLOCK",
    "REDLOCK",
    "QUARTZ",
    "LEADER_LOCK",
    "LOCK_TABLE",
    "LOCK_KEY",
    "DYNAMODB_LOCK",
    "CONSUL_LOCK",
    "ZOOKEEPER",
    "ZK_CONNECT",
    "ETCD_ENDPOINTS",
    "ELECTION_REDIS",
    "CONSUL_HTTP_ADDR",
];

fn run(i: &Input, r: &mut Report) {
    for o in super::undeclared(i) {
        let names = o
            .containers(false)
            .flat_map(|c| {
                let env = c
                    .get("env")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten()
                    .filter_map(|e| e["name"].as_str());
                let args = ["command", "args"]
                    .into_iter()
                    .filter_map(|k| c.get(k)?.as_array())
                    .flatten()
                    .filter_map(Value::as_str);
                env.chain(args)
            })
            .find(|n| {
                let n = n.to_uppercase().replace(['-', '.'], "_");
                LOCKS.iter().any(|l| n.contains(l))
            });
        if let Some(name) = names {
            r.found(
                &o.name,
                format!("{name} points at a lock outside of the cluster: both sides may elect there, and the leader be on the side that should be quiet"),
            );
        }
    }
}
