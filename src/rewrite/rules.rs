//! The 72 rules of replay.md: what each says, and which room keeps it. `explain rule/30` prints a row; a test finds a rule without a test.

/// Which room keeps a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Room {
    /// While blue is read.
    Read,
    /// While the plan is made: what becomes of an object.
    Rewrite,
    /// While the plan is made: a check over many objects.
    Check,
    /// While objects are written on green, and when that is taken back.
    Replay,
    /// While parked things wake, or blue's are stopped.
    Wake,
}

/// One rule.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Rule {
    /// Number in replay.md, 1 to 72.
    pub number: u32,
    /// What it says.
    pub says: &'static str,
    /// Who keeps it.
    pub room: Room,
}

const fn rule(number: u32, room: Room, says: &'static str) -> Rule {
    Rule { number, says, room }
}

use Room::{Check, Read, Replay, Rewrite, Wake};

/// All of them, in order.
pub const RULES: [Rule; 72] = [
    rule(
        1,
        Read,
        "each object is read once, in a version that green serves where both do; kinds that cannot be listed or created are no objects",
    ),
    rule(
        2,
        Read,
        "lists are read in pages of 500 and a page that expired starts the list again; what changed since is told by a hash of each object",
    ),
    rule(
        3,
        Replay,
        "objects are created in an order in which each finds what it needs; webhooks and API services come last, when their backend lives",
    ),
    rule(
        4,
        Replay,
        "a ResourceQuota comes after what it counts, a LimitRange before the pods that it is for",
    ),
    rule(
        5,
        Replay,
        "only errors that can pass are tried again; a namespace that is going away is waited for, never written into",
    ),
    rule(6, Rewrite, "fields that the API server owns are left out"),
    rule(7, Rewrite, "generateName goes when there is a name"),
    rule(8, Rewrite, "what is being deleted on blue is not copied"),
    rule(
        9,
        Rewrite,
        "status is left out: green's controllers write their own",
    ),
    rule(
        10,
        Rewrite,
        "an owner is found again on green by name, or the reference goes; what a controller makes again is not copied",
    ),
    rule(
        11,
        Rewrite,
        "finalizers are left out: the controller on green adds its own",
    ),
    rule(
        12,
        Rewrite,
        "annotations that only tell blue's own doings are left out",
    ),
    rule(
        13,
        Rewrite,
        "last-applied-configuration is read, then left out: the next kubectl apply would bring blue's fields back",
    ),
    rule(
        14,
        Replay,
        "each object that is written carries the run, blue's uid and a hash of its content",
    ),
    rule(
        15,
        Replay,
        "one field manager writes, and never takes a field from another by force",
    ),
    rule(
        16,
        Check,
        "an object that would be too big for the API server is found before it is written",
    ),
    rule(
        17,
        Replay,
        "what green has already under the name is adopted when it is equal, and otherwise left and named",
    ),
    rule(18, Rewrite, "an empty map or list is data and stays"),
    rule(19, Rewrite, "whole numbers stay whole numbers of any size"),
    rule(
        20,
        Replay,
        "a field that green drops or does not know is an error of the plan, not a silent loss",
    ),
    rule(
        21,
        Rewrite,
        "namespaces keep their names: nothing that names one has to be rewritten",
    ),
    rule(
        22,
        Rewrite,
        "events, leases, nodes and what is bound to them are never copied",
    ),
    rule(23, Rewrite, "leader locks are never copied"),
    rule(
        24,
        Rewrite,
        "what each namespace gets by itself is not copied; what people added to it is",
    ),
    rule(
        25,
        Rewrite,
        "the API server's own roles, classes and ConfigMaps are never copied",
    ),
    rule(
        26,
        Rewrite,
        "what kops put into blue stays there; what people changed in it is carried over as a wish",
    ),
    rule(
        27,
        Rewrite,
        "children that controllers make again are not copied",
    ),
    rule(
        28,
        Rewrite,
        "mirror pods, finished pods and finished Jobs are not copied",
    ),
    rule(
        29,
        Rewrite,
        "a cluster IP is green's to give; headless stays headless",
    ),
    rule(
        30,
        Rewrite,
        "a node port is kept only when its owner asked for it and green has it to give",
    ),
    rule(
        31,
        Rewrite,
        "IP families follow green, fixed load balancer addresses go",
    ),
    rule(
        32,
        Rewrite,
        "annotations that name AWS things of blue are rewritten or left out",
    ),
    rule(
        33,
        Rewrite,
        "a target group is never bound from two clusters",
    ),
    rule(
        34,
        Rewrite,
        "Endpoints are copied only where no Service keeps them; addresses of blue's pods are refused",
    ),
    rule(
        35,
        Rewrite,
        "EndpointSlices that a controller keeps are not copied",
    ),
    rule(
        36,
        Rewrite,
        "names that only mean something inside blue are reported",
    ),
    rule(
        37,
        Rewrite,
        "service accounts lose their token list and keep their pull secrets",
    ),
    rule(
        38,
        Rewrite,
        "a token of blue is never copied; one that somebody made by hand is made anew",
    ),
    rule(
        39,
        Rewrite,
        "roles that pods got from kiam, kube2iam or kops become a role of their service account",
    ),
    rule(
        40,
        Replay,
        "an immutable Secret or ConfigMap is made again, never patched",
    ),
    rule(
        41,
        Rewrite,
        "aggregated roles lose their rules, subjects that green does not know are named, grants come before their use",
    ),
    rule(
        42,
        Rewrite,
        "all keys of sealed-secrets come before its controller starts; what it unseals is not copied",
    ),
    rule(
        43,
        Rewrite,
        "what logs in to a vault by blue's issuer is named: green has to be known there first",
    ),
    rule(
        44,
        Rewrite,
        "of cert-manager secrets, issuers and certificates are copied, requests, orders and challenges never",
    ),
    rule(
        45,
        Rewrite,
        "bare pods lose their node and what admission put into them, and are created when the others wake",
    ),
    rule(
        46,
        Rewrite,
        "selectors, tolerations and paths that are bound to blue's nodes are rewritten or named",
    ),
    rule(
        47,
        Rewrite,
        "workloads start parked at 0 and wake at blue's live size; a StatefulSet gets green's storage class when it is created, later it cannot change",
    ),
    rule(
        48,
        Rewrite,
        "a Job loses the labels of its old controller and does not run twice",
    ),
    rule(
        49,
        Wake,
        "a CronJob sleeps until blue's copy is asleep and its last run has ended",
    ),
    rule(
        50,
        Rewrite,
        "autoscalers are read in v2, rest while their target is parked, and find it at blue's live size",
    ),
    rule(
        51,
        Rewrite,
        "an empty selector of a disruption budget means the opposite in policy/v1",
    ),
    rule(
        52,
        Rewrite,
        "agents of blue's nodes stay with them, other DaemonSets take no node before unpark",
    ),
    rule(
        53,
        Rewrite,
        "PodSecurityPolicies become a proposal of Pod Security labels; seccomp and AppArmor annotations become fields",
    ),
    rule(
        54,
        Rewrite,
        "a volume loses its claim's uid, and both sides keep volumes while the move lasts",
    ),
    rule(55, Rewrite, "a claim loses what bound it on blue"),
    rule(56, Rewrite, "in-tree EBS volumes and classes become CSI"),
    rule(
        57,
        Check,
        "a volume that is used again must not carry blue's ownership tag when blue goes",
    ),
    rule(58, Rewrite, "one default storage class: green's"),
    rule(
        59,
        Rewrite,
        "a volume needs a node in its zone, and one attachment at a time",
    ),
    rule(
        60,
        Rewrite,
        "data comes before who would make an empty volume",
    ),
    rule(
        61,
        Rewrite,
        "CRDs become v1 with a structural schema and lose no field",
    ),
    rule(
        62,
        Rewrite,
        "custom resources are written in the version in which they were read",
    ),
    rule(
        63,
        Rewrite,
        "webhooks lose blue's CA and are created when their backend answers",
    ),
    rule(
        64,
        Rewrite,
        "API services that the server keeps itself are not copied, others wait for their Service",
    ),
    rule(
        65,
        Rewrite,
        "an API version that green does not serve is converted where the meaning is kept, asked about where it changes",
    ),
    rule(
        66,
        Rewrite,
        "Ingresses keep their class, leave blue's load balancer and its DNS writers alone",
    ),
    rule(
        67,
        Rewrite,
        "policies that name blue's addresses or another CNI are named: protection must not get lost silently",
    ),
    rule(
        68,
        Replay,
        "a field that cannot be changed is never reported as changed",
    ),
    rule(
        69,
        Rewrite,
        "a Helm release moves with its objects, its stored manifests name only APIs that green serves",
    ),
    rule(
        70,
        Rewrite,
        "what Argo CD or Flux keeps is registered on green asleep, its reconciler on blue is suspended first",
    ),
    rule(
        71,
        Rewrite,
        "objects that own things in the cloud are paused on one side at all times and orphan before any delete",
    ),
    rule(72, Check, "of default classes there is one at most"),
];

