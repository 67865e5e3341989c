//! The kops state store: `s3://bucket/prefix` or a folder. Reads what describes the cluster. Of keys, secrets and backups
//! (`pki/`, `secrets/`, `backups/`) only the names are listed, nothing is fetched (kops.md 1.1).

use super::aws::{self, AwsBase};
use crate::error::{Error, Kind, Result};
use crate::snapshot::kops::layout::{
    self, CHANNEL, CLOSED, CLOSED_MAX, COMPLETED, CONFIG, EXTRA, Folder, GROUPS, Text, VERSION,
};
use crate::snapshot::model::{Kops, NotChecked};
use crate::spec::model;
use std::path::{Path, PathBuf};

/// Where a store is.
enum Store {
    Folder {
        /// The folder.
        root: PathBuf,
        /// As the user wrote it: a snapshot does not depend on where it was made.
        shown: String,
    },
    S3 {
        client: aws_sdk_s3::Client,
        bucket: String,
        prefix: String,
    },
}

/// Reads `<store>/<cluster>/`. `location` is `s3://bucket[/prefix]`, or a folder relative to `base`. The name of a cluster may
/// hold slashes: kops takes the whole way to `config` for it.
pub async fn read_state_store(
    location: &str,
    base: &Path,
    cluster: &str,
    aws: &model::Aws,
) -> Result<Kops> {
    let store = open(location, base, aws).await?;
    let mut folder = documents(&store, cluster).await?;
    let rest = match elsewhere(&store, cluster, &folder) {
        None => rest(&store, cluster).await,
        Some(other) => match open(&other, base, aws).await {
            Ok(store) => rest(&store, "").await,
            Err(e) => Folder {
                not_read: vec![gap("kops.config-base", &e)],
                ..Folder::default()
            },
        },
    };
    folder.texts.extend(rest.texts);
    folder.closed = rest.closed;
    folder.not_read = rest.not_read;
    layout::assemble(folder)
}

fn gap(what: &str, e: &Error) -> NotChecked {
    NotChecked {
        what: what.into(),
        why: format!("{}: {}", e.at, e.message),
    }
}

/// `config` and the groups: kops always keeps them in the store itself.
async fn documents(store: &Store, cluster: &str) -> Result<Folder> {
    let mut folder = Folder {
        name: cluster.trim_matches('/').into(),
        ..Folder::default()
    };
    let key = joined(cluster, CONFIG);
    let Some(text) = store.get(&key).await? else {
        let place = store.place(&key);
        let names = clusters(store).await;
        let remedy = match names.as_slice() {
            [] => "check blue.cluster and blue.stateStore; `kops get clusters --state ...` lists the names".into(),
            names => format!("set blue.cluster to one that is there: {}", names.join(", ")),
        };
        return Err(Error::new(
            Kind::BadInput,
            format!("the state store has no cluster `{cluster}`: there is no {place}"),
        )
        .at(place)
        .remedy(remedy));
    };
    let place = store.place(&key);
    folder.texts.insert(CONFIG.into(), Text { text, place });
    let below = joined(cluster, GROUPS);
    for key in store.list(&below).await? {
        if let Some(text) = store.get(&key).await?
            && let Some(name) = key.strip_prefix(&below)
        {
            let place = store.place(&key);
            folder
                .texts
                .insert(format!("{GROUPS}{name}"), Text { text, place });
        }
    }
    Ok(folder)
}

/// Clusters at the top of the store and one level below, for an error.
async fn clusters(store: &Store) -> Vec<String> {
    let mut out = vec![];
    let mut todo: Vec<(String, u32)> = vec![(String::new(), 0)];
    while let Some((at, depth)) = todo.pop() {
        // Only words for an error: what cannot be listed is left out.
        let names = store.folders(&at).await.unwrap_or_default();
        for name in names.into_iter().take(20) {
            let path = joined(&at, &name);
            let keys = store.list(&format!("{path}/")).await.unwrap_or_default();
            if keys.contains(&joined(&path, CONFIG)) {
                out.push(path);
            } else if depth == 0 {
                todo.push((path, 1));
            }
        }
    }
    out.sort();
    out
}

/// `configBase`, when kops keeps what it makes somewhere else than beside `config`. A folder is a copy of a whole store: there
/// everything lies together, whatever the spec says.
fn elsewhere(store: &Store, cluster: &str, folder: &Folder) -> Option<String> {
    let Store::S3 { bucket, prefix, .. } = store else {
        return None;
    };
    let config = folder.texts.get(CONFIG)?;
    let (doc, _) = crate::yaml::manifests(&config.text, &config.place)
        .into_iter()
        .next()?
        .ok()?;
    let base = doc
        .pointer("/spec/configBase")
        .or(doc.pointer("/spec/configStore/base"))?
        .as_str()?
        .trim_end_matches('/');
    let usual = format!(
        "s3://{bucket}/{}",
        joined(prefix, cluster.trim_matches('/'))
    );
    (!base.is_empty() && base != usual).then(|| base.to_string())
}

