//! Network interfaces: those of the emulator, which ignores every filter, and those that EKS has in the account (eks.md 1.2, 2.3).
//! A security group that one of them carries cannot be deleted; after a cluster or node group is gone some linger.

use super::http::{Refusal, Reply, Req, hex, sha2_256, unique_id, xml_reply};
use super::xml::{self, Element};
use super::{State, eks};

/// An interface that EKS has made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Interface {
    pub id: String,
    pub subnet: String,
    pub vpc: String,
    pub zone: String,
    pub description: String,
    pub groups: Vec<String>,
    /// Of the control plane: EKS manages it, nobody else can detach it.
    pub managed: bool,
    /// The node that it is attached to.
    pub instance: Option<String>,
}

/// A made-up id of EC2's form, the same for the same words.
pub(crate) fn id_of(prefix: &str, words: &str) -> String {
    format!("{prefix}-0{}", &hex(&sha2_256(words.as_bytes()))[..16])
}

impl Interface {
    fn xml(&self, account: &str) -> Element {
        let mut out = String::from("<item>");
        xml::leaf(&mut out, "networkInterfaceId", &self.id);
        xml::leaf(&mut out, "subnetId", &self.subnet);
        xml::leaf(&mut out, "vpcId", &self.vpc);
        xml::leaf(&mut out, "availabilityZone", &self.zone);
        xml::leaf(&mut out, "description", &self.description);
        xml::leaf(&mut out, "ownerId", account);
        if self.managed {
            xml::leaf(&mut out, "requesterId", "740294282364");
        }
        xml::leaf(&mut out, "requesterManaged", &self.managed.to_string());
        let attached = self.managed || self.instance.is_some();
        xml::leaf(
            &mut out,
            "status",
            if attached { "in-use" } else { "available" },
        );
        xml::leaf(&mut out, "interfaceType", "interface");
        xml::leaf(&mut out, "sourceDestCheck", "true");
        out.push_str("<groupSet>");
        for group in &self.groups {
            out.push_str("<item>");
            xml::leaf(&mut out, "groupId", group);
            xml::leaf(&mut out, "groupName", group);
            out.push_str("</item>");
        }
        out.push_str("</groupSet>");
        if attached {
            out.push_str("<attachment>");
            xml::leaf(&mut out, "attachmentId", &id_of("eni-attach", &self.id));
            if let Some(instance) = &self.instance {
                xml::leaf(&mut out, "instanceId", instance);
                xml::leaf(&mut out, "instanceOwnerId", account);
            } else {
                xml::leaf(&mut out, "instanceOwnerId", "740294282364");
            }
            xml::leaf(&mut out, "deviceIndex", "0");
            xml::leaf(&mut out, "status", "attached");
            xml::leaf(&mut out, "deleteOnTermination", "true");
            out.push_str("</attachment>");
        }
        out.push_str("<tagSet/></item>");
        Element::parse(&out).unwrap_or_default()
    }
}

/// All interfaces of the account.
async fn all(state: &State, who: &str) -> Vec<Element> {
    let (_, root) = state
        .ask("ec2", who, "DescribeNetworkInterfaces", &[])
        .await;
    let mut items = root
        .find("networkInterfaceSet")
        .map(|s| s.children.clone())
        .unwrap_or_default();
    let own = eks::interfaces(&state.lock_eks());
    items.extend(own.iter().map(|i| i.xml(&state.config.account)));
    items
}

fn groups(interface: &Element) -> Vec<&str> {
    interface
        .child("groupSet")
        .map(|s| {
            s.children
                .iter()
                .filter_map(|g| g.text_of("groupId"))
                .collect()
        })
        .unwrap_or_default()
}

/// An interface that carries this group.
pub(crate) async fn carrying(state: &State, who: &str, group: &str) -> Option<String> {
    let all = all(state, who).await;
    all.iter()
        .find(|i| groups(i).contains(&group))
        .and_then(|i| i.text_of("networkInterfaceId"))
        .map(str::to_owned)
}

/// An interface in this subnet.
pub(crate) async fn inside(state: &State, who: &str, subnet: &str) -> Option<String> {
    let all = all(state, who).await;
    all.iter()
        .find(|i| i.text_of("subnetId") == Some(subnet))
        .and_then(|i| i.text_of("networkInterfaceId"))
        .map(str::to_owned)
}

