//! What the server serves: kinds in versions, asked once and again for what is missed.

use super::LiveKube;
use crate::object::ObjectId;
use crate::world::kube::ApiKind;
use crate::world::{Class, Error, Result};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::Value;
use std::sync::Arc;

/// Discovery asks for this many group versions at once.
const DISCOVERY_WIDTH: usize = 8;

impl LiveKube {
    /// Discovery of one group version. `None` when the server does not serve it.
    pub(super) async fn group_version(
        &self,
        group: &str,
        version: &str,
    ) -> Result<Option<Vec<ApiKind>>> {
        let path = if group.is_empty() {
            format!("/api/{version}")
        } else {
            format!("/apis/{group}/{version}")
        };
        match self.get_json(&path).await {
            Ok(list) => Ok(Some(parse_resources(group, version, &list))),
            Err(e) if e.class == Class::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    pub(super) async fn discover(&self) -> Result<Vec<ApiKind>> {
        let mut group_versions: Vec<(String, String)> = vec![];
        let core = self.get_json("/api").await?;
        for v in core["versions"].as_array().into_iter().flatten() {
            group_versions.push((String::new(), v.as_str().unwrap_or("v1").into()));
        }
        let groups = self.get_json("/apis").await?;
        for g in groups["groups"].as_array().into_iter().flatten() {
            let name = g["name"].as_str().unwrap_or_default();
            for v in g["versions"].as_array().into_iter().flatten() {
                if let Some(version) = v["version"].as_str() {
                    group_versions.push((name.into(), version.into()));
                }
            }
        }
        let found: Vec<Vec<ApiKind>> = stream::iter(group_versions)
            .map(|(group, version)| async move {
                match self.group_version(&group, &version).await {
                    Ok(kinds) => Ok(kinds.unwrap_or_default()),
                    // An aggregated API whose server is down must not hide the whole cluster. It stays visible as a
                    // kind `*` without verbs, so that discovery can say "not checked" instead of "nothing there".
                    Err(e) if e.class == Class::Unreachable && !group.is_empty() => {
                        tracing::warn!(group, version, error = %e, "this API group does not answer");
                        Ok(vec![ApiKind {
                            group,
                            version,
                            kind: "*".into(),
                            plural: "*".into(),
                            namespaced: false,
                            verbs: vec![],
                        }])
                    }
                    Err(e) => Err(e),
                }
            })
            .buffered(DISCOVERY_WIDTH)
            .try_collect()
            .await?;
        let mut all: Vec<ApiKind> = found.into_iter().flatten().collect();
        all.sort();
        all.dedup();
        Ok(all)
    }

    pub(super) async fn cached_kinds(&self, refresh: bool) -> Result<Arc<Vec<ApiKind>>> {
        if !refresh && let Some(k) = self.kinds.read().ok().and_then(|k| k.clone()) {
            return Ok(k);
        }
        let fresh = Arc::new(self.discover().await?);
        if let Ok(mut k) = self.kinds.write() {
            *k = Some(fresh.clone());
        }
        Ok(fresh)
    }

    /// The served kind of an object. A miss asks the server once more about that one group version, because a CRD may
    /// have been created since discovery.
    pub(super) async fn kind_of(&self, id: &ObjectId) -> Result<Option<ApiKind>> {
        let find = |kinds: &[ApiKind]| {
            kinds
                .iter()
                .find(|k| k.kind == id.kind && k.group == id.group() && k.version == id.version())
                .cloned()
        };
        let known = self.cached_kinds(false).await?;
        if let Some(kind) = find(&known) {
            return Ok(Some(kind));
        }
        let Some(fresh) = self.group_version(id.group(), id.version()).await? else {
            return Ok(None);
        };
        let found = find(&fresh);
        if found.is_some()
            && let Ok(mut k) = self.kinds.write()
        {
            let mut all: Vec<ApiKind> = k
                .as_ref()
                .map(|k| k.to_vec())
                .unwrap_or_default()
                .into_iter()
                .filter(|k| !(k.group == id.group() && k.version == id.version()))
                .collect();
            all.extend(fresh);
            all.sort();
            *k = Some(Arc::new(all));
        }
        Ok(found)
    }

    pub(super) async fn served(&self, id: &ObjectId) -> Result<ApiKind> {
        self.kind_of(id).await?.ok_or_else(|| {
            Error::new(
                Class::NotReady,
                format!("{} {id}", self.side),
                format!(
                    "{} does not serve {} {} (yet)",
                    self.side, id.api_version, id.kind
                ),
            )
            .remedy(
                "wait until its CustomResourceDefinition is Established, or plan another version",
            )
        })
    }
}

/// Kinds of an APIResourceList; subresources (`pods/log`) are not kinds.
fn parse_resources(group: &str, version: &str, list: &Value) -> Vec<ApiKind> {
    list["resources"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|r| {
            let plural = r["name"].as_str()?;
            if plural.contains('/') {
                return None;
            }
            Some(ApiKind {
                // The list's own: that is where the resource is served, whatever group its objects name.
                group: group.into(),
                version: version.into(),
                kind: r["kind"].as_str()?.into(),
                plural: plural.into(),
                namespaced: r["namespaced"].as_bool().unwrap_or(false),
                verbs: r["verbs"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(|v| v.as_str().map(Into::into))
                    .collect(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn subresources_are_not_kinds() {
        let list = json!({"resources": [
            {"name": "pods", "kind": "Pod", "namespaced": true, "verbs": ["list", "create"]},
            {"name": "pods/log", "kind": "Pod", "namespaced": true, "verbs": ["get"]},
        ]});
        let kinds = parse_resources("", "v1", &list);
        assert_eq!(kinds.len(), 1);
        assert_eq!(kinds[0].api_version(), "v1");
        assert_eq!(kinds[0].verbs, ["list", "create"]);
    }
}
