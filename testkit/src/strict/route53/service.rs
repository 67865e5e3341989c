//! The REST-XML calls of Route 53.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use serde_json::{Value, json};

use super::batch::{self, Action, Context};
use super::record::{Key, RecordSet, bare_zone_id, normal_name, valid_domain_name};
use super::{NAMESPACE, Store, Zone, first_records, short_id};
use crate::strict::State;
use crate::strict::http::{Refusal, Reply, Req, xml_reply};
use crate::strict::xml::{self, Element};

/// Operation of a method and path.
pub(crate) fn action_of(req: &Req) -> &'static str {
    let segments = req.segments();
    let parts: Vec<&str> = segments.iter().skip(1).map(String::as_str).collect();
    match (&req.method, parts.as_slice()) {
        (&Method::POST, ["hostedzone"]) => "CreateHostedZone",
        (&Method::GET, ["hostedzone"]) => "ListHostedZones",
        (&Method::GET, ["hostedzonesbyname"]) => "ListHostedZonesByName",
        (&Method::GET, ["hostedzonesbyvpc"]) => "ListHostedZonesByVPC",
        (&Method::GET, ["hostedzonecount"]) => "GetHostedZoneCount",
        (&Method::GET, ["hostedzonelimit", ..]) => "GetHostedZoneLimit",
        (&Method::GET, ["hostedzone", _]) => "GetHostedZone",
        (&Method::DELETE, ["hostedzone", _]) => "DeleteHostedZone",
        (&Method::POST, ["hostedzone", _]) => "UpdateHostedZoneComment",
        (&Method::POST, ["hostedzone", _, "rrset"]) => "ChangeResourceRecordSets",
        (&Method::GET, ["hostedzone", _, "rrset"]) => "ListResourceRecordSets",
        (&Method::POST, ["hostedzone", _, "associatevpc"]) => "AssociateVPCWithHostedZone",
        (&Method::GET, ["change", _]) => "GetChange",
        (&Method::GET, ["tags", _, _]) => "ListTagsForResource",
        (&Method::POST, ["tags", _]) => "ListTagsForResources",
        (&Method::POST, ["tags", _, _]) => "ChangeTagsForResource",
        (&Method::POST, ["healthcheck"]) => "CreateHealthCheck",
        (&Method::GET, ["healthcheck"]) => "ListHealthChecks",
        (&Method::GET, ["healthcheck", _]) => "GetHealthCheck",
        (&Method::POST, ["healthcheck", _]) => "UpdateHealthCheck",
        (&Method::DELETE, ["healthcheck", _]) => "DeleteHealthCheck",
        _ => "Unknown",
    }
}

/// What the call log keeps of a call.
pub(crate) fn params_of(req: &Req) -> Value {
    let segments = req.segments();
    let mut params = serde_json::Map::new();
    if let ([_, kind, id, ..], true) = (segments.as_slice(), segments.len() > 2) {
        let key = match kind.as_str() {
            "hostedzone" => "zone",
            "change" => "change",
            _ => "resource",
        };
        params.insert(
            key.into(),
            json!(
                segments
                    .get(if kind == "tags" { 3 } else { 2 })
                    .unwrap_or(id)
            ),
        );
    }
    for (key, value) in &req.query {
        params.insert(key.clone(), json!(value));
    }
    if let Ok(root) = Element::parse(&String::from_utf8_lossy(&req.body)) {
        if let Some(name) = root.text_of("Name") {
            params.insert("name".into(), json!(name));
        }
        let mut changes = Vec::new();
        root.find_all("Change", &mut changes);
        if !changes.is_empty() {
            let changes: Vec<Value> = changes.iter().map(|c| change_json(c)).collect();
            params.insert("changes".into(), json!(changes));
        }
    }
    Value::Object(params)
}

