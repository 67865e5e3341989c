//! Green is made through AWS's APIs, as everywhere: then the real API server stands behind the cluster's endpoint.

use std::time::{Duration, Instant};

use base64::Engine;
use serde_json::{Value, json};
use testkit::Result;
use testkit::bench::{Bench, BenchOptions};
use testkit::fixture::{self, Fixture};
use testkit::servers::{Side, http};

const TRUST: &str = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"@"},"Action":"sts:AssumeRole"}]}"#;

async fn aws(
    bench: &Bench,
    service: &str,
    method: &str,
    target: &str,
    kind: &str,
    body: String,
) -> (u16, String) {
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential=test/20260101/eu-west-1/{service}/aws4_request, SignedHeaders=host, Signature=00"
    );
    let headers = [
        ("authorization", authorization.as_str()),
        ("x-amz-date", "20260101T000000Z"),
        ("content-type", kind),
    ];
    let answer = http::send(&bench.aws_endpoint(), method, target, &headers, body)
        .await
        .expect("an answer");
    (answer.status, answer.text())
}

async fn eks(bench: &Bench, method: &str, target: &str, body: Value) -> Value {
    let (status, text) = aws(
        bench,
        "eks",
        method,
        target,
        "application/json",
        body.to_string(),
    )
    .await;
    assert!(status < 300, "{method} {target}: {status} {text}");
    serde_json::from_str(&text).expect("JSON")
}

async fn role(bench: &Bench, name: &str, service: &str, policies: &[&str]) -> String {
    let trust = TRUST.replace('@', service).replace('"', "%22");
    let form = "application/x-www-form-urlencoded";
    let body = format!(
        "Action=CreateRole&Version=2010-05-08&RoleName={name}&AssumeRolePolicyDocument={trust}"
    );
    let (status, text) = aws(bench, "iam", "POST", "/", form, body).await;
    assert!(status < 300, "{text}");
    for policy in policies {
        let body = format!(
            "Action=AttachRolePolicy&Version=2010-05-08&RoleName={name}&PolicyArn=arn:aws:iam::aws:policy/{policy}"
        );
        let (status, text) = aws(bench, "iam", "POST", "/", form, body).await;
        assert!(status < 300, "{text}");
    }
    format!("arn:aws:iam::000000000000:role/{name}")
}

