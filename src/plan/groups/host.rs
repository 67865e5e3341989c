//! What blue does to its hosts as root: user data, hooks, files, packages, kernel settings, mounts (kops.md 3, 8.4). Nobody but a person can
//! say whether green's nodes need it: each is named, its text never shown, and it comes along only when migration.yaml says so.

use super::super::kops::{strings, text};
use super::super::model::Severity;
use super::Ig;
use super::types::Machine;
use super::userdata::SHELL;
use crate::object::sha256_hex;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::collections::BTreeMap;

/// A part of green's user data.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub content_type: String,
    pub content: String,
}

/// One thing that blue does to its hosts.
struct Item {
    /// As people read it: kind, name, size and hash.
    words: String,
    /// What AL2023 can run, or why it cannot.
    part: Result<Change, String>,
    /// What about it should be looked at.
    doubt: Option<String>,
}

/// Packages of Debian and Ubuntu by their name on AL2023.
const PACKAGES: &[(&str, &str)] = &[
    ("nfs-common", "nfs-utils"),
    ("linux-tools-common", "perf"),
    ("dnsutils", "bind-utils"),
    ("iputils-ping", "iputils"),
    ("netcat", "nmap-ncat"),
    ("netcat-openbsd", "nmap-ncat"),
    ("open-iscsi", "iscsi-initiator-utils"),
    ("apache2-utils", "httpd-tools"),
    ("xz-utils", "xz"),
];

/// What the cluster's document alone does to every node, in words: the same for all groups, so it is said once for the plan.
pub(super) fn of_all(ig: &Ig) -> Vec<String> {
    let mut items = hooks(ig);
    items.extend(files(ig));
    items.extend(packages(ig));
    items.extend(kernel(ig));
    items.into_iter().map(|i| i.words).collect()
}

/// Hooks and files of the cluster's document that are for the control plane only.
pub(super) fn of_control_plane(ig: &Ig) -> Vec<String> {
    let mut out = vec![];
    for (pointer, kind) in [("/spec/hooks", "hook"), ("/spec/fileAssets", "file")] {
        for v in of_cluster(ig, pointer).iter().filter(|v| !for_nodes(v)) {
            let name = text(v, "/name").unwrap_or("without a name");
            out.push(format!("{kind} {name}"));
        }
    }
    out
}

/// What comes along; everything else becomes a finding. `of_all`: what the plan says once for all groups that have not decided.
pub(super) fn changes(ig: &mut Ig, machine: &Machine, of_all: &[String]) -> Vec<Change> {
    let mut items = user_data(ig);
    items.extend(hooks(ig));
    items.extend(files(ig));
    items.extend(packages(ig));
    items.extend(kernel(ig));
    items.extend(mounts(ig));
    if items.is_empty() {
        if ig.wish.host_changes == Some(true) {
            ig.note("hostChanges has nothing to take along");
        }
        return vec![];
    }
    let all: Vec<&str> = items.iter().map(|i| i.words.as_str()).collect();
    match ig.wish.host_changes {
        None => {
            let own: Vec<&str> = all
                .into_iter()
                .filter(|w| !of_all.iter().any(|o| o == w))
                .collect();
            if own.is_empty() {
                return vec![];
            }
            let message = format!(
                "changes its hosts, and green's nodes would be without that: {}",
                own.join("; ")
            );
            let remedy = format!(
                "Read each; then say hostChanges: true (take along what AL2023 can run) or false (leave it) under green.nodeGroups.{}. A DaemonSet is often the better place.",
                ig.name
            );
            ig.find("KOPS-ig-host", Severity::Warning, message, &remedy);
            vec![]
        }
        Some(false) => {
            let message = format!("left behind as green.nodeGroups says: {}", all.join("; "));
            ig.find("KOPS-ig-host", Severity::Info, message, "Nothing to do.");
            vec![]
        }
        Some(true) if machine.bottlerocket => {
            let message = format!(
                "Bottlerocket has no shell: nothing comes along of {}",
                all.join("; ")
            );
            ig.find(
                "KOPS-ig-host",
                Severity::Warning,
                message,
                "Use an AL2023 AMI type, or bootstrap containers by hand.",
            );
            vec![]
        }
        Some(true) => taken(ig, items),
    }
}

fn taken(ig: &mut Ig, items: Vec<Item>) -> Vec<Change> {
    let (mut words, mut left, mut out) = (vec![], vec![], vec![]);
    for item in items {
        match item.part {
            Ok(part) => {
                words.push(match item.doubt {
                    Some(doubt) => format!("{} ({doubt})", item.words),
                    None => item.words,
                });
                out.push(part);
            }
            Err(why) => left.push(format!("{}: {why}", item.words)),
        }
    }
    if !left.is_empty() {
        ig.find(
            "KOPS-ig-host",
            Severity::Warning,
            format!("cannot come along: {}", left.join("; ")),
            "Make a DaemonSet of it, or leave it.",
        );
    }
    if !words.is_empty() {
        ig.find(
            "KOPS-ig-host",
            Severity::Warning,
            format!("come along in the launch template, written for blue's operating system: {}. Their text stands in plan.json, and whoever may describe launch templates can read it", words.join("; ")),
            "Try them on one AL2023 node first; move secrets out of them, and keep plan.json where secrets are kept.",
        );
        ig.note(format!(
            "user data of blue comes along: {}",
            words.join("; ")
        ));
    }
    out
}

