//! Kubernetes objects out of dumps.

use super::gather::Found;
use super::not;
use crate::error::{Error, Kind, Result};
use crate::object::{ObjectId, canonical, resource_version, sha256_hex, uid};
use crate::snapshot::mask::{self, Key};
use crate::snapshot::model::{Cluster, NotChecked};
use crate::snapshot::prefer;
use crate::world::kube::{ApiKind, ClusterIdentity, KubeVersion};
use base64::Engine;
use serde_json::Value;
use std::collections::BTreeMap;

/// Group, kind, namespace and name: an object in whatever version.
type Place = (String, String, String, String);

/// Built-in kinds without a namespace; everything else built in has one, and a dump of a file that leaves it out means `default`.
const CLUSTER_SCOPED: &[&str] = &[
    "APIService",
    "CertificateSigningRequest",
    "ClusterRole",
    "ClusterRoleBinding",
    "ComponentStatus",
    "CSIDriver",
    "CSINode",
    "CustomResourceDefinition",
    "FlowSchema",
    "IngressClass",
    "MutatingWebhookConfiguration",
    "Namespace",
    "Node",
    "PersistentVolume",
    "PodSecurityPolicy",
    "PriorityClass",
    "PriorityLevelConfiguration",
    "RuntimeClass",
    "StorageClass",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
    "VolumeAttachment",
];

pub(super) fn cluster(
    found: &mut Found,
    key: &Key,
    missing: &mut Vec<NotChecked>,
) -> Result<Cluster> {
    let mut out = Cluster {
        kinds: kinds(found),
        ..Cluster::default()
    };
    let mut best: BTreeMap<Place, (ObjectId, Value, String)> = BTreeMap::new();
    for doc in std::mem::take(&mut found.kube) {
        if let Some(version) = version(&doc.value) {
            out.version = Some(version);
            continue;
        }
        if doc.value.get("apiVersion").is_none() {
            found
                .unused
                .push(format!("{}: a client's version only", doc.at));
            continue;
        }
        let mut value = doc.value;
        let Some(mut id) = ObjectId::of(&value) else {
            return Err(
                Error::new(Kind::BadInput, "this object has no metadata.name")
                    .at(doc.at)
                    .remedy("give whole objects, as `kubectl get -o yaml` prints them"),
            );
        };
        if prefer::is_noise(&id.kind) {
            continue;
        }
        if id.namespace.is_none() && is_namespaced(&id, &out.kinds) {
            value["metadata"]["namespace"] = "default".into();
            id.namespace = Some("default".into());
        }
        out.helm.extend(crate::helm::release(&value));
        mask::object(key, &mut value);
        let slot = (
            prefer::home_group(id.group(), &id.kind).to_string(),
            id.kind.clone(),
            id.namespace.clone().unwrap_or_default(),
            id.name.clone(),
        );
        match best.get(&slot) {
            None => {
                best.insert(slot, (id, value, doc.at));
            }
            Some((old_id, old, old_at)) => {
                if newer(old_id, old, &id, &value, old_at, &doc.at)? {
                    best.insert(slot, (id, value, doc.at));
                }
            }
        }
    }
    let mut objects: Vec<(ObjectId, Value)> =
        best.into_values().map(|(id, v, _)| (id, v)).collect();
    objects.sort_by(|a, b| a.0.cmp(&b.0));
    out.helm.sort();
    // The same record may stand in two dumps.
    out.helm.dedup_by(|a, b| a.object == b.object);
    out.objects = objects.into_iter().map(|(_, v)| v).collect();
    if out.objects.is_empty() {
        missing.push(not(
            "blue.objects",
            "no objects were given (`kubectl get KIND,... -A -o yaml`)",
        ));
    } else if out.kinds.is_empty() {
        missing.push(not("blue.kinds", "no discovery was given (`kubectl get --raw /apis/GROUP/VERSION`), so kinds that were not dumped are not known"));
    } else {
        for kind in prefer::readable(&out.kinds) {
            let home = prefer::home_group(&kind.group, &kind.kind);
            let seen =
                out.objects.iter().filter_map(ObjectId::of).any(|id| {
                    id.kind == kind.kind && prefer::home_group(id.group(), &id.kind) == home
                });
            // A dump says nothing about what it left out: an empty kind and a forgotten one look alike.
            if !seen
                && [
                    "Secret",
                    "ConfigMap",
                    "Service",
                    "Deployment",
                    "Node",
                    "Namespace",
                ]
                .contains(&kind.kind.as_str())
            {
                missing.push(not(
                    &format!("blue.kind/{}", kind.plural),
                    "the dump holds none of this kind",
                ));
            }
        }
    }
    out.identity = identity(found, &out);
    if out.identity.is_none() {
        missing.push(not(
            "blue.identity",
            "pins need the namespace kube-system and a kubeconfig with the cluster's CA",
        ));
    }
    Ok(out)
}

