//! The far side of a private network: names that only it resolves, reached through an HTTP or SOCKS5 proxy, an SSH bastion or an SSM session.
//!
//! The proxies run in the test; `ssh` and `aws` are stand-ins ([`programs`]), processes that really forward TCP.

pub mod programs;
mod proxies;

pub use proxies::{HttpProxy, SocksProxy};

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// Names of the far side: `host:port` to the socket that answers there.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Names(pub BTreeMap<String, SocketAddr>);

impl Names {
    /// One more name.
    pub fn with(mut self, name: &str, to: SocketAddr) -> Names {
        self.0.insert(name.to_owned(), to);
        self
    }

    /// What answers at `host:port` there; nothing else exists.
    pub fn resolve(&self, name: &str) -> Option<SocketAddr> {
        self.0.get(name).copied()
    }
}
