use crate::checks::testing::*;
use crate::plan::model::Severity::{self, Blocker, Info, Warning};
use crate::plan::plan;
use crate::snapshot::model::Cluster;
use serde_json::{Value, json};

fn one(name: &str, spec: Value, pod: Value) -> Value {
    let mut s = json!({"replicas": 1});
    for (k, v) in spec.as_object().into_iter().flatten() {
        s[k] = v.clone();
    }
    workload("Deployment", name, s, pod)
}

fn with_env(name: &str, key: &str, value: &str) -> Value {
    workload(
        "Deployment",
        name,
        json!({}),
        json!({"containers": [{"name": "main", "image": "app:1.0", "env": [{"name": key, "value": value}]}]}),
    )
}

fn cron(schedule: &str, suspend: bool, deadline: Option<u32>) -> Value {
    let mut o = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c", "namespace": "n"}, "spec": {"schedule": schedule, "suspend": suspend,
        "jobTemplate": {"spec": {"template": {"spec": {"containers": []}}}}}});
    if let Some(seconds) = deadline {
        o["spec"]["startingDeadlineSeconds"] = json!(seconds);
    }
    o
}

#[test]
fn sng_01_a_declared_singleton_exists_and_nothing_runs_on_both_sides() {
    let declared = spec_with(json!({"workloads": {"singletons": ["deployment/n/importer"]}}));
    let mut s = snapshot(vec![one("web", json!({}), json!({}))]);
    fires(
        &declared,
        &s,
        "SNG-01",
        Blocker,
        "deployment/n/importer",
        "no such object",
    );
    s.blue.objects.extend([
        one("importer", json!({}), json!({})),
        cron("0 1 * * *", false, Some(60)),
    ]);
    quiet(&declared, &s, "SNG-01");
    let green = |objects: Vec<Value>| {
        Some(Cluster {
            objects,
            ..Cluster::default()
        })
    };
    s.green = green(vec![
        one("importer", json!({"replicas": 0}), json!({})),
        cron("0 1 * * *", true, Some(60)),
    ]);
    quiet(&declared, &s, "SNG-01");
    s.green = green(vec![
        one("importer", json!({}), json!({})),
        cron("0 1 * * *", false, Some(60)),
    ]);
    fires(
        &declared,
        &s,
        "SNG-01",
        Blocker,
        "deployment/n/importer",
        "on blue and on green",
    );
    fires(
        &declared,
        &s,
        "SNG-01",
        Blocker,
        "cronjob/n/c",
        "on blue and on green",
    );
}

#[test]
fn sng_02_consumers_are_found_by_their_queue_and_by_their_name() {
    let sqs = "https://sqs.eu-west-1.amazonaws.com/000000000000/orders";
    let rows: [(Value, Severity, &str); 4] = [
        (
            with_env("importer", "QUEUE", &format!("{sqs}.fifo")),
            Blocker,
            "FIFO",
        ),
        (
            with_env("mail-worker", "QUEUE", sqs),
            Warning,
            "consumes a queue",
        ),
        (
            with_env("api", "KAFKA_BROKERS", "b-1:9092"),
            Info,
            "only writes",
        ),
        (
            one("mail-worker", json!({}), json!({})),
            Warning,
            "named like a consumer",
        ),
    ];
    for (o, severity, part) in rows {
        let name = format!(
            "deployment/n/{}",
            o["metadata"]["name"].as_str().unwrap_or("")
        );
        fires(
            &spec(),
            &snapshot(vec![o.clone()]),
            "SNG-02",
            severity,
            &name,
            part,
        );
        let declared = spec_with(json!({"workloads": {"singletons": [name]}}));
        quiet(&declared, &snapshot(vec![o.clone()]), "SNG-02");
        let mut denied = o;
        denied["metadata"]["annotations"] = json!({"crossfade.dev/singleton": "false"});
        quiet(&spec(), &snapshot(vec![denied]), "SNG-02");
    }
    quiet(
        &spec(),
        &snapshot(vec![
            with_env("api", "MODE", "fast"),
            one("api2", json!({}), json!({})),
        ]),
        "SNG-02",
    );
}

#[test]
fn sng_03_schedulers_are_found_by_name_arguments_and_strategy() {
    let beat =
        json!({"containers": [{"name": "main", "image": "app:1.0", "args": ["celery", "beat"]}]});
    let recreate = json!({"strategy": {"type": "Recreate"}});
    for (o, part) in [
        (one("tasks", json!({}), beat), "like a scheduler"),
        (one("importer", recreate, json!({})), "Recreate"),
    ] {
        let name = format!(
            "deployment/n/{}",
            o["metadata"]["name"].as_str().unwrap_or("")
        );
        fires(
            &spec(),
            &snapshot(vec![o.clone()]),
            "SNG-03",
            Warning,
            &name,
            part,
        );
        quiet(
            &spec_with(json!({"workloads": {"singletons": [name]}})),
            &snapshot(vec![o]),
            "SNG-03",
        );
    }
    quiet(
        &spec(),
        &snapshot(vec![one("api", json!({}), json!({}))]),
        "SNG-03",
    );
    let two = workload("Deployment", "scheduler", json!({"replicas": 2}), json!({}));
    quiet(&spec(), &snapshot(vec![two]), "SNG-03");
}