fn change_json(change: &Element) -> Value {
    let record = change
        .child("ResourceRecordSet")
        .cloned()
        .unwrap_or_default();
    let mut values = Vec::new();
    record.find_all("Value", &mut values);
    let mut out = json!({
        "action": change.text_of("Action"),
        "name": normal_name(record.text_of("Name").unwrap_or("")),
        "type": record.text_of("Type"),
    });
    let mut put = |key: &str, value: Option<&str>| {
        if let Some(value) = value {
            out[key] = json!(value);
        }
    };
    put("set_id", record.text_of("SetIdentifier"));
    put("ttl", record.text_of("TTL"));
    put("weight", record.text_of("Weight"));
    put(
        "alias",
        record
            .child("AliasTarget")
            .and_then(|a| a.text_of("DNSName")),
    );
    if !values.is_empty() {
        out["values"] = json!(values.iter().map(|v| v.text.clone()).collect::<Vec<_>>());
    }
    out
}

pub(crate) async fn handle(state: &State, req: &Req) -> Reply {
    let over_rate = state.lock_route53().over_rate();
    if over_rate {
        return Refusal::new(400, "Throttling", "Rate exceeded").reply("route53");
    }
    let answer = match req.action.as_str() {
        "CreateHostedZone" => create_zone(state, req).await,
        "ListHostedZones" => list_zones(state, req),
        "ListHostedZonesByName" => list_zones_by_name(state, req),
        "ListHostedZonesByVPC" => list_zones_by_vpc(state, req),
        "GetHostedZoneCount" => Ok(xml_reply(200, {
            let count = state.lock_route53().zones.len();
            document("GetHostedZoneCountResponse", |out| {
                xml::leaf(out, "HostedZoneCount", &count.to_string());
            })
        })),
        "GetHostedZoneLimit" => zone_limit(state, req),
        "GetHostedZone" => get_zone(state, req),
        "DeleteHostedZone" => delete_zone(state, req),
        "UpdateHostedZoneComment" => update_comment(state, req),
        "AssociateVPCWithHostedZone" => associate_vpc(state, req),
        "ChangeResourceRecordSets" => change_records(state, req).await,
        "ListResourceRecordSets" => list_records(state, req),
        "GetChange" => get_change(state, req),
        "ListTagsForResource" | "ListTagsForResources" | "ChangeTagsForResource" => {
            tags(state, req).await
        }
        action if action.ends_with("HealthCheck") || action.ends_with("HealthChecks") => {
            return state.forward(req).await;
        }
        _ => Err(Refusal::new(
            404,
            "UnknownOperationException",
            format!(
                "the strict layer knows no Route 53 call {} {}",
                req.method, req.path
            ),
        )),
    };
    answer.unwrap_or_else(|refusal| refusal.reply("route53"))
}

type Answer = Result<Reply, Refusal>;

fn document(root: &str, fill: impl FnOnce(&mut String)) -> String {
    let mut out = format!("<{root} xmlns=\"{NAMESPACE}\">");
    fill(&mut out);
    xml::close(&mut out, root);
    out
}

fn body(req: &Req) -> Result<Element, Refusal> {
    Element::parse(&String::from_utf8_lossy(&req.body))
        .map_err(|why| Refusal::new(400, "MalformedInput", format!("Unparseable XML: {why}")))
}

fn invalid(message: impl Into<String>) -> Refusal {
    Refusal::new(400, "InvalidInput", message)
}

fn zone_id(req: &Req, index: usize) -> String {
    bare_zone_id(&req.segments().get(index).cloned().unwrap_or_default()).to_owned()
}

fn zone_of<'a>(store: &'a Store, id: &str) -> Result<&'a Zone, Refusal> {
    store.zones.get(id).ok_or_else(|| no_zone(id))
}

fn no_zone(id: &str) -> Refusal {
    Refusal::new(
        404,
        "NoSuchHostedZone",
        format!("No hosted zone found with ID: {id}"),
    )
}

