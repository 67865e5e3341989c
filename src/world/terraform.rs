//! Terraform (or OpenTofu) as a program that makes things: a plan that is kept, applied as it is, and a state that says what is there.
//!
//! A run of it is started, not awaited: it goes on when crossfade is killed, and the next process finds it by asking [`Terraform::doing`].

use super::cloud::Resource;
use super::{Class, Error, Result};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Files of the root module by path.
    pub files: BTreeMap<String, String>,
    /// What they mean: address and resource, in an order in which they can be made. Placeholders as in [`Resource`].
    pub resources: Vec<(String, Resource)>,
    /// Run id.
    pub run: String,
}

/// Which plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The whole job, as it was reviewed.
    Pinned,
    /// What is missing of it.
    Rest,
    /// To delete exactly these addresses.
    Destroy(Vec<String>),
}

/// What a plan does with one address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Address, as in `module.cluster.aws_eks_cluster.green`.
    pub address: String,
    /// Type, as in `aws_eks_cluster`.
    pub kind: String,
    /// `create`, `update`, `delete`; `delete` and `create` together replace.
    pub actions: Vec<String>,
}

impl Change {
    /// Whether it only creates.
    pub fn creates(&self) -> bool {
        self.actions == ["create"]
    }
    /// Whether something that is there goes away, for good or to be made again.
    pub fn deletes(&self) -> bool {
        self.actions.iter().any(|a| a == "delete" || a == "forget")
    }
}

/// A plan that Terraform has made and kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Planned {
    /// sha256 of the plan file: what is applied is this file or nothing.
    pub sha256: String,
    /// Program and version, as in `terraform 1.11.4`.
    pub tool: String,
    /// sha256 over the job's files.
    pub job: String,
    /// What it does, by address; what it leaves as it is does not count.
    pub changes: Vec<Change>,
}

/// Something in the state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// Address.
    pub address: String,
    /// Type.
    pub kind: String,
    /// Id, where the type has one.
    pub id: Option<String>,
    /// Half made: Terraform would replace it.
    pub tainted: bool,
}

/// What a started run of Terraform does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doing {
    /// None was started with this plan.
    Nothing,
    /// It works; what it said last.
    Running(String),
    /// It ended well.
    Ended,
    /// It ended otherwise; what it said.
    Failed(String),
}

/// Terraform.
#[async_trait]
pub trait Terraform: Send + Sync {
    /// Makes a plan and keeps it in the place of the last one of its kind. Changes nothing.
    async fn plan(&self, job: &Job, what: &What) -> Result<Planned>;
    /// The reviewed plan, when there is one and it is for this job.
    async fn pinned(&self, job: &Job) -> Result<Option<Planned>>;
    /// What is in the state.
    async fn state(&self, job: &Job) -> Result<Vec<Kept>>;
    /// Starts to apply exactly the plan with this hash.
    async fn start(&self, job: &Job, what: &What, sha256: &str) -> Result<()>;
    /// What became of it.
    async fn doing(&self, job: &Job, sha256: &str) -> Result<Doing>;
    /// Puts something that exists into the state.
    async fn import(&self, job: &Job, address: &str, id: &str) -> Result<()>;
}

/// For worlds that have none.
pub struct Without;

fn without<T>() -> Result<T> {
    Err(
        Error::new(Class::Refused, "terraform", "this world has no Terraform")
            .remedy("leave `provision.via: terraform` out of migration.yaml"),
    )
}

#[async_trait]
impl Terraform for Without {
    async fn plan(&self, _: &Job, _: &What) -> Result<Planned> {
        without()
    }
    async fn pinned(&self, _: &Job) -> Result<Option<Planned>> {
        without()
    }
    async fn state(&self, _: &Job) -> Result<Vec<Kept>> {
        without()
    }
    async fn start(&self, _: &Job, _: &What, _: &str) -> Result<()> {
        without()
    }
    async fn doing(&self, _: &Job, _: &str) -> Result<Doing> {
        without()
    }
    async fn import(&self, _: &Job, _: &str, _: &str) -> Result<()> {
        without()
    }
}
