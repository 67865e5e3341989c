//! The company as its users see it: name resolution and HTTP.

use super::Result;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a probe finds its server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Via {
    /// Resolve the host name, as a user does.
    Dns,
    /// Go to this load balancer (host name or address) with the host in the Host header.
    LoadBalancer(String),
}

/// One HTTP request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpProbe {
    /// Method.
    pub method: String,
    /// Host name.
    pub host: String,
    /// Path with query.
    pub path: String,
    /// Body, if any.
    pub body: Option<String>,
    /// How to get there.
    pub via: Via,
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpAnswer {
    /// Status code.
    pub status: u16,
    /// Response headers, lower case.
    pub headers: BTreeMap<String, String>,
    /// sha256 of the body.
    pub body_sha256: String,
    /// Address (or load balancer) that answered.
    pub address: String,
}

/// A DNS answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DnsAnswer {
    /// Values of the answer section of the asked type, sorted.
    pub values: Vec<String>,
    /// Smallest TTL in the answer, seconds.
    pub ttl: u32,
}

/// Probes.
#[async_trait]
pub trait Probe: Send + Sync {
    /// One HTTP request; a connection error is `Unreachable`.
    async fn http(&self, probe: &HttpProbe) -> Result<HttpAnswer>;
    /// Asks the zone's authoritative servers (or the declared resolver); `NotFound` for NXDOMAIN.
    async fn resolve(&self, name: &str, rtype: &str) -> Result<DnsAnswer>;
}
