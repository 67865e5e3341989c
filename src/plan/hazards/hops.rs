//! The way in place: one minor at a time (mission.md D2: minors are not skipped), and what each would break here.

use super::facts::{Facts, KOPS_TODAY, KOPS_WINDOW};
use super::{Break, Hop, Total};

fn of(what: impl Into<String>, source: &str) -> Break {
    Break {
        what: what.into(),
        objects: None,
        source: source.into(),
    }
}
fn count(n: usize, what: impl Into<String>, source: &str) -> Option<Break> {
    (n > 0).then(|| Break {
        what: what.into(),
        objects: Some(n),
        source: source.into(),
    })
}

/// All hops from blue's minor to green's.
pub(super) fn hops(f: &Facts) -> Vec<Hop> {
    let Some(blue) = f.minor else { return vec![] };
    (blue + 1..=f.green)
        .map(|to| Hop {
            from: format!("1.{}", to - 1),
            to: format!("1.{to}"),
            kops: releases(to),
            breaks: breaks(f, to),
        })
        .collect()
}

/// A release runs Kubernetes up to its own minor and accepts the five before it; none is newer than today's.
fn releases(to: u32) -> String {
    let last = (to - 1 + KOPS_WINDOW).min(KOPS_TODAY);
    match last.cmp(&to) {
        std::cmp::Ordering::Greater => format!("1.{to} to 1.{last}"),
        _ => format!("1.{to}"),
    }
}

/// The sum of the way.
pub(super) fn total(f: &Facts, hops: &[Hop]) -> Total {
    let etcd = f.etcd_steps();
    Total {
        hops_to_supported: f
            .minor
            .zip(f.oldest)
            .map(|(m, o)| o.saturating_sub(m) as usize),
        hops: hops.len(),
        rolling_updates: hops.len() * f.groups + etcd * f.masters,
        instances: hops.len() * f.instances + etcd * f.master_instances,
    }
}

impl Facts {
    /// Rolling updates of the masters that etcd needs by itself: to etcd-manager, and to etcd 3 (mission.md D1).
    pub(super) fn etcd_steps(&self) -> usize {
        usize::from(self.etcd.iter().any(|e| e.legacy))
            + usize::from(self.etcd.iter().any(|e| e.major == Some(2)))
    }
}

