//! `provision` in migration.yaml.

use crate::spec::model::Via;
use crate::spec::parse;

fn with(provision: &str) -> Result<crate::spec::model::Spec, crate::error::Error> {
    parse(
        &format!(
            "apiVersion: crossfade.dev/v1alpha1\nkind: Migration\nname: shop\nblue: {{cluster: shop.test}}\ngreen: {{name: shop-green}}\n{provision}"
        ),
        "m.yaml",
    )
}

#[test]
fn terraform_is_asked_for_by_name_with_its_program_and_its_state() {
    assert_eq!(with("").expect("good").provision.via, Via::Aws);
    let spec = with("provision:\n  via: terraform\n  binary: tofu\n  backend: {type: s3, config: {bucket: state, key: green.tfstate}}\n").expect("good");
    assert_eq!(spec.provision.via, Via::Terraform);
    let backend = spec.provision.backend.expect("given");
    assert_eq!(
        (backend.kind.as_str(), backend.config["bucket"].as_str()),
        ("s3", "state")
    );
}

#[test]
fn what_would_be_ignored_or_would_be_a_secret_is_refused_with_its_place() {
    for (text, says) in [
        ("provision: {via: pulumi}\n", "terraform"),
        (
            "provision: {binary: tofu}\n",
            "crossfade makes the resources itself",
        ),
        (
            "provision: {via: terraform, binary: \"tofu -x\"}\n",
            "no program",
        ),
        (
            "provision: {via: terraform, backend: {type: cloud}}\n",
            "no backend",
        ),
        (
            "provision: {via: terraform, backend: {type: s3, config: {secret_key: x}}}\n",
            "credential",
        ),
        (
            "provision: {via: terraform, backend: {type: s3, config: {\"a b\": x}}}\n",
            "no setting",
        ),
    ] {
        let e = with(text).expect_err(text);
        assert!(
            format!("{} {}", e.message, e.remedy).contains(says),
            "{text}: {e:?}"
        );
        assert!(e.at.starts_with("m.yaml:"), "{text}: {}", e.at);
    }
}
