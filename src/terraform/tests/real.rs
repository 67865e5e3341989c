//! The real program on every rendering of the corpora, over modules whose AWS resources are Terraform's own (`stub`): every type, reference,
//! condition and expression of root and modules is evaluated. Where there is no program, this says so.

use super::super::{Made, Purpose, Rendering, render};
use super::corpus::{all, via_terraform};
use super::{stub, terraform};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

fn run(program: &str, dir: &Path, args: &[&str]) -> String {
    let out = Command::new(program)
        .args(args)
        .current_dir(dir)
        .env("CHECKPOINT_DISABLE", "1")
        .output()
        .expect("it runs");
    assert!(
        out.status.success(),
        "{args:?} in {}:\n{}\n{}",
        dir.display(),
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr)
    );
    String::from_utf8_lossy(&out.stdout).into_owned()
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
            run(
                program,
                &at,
                &["plan", "-input=false", "-no-color", "-out=p"],
            );
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
