//! Node groups on small made-up companies and on the specs of the corpus.

mod corpus;
mod host;
mod kubelet;
mod labels;
mod names;
mod nonsense;
mod sizes;
mod template;
mod zones;

use crate::plan::model::{Finding, Plan, Severity, TargetNodeGroup};
use crate::plan::plan;
use crate::plan::tests::spec;
use crate::snapshot::model::Snapshot;
use crate::spec::model::{NodeGroupWish, Spec};
use serde_json::{Value, json};

/// A kops 1.24 cluster in three zones, private subnets for nodes and utility subnets for load balancers.
pub(super) struct Company {
    pub spec: Spec,
    pub snapshot: Snapshot,
}

impl Company {
    /// With one instance group, `nodes`.
    pub fn new(ig: Value) -> Company {
        let mut c = Company {
            spec: spec("shop.test"),
            snapshot: Snapshot::default(),
        };
        c.snapshot.kops.cluster = Some(json!({
            "apiVersion": "kops.k8s.io/v1alpha2", "kind": "Cluster", "metadata": {"name": "shop.test"},
            "spec": {
                "cloudProvider": "aws", "kubernetesVersion": "1.24.7", "networking": {"calico": {}},
                "networkCIDR": "10.0.0.0/16", "networkID": "vpc-1",
                "subnets": [
                    {"name": "eu-west-1a", "zone": "eu-west-1a", "type": "Private", "cidr": "10.0.0.0/20", "id": "subnet-a"},
                    {"name": "eu-west-1b", "zone": "eu-west-1b", "type": "Private", "cidr": "10.0.16.0/20", "id": "subnet-b"},
                    {"name": "eu-west-1c", "zone": "eu-west-1c", "type": "Private", "cidr": "10.0.32.0/20", "id": "subnet-c"},
                    {"name": "utility-a", "zone": "eu-west-1a", "type": "Utility", "cidr": "10.0.48.0/22", "id": "subnet-ua"},
                    {"name": "public-a", "zone": "eu-west-1a", "type": "Public", "cidr": "10.0.52.0/22", "id": "subnet-pa"}
                ]
            }
        }));
        c.add("nodes", ig);
        c
    }
    pub fn add(&mut self, name: &str, mut ig: Value) {
        if ig.get("role").is_none() {
            ig["role"] = json!("Node");
        }
        self.snapshot.kops.instance_groups.push(json!({
            "apiVersion": "kops.k8s.io/v1alpha2", "kind": "InstanceGroup", "metadata": {"name": name}, "spec": ig
        }));
    }
    pub fn cluster(&mut self) -> &mut Value {
        &mut self.snapshot.kops.cluster.as_mut().expect("a cluster")["spec"]
    }
    pub fn wish(&mut self, wish: Value) {
        let wish: NodeGroupWish = serde_json::from_value(wish).expect("a wish");
        self.spec.green.node_groups.insert("nodes".into(), wish);
    }
    pub fn plan(&self) -> Plan {
        plan(&self.spec, &self.snapshot)
    }
    pub fn one(&self) -> TargetNodeGroup {
        let mut groups = self.plan().target.node_groups;
        assert_eq!(groups.len(), 1, "one group: {groups:?}");
        groups.remove(0)
    }
}

/// The finding of this id about group `nodes`.
pub(super) fn finding(plan: &Plan, id: &str) -> Finding {
    plan.findings
        .iter()
        .find(|f| f.id == id && f.object == "instancegroup/nodes")
        .cloned()
        .unwrap_or_else(|| {
            let all: Vec<String> = plan
                .findings
                .iter()
                .map(|f| format!("{} {}", f.id, f.object))
                .collect();
            panic!("no {id}: {all:?}")
        })
}

pub(super) fn silent(plan: &Plan, id: &str) {
    let said: Vec<&Finding> = plan.findings.iter().filter(|f| f.id == id).collect();
    assert!(said.is_empty(), "{said:?}");
}

/// (name, capacity type, min, max, desired).
pub(super) fn table(plan: &Plan) -> Vec<(String, String, u32, u32, u32)> {
    plan.target
        .node_groups
        .iter()
        .map(|g| {
            (
                g.name.clone(),
                g.capacity_type.clone(),
                g.min,
                g.max,
                g.desired,
            )
        })
        .collect()
}

/// The same with words instead of tuples of strings.
pub(super) fn is(plan: &Plan, want: &[(&str, &str, u32, u32, u32)]) {
    let got = table(plan);
    let got: Vec<(&str, &str, u32, u32, u32)> = got
        .iter()
        .map(|g| (g.0.as_str(), g.1.as_str(), g.2, g.3, g.4))
        .collect();
    assert_eq!(got, want);
}

pub(super) fn blocks(f: &Finding) {
    assert_eq!(f.severity, Severity::Blocker, "{f:?}");
}
