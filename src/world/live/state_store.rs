//! The kops state store: `s3://bucket/prefix` or a folder. Reads what describes the cluster; keys and secrets
//! (`pki/`, `secrets/`, `backups/`) are never listed, let alone fetched (kops.md 1.1).

use super::aws::{self, AwsBase};
use crate::error::{Error, Kind, Result};
use crate::snapshot::model::Kops;
use crate::spec::model;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Turns the text of one kops document into JSON, as kubectl would read it.
pub type Parse<'a> = &'a (dyn Fn(&str, &str) -> Result<Value> + Sync);

/// Where a store is.
enum Store {
    Folder(PathBuf),
    S3 {
        client: aws_sdk_s3::Client,
        bucket: String,
        prefix: String,
    },
}

/// Reads `<store>/<cluster>/`. `location` is `s3://bucket[/prefix]`, or a folder relative to `base`; `parse(text, where)`
/// reads YAML as manifests are read.
pub async fn state_store(
    location: &str,
    base: &Path,
    cluster: &str,
    aws: &model::Aws,
    parse: Parse<'_>,
) -> Result<Kops> {
    let store = open(location, base, aws).await?;
    let place = |key: &str| store.place(key);
    let mut kops = Kops::default();
    let key = format!("{cluster}/config");
    match store.get(&key).await? {
        Some(text) => {
            kops.cluster = Some(parse(&text, &place(&key))?);
            kops.sources.insert("cluster".into(), place(&key));
        }
        None => {
            return Err(Error::new(
                Kind::BadInput,
                format!("the state store has no cluster `{cluster}`: there is no {}", place(&key)),
            )
            .at(place(&key))
            .remedy("check blue.cluster and blue.stateStore; `kops get clusters --state ...` lists the names"));
        }
    }
    let mut groups = vec![];
    for key in store.list(&format!("{cluster}/instancegroup/")).await? {
        if let Some(text) = store.get(&key).await? {
            let name = key.rsplit('/').next().unwrap_or_default().to_string();
            groups.push((name.clone(), parse(&text, &place(&key))?));
            kops.sources
                .insert(format!("instancegroup/{name}"), place(&key));
        }
    }
    groups.sort_by(|a, b| a.0.cmp(&b.0));
    kops.instance_groups = groups.into_iter().map(|(_, g)| g).collect();
    let key = format!("{cluster}/kops-version.txt");
    if let Some(text) = store.get(&key).await? {
        kops.kops_version = Some(text.trim().into());
        kops.sources.insert("kopsVersion".into(), place(&key));
    }
    Ok(kops)
}

/// [`state_store`] with the one YAML reader of this crate.
pub async fn read_state_store(
    location: &str,
    base: &Path,
    cluster: &str,
    aws: &model::Aws,
) -> Result<Kops> {
    state_store(
        location,
        base,
        cluster,
        aws,
        &|text, place| match crate::yaml::manifests(text, place).into_iter().next() {
            Some(first) => first.map(|(document, _)| document),
            None => Err(Error::new(Kind::BadInput, "the document is empty").at(place)),
        },
    )
    .await
}

async fn open(location: &str, base: &Path, declared: &model::Aws) -> Result<Store> {
    if let Some(rest) = location.strip_prefix("s3://") {
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err(
                Error::new(Kind::BadInput, format!("`{location}` names no bucket"))
                    .at("blue.stateStore"),
            );
        }
        let aws = AwsBase::new(declared);
        let config = aws.reading().await;
        // Emulators and S3-compatible stores have no host name per bucket; AWS keeps both forms.
        let builder = aws_sdk_s3::config::Builder::from(&config)
            .force_path_style(config.endpoint_url().is_some());
        return Ok(Store::S3 {
            client: aws_sdk_s3::Client::from_conf(builder.build()),
            bucket: bucket.into(),
            prefix: prefix.trim_matches('/').into(),
        });
    }
    if let Some((scheme, _)) = location.split_once("://")
        && scheme != "file"
    {
        return Err(Error::new(
            Kind::BadInput,
            format!("a state store under `{scheme}://` is not supported: crossfade moves clusters on AWS"),
        )
        .at("blue.stateStore")
        .remedy("give an s3:// URL or a folder with a copy of the store"));
    }
    let folder = base.join(location.trim_start_matches("file://"));
    if !folder.is_dir() {
        return Err(
            Error::new(Kind::BadInput, format!("{} is no folder", folder.display()))
                .at("blue.stateStore")
                .remedy("give an s3:// URL or a folder with a copy of the store"),
        );
    }
    Ok(Store::Folder(folder))
}

impl Store {
    fn place(&self, key: &str) -> String {
        match self {
            Store::Folder(f) => f.join(key).display().to_string(),
            Store::S3 { bucket, prefix, .. } => format!("s3://{bucket}/{}", joined(prefix, key)),
        }
    }

