//! Node groups become nodes: for each ACTIVE managed node group of the EKS fake, Node objects on green's real API
//! server, as EC2 instances would register themselves. KWOK (or the process kubelet) then plays their kubelets.

use std::collections::{BTreeMap, HashMap};
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::error::{Context, Result};
use crate::strict::eks::NodePlan;
use crate::strict::{State, Strict};

/// How often node groups and nodes are compared.
const PERIOD: Duration = Duration::from_millis(300);
const GROUP_LABEL: &str = "eks.amazonaws.com/nodegroup";

/// Starts comparing; green's API server may come up later. Ends when the handle is aborted.
pub fn start(strict: &Strict, green_kubeconfig: &Path) -> JoinHandle<()> {
    let state = strict.state().clone();
    let path = green_kubeconfig.to_owned();
    tokio::spawn(async move {
        let mut addresses = Addresses::default();
        let mut told = String::new();
        loop {
            // The client is made anew only after a failure: kubeconfig or server may not be there yet.
            match client(&path).await {
                Ok(client) => {
                    let nodes: Api<Node> = Api::all(client);
                    loop {
                        if let Err(error) = compare(&state, &nodes, &mut addresses).await {
                            let text = error.to_string();
                            if text != told {
                                tracing::debug!("node groups to nodes: {text}");
                                told = text;
                            }
                            break;
                        }
                        tokio::time::sleep(PERIOD).await;
                    }
                }
                Err(error) => tracing::debug!("node groups to nodes: {error}"),
            }
            tokio::time::sleep(PERIOD).await;
        }
    })
}

async fn client(path: &Path) -> Result<kube::Client> {
    let config =
        Kubeconfig::read_from(path).context(|| format!("cannot read {}", path.display()))?;
    let config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default())
        .await
        .context(|| format!("cannot use {}", path.display()))?;
    kube::Client::try_from(config).context(|| format!("no client from {}", path.display()))
}

/// Private addresses handed out to nodes: one for each (group, index), kept as long as the node lives.
#[derive(Default)]
struct Addresses {
    given: HashMap<(String, usize), (String, Ipv4Addr)>,
    next: BTreeMap<String, u32>,
}

impl Addresses {
    /// Subnet id and address of the group's `index`-th node; subnets take turns.
    fn of(&mut self, plan: &NodePlan, index: usize) -> Option<(usize, Ipv4Addr)> {
        let turn = index % plan.subnets.len().max(1);
        let subnet = plan.subnets.get(turn)?;
        let key = (plan.arn.clone(), index);
        if let Some((_, address)) = self.given.get(&key) {
            return Some((turn, *address));
        }
        let base: Ipv4Addr = subnet.cidr.split('/').next()?.parse().ok()?;
        // The first addresses of a subnet are AWS's own.
        let offset = self.next.entry(subnet.id.clone()).or_insert(16);
        *offset += 1;
        let address = Ipv4Addr::from(u32::from(base) + *offset);
        self.given.insert(key, (subnet.id.clone(), address));
        Some((turn, address))
    }
}

async fn compare(state: &Arc<State>, nodes: &Api<Node>, addresses: &mut Addresses) -> Result<()> {
    let plans = {
        let mut store = state.lock_eks();
        store.sweep_quietly(&state.config);
        store.node_plans()
    };
    let mut wanted: BTreeMap<String, Value> = BTreeMap::new();
    for plan in &plans {
        for index in 0..plan.desired {
            if let Some((turn, address)) = addresses.of(plan, index) {
                let node = node(&state.config.region, plan, turn, address);
                let name = node["metadata"]["name"].as_str().unwrap_or("").to_owned();
                wanted.insert(name, node);
            }
        }
    }
    let present = nodes
        .list(&ListParams::default().labels(GROUP_LABEL))
        .await
        .context(|| "cannot list green's nodes".into())?;
    for old in &present {
        let name = old.metadata.name.clone().unwrap_or_default();
        if wanted.remove(&name).is_none() && old.metadata.deletion_timestamp.is_none() {
            match nodes.delete(&name, &DeleteParams::default()).await {
                Err(kube::Error::Api(e)) if e.code == 404 => {}
                other => {
                    other.context(|| format!("cannot delete node {name}"))?;
                }
            }
        }
    }
    addresses
        .given
        .retain(|(arn, index), _| plans.iter().any(|p| p.arn == *arn && *index < p.desired));
    for (name, value) in wanted {
        let status = json!({"status": value["status"]});
        let node: Node = serde_json::from_value(value).context(|| format!("node {name}"))?;
        nodes
            .create(&PostParams::default(), &node)
            .await
            .context(|| format!("cannot create node {name}"))?;
        nodes
            .patch_status(&name, &PatchParams::default(), &Patch::Merge(status))
            .await
            .context(|| format!("cannot set the status of node {name}"))?;
    }
    Ok(())
}

