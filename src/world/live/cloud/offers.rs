//! What EKS offers (versions of Kubernetes and of add-ons) and what is known of keys and buckets that migration.yaml names.
//! Each part by itself: what is denied is left out with the reason.

use super::LiveCloud;
use super::json::{self, KMS};
use crate::world::cloud::{AddonOffer, AddonOffers, ClusterVersion, Inventory, Key};
use crate::world::live::aws;
use crate::world::{Class, Result};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Of the account's own and of AWS's: third parties sell hundreds more.
const OWNERS: &[&str] = &["aws", "community"];

impl LiveCloud {
    pub(super) async fn read_offers(&self, eks: &aws_sdk_eks::Client, into: &mut Inventory) {
        let mut gaps = BTreeMap::new();
        let mut gap = |part: &str, e: crate::world::Error| {
            gaps.insert(part.to_string(), format!("{}: {}", e.at, e.message));
        };
        let asked = self.asked();
        match addons(eks, &asked.version).await {
            Ok(o) => into.addon_offers = Some(o),
            Err(e) => gap("addonVersions", e),
        }
        match versions(eks).await {
            Ok(v) => into.cluster_versions = Some(v),
            Err(e) => gap("clusterVersions", e),
        }
        if asked.logs {
            match self.eks_log_groups().await {
                Ok(g) => into.log_groups = Some(g),
                Err(e) => gap("logGroups", e),
            }
        }
        if let Some(name) = &asked.bucket {
            match self.bucket(name).await {
                Ok(b) => into.state_bucket = b,
                Err(e) => gap("stateBucket", e),
            }
        }
        let mut names: BTreeSet<String> = asked.keys.clone();
        let of_volumes = into.volumes.iter().flatten();
        names.extend(of_volumes.filter_map(|v| v.kms_key.clone()));
        let mut keys = BTreeMap::new();
        for name in names {
            match self.key(&name).await {
                Ok(Some(k)) => {
                    keys.insert(name, k);
                }
                Ok(None) => {}
                Err(e) => gap("keys", e),
            }
        }
        into.keys = Some(keys);
        into.not_read.append(&mut gaps);
    }

    async fn kms(&self, operation: &str, at: &str, body: &Value) -> Result<Value> {
        json::call(&self.aws, &KMS, operation, at, body).await
    }

    /// A key with its policy and grants; `None` when there is none. A key whose policy we may not read is still a key.
    async fn key(&self, name: &str) -> Result<Option<Key>> {
        let at = format!("key {name}");
        let described =
            super::optional(self.kms("DescribeKey", &at, &json!({"KeyId": name})).await)?;
        let Some(meta) = described.map(|d| d["KeyMetadata"].clone()) else {
            return Ok(None);
        };
        let text = |k: &str| meta[k].as_str().unwrap_or_default().to_string();
        let mut key = Key {
            arn: text("Arn"),
            state: text("KeyState"),
            manager: text("KeyManager"),
            spec: text("KeySpec"),
            ..Key::default()
        };
        // A key of AWS is open to whoever may use its service.
        if key.manager == "AWS" {
            return Ok(Some(key));
        }
        let id = json!({"KeyId": key.arn, "PolicyName": "default"});
        match self.kms("GetKeyPolicy", &at, &id).await {
            Ok(p) => {
                key.policy = p["Policy"]
                    .as_str()
                    .and_then(|t| serde_json::from_str(t).ok());
            }
            // A policy of another account, or one that only its administrators may read.
            Err(e) if e.class == Class::Unauthorized => {}
            Err(e) => return Err(e),
        }
        let mut marker: Option<String> = None;
        loop {
            let mut body = json!({"KeyId": key.arn});
            if let Some(m) = &marker {
                body["Marker"] = json!(m);
            }
            let page = match self.kms("ListGrants", &at, &body).await {
                Ok(p) => p,
                Err(e) if e.class == Class::Unauthorized => break,
                Err(e) => return Err(e),
            };
            for g in page["Grants"].as_array().into_iter().flatten() {
                let Some(who) = g["GranteePrincipal"].as_str() else {
                    continue;
                };
                // EBS takes a grant for each volume by itself: there may be thousands, and none of them lets a principal in.
                if !who.contains(":role/") && !who.contains(":user/") {
                    continue;
                }
                let list = key.grants.entry(who.to_string()).or_default();
                list.extend(
                    g["Operations"]
                        .as_array()
                        .into_iter()
                        .flatten()
                        .filter_map(|o| o.as_str().map(String::from)),
                );
                list.sort();
                list.dedup();
            }
            marker = page["NextMarker"].as_str().map(String::from);
            if marker.is_none() || page["Truncated"] != true {
                break;
            }
        }
        Ok(Some(key))
    }
}

/// Add-ons for one Kubernetes version.
async fn addons(eks: &aws_sdk_eks::Client, kubernetes: &str) -> Result<AddonOffers> {
    let mut out = AddonOffers {
        kubernetes: kubernetes.into(),
        addons: BTreeMap::new(),
    };
    let mut request = eks.describe_addon_versions().kubernetes_version(kubernetes);
    for owner in OWNERS {
        request = request.owners(*owner);
    }
    let mut pages = request.into_paginator().items().send();
    while let Some(addon) = pages.next().await {
        let addon = addon.map_err(|e| aws::error("add-on versions", e))?;
        let Some(name) = addon.addon_name() else {
            continue;
        };
        let offer: &mut AddonOffer = out.addons.entry(name.into()).or_default();
        for v in addon.addon_versions() {
            let Some(version) = v.addon_version() else {
                continue;
            };
            let here = v
                .compatibilities()
                .iter()
                .find(|c| c.cluster_version() == Some(kubernetes));
            let Some(here) = here else { continue };
            if here.default_version() {
                offer.default = Some(version.into());
            }
            offer.needs_role |= v.requires_iam_permissions();
            offer.versions.push(version.into());
        }
    }
    out.addons.retain(|_, o| !o.versions.is_empty());
    Ok(out)
}

/// Kubernetes versions, those without support too.
async fn versions(eks: &aws_sdk_eks::Client) -> Result<BTreeMap<String, ClusterVersion>> {
    let day = |d: Option<&aws_sdk_eks::primitives::DateTime>| -> Option<String> {
        let t = jiff::Timestamp::from_second(d?.secs()).ok()?;
        Some(t.to_zoned(jiff::tz::TimeZone::UTC).date().to_string())
    };
    let mut out = BTreeMap::new();
    let mut pages = eks
        .describe_cluster_versions()
        .include_all(true)
        .into_paginator()
        .items()
        .send();
    while let Some(v) = pages.next().await {
        let v = v.map_err(|e| aws::error("cluster versions", e))?;
        let Some(version) = v.cluster_version() else {
            continue;
        };
        out.insert(
            version.to_string(),
            ClusterVersion {
                status: v
                    .version_status()
                    .map(|s| s.as_str())
                    .unwrap_or_default()
                    .into(),
                standard_until: day(v.end_of_standard_support_date()),
                extended_until: day(v.end_of_extended_support_date()),
            },
        );
    }
    Ok(out)
}
