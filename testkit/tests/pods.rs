//! What a kubelet and a cloud owe a user beyond the happy path, on both ages of Kubernetes: jobs that end, missing
//! configuration, crashes, forced deletion, load balancers that come and go, an ExternalDNS of today on green.

use std::path::Path;
use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service};
use k8s_openapi::api::networking::v1::Ingress;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use testkit::apps::Observed;
use testkit::bench::{Bench, BenchOptions};
use testkit::dns::{Authority, query};
use testkit::fixture::{self, Fixture};
use testkit::kubelet;
use testkit::net::BenchNet;
use testkit::servers::Side;

async fn until<F: AsyncFnMut() -> bool>(what: &str, patience: Duration, mut reached: F) {
    let start = Instant::now();
    while !reached().await {
        assert!(
            start.elapsed() < patience,
            "not within {patience:?}: {what}"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    println!("{what}: {:?}", start.elapsed());
}

/// A side with nodes.
struct Cluster {
    side: Side,
    client: kube::Client,
    observed: Observed,
}

async fn cluster(bench: &Bench, side: Side) -> Cluster {
    let client = bench.control_plane(side).client().await.unwrap();
    let nodes = Fixture::shop().yaml("nodes.yaml").unwrap();
    fixture::cluster::create_nodes(&client, &nodes, &Default::default())
        .await
        .unwrap();
    apply(
        &client,
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "platform"}}),
    )
    .await;
    Cluster {
        side,
        client,
        observed: bench.observed().clone(),
    }
}

async fn apply(client: &kube::Client, object: Value) {
    fixture::cluster::apply(client, &[object]).await.unwrap();
}

fn deployment(name: &str, image: &str, container: Value) -> Value {
    let mut spec = json!({"name": name, "image": image});
    spec.as_object_mut()
        .unwrap()
        .extend(container.as_object().unwrap().clone());
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "platform"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"serviceAccountName": name, "containers": [spec]}},
        },
    })
}

fn account(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "platform"}})
}

async fn pods(client: &kube::Client, app: &str) -> Vec<Pod> {
    let api: Api<Pod> = Api::namespaced(client.clone(), "platform");
    api.list(&ListParams::default().labels(&format!("app={app}")))
        .await
        .unwrap()
        .items
}

fn ready(pod: &Pod) -> bool {
    let conditions = pod
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|list| {
        list.iter()
            .any(|condition| condition.type_ == "Ready" && condition.status == "True")
    })
}

async fn status_of(net: &BenchNet, target: &str) -> u16 {
    use testkit::apps::http::{collect, pool, through_proxy};
    let request = through_proxy(
        http::Method::GET,
        net.gateway(),
        target,
        "/",
        "x.shop.test",
        Default::default(),
    )
    .unwrap();
    collect(pool().request(request).await.unwrap())
        .await
        .unwrap()
        .status()
        .as_u16()
}

