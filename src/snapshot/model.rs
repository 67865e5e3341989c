//! The snapshot in memory. On disk (see `store`): `manifest.json`, `kops/*.json`, `blue/*.jsonl`, `green/*.jsonl`, `aws/inventory.json`, `dns/<zone>.jsonl`.

use crate::object::{ObjectId, Side};
use crate::world::cloud::Inventory;
use crate::world::dns::{RecordSet, Zone};
use crate::world::kube::{ApiKind, ClusterIdentity, KubeVersion};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Format version of the folder.
pub const FORMAT: u32 = 1;

/// Annotation-free marker that replaces every secret value on disk: `hmac-sha256:<hex>:<bytes>`.
/// The HMAC key is random per snapshot folder lineage and kept in the run folder, never in the snapshot, so equal values
/// can be told apart from changed ones without giving anything away.
pub const HASH_PREFIX: &str = "hmac-sha256:";

/// Everything that was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// kops's own view.
    pub kops: Kops,
    /// Blue's API server.
    pub blue: Cluster,
    /// Green's API server, when there is one already.
    pub green: Option<Cluster>,
    /// The account, when it was read.
    pub aws: Option<Inventory>,
    /// Hosted zones with their record sets, sorted by zone name and id.
    pub zones: Vec<ZoneRecords>,
    /// What could not be read, each with the reason: never "ok".
    pub not_checked: Vec<NotChecked>,
    /// Day on which it was taken, `2026-11-30`. The planner has no other clock: expiry and ages are counted from here.
    #[serde(default)]
    pub taken: Option<String>,
    /// What a Terraform state holds, when one was given; sorted by address.
    #[serde(default)]
    pub terraform: Option<Vec<TerraformResource>>,
}

/// A managed resource of a Terraform state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TerraformResource {
    /// Address, as in `module.eks.aws_eks_cluster.this[0]`.
    pub address: String,
    /// Type, as in `aws_eks_cluster`.
    pub kind: String,
    /// Attributes that identify it (`id`, `name`, `arn`, `cluster_name`, `node_group_name`, `addon_name`, `principal_arn`, `key`, `resource_id`, ...); never secrets.
    pub attributes: BTreeMap<String, String>,
}

/// Something that was not read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NotChecked {
    /// What, as in `aws.inventory`, `blue.kind/secrets`, `zone/shop.test`.
    pub what: String,
    /// Why not.
    pub why: String,
}

/// kops documents, as JSON, unknown fields and all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Kops {
    /// The Cluster document.
    pub cluster: Option<Value>,
    /// The Cluster document with every default filled in (`cluster-completed.spec`, `kops get cluster --full`), when given.
    #[serde(default)]
    pub completed: Option<Value>,
    /// InstanceGroup documents, sorted by name.
    pub instance_groups: Vec<Value>,
    /// Version of kops that wrote the store (`kops-version.txt`), when known.
    pub kops_version: Option<String>,
    /// Where each document came from: file (with line) or object key.
    pub sources: BTreeMap<String, String>,
    /// Where each leaf stands, as `cluster/spec.kubelet.maxPods` to `file:line:column`.
    #[serde(default)]
    pub places: BTreeMap<String, String>,
    /// Add-ons that blue's masters apply (`addons/bootstrap-channel.yaml`): name to version, empty when the channel names none.
    #[serde(default)]
    pub addons: BTreeMap<String, String>,
    /// Objects that were given to kops beside the cluster (`clusteraddons/default`, other kinds in an export), as
    /// `kind/namespace/name`: names only.
    #[serde(default)]
    pub extra_objects: Vec<String>,
    /// Keys below `pki/`, `secrets/` and `backups/` of the store: their names only, nothing of them is ever opened.
    #[serde(default)]
    pub closed_keys: Vec<String>,
    /// Parts of the store that were not read; they go on to `Snapshot.not_checked`.
    #[serde(skip)]
    pub not_read: Vec<NotChecked>,
}

/// One cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cluster {
    /// Version, when known.
    pub version: Option<KubeVersion>,
    /// Pins, when read live.
    pub identity: Option<ClusterIdentity>,
    /// Discovery, all served versions.
    pub kinds: Vec<ApiKind>,
    /// Objects, sorted by id; secrets with hashed values; no Events or Leases. Status is kept.
    pub objects: Vec<Value>,
    /// What Helm's records name, sorted: the records themselves are Secrets, and hashed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub helm: Vec<crate::helm::Release>,
}

/// A zone with its record sets in Route 53's order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ZoneRecords {
    /// The zone.
    pub zone: Zone,
    /// All record sets.
    pub records: Vec<RecordSet>,
}

impl Snapshot {
    /// The cluster of a side.
    pub fn cluster(&self, side: Side) -> Option<&Cluster> {
        match side {
            Side::Blue => Some(&self.blue),
            Side::Green => self.green.as_ref(),
        }
    }
}

impl Cluster {
    /// Finds an object by kind, namespace and name, whatever version it is in.
    pub fn find(&self, kind: &str, namespace: Option<&str>, name: &str) -> Option<&Value> {
        // Compared in place: a snapshot of 50,000 objects is asked thousands of times. Whoever asks for each of many makes an index.
        self.objects.iter().find(|o| {
            o["kind"] == kind
                && o["metadata"]["name"] == name
                && o["metadata"]["namespace"].as_str() == namespace
                && ObjectId::of(o).is_some()
        })
    }
    /// All objects of a kind.
    pub fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.objects
            .iter()
            .filter(move |o| o.get("kind").and_then(Value::as_str) == Some(kind))
    }
}