fn node(region: &str, plan: &NodePlan, turn: usize, address: Ipv4Addr) -> Value {
    let subnet = &plan.subnets[turn];
    let instance_type = plan.instance_type.as_str();
    let name = format!(
        "ip-{}.{region}.compute.internal",
        address.to_string().replace('.', "-")
    );
    let instance = format!(
        "i-{}",
        &crate::strict::http::hex(&crate::strict::http::sha2_256(
            format!("{}{name}", plan.arn).as_bytes()
        ))[..17]
    );
    let mut labels = json!({
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/instance-type": instance_type,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "kubernetes.io/hostname": name,
        "node.kubernetes.io/instance-type": instance_type,
        "topology.kubernetes.io/region": region,
        "topology.kubernetes.io/zone": subnet.zone,
        "failure-domain.beta.kubernetes.io/region": region,
        "failure-domain.beta.kubernetes.io/zone": subnet.zone,
        "eks.amazonaws.com/capacityType": plan.capacity_type,
        GROUP_LABEL: plan.name,
    });
    for (key, value) in &plan.labels {
        labels[key] = json!(value);
    }
    let taints: Vec<Value> = plan
        .taints
        .iter()
        .map(|(key, value, effect)| {
            let effect = match effect.as_str() {
                "NO_EXECUTE" => "NoExecute",
                "PREFER_NO_SCHEDULE" => "PreferNoSchedule",
                _ => "NoSchedule",
            };
            json!({"key": key, "value": value, "effect": effect})
        })
        .collect();
    let (cpu, memory, pods) = capacity(instance_type);
    let resources = json!({
        "cpu": cpu.to_string(),
        "memory": format!("{memory}Gi"),
        "ephemeral-storage": format!("{}Gi", plan.disk_gib),
        "pods": pods.to_string(),
    });
    let condition = |kind: &str, status: &str, reason: &str| {
        json!({
            "type": kind,
            "status": status,
            "reason": reason,
            "message": reason,
            "lastHeartbeatTime": jiff::Timestamp::now().to_string(),
            "lastTransitionTime": jiff::Timestamp::now().to_string(),
        })
    };
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "providerID": format!("aws:///{}/{instance}", subnet.zone),
            "taints": taints,
        },
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "addresses": [
                {"type": "InternalIP", "address": address.to_string()},
                {"type": "Hostname", "address": name},
                {"type": "InternalDNS", "address": name},
            ],
            "conditions": [
                condition("Ready", "True", "KubeletReady"),
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID"),
            ],
        },
    })
}

/// `(vCPU, GiB, pods)` of an instance type, by the rules of its size and family; pods as the VPC CNI allows (eks.md 2.1).
fn capacity(instance_type: &str) -> (u32, u32, u32) {
    let (family, size) = instance_type
        .split_once('.')
        .unwrap_or((instance_type, "large"));
    let (cpu, general) = match size {
        "nano" | "micro" | "small" => (2, 2),
        "medium" => (2, 4),
        "xlarge" => (4, 16),
        "2xlarge" => (8, 32),
        "4xlarge" => (16, 64),
        "8xlarge" => (32, 128),
        _ => (2, 8),
    };
    let pods = match (family.starts_with('t'), size) {
        (_, "medium") => 17,
        (true, "large") => 35,
        (_, "large") => 29,
        (_, "4xlarge" | "8xlarge") => 234,
        (_, "xlarge" | "2xlarge") => 58,
        _ => 8,
    };
    let memory = match family.chars().next() {
        Some('c') => general / 2,
        Some('r') => general * 2,
        _ => general,
    };
    (cpu, memory, pods)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_type_gives_the_pods_that_its_interfaces_carry() {
        assert_eq!(capacity("m5.large"), (2, 8, 29));
        assert_eq!(capacity("m5.xlarge"), (4, 16, 58));
        assert_eq!(capacity("t3.medium"), (2, 4, 17));
        assert_eq!(capacity("c5.xlarge"), (4, 8, 58));
    }
}
