//! Every plan of the corpora as Terraform.

use super::super::folder::write;
use super::super::{Made, Purpose, covers, render, resources};
use super::{form, go_on, read_back, terraform};
use crate::plan::corpus_tests::plans;
use crate::plan::diff;
use crate::plan::model::Plan;
use crate::rewrite::partition;
use crate::snapshot::files;
use crate::snapshot::mask::Key;
use crate::spec::model::Via;
use crate::world::cloud::Resource;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// All plans: of each kops spec, and of the cluster that kops itself made with its account and objects.
pub fn all() -> BTreeMap<String, Plan> {
    let mut out = plans("kops");
    out.extend(plans("kops-handwritten"));
    let live = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/kops-live");
    let mut snapshot = files::from_files(&[live], None, &Key::from_bytes([0; 32]))
        .expect("kops-live is readable")
        .snapshot;
    snapshot.taken = Some("2026-11-30".into());
    let spec = crate::spec::defaults_for(&snapshot);
    out.insert("kops-live".into(), crate::plan::plan(&spec, &snapshot));
    assert!(out.len() >= 45, "only {} plans", out.len());
    out
}

fn canonical(list: &[Resource]) -> BTreeMap<String, String> {
    list.iter()
        .map(|r| {
            let v = serde_json::to_value(r).expect("JSON");
            (r.id(), crate::object::canonical(&v).to_string())
        })
        .collect()
}

#[test]
fn every_plan_of_the_corpora_reads_back_from_hcl_as_the_same_resources() {
    for (name, plan) in all() {
        let rendering = go_on(&plan, &Made::default());
        let back = read_back::resources(
            &rendering.files,
            &plan.target.cluster.name,
            partition(&plan.target.cluster.region),
        );
        assert_eq!(canonical(&back), canonical(&rendering.rendered), "{name}");
        assert!(rendering.rendered.len() >= 8, "{name}");
    }
}

#[test]
fn no_resource_of_a_plan_is_missing_without_a_word() {
    for (name, plan) in all() {
        let cluster = &plan.target.cluster.name;
        let rendering = go_on(&plan, &Made::default());
        let planned: BTreeSet<String> = resources(&plan)
            .iter()
            .map(|(r, _)| diff::shown(&r.id(), cluster))
            .collect();
        let mut told: BTreeSet<String> = rendering
            .rendered
            .iter()
            .map(|r| diff::shown(&r.id(), cluster))
            .collect();
        for (id, why) in &rendering.left {
            assert!(!why.is_empty() && told.insert(id.clone()), "{name}: {id}");
            assert!(
                rendering.files["README.md"].contains(&format!("`{id}`: {why}")),
                "{name}: {id}"
            );
        }
        assert_eq!(told, planned, "{name}");
        assert!(!planned.is_empty(), "{name}");
    }
}

#[test]
fn the_form_of_every_rendering_is_that_of_fmt_and_rendering_again_changes_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    for (name, plan) in all() {
        for purpose in [
            Purpose::GoOn,
            Purpose::Run {
                run: "shop-1".into(),
            },
        ] {
            let plan = match purpose {
                Purpose::GoOn => plan.clone(),
                Purpose::Run { .. } => via_terraform(&plan),
            };
            let made = Made {
                caller: Some("arn:aws:iam::123456789012:role/ops".into()),
                ..Made::default()
            };
            let rendering = render(&plan, &made, &purpose);
            assert_eq!(rendering, render(&plan, &made, &purpose), "{name}");
            for (file, text) in &rendering.files {
                if file.ends_with(".tf") || file.ends_with(".tfvars") {
                    assert_eq!(
                        form::wrong(text),
                        Vec::<String>::new(),
                        "{name}/{file}:\n{text}"
                    );
                }
            }
            let kind = if purpose == Purpose::GoOn {
                "on"
            } else {
                "run"
            };
            let to = dir.path().join(kind).join(&name);
            let first = write(&to, &rendering, false).expect("written");
            assert_eq!(first.written.len(), rendering.files.len(), "{name}");
            let again = write(&to, &rendering, false).expect("written");
            assert!(
                again.written.is_empty() && again.removed.is_empty(),
                "{name}: {again:?}"
            );
        }
    }
    let Some(program) = terraform("terraform fmt on every rendering of the corpora") else {
        return;
    };
    let fmt = Command::new(program)
        .args(["fmt", "-check", "-diff", "-recursive", "."])
        .current_dir(dir.path())
        .output()
        .expect("it runs");
    assert!(
        fmt.status.success(),
        "terraform fmt would change:\n{}\n{}",
        String::from_utf8_lossy(&fmt.stdout),
        String::from_utf8_lossy(&fmt.stderr)
    );
}

