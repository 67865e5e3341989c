//! NET: whether green reaches what blue reaches, and is let in where blue is: ranges, groups, routes, NAT, literals, policies, load balancers.

mod allow_lists;
mod cni_features;
mod discovery_tags;
mod endpoint;
mod lb_attributes;
mod literals;
mod nat;
mod pod_sources;
mod policies;
mod routes;
mod security_groups;
mod service_range;
mod shared_targets;

use super::Check;

/// The family.
pub(super) const ALL: &[Check] = &[
    service_range::CHECK,
    security_groups::CHECK,
    routes::CHECK,
    nat::CHECK,
    allow_lists::CHECK,
    literals::CHECK,
    policies::CHECK,
    discovery_tags::CHECK,
    pod_sources::CHECK,
    lb_attributes::CHECK,
    shared_targets::CHECK,
    endpoint::CHECK,
    cni_features::CHECK,
];
