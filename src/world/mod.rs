//! The one place where effects happen: two clusters, DNS, the cloud, data stores, probes.
//!
//! Nothing above this module knows whether it drives the [`live`] world (kube, AWS, DNS queries, PostgreSQL) or the
//! [`twin`] (an in-process simulation). The interfaces are low and plain on purpose: one call is one request that a
//! server could refuse, lose or repeat, so the twin can fail exactly where reality does.

pub mod cloud;
pub mod data;
pub mod dns;
pub mod kube;
pub mod live;
pub mod observe;
pub mod probe;
pub mod terraform;
pub mod twin;

use crate::object::Side;
use std::sync::Arc;

/// Why a call on the world failed; the class decides what the engine does (retry, look again, stop).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The thing is not there.
    NotFound,
    /// It is there already.
    AlreadyExists,
    /// Somebody changed it since we looked (HTTP 409 on a precondition, expected-old-value mismatch).
    Conflict,
    /// The server understood and will not do it; repeating does not help.
    Refused,
    /// We are not allowed, or not known.
    Unauthorized,
    /// This is not the account, cluster or zone that the plan was made for.
    WrongIdentity,
    /// What we were reading in parts is too old to go on with (HTTP 410): read it from the start.
    Gone,
    /// Slow down and repeat.
    Throttled,
    /// No connection, or the answer was lost: the call may or may not have happened. Look, then repeat.
    Unreachable,
    /// Not ready yet (a cluster being created, a role not yet assumable): repeat later.
    NotReady,
    /// An answer nobody understands: a bug here or there.
    Internal,
}

/// A failed call: what, where, why, what to do.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{at}: {message}")]
pub struct Error {
    /// Class.
    pub class: Class,
    /// What the server said, in one line.
    pub message: String,
    /// Object, record set, resource or address that the call was about.
    pub at: String,
    /// What to do next; may be empty.
    pub remedy: String,
    /// How long the server asks to be left alone (`Retry-After`), when it said so.
    pub retry_after: Option<std::time::Duration>,
    /// How long repeating it is worth while, counted from the first failure: for what is known to pass, but slowly (IAM spreading a
    /// new role, an update under way). Absent: as often as the engine tries anything.
    pub patience: Option<std::time::Duration>,
}

impl Error {
    /// A new error.
    pub fn new(class: Class, at: impl Into<String>, message: impl Into<String>) -> Self {
        Error {
            class,
            message: message.into(),
            at: at.into(),
            remedy: String::new(),
            retry_after: None,
            patience: None,
        }
    }
    /// Says what to do next.
    pub fn remedy(mut self, what: impl Into<String>) -> Self {
        self.remedy = what.into();
        self
    }
    /// Says how long the server asks to be left alone.
    pub fn retry_after(mut self, pause: Option<std::time::Duration>) -> Self {
        self.retry_after = pause;
        self
    }
    /// Says how long repeating it is worth while.
    pub fn patience(mut self, time: std::time::Duration) -> Self {
        self.patience = Some(time);
        self
    }
    /// Whether repeating the same call later can help.
    pub fn is_transient(&self) -> bool {
        matches!(
            self.class,
            Class::Throttled | Class::Unreachable | Class::NotReady
        )
    }
}

/// Result of a call on the world.
pub type Result<T> = std::result::Result<T, Error>;

/// Gives the time of the world: wall time when live, simulated time in the twin (tokio's paused clock plus a base).
pub trait Clock: Send + Sync {
    /// Now, as an absolute time.
    fn now(&self) -> jiff::Timestamp;
}

/// Everything that crossfade can touch.
#[derive(Clone)]
pub struct World {
    /// The kops cluster's API server.
    pub blue: Arc<dyn kube::Kube>,
    /// The EKS cluster's API server. Until the cluster exists its calls fail with [`Class::NotReady`].
    pub green: Arc<dyn kube::Kube>,
    /// Route 53.
    pub dns: Arc<dyn dns::Dns>,
    /// EKS, IAM, EC2, STS.
    pub cloud: Arc<dyn cloud::Cloud>,
    /// Terraform, where it makes green.
    pub terraform: Arc<dyn terraform::Terraform>,
    /// Databases of the declared data sets.
    pub data: Arc<dyn data::Data>,
    /// HTTP and DNS as a user of the company sees them.
    pub probe: Arc<dyn probe::Probe>,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

impl World {
    /// The API server of a side.
    pub fn kube(&self, side: Side) -> &dyn kube::Kube {
        match side {
            Side::Blue => self.blue.as_ref(),
            Side::Green => self.green.as_ref(),
        }
    }
}
