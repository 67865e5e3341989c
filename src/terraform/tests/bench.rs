//! Green of the demo, made by the real program over stubbed modules, with an account that has what the state says.

use super::super::APPLY;
use super::{stub, terraform, via_terraform};
use crate::engine::{Engine, Outcome, run_id_of, silent};
use crate::journal::Journal;
use crate::plan::model::Plan;
use crate::step::terraform_apply::job;
use crate::world::cloud::{Attached, Cloud, CloudIdentity, EksCluster, Found, Inventory, Resource};
use crate::world::live::LiveTerraform;
use crate::world::terraform::{Doing, Job, Kept, Planned, Terraform, What};
use crate::world::twin::{self, Twin};
use crate::world::{Class, Error, Result, World};
use async_trait::async_trait;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// What the account has: what Terraform's state says, and what a test puts there.
#[derive(Default)]
pub struct Account {
    pub things: Mutex<BTreeMap<String, Option<String>>>,
    pub deleted: Mutex<Vec<String>>,
    /// What somebody hung on the cluster.
    pub hung: Mutex<Vec<Attached>>,
    identity: CloudIdentity,
}

#[async_trait]
impl Cloud for Account {
    async fn identity(&self) -> Result<CloudIdentity> {
        Ok(self.identity.clone())
    }
    async fn assumable(&self, _: &str) -> Result<Option<String>> {
        Ok(None)
    }
    async fn find(&self, resource: &Resource) -> Result<Option<Found>> {
        let things = self.things.lock().unwrap();
        let mut attributes: BTreeMap<String, String> = BTreeMap::new();
        if let Resource::Cluster { .. } = resource {
            attributes.insert("issuer".into(), "oidc.test/id/GREEN".into());
            attributes.insert("securityGroup".into(), "sg-green".into());
        }
        if let Resource::LaunchTemplate { name, .. } = resource {
            attributes.insert("id".into(), format!("lt-{name}"));
        }
        let found = things.get(&resource.id());
        Ok(found.map(|run| {
            serde_json::from_value(json!({
                "status": {"state": "ready"}, "run": run, "equal": true, "attributes": attributes,
            }))
            .expect("found")
        }))
    }
    async fn create(&self, resource: &Resource, _: &str) -> Result<()> {
        Err(Error::new(
            Class::Internal,
            resource.id(),
            "Terraform makes it",
        ))
    }
    async fn delete(&self, resource: &Resource) -> Result<()> {
        self.things.lock().unwrap().remove(&resource.id());
        self.deleted.lock().unwrap().push(resource.id());
        Ok(())
    }
    async fn attached(&self, resource: &Resource, _: &str) -> Result<Vec<Attached>> {
        let cluster = matches!(resource, Resource::Cluster { .. });
        let hung = self.hung.lock().unwrap();
        Ok(hung.iter().filter(|_| cluster).cloned().collect())
    }
    async fn inventory(&self, _: &str) -> Result<Inventory> {
        Err(Error::new(Class::Internal, "inventory", "nobody asks"))
    }
}

/// The real program over stubbed modules: addresses go through under their real names.
pub struct OnData {
    inner: LiveTerraform,
    account: Arc<Account>,
    destroys: Mutex<Vec<String>>,
}

fn stubbed(address: &str) -> String {
    let mut parts = address.splitn(4, '.');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some("module"), Some(m), Some(kind), Some(rest)) => {
            format!("module.{m}.terraform_data.{kind}__{rest}")
        }
        _ => address.into(),
    }
}

impl OnData {
    fn job(&self, job: &Job) -> Job {
        Job {
            files: stub::files(&job.files),
            ..job.clone()
        }
    }
    fn what(what: &What) -> What {
        match what {
            What::Destroy(all) => What::Destroy(all.iter().map(|a| stubbed(a)).collect()),
            other => other.clone(),
        }
    }
    fn real(mut planned: Planned) -> Planned {
        for c in &mut planned.changes {
            c.address = stub::real_address(&c.address);
        }
        // What only reads stands for a data source here.
        planned.changes.retain(|c| !c.address.contains(".data."));
        planned
    }
}

