//! Everything together: one call starts a fresh, isolated bench; dropping it leaves nothing behind.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::apps::Observed;
use crate::dns::{Authority, AuthorityConfig, Mode, Resolver};
use crate::error::{Context, Result};
use crate::fixture::{self, Fixture};

use crate::kubelet::{self, AwsEnv, ProcessKubelet};
use crate::lb::{self, LoadBalancers};
use crate::net::BenchNet;
use crate::nodes;
use crate::servers::etcd::Etcd;
use crate::servers::kube::{self, ControlPlane, Side, User};
use crate::servers::kwok::Kwok;
use crate::servers::ministack::{ACCOUNT, MiniStack, REGION};
use crate::servers::paths;
use crate::servers::pki::TestCa;
use crate::servers::ports::Port;
use crate::servers::postgres::{self, Postgres};
use crate::strict::{self, Call, GreenEndpoint, Strict};

const FOLDER_PREFIX: &str = "crossfade-bench-";
/// Holds the process id of the bench that a folder belongs to.
const OWNER: &str = "owner";

/// What a bench is made of.
#[derive(Debug, Clone)]
pub struct BenchOptions {
    /// Put the company "shop" into blue, AWS, DNS and the database.
    pub load_fixture: bool,
    /// With the fixture: also the company's objects in blue, running. Without them blue is an empty cluster of the same
    /// company (its account, state store, nodes, people), for tests that bring objects of their own; load balancers, though
    /// there, do not follow what happens.
    pub load_objects: bool,
    /// How long AWS takes; scaled down from the minutes that it takes.
    pub delays: Delays,
    /// Where its folder is made; the system's temporary folder when absent.
    pub parent_dir: Option<PathBuf>,
}

impl Default for BenchOptions {
    fn default() -> Self {
        BenchOptions {
            load_fixture: true,
            load_objects: true,
            delays: Delays::default(),
            parent_dir: None,
        }
    }
}

/// How long the strict layer takes for what AWS takes minutes for.
#[derive(Debug, Clone, Copy)]
pub struct Delays {
    /// A Route 53 change from PENDING to INSYNC.
    pub insync: Duration,
    /// An EKS cluster from CREATING to ACTIVE.
    pub cluster: Duration,
    /// A node group from CREATING to ACTIVE.
    pub node_group: Duration,
    /// An add-on from CREATING to ACTIVE.
    pub addon: Duration,
}

impl Default for Delays {
    fn default() -> Self {
        Delays {
            insync: Duration::from_millis(300),
            cluster: Duration::from_secs(2),
            node_group: Duration::from_secs(2),
            addon: Duration::from_millis(500),
        }
    }
}

