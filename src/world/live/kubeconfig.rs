//! Blue's kubeconfig: the file and the context that the spec names, and nothing from the environment.

use crate::error::{Error, Kind, Result};
use kube::config::{KubeConfigOptions, Kubeconfig};
use std::path::Path;
use std::time::Duration;

/// Time to connect, then to hear something. A server that says nothing for this long (its own limit is 60 s) has lost the answer.
const CONNECT: Duration = Duration::from_secs(10);
const SILENCE: Duration = Duration::from_secs(75);

/// Reads the file and proves that the context is in it. No network.
pub(super) fn read(path: &Path, context: &str) -> Result<Kubeconfig> {
    let place = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|e| {
        Error::new(
            Kind::BadInput,
            format!("cannot read the kubeconfig of blue: {e}"),
        )
        .at(&place)
        .remedy("set blue.kubeconfig to the file that `kops export kubeconfig` wrote")
    })?;
    let mut config = Kubeconfig::from_yaml(&text).map_err(|e| {
        Error::new(
            Kind::BadInput,
            format!("this is no kubeconfig: {}", super::kube_error::chain(&e)),
        )
        .at(&place)
    })?;
    let names: Vec<&str> = config.contexts.iter().map(|c| c.name.as_str()).collect();
    if !names.contains(&context) {
        let known = if names.is_empty() {
            "none".to_string()
        } else {
            names.join(", ")
        };
        return Err(Error::new(
            Kind::BadInput,
            format!("there is no context `{context}`; the file has: {known}"),
        )
        .at(&place)
        .remedy("set blue.context to one of them"));
    }
    resolve_paths(&mut config, path.parent().unwrap_or(Path::new(".")));
    Ok(config)
}

/// File names inside a kubeconfig are relative to it; `Kubeconfig::from_yaml` does not know where it came from.
fn resolve_paths(config: &mut Kubeconfig, folder: &Path) {
    let fix = |p: &mut Option<String>| {
        if let Some(p) = p
            .as_mut()
            .filter(|p| Path::new(p).is_relative() && !p.is_empty())
        {
            *p = folder.join(&*p).display().to_string();
        }
    };
    for c in config
        .clusters
        .iter_mut()
        .filter_map(|c| c.cluster.as_mut())
    {
        fix(&mut c.certificate_authority);
    }
    for a in config
        .auth_infos
        .iter_mut()
        .filter_map(|a| a.auth_info.as_mut())
    {
        fix(&mut a.client_certificate);
        fix(&mut a.client_key);
        fix(&mut a.token_file);
    }
}

/// The connection settings of a context.
pub(super) async fn config(path: &Path, context: &str) -> Result<kube::Config> {
    let file = read(path, context)?;
    let options = KubeConfigOptions {
        context: Some(context.into()),
        ..Default::default()
    };
    let proxy = declared_proxy(&file, context);
    let mut config = kube::Config::from_custom_kubeconfig(file, &options)
        .await
        .map_err(|e| {
            Error::new(
                Kind::BadInput,
                format!(
                    "context `{context}` is not usable: {}",
                    super::kube_error::chain(&e)
                ),
            )
            .at(path.display().to_string())
        })?;
    if config.accept_invalid_certs {
        return Err(Error::new(
            Kind::BadInput,
            format!("context `{context}` does not check the server's certificate, so nothing proves which cluster answers"),
        )
        .at(path.display().to_string())
        .remedy("replace insecure-skip-tls-verify by certificate-authority-data"));
    }
    // kube falls back to HTTPS_PROXY; which way production is reached is decided by the file alone.
    if proxy.is_none() {
        config.proxy_url = None;
    }
    Ok(harden(config))
}

fn declared_proxy(file: &Kubeconfig, context: &str) -> Option<String> {
    let cluster = &file
        .contexts
        .iter()
        .find(|c| c.name == context)?
        .context
        .as_ref()?
        .cluster;
    file.clusters
        .iter()
        .find(|c| &c.name == cluster)?
        .cluster
        .as_ref()?
        .proxy_url
        .clone()
        .filter(|p| !p.is_empty())
}

/// Settings that both sides share: no hidden retries (a 504 on POST may have been applied), bounded silence.
pub(super) fn harden(mut config: kube::Config) -> kube::Config {
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT);
    config.read_timeout = Some(SILENCE);
    config.write_timeout = Some(SILENCE);
    config.reset_reader_on_write = true;
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = r#"
apiVersion: v1
kind: Config
current-context: wrong
clusters:
- name: shop
  cluster: {server: "https://127.0.0.1:6443", certificate-authority: ca.pem}
contexts:
- name: wrong
  context: {cluster: shop, user: admin}
- name: shop.test
  context: {cluster: shop, user: admin}
users:
- name: admin
  user: {token: t}
"#;

    #[test]
    fn a_missing_context_is_bad_input_and_says_which_there_are() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kubeconfig");
        std::fs::write(&path, TWO).unwrap();
        let e = read(&path, "shop.example").unwrap_err();
        assert_eq!(e.kind, Kind::BadInput);
        assert!(e.message.contains("wrong, shop.test"), "{}", e.message);
    }

    #[test]
    fn a_missing_file_is_bad_input_and_names_the_file() {
        let e = read(Path::new("/nonexistent/kubeconfig"), "x").unwrap_err();
        assert_eq!(e.kind, Kind::BadInput);
        assert_eq!(e.at, "/nonexistent/kubeconfig");
    }

    #[test]
    fn files_named_inside_are_relative_to_the_kubeconfig() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kubeconfig");
        std::fs::write(&path, TWO).unwrap();
        let file = read(&path, "shop.test").unwrap();
        let ca = file.clusters[0]
            .cluster
            .as_ref()
            .unwrap()
            .certificate_authority
            .clone()
            .unwrap();
        assert_eq!(ca, dir.path().join("ca.pem").display().to_string());
    }

    #[tokio::test]
    async fn a_context_that_checks_no_certificate_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kubeconfig");
        std::fs::write(
            &path,
            TWO.replace(
                "certificate-authority: ca.pem",
                "insecure-skip-tls-verify: true",
            ),
        )
        .unwrap();
        let e = config(&path, "shop.test").await.unwrap_err();
        assert!(e.message.contains("does not check"), "{}", e.message);
    }
}