#[test]
fn sng_04_a_copied_controller_that_acts_on_blues_things_is_named() {
    let run = |image: &str, args: Value| {
        snapshot(vec![workload(
            "Deployment",
            "x",
            json!({}),
            json!({"containers": [{"name": "main", "image": image, "args": args}]}),
        )])
    };
    for (image, args, severity, part) in [
        (
            "public.ecr.aws/eks/aws-load-balancer-controller:v2.7.0",
            json!(["--cluster-name=shop.test"]),
            Blocker,
            "load balancers",
        ),
        (
            "registry.k8s.io/autoscaling/cluster-autoscaler:v1.36.0",
            json!(["--node-group-auto-discovery=asg:tag=k8s.io/cluster-autoscaler/shop.test"]),
            Blocker,
            "scale blue's nodes",
        ),
        (
            "registry.k8s.io/autoscaling/cluster-autoscaler:v1.36.0",
            json!(["--nodes=1:5:nodes.shop"]),
            Blocker,
            "names its node groups",
        ),
        ("velero/velero:v1.17.0", json!([]), Warning, "backup bucket"),
        (
            "registry.opensource.zalan.do/teapot/kube-static-egress-controller:v1",
            json!([]),
            Blocker,
            "NAT gateways",
        ),
    ] {
        fires(
            &spec(),
            &run(image, args),
            "SNG-04",
            severity,
            "deployment/n/x",
            part,
        );
    }
    quiet(
        &spec(),
        &run(
            "public.ecr.aws/eks/aws-load-balancer-controller:v2.7.0",
            json!(["--cluster-name=shop-green"]),
        ),
        "SNG-04",
    );
    quiet(
        &spec(),
        &run("app:1.0", json!(["--cluster=shop.test"])),
        "SNG-04",
    );
    let owner = json!({"apiVersion": "s3.services.k8s.aws/v1alpha1", "kind": "Bucket", "metadata": {"name": "b", "namespace": "n"}});
    fires(
        &spec(),
        &snapshot(vec![owner]),
        "SNG-04",
        Blocker,
        "bucket.s3.services.k8s.aws/n/b",
        "owns things in AWS",
    );
}

#[test]
fn sng_05_and_06_cron_jobs_without_deadline_and_with_impossible_dates_are_named() {
    fires(
        &spec(),
        &snapshot(vec![cron("0 1 * * *", false, None)]),
        "SNG-05",
        Warning,
        "cronjob/n/c",
        "missed run",
    );
    fires(
        &spec(),
        &snapshot(vec![cron("0 0 31 2 *", false, Some(60))]),
        "SNG-06",
        Info,
        "cronjob/n/c",
        "never comes",
    );
    let good = snapshot(vec![cron("0 1 * * *", false, Some(60))]);
    quiet(&spec(), &good, "SNG-05");
    quiet(&spec(), &good, "SNG-06");
}

#[test]
fn sng_07_schema_changes_at_start_are_found_in_init_containers_and_commands() {
    let init = one(
        "web",
        json!({}),
        json!({"initContainers": [{"name": "schema", "image": "app:1.0", "command": ["rake", "db:migrate"]}]}),
    );
    fires(
        &spec(),
        &snapshot(vec![init]),
        "SNG-07",
        Warning,
        "deployment/n/web",
        "init container schema",
    );
    let start = one(
        "web",
        json!({}),
        json!({"containers": [{"name": "main", "image": "app:1.0", "command": ["sh", "-c", "alembic upgrade head && serve"]}]}),
    );
    fires(
        &spec(),
        &snapshot(vec![start]),
        "SNG-07",
        Warning,
        "deployment/n/web",
        "start of container main",
    );
    let wait = one(
        "web",
        json!({}),
        json!({"initContainers": [{"name": "wait", "image": "busybox:1.36", "command": ["sh", "-c", "until nc -z db 5432; do sleep 1; done"]}]}),
    );
    quiet(&spec(), &snapshot(vec![wait]), "SNG-07");
}

#[test]
fn sng_08_a_lock_outside_of_the_cluster_is_named_and_leases_are_not() {
    fires(
        &spec(),
        &snapshot(vec![with_env("jobs", "SHEDLOCK_TABLE", "locks")]),
        "SNG-08",
        Warning,
        "deployment/n/jobs",
        "SHEDLOCK_TABLE",
    );
    quiet(
        &spec(),
        &snapshot(vec![with_env("jobs", "LEADER_ELECTION", "true")]),
        "SNG-08",
    );
    let p = plan(
        &spec(),
        &snapshot(vec![
            json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l", "namespace": "n"}}),
        ]),
    );
    assert!(p.verdicts.all().iter().all(|v| v.target.is_none()));
}
