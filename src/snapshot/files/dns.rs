//! Zones out of `aws route53` output.

use super::gather::{Doc, Found};
use super::not;
use crate::error::{Error, Kind, Result};
use crate::snapshot::model::{NotChecked, ZoneRecords};
use crate::world::dns::{Alias, RecordSet, Zone};
use serde_json::Value;
use std::collections::BTreeMap;

/// Stands for the id of a zone that only its records were given of.
pub const UNKNOWN_ID: &str = "unknown";

pub(super) fn zones(found: &mut Found, missing: &mut Vec<NotChecked>) -> Result<Vec<ZoneRecords>> {
    let mut known: BTreeMap<String, Zone> = BTreeMap::new();
    let mut listings: Vec<Doc> = vec![];
    let mut rest = vec![];
    for doc in std::mem::take(&mut found.aws) {
        if let Some(list) = doc.value.get("HostedZones").and_then(Value::as_array) {
            known.extend(list.iter().filter_map(zone).map(|z| (z.id.clone(), z)));
        } else if let Some(z) = doc.value.get("HostedZone") {
            known.extend(zone(z).map(|z| (z.id.clone(), z)));
        } else if doc.value.get("ResourceRecordSets").is_some() {
            listings.push(doc);
        } else {
            rest.push(doc);
        }
    }
    for doc in rest {
        let keys: Vec<&str> = doc
            .value
            .as_object()
            .map(|o| o.keys().map(String::as_str).collect())
            .unwrap_or_default();
        found
            .unused
            .push(format!("{}: {}", doc.at, keys.join(", ")));
    }
    let mut out: BTreeMap<(String, String), ZoneRecords> = BTreeMap::new();
    for doc in listings {
        let records: Vec<RecordSet> = doc.value["ResourceRecordSets"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|r| record(r).ok_or_else(|| bad(&doc, "a record set here has no Name or Type")))
            .collect::<Result<_>>()?;
        let apex = records
            .iter()
            .find(|r| r.rtype == "SOA")
            .or_else(|| {
                records
                    .iter()
                    .filter(|r| r.rtype == "NS")
                    .min_by_key(|r| r.name.len())
            })
            .map(|r| r.name.clone())
            .or_else(|| doc.value.get("Name").and_then(Value::as_str).map(dns_name));
        // The listing itself names no zone. A file called after the id says which of two zones of one name it is.
        let by_file = known
            .values()
            .find(|z| doc.file.contains(&z.id) && apex.as_ref().is_none_or(|a| *a == z.name));
        let Some(name) = apex.or_else(|| by_file.map(|z| z.name.clone())) else {
            return Err(bad(
                &doc,
                "this listing has neither SOA nor NS, so its zone cannot be told",
            ));
        };
        let same: Vec<&Zone> = known.values().filter(|z| z.name == name).collect();
        let zone = match (by_file, same.as_slice()) {
            (Some(z), _) => z.clone(),
            (None, [z]) => (*z).clone(),
            (None, []) => {
                missing.push(not(
                    &format!("zone/{}.id", name.trim_end_matches('.')),
                    "id and visibility of the zone were not given (`aws route53 list-hosted-zones`)",
                ));
                Zone {
                    id: UNKNOWN_ID.into(),
                    name: name.clone(),
                    private: false,
                }
            }
            (None, _) => {
                return Err(bad(&doc, &format!("there are several zones named {name}, and this listing does not say whose it is"))
                    .remedy("name the file after the zone id, as in Z0123456789.json"));
            }
        };
        let more = ["NextToken", "NextRecordName"]
            .iter()
            .any(|k| doc.value.get(k).is_some_and(|v| !v.is_null()));
        if more || doc.value["IsTruncated"] == true {
            missing.push(not(
                &format!("zone/{}.records", name.trim_end_matches('.')),
                format!("{} is only the beginning of the listing", doc.file),
            ));
        }
        let entry = out
            .entry((zone.name.clone(), zone.id.clone()))
            .or_insert_with(|| ZoneRecords {
                zone,
                records: vec![],
            });
        for r in records {
            // Pages overlap only when somebody gave the same file twice.
            match entry.records.iter().find(|old| old.key() == r.key()) {
                None => entry.records.push(r),
                Some(old) if *old == r => {}
                Some(_) => {
                    return Err(bad(
                        &doc,
                        &format!("{} is listed twice with different content", r.key()),
                    ));
                }
            }
        }
    }
    for zone in known
        .values()
        .filter(|z| !out.contains_key(&(z.name.clone(), z.id.clone())))
    {
        missing.push(not(
            &format!("zone/{}.records", zone.name.trim_end_matches('.')),
            format!(
                "no records of zone {} were given (`aws route53 list-resource-record-sets`)",
                zone.id
            ),
        ));
    }
    if out.is_empty() && known.is_empty() {
        missing.push(not(
            "dns.zones",
            "no zone was given (`aws route53 list-hosted-zones` and `list-resource-record-sets`)",
        ));
    }
    Ok(out.into_values().collect())
}

fn bad(doc: &Doc, why: &str) -> Error {
    Error::new(Kind::BadInput, why).at(&doc.at).remedy(
        "give the whole output of `aws route53 list-resource-record-sets --hosted-zone-id ID`",
    )
}

fn zone(v: &Value) -> Option<Zone> {
    Some(Zone {
        id: v
            .get("Id")?
            .as_str()?
            .trim_start_matches("/hostedzone/")
            .into(),
        name: dns_name(v.get("Name")?.as_str()?),
        private: v
            .pointer("/Config/PrivateZone")
            .and_then(Value::as_bool)
            .unwrap_or_default(),
    })
}

/// Lower case, final dot, `\052` as `*`: the one escape that Route 53 makes out of a character people type.
fn dns_name(name: &str) -> String {
    let name = name.to_lowercase().replace("\\052", "*");
    if name.ends_with('.') {
        name
    } else {
        name + "."
    }
}

fn record(v: &Value) -> Option<RecordSet> {
    let o = v.as_object()?;
    let text = |key: &str| o.get(key).and_then(Value::as_str).map(String::from);
    let alias = o.get("AliasTarget").and_then(|a| {
        Some(Alias {
            zone_id: a.get("HostedZoneId")?.as_str()?.into(),
            name: dns_name(a.get("DNSName")?.as_str()?),
            evaluate_target_health: a
                .get("EvaluateTargetHealth")
                .and_then(Value::as_bool)
                .unwrap_or_default(),
        })
    });
    let known = [
        "Name",
        "Type",
        "TTL",
        "ResourceRecords",
        "AliasTarget",
        "SetIdentifier",
    ];
    Some(RecordSet {
        name: dns_name(&text("Name")?),
        rtype: text("Type")?,
        ttl: o
            .get("TTL")
            .and_then(Value::as_u64)
            .and_then(|t| u32::try_from(t).ok()),
        values: o
            .get("ResourceRecords")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|r| r.get("Value")?.as_str().map(String::from))
            .collect(),
        alias,
        set_identifier: text("SetIdentifier"),
        routing: o
            .iter()
            .filter(|(k, _)| !known.contains(&k.as_str()))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect(),
    })
}