async fn owes(cluster: &Cluster, net: &BenchNet) {
    let client = &cluster.client;
    let long = Duration::from_secs(30);

    // A Job's pod runs once and ends Succeeded; the Job completes; deleting it leaves no pod behind.
    apply(client, json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "report", "namespace": "platform"},
        "spec": {"template": {"metadata": {"labels": {"app": "report"}}, "spec": {"restartPolicy": "Never",
            "containers": [{"name": "report", "image": "registry.shop.test/report:1.0"}]}}},
    }))
    .await;
    let jobs: Api<Job> = Api::namespaced(client.clone(), "platform");
    until("job complete", long, async || {
        jobs.get("report")
            .await
            .unwrap()
            .status
            .is_some_and(|status| status.succeeded == Some(1) && status.completion_time.is_some())
    })
    .await;
    let reports = cluster.observed.reports();
    assert_eq!(
        reports
            .iter()
            .filter(|run| run.side == cluster.side.name())
            .count(),
        1
    );
    jobs.delete("report", &DeleteParams::background())
        .await
        .unwrap();
    until("job's pod gone", long, async || {
        pods(client, "report").await.is_empty()
    })
    .await;

    // A missing ConfigMap is told as a kubelet tells it, and the pod starts as soon as it is there.
    apply(client, account("web")).await;
    let image = "registry.shop.test/web:1.4";
    apply(
        client,
        deployment(
            "web",
            image,
            json!({
        "envFrom": [{"configMapRef": {"name": "late"}}], "ports": [{"containerPort": 8080}]}),
        ),
    )
    .await;
    until("waits for its ConfigMap", long, async || {
        let list = pods(client, "web").await;
        let waiting = list.iter().filter_map(|pod| {
            let status = pod.status.as_ref()?.container_statuses.as_ref()?.first()?;
            let waiting = status.state.as_ref()?.waiting.as_ref()?;
            Some(format!(
                "{}: {}",
                waiting.reason.as_deref()?,
                waiting.message.as_deref()?
            ))
        });
        waiting.collect::<Vec<_>>() == ["CreateContainerConfigError: configmap \"late\" not found"]
    })
    .await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "platform");
    let late =
        serde_json::from_value(json!({"metadata": {"name": "late"}, "data": {"A": "b"}})).unwrap();
    maps.create(&PostParams::default(), &late).await.unwrap();
    until("healed", long, async || {
        pods(client, "web").await.iter().all(ready)
    })
    .await;

    // A load balancer comes, answers, and goes with its Service; the finalizer holds the Service until then.
    apply(client, json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "platform"},
        "spec": {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]},
    }))
    .await;
    let services: Api<Service> = Api::namespaced(client.clone(), "platform");
    let hostname = async || {
        let service = services.get("web").await.unwrap();
        let list = service.status?.load_balancer?.ingress?;
        list.first()?.hostname.clone()
    };
    until("load balancer has a name", long, async || {
        hostname().await.is_some()
    })
    .await;
    let host = hostname().await.unwrap();
    let address = net.resolve(&host).unwrap().to_string();
    until("load balancer answers", long, async || {
        status_of(net, &address).await == 200
    })
    .await;

    // Forced deletion of the pod: its program is gone at once, a new one takes over.
    let name = pods(client, "web").await[0].metadata.name.clone().unwrap();
    let api: Api<Pod> = Api::namespaced(client.clone(), "platform");
    api.delete(&name, &DeleteParams::default().grace_period(0))
        .await
        .unwrap();
    until("replaced after forced deletion", long, async || {
        let list = pods(client, "web").await;
        list.len() == 1 && list[0].metadata.name.as_ref() != Some(&name) && ready(&list[0])
    })
    .await;
    until("answers again", long, async || {
        status_of(net, &address).await == 200
    })
    .await;

    // No ready pod: 503. Then the Service changes its type: name and address are gone, the finalizer too.
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "platform");
    deployments
        .patch(
            "web",
            &PatchParams::default(),
            &Patch::Merge(&json!({"spec": {"replicas": 0}})),
        )
        .await
        .unwrap();
    until("503 without pods", long, async || {
        status_of(net, &address).await == 503
    })
    .await;
    services
        .patch(
            "web",
            &PatchParams::default(),
            &Patch::Merge(&json!({"spec": {"type": "ClusterIP"}})),
        )
        .await
        .unwrap();
    until("load balancer is gone", long, async || {
        net.resolve(&host).is_none()
            && hostname().await.is_none()
            && services
                .get("web")
                .await
                .unwrap()
                .metadata
                .finalizers
                .is_none()
    })
    .await;
    assert_eq!(status_of(net, &address).await, 502);
    services
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    until("service deleted", long, async || {
        services.get_opt("web").await.unwrap().is_none()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_end_missing_configuration_heals_and_load_balancers_come_and_go_on_1_21_and_on_1_36() {
    let _ = tracing_subscriber::fmt()
        .with_env_filter("warn,kube_client=off,testkit=debug")
        .with_test_writer()
        .try_init();
    let options = BenchOptions {
        load_fixture: false,
        ..BenchOptions::default()
    };
    let bench = Bench::start(options).await.unwrap();
    let net = bench.net();
    let (blue, green) = tokio::join!(cluster(&bench, Side::Blue), cluster(&bench, Side::Green));
    println!("--- blue");
    owes(&blue, net).await;
    println!("--- green");
    owes(&green, net).await;
    println!("--- ExternalDNS 0.21.0 on green");
    let zone = fixture::aws::load_zone(&Fixture::shop(), &bench.aws_endpoint())
        .await
        .unwrap();
    println!("zone {zone}");
    external_dns_of_today(
        &green,
        bench.authority(),
        &bench.workdir().join("green").join("kubelet"),
    )
    .await;
}

/// ExternalDNS 0.21.0: its rights are its service account's, it writes the Ingress's address, and it comes back when it is
/// killed.
async fn external_dns_of_today(green: &Cluster, authority: &Authority, work_dir: &Path) {
    let client = &green.client;
    let long = Duration::from_secs(60);
    apply(client, json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "web", "namespace": "platform"},
        "spec": {"ingressClassName": "nginx", "rules": [{"host": "fresh.shop.test", "http": {"paths": [
            {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "web", "port": {"number": 80}}}}]}}]},
    }))
    .await;
    apply(client, account("external-dns")).await;
    let args = [
        "--provider=aws",
        "--source=ingress",
        "--policy=upsert-only",
        "--registry=txt",
        "--txt-owner-id=shop-green",
        "--domain-filter=shop.test",
        "--aws-zone-type=public",
        "--interval=2s",
    ];
    let image = "registry.k8s.io/external-dns/external-dns:v0.21.0";
    apply(
        client,
        deployment("external-dns", image, json!({"args": args})),
    )
    .await;
    // Without any right on Ingresses it sees nothing: RBAC counts, for the pod's own service account.
    let mut name = String::new();
    until("ExternalDNS runs", long, async || {
        let list = pods(client, "external-dns").await;
        name = list
            .first()
            .and_then(|pod| pod.metadata.name.clone())
            .unwrap_or_default();
        list.first().is_some_and(ready)
    })
    .await;
    let own = work_dir.join(format!("green-platform-{name}.kubeconfig"));
    let (own, _) = kubelet::client(&own).await.unwrap();
    let ingresses: Api<Ingress> = Api::all(own);
    let refused = ingresses
        .list(&ListParams::default())
        .await
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("system:serviceaccount:platform:external-dns"),
        "{refused}"
    );
    authority.refreshed().await;
    let answer = query(
        authority.addr(),
        "fresh.shop.test",
        hickory_proto::rr::RecordType::A,
    )
    .await
    .unwrap();
    assert!(answer.answers.is_empty());
    apply(client, json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "external-dns"},
        "rules": [
            {"apiGroups": ["networking.k8s.io"], "resources": ["ingresses"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": [""], "resources": ["services", "pods", "nodes"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["get", "list", "watch"]}],
    }))
    .await;
    apply(client, json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "external-dns"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "external-dns"},
        "subjects": [{"kind": "ServiceAccount", "name": "external-dns", "namespace": "platform"}],
    }))
    .await;
    let asked = async || {
        authority.refreshed().await;
        let answer = query(
            authority.addr(),
            "fresh.shop.test",
            hickory_proto::rr::RecordType::A,
        )
        .await
        .unwrap();
        answer
            .answers
            .iter()
            .map(|record| record.data.to_string())
            .collect::<Vec<_>>()
    };
    until("the Ingress's address by DNS", long, async || {
        asked().await == ["198.51.100.10"]
    })
    .await;

    // Killed from outside: reported with its exit code and restarted.
    let pid = process_with(&work_dir.display().to_string()).expect("ExternalDNS runs");
    let restarts = |list: &[Pod]| {
        let statuses = list[0]
            .status
            .as_ref()
            .unwrap()
            .container_statuses
            .as_ref()
            .unwrap();
        (statuses[0].restart_count, statuses[0].last_state.clone())
    };
    let (before, _) = restarts(&pods(client, "external-dns").await);
    testkit::servers::process::signal_one(pid, 9);
    until("restarted after a crash", long, async || {
        let list = pods(client, "external-dns").await;
        let (now, last) = restarts(&list);
        let code = last
            .and_then(|state| state.terminated)
            .map(|terminated| terminated.exit_code);
        now == before + 1 && code == Some(137) && ready(&list[0])
    })
    .await;
}

fn process_with(needle: &str) -> Option<u32> {
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .find_map(|folder| {
            let line = std::fs::read(folder.path().join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).into_owned();
            (line.contains(needle) && line.contains("external-dns"))
                .then(|| folder.file_name().to_str()?.parse().ok())?
        })
}
