//! Route 53 through its API: hand-made paging, polite, exact about every field.

use super::aws::{self, AwsBase};
use super::dns_pace::Pace;
use crate::world::dns::{Alias, Change, Dns, RecordSet, Zone};
use crate::world::{Class, Error, Result};
use async_trait::async_trait;
use aws_sdk_route53::types as r53;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Environment variable: requests a second to Route 53, for all of crossfade together. AWS allows an *account* five,
/// and the company's ExternalDNS needs its share.
pub const ROUTE53_RPS: &str = "CROSSFADE_ROUTE53_RPS";
/// Default of [`ROUTE53_RPS`].
pub const DEFAULT_ROUTE53_RPS: f64 = 2.0;

/// Times that a request is repeated at once, at a slower pace each time, while the account is over its rate. Nothing was done by such a request.
const THROTTLED_TRIES: u32 = 12;

pub(super) struct LiveDns {
    aws: Arc<AwsBase>,
    turn: Mutex<Turn>,
}

struct Turn {
    next: Instant,
    pace: Pace,
}

impl LiveDns {
    pub(super) fn new(aws: Arc<AwsBase>) -> Self {
        LiveDns::paced(aws, gap(std::env::var(ROUTE53_RPS).ok().as_deref()))
    }

    pub(super) fn paced(aws: Arc<AwsBase>, gap: Duration) -> Self {
        LiveDns {
            aws,
            turn: Mutex::new(Turn {
                next: Instant::now(),
                pace: Pace::new(gap),
            }),
        }
    }

    /// One request when it is our turn; one that the account has no room for is repeated, more slowly.
    async fn polite<T, F>(&self, ask: impl Fn(aws_sdk_route53::Client) -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let mut tries = 0;
        loop {
            let at = {
                let mut turn = self.turn.lock().await;
                let at = turn.next.max(Instant::now());
                turn.next = at + turn.pace.gap();
                at
            };
            tokio::time::sleep_until(at).await;
            let answer = ask(aws_sdk_route53::Client::new(self.aws.config().await)).await;
            let mut turn = self.turn.lock().await;
            match &answer {
                Err(e) if e.class == Class::Throttled => {
                    turn.pace.throttled();
                    turn.next = turn.next.max(Instant::now() + turn.pace.gap());
                    if tries < THROTTLED_TRIES {
                        tries += 1;
                        continue;
                    }
                }
                _ => turn.pace.answered(),
            }
            return answer;
        }
    }
}

/// Time between two requests. Nonsense in the variable means the default, never "no limit".
fn gap(rps: Option<&str>) -> Duration {
    let rps = rps
        .and_then(|v| v.parse::<f64>().ok())
        .filter(|v| *v > 0.0 && v.is_finite())
        .unwrap_or(DEFAULT_ROUTE53_RPS);
    Duration::from_secs_f64(1.0 / rps)
}

