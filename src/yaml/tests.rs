use super::*;
use serde_json::json;

fn one(text: &str) -> Value {
    let mut all = manifests(text, "m.yaml");
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0).expect("readable").0
}

/// rust.md section 2, column "serde-saphyr": what kubectl reads, row by row.
#[test]
fn a_manifest_means_what_kubectl_says_it_means() {
    for word in ["on", "yes", "y", "true"] {
        assert_eq!(one(&format!("a: {word}")), json!({"a": true}), "{word}");
    }
    for word in ["off", "no", "n", "false"] {
        assert_eq!(one(&format!("a: {word}")), json!({"a": false}), "{word}");
    }
    assert_eq!(one("a: 0644"), json!({"a": 420}));
    assert_eq!(one("a: 1_000"), json!({"a": 1000}));
    assert_eq!(one("a: 1.20"), json!({"a": 1.2}));
    assert_eq!(one("a: 18446744073709551615"), json!({"a": u64::MAX}));
    assert!(one("a: 18446744073709551616")["a"].is_f64());
    assert_eq!(
        one("x: &x {b: 1}\ny: {<<: *x, c: 2}")["y"],
        json!({"b": 1, "c": 2})
    );
    assert_eq!(one("a: !!binary aGk="), json!({"a": "hi"}));
    for bad in ["a: .nan", "a: .inf"] {
        assert!(manifests(bad, "m.yaml")[0].is_err(), "{bad}");
    }
}

#[test]
fn a_duplicate_key_is_an_error_of_its_document_and_the_next_one_is_still_read() {
    let all = manifests("a: 1\na: 2\n---\nb: 3\n", "m.yaml");
    let e = all[0].as_ref().expect_err("duplicate");
    assert_eq!(e.at, "m.yaml:2:1");
    assert_eq!(e.message, "the key `a` appears twice");
    assert_eq!(all[1].as_ref().expect("second").0, json!({"b": 3}));
}

#[test]
fn comment_only_and_empty_documents_are_skipped_and_lines_are_told() {
    let all = manifests(
        "# nothing\n---\n# here\n---\n\na: 1\n---\n---\nb: 2\n",
        "m.yaml",
    );
    let lines: Vec<_> = all.into_iter().map(|r| r.expect("ok").1).collect();
    assert_eq!(lines, [6, 9]);
}

#[test]
fn windows_line_ends_and_the_comment_block_of_kops_get_full_are_read() {
    let v = manifests(
        "//\r\n//   WARNING: x: y\r\n\r\napiVersion: v1\r\nkind: A\r\n",
        "m.yaml",
    );
    assert_eq!(v.len(), 1);
    let (value, line) = v[0].as_ref().expect("ok");
    assert_eq!(
        (value, *line),
        (&json!({"apiVersion": "v1", "kind": "A"}), 4)
    );
}

#[test]
fn json_is_read_in_every_form_people_export() {
    assert_eq!(one("{\"a\": 1}"), json!({"a": 1}));
    let all = manifests("[{\"a\": 1}\n,\n{\"b\": \"0644\"}]\n", "m.json");
    assert_eq!(all.len(), 2);
    assert_eq!(all[1].as_ref().expect("ok").0, json!({"b": "0644"}));
    let lines: Vec<_> = manifests("{\"a\": 1}\n{\"b\": 2}\n", "m.json")
        .into_iter()
        .map(|r| r.expect("ok").1)
        .collect();
    assert_eq!(lines, [1, 2]);
    assert!(
        manifests("{\"a\": 1,\n", "cut.json")[0].is_err(),
        "a cut-off file is not an empty one"
    );
}

#[test]
fn a_big_export_of_many_documents_is_not_refused_by_the_readers_own_limits() {
    let text = "apiVersion: v1\nkind: ConfigMap\n---\n".repeat(3_000);
    let all = manifests(&text, "m.yaml");
    assert_eq!(all.len(), 3_000);
    assert!(all.iter().all(Result::is_ok));
}

#[test]
fn an_alias_bomb_is_refused() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for i in 1..9 {
        let p = format!("*a{}", i - 1);
        text.push_str(&format!("a{i}: &a{i} [{}]\n", vec![p; 10].join(", ")));
    }
    assert!(manifests(&text, "m.yaml")[0].is_err());
}

#[test]
fn words_that_kubectl_would_read_as_booleans_or_numbers_are_written_quoted() {
    let value = json!({"a": "on", "b": "yes", "c": "y", "d": "1.20", "e": "0644", "f": "null", "g": "~", "h": ""});
    assert_eq!(one(&to_string(&value).expect("written")), value);
}