fn is_namespaced(id: &ObjectId, kinds: &[ApiKind]) -> bool {
    if let Some(k) = kinds
        .iter()
        .find(|k| k.kind == id.kind && k.group == id.group())
    {
        return k.namespaced;
    }
    let group = id.group();
    let built_in = !group.contains('.') || group.ends_with(".k8s.io");
    built_in && !CLUSTER_SCOPED.contains(&id.kind.as_str())
}

/// Whether the second copy of an object is to be kept instead of the first.
fn newer(
    old_id: &ObjectId,
    old: &Value,
    id: &ObjectId,
    new: &Value,
    old_at: &str,
    at: &str,
) -> Result<bool> {
    let rank = |id: &ObjectId| {
        (
            prefer::home_group(id.group(), &id.kind) == id.group(),
            prefer::rank(id.group(), &id.kind, id.version()),
        )
    };
    if old_id.api_version != id.api_version && uid(old) == uid(new) {
        return Ok(rank(id) > rank(old_id));
    }
    if canonical(old) == canonical(new) {
        return Ok(false);
    }
    let age = |v: &Value| resource_version(v).and_then(|r| r.parse::<u64>().ok());
    match (age(old), age(new)) {
        (Some(a), Some(b)) if uid(old) == uid(new) => Ok(b > a),
        _ => Err(Error::new(
            Kind::BadInput,
            format!("{id} is given twice, and the two differ"),
        )
        .at(format!("{old_at} and {at}"))
        .remedy("give only one of them (a dump of the live cluster beats the manifests)")),
    }
}

/// `kubectl version -o json`, or the answer of `/version`.
fn version(doc: &Value) -> Option<KubeVersion> {
    let v = doc.get("serverVersion").unwrap_or(doc);
    let git = v.get("gitVersion")?.as_str()?;
    // Some servers write the minor number as `21+`.
    let digits: String = v
        .get("minor")?
        .as_str()?
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    Some(KubeVersion {
        git_version: git.into(),
        minor: digits.parse().ok()?,
    })
}

/// Discovery documents as `kubectl get --raw /api/v1` and `/apis/<group>/<version>` print them.
fn kinds(found: &mut Found) -> Vec<ApiKind> {
    let mut out = vec![];
    for doc in std::mem::take(&mut found.api_lists) {
        let group_version = doc.value["groupVersion"].as_str().unwrap_or_default();
        let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
        for r in doc.value["resources"].as_array().into_iter().flatten() {
            let text = |key: &str| r[key].as_str().unwrap_or_default().to_string();
            if text("name").contains('/') {
                continue;
            }
            out.push(ApiKind {
                group: group.into(),
                version: version.into(),
                kind: text("kind"),
                plural: text("name"),
                namespaced: r["namespaced"].as_bool().unwrap_or_default(),
                verbs: r["verbs"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(|v| v.as_str().map(String::from))
                    .collect(),
            });
        }
    }
    out.sort();
    out.dedup();
    out
}

/// uid of kube-system, and the CA of the one cluster in a kubeconfig. Nothing else of a kubeconfig is looked at.
fn identity(found: &mut Found, cluster: &Cluster) -> Option<ClusterIdentity> {
    let configs = std::mem::take(&mut found.kubeconfig);
    let [config] = configs.as_slice() else {
        return None;
    };
    let [entry] = config.value["clusters"].as_array()?.as_slice() else {
        return None;
    };
    let engine = base64::engine::general_purpose::STANDARD;
    let pem = engine
        .decode(
            entry
                .pointer("/cluster/certificate-authority-data")?
                .as_str()?,
        )
        .ok()?;
    let pem = String::from_utf8(pem).ok()?;
    let body: String = pem
        .lines()
        .skip_while(|l| !l.starts_with("-----BEGIN"))
        .skip(1)
        .take_while(|l| !l.starts_with("-----END"))
        .collect();
    let der = engine.decode(body.trim()).ok().filter(|d| !d.is_empty())?;
    Some(ClusterIdentity {
        uid: uid(cluster.find("Namespace", None, "kube-system")?)?.into(),
        ca_sha256: sha256_hex(der),
    })
}
