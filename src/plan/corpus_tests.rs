//! Every kops spec of the corpora with its reviewed result: node groups, roles, add-ons, access and findings by id, one text file each.
//!
//! The files under `tests/corpus/expected/` were read by people against the reference, line by line. A change of the planner that moves one of them must be
//! read again: `CROSSFADE_BLESS=1` writes them anew, and the difference is what there is to review.

use super::model::{Plan, Severity, TargetLaunchTemplate};
use super::plan;
use crate::snapshot::files;
use crate::snapshot::mask::Key;
use crate::world::cloud::Disk;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

/// What a reviewer reads of a plan.
fn told(plan: &Plan) -> String {
    let mut o = String::new();
    let t = &plan.target;
    let _ = writeln!(
        o,
        "cluster {} {} {} in {}",
        t.cluster.name,
        t.cluster.version,
        t.cluster.region,
        t.cluster.subnets.join(", ")
    );
    for g in &t.node_groups {
        let _ = writeln!(
            o,
            "group {} <- {}: {} {} {} {}..{} now {}, {} GiB {}, in {}",
            g.name,
            g.instance_group,
            g.capacity_type,
            g.ami_type,
            g.instance_types.join("|"),
            g.min,
            g.max,
            g.desired,
            g.disk_gib,
            g.disk_type,
            g.subnets.join(", ")
        );
        for (k, v) in &g.labels {
            let _ = writeln!(o, "  label {k}={v}");
        }
        for taint in &g.taints {
            let _ = writeln!(o, "  taint {}={}:{}", taint.key, taint.value, taint.effect);
        }
        let or = |n: Option<String>| n.unwrap_or_else(|| "-".into());
        let _ = writeln!(
            o,
            "  pods {}, unavailable {}",
            or(g.max_pods.map(|n| n.to_string())),
            or(g.max_unavailable.clone())
        );
        template(&mut o, &g.launch_template);
    }
    for r in &t.roles {
        let _ = writeln!(
            o,
            "role {} for {}{}{}: {}",
            r.name,
            r.service_account.as_deref().unwrap_or("-"),
            if r.existing { " (exists)" } else { "" },
            r.boundary
                .as_ref()
                .map(|b| format!(" within {b}"))
                .unwrap_or_default(),
            r.policies.join(", ")
        );
    }
    for a in &t.addons {
        let _ = writeln!(o, "add-on {} <- {}", a.name, a.replaces);
        if let Some(c) = &a.configuration {
            let _ = writeln!(o, "  with {c}");
        }
    }
    for a in &t.access {
        let _ = writeln!(
            o,
            "access {}: {} {} from {}",
            a.principal,
            a.policy.as_deref().unwrap_or("-"),
            a.groups.join(", "),
            a.from
        );
    }
    for f in &plan.findings {
        // What was not read is the same for every spec without a cluster behind it.
        if f.severity != Severity::NotChecked {
            let word = format!("{:?}", f.severity).to_lowercase();
            let _ = writeln!(o, "{word} {} {}: {}", f.id, f.object, f.message);
        }
    }
    o
}

/// What nodes are started from; of the user data its length, for it is long.
fn template(o: &mut String, t: &TargetLaunchTemplate) {
    let disk = |d: &Disk| {
        let mut out = format!("{} {} GiB {}", d.device, d.gib, d.kind);
        for (n, unit) in [(d.iops, "iops"), (d.throughput, "MiB/s")] {
            if let Some(n) = n {
                let _ = write!(out, " {n} {unit}");
            }
        }
        match (&d.kms_key, d.encrypted) {
            (Some(key), _) => out.push_str(&format!(" encrypted with {key}")),
            (None, true) => out.push_str(" encrypted"),
            (None, false) => out.push_str(" not encrypted"),
        }
        if !d.delete_on_termination {
            out.push_str(" stays");
        }
        out
    };
    let _ = writeln!(o, "  root {}", disk(&t.root));
    for v in &t.volumes {
        let _ = writeln!(o, "  volume {}", disk(v));
    }
    let _ = writeln!(
        o,
        "  metadata tokens {}, {} hops",
        t.http_tokens, t.hop_limit
    );
    if !t.security_groups.is_empty() {
        let _ = writeln!(o, "  security groups {}", t.security_groups.join(", "));
    }
    for (k, v) in &t.tags {
        let _ = writeln!(o, "  tag {k}={v}");
    }
    if let Some(u) = &t.user_data {
        let _ = writeln!(o, "  user data of {} bytes", u.len());
    }
}

/// Plans of all AWS specs of a folder by file name.
pub(crate) fn plans(folder: &str) -> BTreeMap<String, Plan> {
    let mut out = BTreeMap::new();
    for entry in std::fs::read_dir(root().join(folder)).expect("the corpus is there") {
        let path = entry.expect("readable").path();
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .to_string();
        if path.extension().is_none_or(|e| e != "yaml") || name.contains("REFUSE") {
            continue;
        }
        let key = Key::from_bytes([0; 32]);
        let mut snapshot = files::from_files(std::slice::from_ref(&path), None, &key)
            .unwrap_or_else(|e| panic!("{name}: {e}"))
            .snapshot;
        snapshot.taken = Some("2026-11-30".into());
        let spec = crate::spec::defaults_for(&snapshot);
        out.insert(name, plan(&spec, &snapshot));
    }
    out
}

#[test]
fn every_spec_of_the_corpora_plans_to_its_reviewed_result() {
    let bless = std::env::var_os("CROSSFADE_BLESS").is_some();
    let mut wrong = vec![];
    let mut seen = 0;
    for folder in ["kops", "kops-handwritten"] {
        for (name, plan) in plans(folder) {
            seen += 1;
            let path = root().join("expected").join(format!("{name}.txt"));
            let is = told(&plan);
            if bless {
                std::fs::create_dir_all(root().join("expected")).expect("a folder");
                std::fs::write(&path, &is).expect("written");
                continue;
            }
            let was = std::fs::read_to_string(&path).unwrap_or_default();
            if was != is {
                let diff = similar::TextDiff::from_lines(&was, &is);
                wrong.push(format!(
                    "{name}:\n{}",
                    diff.unified_diff().context_radius(0)
                ));
            }
        }
    }
    assert!(seen >= 44, "only {seen} specs");
    assert!(
        wrong.is_empty(),
        "{} specs plan to something else than was reviewed:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
