use super::*;
use crate::cli::discover::{self, DiscoverArgs};

const KOPS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/testkit/fixtures/shop/kops/get-all.yaml"
);
const BLUE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testkit/fixtures/shop/blue");

fn args(plan: &Path) -> InitArgs {
    InitArgs {
        plan: plan.into(),
        from_files: vec![KOPS.into(), BLUE.into()],
        ..InitArgs::default()
    }
}

#[test]
fn init_writes_a_commented_spec_that_the_next_verb_reads_and_never_overwrites_it() {
    let dir = tempfile::tempdir().expect("dir");
    let plan = dir.path().join("plans/shop");
    let said = run(&args(&plan)).expect("written");
    let file = plan.join("migration.yaml");
    let spec = spec::load(&file).expect("reads back");
    assert_eq!(
        (spec.name.as_str(), spec.blue.cluster.as_str()),
        ("shop", "shop.test")
    );
    assert_eq!(spec.workloads.singletons, ["deployment/platform/consumer"]);
    assert_eq!(
        spec.aws.region.as_deref(),
        Some("eu-west-1"),
        "from the zones of kops's subnets"
    );
    assert_eq!(
        spec.green.service_cidr.as_deref(),
        Some("10.100.0.0/16"),
        "kops's default VPC is one of EKS's default ranges"
    );
    let text = std::fs::read_to_string(&file).expect("there");
    assert!(
        text.contains("# Found: configmap/orders/orders-config DATABASE_HOST=10.20.0.5"),
        "{text}"
    );
    assert!(
        !text.contains("CANARY") && said.text.contains("crossfade discover"),
        "{text}"
    );

    let e = run(&args(&plan)).expect_err("twice");
    assert_eq!((e.kind, e.at), (Kind::BadInput, file.display().to_string()));
    assert_eq!(std::fs::read_to_string(&file).expect("there"), text);
}

#[test]
fn paths_on_the_command_line_become_relative_to_the_plan() {
    let dir = tempfile::tempdir().expect("dir");
    let plan = dir.path().join("plans/shop");
    let mut a = args(&plan);
    a.kubeconfig = Some(dir.path().join("blue.kubeconfig"));
    a.context = Some("shop.test".into());
    a.state_store = Some("s3://kops-state-shop".into());
    run(&a).expect("written");
    let blue = spec::load(&plan.join("migration.yaml"))
        .expect("reads back")
        .blue;
    assert_eq!(blue.kubeconfig.as_deref(), Some("../../blue.kubeconfig"));
    assert_eq!(blue.state_store.as_deref(), Some("s3://kops-state-shop"));
}

#[test]
fn init_without_a_source_says_what_to_give_and_writes_nothing() {
    let dir = tempfile::tempdir().expect("dir");
    let plan = dir.path().join("plans/shop");
    let e = run(&InitArgs {
        plan: plan.clone(),
        ..InitArgs::default()
    })
    .expect_err("no source");
    assert_eq!(e.kind, Kind::Usage);
    assert!(e.remedy.contains("--cluster"));
    assert!(!plan.exists());
}

#[test]
fn discover_from_files_writes_a_snapshot_in_which_no_secret_is_left() {
    let dir = tempfile::tempdir().expect("dir");
    let out = dir.path().join("snap");
    let a = DiscoverArgs {
        from_files: vec![KOPS.into(), BLUE.into()],
        out: Some(out.clone()),
        ..DiscoverArgs::default()
    };
    let said = discover::run(&a, || panic!("needs no plan folder")).expect("written");
    let s = store::read(&out).expect("reads back");
    assert_eq!(said.json["objects"], s.blue.objects.len());
    assert!(
        s.blue
            .find("Deployment", Some("orders"), "orders")
            .is_some()
    );
    let all = serde_json::to_string(&s).expect("json");
    // Both spellings: plain, and as base64 text begins.
    assert!(
        !all.contains("CANARY-") && !all.contains("Q0FOQVJZ"),
        "a secret is left"
    );
    assert!(
        said.json["not_checked"]
            .as_array()
            .is_some_and(|g| g.iter().any(|n| n["what"] == "aws.inventory"))
    );
}
