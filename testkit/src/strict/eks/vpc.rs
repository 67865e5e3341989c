//! Where a control plane stands: subnets, endpoint, service range, its security group (eks.md 1.2).

use std::net::Ipv4Addr;

use serde_json::Value;

use super::{Subnet, bad, text};
use crate::strict::State;
use crate::strict::http::{Refusal, Req};
use crate::strict::quotas;
use crate::strict::route53::short_id;

pub(super) async fn check_subnets(
    state: &State,
    req: &Req,
    ids: &[String],
) -> Result<Vec<Subnet>, Refusal> {
    if ids.len() < 2 {
        return Err(bad(
            "Subnets specified must be in at least two different AZs",
        ));
    }
    let subnets = state.subnets(&req.who, ids).await?;
    if subnets.iter().any(|s| s.vpc != subnets[0].vpc) {
        return Err(bad("Subnets provided must be in the same VPC"));
    }
    if subnets.iter().all(|s| s.zone == subnets[0].zone) {
        return Err(bad(
            "Subnets specified must be in at least two different AZs",
        ));
    }
    if let Some(closed) = closed_zone(&subnets) {
        return Err(Refusal::new(
            400,
            "UnsupportedAvailabilityZoneException",
            format!(
                "Cannot create cluster because {closed}, the targeted availability zone, does not currently have sufficient capacity to support the cluster."
            ),
        ));
    }
    // eks.md 1.2: six free addresses each.
    if let Some(full) = subnets.iter().find(|s| s.free < 6) {
        return Err(bad(format!(
            "Subnet {} has {} free IP addresses, at least 6 are needed",
            full.id, full.free
        )));
    }
    Ok(subnets)
}

/// A zone in which there are no control planes, by its id: the letters differ between accounts (eks.md 2.2).
fn closed_zone(subnets: &[Subnet]) -> Option<&str> {
    let closed = ["use1-az3", "usw1-az2", "cac1-az3"];
    subnets
        .iter()
        .find(|s| closed.contains(&s.zone_id.as_str()))
        .map(|s| s.zone.as_str())
}

/// Security groups besides the cluster's own: they exist, and are not too many (eks.md 1.2: 4).
pub(super) async fn check_groups(
    state: &State,
    req: &Req,
    groups: &[String],
) -> Result<(), Refusal> {
    let quota = state.lock_controls().quota(quotas::CONTROL_PLANE_GROUPS);
    if let Some(quota) = quota.filter(|q| groups.len() as u64 > *q) {
        return Err(bad(format!(
            "You can specify up to {quota} security groups"
        )));
    }
    for group in groups {
        let question = [("GroupId.1", group.as_str())];
        let (status, _) = state
            .ask("ec2", &req.who, "DescribeSecurityGroups", &question)
            .await;
        if status != 200 {
            return Err(bad(format!("The security group '{group}' does not exist")));
        }
    }
    Ok(())
}

pub(super) fn check_endpoint(
    state: &State,
    public: bool,
    private: bool,
    cidrs: &[String],
) -> Result<(), Refusal> {
    if !public && !private {
        return Err(bad("Private and public endpoint access cannot be false"));
    }
    let quota = state.lock_controls().quota(quotas::PUBLIC_CIDRS);
    if let Some(quota) = quota.filter(|q| cidrs.len() as u64 > *q) {
        return Err(bad(format!(
            "at most {quota} public access CIDRs are allowed"
        )));
    }
    if !public && !cidrs.is_empty() {
        return Err(bad(
            "publicAccessCidrs cannot be set when endpointPublicAccess is false",
        ));
    }
    match cidrs.iter().find(|c| parse_cidr(c).is_none()) {
        Some(cidr) => Err(bad(format!("'{cidr}' is not an IPv4 CIDR"))),
        None => Ok(()),
    }
}

pub(super) fn public_cidrs(public: bool, cidrs: &[String]) -> Vec<String> {
    if public && cidrs.is_empty() {
        vec!["0.0.0.0/0".into()]
    } else {
        cidrs.to_vec()
    }
}

/// `10.0.0.0/16` -> (network, prefix length); host bits must be zero.
fn parse_cidr(text: &str) -> Option<(u32, u32)> {
    let (address, length) = text.split_once('/')?;
    let address = u32::from(address.parse::<Ipv4Addr>().ok()?);
    let length: u32 = length.parse().ok().filter(|l| *l <= 32)?;
    (address & !mask(length) == 0).then_some((address, length))
}

fn mask(length: u32) -> u32 {
    u32::MAX.checked_shl(32 - length).unwrap_or(0)
}