/// What kops itself makes. Each part that cannot be read is a gap: a plan is still possible, with defaults.
async fn rest(store: &Store, cluster: &str) -> Folder {
    let mut folder = Folder::default();
    for name in [COMPLETED[0], COMPLETED[1], VERSION, CHANNEL, EXTRA] {
        let key = joined(cluster, name);
        match store.get(&key).await {
            Ok(Some(text)) => {
                let place = store.place(&key);
                folder.texts.insert(name.into(), Text { text, place });
            }
            Ok(None) => {}
            Err(e) => folder.not_read.push(gap(&format!("kops.{name}"), &e)),
        }
    }
    for closed in CLOSED {
        match store.names(&joined(cluster, closed)).await {
            Ok(names) => folder
                .closed
                .extend(names.into_iter().map(|n| format!("{closed}{n}"))),
            Err(e) => folder
                .not_read
                .push(gap(&format!("kops.{}", closed.trim_end_matches('/')), &e)),
        }
    }
    folder
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
    Ok(Store::Folder {
        root: folder,
        shown: location
            .trim_start_matches("file://")
            .trim_end_matches('/')
            .into(),
    })
}

impl Store {
    fn place(&self, key: &str) -> String {
        match self {
            Store::Folder { shown, .. } => joined(shown, key),
            Store::S3 { bucket, prefix, .. } => format!("s3://{bucket}/{}", joined(prefix, key)),
        }
    }

    async fn get(&self, key: &str) -> Result<Option<String>> {
        match self {
            Store::Folder { root, .. } => match std::fs::read_to_string(root.join(key)) {
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
            Store::Folder { root, .. } => {
                let entries = match std::fs::read_dir(root.join(below)) {
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

    /// Names of the folders directly below a folder.
    async fn folders(&self, below: &str) -> Result<Vec<String>> {
        let mut out = vec![];
        match self {
            Store::Folder { root, .. } => {
                let entries = std::fs::read_dir(root.join(below))
                    .map_err(|e| Error::new(Kind::BadInput, e.to_string()).at(self.place(below)))?;
                for entry in entries.flatten().filter(|e| e.path().is_dir()) {
                    out.push(entry.file_name().to_string_lossy().to_string());
                }
            }
            Store::S3 {
                client,
                bucket,
                prefix,
            } => {
                let mut full = joined(prefix, below);
                if !full.is_empty() && !full.ends_with('/') {
                    full.push('/');
                }
                let page = client
                    .list_objects_v2()
                    .bucket(bucket)
                    .prefix(&full)
                    .delimiter("/")
                    .send()
                    .await
                    .map_err(|e| aws::error(&self.place(below), e))?;
                for found in page.common_prefixes() {
                    let name = found.prefix().and_then(|p| p.strip_prefix(&full));
                    out.extend(name.map(|n| n.trim_end_matches('/').to_string()));
                }
            }
        }
        out.sort();
        Ok(out)
    }

    /// Names of all keys below a prefix that ends in `/`, at most [`CLOSED_MAX`]: one request, and nothing is opened.
    async fn names(&self, below: &str) -> Result<Vec<String>> {
        let mut out = vec![];
        match self {
            Store::Folder { root, .. } => {
                let top = root.join(below);
                let mut todo = vec![top.clone()];
                while let Some(dir) = todo.pop() {
                    let entries = match std::fs::read_dir(&dir) {
                        Ok(e) => e,
                        Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
                        Err(e) => {
                            return Err(
                                Error::new(Kind::BadInput, e.to_string()).at(self.place(below))
                            );
                        }
                    };
                    for path in entries.flatten().map(|e| e.path()) {
                        if path.is_dir() {
                            todo.push(path);
                        } else if let Ok(name) = path.strip_prefix(&top) {
                            out.push(name.to_string_lossy().to_string());
                        }
                    }
                }
            }
            Store::S3 {
                client,
                bucket,
                prefix,
            } => {
                let full = joined(prefix, below);
                let page = client
                    .list_objects_v2()
                    .bucket(bucket)
                    .prefix(&full)
                    .send()
                    .await
                    .map_err(|e| aws::error(&self.place(below), e))?;
                for object in page.contents() {
                    let name = object.key().and_then(|k| k.strip_prefix(&full));
                    out.extend(name.filter(|n| !n.is_empty()).map(String::from));
                }
            }
        }
        out.sort();
        out.truncate(CLOSED_MAX);
        Ok(out)
    }
}

fn joined(prefix: &str, key: &str) -> String {
    let prefix = prefix.trim_end_matches('/');
    if prefix.is_empty() {
        key.into()
    } else {
        format!("{prefix}/{key}")
    }
}

#[cfg(test)]
#[path = "state_store_tests.rs"]
mod tests;