fn write_zone(out: &mut String, zone: &Zone) {
    xml::open(out, "HostedZone");
    xml::leaf(out, "Id", &format!("/hostedzone/{}", zone.id));
    xml::leaf(out, "Name", &zone.name);
    xml::leaf(out, "CallerReference", &zone.caller_reference);
    xml::open(out, "Config");
    if let Some(comment) = &zone.comment {
        xml::leaf(out, "Comment", comment);
    }
    xml::leaf(out, "PrivateZone", &zone.private.to_string());
    xml::close(out, "Config");
    xml::leaf(
        out,
        "ResourceRecordSetCount",
        &zone.records.len().to_string(),
    );
    xml::close(out, "HostedZone");
}

fn write_change(state: &State, out: &mut String, info: &super::ChangeInfo) {
    xml::open(out, "ChangeInfo");
    xml::leaf(out, "Id", &format!("/change/{}", info.id));
    let done = info.at.elapsed() >= state.config.insync_delay;
    xml::leaf(out, "Status", if done { "INSYNC" } else { "PENDING" });
    xml::leaf(out, "SubmittedAt", &info.submitted.to_string());
    xml::close(out, "ChangeInfo");
}

fn write_delegation(out: &mut String, zone: &Zone) {
    xml::open(out, "DelegationSet");
    xml::open(out, "NameServers");
    for server in &zone.name_servers {
        xml::leaf(out, "NameServer", server.trim_end_matches('.'));
    }
    xml::close(out, "NameServers");
    xml::close(out, "DelegationSet");
}

fn write_vpc(out: &mut String, (region, id): &(String, String)) {
    xml::open(out, "VPC");
    xml::leaf(out, "VPCRegion", region);
    xml::leaf(out, "VPCId", id);
    xml::close(out, "VPC");
}

fn vpc_of(element: &Element) -> Option<(String, String)> {
    let vpc = element.child("VPC")?;
    Some((
        vpc.text_of("VPCRegion")?.to_owned(),
        vpc.text_of("VPCId")?.to_owned(),
    ))
}

async fn create_zone(state: &State, req: &Req) -> Answer {
    let root = body(req)?;
    let raw = root.text_of("Name").unwrap_or("");
    if !valid_domain_name(raw) {
        return Err(Refusal::new(
            400,
            "InvalidDomainName",
            format!("The domain name is not valid: '{raw}'"),
        ));
    }
    let reference = root
        .text_of("CallerReference")
        .filter(|r| !r.is_empty())
        .ok_or_else(|| invalid("Missing field 'CallerReference'"))?
        .to_owned();
    let config = root.child("HostedZoneConfig");
    let vpc = vpc_of(&root);
    let private = vpc.is_some();
    if config.and_then(|c| c.text_of("PrivateZone")) == Some("true") && !private {
        return Err(invalid(
            "When you're creating a private hosted zone, you must specify a VPC",
        ));
    }
    if let Some((_, id)) = &vpc
        && !state.vpc_exists(&req.who, id).await
    {
        return Err(Refusal::new(
            400,
            "InvalidVPCId",
            format!("The VPC: {id} you have provided does not exist"),
        ));
    }
    let name = normal_name(raw);
    let mut store = state.lock_route53();
    if let Some(other) = store
        .zones
        .values()
        .find(|z| z.caller_reference == reference)
    {
        return Err(Refusal::new(
            409,
            "HostedZoneAlreadyExists",
            format!(
                "A hosted zone has already been created with the specified caller reference ({}).",
                other.id
            ),
        ));
    }
    let id = format!("Z{}", short_id(20));
    let number = store.zones.len() * 4 + 1;
    let name_servers: Vec<String> = ["com", "net", "org", "co.uk"]
        .iter()
        .enumerate()
        .map(|(i, tld)| format!("ns-{}.awsdns-{:02}.{tld}.", number + i * 512, number % 64))
        .collect();
    let zone = Zone {
        id: id.clone(),
        records: first_records(&name, &name_servers),
        name,
        caller_reference: reference,
        comment: config.and_then(|c| c.text_of("Comment")).map(str::to_owned),
        private,
        vpcs: vpc.into_iter().collect(),
        tags: BTreeMap::new(),
        name_servers,
    };
    store.zones.insert(id.clone(), zone.clone());
    let info = store.submit();
    let text = document("CreateHostedZoneResponse", |out| {
        write_zone(out, &zone);
        write_change(state, out, info);
        if zone.private {
            zone.vpcs.iter().for_each(|v| write_vpc(out, v));
        } else {
            write_delegation(out, &zone);
        }
    });
    let mut reply = xml_reply(201, text);
    if let Ok(location) =
        format!("https://route53.amazonaws.com/2013-04-01/hostedzone/{id}").parse()
    {
        reply.headers_mut().insert(http::header::LOCATION, location);
    }
    Ok(reply)
}

