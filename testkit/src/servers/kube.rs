//! A control plane of one age: the API server with an audit log, its controller manager and scheduler. `bench.md` 3

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use base64::Engine;
use kube::config::{KubeConfigOptions, Kubeconfig};

use super::etcd::Etcd;
use super::paths;
use super::pki::{TestCa, signing_key};
use super::ports::Port;
use super::process::{Process, Stop};
use crate::error::{Context, Error, Result};

/// Which of the two clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The old kops cluster.
    Blue,
    /// The new EKS cluster.
    Green,
}

impl Side {
    /// `blue` or `green`.
    pub fn name(self) -> &'static str {
        match self {
            Side::Blue => "blue",
            Side::Green => "green",
        }
    }

    /// The folder of its servers in the cache.
    pub fn server(self) -> &'static str {
        match self {
            Side::Blue => "kube-1.21",
            Side::Green => "kube-1.36",
        }
    }

    /// What the company calls the cluster; also the context's name in its kubeconfig.
    pub fn cluster(self) -> &'static str {
        match self {
            Side::Blue => "shop.test",
            Side::Green => "shop-green",
        }
    }

    /// Range of cluster IPs, with its first address: kops gives blue this range. `bench.md` 3
    fn services(self) -> (&'static str, IpAddr) {
        match self {
            Side::Blue => ("100.64.0.0/13", IpAddr::from([100, 64, 0, 1])),
            Side::Green => ("10.100.0.0/16", IpAddr::from([10, 100, 0, 1])),
        }
    }
}

/// Writes are logged with their bodies, except those that hold secrets. Reads (but the migrating person's, whose every
/// request counts), leases, events and the simulated nodes' heartbeats are noise for the question "who changed blue?".
const AUDIT_POLICY: &str = r#"apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [get, list, watch]
  users: ["operator@shop.test"]
- level: None
  verbs: [get, list, watch]
- level: None
  users: ["bench:kwok"]
- level: None
  resources:
  - group: coordination.k8s.io
    resources: [leases]
  - group: ""
    resources: [events]
  - group: events.k8s.io
    resources: [events]
- level: Metadata
  resources:
  - group: ""
    resources: [secrets, serviceaccounts/token]
  - group: authentication.k8s.io
- level: Request
"#;

/// Who may do what on a bench cluster; each has its own token so that the audit log tells them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// The bench itself (loading, looking): `system:masters`.
    Bench,
    /// The process kubelet: the pods that are real programs.
    Kubelet,
    /// The load balancers' controller, which writes the status of Services and Ingresses.
    LoadBalancers,
    /// EC2 instances that register themselves as nodes.
    Nodes,
    /// KWOK.
    Kwok,
    /// The person who migrates: an ordinary user, bound to cluster-admin on blue by the fixture.
    /// Not in `system:masters`, since those are exempt from flow control. `bench.md` 5
    Operator,
    /// The controller manager and the scheduler.
    ControllerManager,
    Scheduler,
}

impl User {
    const ALL: [User; 8] = [
        User::Bench,
        User::Nodes,
        User::Kubelet,
        User::LoadBalancers,
        User::Kwok,
        User::Operator,
        User::ControllerManager,
        User::Scheduler,
    ];

    /// The name in the audit log.
    pub fn name(self) -> &'static str {
        match self {
            User::Bench => "bench:admin",
            User::Kubelet => "bench:kubelet",
            User::LoadBalancers => "bench:load-balancers",
            User::Nodes => "bench:nodes",
            User::Kwok => "bench:kwok",
            User::Operator => "operator@shop.test",
            User::ControllerManager => "system:kube-controller-manager",
            User::Scheduler => "system:kube-scheduler",
        }
    }

    fn group(self) -> &'static str {
        match self {
            User::Bench | User::Kubelet | User::LoadBalancers | User::Nodes | User::Kwok => {
                "system:masters"
            }
            User::Operator => "shop:operators",
            User::ControllerManager | User::Scheduler => "bench:controllers",
        }
    }

    fn file(self) -> &'static str {
        match self {
            User::Bench => "bench",
            User::Kubelet => "kubelet",
            User::LoadBalancers => "load-balancers",
            User::Nodes => "nodes",
            User::Kwok => "kwok",
            User::Operator => "operator",
            User::ControllerManager => "controller-manager",
            User::Scheduler => "scheduler",
        }
    }
}

