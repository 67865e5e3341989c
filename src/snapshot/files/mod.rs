//! A snapshot from what people already have: kops exports and state-store copies, kubectl dumps, AWS CLI output. No network.

mod account;
#[cfg(test)]
mod account_tests;
mod aws;
mod choose;
mod dns;
#[cfg(test)]
mod forms_tests;
mod gather;
#[cfg(test)]
mod mutation_tests;
mod objects;
mod shape;
mod terraform;
#[cfg(test)]
mod tests;

pub use terraform::terraform_file;

use super::mask::Key;
use super::model::{Cluster, NotChecked, Snapshot, TerraformResource};
use crate::error::{Error, Kind, Result};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// What was made of the files.
#[derive(Debug)]
pub struct FromFiles {
    /// The snapshot.
    pub snapshot: Snapshot,
    /// Files, or parts of them, that crossfade has no use for, each with what it holds. For the terminal only.
    pub unused: Vec<String>,
}

/// Reads files and folders into a snapshot. `cluster` chooses a kops cluster when there are several. Secret values are hashed
/// with `key` as they are read. Whatever was not given is listed in `not_checked`, never guessed.
pub fn from_files(paths: &[PathBuf], cluster: Option<&str>, key: &Key) -> Result<FromFiles> {
    if paths.is_empty() {
        return Err(Error::new(Kind::Usage, "no file was named")
            .remedy("name files or folders: kops exports, kubectl dumps, AWS CLI output"));
    }
    let mut found = gather::gather(paths)?;
    if found.is_empty() {
        let names: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
        return Err(Error::new(Kind::BadInput, "nothing in these files can be used")
            .at(names.join(", "))
            .remedy("name kops exports (`kops get all NAME -o yaml`), kubectl dumps (`kubectl get ... -o yaml`) or AWS CLI output (JSON)"));
    }
    let mut missing = vec![];
    let kops = choose::kops(&mut found, cluster, &mut missing)?;
    let name = kops
        .cluster
        .as_ref()
        .map(|c| super::kops::name_of(c).to_string());
    let mut blue = objects::cluster(&mut found, key, &mut missing)?;
    if blue.version.is_none() {
        blue.version = kops
            .cluster
            .as_ref()
            .and_then(super::kops::kubernetes_version);
    }
    if blue.version.is_none() {
        missing.push(not(
            "blue.version",
            "neither `kubectl version -o json` nor a kops Cluster was given",
        ));
    }
    let aws = aws::inventory(
        &mut found,
        kops.cluster.as_ref(),
        name.as_deref(),
        &volumes(&blue),
        &mut missing,
    )?;
    let mut terraform: Option<Vec<TerraformResource>> = None;
    for doc in std::mem::take(&mut found.terraform) {
        terraform
            .get_or_insert_default()
            .extend(terraform::resources(&doc.value, &doc.at)?);
    }
    let zones = dns::zones(&mut found, &mut missing)?;
    missing.sort();
    missing.dedup();
    Ok(FromFiles {
        snapshot: Snapshot {
            kops,
            blue,
            green: None,
            aws,
            zones,
            not_checked: missing,
            terraform: terraform.map(terraform::sorted),
            ..Snapshot::default()
        },
        unused: found.unused,
    })
}

/// Ids of the EBS volumes that blue's persistent volumes name.
fn volumes(blue: &Cluster) -> BTreeSet<String> {
    let id = |v: &Value| {
        v.pointer("/spec/awsElasticBlockStore/volumeID")
            .or(v.pointer("/spec/csi/volumeHandle"))
            .and_then(Value::as_str)
            // The in-tree form is `aws://zone/vol-1`.
            .and_then(|id| id.rsplit('/').next())
            .map(String::from)
    };
    blue.of_kind("PersistentVolume").filter_map(id).collect()
}

fn not(what: &str, why: impl Into<String>) -> NotChecked {
    NotChecked {
        what: what.into(),
        why: why.into(),
    }
}