fn max_items(req: &Req, name: &str, most: usize) -> Result<usize, Refusal> {
    match req.query(name) {
        None => Ok(most),
        Some(text) => match text.parse::<usize>() {
            Ok(n) if n > 0 => Ok(n.min(most)),
            _ => Err(invalid(format!("{name} must be 1 to {most}, not '{text}'"))),
        },
    }
}

fn list_zones(state: &State, req: &Req) -> Answer {
    let limit = max_items(req, "maxitems", 100)?;
    let marker = req.query("marker");
    let store = state.lock_route53();
    if let Some(marker) = marker
        && !store.zones.contains_key(marker)
    {
        return Err(invalid(format!("Invalid marker: {marker}")));
    }
    let mut zones: Vec<&Zone> = store
        .zones
        .range(marker.unwrap_or("").to_owned()..)
        .map(|(_, z)| z)
        .collect();
    let next = zones.get(limit).map(|z| z.id.clone());
    zones.truncate(limit);
    Ok(xml_reply(
        200,
        document("ListHostedZonesResponse", |out| {
            xml::open(out, "HostedZones");
            zones.iter().for_each(|z| write_zone(out, z));
            xml::close(out, "HostedZones");
            if let Some(marker) = marker {
                xml::leaf(out, "Marker", marker);
            }
            xml::leaf(out, "IsTruncated", &next.is_some().to_string());
            if let Some(next) = &next {
                xml::leaf(out, "NextMarker", next);
            }
            xml::leaf(out, "MaxItems", &limit.to_string());
        }),
    ))
}

fn list_zones_by_name(state: &State, req: &Req) -> Answer {
    let limit = max_items(req, "maxitems", 100)?;
    let start = req.query("dnsname").map(normal_name);
    let start_id = req.query("hostedzoneid").map(bare_zone_id);
    if start_id.is_some() && start.is_none() {
        return Err(invalid(
            "If you specify hostedzoneid, you must also specify dnsname",
        ));
    }
    let store = state.lock_route53();
    let mut zones: Vec<(Key, &Zone)> = store
        .zones
        .values()
        .map(|z| (Key::new(&z.name, "", &z.id), z))
        .collect();
    zones.sort_by(|a, b| a.0.cmp(&b.0));
    if let Some(start) = &start {
        let first = Key::new(start, "", start_id.unwrap_or(""));
        zones.retain(|(key, _)| *key >= first);
    }
    let next = zones
        .get(limit)
        .map(|(_, z)| (z.name.clone(), z.id.clone()));
    zones.truncate(limit);
    Ok(xml_reply(
        200,
        document("ListHostedZonesByNameResponse", |out| {
            xml::open(out, "HostedZones");
            zones.iter().for_each(|(_, z)| write_zone(out, z));
            xml::close(out, "HostedZones");
            if let Some(name) = &start {
                xml::leaf(out, "DNSName", name);
            }
            xml::leaf(out, "IsTruncated", &next.is_some().to_string());
            if let Some((name, id)) = &next {
                xml::leaf(out, "NextDNSName", name);
                xml::leaf(out, "NextHostedZoneId", id);
            }
            xml::leaf(out, "MaxItems", &limit.to_string());
        }),
    ))
}