/// What a control plane needs to start.
pub struct Options<'a> {
    pub side: Side,
    /// The bench's folder; the control plane makes its own inside.
    pub dir: &'a Path,
    pub etcd: &'a Etcd,
    /// Chosen before the start, since the strict layer hands green's address out.
    pub port: Port,
    pub ca: TestCa,
    /// kubeconfig of a token webhook, when tokens of people are checked by one (green).
    pub token_webhook: Option<PathBuf>,
}

/// A running control plane.
pub struct ControlPlane {
    side: Side,
    dir: PathBuf,
    url: String,
    ca: TestCa,
    etcd: String,
    token_webhook: Option<PathBuf>,
    /// How often it was emptied: each time has its own prefix in etcd.
    generation: u32,
    // Dropped in this order: the controllers first, so that none complains about a missing API server.
    processes: Option<Processes>,
    port: Port,
    controller_ports: [Port; 2],
}

struct Processes {
    controllers: Vec<Process>,
    server: Process,
}

/// The group that stands for an EKS access policy of a cluster's admin: an ordinary group with all rights, since
/// `system:masters` passes flow control by. `bench.md` 5
pub const CLUSTER_ADMINS: &str = "bench:cluster-admins";

impl ControlPlane {
    /// Starts the API server, waits until it is ready, then starts the controllers.
    pub async fn start(options: Options<'_>) -> Result<Self> {
        let side = options.side;
        let dir = options.dir.join(side.name());
        let write = |name: &str, text: &str| -> Result<PathBuf> {
            let path = dir.join(name);
            std::fs::write(&path, text)
                .context(|| format!("could not write {}", path.display()))?;
            Ok(path)
        };
        std::fs::create_dir_all(dir.join("certs"))
            .context(|| format!("could not make {}", dir.display()))?;

        let (_, first) = side.services();
        let (cert, key) = options.ca.issue(
            &[
                "kubernetes",
                "kubernetes.default",
                "kubernetes.default.svc",
                "localhost",
            ],
            &[IpAddr::from([127, 0, 0, 1]), first],
        )?;
        write("certs/server.crt", &cert)?;
        write("certs/server.key", &key)?;
        write("certs/ca.crt", options.ca.pem())?;
        let (sa_private, sa_public) = signing_key()?;
        write("certs/sa.key", &sa_private)?;
        write("certs/sa.pub", &sa_public)?;
        write("audit-policy.yaml", AUDIT_POLICY)?;

        let url = url_of(&options.port);
        let mut tokens = String::new();
        for user in User::ALL {
            let token = random_token()?;
            tokens.push_str(&format!("{token},{0},{0},{1}\n", user.name(), user.group()));
            write(
                &format!("{}.kubeconfig", user.file()),
                &kubeconfig(side.cluster(), &url, options.ca.pem(), user.name(), &token),
            )?;
        }
        write("tokens.csv", &tokens)?;
        let mut plane = ControlPlane {
            side,
            dir,
            url,
            ca: options.ca,
            etcd: options.etcd.url().to_owned(),
            token_webhook: options.token_webhook,
            generation: 0,
            processes: None,
            port: options.port,
            controller_ports: [Port::reserve()?, Port::reserve()?],
        };
        plane.launch().await?;
        Ok(plane)
    }

    /// Ends its processes and starts them again on an empty store, under the same address, certificates and tokens: a
    /// cluster that has never seen an object, as a measurement wants it. The audit log begins anew.
    pub async fn restart_empty(&mut self) -> Result<()> {
        self.processes = None;
        self.generation += 1;
        let log = self.audit_log();
        if log.exists() {
            std::fs::rename(
                &log,
                self.dir.join(format!("audit-{}.log", self.generation)),
            )
            .context(|| format!("could not put {} aside", log.display()))?;
        }
        self.launch().await
    }

