//! Numbers in AWS CLI output. A text or a map where a number belongs would be read as 0: a company without addresses, machines without memory.

use super::gather::Doc;
use crate::error::{Error, Kind, Result};
use serde_json::Value;

/// What belongs there.
#[derive(Clone, Copy)]
enum N {
    /// A whole number from 0 to 4294967295.
    Whole,
    /// A port, or -1 for all.
    Port,
    /// Any number.
    Any,
}

/// Every number that the inventory reads; `[]` is each item of a list.
const NUMBERS: &[(N, &str)] = &[
    (N::Whole, "Subnets[].AvailableIpAddressCount"),
    (N::Port, "SecurityGroups[].IpPermissions[].FromPort"),
    (N::Port, "SecurityGroups[].IpPermissions[].ToPort"),
    (N::Whole, "Volumes[].Size"),
    (N::Whole, "AutoScalingGroups[].MinSize"),
    (N::Whole, "AutoScalingGroups[].MaxSize"),
    (N::Whole, "AutoScalingGroups[].DesiredCapacity"),
    (N::Whole, "InstanceTypes[].VCpuInfo.DefaultVCpus"),
    (N::Whole, "InstanceTypes[].MemoryInfo.SizeInMiB"),
    (
        N::Whole,
        "InstanceTypes[].NetworkInfo.DefaultNetworkCardIndex",
    ),
    (
        N::Whole,
        "InstanceTypes[].NetworkInfo.MaximumNetworkInterfaces",
    ),
    (
        N::Whole,
        "InstanceTypes[].NetworkInfo.Ipv4AddressesPerInterface",
    ),
    (
        N::Whole,
        "InstanceTypes[].NetworkInfo.NetworkCards[].NetworkCardIndex",
    ),
    (
        N::Whole,
        "InstanceTypes[].NetworkInfo.NetworkCards[].MaximumNetworkInterfaces",
    ),
    (N::Whole, "InstanceTypes[].GpuInfo.Gpus[].Count"),
    (
        N::Whole,
        "InstanceTypes[].InstanceStorageInfo.TotalSizeInGB",
    ),
    (N::Any, "Quotas[].Value"),
    (N::Any, "Quota.Value"),
];

/// Refuses a document with a value of another shape where a number belongs.
pub(super) fn numbers(doc: &Doc) -> Result<()> {
    for (kind, pattern) in NUMBERS {
        let parts: Vec<&str> = pattern.split('.').collect();
        if let Some((path, found)) = first(&doc.value, &parts, *kind, String::new()) {
            let wanted = match kind {
                N::Whole => "a whole number",
                N::Port => "a port",
                N::Any => "a number",
            };
            return Err(Error::new(
                Kind::BadInput,
                format!("{path} is {found} where {wanted} belongs"),
            )
            .at(&doc.at)
            .remedy("Give the output of the AWS CLI as it is (`--output json`)."));
        }
    }
    Ok(())
}

fn first(value: &Value, parts: &[&str], kind: N, path: String) -> Option<(String, String)> {
    let Some((part, rest)) = parts.split_first() else {
        let right = match kind {
            N::Whole => value.as_u64().is_some_and(|n| u32::try_from(n).is_ok()),
            N::Port => value.as_i64().is_some_and(|n| (-1..=65_535).contains(&n)),
            N::Any => value.is_number(),
        };
        return (!right && !value.is_null()).then(|| (path, shown(value)));
    };
    let key = part.trim_end_matches("[]");
    let inner = value.get(key)?;
    let path = if path.is_empty() {
        key.to_string()
    } else {
        format!("{path}.{key}")
    };
    if !part.ends_with("[]") {
        return first(inner, rest, kind, path);
    }
    inner
        .as_array()?
        .iter()
        .enumerate()
        .find_map(|(n, item)| first(item, rest, kind, format!("{path}[{n}]")))
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(s) => format!("the text {s:?}"),
        Value::Object(_) => "a map".into(),
        Value::Array(_) => "a list".into(),
        other => other.to_string(),
    }
}
