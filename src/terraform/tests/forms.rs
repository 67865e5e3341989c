//! The writer, form by form.

use super::super::hcl::{Expr, Item, Key, Part, attr, block, file, json, text};
use super::super::inputs::template;
use super::{form, terraform};
use serde_json::json;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// As `terraform fmt` gives it back, where it is there.
fn is_canonical(text: &str) {
    assert_eq!(form::wrong(text), Vec::<String>::new(), "{text}");
    let Some(program) = terraform("terraform fmt of one form") else {
        return;
    };
    let mut child = Command::new(program)
        .args(["fmt", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    child
        .stdin
        .take()
        .expect("piped")
        .write_all(text.as_bytes())
        .expect("taken");
    let out = child.wait_with_output().expect("it ends");
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    assert_eq!(String::from_utf8_lossy(&out.stdout), text);
}

#[test]
fn neighbours_share_a_column_and_a_value_of_several_lines_ends_it() {
    let out = file(&[block(
        "module",
        "m",
        vec![
            attr("a", text("x")),
            attr("longer", Expr::Number("1".into())),
            attr(
                "map",
                Expr::Object(vec![
                    (Key::Ident("k".into()), Expr::Bool(true)),
                    (Key::Text(template("a b")), Expr::List(vec![])),
                ]),
            ),
            attr("z", Expr::Null),
            block("inner", "", vec![attr("v", text("w"))]),
        ],
    )]);
    assert_eq!(
        out,
        "module \"m\" {\n  a      = \"x\"\n  longer = 1\n  map = {\n    k     = true\n    \"a b\" = []\n  }\n  z = null\n\n  inner {\n    v = \"w\"\n  }\n}\n"
    );
    is_canonical(&out);
}

#[test]
fn placeholders_become_references_and_what_iam_writes_so_stays_text() {
    assert_eq!(
        template("${cluster.issuer}:aud"),
        [Part::Ref("local.issuer".into()), Part::Lit(":aud".into())]
    );
    // A policy variable of IAM, not a placeholder of ours: it must reach AWS as it is.
    let out = file(&[attr(
        "policy",
        Expr::Call(
            "jsonencode",
            Box::new(json(
                &json!({"Resource": "arn:aws:s3:::home/${aws:username}/*", "If": "%{x}", "${cluster.issuer}:sub": ["a", "b\"\\\n"]}),
                &template,
            )),
        ),
    )]);
    assert_eq!(
        out,
        "policy = jsonencode({\n  Resource              = \"arn:aws:s3:::home/$${aws:username}/*\"\n  If                    = \"%%{x}\"\n  \"${local.issuer}:sub\" = [\"a\", \"b\\\"\\\\\\n\"]\n})\n"
    );
    is_canonical(&out);
}

#[test]
fn a_string_that_is_one_reference_stands_without_quotes_as_fmt_wants_it() {
    let out = file(&[
        attr("who", Expr::Text(template("${caller}"))),
        attr(
            "by",
            Expr::Object(vec![(
                Key::Text(template("${caller}")),
                Expr::Object(vec![]),
            )]),
        ),
    ]);
    assert_eq!(out, "who = var.caller\nby = {\n  (var.caller) = {}\n}\n");
    is_canonical(&out);
}

#[test]
fn long_lists_and_lists_of_objects_stand_one_below_the_other() {
    let long = |n: usize| Expr::List((0..n).map(|i| text(&format!("subnet-{i:017}"))).collect());
    let out = file(&[
        Item::Comment("Two lines\nof words.".into()),
        attr("few", long(2)),
        attr("many", long(5)),
        attr(
            "objects",
            Expr::List(vec![Expr::Object(vec![(
                Key::Ident("a".into()),
                Expr::Null,
            )])]),
        ),
    ]);
    assert!(
        out.starts_with("# Two lines\n# of words.\nfew = [\"subnet"),
        "{out}"
    );
    assert!(
        out.contains("many = [\n  \"subnet-00000000000000000\",\n"),
        "{out}"
    );
    is_canonical(&out);
}