fn list_zones_by_vpc(state: &State, req: &Req) -> Answer {
    let vpc = req.query("vpcid").unwrap_or("").to_owned();
    let store = state.lock_route53();
    Ok(xml_reply(
        200,
        document("ListHostedZonesByVPCResponse", |out| {
            xml::open(out, "HostedZoneSummaries");
            for zone in store
                .zones
                .values()
                .filter(|z| z.vpcs.iter().any(|v| v.1 == vpc))
            {
                xml::open(out, "HostedZoneSummary");
                xml::leaf(out, "HostedZoneId", &zone.id);
                xml::leaf(out, "Name", &zone.name);
                xml::open(out, "Owner");
                xml::leaf(out, "OwningAccount", &state.config.account);
                xml::close(out, "Owner");
                xml::close(out, "HostedZoneSummary");
            }
            xml::close(out, "HostedZoneSummaries");
            xml::leaf(out, "MaxItems", "100");
        }),
    ))
}

fn zone_limit(state: &State, req: &Req) -> Answer {
    let segments = req.segments();
    let id = bare_zone_id(segments.get(2).map_or("", String::as_str)).to_owned();
    let kind = segments.get(3).cloned().unwrap_or_default();
    let store = state.lock_route53();
    let zone = zone_of(&store, &id)?;
    let (value, count) = match kind.as_str() {
        "MAX_RRSETS_BY_ZONE" => (10_000, zone.records.len()),
        "MAX_VPCS_ASSOCIATED_BY_ZONE" => (300, zone.vpcs.len()),
        _ => return Err(invalid(format!("unknown limit type '{kind}'"))),
    };
    Ok(xml_reply(
        200,
        document("GetHostedZoneLimitResponse", |out| {
            xml::open(out, "Limit");
            xml::leaf(out, "Type", &kind);
            xml::leaf(out, "Value", &value.to_string());
            xml::close(out, "Limit");
            xml::leaf(out, "Count", &count.to_string());
        }),
    ))
}

fn get_zone(state: &State, req: &Req) -> Answer {
    let store = state.lock_route53();
    let zone = zone_of(&store, &zone_id(req, 2))?;
    Ok(xml_reply(
        200,
        document("GetHostedZoneResponse", |out| {
            write_zone(out, zone);
            if zone.private {
                xml::open(out, "VPCs");
                zone.vpcs.iter().for_each(|v| write_vpc(out, v));
                xml::close(out, "VPCs");
            } else {
                write_delegation(out, zone);
            }
        }),
    ))
}

fn delete_zone(state: &State, req: &Req) -> Answer {
    let id = zone_id(req, 2);
    let mut store = state.lock_route53();
    let zone = zone_of(&store, &id)?;
    if zone
        .records
        .values()
        .any(|r| r.name != zone.name || !matches!(r.rtype.as_str(), "NS" | "SOA"))
    {
        return Err(Refusal::new(
            400,
            "HostedZoneNotEmpty",
            "The specified hosted zone contains non-required resource record sets and so cannot be deleted.",
        ));
    }
    store.zones.remove(&id);
    let info = store.submit();
    Ok(xml_reply(
        200,
        document("DeleteHostedZoneResponse", |out| {
            write_change(state, out, info)
        }),
    ))
}

fn update_comment(state: &State, req: &Req) -> Answer {
    let comment = body(req)?.text_of("Comment").map(str::to_owned);
    let id = zone_id(req, 2);
    let mut store = state.lock_route53();
    let zone = store.zones.get_mut(&id).ok_or_else(|| no_zone(&id))?;
    zone.comment = comment;
    let zone = zone.clone();
    Ok(xml_reply(
        200,
        document("UpdateHostedZoneCommentResponse", |out| {
            write_zone(out, &zone)
        }),
    ))
}