fn breaks(f: &Facts, to: u32) -> Vec<Break> {
    let mut out: Vec<Break> = vec![];
    let objects = f.objects.as_ref();
    for (api, n) in objects.iter().flat_map(|o| o.removed.get(&to)).flatten() {
        out.extend(count(
            *n,
            format!("{} {} is no longer served", api.api_version, api.kind),
            "removed-apis.yaml",
        ));
    }
    let n = |get: fn(&super::facts::Objects) -> usize| objects.map_or(0, get);
    match to {
        12 if f.etcd_steps() > 0 => out.push(of(
            "etcd-manager, etcd 3 and TLS between its members become the default: all masters restart together, and kops needs s3:GetObject, PutObject and DeleteObject on the state bucket",
            "kops.md 6; mission.md D1",
        )),
        17 if !f.reserved_labels.is_empty() => out.push(of(
            format!(
                "workers may not give themselves labels under kubernetes.io: {} would not become Ready (where others got stuck)",
                f.reserved_labels.join(", ")
            ),
            "mission.md D4; eks.md 1.6",
        )),
        18 => {
            if f.etcd.iter().any(|e| e.legacy) {
                out.push(of("etcd provider Legacy is refused", "kops.md 1.4"));
            }
            if f.static_tokens {
                out.push(of("static tokens are switched off", "kops.md 6"));
            }
        }
        19 => {
            if !f.basic_auth_off && f.has_kops {
                out.push(of(
                    "basic auth is gone: kubeconfigs with user and password stop working",
                    "kops.md 6",
                ));
            }
            if f.network == "romana" {
                out.push(of("kops 1.19 has no romana any more", "kops.md 1.4"));
            }
            if f.legacy_iam {
                out.push(of(
                    "kops 1.19 wants strict IAM: pods lose the state bucket and the hosted zone that they reached through their node",
                    "kops.md 1.4, 5",
                ));
            }
        }
        20 if f.runtime == "docker" => out.push(of(
            "containerd becomes the default runtime: what reads docker.sock or docker's log files breaks on new nodes",
            "kops.md 1.4, 6",
        )),
        21 if f.release.minor < 21 => out.push(of(
            "kops 1.21 drops launch configurations: every group gets a launch template",
            "kops.md 1.4",
        )),
        22 if f.legacy_iam => out.push(of("iam.legacy is refused", "kops.md 1.4")),
        23 => {
            if f.network == "weave" {
                out.push(of("weave is refused: the network must change first, on a running cluster", "kops.md 1.4"));
            }
            if f.network == "lyftvpc" {
                out.push(of("kops 1.23 has no lyftvpc any more", "kops.md 1.4"));
            }
        }
        24 => {
            if f.runtime == "docker" {
                let b = of("docker is refused: every node changes its runtime", "kops.md 1.4, 6");
                out.push(b);
            }
            out.extend(count(n(|o| o.docker_socket), "volumes of docker's socket or files stay empty", "removed-apis.yaml dockershim"));
            out.push(of("masters lose the label and taint node-role.kubernetes.io/master; node names become instance ids", "kops.md 1.4, 6"));
            out.extend(count(n(|o| o.master_label), "workloads that select or tolerate node-role.kubernetes.io/master", "removed-apis.yaml master-node-label-and-taint"));
            out.extend(count(n(|o| o.role_label), "workloads that select kubernetes.io/role", "kops.md 6"));
            out.extend(count(n(|o| o.token_secrets), "service account token Secrets: no new ones are made by themselves", "removed-apis.yaml service-account-token-secrets"));
            out.extend(count(n(|o| o.nfs_volumes), "NFS volumes: nfs-common is not installed any more", "kops.md 6"));
        }
        25 => {
            out.extend(count(n(|o| o.psp), "PodSecurityPolicies end: what they forbade is allowed", "kops.md 6"));
            if f.psp_plugin {
                out.push(of("the admission plugin PodSecurityPolicy is gone: the API server does not start with it", "kops.md 6"));
            }
        }
        26 if f.network == "external" => out.push(of("networking external is refused", "kops.md 1.4")),
        27 => {
            out.extend(count(n(|o| o.in_tree_volumes), "in-tree EBS volumes: only the CSI driver serves them", "removed-apis.yaml in-tree-ebs"));
            out.extend(count(n(|o| o.in_tree_classes), "storage classes of kubernetes.io/aws-ebs", "removed-apis.yaml in-tree-ebs"));
            if !f.optional_tokens.is_empty() {
                let what = format!(
                    "the instance metadata service of {} asks for tokens by default: old SDKs lose the node role",
                    f.optional_tokens.join(", ")
                );
                out.push(of(what, "kops.md 1.4, 5"));
            }
        }
        28 if f.network == "canal" => out.push(of("canal is refused: the network must change first, on a running cluster", "kops.md 1.4")),
        33 if f.cloud_flags => out.push(of("the cloud flags of kubelet and API server are gone", "kops.md 6")),
        35 if !f.old_systems.is_empty() => {
            let what = format!(
                "the kubelet refuses cgroup v1, which the systems of {} start with",
                f.old_systems.join(", ")
            );
            out.push(of(what, "eks.md 1.1"));
        }
        36 => {
            if f.always_allow && f.always_allow_silent {
                out.push(of("kops 1.36 takes rbac where nothing is said: everything without RBAC is refused from one day to the next", "kops.md 1.4"));
            }
            out.extend(count(n(|o| o.git_repo), "gitRepo volumes are refused by the kubelet", "removed-apis.yaml gitRepo-volume"));
        }
        37 => {
            if f.gossip {
                out.push(of("kops 1.37 has no gossip any more", "kops.md 1.4"));
            }
            if f.classic_api {
                out.push(of("kops 1.37 has no classic load balancer for the API any more", "kops.md 1.4"));
            }
        }
        _ => {}
    }
    out
}
