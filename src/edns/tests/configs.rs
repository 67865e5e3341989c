//! How an instance is found and read.

use super::*;

#[test]
fn flags_are_read_in_both_spellings_and_an_unknown_one_is_reported() {
    let args: Vec<String> = [
        "--source",
        "service",
        "--txt-owner-id",
        "me",
        "--interval=1m30s",
        "--no-aws-evaluate-target-health",
        "--frobnicate=7",
        "--events",
    ]
    .iter()
    .map(|s| s.to_string())
    .collect();
    let c = Config::from_args(
        "quay.io/x/external-dns:0.13.1-debian-11-r0@sha256:aa",
        &args,
    )
    .expect("valid");
    assert_eq!(c.version, Version::new(0, 13, 1));
    assert_eq!(
        (c.owner.as_str(), c.interval, c.evaluate_target_health),
        ("me", 90, false)
    );
    assert_eq!(c.unknown, ["--frobnicate=7"]);
    assert_eq!(c.managed, ["A", "CNAME"]);
    let absent = Config::from_args("x/external-dns:v0.10.2", &[]).expect("valid");
    assert_eq!(
        (absent.owner.as_str(), absent.owner_given, absent.policy),
        ("default", false, Policy::Sync)
    );
    let e = Config::from_args("x/external-dns:latest", &[]).expect_err("no version");
    assert!(e.message.contains("latest"), "{e}");
}

#[test]
fn the_instance_is_found_in_a_workload_with_its_environment_flags() {
    let o = json!({"kind": "Deployment", "spec": {"template": {"spec": {"containers": [
        {"image": "busybox"},
        {"image": "registry.k8s.io/external-dns/external-dns:v0.10.2",
         "args": ["--source=ingress"], "env": [{"name": "EXTERNAL_DNS_TXT_OWNER_ID", "value": "me"}]}]}}}});
    let c = Config::of_workload(&o).expect("found").expect("valid");
    assert_eq!((c.owner.as_str(), c.sources.len()), ("me", 1));
    assert!(
        Config::of_workload(
            &json!({"spec": {"template": {"spec": {"containers": [{"image": "x/y:1"}]}}}})
        )
        .is_none()
    );
}
