//! Reads all public zones through Route 53's own API (XML over HTTP).

use std::net::SocketAddr;

use bytes::Bytes;
use http::{Request, header};
use http_body_util::Full;
use serde::Deserialize;

use super::zone::{Alias, RecordSet, Zone};
use crate::apps::http::ask;

/// The most pages that are read of one zone: 200 pages of 300 record sets.
const MAX_PAGES: usize = 200;
/// The access key id of the bench's own polling; the emulator looks at the service only.
pub const POLLER_KEY: &str = "BENCHDNS";

fn authorization() -> String {
    format!(
        "AWS4-HMAC-SHA256 Credential={POLLER_KEY}/20260101/us-east-1/route53/aws4_request, SignedHeaders=host, Signature=00"
    )
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ZonesPage {
    #[serde(default)]
    hosted_zones: HostedZones,
    #[serde(default)]
    is_truncated: bool,
    next_marker: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct HostedZones {
    #[serde(rename = "HostedZone", default)]
    list: Vec<HostedZone>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct HostedZone {
    id: String,
    name: String,
    config: Option<ZoneConfig>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ZoneConfig {
    #[serde(default)]
    private_zone: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RecordsPage {
    #[serde(default)]
    resource_record_sets: RecordSets,
    #[serde(default)]
    is_truncated: bool,
    next_record_name: Option<String>,
    next_record_type: Option<String>,
    next_record_identifier: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct RecordSets {
    #[serde(rename = "ResourceRecordSet", default)]
    list: Vec<WireRecordSet>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct WireRecordSet {
    name: String,
    r#type: String,
    #[serde(rename = "TTL")]
    ttl: Option<u32>,
    weight: Option<u64>,
    resource_records: Option<ResourceRecords>,
    alias_target: Option<AliasTarget>,
}

#[derive(Debug, Deserialize)]
struct ResourceRecords {
    #[serde(rename = "ResourceRecord", default)]
    list: Vec<ResourceRecord>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ResourceRecord {
    value: String,
}

#[derive(Debug, Deserialize)]
struct AliasTarget {
    #[serde(rename = "DNSName")]
    dns_name: String,
    #[serde(rename = "HostedZoneId")]
    zone_id: String,
}

impl From<WireRecordSet> for RecordSet {
    fn from(wire: WireRecordSet) -> Self {
        RecordSet {
            name: super::zone::normal(&wire.name),
            kind: wire.r#type,
            ttl: wire.ttl,
            values: wire
                .resource_records
                .into_iter()
                .flat_map(|records| records.list)
                .map(|record| record.value)
                .collect(),
            alias: wire.alias_target.map(|alias| Alias {
                name: super::zone::normal(&alias.dns_name),
                zone_id: alias.zone_id,
            }),
            weight: wire.weight,
        }
    }
}

async fn get(endpoint: SocketAddr, path: &str) -> Result<String, String> {
    let request = Request::get(path)
        .header(header::HOST, "route53.amazonaws.com")
        .header(header::AUTHORIZATION, authorization())
        .body(Full::new(Bytes::new()))
        .map_err(|error| format!("{path}: {error}"))?;
    let response = ask(endpoint, request)
        .await
        .map_err(|error| format!("{path}: {error}"))?;
    let body = String::from_utf8_lossy(response.body()).into_owned();
    if !response.status().is_success() {
        return Err(format!("{path}: {}: {body}", response.status()));
    }
    Ok(body)
}

fn parse<'de, T: Deserialize<'de>>(path: &str, body: &'de str) -> Result<T, String> {
    quick_xml::de::from_str(body).map_err(|error| format!("{path}: {error}: {body}"))
}

/// Percent-encodes a query value.
fn encode(value: &str) -> String {
    value
        .bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

/// All public zones with all their record sets.
pub(super) async fn zones(endpoint: SocketAddr) -> Result<Vec<Zone>, String> {
    let mut zones = Vec::new();
    let mut path = "/2013-04-01/hostedzone".to_owned();
    for _ in 0..MAX_PAGES {
        let body = get(endpoint, &path).await?;
        let page: ZonesPage = parse(&path, &body)?;
        for zone in page.hosted_zones.list {
            if zone
                .config
                .as_ref()
                .is_some_and(|config| config.private_zone)
            {
                continue;
            }
            let id = zone.id.trim_start_matches("/hostedzone/").to_owned();
            let records = records(endpoint, &id).await?;
            zones.push(Zone::new(&zone.name, &id, records));
        }
        match page.next_marker {
            Some(marker) if page.is_truncated => {
                path = format!("/2013-04-01/hostedzone?marker={}", encode(&marker))
            }
            _ => return Ok(zones),
        }
    }
    Err(format!("more than {MAX_PAGES} pages of zones"))
}

async fn records(endpoint: SocketAddr, zone: &str) -> Result<Vec<RecordSet>, String> {
    let mut records = Vec::new();
    let mut path = format!("/2013-04-01/hostedzone/{zone}/rrset");
    for _ in 0..MAX_PAGES {
        let body = get(endpoint, &path).await?;
        let page: RecordsPage = parse(&path, &body)?;
        records.extend(
            page.resource_record_sets
                .list
                .into_iter()
                .map(RecordSet::from),
        );
        let (true, Some(name)) = (page.is_truncated, page.next_record_name) else {
            return Ok(records);
        };
        path = format!("/2013-04-01/hostedzone/{zone}/rrset?name={}", encode(&name));
        if let Some(kind) = page.next_record_type {
            path.push_str(&format!("&type={}", encode(&kind)));
        }
        if let Some(identifier) = page.next_record_identifier {
            path.push_str(&format!("&identifier={}", encode(&identifier)));
        }
    }
    Err(format!(
        "zone {zone}: more than {MAX_PAGES} pages of record sets"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_of_route_53_is_read_with_aliases_ttls_and_the_wildcard_escape() {
        let body = r#"<?xml version="1.0"?>
<ListResourceRecordSetsResponse xmlns="https://route53.amazonaws.com/doc/2013-04-01/"><ResourceRecordSets>
<ResourceRecordSet><Name>\052.shop.test.</Name><Type>A</Type><TTL>20</TTL><ResourceRecords><ResourceRecord><Value>203.0.113.10</Value></ResourceRecord></ResourceRecords></ResourceRecordSet>
<ResourceRecordSet><Name>orders.shop.test.</Name><Type>A</Type><AliasTarget><HostedZoneId>Z32O12XQLNTSW2</HostedZoneId><DNSName>A1-2.eu-west-1.elb.amazonaws.com.</DNSName><EvaluateTargetHealth>true</EvaluateTargetHealth></AliasTarget></ResourceRecordSet>
<ResourceRecordSet><Name>www.shop.test.</Name><Type>TXT</Type><TTL>300</TTL><ResourceRecords><ResourceRecord><Value>"heritage=external-dns,external-dns/owner=shop-blue"</Value></ResourceRecord></ResourceRecords></ResourceRecordSet>
</ResourceRecordSets><IsTruncated>false</IsTruncated><MaxItems>300</MaxItems></ListResourceRecordSetsResponse>"#;
        let page: RecordsPage = parse("/", body).unwrap();
        let records: Vec<RecordSet> = page
            .resource_record_sets
            .list
            .into_iter()
            .map(RecordSet::from)
            .collect();
        assert_eq!(records[0].name, "*.shop.test");
        assert_eq!(records[0].ttl, Some(20));
        assert_eq!(
            records[1].alias.as_ref().unwrap().name,
            "a1-2.eu-west-1.elb.amazonaws.com"
        );
        assert_eq!(records[1].ttl, None);
        assert_eq!(
            records[2].values,
            [r#""heritage=external-dns,external-dns/owner=shop-blue""#]
        );
        assert!(!page.is_truncated);
    }
}
