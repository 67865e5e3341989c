//! What v1beta1 took and v1 does not.

use super::structural;
use serde_json::{Value, json};

const P: &str = "x-kubernetes-preserve-unknown-fields";

/// The schema of `spec.x` after it was made structural, and what is no longer checked.
fn of_field(schema: Value) -> (Value, Vec<String>) {
    let mut root = json!({"properties": {"spec": {"properties": {"x": schema}}}});
    let lost = structural(&mut root);
    assert_eq!((&root["type"], &root[P]), (&json!("object"), &json!(true)));
    let spec = &root["properties"]["spec"];
    assert_eq!(
        (&spec["type"], &spec[P]),
        (&json!("object"), &json!(true)),
        "the mark of the root ends where properties are listed"
    );
    (spec["properties"]["x"].clone(), lost)
}

#[test]
fn a_place_without_a_type_gets_the_one_that_its_other_words_speak_of_or_stays_open() {
    for (before, after) in [
        (
            json!({"pattern": "^a"}),
            json!({"pattern": "^a", "type": "string"}),
        ),
        (
            json!({"minimum": 1}),
            json!({"minimum": 1, "type": "number"}),
        ),
        (
            json!({"enum": ["a", "b"]}),
            json!({"enum": ["a", "b"], "type": "string"}),
        ),
        (
            json!({"enum": [1, "b"]}),
            json!({"enum": [1, "b"], P: true}),
        ),
        (
            json!({"description": "any"}),
            json!({"description": "any", P: true}),
        ),
        (
            json!({"items": {"type": "string"}}),
            json!({"type": "array", "items": {"type": "string"}}),
        ),
        (
            json!({"type": "array"}),
            json!({"type": "array", "items": {P: true}}),
        ),
        (
            json!({"type": "object"}),
            json!({"type": "object", P: true}),
        ),
        (
            json!({"type": "string", "nullable": true}),
            json!({"type": "string", "nullable": true}),
        ),
        (
            json!({"additionalProperties": {"type": "string"}}),
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
        ),
    ] {
        assert_eq!(of_field(before), (after, vec![]));
    }
}

#[test]
fn a_number_or_a_text_is_said_in_the_one_way_that_v1_knows() {
    let one_of = |word: &str| json!({word: [{"type": "string"}, {"type": "integer"}]});
    for before in [
        one_of("oneOf"),
        one_of("anyOf"),
        json!({"type": "string", "format": "int-or-string"}),
        json!({"x-kubernetes-int-or-string": true, "type": "string"}),
    ] {
        assert_eq!(
            of_field(before).0,
            json!({"x-kubernetes-int-or-string": true})
        );
    }
}

#[test]
fn words_that_v1_refuses_go_and_what_they_checked_is_told() {
    let (x, lost) = of_field(json!({"$ref": "#/definitions/y"}));
    assert_eq!(
        (x, lost),
        (json!({P: true}), vec!["spec.x ($ref)".to_string()])
    );
    let (x, lost) =
        of_field(json!({"type": "array", "uniqueItems": true, "items": {"type": "string"}}));
    assert_eq!(
        (x, lost),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            vec!["spec.x (uniqueItems)".to_string()]
        )
    );
    let (x, lost) =
        of_field(json!({"type": "object", "patternProperties": {"^a": {"type": "string"}}}));
    assert_eq!(
        (x, lost),
        (
            json!({"type": "object", P: true}),
            vec!["spec.x (patternProperties)".to_string()]
        )
    );
    let (x, _) =
        of_field(json!({"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}));
    assert_eq!(x, json!({"type": "array", "items": {P: true}}));
}

#[test]
fn named_and_other_keys_at_once_keep_the_named_ones_checked_and_the_others() {
    let (x, lost) = of_field(
        json!({"properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "integer"}}),
    );
    assert_eq!(
        x,
        json!({"properties": {"a": {"type": "string"}}, P: true, "type": "object"})
    );
    assert_eq!(lost, ["spec.x (additionalProperties)"]);
    assert_eq!(
        of_field(json!({"properties": {"a": {"type": "string"}}, "additionalProperties": true})).1,
        Vec::<String>::new()
    );
}

#[test]
fn what_only_a_branch_knows_is_known_outside_and_the_branch_only_restricts() {
    let (x, lost) = of_field(json!({"oneOf": [
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "^x", "description": "d"}}, "required": ["a"]},
        {"properties": {"b": {"type": "integer", "default": 1}}, "required": ["b"]}]}));
    assert_eq!(
        x,
        json!({
            "oneOf": [{"properties": {"a": {"pattern": "^x"}}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["b"]}],
            "type": "object", P: true,
            "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}
        })
    );
    assert!(lost.is_empty());
}

#[test]
fn one_of_several_types_leaves_the_place_open() {
    let (x, lost) = of_field(
        json!({"oneOf": [{"type": "string"}, {"type": "object", "properties": {"a": {"type": "string"}}}]}),
    );
    assert_eq!(x, json!({P: true}));
    assert_eq!(lost, ["spec.x (one of several types)"]);
}

#[test]
fn an_embedded_object_is_an_object_and_keeps_its_fields() {
    assert_eq!(
        of_field(json!({"x-kubernetes-embedded-resource": true})).0,
        json!({"x-kubernetes-embedded-resource": true, P: true, "type": "object"})
    );
}

#[test]
fn of_metadata_only_the_name_may_be_restricted() {
    let mut root = json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {
        "name": {"type": "string", "maxLength": 20}, "labels": {"type": "object"}}}}});
    let lost = structural(&mut root);
    assert_eq!(
        root["properties"]["metadata"],
        json!({"type": "object", "properties": {"name": {"type": "string", "maxLength": 20}}})
    );
    assert_eq!(lost, ["metadata"]);
}

#[test]
fn what_is_structural_already_only_gains_the_marks() {
    let mut root = json!({"type": "object", P: true, "properties": {"spec": {"type": "object", P: true, "properties": {"n": {"type": "integer"}}}}});
    let before = root.clone();
    assert!(structural(&mut root).is_empty());
    assert_eq!(root, before, "done twice, it changes nothing");
}
