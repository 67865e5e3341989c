//! What instance types are, and where they are offered: the emulator gives every type the same eight cores and two addresses, and offers none.
//! The numbers are those of the product's own table.

use std::collections::BTreeMap;

use super::State;
use super::http::{Reply, Req, unique_id, xml_reply};
use super::xml;

type Row = (u32, u32, u32, u32, u8, u32, u8, u32);

fn table() -> BTreeMap<String, Row> {
    let all: serde_json::Value =
        serde_json::from_str(include_str!("../../../src/data/instance-types.json"))
            .unwrap_or_default();
    serde_json::from_value(all["types"].clone()).unwrap_or_default()
}

/// What node groups ask of a type.
pub(crate) struct Size {
    pub vcpus: u32,
    pub arm: bool,
}

/// `None`: the table does not know the type.
pub(crate) fn size_of(name: &str) -> Option<Size> {
    let row = table().remove(name)?;
    Some(Size {
        vcpus: row.0,
        arm: row.4 == 1,
    })
}

/// The operations that this module answers; `None` for all others.
pub(crate) fn handle(state: &State, req: &Req) -> Option<Reply> {
    let list = |prefix: &str| -> Vec<String> {
        req.form
            .iter()
            .filter(|(k, _)| {
                k.strip_prefix(prefix)
                    .is_some_and(|n| n.parse::<u32>().is_ok())
            })
            .map(|(_, v)| v.clone())
            .collect()
    };
    let body = match req.action.as_str() {
        "DescribeInstanceTypes" => {
            let wanted = list("InstanceType.");
            let mut out = String::from("<instanceTypeSet>");
            for (name, row) in table() {
                if wanted.contains(&name) {
                    described(&mut out, &name, row);
                }
            }
            out + "</instanceTypeSet>"
        }
        "DescribeInstanceTypeOfferings" => {
            let zones = list("Filter.1.Value.");
            let mut out = String::from("<instanceTypeOfferingSet>");
            // A few, as every region of the bench has them.
            for name in table().keys().filter(|n| {
                ["t3.", "m5.", "m5a.", "c5.", "r5.", "m6i.", "m6g."]
                    .iter()
                    .any(|f| n.starts_with(f))
            }) {
                for zone in &zones {
                    if !zone.starts_with(&state.config.region) {
                        continue;
                    }
                    out.push_str("<item>");
                    xml::leaf(&mut out, "instanceType", name);
                    xml::leaf(&mut out, "locationType", "availability-zone");
                    xml::leaf(&mut out, "location", zone);
                    out.push_str("</item>");
                }
            }
            out + "</instanceTypeOfferingSet>"
        }
        _ => return None,
    };
    Some(xml_reply(
        200,
        format!(
            "<{0}Response xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\"><requestId>{1}</requestId>{body}</{0}Response>",
            req.action,
            unique_id()
        ),
    ))
}

fn described(out: &mut String, name: &str, row: Row) {
    let (vcpus, mib, interfaces, addresses, arm, _, nitro, _) = row;
    let arch = if arm == 1 { "arm64" } else { "x86_64" };
    let hypervisor = if nitro == 1 { "nitro" } else { "xen" };
    out.push_str(&format!(
        "<item><instanceType>{name}</instanceType><bareMetal>false</bareMetal><hypervisor>{hypervisor}</hypervisor>\
         <processorInfo><supportedArchitectures><item>{arch}</item></supportedArchitectures></processorInfo>\
         <vCpuInfo><defaultVCpus>{vcpus}</defaultVCpus></vCpuInfo><memoryInfo><sizeInMiB>{mib}</sizeInMiB></memoryInfo>\
         <networkInfo><maximumNetworkInterfaces>{interfaces}</maximumNetworkInterfaces><defaultNetworkCardIndex>0</defaultNetworkCardIndex>\
         <networkCards><item><networkCardIndex>0</networkCardIndex><maximumNetworkInterfaces>{interfaces}</maximumNetworkInterfaces></item></networkCards>\
         <ipv4AddressesPerInterface>{addresses}</ipv4AddressesPerInterface></networkInfo></item>"
    ));
}