fn overlap(a: (u32, u32), b: (u32, u32)) -> bool {
    let mask = mask(a.1.min(b.1));
    a.0 & mask == b.0 & mask
}

/// The service range: given (and checked: eks.md 1.2) or chosen beside the VPC.
pub(super) async fn service_cidr(
    state: &State,
    req: &Req,
    body: &Value,
    subnets: &[Subnet],
) -> Result<String, Refusal> {
    let (_, root) = state
        .ask(
            "ec2",
            &req.who,
            "DescribeVpcs",
            &[("VpcId.1", &subnets[0].vpc)],
        )
        .await;
    let mut blocks = Vec::new();
    root.find_all("cidrBlock", &mut blocks);
    let vpc: Vec<(u32, u32)> = blocks.iter().filter_map(|b| parse_cidr(&b.text)).collect();
    let given = text(&body["kubernetesNetworkConfig"], "serviceIpv4Cidr");
    let Some(given) = given else {
        let first = parse_cidr("10.100.0.0/16").filter(|c| !vpc.iter().any(|v| overlap(*v, *c)));
        return Ok(if first.is_some() {
            "10.100.0.0/16"
        } else {
            "172.20.0.0/16"
        }
        .into());
    };
    let range = parse_cidr(given)
        .ok_or_else(|| bad(format!("serviceIpv4Cidr '{given}' is not an IPv4 CIDR")))?;
    let private = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"]
        .iter()
        .filter_map(|p| parse_cidr(p))
        .any(|p| overlap(p, range) && range.1 >= p.1);
    if !private || !(12..=24).contains(&range.1) {
        return Err(bad(format!(
            "serviceIpv4Cidr '{given}' must lie within 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16 and be between /24 and /12"
        )));
    }
    if vpc.iter().any(|v| overlap(*v, range)) {
        return Err(bad(format!(
            "serviceIpv4Cidr '{given}' overlaps with the VPC"
        )));
    }
    Ok(given.to_owned())
}
/// `eks-cluster-sg-NAME-N` with the rule that lets its members reach each other (eks.md 2.3).
pub(super) async fn cluster_security_group(
    state: &State,
    req: &Req,
    name: &str,
    vpc: &str,
) -> Result<String, Refusal> {
    let group_name = format!("eks-cluster-sg-{name}-{}", short_id(10).to_lowercase());
    let owned = format!("kubernetes.io/cluster/{name}");
    let (status, root) = state
        .ask(
            "ec2",
            &req.who,
            "CreateSecurityGroup",
            &[
                ("GroupName", &group_name),
                ("GroupDescription", "EKS created security group applied to ENI that is attached to EKS Control Plane master nodes, as well as any managed workloads."),
                ("VpcId", vpc),
            ],
        )
        .await;
    let failed = |what: &str| {
        Refusal::new(
            500,
            "ServerException",
            format!("the emulator's EC2 refused {what} for cluster {name}"),
        )
    };
    let id = root
        .find("groupId")
        .filter(|_| status == 200)
        .map(|e| e.text.clone())
        .ok_or_else(|| failed("the cluster security group"))?;
    let (status, _) = state
        .ask(
            "ec2",
            &req.who,
            "AuthorizeSecurityGroupIngress",
            &[
                ("GroupId", &id),
                ("IpPermissions.1.IpProtocol", "-1"),
                ("IpPermissions.1.Groups.1.GroupId", &id),
            ],
        )
        .await;
    if status != 200 {
        return Err(failed("the self rule"));
    }
    let (status, _) = state
        .ask(
            "ec2",
            &req.who,
            "CreateTags",
            &[
                ("ResourceId.1", &id),
                ("Tag.1.Key", "Name"),
                ("Tag.1.Value", &group_name),
                ("Tag.2.Key", &owned),
                ("Tag.2.Value", "owned"),
                ("Tag.3.Key", "aws:eks:cluster-name"),
                ("Tag.3.Value", name),
            ],
        )
        .await;
    if status != 200 {
        return Err(failed("the tags of the cluster security group"));
    }
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_plane_does_not_stand_in_three_zones_whatever_their_letters() {
        let subnet = |zone: &str, zone_id: &str| Subnet {
            id: "subnet-1".into(),
            vpc: "vpc-1".into(),
            zone: zone.into(),
            zone_id: zone_id.into(),
            cidr: "10.0.0.0/24".into(),
            free: 251,
        };
        let good = subnet("us-east-1a", "use1-az1");
        let bad = subnet("us-east-1e", "use1-az3");
        assert_eq!(closed_zone(&[good.clone(), bad]), Some("us-east-1e"));
        assert_eq!(closed_zone(&[good, subnet("us-east-1c", "use1-az2")]), None);
    }
}