async fn wait_active(bench: &Bench, target: &str, what: &str) -> Value {
    let start = Instant::now();
    loop {
        let answer = eks(bench, "GET", target, json!({})).await;
        if answer[what]["status"] == "ACTIVE" {
            return answer[what].clone();
        }
        assert!(start.elapsed() < Duration::from_secs(30), "{answer}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_group_made_through_eks_runs_the_companys_front_and_external_dns_0_21_leaves_blues_names_alone()
-> Result<()> {
    let _ = tracing_subscriber::fmt()
        .with_env_filter("warn,kube_client=off,testkit=info")
        .with_test_writer()
        .try_init();
    let bench = Bench::start(BenchOptions::default()).await?;
    let before = bench.record_sets();
    let subnets: Vec<String> = ["subnet-ebdef6ceb5bf03b2d", "subnet-86250545f7e14ab36"]
        .iter()
        .map(|id| bench.aws_ids().get(id).map(String::from))
        .collect::<Result<_>>()?;

    let cluster_role = role(
        &bench,
        "green-cluster",
        "eks.amazonaws.com",
        &["AmazonEKSClusterPolicy"],
    )
    .await;
    let node_policies = [
        "AmazonEKSWorkerNodePolicy",
        "AmazonEKS_CNI_Policy",
        "AmazonEC2ContainerRegistryReadOnly",
    ];
    let node_role = role(&bench, "green-nodes", "ec2.amazonaws.com", &node_policies).await;
    let spec = json!({
        "name": "shop-green", "version": "1.36", "roleArn": cluster_role,
        "resourcesVpcConfig": {"subnetIds": subnets},
        "accessConfig": {"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": true},
    });
    eks(&bench, "POST", "/clusters", spec).await;
    let cluster = wait_active(&bench, "/clusters/shop-green", "cluster").await;
    let green = bench.control_plane(Side::Green);
    assert_eq!(cluster["endpoint"], green.url());
    let ca = cluster["certificateAuthority"]["data"]
        .as_str()
        .expect("CA");
    let ca = base64::engine::general_purpose::STANDARD
        .decode(ca)
        .expect("base64");
    assert_eq!(ca, green.ca_pem().as_bytes());

    let client = green.client().await?;
    let nodes: kube::Api<k8s_openapi::api::core::v1::Node> = kube::Api::all(client.clone());
    assert_eq!(
        nodes
            .list(&Default::default())
            .await
            .expect("nodes")
            .items
            .len(),
        0
    );
    let spec = json!({
        "nodegroupName": "nodes", "nodeRole": node_role, "subnets": subnets, "instanceTypes": ["m5.large"],
        "scalingConfig": {"minSize": 2, "maxSize": 3, "desiredSize": 2},
    });
    eks(&bench, "POST", "/clusters/shop-green/node-groups", spec).await;
    wait_active(
        &bench,
        "/clusters/shop-green/node-groups/nodes",
        "nodegroup",
    )
    .await;

    // What the product would bring over, in the versions that 1.36 serves.
    let shop = Fixture::shop();
    let mut objects: Vec<Value> = shop
        .objects()?
        .into_iter()
        .filter(|o| {
            let name = o["metadata"]["name"].as_str().unwrap_or_default();
            o["kind"] == "Namespace"
                || ["web", "web-config", "web-tls", "registry-pull"].contains(&name)
                    && o["kind"] != "Ingress"
                || name.starts_with("external-dns")
        })
        .collect();
    for object in &mut objects {
        if object["kind"] == "Deployment" && object["metadata"]["name"] == "external-dns" {
            let container = &mut object["spec"]["template"]["spec"]["containers"][0];
            container["image"] = json!("registry.k8s.io/external-dns/external-dns:v0.21.0");
            let args = container["args"].as_array_mut().expect("args");
            for arg in args {
                if *arg == "--txt-owner-id=shop-blue" {
                    *arg = json!("--txt-owner-id=shop-green");
                }
                if *arg == "--policy=sync" {
                    *arg = json!("--policy=upsert-only");
                }
            }
        }
        if object["kind"]
            .as_str()
            .is_some_and(|k| k.starts_with("ClusterRole"))
        {
            object["apiVersion"] = json!("rbac.authorization.k8s.io/v1");
            // New ExternalDNS waits for ever for EndpointSlices that the old role does not let it see.
            if let Some(rules) = object["rules"].as_array_mut() {
                rules.push(json!({"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["get", "watch", "list"]}));
            }
        }
    }
    objects.push(json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"name": "web", "namespace": "storefront", "annotations": {"external-dns.alpha.kubernetes.io/ttl": "20"}},
        "spec": {"ingressClassName": "nginx", "rules": [{"host": "www.shop.test", "http": {"paths": [
            {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "web", "port": {"number": 80}}}}]}}]},
    }));
    fixture::cluster::apply(&client, &objects).await?;
    fixture::cluster::wait_ready(
        &client,
        &["storefront", "platform"],
        Duration::from_secs(60),
    )
    .await?;

    // Green's load balancer answers the host although the name still points to blue.
    let start = Instant::now();
    loop {
        let headers = [("host", "www.shop.test")];
        let answer = http::send(
            &bench.gateway(),
            "GET",
            "http://198.51.100.10/",
            &headers,
            "",
        )
        .await?;
        if answer.status == 200 && answer.header("x-served-by") == Some("green") {
            break;
        }
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "{} {}",
            answer.status,
            answer.text()
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    // Two rounds and more of green's ExternalDNS: it has asked, and changed nothing that blue owns.
    let asked = |bench: &Bench| {
        bench
            .calls()
            .iter()
            .filter(|c| c.who == "EDNSGREEN" && c.action == "ListResourceRecordSets")
            .count()
    };
    let start = Instant::now();
    while asked(&bench) < 3 {
        assert!(
            start.elapsed() < Duration::from_secs(40),
            "green's ExternalDNS made {} rounds",
            asked(&bench)
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(bench.record_sets(), before);
    assert!(
        !bench
            .calls()
            .iter()
            .any(|c| c.who == "EDNSGREEN" && c.changed)
    );

    // Deleting the node group takes its nodes away.
    eks(
        &bench,
        "DELETE",
        "/clusters/shop-green/node-groups/nodes",
        json!({}),
    )
    .await;
    let start = Instant::now();
    while !nodes
        .list(&Default::default())
        .await
        .expect("nodes")
        .items
        .is_empty()
    {
        assert!(start.elapsed() < Duration::from_secs(30), "the nodes stay");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Ok(())
}
