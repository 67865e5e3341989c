//! What a plan wants to know of the VPC and of EC2 besides its subnets: ways out, volumes, what instance types are and where they are offered.
//! Each part by itself: what is denied is left out with the reason, and the rest is read all the same.

use super::inventory::{filter, tags};
use crate::world::Result;
use crate::world::cloud::{InstanceType, Inventory, NatGateway, RouteTable, Volume};
use crate::world::live::aws;
use aws_sdk_ec2::types as ec2;
use std::collections::{BTreeMap, BTreeSet};

/// Reads the parts into the inventory.
pub(super) async fn read(
    client: &aws_sdk_ec2::Client,
    vpc: Option<&str>,
    cluster: &str,
    into: &mut Inventory,
) {
    let zones: BTreeSet<String> = into.subnets.iter().map(|s| s.zone.clone()).collect();
    let (nat, tables, volumes, types, offerings) = tokio::join!(
        nat_gateways(client, vpc),
        route_tables(client, vpc),
        volumes(client, cluster),
        instance_types(client, cluster),
        offerings(client, &zones),
    );
    let mut gaps = BTreeMap::new();
    fn keep<T>(part: &str, answer: Result<T>, gaps: &mut BTreeMap<String, String>) -> Option<T> {
        answer
            .map_err(|e| gaps.insert(part.into(), format!("{}: {}", e.at, e.message)))
            .ok()
    }
    into.nat_gateways = keep("natGateways", nat, &mut gaps);
    into.route_tables = keep("routeTables", tables, &mut gaps);
    into.volumes = keep("volumes", volumes, &mut gaps);
    into.instance_types = keep("instanceTypes", types, &mut gaps);
    into.offerings = keep("offerings", offerings, &mut gaps);
    into.not_read.append(&mut gaps);
}

async fn nat_gateways(client: &aws_sdk_ec2::Client, vpc: Option<&str>) -> Result<Vec<NatGateway>> {
    let Some(vpc) = vpc else { return Ok(vec![]) };
    let mut out = vec![];
    let mut pages = client
        .describe_nat_gateways()
        .filter(filter("vpc-id", vpc))
        .into_paginator()
        .items()
        .send();
    while let Some(n) = pages.next().await {
        let n = n.map_err(|e| aws::error("nat gateways", e))?;
        // A deleted one is listed for an hour.
        if !matches!(
            n.state(),
            None | Some(ec2::NatGatewayState::Available | ec2::NatGatewayState::Pending)
        ) {
            continue;
        }
        let mut public_ips: Vec<String> = n
            .nat_gateway_addresses()
            .iter()
            .filter_map(|a| a.public_ip().map(Into::into))
            .collect();
        public_ips.sort();
        out.push(NatGateway {
            id: n.nat_gateway_id().unwrap_or_default().into(),
            subnet: n.subnet_id().unwrap_or_default().into(),
            public_ips,
            tags: tags(n.tags()),
        });
    }
    out.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(out)
}

async fn route_tables(client: &aws_sdk_ec2::Client, vpc: Option<&str>) -> Result<Vec<RouteTable>> {
    let Some(vpc) = vpc else { return Ok(vec![]) };
    let mut out = vec![];
    let mut pages = client
        .describe_route_tables()
        .filters(filter("vpc-id", vpc))
        .into_paginator()
        .items()
        .send();
    while let Some(t) = pages.next().await {
        let t = t.map_err(|e| aws::error("route tables", e))?;
        let mut subnets: Vec<String> = t
            .associations()
            .iter()
            .filter_map(|a| a.subnet_id().map(Into::into))
            .collect();
        subnets.sort();
        out.push(RouteTable {
            id: t.route_table_id().unwrap_or_default().into(),
            main: t.associations().iter().any(|a| a.main() == Some(true)),
            subnets,
            routes: t.routes().iter().filter_map(route).collect(),
            tags: tags(t.tags()),
        });
    }
    out.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(out)
}