/// Route 53 lists names with octal escapes (`\052.shop.test.`); we keep them plain, and it accepts them plain.
pub(super) fn unescape(name: &str) -> String {
    let bytes = name.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let digits = bytes.get(i + 1..i + 4).filter(|_| bytes[i] == b'\\');
        let value = digits.and_then(|d| {
            let text = std::str::from_utf8(d).ok()?;
            u8::from_str_radix(text, 8).ok()
        });
        // An escaped dot is part of a label, not a separator: plain it would be another name. It stays as it is.
        match value {
            Some(v) if v != b'.' && v != b'\\' => {
                out.push(v);
                i += 4;
            }
            _ => {
                out.push(bytes[i]);
                i += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).to_lowercase()
}

fn with_dot(name: &str) -> String {
    let name = unescape(name);
    if name.ends_with('.') {
        name
    } else {
        format!("{name}.")
    }
}

fn record_from(r: &r53::ResourceRecordSet) -> RecordSet {
    let mut routing = BTreeMap::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(v) = value {
            routing.insert(key.to_string(), v);
        }
    };
    put("Weight", r.weight().map(Into::into));
    put("Region", r.region().map(|v| v.as_str().into()));
    put("Failover", r.failover().map(|v| v.as_str().into()));
    put("MultiValueAnswer", r.multi_value_answer().map(Into::into));
    put("HealthCheckId", r.health_check_id().map(Into::into));
    put(
        "TrafficPolicyInstanceId",
        r.traffic_policy_instance_id().map(Into::into),
    );
    put(
        "GeoLocation",
        r.geo_location().map(|g| {
            object([
                ("ContinentCode", g.continent_code()),
                ("CountryCode", g.country_code()),
                ("SubdivisionCode", g.subdivision_code()),
            ])
        }),
    );
    put(
        "CidrRoutingConfig",
        r.cidr_routing_config()
            .map(|c| json!({"CollectionId": c.collection_id(), "LocationName": c.location_name()})),
    );
    put(
        "GeoProximityLocation",
        r.geo_proximity_location().map(|g| {
            let mut o = object([
                ("AWSRegion", g.aws_region()),
                ("LocalZoneGroup", g.local_zone_group()),
            ]);
            if let Some(c) = g.coordinates() {
                o["Coordinates"] = json!({"Latitude": c.latitude(), "Longitude": c.longitude()});
            }
            if let Some(b) = g.bias() {
                o["Bias"] = b.into();
            }
            o
        }),
    );
    let alias = r.alias_target().map(|a| Alias {
        zone_id: a.hosted_zone_id().into(),
        name: with_dot(a.dns_name()),
        evaluate_target_health: a.evaluate_target_health(),
    });
    RecordSet {
        name: with_dot(r.name()),
        rtype: r.r#type().as_str().into(),
        // Emulators answer an alias with TTL 0; AWS with none.
        ttl: if alias.is_some() {
            None
        } else {
            r.ttl().and_then(|t| u32::try_from(t).ok())
        },
        values: r
            .resource_records()
            .iter()
            .map(|v| v.value().to_string())
            .collect(),
        alias,
        set_identifier: r.set_identifier().map(Into::into),
        routing,
    }
}

fn object<const N: usize>(fields: [(&str, Option<&str>); N]) -> Value {
    Value::Object(
        fields
            .into_iter()
            .filter_map(|(k, v)| Some((k.to_string(), v?.into())))
            .collect(),
    )
}

fn record_to(r: &RecordSet) -> std::result::Result<r53::ResourceRecordSet, String> {
    let bad = |e: aws_sdk_route53::error::BuildError| e.to_string();
    let mut b = r53::ResourceRecordSet::builder()
        .name(&r.name)
        .r#type(r53::RrType::from(r.rtype.as_str()))
        .set_ttl(r.ttl.map(i64::from))
        .set_set_identifier(r.set_identifier.clone());
    for value in &r.values {
        b = b.resource_records(
            r53::ResourceRecord::builder()
                .value(value)
                .build()
                .map_err(bad)?,
        );
    }
    if let Some(a) = &r.alias {
        b = b.alias_target(
            r53::AliasTarget::builder()
                .hosted_zone_id(&a.zone_id)
                .dns_name(&a.name)
                .evaluate_target_health(a.evaluate_target_health)
                .build()
                .map_err(bad)?,
        );
    }
    for (key, value) in &r.routing {
        let text = value.as_str().unwrap_or_default();
        let part = |k: &str| value[k].as_str().map(str::to_string);
        b = match key.as_str() {
            "Weight" => b.set_weight(value.as_i64()),
            "Region" => b.region(r53::ResourceRecordSetRegion::from(text)),
            "Failover" => b.failover(r53::ResourceRecordSetFailover::from(text)),
            "MultiValueAnswer" => b.set_multi_value_answer(value.as_bool()),
            "HealthCheckId" => b.health_check_id(text),
            "TrafficPolicyInstanceId" => b.traffic_policy_instance_id(text),
            "GeoLocation" => b.geo_location(
                r53::GeoLocation::builder()
                    .set_continent_code(part("ContinentCode"))
                    .set_country_code(part("CountryCode"))
                    .set_subdivision_code(part("SubdivisionCode"))
                    .build(),
            ),
            "CidrRoutingConfig" => b.cidr_routing_config(
                r53::CidrRoutingConfig::builder()
                    .set_collection_id(part("CollectionId"))
                    .set_location_name(part("LocationName"))
                    .build()
                    .map_err(bad)?,
            ),
            "GeoProximityLocation" => {
                let mut g = r53::GeoProximityLocation::builder()
                    .set_aws_region(part("AWSRegion"))
                    .set_local_zone_group(part("LocalZoneGroup"))
                    .set_bias(value["Bias"].as_i64().and_then(|v| i32::try_from(v).ok()));
                if let Some(c) = value.get("Coordinates") {
                    g = g.coordinates(
                        r53::Coordinates::builder()
                            .latitude(c["Latitude"].as_str().unwrap_or_default())
                            .longitude(c["Longitude"].as_str().unwrap_or_default())
                            .build()
                            .map_err(bad)?,
                    );
                }
                b.geo_proximity_location(g.build())
            }
            // Dropping a field we do not know would change what the record does.
            other => {
                return Err(format!(
                    "the routing field {other} is not known to this crossfade"
                ));
            }
        };
    }
    b.build().map_err(bad)
}

