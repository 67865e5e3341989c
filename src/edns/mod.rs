//! A model of ExternalDNS: what an instance of a given version and configuration would do to a zone.
//!
//! The planner uses it to know who owns a record, the cutover as its dry run, the twin as the running controller.
//! Pure: records and objects in, changes out. Rules and traps are those of `externaldns.md`.

mod aws;
mod classify;
mod config;
pub mod log;
mod mapper;
mod planner;
mod registry;
pub mod rules;
mod sources;
pub mod switch;
mod workload;

pub use aws::canonical_zone;
pub use classify::{Class, Holder, classify, looks_encrypted, routing_of};
pub use config::{Config, Policy, Version};
pub use planner::{Group, plan_changes, plan_groups};
pub use registry::{
    Heritage, Ownership, heritage_value, ownership, rewrite_owner, txt_variants, txt_written_by,
};
pub use sources::{Endpoint, desired, hosts_of};

#[cfg(test)]
mod tests;

/// Default TTL that ExternalDNS writes where none is configured, seconds (externaldns.md 3).
pub const DEFAULT_TTL: u32 = 300;

/// A name as Route 53 spells it: lower case, final dot, `*` unescaped.
pub(crate) fn fqdn(name: &str) -> String {
    let n = name.trim().to_lowercase().replacen("\\052", "*", 1);
    if n.ends_with('.') { n } else { format!("{n}.") }
}

/// A name without the final dot.
pub(crate) fn bare(name: &str) -> String {
    let mut n = fqdn(name);
    n.pop();
    n
}

/// Whether a name (either spelling) lies in a zone.
pub(crate) fn in_zone(name: &str, zone: &str) -> bool {
    let (n, z) = (fqdn(name), fqdn(zone));
    n == z || n.ends_with(&format!(".{z}"))
}
