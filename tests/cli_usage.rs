//! Help, completions, man pages, exit code 64.

mod common;
use common::Dir;

const VERBS: &[&str] = &[
    "init",
    "discover",
    "plan",
    "review",
    "rehearse",
    "migrate",
    "status",
    "rollback",
    "explain",
    "hazards",
    "finalize",
    "skip",
    "schema",
    "completions",
    "man",
];

#[test]
fn every_verb_has_help_with_an_example() {
    let dir = Dir::new();
    let top = dir.run(&["--help"]);
    top.expect(0).out_has("Exit codes:");
    for verb in VERBS {
        top.out_has(verb);
        let help = dir.run(&[verb, "--help"]);
        help.expect(0)
            .out_has("Example")
            .out_has(&format!("crossfade {verb}"));
        help.out_has("--output");
    }
}

#[test]
fn a_wrong_command_line_is_exit_64_in_text_and_json() {
    let dir = Dir::new();
    dir.run(&[]).expect(64);
    dir.run(&["migrat"]).expect(64).err_has("migrate");
    dir.run(&["migrate", "--to", "nowhere"])
        .expect(64)
        .err_has("preflight");
    dir.run(&["migrate"]).expect(64).err_has("crossfade init");
    let json = dir.run(&["migrate", "--nonsense", "-o", "json"]);
    json.expect(64);
    assert_eq!(json.error()["kind"], "usage");
    assert!(
        json.error()["message"]
            .as_str()
            .unwrap()
            .contains("--nonsense")
    );
    assert!(json.stdout.is_empty());
}

#[test]
fn two_plan_folders_must_be_told_apart() {
    let dir = Dir::with_plan();
    dir.run(&["status"]).expect(0);
    std::fs::create_dir_all(dir.path().join("plans/other")).unwrap();
    std::fs::write(dir.path().join("plans/other/migration.yaml"), "").unwrap();
    dir.run(&["status"])
        .expect(64)
        .err_has("plans/other, plans/shop");
    dir.run(&["status", "plans/shop"]).expect(0);
    dir.run(&["status", "--run", "plans/shop"]).expect(0);
    dir.run(&["status", "--run", "plans/shop/run"]).expect(0);
    dir.run(&["status", "plans/none"])
        .expect(65)
        .err_has("plans/none");
    dir.run(&["status", "plans/shop", "--run", "plans/shop"])
        .expect(64);
}

#[test]
fn completions_and_man_pages_come_from_the_same_tree() {
    let dir = Dir::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = dir.run(&["completions", shell]);
        script.expect(0);
        for verb in VERBS {
            script.out_has(verb);
        }
    }
    dir.run(&["man", "man"]).expect(0);
    for verb in VERBS {
        let page =
            std::fs::read_to_string(dir.path().join(format!("man/crossfade-{verb}.1"))).unwrap();
        assert!(page.contains("Example"), "{verb}");
    }
}

#[test]
fn without_a_terminal_there_is_no_colour() {
    let dir = Dir::with_plan();
    let said = dir.run(&["review"]);
    said.expect(0);
    assert!(!said.stdout.contains('\u{1b}'));
}

#[test]
fn a_closed_pipe_is_no_error() {
    let dir = Dir::with_plan();
    let out = std::process::Command::new("bash")
        .args([
            "-c",
            "set -o pipefail; \"$CROSSFADE\" review | head -1 >/dev/null",
        ])
        .env("CROSSFADE", env!("CARGO_BIN_EXE_crossfade"))
        .current_dir(dir.path())
        .output()
        .unwrap();
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
}