fn change_to(change: &Change) -> std::result::Result<r53::Change, String> {
    let (action, record) = match change {
        Change::Create(r) => (r53::ChangeAction::Create, r),
        Change::Delete(r) => (r53::ChangeAction::Delete, r),
        Change::Upsert(r) => (r53::ChangeAction::Upsert, r),
    };
    r53::Change::builder()
        .action(action)
        .resource_record_set(record_to(record)?)
        .build()
        .map_err(|e| e.to_string())
}

/// A refusal of a batch with all that Route 53 says of it: names are found in it.
fn refused(
    at: &str,
    e: aws_sdk_route53::error::SdkError<
        aws_sdk_route53::operation::change_resource_record_sets::ChangeResourceRecordSetsError,
        aws_smithy_runtime_api::client::orchestrator::HttpResponse,
    >,
) -> Error {
    use aws_sdk_route53::operation::change_resource_record_sets::ChangeResourceRecordSetsError as Refusal;
    let details: Vec<String> = match e.as_service_error() {
        Some(Refusal::InvalidChangeBatch(b)) => b.messages().to_vec(),
        _ => vec![],
    };
    let mut error = aws::error(at, e);
    if !details.is_empty() {
        error.message = format!("InvalidChangeBatch: {}", details.join("; "));
    }
    error
}

#[async_trait]
impl Dns for LiveDns {
    async fn zones(&self) -> Result<Vec<Zone>> {
        let mut out = vec![];
        let mut marker: Option<String> = None;
        loop {
            let from = marker.take();
            let page = self
                .polite(|client| {
                    let request = client.list_hosted_zones().set_marker(from.clone());
                    async move {
                        request
                            .send()
                            .await
                            .map_err(|e| aws::error("hosted zones", e))
                    }
                })
                .await?;
            out.extend(page.hosted_zones().iter().map(|z| Zone {
                id: z.id().trim_start_matches("/hostedzone/").into(),
                name: with_dot(z.name()),
                private: z.config().is_some_and(|c| c.private_zone()),
            }));
            match page.next_marker() {
                Some(next) if page.is_truncated() => marker = Some(next.into()),
                _ => return Ok(out),
            }
        }
    }

    async fn records(&self, zone_id: &str) -> Result<Vec<RecordSet>> {
        let mut out = vec![];
        let mut start: Option<(String, r53::RrType, Option<String>)> = None;
        loop {
            let from = start.take();
            let page = self
                .polite(|client| {
                    let mut request = client.list_resource_record_sets().hosted_zone_id(zone_id);
                    if let Some((name, rtype, id)) = from.clone() {
                        request = request
                            .start_record_name(name)
                            .start_record_type(rtype)
                            .set_start_record_identifier(id);
                    }
                    async move {
                        request
                            .send()
                            .await
                            .map_err(|e| aws::error(&format!("zone/{zone_id}"), e))
                    }
                })
                .await?;
            out.extend(page.resource_record_sets().iter().map(record_from));
            if !page.is_truncated() {
                return Ok(out);
            }
            // All three fields: without the identifier a page that ends inside a weighted set begins it again.
            start = match (page.next_record_name(), page.next_record_type()) {
                (Some(n), Some(t)) => Some((
                    n.into(),
                    t.clone(),
                    page.next_record_identifier().map(Into::into),
                )),
                _ => {
                    return Err(Error::new(
                        Class::Internal,
                        format!("zone/{zone_id}"),
                        "a truncated page does not say where the next one begins",
                    ));
                }
            };
        }
    }

