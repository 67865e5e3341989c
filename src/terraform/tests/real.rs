//! The real program on every rendering of the corpora, over modules whose AWS resources are Terraform's own (`stub`): every type, reference,
//! condition and expression of root and modules is evaluated. Where there is no program, this says so.

use super::super::{Made, Purpose, Rendering, render};
use super::corpus::{all, via_terraform};
use super::{stub, terraform};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Whether it went well, and what it said.
fn ask(program: &str, dir: &Path, args: &[&str]) -> (bool, String) {
    let out = Command::new(program)
        .args(args)
        .current_dir(dir)
        .env("CHECKPOINT_DISABLE", "1")
        .output()
        .expect("it runs");
    let mut said = String::from_utf8_lossy(&out.stdout).into_owned();
    if !out.status.success() {
        said.push_str(&String::from_utf8_lossy(&out.stderr));
    }
    (out.status.success(), said)
}

fn run(program: &str, dir: &Path, args: &[&str]) -> String {
    let (good, said) = ask(program, dir, args);
    assert!(good, "{args:?} in {}:\n{said}", dir.display());
    said
}

fn put(dir: &Path, files: &BTreeMap<String, String>) {
    for (path, text) in files {
        let to = dir.join(path);
        std::fs::create_dir_all(to.parent().expect("a folder")).expect("made");
        std::fs::write(to, text).expect("written");
    }
}

/// What a person would fill in.
fn filled(rendering: &Rendering) -> BTreeMap<String, String> {
    let mut files = stub::files(&rendering.files);
    let mut names = BTreeSet::new();
    for part in rendering.files["main.tf"].split("var.subnets[\"").skip(1) {
        names.insert(part.split('"').next().unwrap_or("").to_string());
    }
    let mut values = files.remove("terraform.tfvars").unwrap_or_default();
    if !values.contains("account") {
        values.push_str("account = \"000000000000\"\n");
    }
    if rendering.files["main.tf"].contains("var.caller") && !values.contains("caller") {
        values.push_str("caller = \"arn:aws:iam::000000000000:role/ops\"\n");
    }
    if !names.is_empty() {
        values.push_str("subnets = {\n");
        for (i, n) in names.iter().enumerate() {
            values.push_str(&format!("\"{n}\" = \"subnet-{i}\"\n"));
        }
        values.push_str("}\n");
    }
    files.insert("terraform.tfvars".into(), values);
    files
}

#[test]
fn the_real_program_evaluates_every_rendering_and_would_make_each_resource_where_crossfade_looks_for_it()
 {
    let Some(program) = terraform("terraform plan of every rendering over stubbed modules") else {
        return;
    };
    let dir = tempfile::tempdir().expect("a folder");
    // Two cores: a few at once would only wait for each other.
    for (name, plan) in all() {
        for purpose in [
            Purpose::GoOn,
            Purpose::Run {
                run: "shop-1".into(),
            },
        ] {
            let plan = match &purpose {
                Purpose::GoOn => plan.clone(),
                // The same modules: a few plans are enough to see that less is rendered.
                Purpose::Run { .. } if name.len() % 5 != 0 => continue,
                Purpose::Run { .. } => via_terraform(&plan),
            };
            let made = Made {
                caller: Some("arn:aws:iam::000000000000:role/ops".into()),
                ..Made::default()
            };
            let rendering = render(&plan, &made, &purpose);
            let at = dir
                .path()
                .join(format!("{name}-{}", purpose == Purpose::GoOn));
            put(&at, &filled(&rendering));
            run(program, &at, &["init", "-input=false", "-no-color"]);
            let plan_it = ["plan", "-input=false", "-no-color", "-out=p"];
            let makes_cluster = rendering.files["main.tf"].contains("module \"cluster\"");
            if makes_cluster && plan.target.cluster.subnets.len() < 2 {
                // A cluster of kops may have one zone, one of EKS not: the module says so before AWS does.
                let (good, said) = ask(program, &at, &plan_it);
                assert!(
                    !good && said.contains("at least two zones"),
                    "{name}: {said}"
                );
                // With one more the rest can be seen too.
                let main = at.join("main.tf");
                let text = std::fs::read_to_string(&main).expect("rendered");
                let (head, rest) = text.split_once("module \"network\" {").expect("a network");
                let (subnets, tail) = rest.split_once("]\n").expect("its subnets");
                let two = format!(
                    "{head}module \"network\" {{{subnets}, \"subnet-of-another-zone\"]\n{tail}"
                );
                std::fs::write(&main, two).expect("written");
            }
            run(program, &at, &plan_it);
            let shown: Value =
                serde_json::from_str(&run(program, &at, &["show", "-json", "p"])).expect("JSON");
            let planned: BTreeSet<String> = shown["resource_changes"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|c| c["address"].as_str().map(stub::real_address))
                .collect();
            let known = super::super::Known {
                account: Some("000000000000".into()),
                caller: made.caller.clone(),
            };
            for r in &rendering.rendered {
                let address = super::super::address(r, &known).expect("an address");
                assert!(
                    planned.contains(&address),
                    "{name}: {address} is not in {planned:#?}"
                );
            }
        }
    }
}