#[test]
fn the_maintained_modules_are_in_the_program_as_they_stand_in_the_repository_and_in_the_form_of_fmt()
 {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("terraform");
    let mut there = BTreeMap::new();
    for module in std::fs::read_dir(root.join("modules"))
        .expect("modules")
        .flatten()
    {
        for file in std::fs::read_dir(module.path()).expect("files").flatten() {
            let path = file.path();
            let name = path
                .strip_prefix(&root)
                .expect("below")
                .display()
                .to_string();
            there.insert(name, std::fs::read_to_string(&path).expect("text"));
        }
    }
    let inside: BTreeMap<String, String> = super::super::MODULES
        .iter()
        .map(|(p, t)| ((*p).to_string(), (*t).to_string()))
        .collect();
    assert_eq!(inside, there);
    for (name, text) in &there {
        read_back::parse(name, text);
        assert_eq!(form::wrong(text), Vec::<String>::new(), "{name}");
        if name.ends_with("versions.tf") {
            assert!(
                text.contains("\">= 6.28, < 7.0\""),
                "{name}: a range with an end"
            );
        }
    }
}

#[test]
fn no_secret_of_a_snapshot_reaches_a_rendering() {
    // kops-live holds the cluster's real Secrets, private keys and tokens of its state store.
    let live = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/kops-live");
    let text = std::fs::read_to_string(live.join("get-all.json")).expect("its objects");
    let plans = all();
    let rendering = go_on(&plans["kops-live"], &Made::default());
    let everything: String = rendering.files.values().cloned().collect();
    for word in ["PRIVATE KEY", "hmac-sha256:", "BEGIN CERTIFICATE"] {
        assert!(!everything.contains(word), "{word}");
    }
    let objects: Value = serde_json::from_str(&text).expect("JSON");
    let mut values = vec![];
    secrets(&objects, &mut values);
    for v in values.iter().filter(|v| v.len() >= 8) {
        assert!(!everything.contains(v.as_str()), "a value of a Secret");
    }
}

fn secrets(v: &Value, out: &mut Vec<String>) {
    if v["kind"] == "Secret" {
        for data in v["data"].as_object().into_iter().flatten() {
            out.extend(data.1.as_str().map(String::from));
        }
    }
    match v {
        Value::Array(a) => a.iter().for_each(|v| secrets(v, out)),
        Value::Object(o) => o.values().for_each(|v| secrets(v, out)),
        _ => {}
    }
}

/// The same plan where Terraform makes green.
pub fn via_terraform(plan: &Plan) -> Plan {
    let mut spec = plan.spec.clone();
    spec.provision.via = Via::Terraform;
    let mut out = plan.clone();
    out.spec = spec;
    let (its, rest): (Vec<Resource>, Vec<Resource>) = resources(plan)
        .into_iter()
        .map(|(r, _)| r)
        .partition(covers);
    let like = plan
        .steps
        .iter()
        .find(|s| s.kind == "cloud.ensure")
        .expect("one")
        .clone();
    out.steps.retain(|s| {
        s.kind != "cloud.ensure"
            || rest
                .iter()
                .any(|r| s.params["resource"] == serde_json::to_value(r).expect("JSON"))
    });
    out.steps.push(crate::plan::model::StepSpec {
        id: "provision/terraform".into(),
        kind: super::super::APPLY.into(),
        params: serde_json::json!({"resources": its}),
        ..like
    });
    out
}
