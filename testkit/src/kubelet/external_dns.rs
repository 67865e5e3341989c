//! ExternalDNS as a real child process: the pod's own arguments and service account, AWS through the strict layer.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{Container, Pod, ServiceAccount};
use kube::api::{Api, PostParams};
use serde_json::{Value, json};

use super::Shared;
use super::container_env::expand;
use super::process::Process;
use crate::apps::http::ask;

/// How the pods' AWS calls reach the strict layer.
#[derive(Clone, Debug)]
pub struct AwsEnv {
    /// Plain HTTP endpoint, for clients that honour `AWS_ENDPOINT_URL` (ExternalDNS from 0.15.1 on).
    pub endpoint: String,
    /// HTTP CONNECT proxy that ends TLS for `*.amazonaws.com`, for older ones.
    pub proxy: String,
    /// The test CA of that proxy, PEM.
    pub ca_file: PathBuf,
    /// The region of the fixture.
    pub region: String,
}

/// A running ExternalDNS.
#[derive(Debug)]
pub(super) struct ExternalDns {
    pub process: Process,
    metrics: SocketAddr,
}

/// The access key id with which a side's ExternalDNS signs, so that the call log tells who called.
pub(super) fn access_key(side: &str) -> String {
    format!("EDNS{}", side.to_uppercase())
}

/// Whether this ExternalDNS honours `AWS_ENDPOINT_URL` (bench.md 3: from 0.15.1 on).
fn honours_endpoint(tag: &str) -> bool {
    let mut numbers = tag
        .trim_start_matches('v')
        .split('.')
        .map(|part| part.parse::<u32>().unwrap_or(0));
    let version = [(); 3].map(|()| numbers.next().unwrap_or(0));
    version >= [0, 15, 1]
}

/// The pod's arguments; those that would leave the bench are replaced.
fn arguments(
    container: &Container,
    env: &BTreeMap<String, String>,
    kubeconfig: &Path,
    metrics: SocketAddr,
) -> Vec<String> {
    let command = container.command.iter().flatten().skip(1);
    let given = command.chain(container.args.iter().flatten());
    let replaced = ["--kubeconfig=", "--metrics-address=", "--server="];
    let mut arguments: Vec<String> = given
        .filter(|argument| !replaced.iter().any(|flag| argument.starts_with(flag)))
        .map(|argument| expand(argument, env))
        .collect();
    arguments.push(format!("--kubeconfig={}", kubeconfig.display()));
    arguments.push(format!("--metrics-address={metrics}"));
    arguments
}

impl AwsEnv {
    fn variables(&self, side: &str, tag: &str) -> Vec<(String, String)> {
        let mut variables = vec![
            ("AWS_REGION".to_owned(), self.region.clone()),
            ("AWS_DEFAULT_REGION".to_owned(), self.region.clone()),
            ("AWS_ACCESS_KEY_ID".to_owned(), access_key(side)),
            ("AWS_SECRET_ACCESS_KEY".to_owned(), "bench".to_owned()),
            ("AWS_EC2_METADATA_DISABLED".to_owned(), "true".to_owned()),
        ];
        if honours_endpoint(tag) {
            variables.push(("AWS_ENDPOINT_URL".to_owned(), self.endpoint.clone()));
        } else {
            variables.extend([
                ("HTTPS_PROXY".to_owned(), self.proxy.clone()),
                ("NO_PROXY".to_owned(), "127.0.0.1,localhost".to_owned()),
                (
                    "SSL_CERT_FILE".to_owned(),
                    self.ca_file.display().to_string(),
                ),
            ]);
        }
        variables
    }
}

/// A kubeconfig with a token of the pod's own service account, bound to the pod, so that RBAC counts.
async fn kubeconfig(shared: &Shared, pod: &Pod, path: &Path) -> Result<(), String> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or("default");
    let name = pod.metadata.name.clone().unwrap_or_default();
    let account = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.service_account_name.as_deref())
        .filter(|account| !account.is_empty())
        .unwrap_or("default");
    // As JSON: the type's fields differ between releases of k8s-openapi, the server's contract does not.
    let request: TokenRequest = serde_json::from_value(json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "metadata": {},
        "spec": {
            "audiences": [],
            "expirationSeconds": 24 * 3600,
            "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": pod.metadata.uid},
        },
    }))
    .map_err(|error| format!("token request: {error}"))?;
    let accounts: Api<ServiceAccount> = Api::namespaced(shared.client.clone(), namespace);
    let answer = accounts
        .create_token_request(account, &PostParams::default(), &request)
        .await
        .map_err(|error| format!("token of serviceaccount {namespace}/{account}: {error}"))?;
    let token = answer.status.map(|status| status.token).unwrap_or_default();
    let file = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "bench", "cluster": shared.cluster}],
        "users": [{"name": "pod", "user": {"token": token}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "pod", "namespace": namespace}}],
        "current-context": "bench",
    });
    write(path, &file).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, file: &Value) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, file.to_string())
}