fn associate_vpc(state: &State, req: &Req) -> Answer {
    let vpc = vpc_of(&body(req)?).ok_or_else(|| invalid("Missing field 'VPC'"))?;
    let id = zone_id(req, 2);
    let mut store = state.lock_route53();
    let zone = store.zones.get_mut(&id).ok_or_else(|| no_zone(&id))?;
    if !zone.private {
        return Err(Refusal::new(
            400,
            "PublicZoneVPCAssociation",
            format!("Cannot associate a VPC with public hosted zone {id}"),
        ));
    }
    if !zone.vpcs.contains(&vpc) {
        zone.vpcs.push(vpc);
    }
    let info = store.submit();
    Ok(xml_reply(
        200,
        document("AssociateVPCWithHostedZoneResponse", |out| {
            write_change(state, out, info)
        }),
    ))
}

async fn change_records(state: &State, req: &Req) -> Answer {
    let root = body(req)?;
    let id = zone_id(req, 2);
    let mut elements = Vec::new();
    root.find_all("Change", &mut elements);
    if elements.is_empty() {
        return Err(invalid(
            "Invalid request: Expected at least one Change in ChangeBatch",
        ));
    }
    let mut changes = Vec::new();
    for element in elements {
        let word = element.text_of("Action").unwrap_or("").trim();
        let action = Action::parse(word).ok_or_else(|| {
            invalid(format!(
                "Invalid request: Action must be CREATE, DELETE or UPSERT, not '{word}'"
            ))
        })?;
        let record = element.child("ResourceRecordSet").ok_or_else(|| {
            invalid("Invalid request: Missing field 'ResourceRecordSet' in Change")
        })?;
        changes.push((action, RecordSet::parse(record, word).map_err(invalid)?));
    }
    let named: BTreeSet<String> = changes
        .iter()
        .filter_map(|(_, r)| r.health_check.clone())
        .collect();
    let mut unknown = BTreeSet::new();
    for check in named {
        if !state.health_check_exists(&req.who, &check).await {
            unknown.insert(check);
        }
    }
    let mut store = state.lock_route53();
    let zone = zone_of(&store, &id)?;
    let other = |id: &str| {
        store
            .zones
            .get(id)
            .map(|z| (z.name.clone(), z.records.clone()))
    };
    let context = Context {
        zone_id: &id,
        zone_name: &zone.name,
        other_zones: &other,
        unknown_health_checks: &unknown,
    };
    let next = batch::apply(&context, &zone.records, &changes)?;
    if let Some(zone) = store.zones.get_mut(&id) {
        zone.records = next;
    }
    let info = store.submit();
    let reply = xml_reply(
        200,
        document("ChangeResourceRecordSetsResponse", |out| {
            write_change(state, out, info)
        }),
    );
    drop(store);
    state.zone_changed();
    Ok(reply)
}

fn list_records(state: &State, req: &Req) -> Answer {
    // 300 is the most that one page holds, whatever is asked for.
    let limit = max_items(req, "maxitems", 300)?;
    let (name, rtype, set_id) = (
        req.query("name").map(normal_name),
        req.query("type"),
        req.query("identifier"),
    );
    if rtype.is_some() && name.is_none() {
        return Err(invalid(
            "The input is not valid: type was given without name",
        ));
    }
    if set_id.is_some() && rtype.is_none() {
        return Err(invalid(
            "The input is not valid: identifier was given without name and type",
        ));
    }
    let store = state.lock_route53();
    let zone = zone_of(&store, &zone_id(req, 2))?;
    let first = match &name {
        Some(name) => Key::new(name, rtype.unwrap_or(""), set_id.unwrap_or("")),
        None => Key {
            order: String::new(),
            rtype: String::new(),
            set_id: String::new(),
        },
    };
    let mut records: Vec<&RecordSet> = zone
        .records
        .range(&first..)
        .take(limit + 1)
        .map(|(_, r)| r)
        .collect();
    let next = records.get(limit).copied();
    records.truncate(limit);
    Ok(xml_reply(
        200,
        document("ListResourceRecordSetsResponse", |out| {
            xml::open(out, "ResourceRecordSets");
            records.iter().for_each(|r| r.write(out));
            xml::close(out, "ResourceRecordSets");
            xml::leaf(out, "IsTruncated", &next.is_some().to_string());
            if let Some(next) = next {
                xml::leaf(out, "NextRecordName", &next.name);
                xml::leaf(out, "NextRecordType", &next.rtype);
                if let Some(id) = &next.set_id {
                    xml::leaf(out, "NextRecordIdentifier", id);
                }
            }
            xml::leaf(out, "MaxItems", &limit.to_string());
        }),
    ))
}