/// `hook NAME (85 bytes, sha256 0123456789ab)`: enough to know it again, not enough to learn it.
fn words(kind: &str, name: &str, content: &str) -> String {
    format!(
        "{kind} {name} ({} bytes, sha256 {})",
        content.len(),
        &sha256_hex(content)[..12]
    )
}

fn shell(content: String) -> Change {
    Change {
        content_type: SHELL.into(),
        content,
    }
}

/// What a script of Debian or Ubuntu with docker uses that AL2023 has not.
fn doubt(content: &str) -> Option<String> {
    let used: Vec<&str> = ["apt-get", "apt ", "dpkg", "docker", "/etc/network/", "ufw"]
        .into_iter()
        .filter(|w| content.contains(w))
        .map(str::trim)
        .collect();
    (!used.is_empty()).then(|| format!("uses {}, which AL2023 does not have", used.join(", ")))
}

fn list(ig: &Ig, pointer: &str) -> Vec<Value> {
    ig.field(pointer)
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default()
}

fn of_cluster(ig: &Ig, pointer: &str) -> Vec<Value> {
    ig.of_cluster(pointer)
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default()
}

/// Without roles it is for all of them.
fn for_nodes(v: &Value) -> bool {
    let roles = strings(v, "/roles");
    roles.is_empty() || roles.iter().any(|r| r.eq_ignore_ascii_case("node"))
}

fn user_data(ig: &Ig) -> Vec<Item> {
    list(ig, "/spec/additionalUserData")
        .iter()
        .map(|u| {
            let content = text(u, "/content").unwrap_or("");
            let kind = text(u, "/type").unwrap_or("text/x-shellscript");
            let part = match kind {
                "text/x-shellscript" => Ok(shell(content.into())),
                "text/cloud-config" | "text/cloud-boothook" => Ok(Change {
                    content_type: format!("{kind}; charset=\"utf-8\""),
                    content: content.into(),
                }),
                other => Err(format!("cloud-init of AL2023 has no use for {other}")),
            };
            Item {
                words: words(
                    "user data",
                    text(u, "/name").unwrap_or("without a name"),
                    content,
                ),
                part,
                doubt: doubt(content),
            }
        })
        .collect()
}

/// Hooks of the cluster for nodes, those of the group; one of the same name takes the cluster's place (kops.md 1.5).
fn hooks(ig: &Ig) -> Vec<Item> {
    let mut all: BTreeMap<String, Value> = BTreeMap::new();
    let both = of_cluster(ig, "/spec/hooks")
        .into_iter()
        .filter(for_nodes)
        .chain(list(ig, "/spec/hooks").into_iter().filter(for_nodes));
    for (n, hook) in both.enumerate() {
        let name = text(&hook, "/name").map_or_else(|| format!("hook-{n}"), String::from);
        all.insert(name, hook);
    }
    all.into_iter()
        .filter(|(_, h)| h["disabled"] != true && h["enabled"] != false)
        .map(|(name, hook)| {
            if let Some(exec) = hook.get("execContainer").filter(|e| !e.is_null()) {
                return Item {
                    words: words("hook", &name, &exec.to_string()),
                    part: Err("it runs a container on the host, before kubelet".into()),
                    doubt: None,
                };
            }
            let manifest = text(&hook, "/manifest").unwrap_or("");
            if manifest.is_empty() {
                return Item {
                    words: format!("hook {name}"),
                    part: Err("it holds nothing to run".into()),
                    doubt: None,
                };
            }
            Item {
                words: words("hook", &name, manifest),
                part: Ok(shell(unit(&name, &hook, manifest))),
                doubt: doubt(manifest),
            }
        })
        .collect()
}

/// The systemd unit that kops makes of a hook: the manifest is its `[Service]` section, or all of it.
fn unit(name: &str, hook: &Value, manifest: &str) -> String {
    let clean: String = name
        .trim_end_matches(".service")
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@') {
                c
            } else {
                '-'
            }
        })
        .collect();
    let whole = if hook["useRawManifest"] == true {
        manifest.to_string()
    } else {
        let mut head = format!("[Unit]\nDescription=hook {clean} of blue\n");
        for r in strings(hook, "/requires") {
            head.push_str(&format!("Requires={r}\nAfter={r}\n"));
        }
        for b in strings(hook, "/before") {
            head.push_str(&format!("Before={b}\n"));
        }
        format!("{head}\n[Service]\n{manifest}\n")
    };
    let path = format!("/etc/systemd/system/{clean}.service");
    format!(
        "#!/bin/bash\n# hook of blue\nset -eu\n{}systemctl daemon-reload\nsystemctl start --no-block {}\n",
        write(&path, &STANDARD.encode(whole), "0644"),
        quoted(&format!("{clean}.service"))
    )
}