/// Destination and target of a route. One whose target is gone leads nowhere: `blackhole`.
fn route(r: &ec2::Route) -> Option<(String, String)> {
    let to = r
        .destination_cidr_block()
        .or(r.destination_ipv6_cidr_block())
        .or(r.destination_prefix_list_id())?;
    let by = if r.state() == Some(&ec2::RouteState::Blackhole) {
        "blackhole"
    } else {
        // The interface stands beside the instance that owns it, and outlives a stopped one.
        r.nat_gateway_id()
            .or(r.transit_gateway_id())
            .or(r.vpc_peering_connection_id())
            .or(r.egress_only_internet_gateway_id())
            .or(r.carrier_gateway_id())
            .or(r.local_gateway_id())
            .or(r.core_network_arn())
            .or(r.gateway_id())
            .or(r.instance_id())
            .or(r.network_interface_id())?
    };
    Some((to.into(), by.into()))
}

/// Volumes that carry blue's tags, in either spelling (kops.md 4.2).
async fn volumes(client: &aws_sdk_ec2::Client, cluster: &str) -> Result<Vec<Volume>> {
    let mut out: BTreeMap<String, Volume> = BTreeMap::new();
    for f in [
        filter("tag:KubernetesCluster", cluster),
        filter("tag-key", &format!("kubernetes.io/cluster/{cluster}")),
    ] {
        let mut pages = client
            .describe_volumes()
            .filters(f)
            .into_paginator()
            .items()
            .send();
        while let Some(v) = pages.next().await {
            let v = v.map_err(|e| aws::error("volumes", e))?;
            let id = v.volume_id().unwrap_or_default().to_string();
            out.insert(
                id.clone(),
                Volume {
                    id,
                    zone: v.availability_zone().unwrap_or_default().into(),
                    size_gib: v.size().and_then(|n| u32::try_from(n).ok()).unwrap_or(0),
                    kind: v.volume_type().map_or(String::new(), |t| t.as_str().into()),
                    encrypted: v.encrypted().unwrap_or(false),
                    kms_key: v.kms_key_id().map(Into::into),
                    attached_to: v
                        .attachments()
                        .iter()
                        .find_map(|a| a.instance_id().map(Into::into)),
                    tags: tags(v.tags()),
                },
            );
        }
    }
    Ok(out.into_values().collect())
}

/// Types of the instances that carry blue's tag, as EC2 describes them. Types of groups without an instance are in the program's own table.
async fn instance_types(
    client: &aws_sdk_ec2::Client,
    cluster: &str,
) -> Result<BTreeMap<String, InstanceType>> {
    let mut used: BTreeSet<String> = BTreeSet::new();
    for f in [
        filter("tag:KubernetesCluster", cluster),
        filter("tag-key", &format!("kubernetes.io/cluster/{cluster}")),
    ] {
        let mut pages = client
            .describe_instances()
            .filters(f)
            .into_paginator()
            .items()
            .send();
        while let Some(r) = pages.next().await {
            let r = r.map_err(|e| aws::error("instances", e))?;
            used.extend(
                r.instances()
                    .iter()
                    .filter_map(|i| i.instance_type().map(|t| t.as_str().to_string())),
            );
        }
    }
    let mut out = BTreeMap::new();
    let used: Vec<String> = used.into_iter().collect();
    // At most 100 names in one question.
    for some in used.chunks(100) {
        let mut ask = client.describe_instance_types();
        for t in some {
            ask = ask.instance_types(ec2::InstanceType::from(t.as_str()));
        }
        let mut pages = ask.into_paginator().items().send();
        while let Some(t) = pages.next().await {
            let t = t.map_err(|e| aws::error("instance types", e))?;
            if let Some((name, t)) = described(&t) {
                out.insert(name, t);
            }
        }
    }
    Ok(out)
}

/// `None`: an answer without the numbers that a plan needs; then the table counts.
fn described(t: &ec2::InstanceTypeInfo) -> Option<(String, InstanceType)> {
    let number = |n: Option<i32>| n.and_then(|n| u32::try_from(n).ok());
    let net = t.network_info()?;
    // Interfaces on the default card only (eks.md 2.1).
    let card = net.default_network_card_index().unwrap_or(0);
    let on_card = net
        .network_cards()
        .iter()
        .find(|c| c.network_card_index() == Some(card))
        .and_then(|c| number(c.maximum_network_interfaces()));
    let arm = t.processor_info().is_some_and(|p| {
        p.supported_architectures()
            .iter()
            .any(|a| a.as_str() == "arm64")
    });
    Some((
        t.instance_type()?.as_str().to_string(),
        InstanceType {
            vcpus: number(t.v_cpu_info()?.default_v_cpus())?,
            memory_mib: u32::try_from(t.memory_info()?.size_in_mib()?).ok()?,
            interfaces: on_card.or(number(net.maximum_network_interfaces()))?,
            addresses: number(net.ipv4_addresses_per_interface())?,
            arch: if arm { "arm64" } else { "x86_64" }.into(),
            gpus: t
                .gpu_info()
                .map(|g| g.gpus().iter().filter_map(|g| number(g.count())).sum())
                .unwrap_or(0),
            // Bare metal has no hypervisor and counts as Nitro for the VPC CNI.
            nitro: t.hypervisor().is_some_and(|h| h.as_str() == "nitro")
                || t.bare_metal() == Some(true),
            instance_store_gb: t
                .instance_storage_info()
                .and_then(|s| s.total_size_in_gb())
                .and_then(|n| u32::try_from(n).ok())
                .unwrap_or(0),
        },
    ))
}

