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

/// All files of a folder by relative name.
fn bytes(dir: &Path) -> std::collections::BTreeMap<String, Vec<u8>> {
    let mut out = std::collections::BTreeMap::new();
    let mut todo = vec![dir.to_path_buf()];
    while let Some(d) = todo.pop() {
        for e in std::fs::read_dir(&d).expect("folder") {
            let p = e.expect("entry").path();
            if p.is_dir() {
                todo.push(p);
            } else {
                let name = p.strip_prefix(dir).expect("inside").display().to_string();
                out.insert(name, std::fs::read(&p).expect("file"));
            }
        }
    }
    out
}

#[test]
fn the_demo_snapshot_is_exactly_what_discover_makes_of_the_demo_dump() {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("plans/demo");
    let make = |out: PathBuf| {
        let a = DiscoverArgs {
            from_files: vec![demo.join("dump")],
            out: Some(out),
            // The dump is as old as it is, whenever this test runs.
            taken: Some("2026-11-30".into()),
            ..DiscoverArgs::default()
        };
        discover::run(&a, || panic!("needs no plan folder")).expect("written")
    };
    if std::env::var_os("CROSSFADE_BLESS").is_some() {
        make(demo.join("snapshot"));
    }
    let dir = tempfile::tempdir().expect("dir");
    std::fs::copy(demo.join(".hash-key"), dir.path().join(".hash-key")).expect("key");
    let said = make(dir.path().join("snapshot"));
    let (fresh, kept) = (
        bytes(&dir.path().join("snapshot")),
        bytes(&demo.join("snapshot")),
    );
    assert_eq!(
        fresh.keys().collect::<Vec<_>>(),
        kept.keys().collect::<Vec<_>>()
    );
    for (name, text) in &fresh {
        assert!(
            *text == kept[name],
            "{name} differs: CROSSFADE_BLESS=1 cargo test --workspace demo_snapshot"
        );
    }
    assert_eq!(said.json["not_checked"], json!([]), "the dump is complete");
    let s = store::read(&demo.join("snapshot")).expect("reads back");
    let text = serde_json::to_string(&s).expect("json");
    assert!(
        !text.contains("CANARY-") && !text.contains("Q0FOQVJZ"),
        "a secret is left"
    );
    assert!(
        s.blue.identity.is_some()
            && s.blue
                .find("Ingress", Some("storefront"), "web")
                .is_some_and(|i| i["status"]["loadBalancer"]["ingress"][0]["ip"] == "203.0.113.10")
    );
    assert_eq!(
        s.zones[0]
            .records
            .iter()
            .filter(|r| r.values.iter().any(|v| v.contains("owner=shop-blue")))
            .count(),
        6
    );
    let spec = spec::load(&demo.join("migration.yaml")).expect("the demo's spec is good");
    assert_eq!(spec.blue.cluster, "shop.test");
}

#[test]
fn a_refused_discover_leaves_nothing_behind_not_even_a_key() {
    let dir = tempfile::tempdir().expect("dir");
    let azure = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/corpus/kops/REFUSE-azure.yaml"
    );
    let a = DiscoverArgs {
        from_files: vec![azure.into()],
        out: Some(dir.path().join("plan/snapshot")),
        ..DiscoverArgs::default()
    };
    let e = discover::run(&a, || panic!("needs no plan folder")).expect_err("another cloud");
    assert_eq!(e.kind, Kind::BadInput);
    assert_eq!(std::fs::read_dir(dir.path()).expect("folder").count(), 0);
}

#[test]
fn every_kops_cluster_of_the_corpus_gets_a_spec_that_reads_back_and_names_the_decisions_of_its_plan()
 {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/kops");
    let mut seen = 0;
    for entry in std::fs::read_dir(corpus).expect("the corpus") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .to_string();
        if !name.ends_with(".yaml") || name.contains("REFUSE") {
            continue;
        }
        seen += 1;
        let dir = tempfile::tempdir().expect("dir");
        let plan = dir.path().join("plans/shop");
        run(&InitArgs {
            plan: plan.clone(),
            from_files: vec![path.clone()],
            ..InitArgs::default()
        })
        .unwrap_or_else(|e| panic!("{name}: {e}"));
        let file = plan.join("migration.yaml");
        let spec = spec::load(&file).unwrap_or_else(|e| panic!("{name}: {e}"));
        let text = std::fs::read_to_string(&file).expect("there");
        let key = Key::from_bytes([0; 32]);
        let snapshot = files::from_files(&[path], None, &key)
            .expect("read")
            .snapshot;
        for f in &crate::plan::plan(&spec, &snapshot).findings {
            let stands = f.severity == crate::plan::model::Severity::Blocker;
            assert!(
                !stands || text.contains(&format!("# - {} ", f.id)),
                "{name}: {} stands in the way and migration.yaml does not say so:\n{text}",
                f.id
            );
        }
    }
    assert_eq!(seen, 44);
}

#[test]
fn a_blue_that_is_newer_than_the_default_version_is_not_taken_back() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/kops/minimal-1.36.yaml");
    let dir = tempfile::tempdir().expect("dir");
    let plan = dir.path().join("plans/shop");
    run(&InitArgs {
        plan: plan.clone(),
        from_files: vec![file],
        ..InitArgs::default()
    })
    .expect("written");
    let spec = spec::load(&plan.join("migration.yaml")).expect("reads back");
    assert_eq!(spec.green.version, "1.36");
}

#[test]
fn a_message_of_somebody_elses_object_cannot_leave_its_comment() {
    assert_eq!(comment("a\nkind: Evil\r\n\u{85}b"), "# a kind: Evil   b");
}

/// Two kops clusters of the corpus whose API is not the world's: neither may become an open endpoint of green.
#[test]
fn a_private_or_narrowed_api_is_written_as_such_and_says_why() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/");
    for (file, wanted) in [
        (
            "kops-handwritten/gpu-spot-kops1.28.yaml",
            vec!["publicEndpoint: false", "blue's API is Internal"],
        ),
        (
            "kops/complex-legacy-apigroup.yaml",
            vec![
                "publicEndpoint: true",
                "- \"1.1.1.0/24\"",
                "pl-44444444 left out",
            ],
        ),
    ] {
        let dir = tempfile::tempdir().expect("dir");
        let plan = dir.path().join("plans/shop");
        run(&InitArgs {
            plan: plan.clone(),
            from_files: vec![format!("{corpus}{file}").into()],
            ..InitArgs::default()
        })
        .expect("written");
        let text = std::fs::read_to_string(plan.join("migration.yaml")).expect("there");
        for part in wanted {
            assert!(text.contains(part), "{file}: {part}\n{text}");
        }
    }
}