#[async_trait]
impl Terraform for OnData {
    async fn plan(&self, job: &Job, what: &What) -> Result<Planned> {
        Ok(Self::real(
            self.inner.plan(&self.job(job), &Self::what(what)).await?,
        ))
    }
    async fn pinned(&self, job: &Job) -> Result<Option<Planned>> {
        Ok(self.inner.pinned(&self.job(job)).await?.map(Self::real))
    }
    async fn state(&self, job: &Job) -> Result<Vec<Kept>> {
        let mut all = self.inner.state(&self.job(job)).await?;
        for k in &mut all {
            k.address = stub::real_address(&k.address);
        }
        all.retain(|k| !k.address.contains(".data."));
        Ok(all)
    }
    async fn start(&self, job: &Job, what: &What, sha256: &str) -> Result<()> {
        if let What::Destroy(all) = what {
            *self.destroys.lock().unwrap() = all.clone();
        }
        self.inner.start(&self.job(job), what, sha256).await
    }
    async fn doing(&self, job: &Job, sha256: &str) -> Result<Doing> {
        let doing = self.inner.doing(&self.job(job), sha256).await?;
        if !matches!(doing, Doing::Running(_)) {
            let state = self.state(job).await?;
            let caller = crate::world::cloud::principal_of(&self.account.identity.arn);
            let mut things = self.account.things.lock().unwrap();
            for (address, r) in &job.resources {
                let id = filled(r, &caller).id();
                if state.iter().any(|k| k.address == *address) {
                    things.insert(id, Some(job.run.clone()));
                } else if self.destroys.lock().unwrap().contains(address) {
                    things.remove(&id);
                }
            }
        }
        Ok(doing)
    }
    async fn import(&self, job: &Job, address: &str, id: &str) -> Result<()> {
        self.inner
            .import(&self.job(job), &stubbed(address), id)
            .await
    }
}

fn filled(r: &Resource, caller: &str) -> Resource {
    let text = serde_json::to_string(r)
        .unwrap()
        .replace("${cluster.issuer}", "oidc.test/id/GREEN")
        .replace("${cluster.security_group}", "sg-green")
        .replace("${account}", "000000000000")
        .replace("${caller}", caller);
    serde_json::from_str(&text).unwrap()
}

pub struct Bench {
    pub dir: tempfile::TempDir,
    pub plan: Arc<Plan>,
    pub world: World,
    pub account: Arc<Account>,
    pub journal: Arc<Journal>,
    pub job: Job,
}

/// The demo's green, made by the real program. `script` stands in for it, with `$REAL` as the program itself.
pub async fn bench(script: Option<&str>) -> Option<Bench> {
    terraform("terraform.apply with the real program")?;
    let dir = tempfile::tempdir().unwrap();
    let (mut spec, mut snapshot, _) = via_terraform();
    if let Some(script) = script {
        stand_in(dir.path(), script);
        spec.provision.binary = Some("./terraform".into());
    }
    let mut plan = crate::plan::plan(&spec, &snapshot);
    plan.steps.retain(|s| s.kind == APPLY);
    plan.steps[0].needs = vec![];
    plan.digest = crate::plan::digest_of(&plan);
    let aws = snapshot.aws.as_mut().unwrap();
    let identity = aws.identity.clone();
    // A green that lets the caller in as soon as the entry is there.
    aws.clusters = vec![EksCluster {
        name: spec.green.name.clone(),
        version: spec.green.version.clone(),
        node_groups: vec![],
        addons: vec![],
        access_entries: vec![],
        tags: BTreeMap::new(),
        parts: None,
    }];
    let caller = crate::world::cloud::principal_of(&identity.arn);
    let account = Arc::new(Account {
        identity,
        ..Account::default()
    });
    let world = World {
        cloud: account.clone(),
        terraform: Arc::new(OnData {
            inner: LiveTerraform::new(&spec, dir.path()),
            account: account.clone(),
            destroys: Mutex::default(),
        }),
        ..Twin::new(&snapshot, &spec, twin::Options::default()).world()
    };
    let job = job(&plan, &run_id_of(&plan), &caller);
    Some(Bench {
        dir,
        plan: Arc::new(plan),
        world,
        account,
        journal: Arc::new(Journal::memory()),
        job,
    })
}

fn stand_in(dir: &Path, script: &str) {
    use std::os::unix::fs::PermissionsExt;
    let path = dir.join("terraform");
    std::fs::write(
        &path,
        format!(
            "#!/bin/sh\nREAL=terraform\nHERE={}\n{script}\n",
            dir.display()
        ),
    )
    .unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

impl Bench {
    pub fn engine(&self) -> Engine {
        Engine::new(
            self.world.clone(),
            self.plan.clone(),
            self.journal.clone(),
            crate::step::registry(),
            silent(),
        )
    }
    pub async fn pin(&self) -> Planned {
        self.world
            .terraform
            .plan(&self.job, &What::Pinned)
            .await
            .unwrap()
    }
    pub async fn state(&self) -> Vec<String> {
        let all = self.world.terraform.state(&self.job).await.unwrap();
        all.into_iter().map(|k| k.address).collect()
    }
    pub fn things(&self) -> usize {
        self.account.things.lock().unwrap().len()
    }
    pub fn folder(&self) -> PathBuf {
        self.dir.path().join("terraform-run")
    }
    pub fn applies(&self) -> usize {
        let log = std::fs::read_to_string(self.dir.path().join("calls")).unwrap_or_default();
        log.lines().filter(|l| *l == "apply").count()
    }
}

pub fn why(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Stopped {
            why,
            remedy,
            object,
            ..
        } => format!("{object}: {why} ({remedy})"),
        Outcome::Stuck { stuck, .. } => format!(
            "{} expected {} found {}",
            stuck.object, stuck.expected, stuck.found
        ),
        other => format!("{other:?}"),
    }
}