    async fn change(&self, zone_id: &str, changes: &[Change], comment: &str) -> Result<String> {
        let at = format!("zone/{zone_id}");
        let list = changes
            .iter()
            .map(change_to)
            .collect::<std::result::Result<Vec<_>, _>>()
            .map_err(|e| Error::new(Class::Refused, &at, e))?;
        let batch = r53::ChangeBatch::builder()
            // Route 53 cuts nothing: a comment over 256 characters is an error.
            .comment(comment.chars().take(256).collect::<String>())
            .set_changes(Some(list))
            .build()
            .map_err(|e| Error::new(Class::Internal, &at, e.to_string()))?;
        let answer = self
            .polite(|client| {
                let request = client
                    .change_resource_record_sets()
                    .hosted_zone_id(zone_id)
                    .change_batch(batch.clone());
                let at = at.clone();
                async move { request.send().await.map_err(|e| refused(&at, e)) }
            })
            .await?;
        let id = answer
            .change_info()
            .map(|i| i.id().trim_start_matches("/change/").to_string());
        id.ok_or_else(|| Error::new(Class::Internal, at, "the change was taken but has no id"))
    }

    async fn in_sync(&self, change_id: &str) -> Result<bool> {
        let answer = self
            .polite(|client| {
                let request = client.get_change().id(change_id);
                async move {
                    request
                        .send()
                        .await
                        .map_err(|e| aws::error(&format!("change/{change_id}"), e))
                }
            })
            .await?;
        Ok(answer
            .change_info()
            .is_some_and(|i| *i.status() == r53::ChangeStatus::Insync))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_is_plain_and_an_escaped_dot_stays_escaped() {
        assert_eq!(unescape("\\052.Shop.test."), "*.shop.test.");
        assert_eq!(unescape("a\\040b.shop.test."), "a b.shop.test.");
        assert_eq!(unescape("a\\056b.shop.test."), "a\\056b.shop.test.");
        assert_eq!(unescape("end\\05"), "end\\05");
    }

    #[test]
    fn every_routing_field_survives_the_way_there_and_back() {
        let record = RecordSet {
            name: "*.shop.test.".into(),
            rtype: "A".into(),
            ttl: Some(60),
            values: vec!["192.0.2.1".into(), "192.0.2.2".into()],
            alias: None,
            set_identifier: Some("blue".into()),
            routing: BTreeMap::from([
                ("Weight".into(), json!(0)),
                ("Region".into(), json!("eu-west-1")),
                ("Failover".into(), json!("PRIMARY")),
                ("MultiValueAnswer".into(), json!(true)),
                ("HealthCheckId".into(), json!("abc")),
                ("TrafficPolicyInstanceId".into(), json!("tp")),
                (
                    "GeoLocation".into(),
                    json!({"CountryCode": "US", "SubdivisionCode": "CA"}),
                ),
                (
                    "CidrRoutingConfig".into(),
                    json!({"CollectionId": "c", "LocationName": "l"}),
                ),
                (
                    "GeoProximityLocation".into(),
                    json!({"LocalZoneGroup": "g", "Coordinates": {"Latitude": "1.0", "Longitude": "2.0"}, "Bias": -5}),
                ),
            ]),
        };
        assert_eq!(record_from(&record_to(&record).unwrap()), record);
    }

    #[test]
    fn an_alias_has_no_ttl_and_keeps_its_target() {
        let record = RecordSet {
            name: "orders.shop.test.".into(),
            rtype: "A".into(),
            ttl: None,
            values: vec![],
            alias: Some(Alias {
                zone_id: "Z32O12XQLNTSW2".into(),
                name: "a1.eu-west-1.elb.amazonaws.com.".into(),
                evaluate_target_health: true,
            }),
            set_identifier: None,
            routing: BTreeMap::new(),
        };
        assert_eq!(record_from(&record_to(&record).unwrap()), record);
    }

    #[test]
    fn an_unknown_routing_field_is_refused_not_dropped() {
        let record = RecordSet {
            name: "a.shop.test.".into(),
            rtype: "A".into(),
            ttl: Some(1),
            values: vec!["192.0.2.1".into()],
            alias: None,
            set_identifier: None,
            routing: BTreeMap::from([("Novelty".into(), json!(1))]),
        };
        assert!(record_to(&record).unwrap_err().contains("Novelty"));
    }

    #[test]
    fn two_requests_a_second_unless_declared_otherwise_and_never_unlimited() {
        assert_eq!(gap(None), Duration::from_millis(500));
        assert_eq!(gap(Some("100")), Duration::from_millis(10));
        assert_eq!(gap(Some("0")), Duration::from_millis(500));
        assert_eq!(gap(Some("fast")), Duration::from_millis(500));
    }
}
