use crate::checks::testing::*;
use crate::plan::model::Severity::{Blocker, NotChecked, Warning};
use crate::snapshot::model::{Cluster, TerraformResource};
use serde_json::json;

#[test]
fn git_01_the_tools_themselves_and_what_they_keep_are_named() {
    quiet(&spec(), &snapshot(vec![runs("web", "app:1.0")]), "GIT-01");
    let argo = snapshot(vec![runs(
        "argocd-application-controller",
        "quay.io/argoproj/argocd:v2.4.0",
    )]);
    fires(
        &spec(),
        &argo,
        "GIT-01",
        Warning,
        "deployment/n/argocd-application-controller",
        "Argo CD",
    );
    let mut kept = runs("web", "app:1.0");
    kept["metadata"]["labels"] = json!({"kustomize.toolkit.fluxcd.io/name": "apps"});
    fires(
        &spec(),
        &snapshot(vec![kept]),
        "TOOL-flux",
        Warning,
        "tool/flux",
        "1 object that it keeps",
    );
    let app = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "a", "namespace": "argocd"}, "spec": {"syncPolicy": {"automated": {"selfHeal": true}}}});
    fires(
        &spec(),
        &snapshot(vec![app]),
        "GIT-01",
        Warning,
        "application.argoproj.io/argocd/a",
        "undo every hold",
    );
}

#[test]
fn git_02_another_image_on_green_blocks_and_who_deploys_is_asked_once() {
    quiet(&spec(), &snapshot(vec![]), "GIT-02");
    let mut s = snapshot(vec![runs("web", "app:1.0"), runs("api", "api:1.0")]);
    let p = fires(
        &spec(),
        &s,
        "GIT-02",
        NotChecked,
        "deployments",
        "2 workloads",
    );
    assert_eq!(said(&p, "GIT-02").len(), 1);
    s.green = Some(Cluster {
        objects: vec![runs("web", "app:1.1"), runs("api", "api:1.0")],
        ..Cluster::default()
    });
    let p = fires(
        &spec(),
        &s,
        "GIT-02",
        Blocker,
        "deployment/n/web",
        "blue runs app:1.0, green app:1.1",
    );
    assert_eq!(said(&p, "GIT-02").len(), 2);
}

#[test]
fn git_03_what_terraform_holds_would_lose_what_the_migration_adds() {
    let sa = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "mailer", "namespace": "n"}, "spec": {"template": {
        "metadata": {"annotations": {"iam.amazonaws.com/role": "shop-mailer"}}, "spec": {"serviceAccountName": "mailer", "containers": []}}}});
    let mut s = snapshot(vec![sa]);
    let mut a = inventory();
    a.roles = vec![role("shop-mailer")];
    s.aws = Some(a.clone());
    quiet(&spec(), &s, "GIT-03");
    a.roles[0].tags = [("ManagedBy".to_string(), "Terraform".to_string())].into();
    s.aws = Some(a);
    fires(
        &spec(),
        &s,
        "GIT-03",
        Warning,
        "green.terraformState",
        "shop-mailer",
    );
    let resource = |kind: &str, name: &str| TerraformResource {
        address: format!("{kind}.this"),
        kind: kind.into(),
        attributes: [("name".to_string(), name.to_string())].into(),
    };
    s.terraform = Some(vec![resource("aws_iam_role", "other")]);
    quiet(&spec(), &s, "GIT-03");
    s.terraform = Some(vec![resource("aws_iam_role", "shop-mailer")]);
    fires(
        &spec(),
        &s,
        "GIT-03",
        Blocker,
        "role/shop-mailer",
        "aws_iam_role.this",
    );
    s.aws = None;
    fires(&spec(), &s, "GIT-03", NotChecked, "GIT-03", "AWS account");
}

#[test]
fn git_04_a_freeze_is_asked_for_where_a_pipeline_applies_objects() {
    let mut web = runs("web", "app:1.0");
    quiet(&spec(), &snapshot(vec![web.clone()]), "GIT-04");
    web["metadata"]["annotations"] = json!({"meta.helm.sh/release-name": "web"});
    fires(
        &spec(),
        &snapshot(vec![web.clone()]),
        "GIT-04",
        NotChecked,
        "freeze",
        "1 objects",
    );
    // A person's answer is a waiver with the reason.
    let answered = spec_with(
        json!({"waivers": [{"check": "GIT-04", "reason": "merges are stopped since Monday", "expires": "2026-12-05"}]}),
    );
    let p = crate::plan::plan(&answered, &snapshot(vec![web]));
    let f = p.findings.iter().find(|f| f.id == "GIT-04");
    assert_eq!(
        f.and_then(|f| f.waived.as_deref()),
        Some("merges are stopped since Monday (until 2026-12-05)")
    );
}

#[test]
fn git_05_tokens_of_outside_systems_are_named() {
    let token = |owner: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "ci-token", "namespace": "n", "annotations": {"kubernetes.io/service-account.name": owner}},
            "type": "kubernetes.io/service-account-token", "data": {}})
    };
    fires(
        &spec(),
        &snapshot(vec![token("deployer")]),
        "GIT-05",
        Warning,
        "secret/n/ci-token",
        "hand-made token",
    );
    // `ci-token` of account `ci`... made by the controller carries the account's name.
    let mut auto = token("ci");
    auto["metadata"]["name"] = json!("ci-token-x7k2p");
    quiet(&spec(), &snapshot(vec![auto]), "GIT-05");
}