impl ExternalDns {
    /// Starts the binary of `tag` for a pod. `Err` is the message of the container's waiting state.
    pub(super) async fn start(
        shared: &Arc<Shared>,
        pod: &Pod,
        container: &Container,
        tag: &str,
        env: &BTreeMap<String, String>,
    ) -> Result<Self, String> {
        let config = &shared.config;
        let binary = config
            .external_dns
            .get(tag)
            .ok_or_else(|| format!("no ExternalDNS binary for tag {tag}: build it and name it in kubelet::Config.external_dns"))?;
        let namespace = pod.metadata.namespace.as_deref().unwrap_or("default");
        let name = pod.metadata.name.as_deref().unwrap_or("pod");
        let file = |kind: &str| {
            config
                .work_dir
                .join(format!("{}-{namespace}-{name}.{kind}", config.side))
        };
        let kubeconfig_path = file("kubeconfig");
        kubeconfig(shared, pod, &kubeconfig_path).await?;
        let metrics = free_address().map_err(|error| format!("no free port: {error}"))?;
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(file("log"))
            .map_err(|error| format!("{}: {error}", file("log").display()))?;
        let error_log = log.try_clone().map_err(|error| error.to_string())?;
        let mut command = Command::new(binary);
        command
            .args(arguments(container, env, &kubeconfig_path, metrics))
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", &config.work_dir)
            .envs(config.aws.variables(&config.side, tag))
            .envs(env)
            .current_dir(&config.work_dir)
            .stdout(Stdio::from(log))
            .stderr(Stdio::from(error_log));
        let process =
            Process::spawn(command).map_err(|error| format!("{}: {error}", binary.display()))?;
        Ok(ExternalDns { process, metrics })
    }

    /// Whether its own health endpoint answers.
    pub(super) async fn healthy(&self) -> bool {
        let Ok(request) = Request::get("/healthz")
            .header("host", "localhost")
            .body(Full::new(Bytes::new()))
        else {
            return false;
        };
        let answer = tokio::time::timeout(Duration::from_secs(1), ask(self.metrics, request)).await;
        matches!(answer, Ok(Ok(answer)) if answer.status().is_success())
    }
}

fn free_address() -> io::Result<SocketAddr> {
    std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aws() -> AwsEnv {
        AwsEnv {
            endpoint: "http://127.0.0.1:1".to_owned(),
            proxy: "http://127.0.0.1:2".to_owned(),
            ca_file: PathBuf::from("/ca.pem"),
            region: "eu-west-1".to_owned(),
        }
    }

    #[test]
    fn an_external_dns_of_0_10_2_goes_through_the_connect_proxy_and_a_new_one_through_the_endpoint()
    {
        let old: BTreeMap<_, _> = aws().variables("blue", "v0.10.2").into_iter().collect();
        assert_eq!(old["HTTPS_PROXY"], "http://127.0.0.1:2");
        assert_eq!(old["SSL_CERT_FILE"], "/ca.pem");
        assert_eq!(old["NO_PROXY"], "127.0.0.1,localhost");
        assert_eq!(old["AWS_ACCESS_KEY_ID"], "EDNSBLUE");
        assert!(!old.contains_key("AWS_ENDPOINT_URL"));
        // 0.14.2 dies of AWS_CA_BUNDLE (bench.md 3).
        assert!(!old.contains_key("AWS_CA_BUNDLE"));
        let new: BTreeMap<_, _> = aws().variables("green", "v0.21.0").into_iter().collect();
        assert_eq!(new["AWS_ENDPOINT_URL"], "http://127.0.0.1:1");
        assert_eq!(new["AWS_ACCESS_KEY_ID"], "EDNSGREEN");
        assert!(!new.contains_key("HTTPS_PROXY"));
        assert!(
            !honours_endpoint("v0.14.2")
                && !honours_endpoint("v0.15.0")
                && honours_endpoint("v0.15.1")
        );
    }

    #[test]
    fn the_pods_own_arguments_are_kept_and_only_the_addresses_are_the_benchs() {
        let container = Container {
            args: Some(
                [
                    "--policy=sync",
                    "--txt-owner-id=$(OWNER)",
                    "--metrics-address=:7979",
                    "--interval=3s",
                ]
                .map(str::to_owned)
                .to_vec(),
            ),
            ..Container::default()
        };
        let env = BTreeMap::from([("OWNER".to_owned(), "shop-blue".to_owned())]);
        let metrics = SocketAddr::from(([127, 0, 0, 1], 9));
        let arguments = arguments(&container, &env, Path::new("/k"), metrics);
        let expected = [
            "--policy=sync",
            "--txt-owner-id=shop-blue",
            "--interval=3s",
            "--kubeconfig=/k",
            "--metrics-address=127.0.0.1:9",
        ];
        assert_eq!(arguments, expected);
    }
}