    async fn launch(&mut self) -> Result<()> {
        let (side, dir) = (self.side, &self.dir);
        let file = |name: &str| dir.join(name).display().to_string();
        let prefix = match self.generation {
            0 => side.name().to_owned(),
            n => format!("{}-{n}", side.name()),
        };
        let mut command = Command::new(paths::binary(side.server(), "kube-apiserver")?);
        command
            .arg(format!("--etcd-servers={}", self.etcd))
            .arg(format!("--etcd-prefix=/{prefix}"))
            .arg(format!("--secure-port={}", self.port.number()))
            .args(["--bind-address=127.0.0.1", "--advertise-address=127.0.0.1"])
            // The address of the only server is a loopback one, which Endpoints may not hold.
            .arg("--endpoint-reconciler-type=none")
            .arg(format!("--cert-dir={}", file("certs")))
            .arg(format!("--tls-cert-file={}", file("certs/server.crt")))
            .arg(format!(
                "--tls-private-key-file={}",
                file("certs/server.key")
            ))
            .arg(format!("--client-ca-file={}", file("certs/ca.crt")))
            .arg(format!("--service-cluster-ip-range={}", side.services().0))
            .arg("--service-account-issuer=https://kubernetes.default.svc")
            .arg(format!(
                "--service-account-key-file={}",
                file("certs/sa.pub")
            ))
            .arg(format!(
                "--service-account-signing-key-file={}",
                file("certs/sa.key")
            ))
            .arg(format!("--token-auth-file={}", file("tokens.csv")))
            .arg("--authorization-mode=RBAC")
            .arg(format!("--audit-policy-file={}", file("audit-policy.yaml")))
            .arg(format!("--audit-log-path={}", file("audit.log")))
            .arg("--allow-privileged=true");
        if let Some(webhook) = &self.token_webhook {
            command
                .arg(format!(
                    "--authentication-token-webhook-config-file={}",
                    webhook.display()
                ))
                .arg("--authentication-token-webhook-version=v1")
                // An access entry that goes must stop working soon, not after two minutes.
                .arg("--authentication-token-webhook-cache-ttl=1s");
        }
        let mut server = Process::spawn(
            &format!("{}'s kube-apiserver", side.name()),
            command,
            &dir.join("kube-apiserver.log"),
            Stop::Kill,
        )?;
        let client = client(&dir.join("bench.kubeconfig")).await?;
        server
            .wait_until(Duration::from_secs(60), || async {
                let Ok(request) = http::Request::get("/readyz").body(Vec::new()) else {
                    return false;
                };
                client.request_text(request).await.is_ok()
            })
            .await?;
        if side == Side::Green {
            bind_cluster_admins(&client).await?;
        }

        let ports = &self.controller_ports;
        let mut manager = Command::new(paths::binary(side.server(), "kube-controller-manager")?);
        manager
            .arg(format!(
                "--kubeconfig={}",
                file("controller-manager.kubeconfig")
            ))
            .arg("--controllers=*,-nodeipam,-cloud-node-lifecycle")
            .args(["--leader-elect=false", "--bind-address=127.0.0.1"])
            .arg(format!("--secure-port={}", ports[0].number()))
            .arg(format!("--cert-dir={}", file("certs")))
            .arg(format!(
                "--service-account-private-key-file={}",
                file("certs/sa.key")
            ))
            .arg(format!("--root-ca-file={}", file("certs/ca.crt")))
            // Each controller under its own service account, as on a real cluster: the audit log names it.
            .args([
                "--use-service-account-credentials=true",
                "--kube-api-qps=200",
                "--kube-api-burst=400",
            ]);
        let mut scheduler = Command::new(paths::binary(side.server(), "kube-scheduler")?);
        scheduler
            .arg(format!("--kubeconfig={}", file("scheduler.kubeconfig")))
            .args(["--leader-elect=false", "--bind-address=127.0.0.1"])
            .arg(format!("--secure-port={}", ports[1].number()))
            .arg(format!("--cert-dir={}", file("certs")));
        if side == Side::Blue {
            // Old servers still open an insecure port, always the same one, unless told not to.
            manager.arg("--port=0");
            scheduler.arg("--port=0");
        }
        let controllers = vec![
            Process::spawn(
                &format!("{}'s kube-controller-manager", side.name()),
                manager,
                &dir.join("kube-controller-manager.log"),
                Stop::Kill,
            )?,
            Process::spawn(
                &format!("{}'s kube-scheduler", side.name()),
                scheduler,
                &dir.join("kube-scheduler.log"),
                Stop::Kill,
            )?,
        ];
        self.processes = Some(Processes {
            controllers,
            server,
        });
        Ok(())
    }