/// Zones of the VPC's subnets in which each type is offered: all types, so that a plan may look at others than today's.
async fn offerings(
    client: &aws_sdk_ec2::Client,
    zones: &BTreeSet<String>,
) -> Result<BTreeMap<String, Vec<String>>> {
    if zones.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut out: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut pages = client
        .describe_instance_type_offerings()
        .location_type(ec2::LocationType::AvailabilityZone)
        .filters(
            ec2::Filter::builder()
                .name("location")
                .set_values(Some(zones.iter().cloned().collect()))
                .build(),
        )
        .into_paginator()
        .items()
        .send();
    while let Some(o) = pages.next().await {
        let o = o.map_err(|e| aws::error("instance type offerings", e))?;
        if let (Some(t), Some(zone)) = (o.instance_type(), o.location())
            && zones.contains(zone)
        {
            out.entry(t.as_str().to_string())
                .or_default()
                .insert(zone.to_string());
        }
    }
    Ok(out
        .into_iter()
        .map(|(t, z)| (t, z.into_iter().collect()))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_named_by_its_target_and_one_without_leads_nowhere() {
        let to = |r: ec2::builders::RouteBuilder| {
            route(&r.destination_cidr_block("0.0.0.0/0").build()).map(|(_, by)| by)
        };
        let b = ec2::Route::builder;
        assert_eq!(to(b().nat_gateway_id("nat-1")).as_deref(), Some("nat-1"));
        assert_eq!(to(b().gateway_id("igw-1")).as_deref(), Some("igw-1"));
        assert_eq!(
            to(b().transit_gateway_id("tgw-1")).as_deref(),
            Some("tgw-1")
        );
        assert_eq!(
            to(b().instance_id("i-1").network_interface_id("eni-1")).as_deref(),
            Some("i-1")
        );
        assert_eq!(
            to(b()
                .nat_gateway_id("nat-1")
                .state(ec2::RouteState::Blackhole))
            .as_deref(),
            Some("blackhole")
        );
        let by_list = ec2::Route::builder()
            .destination_prefix_list_id("pl-1")
            .gateway_id("vpce-1")
            .build();
        assert_eq!(route(&by_list), Some(("pl-1".into(), "vpce-1".into())));
    }

    #[test]
    fn interfaces_of_the_default_card_count_and_metal_is_nitro() {
        let card = |index: i32, n: i32| {
            ec2::NetworkCardInfo::builder()
                .network_card_index(index)
                .maximum_network_interfaces(n)
                .build()
        };
        let t = ec2::InstanceTypeInfo::builder()
            .instance_type(ec2::InstanceType::from("p4d.24xlarge"))
            .bare_metal(true)
            .v_cpu_info(ec2::VCpuInfo::builder().default_v_cpus(96).build())
            .memory_info(ec2::MemoryInfo::builder().size_in_mib(1_179_648).build())
            .network_info(
                ec2::NetworkInfo::builder()
                    .maximum_network_interfaces(60)
                    .default_network_card_index(0)
                    .network_cards(card(0, 15))
                    .network_cards(card(1, 15))
                    .ipv4_addresses_per_interface(50)
                    .build(),
            )
            .build();
        let (name, t) = described(&t).expect("complete");
        assert_eq!(
            (name.as_str(), t.interfaces, t.addresses, t.nitro),
            ("p4d.24xlarge", 15, 50, true)
        );
        assert!(described(&ec2::InstanceTypeInfo::builder().build()).is_none());
    }
}
