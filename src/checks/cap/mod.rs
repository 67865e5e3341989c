//! CAP: whether green can carry what blue carries: labels, taints, requests, addresses, pods, quotas, offers of EC2, images, DNS.

mod addresses;
mod cgroups;
mod cluster_dns;
mod connections;
mod host_paths;
mod janitors;
mod labels;
mod offerings;
mod peak;
mod pods;
mod pulls;
mod quotas;
mod requests;
mod taints;

use super::Check;

/// The family.
pub(super) const ALL: &[Check] = &[
    labels::CHECK,
    taints::CHECK,
    requests::CHECK,
    addresses::CHECK,
    pods::CHECK,
    quotas::CHECK,
    offerings::CHECK,
    peak::CHECK,
    pulls::CHECK,
    cluster_dns::CHECK,
    cgroups::CHECK,
    host_paths::CHECK,
    janitors::CHECK,
    connections::CHECK,
];
