//! Ways out of subnets: route tables, NAT, and the addresses that the world sees.

use super::super::kops;
use crate::snapshot::model::Snapshot;
use crate::world::cloud::{Inventory, RouteTable};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// How traffic of a subnet reaches the world.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// A NAT gateway, by id.
    Nat(String),
    /// An internet gateway: each node needs a public address of its own.
    Internet,
    /// An instance or interface that forwards (a NAT instance).
    Instance(String),
    /// A transit gateway, peering, VPN gateway or firewall endpoint.
    Elsewhere(String),
    /// No default route.
    Nowhere,
}

impl Way {
    /// For people.
    pub fn text(&self) -> String {
        match self {
            Way::Nat(id) => id.clone(),
            Way::Internet => "internet gateway, each node with its own address".into(),
            Way::Instance(id) => format!("NAT instance {id}"),
            Way::Elsewhere(id) => id.clone(),
            Way::Nowhere => "no default route".into(),
        }
    }
}

/// The table that a subnet uses: its own, or the VPC's main one.
pub fn table<'a>(aws: &'a Inventory, subnet: &str) -> Option<&'a RouteTable> {
    let tables = aws.route_tables.as_ref()?;
    tables
        .iter()
        .find(|t| t.subnets.iter().any(|s| s == subnet))
        .or_else(|| tables.iter().find(|t| t.main))
}

/// The way out of a subnet; `None` when route tables were not read or none counts for it.
pub fn way(aws: &Inventory, subnet: &str) -> Option<Way> {
    let target = table(aws, subnet)?.routes.get("0.0.0.0/0");
    Some(match target.map(String::as_str) {
        None | Some("blackhole") => Way::Nowhere,
        Some(t) if t.starts_with("nat-") => Way::Nat(t.into()),
        Some(t) if t.starts_with("igw-") => Way::Internet,
        Some(t) if t.starts_with("i-") || t.starts_with("eni-") => Way::Instance(t.into()),
        Some(t) => Way::Elsewhere(t.into()),
    })
}

/// Public addresses of NAT gateways, by id.
pub fn nat_addresses(aws: &Inventory) -> BTreeMap<&str, &[String]> {
    aws.nat_gateways
        .iter()
        .flatten()
        .map(|n| (n.id.as_str(), n.public_ips.as_slice()))
        .collect()
}

/// Subnets of blue's workers: ids, or what the planner calls them when AWS was not read.
pub fn blue_node_subnets(snapshot: &Snapshot) -> BTreeSet<String> {
    let subnets = kops::subnets(snapshot);
    let name = |s: &kops::Subnet| {
        s.id.clone()
            .unwrap_or_else(|| format!("{} ({})", s.name, s.cidr))
    };
    let mut out = BTreeSet::new();
    for g in &snapshot.kops.instance_groups {
        let role = g.pointer("/spec/role").and_then(Value::as_str);
        if !role.unwrap_or("Node").eq_ignore_ascii_case("node") {
            continue;
        }
        let wanted: Vec<&str> = g
            .pointer("/spec/subnets")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        for s in &subnets {
            // A group that names none stands in all that are not for load balancers (kops.md 3).
            let all = wanted.is_empty() && !s.kind.eq_ignore_ascii_case("utility");
            if all || wanted.contains(&s.name.as_str()) {
                out.insert(name(s));
            }
        }
    }
    out
}

/// What goes out of a set of subnets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exits {
    /// Ways.
    pub ways: BTreeSet<Way>,
    /// Public addresses of NAT gateways among them.
    pub addresses: BTreeSet<String>,
    /// Subnets whose way is not known.
    pub unknown: Vec<String>,
}

/// The exits of subnets.
pub fn exits<'s>(aws: &Inventory, subnets: impl IntoIterator<Item = &'s String>) -> Exits {
    let nat = nat_addresses(aws);
    let mut out = Exits::default();
    for s in subnets {
        match way(aws, s) {
            Some(w) => {
                if let Way::Nat(id) = &w
                    && let Some(ips) = nat.get(id.as_str())
                {
                    out.addresses.extend(ips.iter().cloned());
                }
                out.ways.insert(w);
            }
            None => out.unknown.push(s.clone()),
        }
    }
    out
}

/// Ranges outside of the VPC that it has routes to, with the target; default routes and the addresses of blue's pods left out.
pub fn routed(snapshot: &Snapshot) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    for t in snapshot
        .aws
        .iter()
        .filter_map(|a| a.route_tables.as_ref())
        .flatten()
    {
        for (to, by) in &t.routes {
            // kubenet's pod routes lead to interfaces and instances: they end with blue (kops.md 2).
            if to != "0.0.0.0/0"
                && to.contains('.')
                && by != "local"
                && !by.starts_with("eni-")
                && !by.starts_with("i-")
            {
                out.insert(to.clone(), by.clone());
            }
        }
    }
    out
}
