//! CAP-12.

use crate::checks::words::{items, some, templates, text};
use crate::checks::{Answered, Check, Input, Need, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "CAP-12",
    severity: Severity::Blocker,
    question: "Is every host path that a pod mounts there on green's nodes, with what the pod expects in it?",
    needs: &[Need::Blue],
    answered: Answered::Plan,
    remedy: "Change the agent on blue, or list it under workloads.skip.",
    source: "checks.md CAP-12",
    run,
};

/// Directories that every Linux host has, or that agents of today's nodes mount: nothing of blue is in them.
const COMMON: &[&str] = &[
    "/proc",
    "/sys",
    "/dev",
    "/run",
    "/var/run",
    "/var/log",
    "/lib/modules",
    "/usr",
    "/boot",
    "/etc",
    "/var/lib/kubelet",
    "/var/lib/containerd",
    "/opt/cni",
    "/var/lib/cni",
    "/tmp",
    "/lib",
    "/lib64",
    "/bin",
    "/sbin",
    "/var/lib/node_exporter",
    "/var/tmp",
    "/var/cache",
];

fn run(i: &Input, r: &mut Report) {
    for (object, template) in templates(i) {
        let (mut gone, mut data) = (vec![], vec![]);
        for path in items(template, "/spec/volumes").filter_map(|v| text(v, "/hostPath/path")) {
            if path.contains("docker")
                || path.starts_with("/etc/kubernetes")
                || path.starts_with("/srv/kubernetes")
                || path.contains("kops")
            {
                gone.push(path);
            } else if path != "/"
                && !COMMON
                    .iter()
                    .any(|c| path == *c || path.starts_with(&format!("{c}/")))
            {
                data.push(path);
            }
        }
        if !gone.is_empty() {
            r.found(
                object,
                format!(
                    "mounts {} of the host: green's nodes run containerd and have no such path",
                    some(&gone)
                ),
            );
        }
        if !data.is_empty() {
            r.warning(
                object,
                format!(
                    "keeps something in {} of the host: it is empty on green's nodes",
                    some(&data)
                ),
                "Move the data to a volume, or accept that it starts empty.",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::tests::{deployment, of, says, snapshot, spec};
    use crate::plan::model::Severity;
    use crate::plan::plan;
    use serde_json::{Value, json};

    fn mounts(path: &str) -> Vec<Value> {
        vec![deployment(
            "agent",
            1,
            json!({"volumes": [{"name": "v", "hostPath": {"path": path}}]}),
        )]
    }

    #[test]
    fn cap_12_the_docker_socket_blocks_and_data_on_the_host_is_a_warning() {
        let mut s = snapshot();
        s.blue.objects = mounts("/var/run/docker.sock");
        says(
            &plan(&spec(), &s),
            "CAP-12",
            Severity::Blocker,
            "/var/run/docker.sock",
        );
        s.blue.objects = mounts("/data/queue");
        says(
            &plan(&spec(), &s),
            "CAP-12",
            Severity::Warning,
            "/data/queue",
        );
    }

    #[test]
    fn cap_12_what_every_host_has_is_no_matter() {
        for path in [
            "/",
            "/proc",
            "/var/log",
            "/var/log/pods",
            "/etc/machine-id",
            "/run/containerd/containerd.sock",
        ] {
            let mut s = snapshot();
            s.blue.objects = mounts(path);
            assert!(of(&plan(&spec(), &s), "CAP-12").is_empty(), "{path}");
        }
    }
}