fn get_change(state: &State, req: &Req) -> Answer {
    let id = req.segments().get(2).cloned().unwrap_or_default();
    let store = state.lock_route53();
    let info = store.changes.get(&id).ok_or_else(|| {
        Refusal::new(
            404,
            "NoSuchChange",
            format!("Could not find resource with ID: {id}"),
        )
    })?;
    Ok(xml_reply(
        200,
        document("GetChangeResponse", |out| write_change(state, out, info)),
    ))
}

async fn tags(state: &State, req: &Req) -> Answer {
    let segments = req.segments();
    let kind = segments.get(2).cloned().unwrap_or_default();
    if kind == "healthcheck" {
        return Ok(state.forward(req).await);
    }
    if kind != "hostedzone" {
        return Err(invalid(format!("unknown resource type '{kind}'")));
    }
    let mut store = state.lock_route53();
    let write_set = |out: &mut String, zone: &Zone| {
        xml::open(out, "ResourceTagSet");
        xml::leaf(out, "ResourceType", "hostedzone");
        xml::leaf(out, "ResourceId", &zone.id);
        xml::open(out, "Tags");
        for (key, value) in &zone.tags {
            xml::open(out, "Tag");
            xml::leaf(out, "Key", key);
            xml::leaf(out, "Value", value);
            xml::close(out, "Tag");
        }
        xml::close(out, "Tags");
        xml::close(out, "ResourceTagSet");
    };
    match req.action.as_str() {
        "ListTagsForResource" => {
            let zone = zone_of(&store, &zone_id(req, 3))?;
            Ok(xml_reply(
                200,
                document("ListTagsForResourceResponse", |out| write_set(out, zone)),
            ))
        }
        "ListTagsForResources" => {
            let root = body(req)?;
            let mut ids = Vec::new();
            root.find_all("ResourceId", &mut ids);
            if ids.is_empty() || ids.len() > 10 {
                return Err(invalid("ResourceIds must name 1 to 10 hosted zones"));
            }
            let zones = ids
                .iter()
                .map(|id| zone_of(&store, bare_zone_id(&id.text)))
                .collect::<Result<Vec<_>, _>>()?;
            Ok(xml_reply(
                200,
                document("ListTagsForResourcesResponse", |out| {
                    xml::open(out, "ResourceTagSets");
                    zones.iter().for_each(|z| write_set(out, z));
                    xml::close(out, "ResourceTagSets");
                }),
            ))
        }
        _ => {
            let root = body(req)?;
            let id = zone_id(req, 3);
            let zone = store.zones.get_mut(&id).ok_or_else(|| no_zone(&id))?;
            let mut next = zone.tags.clone();
            let mut keys = Vec::new();
            if let Some(remove) = root.child("RemoveTagKeys") {
                remove.find_all("Key", &mut keys);
            }
            for key in keys {
                next.remove(&key.text);
            }
            let mut added = Vec::new();
            if let Some(add) = root.child("AddTags") {
                add.find_all("Tag", &mut added);
            }
            for tag in added {
                next.insert(
                    tag.text_of("Key").unwrap_or("").to_owned(),
                    tag.text_of("Value").unwrap_or("").to_owned(),
                );
            }
            if next.len() > 10 {
                return Err(invalid("A hosted zone can have 10 tags at most"));
            }
            zone.tags = next;
            Ok(xml_reply(
                200,
                document("ChangeTagsForResourceResponse", |_| {}),
            ))
        }
    }
}
