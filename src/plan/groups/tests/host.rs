//! What blue does to its hosts: a decision, and never shown (kops.md 3, 8.4).

use super::{Company, blocks, finding, silent};
use crate::plan::model::{Finding, Severity};
use serde_json::{Value, json};

const SECRET: &str = "#!/bin/sh\nexport TOKEN=hunter2\napt-get install -y curl\necho ${HOME}\n";

fn group() -> Value {
    json!({
        "machineType": "m5.large",
        "additionalUserData": [{"name": "boot.sh", "type": "text/x-shellscript", "content": SECRET}],
        "hooks": [{"name": "tune", "before": ["kubelet.service"], "manifest": "Type=oneshot\nExecStart=/usr/bin/true"},
                  {"name": "off", "enabled": false, "manifest": "x"},
                  {"name": "ceph", "execContainer": {"image": "busybox", "command": ["sh"]}}],
        "fileAssets": [{"name": "motd", "path": "/etc/motd", "content": "hello", "mode": "0644"}],
        "packages": ["nfs-common"],
        "sysctlParameters": ["vm.max_map_count=262144"],
        "volumes": [{"device": "/dev/xvdd", "size": 20}],
        "volumeMounts": [{"device": "/dev/xvdd", "filesystem": "ext4", "path": "/data"}]
    })
}

#[test]
fn without_a_word_of_migration_yaml_nothing_comes_along_and_each_thing_is_named() {
    let p = Company::new(group()).plan();
    assert_eq!(p.target.node_groups[0].launch_template.user_data, None);
    let f = finding(&p, "KOPS-ig-host");
    assert_eq!(f.severity, Severity::Warning, "a decision");
    for word in [
        "user data boot.sh (68 bytes, sha256 ",
        "hook tune",
        "hook ceph",
        "file /etc/motd",
        "package nfs-common",
        "kernel settings vm.max_map_count",
        "mount of /dev/xvdd at /data",
    ] {
        assert!(f.message.contains(word), "{word} in {}", f.message);
    }
    assert!(!f.message.contains("hook off"), "switched off on blue");
    assert!(f.remedy.contains("green.nodeGroups.nodes"), "{}", f.remedy);
}

#[test]
fn the_text_of_blues_scripts_is_in_no_finding_and_in_no_plan_unless_it_is_asked_for() {
    for wish in [json!({}), json!({"hostChanges": false})] {
        let mut c = Company::new(group());
        c.wish(wish);
        let mut p = c.plan();
        // The field fates have a room and a redaction of their own.
        p.fields.clear();
        let text = serde_json::to_string(&p).expect("JSON");
        assert!(!text.contains("hunter2"), "{text}");
    }
    let mut c = Company::new(group());
    c.wish(json!({"hostChanges": true}));
    let p = c.plan();
    let said: String = p
        .findings
        .iter()
        .map(|f| format!("{}{}", f.message, f.remedy))
        .chain(p.target.node_groups[0].notes.clone())
        .collect();
    assert!(!said.contains("hunter2"));
    assert!(said.contains("stands in plan.json"), "{said}");
}

#[test]
fn with_the_word_what_al2023_can_run_comes_along_in_order() {
    let mut c = Company::new(group());
    c.wish(json!({"hostChanges": true}));
    let p = c.plan();
    let text = p.target.node_groups[0]
        .launch_template
        .user_data
        .clone()
        .expect("user data");
    let mut at = 0;
    for line in [
        "export TOKEN=hunter2",
        "echo ${HOME}",
        "> '/etc/systemd/system/tune.service'",
        "systemctl start --no-block 'tune.service'",
        "> '/etc/motd'",
        "chmod 0644 '/etc/motd'",
        "dnf install -y nfs-utils",
        "> '/etc/sysctl.d/99-blue.conf'",
        "mkfs.ext4 '/dev/xvdd'",
        "mount -t ext4 -o 'defaults' '/dev/xvdd' '/data'",
    ] {
        let found = text[at..]
            .find(line)
            .unwrap_or_else(|| panic!("{line} after {at} in {text}"));
        at += found;
    }
    let boundary = text
        .split("boundary=\"")
        .nth(1)
        .and_then(|b| b.split('"').next())
        .expect("a boundary");
    assert_eq!(
        text.matches(&format!("--{boundary}\n")).count(),
        6,
        "one part each"
    );
    assert_eq!(text.matches(&format!("--{boundary}--")).count(), 1);
    let said: Vec<String> = p
        .findings
        .iter()
        .filter(|f| f.id == "KOPS-ig-host")
        .map(|f| f.message.clone())
        .collect();
    assert!(
        said.iter()
            .any(|m| m.contains("hook ceph") && m.contains("runs a container on the host")),
        "{said:?}"
    );
    assert!(
        said.iter()
            .any(|m| m.contains("uses apt-get, which AL2023 does not have")),
        "{said:?}"
    );
}

