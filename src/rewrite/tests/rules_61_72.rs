//! Rules 61 to 72 of replay.md: APIs, webhooks and extensions. A test of each is named `rule_NN_...`.

#[test]
fn velero_2319_a_crd_made_as_v1beta1_and_read_as_v1_becomes_structural_and_keeps_unknown_fields() {
    let crd = serde_json::json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "promotions.shop.test"},
        "spec": {"group": "shop.test", "scope": "Namespaced", "preserveUnknownFields": true, "names": {"kind": "Promotion", "plural": "promotions"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"properties": {"spec": {"properties": {"percent": {"type": "integer"}}}}}}}]}
    });
    let rewritten = crate::rewrite::rewrite(&crd, &crate::rewrite::Context::default());
    let target = rewritten.target.unwrap();
    assert_eq!(target.pointer("/spec/preserveUnknownFields"), None);
    assert_eq!(
        target.pointer("/spec/versions/0/schema/openAPIV3Schema"),
        Some(&serde_json::json!({
            "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"spec": {"type": "object", "properties": {"percent": {"type": "integer"}}}}
        }))
    );
    assert!(rewritten.rules.contains(&"replay.md 61".to_string()));
}
