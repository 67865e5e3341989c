//! A rendering on disk.

use super::super::Made;
use super::super::folder::{MANIFEST, write};
use super::{demo_plan, go_on};
use crate::error::Kind;

#[test]
fn a_persons_own_files_beside_a_rendering_are_left_alone() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(dir.path().join("ours.tf"), "# ours\n").expect("written");
    let rendering = go_on(&demo_plan(), &Made::default());
    write(dir.path(), &rendering, false).expect("written");
    let mut less = rendering.clone();
    less.files.remove("outputs.tf");
    let written = write(dir.path(), &less, false).expect("written");
    assert_eq!(
        written.removed,
        ["outputs.tf"],
        "a file of an earlier rendering goes"
    );
    assert_eq!(
        std::fs::read_to_string(dir.path().join("ours.tf")).expect("there"),
        "# ours\n"
    );
}

#[test]
fn an_edited_file_stops_the_rendering_before_anything_is_written_until_somebody_says_force() {
    let dir = tempfile::tempdir().expect("a folder");
    let rendering = go_on(&demo_plan(), &Made::default());
    write(dir.path(), &rendering, false).expect("written");
    let main = dir.path().join("main.tf");
    let edited = format!("{}\n# mine\n", rendering.files["main.tf"]);
    std::fs::write(&main, &edited).expect("edited");
    let mut newer = rendering.clone();
    newer.files.insert("a-new-file.tf".into(), "# new\n".into());
    let e = write(dir.path(), &newer, false).expect_err("refused");
    assert_eq!(e.kind, Kind::Blocked);
    assert!(
        e.message.contains("main.tf") && e.remedy.contains("--force"),
        "{e:?}"
    );
    assert!(
        !dir.path().join("a-new-file.tf").exists(),
        "nothing was written"
    );
    write(dir.path(), &newer, true).expect("forced");
    assert_eq!(
        std::fs::read_to_string(&main).expect("there"),
        newer.files["main.tf"]
    );
}

#[test]
fn a_file_that_was_there_before_the_first_rendering_is_somebodys_and_not_overwritten() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(dir.path().join("main.tf"), "# theirs\n").expect("written");
    let e = write(dir.path(), &go_on(&demo_plan(), &Made::default()), false).expect_err("refused");
    assert!(e.message.contains("main.tf"), "{e:?}");
    assert!(!dir.path().join(MANIFEST).exists());
}

#[test]
fn an_edited_file_that_the_rendering_has_no_more_stays() {
    let dir = tempfile::tempdir().expect("a folder");
    let rendering = go_on(&demo_plan(), &Made::default());
    write(dir.path(), &rendering, false).expect("written");
    std::fs::write(dir.path().join("outputs.tf"), "# mine\n").expect("edited");
    let mut less = rendering.clone();
    less.files.remove("outputs.tf");
    let written = write(dir.path(), &less, false).expect("written");
    assert_eq!(written.removed, Vec::<String>::new());
    assert!(dir.path().join("outputs.tf").exists());
}

#[test]
fn a_manifest_that_points_elsewhere_removes_nothing_there() {
    let dir = tempfile::tempdir().expect("a folder");
    let victim = dir.path().join("victim.txt");
    std::fs::write(&victim, "keep").expect("written");
    let inner = dir.path().join("out");
    std::fs::create_dir_all(&inner).expect("a folder");
    let hash = crate::object::sha256_hex("keep");
    std::fs::write(
        inner.join(MANIFEST),
        format!("{{\"files\": {{\"../victim.txt\": \"{hash}\"}}}}"),
    )
    .expect("written");
    write(&inner, &go_on(&demo_plan(), &Made::default()), false).expect("written");
    assert!(victim.exists());
}
