//! Terraform on the command line: what is rendered, what is not overwritten, and that nobody approves a Terraform plan that is not there.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn demo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("plans/demo")
}

fn crossfade(args: &[&str]) -> (i32, String) {
    let out: Output = Command::new(env!("CARGO_BIN_EXE_crossfade"))
        .args(args)
        .env("NO_COLOR", "1")
        .output()
        .expect("it runs");
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr)
    );
    (out.status.code().unwrap_or(-1), text)
}

/// A copy of the demo's plan folder, with another migration.yaml.
fn folder(at: &Path, change: impl Fn(String) -> String) {
    fn copy(from: &Path, to: &Path) {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap().flatten() {
            let to = to.join(entry.file_name());
            if entry.path().is_dir() {
                copy(&entry.path(), &to);
            } else {
                std::fs::copy(entry.path(), to).unwrap();
            }
        }
    }
    copy(&demo(), at);
    let spec = at.join("migration.yaml");
    std::fs::write(&spec, change(std::fs::read_to_string(&spec).unwrap())).unwrap();
}

#[test]
fn green_is_rendered_into_the_plan_folder_and_a_second_time_nothing_changes() {
    let dir = tempfile::tempdir().unwrap();
    let plan = dir.path().join("demo");
    folder(&plan, |text| text);
    let plan = plan.display().to_string();
    let (code, said) = crossfade(&["plan", &plan, "--render", "terraform"]);
    assert_eq!(code, 0, "{said}");
    let to = dir.path().join("demo/terraform");
    assert!(
        said.contains("as Terraform, ") && said.contains("files written"),
        "{said}"
    );
    for file in [
        "main.tf",
        "provider.tf",
        "README.md",
        "modules/cluster/main.tf",
    ] {
        assert!(to.join(file).is_file(), "{file}");
    }
    assert!(
        !dir.path().join("demo/plan.json").exists(),
        "nothing else is written"
    );
    let (code, said) = crossfade(&["plan", &plan, "--render", "terraform"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("nothing changed"), "{said}");
    let main = to.join("main.tf");
    let text = std::fs::read_to_string(&main).unwrap();
    std::fs::write(&main, format!("{text}# mine\n")).unwrap();
    let (code, said) = crossfade(&["plan", &plan, "--render", "terraform"]);
    assert_eq!(code, 3, "{said}");
    assert!(
        said.contains("main.tf") && said.contains("--force"),
        "{said}"
    );
    assert!(
        std::fs::read_to_string(&main)
            .unwrap()
            .ends_with("# mine\n")
    );
    let (code, said) = crossfade(&["plan", &plan, "--render", "terraform", "--force"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(std::fs::read_to_string(&main).unwrap(), text);
}

#[test]
fn a_snapshot_alone_is_rendered_where_one_says() {
    let dir = tempfile::tempdir().unwrap();
    let snapshot = demo().join("snapshot").display().to_string();
    let (code, said) = crossfade(&["plan", "--snapshot", &snapshot, "--render", "terraform"]);
    assert_eq!(code, 64, "{said}");
    assert!(said.contains("--out DIR"), "{said}");
    let out = dir.path().join("tf").display().to_string();
    let (code, said) = crossfade(&[
        "plan",
        "--snapshot",
        &snapshot,
        "--render",
        "terraform",
        "--out",
        &out,
        "-o",
        "json",
    ]);
    assert_eq!(code, 0, "{said}");
    let told: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert!(told["rendered"].as_array().unwrap().len() > 8, "{told}");
    // Each that is not in it has a reason.
    for left in told["left"].as_array().unwrap() {
        assert!(!left["why"].as_str().unwrap().is_empty(), "{left}");
    }
}

#[test]
fn without_a_terraform_plan_the_phase_cannot_be_approved() {
    let dir = tempfile::tempdir().unwrap();
    let plan = dir.path().join("demo");
    folder(&plan, |text| {
        format!("{text}\nprovision:\n  via: terraform\n")
    });
    let at = plan.display().to_string();
    // As if `crossfade plan` had stopped before Terraform: the plan is there, Terraform's is not.
    let spec = crossfade::spec::load(&plan.join("migration.yaml")).unwrap();
    let snapshot = crossfade::snapshot::store::read(&plan.join("snapshot")).unwrap();
    crossfade::plan::store(
        &plan.join("plan.json"),
        &crossfade::plan::plan(&spec, &snapshot),
    )
    .unwrap();
    let (code, said) = crossfade(&["review", &at, "--approve", "all"]);
    assert_eq!(code, 4, "{said}");
    assert!(said.contains("no Terraform plan"), "{said}");
    // The other phases can.
    let (code, said) = crossfade(&["review", &at, "--approve", "ttl"]);
    assert_eq!(code, 0, "{said}");
    let (code, said) = crossfade(&["review", &at]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("let Terraform make"), "{said}");
}