    async fn get(&self, key: &str) -> Result<Option<String>> {
        match self {
            Store::Folder(f) => match std::fs::read_to_string(f.join(key)) {
                Ok(text) => Ok(Some(text)),
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
                Err(e) => Err(Error::new(Kind::BadInput, e.to_string()).at(self.place(key))),
            },
            Store::S3 {
                client,
                bucket,
                prefix,
            } => {
                let place = self.place(key);
                let answer = match client
                    .get_object()
                    .bucket(bucket)
                    .key(joined(prefix, key))
                    .send()
                    .await
                {
                    Ok(a) => a,
                    Err(e) => {
                        let e = aws::error(&place, e);
                        if e.class == crate::world::Class::NotFound
                            && !e.message.contains("NoSuchBucket")
                        {
                            return Ok(None);
                        }
                        return Err(e.into());
                    }
                };
                let bytes = answer.body.collect().await.map_err(|e| {
                    Error::new(Kind::Unreachable, format!("the object broke off: {e}")).at(&place)
                })?;
                String::from_utf8(bytes.to_vec())
                    .map(Some)
                    .map_err(|_| Error::new(Kind::BadInput, "this is no text").at(place))
            }
        }
    }

    /// Keys directly below a prefix that ends in `/`.
    async fn list(&self, below: &str) -> Result<Vec<String>> {
        let mut out = vec![];
        match self {
            Store::Folder(f) => {
                let entries = match std::fs::read_dir(f.join(below)) {
                    Ok(e) => e,
                    Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(out),
                    Err(e) => {
                        return Err(Error::new(Kind::BadInput, e.to_string()).at(self.place(below)));
                    }
                };
                for entry in entries.flatten() {
                    if entry.path().is_file() {
                        out.push(format!("{below}{}", entry.file_name().to_string_lossy()));
                    }
                }
            }
            Store::S3 {
                client,
                bucket,
                prefix,
            } => {
                let full = joined(prefix, below);
                let mut pages = client
                    .list_objects_v2()
                    .bucket(bucket)
                    .prefix(&full)
                    .delimiter("/")
                    .into_paginator()
                    .send();
                while let Some(page) = pages.next().await {
                    let page = page.map_err(|e| aws::error(&self.place(below), e))?;
                    for object in page.contents() {
                        if let Some(name) = object
                            .key()
                            .and_then(|k| k.strip_prefix(&full))
                            .filter(|n| !n.is_empty())
                        {
                            out.push(format!("{below}{name}"));
                        }
                    }
                }
            }
        }
        out.sort();
        Ok(out)
    }
}

fn joined(prefix: &str, key: &str) -> String {
    if prefix.is_empty() {
        key.into()
    } else {
        format!("{prefix}/{key}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, file: &str, text: &str) {
        let path = root.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[tokio::test]
    async fn a_folder_gives_cluster_groups_and_version_with_their_sources() {
        let dir = tempfile::tempdir().unwrap();
        write(
            dir.path(),
            "shop.test/config",
            "apiVersion: kops.k8s.io/v1alpha2\nkind: Cluster\nspec: {neverHeardOf: 1}\n",
        );
        write(
            dir.path(),
            "shop.test/instancegroup/nodes",
            "kind: InstanceGroup\nmetadata: {name: nodes}\n",
        );
        write(
            dir.path(),
            "shop.test/instancegroup/master",
            "kind: InstanceGroup\nmetadata: {name: master}\n",
        );
        write(dir.path(), "shop.test/kops-version.txt", "1.22.6\n");
        // Not YAML at all: reading it would fail, so passing proves that secrets are not read.
        write(
            dir.path(),
            "shop.test/pki/private/ca/keyset.yaml",
            "\u{1}{{{",
        );
        let kops = read_state_store(".", dir.path(), "shop.test", &model::Aws::default())
            .await
            .unwrap();
        assert_eq!(kops.cluster.unwrap()["spec"]["neverHeardOf"], 1);
        let names: Vec<&str> = kops
            .instance_groups
            .iter()
            .filter_map(|g| g["metadata"]["name"].as_str())
            .collect();
        assert_eq!(names, ["master", "nodes"]);
        assert_eq!(kops.kops_version.as_deref(), Some("1.22.6"));
        assert!(kops.sources["instancegroup/nodes"].ends_with("instancegroup/nodes"));
    }

    #[tokio::test]
    async fn a_cluster_that_is_not_in_the_store_is_bad_input_and_names_the_key() {
        let dir = tempfile::tempdir().unwrap();
        let e = read_state_store(".", dir.path(), "shop.example", &model::Aws::default())
            .await
            .unwrap_err();
        assert_eq!(e.kind, Kind::BadInput);
        assert!(e.message.contains("shop.example/config"), "{}", e.message);
    }

    #[tokio::test]
    async fn a_store_of_another_cloud_is_bad_input() {
        let e = read_state_store("gs://bucket", Path::new("."), "x", &model::Aws::default())
            .await
            .unwrap_err();
        assert_eq!(e.kind, Kind::BadInput);
        assert!(e.message.contains("gs://"), "{}", e.message);
    }
}