#[test]
fn hooks_and_files_of_the_cluster_count_for_nodes_and_the_groups_take_their_place() {
    let mut c =
        Company::new(json!({"hooks": [{"name": "same", "manifest": "ExecStart=/bin/group"}]}));
    c.cluster()["hooks"] = json!([
        {"name": "same", "manifest": "ExecStart=/bin/cluster"},
        {"name": "masters", "roles": ["Master"], "manifest": "x"},
        {"name": "all", "roles": ["Node", "Master"], "manifest": "ExecStart=/bin/all"}
    ]);
    c.cluster()["fileAssets"] = json!([{"name": "audit", "roles": ["Master"], "content": "x"}]);
    let f = finding(&c.plan(), "KOPS-ig-host");
    assert_eq!(f.message.matches("hook same").count(), 1);
    assert!(!f.message.contains("hook all"), "said for the cluster");
    let f = of_cluster(&c).expect("said once");
    assert!(f.message.contains("hook all"), "{f:?}");
    assert!(
        !f.message.contains("masters") && !f.message.contains("audit"),
        "{}",
        f.message
    );
    let p = c.plan();
    let f = p
        .findings
        .iter()
        .find(|f| f.id == "KOPS-ig-role" && f.object == "kops/spec.hooks")
        .expect("what is for masters only is named too");
    assert!(f.message.ends_with(": hook masters, file audit"), "{f:?}");
    c.wish(json!({"hostChanges": false}));
    let f = finding(&c.plan(), "KOPS-ig-host");
    assert_eq!(f.severity, Severity::Info);
    assert!(f.message.contains("hook all") && f.message.matches("hook same").count() == 1);
    assert_eq!(of_cluster(&c), None, "the only group has decided");
    silent(
        &Company::new(json!({"machineType": "m5.large"})).plan(),
        "KOPS-ig-host",
    );
}

/// What is said about the cluster's own hooks and files.
fn of_cluster(c: &Company) -> Option<Finding> {
    let mut all: Vec<Finding> = c
        .plan()
        .findings
        .into_iter()
        .filter(|f| f.id == "KOPS-ig-host" && f.object == "kops/spec.hooks")
        .collect();
    assert!(all.len() <= 1, "once for a plan: {all:?}");
    all.pop()
}

#[test]
fn what_the_cluster_does_to_all_hosts_is_said_once_whatever_groups_there_are() {
    let mut c = Company::new(json!({"machineType": "m5.large"}));
    c.add("second", json!({"machineType": "m5.large"}));
    c.cluster()["hooks"] = json!([{"execContainer": {"image": "busybox", "command": ["sh"]}}]);
    c.cluster()["fileAssets"] =
        json!([{"name": "audit", "path": "/etc/audit.yaml", "content": "x"}]);
    c.cluster()["packages"] = json!(["nfs-common"]);
    c.cluster()["sysctlParameters"] = json!(["vm.max_map_count=262144"]);
    let said = |c: &Company| {
        let f = of_cluster(c).expect("a finding");
        assert_eq!(f.severity, Severity::Warning);
        for word in [
            "hook hook-0",
            "file /etc/audit.yaml",
            "package nfs-common",
            "kernel settings vm.max_map_count",
        ] {
            assert!(f.message.contains(word), "{word} in {f:?}");
        }
        f.remedy
    };
    assert!(said(&c).contains("for nodes, second"));
    // Karpenter makes all nodes; then no worker group at all.
    for ig in &mut c.snapshot.kops.instance_groups {
        ig["spec"]["manager"] = json!("Karpenter");
    }
    assert!(said(&c).contains("EC2NodeClass"));
    c.snapshot.kops.instance_groups.clear();
    said(&c);
}

#[test]
fn user_data_beyond_what_ec2_takes_stops_the_plan() {
    let mut c = Company::new(
        json!({"additionalUserData": [{"name": "big", "type": "text/x-shellscript", "content": "#".repeat(17_000)}]}),
    );
    silent(&c.plan(), "KOPS-ig-userdata");
    c.wish(json!({"hostChanges": true}));
    blocks(&finding(&c.plan(), "KOPS-ig-userdata"));
}