/// Addresses that are not taken in a subnet: the emulator always says 251 (eks.md 2.2: net of the five that AWS keeps).
fn free_of(cidr: &str, subnet: &str, all: &[Element]) -> Option<u64> {
    let length: u32 = cidr.split_once('/')?.1.parse().ok().filter(|l| *l <= 28)?;
    let taken = all
        .iter()
        .filter(|i| i.text_of("subnetId") == Some(subnet))
        .count() as u64;
    Some((1u64 << (32 - length)).saturating_sub(5 + taken))
}

/// DescribeSubnets with the free addresses as they are.
pub(crate) async fn count_addresses(state: &State, who: &str, subnets: Element) -> Element {
    let all = all(state, who).await;
    let mut root = subnets;
    for list in root.children.iter_mut().filter(|c| c.name == "subnetSet") {
        for subnet in &mut list.children {
            let get = |key: &str| subnet.text_of(key).unwrap_or("").to_owned();
            let Some(free) = free_of(&get("cidrBlock"), &get("subnetId"), &all) else {
                continue;
            };
            for leaf in &mut subnet.children {
                if leaf.name == "availableIpAddressCount" {
                    leaf.text = free.to_string();
                }
            }
        }
    }
    root
}

/// DescribeNetworkInterfaces with the filters that somebody may need; an unknown one is refused, not ignored.
pub(crate) async fn describe(state: &State, req: &Req) -> Reply {
    match found(state, req).await {
        Ok(items) => {
            let mut out = format!(
                "<DescribeNetworkInterfacesResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\"><requestId>{}</requestId><networkInterfaceSet>",
                unique_id()
            );
            for item in items {
                item.write(&mut out);
            }
            out.push_str("</networkInterfaceSet></DescribeNetworkInterfacesResponse>");
            xml_reply(200, out)
        }
        Err(refusal) => refusal.reply("ec2"),
    }
}

async fn found(state: &State, req: &Req) -> Result<Vec<Element>, Refusal> {
    let mut items = all(state, &req.who).await;
    let ids: Vec<&str> = (1..)
        .map_while(|n| req.form(&format!("NetworkInterfaceId.{n}")))
        .collect();
    for id in &ids {
        if !items
            .iter()
            .any(|i| i.text_of("networkInterfaceId") == Some(id))
        {
            return Err(Refusal::new(
                400,
                "InvalidNetworkInterfaceID.NotFound",
                format!("The networkInterface ID '{id}' does not exist"),
            ));
        }
    }
    if !ids.is_empty() {
        items.retain(|i| ids.contains(&i.text_of("networkInterfaceId").unwrap_or("")));
    }
    for n in 1.. {
        let Some(name) = req.form(&format!("Filter.{n}.Name")) else {
            break;
        };
        let wanted: Vec<&str> = (1..)
            .map_while(|m| req.form(&format!("Filter.{n}.Value.{m}")))
            .collect();
        let mut kept = vec![];
        for item in items {
            let values = values(&item, name)?;
            let hit = wanted.iter().any(|w| {
                values
                    .iter()
                    .any(|v| super::permit::policy::like(w, v, false))
            });
            if hit {
                kept.push(item);
            }
        }
        items = kept;
    }
    Ok(items)
}

/// What an interface has under a filter's name.
fn values(item: &Element, filter: &str) -> Result<Vec<String>, Refusal> {
    let own = |key: &str| item.text_of(key).map(str::to_owned).into_iter().collect();
    let attachment = |key: &str| {
        item.child("attachment")
            .and_then(|a| a.text_of(key))
            .map(str::to_owned)
            .into_iter()
            .collect()
    };
    let tags = item.child("tagSet").map(|t| t.children.as_slice());
    Ok(match filter {
        "group-id" => groups(item).into_iter().map(str::to_owned).collect(),
        "subnet-id" => own("subnetId"),
        "vpc-id" => own("vpcId"),
        "availability-zone" => own("availabilityZone"),
        "description" => own("description"),
        "status" => own("status"),
        "requester-id" => own("requesterId"),
        "requester-managed" => own("requesterManaged"),
        "interface-type" => own("interfaceType"),
        "network-interface-id" => own("networkInterfaceId"),
        "private-ip-address" => own("privateIpAddress"),
        "attachment.instance-id" => attachment("instanceId"),
        "attachment.status" => attachment("status"),
        _ => match filter.strip_prefix("tag:") {
            Some(key) => tags
                .unwrap_or(&[])
                .iter()
                .filter(|t| t.text_of("key") == Some(key))
                .filter_map(|t| t.text_of("value").map(str::to_owned))
                .collect(),
            None => {
                return Err(Refusal::new(
                    400,
                    "InvalidParameterValue",
                    format!("The filter '{filter}' is invalid"),
                ));
            }
        },
    })
}