#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Config {
    #[allow(dead_code)]
    low_ttl: u32,
    #[serde(default)]
    #[allow(dead_code)]
    items: Vec<Item>,
}
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Item {
    #[allow(dead_code)]
    host: String,
    #[serde(default)]
    #[allow(dead_code)]
    on: bool,
}

fn refused(text: &str) -> Error {
    let e = strict::<Config>(text, "plans/x/migration.yaml").expect_err("must be refused");
    assert_eq!(e.kind, Kind::BadInput);
    e
}

#[test]
fn a_misspelt_key_is_shown_where_it_stands_with_the_right_spelling() {
    let e = refused("# plan\nlowTtl: 5\nitems:\n- host: a\n- host: b\n  hsot: c\n");
    assert_eq!(e.at, "plans/x/migration.yaml:6:3");
    assert_eq!(e.message, "unknown field `hsot`");
    assert_eq!(e.remedy, "did you mean `host`?");
    let shown = e.excerpt.expect("excerpt");
    assert!(shown.contains("6 |   hsot: c\n  |   ^"), "{shown}");
    assert_eq!(refused("low_ttl: 5\n").remedy, "did you mean `lowTtl`?");
    assert_eq!(
        refused("lowTtl: 1\nqqqqq: 5\n").remedy,
        "fields here: lowTtl, items"
    );
}

#[test]
fn wrong_types_missing_keys_second_documents_and_empty_files_are_told_apart() {
    let e = refused("lowTtl: soon\n");
    assert_eq!(e.at, "plans/x/migration.yaml:1:9", "{e:?}");
    assert!(!e.message.contains("line 1"), "{}", e.message);
    assert_eq!(
        refused("items: []\n").message,
        "the field `lowTtl` is missing"
    );
    assert_eq!(
        refused("lowTtl: 1\n---\nlowTtl: 2\n").message,
        "the file holds more than one document"
    );
    for empty in ["", "\n\n", "# only a comment\n", "---\n"] {
        assert_eq!(refused(empty).message, "the file is empty");
    }
    assert_eq!(
        refused("lowTtl: 1\nlowTtl: 2\n").message,
        "the key `lowTtl` appears twice"
    );
    // Our own config has one spelling of a truth value.
    let e = refused("lowTtl: 1\nitems: [{host: a, on: yes}]\n");
    assert!(e.at.starts_with("plans/x/migration.yaml:2:"), "{e:?}");
}

#[test]
fn a_path_is_found_by_key_and_index_and_falls_back_to_what_exists() {
    let text = "name: x\ndata:\n- name: orders\n  blue:\n    port: 1\n- name: two\n";
    let at = |p: &[&str]| {
        let p = locate(text, p);
        (p.line, p.column)
    };
    assert_eq!(at(&["name"]), (1, 7));
    assert_eq!(at(&["data", "0", "blue", "port"]), (5, 11));
    assert_eq!(at(&["data", "1", "name"]), (6, 9));
    assert_eq!(
        at(&["data", "1", "blue"]),
        (6, 3),
        "absent: the item that lacks it"
    );
    assert_eq!(at(&["data"]), (2, 1));
}

#[test]
fn every_leaf_has_its_place_in_each_form_of_text() {
    let yaml = "\u{feff}// banner\n---\na:\n  b: 1\n  c: []\n  \"d.e/f\":\n  - x\n  -  {y: ~}\n---\n# nothing\n---\nz: 2\r\n";
    assert_eq!(
        places(yaml),
        [
            (
                json!({"a": {"b": "4:6", "c": "5:6", "d.e/f": ["7:5", {"y": "8:10"}]}}),
                3
            ),
            (json!({"z": "12:4"}), 12),
        ]
    );
    let array = "[\n  {\"a\": 1},\n\t{\"b\": {\"c\": \"x\"}}\n]\n";
    assert_eq!(
        places(array),
        [(json!({"a": "2:9"}), 2), (json!({"b": {"c": "3:14"}}), 3)]
    );
    let row = "{\"a\": 1}\n{\"b\": [2]}\n";
    assert_eq!(
        places(row),
        [(json!({"a": "1:7"}), 1), (json!({"b": ["2:8"]}), 2)]
    );
    // As many places as documents, whatever is in the file.
    for text in [yaml, array, row] {
        let read = manifests(text, "f");
        let lines: Vec<usize> = places(text).into_iter().map(|p| p.1).collect();
        assert_eq!(read.len(), lines.len());
    }
}
