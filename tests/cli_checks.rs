//! The register of checks on the command line, and what a waiver changes there.

mod common;
use common::{Dir, plan};
use crossfade::plan::model::{Finding, Severity};

fn finding(id: &str, waived: Option<&str>) -> Finding {
    Finding {
        id: id.into(),
        severity: Severity::Blocker,
        object: "deployment/a/b".into(),
        message: "is wrong".into(),
        remedy: "Mend it.".into(),
        source: "checks.md".into(),
        waived: waived.map(Into::into),
    }
}

#[test]
fn the_register_is_listed_and_one_check_shown_in_full() {
    let dir = Dir::new();
    dir.run(&["checks"])
        .expect(0)
        .out_has("SNG-08")
        .out_has("the run (step pins)");
    dir.run(&["checks", "sng-04"])
        .expect(0)
        .out_has("Would two copies of a controller fight")
        .out_has("checks.md SNG-04");
    dir.run(&["checks", "ID-01"])
        .expect(0)
        .out_has("waiver    not possible");
    dir.run(&["checks", "SNG-99"])
        .expect(65)
        .err_has("there is no check SNG-99")
        .err_has("SNG-01 to SNG-08");
    let json = dir.run(&["checks", "-o", "json"]);
    let value = json.expect(0).json();
    let one = value["checks"]
        .as_array()
        .and_then(|c| c.iter().find(|c| c["id"] == "VER-05"))
        .cloned()
        .expect("VER-05 is registered");
    assert_eq!(one["needs"], serde_json::json!(["the kops cluster"]));
    assert_eq!(one["answered"]["by"], "plan");
    assert!(one.get("verdict").is_none());
}

#[test]
fn with_a_plan_each_check_says_what_it_found_in_it() {
    let dir = Dir::with_plan();
    let mut p = plan();
    p.findings = vec![
        finding("SNG-04", None),
        finding("API-03", Some("read by Ann")),
    ];
    p.digest = crossfade::plan::digest_of(&p);
    dir.write_plan(&p);
    let folder = dir.folder();
    let folder = folder.to_str().expect("a plain path");
    let json = dir.run(&["checks", folder, "-o", "json"]);
    let value = json.expect(0).json();
    let is = |id: &str| {
        value["checks"]
            .as_array()
            .and_then(|c| c.iter().find(|c| c["id"] == id))
            .map(|c| c["verdict"]["is"].clone())
            .expect("registered")
    };
    assert_eq!(
        (is("SNG-04"), is("API-03")),
        ("fires".into(), "waived".into())
    );
    assert_eq!((is("SNG-01"), is("ID-07")), ("ok".into(), "later".into()));
    dir.run(&["checks", "API-03", folder])
        .expect(0)
        .out_has("accepted: read by Ann");
}

#[test]
fn a_waived_blocker_stands_in_nobodys_way_and_stays_to_be_seen() {
    let dir = Dir::with_plan();
    let mut p = plan();
    p.findings = vec![finding("NET-06", Some("read by Ann (until 2026-12-31)"))];
    p.digest = crossfade::plan::digest_of(&p);
    dir.write_plan(&p);
    dir.run(&["review"])
        .expect(0)
        .out_has("waived blocker NET-06")
        .out_has("accepted: read by Ann (until 2026-12-31)");
    dir.run(&["review", "--approve", "all"]).expect(0);
    p.findings[0].waived = None;
    p.digest = crossfade::plan::digest_of(&p);
    dir.write_plan(&p);
    dir.run(&["review", "--approve", "all"])
        .expect(3)
        .err_has("NET-06");
}
