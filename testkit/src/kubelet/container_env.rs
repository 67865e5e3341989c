//! The environment of a container as a kubelet makes it: `env`, `envFrom`, references resolved through the API.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Container, EnvVarSource, Pod, Secret};
use kube::api::Api;

/// Resolves all variables. `Err` is the message of a `CreateContainerConfigError`.
pub(super) async fn resolve(
    client: &kube::Client,
    pod: &Pod,
    container: &Container,
    pod_ip: &str,
) -> Result<BTreeMap<String, String>, String> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or("default");
    let reader = Reader {
        config_maps: Api::namespaced(client.clone(), namespace),
        secrets: Api::namespaced(client.clone(), namespace),
    };
    let mut env = BTreeMap::new();
    for source in container.env_from.iter().flatten() {
        let prefix = source.prefix.as_deref().unwrap_or_default();
        let data = if let Some(reference) = &source.config_map_ref {
            reader
                .config_map(&reference.name, reference.optional)
                .await?
        } else if let Some(reference) = &source.secret_ref {
            reader.secret(&reference.name, reference.optional).await?
        } else {
            BTreeMap::new()
        };
        env.extend(
            data.into_iter()
                .map(|(key, value)| (format!("{prefix}{key}"), value)),
        );
    }
    for variable in container.env.iter().flatten() {
        let value = match (&variable.value, &variable.value_from) {
            (Some(value), _) => Some(expand(value, &env)),
            (None, Some(source)) => reader.value_from(pod, pod_ip, source).await?,
            (None, None) => Some(String::new()),
        };
        if let Some(value) = value {
            env.insert(variable.name.clone(), value);
        }
    }
    Ok(env)
}

struct Reader {
    config_maps: Api<ConfigMap>,
    secrets: Api<Secret>,
}

impl Reader {
    async fn config_map(
        &self,
        name: &str,
        optional: Option<bool>,
    ) -> Result<BTreeMap<String, String>, String> {
        match self.config_maps.get_opt(name).await {
            Ok(Some(found)) => Ok(found.data.unwrap_or_default()),
            Ok(None) if optional == Some(true) => Ok(BTreeMap::new()),
            Ok(None) => Err(format!("configmap \"{name}\" not found")),
            Err(error) => Err(format!("configmap \"{name}\": {error}")),
        }
    }

    async fn secret(
        &self,
        name: &str,
        optional: Option<bool>,
    ) -> Result<BTreeMap<String, String>, String> {
        match self.secrets.get_opt(name).await {
            Ok(Some(found)) => found
                .data
                .unwrap_or_default()
                .into_iter()
                .map(|(key, value)| match String::from_utf8(value.0) {
                    Ok(value) => Ok((key, value)),
                    Err(_) => Err(format!("secret \"{name}\": key {key} is not text")),
                })
                .collect(),
            Ok(None) if optional == Some(true) => Ok(BTreeMap::new()),
            Ok(None) => Err(format!("secret \"{name}\" not found")),
            Err(error) => Err(format!("secret \"{name}\": {error}")),
        }
    }

    async fn value_from(
        &self,
        pod: &Pod,
        pod_ip: &str,
        source: &EnvVarSource,
    ) -> Result<Option<String>, String> {
        if let Some(key) = &source.config_map_key_ref {
            let data = self.config_map(&key.name, key.optional).await?;
            return pick(data, &key.key, key.optional, || {
                format!("ConfigMap {}", key.name)
            });
        }
        if let Some(key) = &source.secret_key_ref {
            let data = self.secret(&key.name, key.optional).await?;
            return pick(data, &key.key, key.optional, || {
                format!("Secret {}", key.name)
            });
        }
        if let Some(field) = &source.field_ref {
            return Ok(Some(downward(pod, pod_ip, &field.field_path)?));
        }
        Ok(Some(String::new()))
    }
}

fn pick(
    mut data: BTreeMap<String, String>,
    key: &str,
    optional: Option<bool>,
    holder: impl Fn() -> String,
) -> Result<Option<String>, String> {
    match data.remove(key) {
        Some(value) => Ok(Some(value)),
        None if optional == Some(true) => Ok(None),
        None => Err(format!("couldn't find key {key} in {}", holder())),
    }
}

fn downward(pod: &Pod, pod_ip: &str, path: &str) -> Result<String, String> {
    let spec = pod.spec.as_ref();
    Ok(match path {
        "metadata.name" => pod.metadata.name.clone().unwrap_or_default(),
        "metadata.namespace" => pod.metadata.namespace.clone().unwrap_or_default(),
        "metadata.uid" => pod.metadata.uid.clone().unwrap_or_default(),
        "spec.nodeName" => spec
            .and_then(|spec| spec.node_name.clone())
            .unwrap_or_default(),
        "spec.serviceAccountName" => spec
            .and_then(|spec| spec.service_account_name.clone())
            .unwrap_or_default(),
        "status.podIP" => pod_ip.to_owned(),
        other => {
            return Err(format!(
                "fieldRef {other} is not known to the process kubelet"
            ));
        }
    })
}

/// `$(NAME)` becomes the variable's value when it is defined before; `$$` is a dollar sign.
pub(super) fn expand(text: &str, env: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix("$$") {
            out.push('$');
            rest = after;
        } else if let Some((name, after)) = rest
            .strip_prefix("$(")
            .and_then(|inner| inner.split_once(')'))
        {
            match env.get(name) {
                Some(value) => out.push_str(value),
                None => out.push_str(&format!("$({name})")),
            }
            rest = after;
        } else {
            out.push('$');
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_built_from_others_is_expanded_as_kubernetes_does() {
        let env = BTreeMap::from([("HOST".to_owned(), "10.20.0.5".to_owned())]);
        assert_eq!(expand("tcp://$(HOST):5432", &env), "tcp://10.20.0.5:5432");
        assert_eq!(expand("$(NOPE) $$(HOST) 5$", &env), "$(NOPE) $(HOST) 5$");
    }

    #[test]
    fn a_missing_key_is_an_error_unless_it_is_optional() {
        let data = || BTreeMap::from([("a".to_owned(), "1".to_owned())]);
        assert_eq!(
            pick(data(), "a", None, || "ConfigMap x".to_owned()),
            Ok(Some("1".to_owned()))
        );
        assert_eq!(
            pick(data(), "b", Some(true), || "ConfigMap x".to_owned()),
            Ok(None)
        );
        let error = pick(data(), "b", None, || "ConfigMap x".to_owned()).unwrap_err();
        assert_eq!(error, "couldn't find key b in ConfigMap x");
    }
}