/// Ends a background task with the bench.
struct Task(tokio::task::JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A running bench. All its processes end when it is dropped, also by a panic.
pub struct Bench {
    // Fields are dropped in this order: users of a server before the server, the folder last.
    resolver: Resolver,
    authority: Authority,
    _kubelets: Vec<ProcessKubelet>,
    balancers: Balancers,
    kwok: Vec<Kwok>,
    observed: Observed,
    net: BenchNet,
    databases: Databases,
    _nodes: Task,
    green: ControlPlane,
    blue: ControlPlane,
    strict: Strict,
    ministack: MiniStack,
    etcd: Etcd,
    zone_id: Option<String>,
    ids: fixture::aws::Ids,
    dir: tempfile::TempDir,
}

struct Balancers {
    blue: LoadBalancers,
    green: LoadBalancers,
}

struct Databases {
    blue: Postgres,
    green: Postgres,
}

impl Bench {
    /// Starts everything and waits until it is usable.
    pub async fn start(options: BenchOptions) -> Result<Bench> {
        let started = Instant::now();
        let fixture = Fixture::shop();
        let mut builder = tempfile::Builder::new();
        builder.prefix(FOLDER_PREFIX);
        let dir = match &options.parent_dir {
            Some(parent) => builder.tempdir_in(parent),
            None => builder.tempdir(),
        }
        .context(|| "could not make the bench's folder".into())?;
        let path = dir.path();
        // A killed bench cannot remove its folder; the next one does.
        sweep(
            &options
                .parent_dir
                .clone()
                .unwrap_or_else(std::env::temp_dir),
        );
        std::fs::write(path.join(OWNER), std::process::id().to_string())
            .context(|| format!("could not write into {}", path.display()))?;
        let password = fixture.database_password()?;
        let (etcd, ministack, blue_db, green_db) = tokio::try_join!(
            Etcd::start(path),
            MiniStack::start(path),
            Postgres::start(Side::Blue, path, &password),
            Postgres::start(Side::Green, path, &password),
        )?;
        tracing::info!(
            seconds = started.elapsed().as_secs_f32(),
            "etcd, emulator and databases are up"
        );
        let ca = TestCa::new()?;
        let ca_file = path.join("aws-ca.pem");
        std::fs::write(&ca_file, ca.pem())
            .context(|| format!("could not write {}", ca_file.display()))?;
        let green_port = Port::reserve()?;
        let green_ca = TestCa::new()?;
        let strict = Strict::start(strict::Config {
            upstream: ministack.endpoint().to_owned(),
            account: ACCOUNT.to_owned(),
            region: REGION.to_owned(),
            insync_delay: options.delays.insync,
            cluster_delay: options.delays.cluster,
            nodegroup_delay: options.delays.node_group,
            addon_delay: options.delays.addon,
            green: GreenEndpoint {
                url: kube::url_of(&green_port),
                ca_pem: green_ca.pem().to_owned(),
            },
            ca: ca.clone(),
        })
        .await?;
        let webhook = path.join("token-webhook.kubeconfig");
        std::fs::write(&webhook, strict.webhook_kubeconfig())
            .context(|| format!("could not write {}", webhook.display()))?;
        let (blue, green) = tokio::try_join!(
            ControlPlane::start(kube::Options {
                side: Side::Blue,
                dir: path,
                etcd: &etcd,
                port: Port::reserve()?,
                ca: TestCa::new()?,
                token_webhook: None,
            }),
            ControlPlane::start(kube::Options {
                side: Side::Green,
                dir: path,
                etcd: &etcd,
                port: green_port,
                ca: green_ca,
                token_webhook: Some(webhook),
            })
        )?;
        tracing::info!(
            seconds = started.elapsed().as_secs_f32(),
            "both API servers are ready"
        );
        let net = BenchNet::start()
            .await
            .context(|| "could not start the bench's network".into())?;
        // What the company calls its databases, and where they really are.
        net.register("10.20.0.5:5432", blue_db.address());
        net.register("10.20.0.6:5432", green_db.address());
        let balancers = |plane: &ControlPlane| {
            let side = plane.side();
            let mut config = lb::Config::shop(
                side.name(),
                plane.kubeconfig(User::LoadBalancers),
                net.clone(),
            );
            if !options.load_objects {
                // Listing thousands of Services all the time would be what a measurement measures.
                config.poll = Duration::from_secs(3600);
            }
            async move {
                lb::start(config)
                    .await
                    .context(|| format!("could not start {}'s load balancers", side.name()))
            }
        };
        let balancers = Balancers {
            blue: balancers(&blue).await?,
            green: balancers(&green).await?,
        };
        let observed = Observed::default();
        let images = fixture::PROCESS_IMAGES.map(String::from);
        let mut kubelets = Vec::new();
        let mut kwok = Vec::new();
        for plane in [&blue, &green] {
            let name = plane.side().name();
            kwok.push(Kwok::start(plane, path, &images).await?);
            let config = kubelet::Config {
                side: name.to_owned(),
                kubeconfig: plane.kubeconfig(User::Kubelet),
                net: net.clone(),
                observed: observed.clone(),
                external_dns: external_dns()?,
                aws: AwsEnv {
                    endpoint: strict.endpoint(),
                    proxy: strict.proxy(),
                    ca_file: ca_file.clone(),
                    region: REGION.to_owned(),
                },
                work_dir: path.join(name).join("kubelet"),
            };
            kubelets.push(
                ProcessKubelet::start(config)
                    .await
                    .context(|| format!("could not start {name}'s process kubelet"))?,
            );
        }
        let nodes = Task(nodes::start(&strict, &green.kubeconfig(User::Nodes)));
        let authority = Authority::start(AuthorityConfig::new(&strict.endpoint(), net.clone()))
            .await
            .context(|| "could not start the authoritative DNS server".into())?;
        let resolver = Resolver::start(authority.addr(), Mode::TtlTrue)
            .await
            .context(|| "could not start the resolver".into())?;
        let mut bench = Bench {
            resolver,
            authority,
            _kubelets: kubelets,
            balancers,
            kwok,
            observed,
            net,
            databases: Databases {
                blue: blue_db,
                green: green_db,
            },
            _nodes: nodes,
            green,
            blue,
            strict,
            ministack,
            etcd,
            zone_id: None,
            ids: fixture::aws::Ids::default(),
            dir,
        };
        if options.load_fixture {
            bench.load(&fixture, options.load_objects).await?;
            tracing::info!(
                seconds = started.elapsed().as_secs_f32(),
                "the fixture is loaded"
            );
        }
        Ok(bench)
    }

    async fn load(&mut self, fixture: &Fixture, objects: bool) -> Result<()> {
        let start = Instant::now();
        let told = |what: &str| tracing::debug!(seconds = start.elapsed().as_secs_f32(), "{what}");
        let blue = self.blue.client().await?;
        let sql = format!(
            "{}\n{}",
            fixture.text("sql/schema.sql")?,
            fixture.text("sql/seed.sql")?
        );
        let endpoint = self.aws_endpoint();
        let addons = if objects {
            fixture.addons()?
        } else {
            fixture.yaml("blue/05-access.yaml")?
        };
        let (ids, zone, (), ()) = tokio::try_join!(
            fixture::aws::load(fixture, self.ministack.endpoint()),
            fixture::aws::load_zone(fixture, &endpoint),
            self.databases.blue.execute(&sql),
            fixture::cluster::apply(&blue, &addons),
        )?;
        self.ids = ids;
        self.zone_id = Some(zone);
        told("AWS, zone, database and add-ons are loaded");
        fixture::cluster::create_nodes(&blue, &fixture.yaml("nodes.yaml")?, self.ids.all()).await?;
        if !objects {
            return Ok(());
        }
        fixture::cluster::apply(&blue, &fixture.objects()?).await?;
        told("the company's objects are applied");
        fixture::cluster::wait_ready(
            &blue,
            &["storefront", "orders", "platform"],
            Duration::from_secs(90),
        )
        .await?;
        told("its workloads are ready");
        self.wait_for_names(Duration::from_secs(60)).await?;
        self.authority.refreshed().await;
        told("its names are written");
        Ok(())
    }

    /// Waits until blue's ExternalDNS has written every name with its ownership record.
    async fn wait_for_names(&self, patience: Duration) -> Result<()> {
        let start = Instant::now();
        loop {
            let missing: Vec<&str> = fixture::MANAGED_NAMES
                .into_iter()
                .filter(|name| {
                    let has = |rtype: &str, part: &str| {
                        self.record_sets().iter().any(|set| {
                            set.name == format!("{name}.")
                                && set.rtype == rtype
                                && (part.is_empty() || set.values.iter().any(|v| v.contains(part)))
                        })
                    };
                    !(has("A", "") && has("TXT", "external-dns/owner=shop-blue"))
                })
                .collect();
            if missing.is_empty() {
                return Ok(());
            }
            if start.elapsed() > patience {
                return Err(crate::Error::new(format!(
                    "blue's ExternalDNS has not written {} after {} s: see {}",
                    missing.join(", "),
                    patience.as_secs(),
                    self.dir.path().join("blue/kubelet").display()
                )));
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// The records of the zone `shop.test` as they are now, in Route 53's order; no AWS call is made.
    pub fn record_sets(&self) -> Vec<strict::route53::record::RecordSet> {
        self.strict
            .zones()
            .into_iter()
            .filter(|zone| Some(zone.id.as_str()) == self.zone_id.as_deref())
            .flat_map(|zone| zone.records.into_values())
            .collect()
    }

    /// The bench's folder: logs, kubeconfigs, data. It goes away with the bench.
    pub fn workdir(&self) -> &Path {
        self.dir.path()
    }

    /// A side's control plane.
    pub fn control_plane(&self, side: Side) -> &ControlPlane {
        match side {
            Side::Blue => &self.blue,
            Side::Green => &self.green,
        }
    }

    /// A side's control plane, to restart it.
    pub fn control_plane_mut(&mut self, side: Side) -> &mut ControlPlane {
        match side {
            Side::Blue => &mut self.blue,
            Side::Green => &mut self.green,
        }
    }

    /// The process id of the etcd that both clusters share.
    pub fn etcd_pid(&self) -> u32 {
        self.etcd.pid()
    }

    /// kubeconfig for blue, as the person who migrates (cluster-admin, but not `system:masters`); context `shop.test`.
    pub fn blue_kubeconfig(&self) -> PathBuf {
        self.blue.kubeconfig(User::Operator)
    }

    /// kubeconfig for green with the bench's own rights; the product gets its access from EKS instead.
    pub fn green_kubeconfig(&self) -> PathBuf {
        self.green.kubeconfig(User::Bench)
    }

    /// The value of `AWS_ENDPOINT_URL`.
    pub fn aws_endpoint(&self) -> String {
        self.strict.endpoint()
    }

    /// The strict AWS layer: faults, limits, zones without a call.
    pub fn strict(&self) -> &Strict {
        &self.strict
    }

    /// The HTTP CONNECT proxy of the strict layer, for clients that know no endpoint.
    pub fn aws_proxy(&self) -> String {
        self.strict.proxy()
    }

    /// Every AWS call so far, but those of the bench's own DNS server and of the fixture's loader.
    pub fn calls(&self) -> Vec<Call> {
        let own = ["BENCHDNS", fixture::aws::LOADER_KEY];
        let mut calls = self.strict.calls();
        calls.retain(|call| !own.contains(&call.who.as_str()));
        calls
    }

    /// The id of the public zone `shop.test`, when the fixture is loaded.
    pub fn zone_id(&self) -> Option<&str> {
        self.zone_id.as_deref()
    }

    /// What the emulator called the things of the fixture.
    pub fn aws_ids(&self) -> &fixture::aws::Ids {
        &self.ids
    }

    /// The private network: what the company's addresses really are.
    pub fn net(&self) -> &BenchNet {
        &self.net
    }

    /// An HTTP proxy (`http://127.0.0.1:PORT`) that takes requests for the company's public addresses.
    pub fn gateway(&self) -> String {
        format!("http://{}", self.net.gateway())
    }

    /// The authoritative DNS server of the zones.
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// A caching resolver that keeps answers as long as their TTL says.
    pub fn resolver(&self) -> &Resolver {
        &self.resolver
    }

    /// What consumers and reports did, on both sides.
    pub fn observed(&self) -> &Observed {
        &self.observed
    }

    /// A side's load balancers, with what they saw of each host.
    pub fn load_balancers(&self, side: Side) -> &LoadBalancers {
        match side {
            Side::Blue => &self.balancers.blue,
            Side::Green => &self.balancers.green,
        }
    }

    /// A database server.
    pub fn database(&self, side: Side) -> &Postgres {
        match side {
            Side::Blue => &self.databases.blue,
            Side::Green => &self.databases.green,
        }
    }

    /// The audit log of a side's API server.
    pub fn audit_log(&self, side: Side) -> PathBuf {
        self.control_plane(side).audit_log()
    }

    /// The environment in which the released binary finds this bench: `None` means the variable must be unset.
    pub fn env(&self) -> Vec<(String, Option<String>)> {
        let set = |key: &str, value: String| (key.to_owned(), Some(value));
        vec![
            set("AWS_ENDPOINT_URL", self.aws_endpoint()),
            set("AWS_ACCESS_KEY_ID", "test".into()),
            set("AWS_SECRET_ACCESS_KEY", "test".into()),
            set("AWS_REGION", REGION.into()),
            set("AWS_DEFAULT_REGION", REGION.into()),
            set("AWS_EC2_METADATA_DISABLED", "true".into()),
            set("CROSSFADE_BENCH_ACCOUNT", ACCOUNT.into()),
            set("KUBECONFIG", self.blue_kubeconfig().display().to_string()),
            // The fixture's migration.yaml names this variable for the databases' owner.
            set("ORDERS_ADMIN_PASSWORD", postgres::SUPERUSER_PASSWORD.into()),
            ("AWS_CA_BUNDLE".into(), None),
            ("AWS_PROFILE".into(), None),
            ("AWS_SESSION_TOKEN".into(), None),
            ("HTTP_PROXY".into(), None),
            ("HTTPS_PROXY".into(), None),
        ]
    }

    /// Writes `env.sh`, `blue.kubeconfig`, `green.kubeconfig` and, if the fixture has a template, `migration.yaml`.
    pub fn write_files(&self, dir: &Path) -> Result<Vec<PathBuf>> {
        let mut script =
            String::from("# . this file: the crossfade binary then finds the bench.\n");
        for (key, value) in self.env() {
            match value {
                Some(value) => script.push_str(&format!("export {key}='{value}'\n")),
                None => script.push_str(&format!("unset {key}\n")),
            }
        }
        let read = |path: PathBuf| {
            std::fs::read_to_string(&path).context(|| format!("could not read {}", path.display()))
        };
        let mut files = vec![
            ("env.sh", script),
            ("blue.kubeconfig", read(self.blue_kubeconfig())?),
            ("green.kubeconfig", read(self.green_kubeconfig())?),
        ];
        if let Some(migration) = self.migration_yaml()? {
            files.push(("migration.yaml", migration));
        }
        let mut written = Vec::new();
        for (name, text) in files {
            let path = dir.join(name);
            std::fs::write(&path, text)
                .context(|| format!("could not write {}", path.display()))?;
            written.push(path);
        }
        Ok(written)
    }

    /// The fixture's `migration.yaml.in` with this bench's addresses: each `@NAME@` is one of [`Bench::values`].
    pub fn migration_yaml(&self) -> Result<Option<String>> {
        let template = Fixture::shop().dir().join("migration.yaml.in");
        if !template.is_file() {
            return Ok(None);
        }
        let mut text = std::fs::read_to_string(&template)
            .context(|| format!("could not read {}", template.display()))?;
        for (name, value) in self.values() {
            text = text.replace(&format!("@{name}@"), &value);
        }
        match text
            .split('@')
            .nth(1)
            .filter(|n| n.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
        {
            Some(unknown) if !unknown.is_empty() => Err(crate::Error::new(format!(
                "{} asks for @{unknown}@, which the bench does not know",
                template.display()
            ))),
            _ => Ok(Some(text)),
        }
    }

    /// What a template may ask for.
    pub fn values(&self) -> Vec<(&'static str, String)> {
        let (blue, green) = (&self.databases.blue, &self.databases.green);
        vec![
            (
                "BLUE_KUBECONFIG",
                self.blue_kubeconfig().display().to_string(),
            ),
            (
                "GREEN_KUBECONFIG",
                self.green_kubeconfig().display().to_string(),
            ),
            ("AWS_ENDPOINT_URL", self.aws_endpoint()),
            ("ACCOUNT", ACCOUNT.into()),
            ("REGION", REGION.into()),
            ("ZONE_ID", self.zone_id.clone().unwrap_or_default()),
            ("RESOLVER", self.resolver.addr().to_string()),
            ("GATEWAY", self.net.gateway().to_string()),
            ("BLUE_DATABASE_URL", blue.superuser_url()),
            ("GREEN_DATABASE_URL", green.superuser_url()),
            ("BLUE_DATABASE_PORT", blue.port().to_string()),
            ("GREEN_DATABASE_PORT", green.port().to_string()),
        ]
    }

    /// An error that names the server that has ended, if one has.
    pub fn check_alive(&mut self) -> Result<()> {
        self.blue.check_alive()?;
        self.green.check_alive()?;
        self.ministack.check_alive()?;
        self.databases.blue.check_alive()?;
        self.databases.green.check_alive()?;
        self.kwok.iter_mut().try_for_each(Kwok::check_alive)
    }
}

/// The ExternalDNS of each age that a pod may ask for.
fn external_dns() -> Result<BTreeMap<String, PathBuf>> {
    ["0.10.2", "0.21.0"]
        .into_iter()
        .map(|version| {
            let program = paths::binary(&format!("external-dns-{version}"), "external-dns")?;
            Ok((format!("v{version}"), program))
        })
        .collect()
}

/// Removes the folders of benches whose process is gone; what cannot be removed is left.
fn sweep(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let ours = entry
            .file_name()
            .to_str()
            .is_some_and(|name| name.starts_with(FOLDER_PREFIX));
        let owner = std::fs::read_to_string(path.join(OWNER)).ok();
        let owner = owner.and_then(|text| text.trim().parse::<u32>().ok());
        if let Some(pid) = owner
            && ours
            && !Path::new(&format!("/proc/{pid}")).exists()
        {
            let _ = std::fs::remove_dir_all(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_killed_benchs_folder_is_swept_and_a_living_ones_stays() {
        let parent = tempfile::tempdir().expect("folder");
        let make = |name: &str, pid: u32| {
            let folder = parent.path().join(name);
            std::fs::create_dir(&folder).expect("folder");
            std::fs::write(folder.join(OWNER), pid.to_string()).expect("owner");
            folder
        };
        // Beyond the kernel's largest process id.
        let dead = make("crossfade-bench-dead", 4_194_305);
        let living = make("crossfade-bench-living", std::process::id());
        let foreign = make("somebody-elses", 4_194_305);
        sweep(parent.path());
        assert!(!dead.exists() && living.exists() && foreign.exists());
    }
}