/// The row behind a rule id as verdicts spell it (`replay.md 30`).
pub fn by_id(id: &str) -> Option<&'static Rule> {
    let number: usize = id.strip_prefix("replay.md ")?.trim().parse().ok()?;
    RULES.get(number.checked_sub(1)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_rule_stands_at_its_number() {
        for (n, rule) in RULES.iter().enumerate() {
            assert_eq!(rule.number as usize, n + 1);
            assert!(!rule.says.is_empty());
        }
        assert_eq!(by_id("replay.md 30").map(|r| r.number), Some(30));
        assert!(by_id("replay.md 0").is_none());
        assert!(by_id("replay.md 73").is_none());
        assert!(by_id("externaldns.md 3").is_none());
    }

    /// Names of all test functions below a folder.
    fn tests_below(dir: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(dir).expect("a source folder") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                tests_below(&path, found);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).expect("readable");
                let mut armed = false;
                for line in text.lines().map(str::trim) {
                    if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
                        armed = true;
                    } else if let Some(rest) = line
                        .strip_prefix("fn ")
                        .or_else(|| line.strip_prefix("async fn "))
                        && armed
                    {
                        found.push(rest.split('(').next().unwrap_or_default().to_string());
                        armed = false;
                    }
                }
            }
        }
    }

    #[test]
    fn each_of_the_72_rules_has_a_test_named_after_it() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut names = vec![];
        tests_below(&root.join("src"), &mut names);
        tests_below(&root.join("tests"), &mut names);
        let missing: Vec<u32> = RULES
            .iter()
            .map(|r| r.number)
            .filter(|n| {
                !names
                    .iter()
                    .any(|t| t.starts_with(&format!("rule_{n:02}_")))
            })
            .collect();
        assert!(missing.is_empty(), "rules without a test: {missing:?}");
    }
}