    /// Blue or green.
    pub fn side(&self) -> Side {
        self.side
    }

    /// `https://127.0.0.1:PORT`
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The certificate authority that signed the server's certificate.
    pub fn ca_pem(&self) -> &str {
        self.ca.pem()
    }

    /// The kubeconfig of a user.
    pub fn kubeconfig(&self, user: User) -> PathBuf {
        self.dir.join(format!("{}.kubeconfig", user.file()))
    }

    /// The audit log (JSON lines, writes only).
    pub fn audit_log(&self) -> PathBuf {
        self.dir.join("audit.log")
    }

    /// A client with the bench's own rights.
    pub async fn client(&self) -> Result<kube::Client> {
        client(&self.kubeconfig(User::Bench)).await
    }

    /// An error with the end of the log if one of the servers has ended.
    pub fn check_alive(&mut self) -> Result<()> {
        let Some(processes) = &mut self.processes else {
            return Err(Error::new(format!(
                "{}'s servers did not start again",
                self.side.name()
            )));
        };
        processes.server.check_alive()?;
        processes
            .controllers
            .iter_mut()
            .try_for_each(Process::check_alive)
    }

    /// The process id of the API server.
    pub fn server_pid(&self) -> Option<u32> {
        Some(self.processes.as_ref()?.server.pid())
    }
}

/// Gives [`CLUSTER_ADMINS`] all rights. Marked as one of the server's own defaults, since on EKS nothing in the cluster shows
/// what an access policy grants.
async fn bind_cluster_admins(client: &kube::Client) -> Result<()> {
    let doing = || "could not bind green's cluster admins".to_owned();
    let binding = serde_json::json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "system:bench-cluster-admins", "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": CLUSTER_ADMINS}],
    });
    let request = http::Request::post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings")
        .header("content-type", "application/json")
        .body(binding.to_string().into_bytes())
        .map_err(|e| Error::new(format!("{}: {e}", doing())))?;
    client.request_text(request).await.context(doing)?;
    Ok(())
}

/// The address a control plane will have on this port.
pub fn url_of(port: &Port) -> String {
    format!("https://127.0.0.1:{}", port.number())
}

/// A client for a kubeconfig file.
pub async fn client(kubeconfig: &Path) -> Result<kube::Client> {
    let doing = || format!("could not use {}", kubeconfig.display());
    let file = Kubeconfig::read_from(kubeconfig).context(doing)?;
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
        .await
        .context(doing)?;
    kube::Client::try_from(config).context(doing)
}

/// A kubeconfig with one context, named like the cluster (as kops and EKS write them).
fn kubeconfig(cluster: &str, url: &str, ca_pem: &str, user: &str, token: &str) -> String {
    let ca = base64::engine::general_purpose::STANDARD.encode(ca_pem);
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: {cluster}\nclusters:\n- name: {cluster}\n  cluster:\n    server: {url}\n    \
         certificate-authority-data: {ca}\nusers:\n- name: {user:?}\n  user:\n    token: {token}\ncontexts:\n- name: {cluster}\n  \
         context:\n    cluster: {cluster}\n    user: {user:?}\n"
    )
}

/// 32 hexadecimal digits from the system's source of randomness.
fn random_token() -> Result<String> {
    use std::io::Read;
    let mut bytes = [0u8; 16];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|error| Error::new(format!("could not read /dev/urandom: {error}")))?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}
