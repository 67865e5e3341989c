//! Green's node groups become nodes of the real green API server: as many as planned, with the planned labels and taints, and the real
//! scheduler places every pod of the plan on them.

#[allow(dead_code, reason = "bench_shop asks for more")]
mod bench;

use bench::Shop;
use serde_json::Value;
use std::collections::BTreeMap;
use testkit::fixture::STATE_BUCKET;
use testkit::servers::{Side, http};

/// An instance group with labels and a taint beside the company's own: no pod of the company tolerates it.
const BATCH: &str = "apiVersion: kops.k8s.io/v1alpha2
kind: InstanceGroup
metadata:
  labels:
    kops.k8s.io/cluster: shop.test
  name: batch
spec:
  image: ami-834059fdfdb7b859d
  machineType: m5.large
  maxSize: 1
  minSize: 1
  nodeLabels:
    team: batch
  role: Node
  subnets:
  - eu-west-1a
  taints:
  - dedicated=batch:NoSchedule
";

#[tokio::test(flavor = "multi_thread")]
async fn green_nodes_have_the_planned_labels_and_taints_and_the_plans_pods_fit_on_them() {
    let shop = Shop::open().await;
    let headers = [
        (
            "authorization",
            "AWS4-HMAC-SHA256 Credential=test/20260101/eu-west-1/s3/aws4_request, SignedHeaders=host, Signature=00",
        ),
        ("x-amz-date", "20260101T000000Z"),
        ("content-type", "application/octet-stream"),
    ];
    let key = format!("/{STATE_BUCKET}/shop.test/instancegroup/batch");
    let put = http::send(
        &shop.bench.aws_endpoint(),
        "PUT",
        &key,
        &headers,
        BATCH.to_string(),
    )
    .await
    .unwrap();
    assert!(put.status < 300, "{}", put.text());

    shop.run(&["discover", "plans/shop"]).await.expect(0);
    shop.run(&["plan", "plans/shop"]).await.expect(2);
    shop.run(&["review", "plans/shop", "--approve", "all"])
        .await
        .expect(0);
    shop.run(&["migrate", "plans/shop", "--to", "unpark"])
        .await
        .expect(0);

    let plan = shop.plan();
    let client = shop
        .bench
        .control_plane(Side::Green)
        .client()
        .await
        .unwrap();
    let nodes: Vec<Value> = listed::<k8s_openapi::api::core::v1::Node>(&client).await;
    let pods: Vec<Value> = listed::<k8s_openapi::api::core::v1::Pod>(&client).await;

    let groups = &plan.target.node_groups;
    let batch = groups
        .iter()
        .find(|g| g.name.contains("batch"))
        .expect("a group of its own");
    assert_eq!(batch.labels.get("team").map(String::as_str), Some("batch"));
    assert_eq!(batch.taints.len(), 1, "{:?}", batch.taints);
    for group in groups {
        let own: Vec<&Value> = nodes
            .iter()
            .filter(|n| {
                n["metadata"]["labels"]["eks.amazonaws.com/nodegroup"] == group.name.as_str()
            })
            .collect();
        assert_eq!(own.len(), group.desired as usize, "nodes of {}", group.name);
        for node in own {
            for (key, value) in &group.labels {
                assert_eq!(
                    node["metadata"]["labels"][key],
                    value.as_str(),
                    "{} {key}",
                    group.name
                );
            }
            let taints: Vec<(String, String, String)> = node["spec"]["taints"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|t| {
                    let text = |k: &str| t[k].as_str().unwrap_or_default().to_string();
                    (text("key"), text("value"), text("effect"))
                })
                .collect();
            let planned: Vec<(String, String, String)> = group
                .taints
                .iter()
                .map(|t| (t.key.clone(), t.value.clone(), t.effect.clone()))
                .collect();
            assert_eq!(taints, planned, "{}", group.name);
            if let Some(most) = group.max_pods {
                let room: u32 = number(&node["status"]["allocatable"]["pods"]) as u32;
                assert!(
                    room >= most,
                    "{}: room for {room} pods, {most} are planned",
                    group.name
                );
            }
        }
    }

    // The real scheduler found a place for every pod, and none of them is on the node that they do not tolerate.
    let mut on: BTreeMap<String, (f64, f64, u32)> = BTreeMap::new();
    let mut placed = 0;
    for pod in pods
        .iter()
        .filter(|p| !matches!(p["status"]["phase"].as_str(), Some("Succeeded" | "Failed")))
    {
        let name = format!(
            "{}/{}",
            pod["metadata"]["namespace"], pod["metadata"]["name"]
        );
        let node = pod["spec"]["nodeName"].as_str();
        let node =
            node.unwrap_or_else(|| panic!("{name} has no node: {}", pod["status"]["conditions"]));
        let there = nodes.iter().find(|n| n["metadata"]["name"] == node);
        let there = there.unwrap_or_else(|| panic!("{name} is on {node}, which is no node"));
        let group = &there["metadata"]["labels"]["eks.amazonaws.com/nodegroup"];
        let tolerates = pod["spec"]["tolerations"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|t| t["operator"] == "Exists" && t["key"].is_null() || t["key"] == "dedicated");
        assert!(
            *group != batch.name.as_str() || tolerates,
            "{name} is on {group}"
        );
        let sum = on.entry(node.into()).or_default();
        for container in pod["spec"]["containers"].as_array().into_iter().flatten() {
            sum.0 += number(&container["resources"]["requests"]["cpu"]);
            sum.1 += number(&container["resources"]["requests"]["memory"]);
        }
        sum.2 += 1;
        placed += 1;
    }
    assert!(placed >= 5, "{placed} pods run on green");
    for node in &nodes {
        let room = &node["status"]["allocatable"];
        let name = node["metadata"]["name"].as_str().unwrap_or_default();
        let (cpu, memory, count) = on.get(name).copied().unwrap_or_default();
        assert!(cpu <= number(&room["cpu"]), "{name}: {cpu} CPUs asked for");
        assert!(
            memory <= number(&room["memory"]),
            "{name}: {memory} bytes asked for"
        );
        assert!(
            f64::from(count) <= number(&room["pods"]),
            "{name}: {count} pods"
        );
    }
    println!(
        "{} groups, {} nodes, {placed} pods",
        groups.len(),
        nodes.len()
    );
}

async fn listed<K>(client: &kube::Client) -> Vec<Value>
where
    K: kube::Resource<DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned
        + serde::Serialize,
{
    let api: kube::Api<K> = kube::Api::all(client.clone());
    let list = api.list(&Default::default()).await.unwrap();
    list.items
        .iter()
        .map(|o| serde_json::to_value(o).unwrap())
        .collect()
}

/// A quantity of Kubernetes, as a number; nothing is 0.
fn number(quantity: &Value) -> f64 {
    let text = match quantity {
        Value::String(s) => s.clone(),
        Value::Number(n) => n.to_string(),
        _ => return 0.0,
    };
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "m" => 0.001,
        "Ki" => 1024.0,
        "Mi" => 1024.0 * 1024.0,
        "Gi" => 1024.0 * 1024.0 * 1024.0,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        _ => 1.0,
    };
    digits.parse::<f64>().unwrap() * factor
}