/// Files of the cluster for nodes and of the group.
fn files(ig: &Ig) -> Vec<Item> {
    of_cluster(ig, "/spec/fileAssets")
        .into_iter()
        .chain(list(ig, "/spec/fileAssets"))
        .filter(for_nodes)
        .map(|f| {
            let name = text(&f, "/name").unwrap_or("without a name");
            let content = text(&f, "/content").unwrap_or("");
            let path = text(&f, "/path")
                .map_or_else(|| format!("/srv/kubernetes/assets/{name}"), String::from);
            let mode = text(&f, "/mode")
                .filter(|m| m.chars().all(|c| ('0'..='7').contains(&c)))
                .unwrap_or("0440");
            let encoded = if f["isBase64"] == true {
                content.split_whitespace().collect()
            } else {
                STANDARD.encode(content)
            };
            let part = if !path.starts_with('/') {
                Err("its path is not absolute".into())
            } else if STANDARD.decode(&encoded).is_err() {
                Err("its content is no base64".into())
            } else {
                Ok(shell(format!(
                    "#!/bin/bash\n# file of blue\nset -eu\n{}",
                    write(&path, &encoded, mode)
                )))
            };
            Item {
                words: words("file", &path, content),
                part,
                doubt: None,
            }
        })
        .collect()
}

/// Commands that write a file whose content is base64.
fn write(path: &str, encoded: &str, mode: &str) -> String {
    let q = quoted(path);
    format!(
        "mkdir -p \"$(dirname {q})\"\nbase64 -d > {q} <<'CONTENT'\n{encoded}\nCONTENT\nchmod {mode} {q}\n"
    )
}

/// For bash.
fn quoted(s: &str) -> String {
    format!("'{}'", s.replace('\'', "'\\''"))
}

fn packages(ig: &Ig) -> Vec<Item> {
    let mut names: Vec<String> = of_cluster(ig, "/spec/packages")
        .into_iter()
        .chain(list(ig, "/spec/packages"))
        .filter_map(|p| p.as_str().map(String::from))
        .collect();
    names.dedup();
    let mut out = vec![];
    for name in names {
        let good = !name.is_empty()
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-+._:".contains(c))
            && !name.starts_with('-');
        let known = PACKAGES.iter().find(|(d, _)| *d == name).map(|(_, a)| *a);
        let there = known.unwrap_or(&name);
        out.push(Item {
            words: format!("package {name}"),
            part: if good {
                // A package that is not there must not keep a node from joining.
                Ok(shell(format!(
                    "#!/bin/bash\n# package of blue\ndnf install -y {there} || echo 'package {there} was not installed' >&2\n"
                )))
            } else {
                Err("its name is none of a package".into())
            },
            doubt: Some(match known {
                Some(there) => format!("{there} on AL2023"),
                None => "it may have another name on AL2023".into(),
            }),
        });
    }
    out
}

fn kernel(ig: &Ig) -> Vec<Item> {
    let lines: Vec<String> = of_cluster(ig, "/spec/sysctlParameters")
        .into_iter()
        .chain(list(ig, "/spec/sysctlParameters"))
        .filter_map(|p| p.as_str().map(String::from))
        .collect();
    if lines.is_empty() {
        return vec![];
    }
    let names: Vec<&str> = lines
        .iter()
        .map(|l| l.split('=').next().unwrap_or(l).trim())
        .collect();
    let file = format!("{}\n", lines.join("\n"));
    vec![Item {
        words: format!("kernel settings {}", names.join(", ")),
        part: Ok(shell(format!(
            "#!/bin/bash\n# kernel settings of blue\n{}sysctl --system || true\n",
            write("/etc/sysctl.d/99-blue.conf", &STANDARD.encode(file), "0644")
        ))),
        doubt: None,
    }]
}

/// kops formats and mounts further volumes itself.
fn mounts(ig: &Ig) -> Vec<Item> {
    list(ig, "/spec/volumeMounts")
        .iter()
        .map(|m| {
            let device = text(m, "/device").unwrap_or("");
            let path = text(m, "/path").unwrap_or("");
            let filesystem = text(m, "/filesystem").unwrap_or("ext4");
            let format = strings(m, "/formatOptions")
                .iter()
                .map(|o| format!("{} ", quoted(o)))
                .collect::<String>();
            let options = strings(m, "/mountOptions").join(",");
            let options = if options.is_empty() {
                "defaults".into()
            } else {
                options
            };
            let good = device.starts_with("/dev/")
                && path.starts_with('/')
                && matches!(filesystem, "ext4" | "ext3" | "ext2" | "xfs");
            let (d, p) = (quoted(device), quoted(path));
            Item {
                words: format!("mount of {device} at {path}"),
                part: if good {
                    Ok(shell(format!(
                        "#!/bin/bash\n# mount of blue\nset -eu\nblkid {d} >/dev/null || mkfs.{filesystem} {format}{d}\nmkdir -p {p}\nmount -t {filesystem} -o {} {d} {p}\n",
                        quoted(&options)
                    )))
                } else {
                    Err("it has no device, no path or another file system".into())
                },
                doubt: None,
            }
        })
        .collect()
}
