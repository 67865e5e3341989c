//! Names and record sets as Route 53 keeps, orders and prints them.

use crate::strict::xml::{self, Element};

/// How one of several record sets of a name and type is chosen. `Simple` stands alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Routing {
    Simple,
    Weighted(u32),
    Latency(String),
    Failover(String),
    Geo(Element),
    MultiValue(bool),
    /// Geoproximity and CIDR routing: kept as sent.
    Other(Element),
}

impl Routing {
    /// All sets of one name and type must be of the same kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Routing::Simple => "simple",
            Routing::Weighted(_) => "weighted",
            Routing::Latency(_) => "latency",
            Routing::Failover(_) => "failover",
            Routing::Geo(_) => "geolocation",
            Routing::MultiValue(_) => "multivalue answer",
            Routing::Other(e) if e.name == "CidrRoutingConfig" => "cidr",
            Routing::Other(_) => "geoproximity",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alias {
    pub zone_id: String,
    /// Lower case, trailing dot.
    pub name: String,
    pub evaluate_target_health: bool,
}

/// One resource record set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordSet {
    /// Lower case, trailing dot, special characters as `\ooo`.
    pub name: String,
    pub rtype: String,
    pub set_id: Option<String>,
    pub routing: Routing,
    /// Seconds; none on aliases.
    pub ttl: Option<u32>,
    /// As sent, in the order sent; empty on aliases.
    pub values: Vec<String>,
    pub alias: Option<Alias>,
    pub health_check: Option<String>,
}

/// Listing order: labels reversed (as one string, dots included), then type, then set identifier.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub order: String,
    pub rtype: String,
    pub set_id: String,
}

impl Key {
    pub fn new(name: &str, rtype: &str, set_id: &str) -> Key {
        Key {
            order: reversed(name),
            rtype: rtype.to_owned(),
            set_id: set_id.to_owned(),
        }
    }
}

impl RecordSet {
    pub fn key(&self) -> Key {
        Key::new(
            &self.name,
            &self.rtype,
            self.set_id.as_deref().unwrap_or(""),
        )
    }

    /// What a DELETE has to name exactly. The order of values does not count.
    pub fn same_as(&self, other: &RecordSet) -> bool {
        let sorted = |r: &RecordSet| {
            let mut values = r.values.clone();
            values.sort();
            values
        };
        self.key() == other.key()
            && self.routing == other.routing
            && self.ttl == other.ttl
            && self.alias == other.alias
            && self.health_check == other.health_check
            && sorted(self) == sorted(other)
    }

    /// `[name='www.shop.test.', type='A', set identifier='blue']`, as Route 53 words it.
    pub fn describe(&self) -> String {
        match &self.set_id {
            Some(id) => format!(
                "[name='{}', type='{}', set identifier='{id}']",
                self.name, self.rtype
            ),
            None => format!("[name='{}', type='{}']", self.name, self.rtype),
        }
    }

    /// Reads a `ResourceRecordSet` element. Shape errors come as the words of an `InvalidInput`.
    pub fn parse(element: &Element, action: &str) -> Result<RecordSet, String> {
        let rtype = element.text_of("Type").unwrap_or("").trim().to_owned();
        let raw_name = element.text_of("Name").unwrap_or("").trim();
        let set_id = element.text_of("SetIdentifier").map(str::to_owned);
        let change = format!(
            "Change with [Action={action}, Name={raw_name}, Type={rtype}, SetIdentifier={}]",
            set_id.as_deref().unwrap_or("null")
        );
        if raw_name.is_empty() {
            return Err(format!("Invalid request: Missing field 'Name' in {change}"));
        }
        if rtype.is_empty() {
            return Err(format!("Invalid request: Missing field 'Type' in {change}"));
        }
        let ttl = match element.text_of("TTL") {
            None => None,
            Some(text) => Some(
                text.trim()
                    .parse::<u32>()
                    .ok()
                    .filter(|t| *t <= i32::MAX as u32)
                    .ok_or_else(|| {
                        format!("Invalid request: TTL must be 0 to 2147483647 seconds, not '{text}', in {change}")
                    })?,
            ),
        };
        let values: Vec<String> = element
            .child("ResourceRecords")
            .map(|r| {
                r.children
                    .iter()
                    .filter(|c| c.name == "ResourceRecord")
                    .map(|c| c.text_of("Value").unwrap_or("").to_owned())
                    .collect()
            })
            .unwrap_or_default();
        let alias = element.child("AliasTarget").map(|a| Alias {
            zone_id: bare_zone_id(a.text_of("HostedZoneId").unwrap_or("")).to_owned(),
            name: normal_name(a.text_of("DNSName").unwrap_or("")),
            evaluate_target_health: a.text_of("EvaluateTargetHealth") == Some("true"),
        });
        let one_of = "Expected exactly one of [AliasTarget, all of [TTL, and ResourceRecords], or TrafficPolicyInstanceId]";
        match (&alias, ttl, values.is_empty()) {
            (Some(_), None, true) | (None, Some(_), false) => {}
            (None, _, _) => {
                return Err(format!(
                    "Invalid request: {one_of}, but found none in {change}"
                ));
            }
            (Some(_), _, _) => {
                return Err(format!(
                    "Invalid request: {one_of}, but found more than one in {change}"
                ));
            }
        }
        let mut routings = Vec::new();
        for child in &element.children {
            let text = child.text.trim();
            match child.name.as_str() {
                "Weight" => match text.parse::<u32>() {
                    Ok(weight) if weight <= 255 => routings.push(Routing::Weighted(weight)),
                    _ => {
                        return Err(format!(
                            "Invalid request: Weight must be 0 to 255, not '{text}', in {change}"
                        ));
                    }
                },
                "Region" => routings.push(Routing::Latency(text.to_owned())),
                "Failover" => {
                    if text != "PRIMARY" && text != "SECONDARY" {
                        return Err(format!(
                            "Invalid request: Failover must be PRIMARY or SECONDARY, not '{text}', in {change}"
                        ));
                    }
                    routings.push(Routing::Failover(text.to_owned()));
                }
                "GeoLocation" => routings.push(Routing::Geo(child.clone())),
                "MultiValueAnswer" => routings.push(Routing::MultiValue(text == "true")),
                "GeoProximityLocation" | "CidrRoutingConfig" => {
                    routings.push(Routing::Other(child.clone()));
                }
                _ => {}
            }
        }
        let routing = match (routings.len(), &set_id) {
            (0, None) => Routing::Simple,
            (1, Some(_)) => routings.remove(0),
            (0, Some(_)) => {
                return Err(format!(
                    "Invalid request: Expected exactly one of [Weight, Region, Failover, GeoLocation, MultiValueAnswer, GeoProximityLocation, or CidrRoutingConfig], but found none in {change}"
                ));
            }
            (1, None) => {
                return Err(format!(
                    "Invalid request: Missing field 'SetIdentifier' in {change}"
                ));
            }
            _ => {
                return Err(format!(
                    "Invalid request: Expected exactly one of [Weight, Region, Failover, GeoLocation, MultiValueAnswer, GeoProximityLocation, or CidrRoutingConfig], but found more than one in {change}"
                ));
            }
        };
        Ok(RecordSet {
            name: normal_name(raw_name),
            rtype,
            set_id,
            routing,
            ttl,
            values,
            alias,
            health_check: element
                .text_of("HealthCheckId")
                .filter(|h| !h.is_empty())
                .map(str::to_owned),
        })
    }

    /// Appends the `ResourceRecordSet` element as listings print it.
    pub fn write(&self, out: &mut String) {
        xml::open(out, "ResourceRecordSet");
        xml::leaf(out, "Name", &self.name);
        xml::leaf(out, "Type", &self.rtype);
        if let Some(id) = &self.set_id {
            xml::leaf(out, "SetIdentifier", id);
        }
        match &self.routing {
            Routing::Simple => {}
            Routing::Weighted(weight) => xml::leaf(out, "Weight", &weight.to_string()),
            Routing::Latency(region) => xml::leaf(out, "Region", region),
            Routing::Failover(role) => xml::leaf(out, "Failover", role),
            Routing::MultiValue(on) => xml::leaf(out, "MultiValueAnswer", &on.to_string()),
            Routing::Geo(element) | Routing::Other(element) => element.write(out),
        }
        if let Some(ttl) = self.ttl {
            xml::leaf(out, "TTL", &ttl.to_string());
        }
        if !self.values.is_empty() {
            xml::open(out, "ResourceRecords");
            for value in &self.values {
                xml::open(out, "ResourceRecord");
                xml::leaf(out, "Value", value);
                xml::close(out, "ResourceRecord");
            }
            xml::close(out, "ResourceRecords");
        }
        if let Some(alias) = &self.alias {
            xml::open(out, "AliasTarget");
            xml::leaf(out, "HostedZoneId", &alias.zone_id);
            xml::leaf(out, "DNSName", &alias.name);
            xml::leaf(
                out,
                "EvaluateTargetHealth",
                &alias.evaluate_target_health.to_string(),
            );
            xml::close(out, "AliasTarget");
        }
        if let Some(id) = &self.health_check {
            xml::leaf(out, "HealthCheckId", id);
        }
        xml::close(out, "ResourceRecordSet");
    }
}

/// `/hostedzone/Z1` and `Z1` are the same id.
pub fn bare_zone_id(id: &str) -> &str {
    id.trim().trim_start_matches("/hostedzone/")
}

/// Lower case, one trailing dot, every character outside `a-z0-9-_.` as `\ooo` (so `*` is `\052`).
pub fn normal_name(name: &str) -> String {
    let mut out = String::new();
    for byte in unescaped(name.trim()) {
        let byte = byte.to_ascii_lowercase();
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("\\{byte:03o}"));
        }
    }
    if !out.ends_with('.') {
        out.push('.');
    }
    out
}

fn unescaped(name: &str) -> Vec<u8> {
    let bytes = name.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let code = (bytes[i] == b'\\')
            .then(|| name.get(i + 1..i + 4))
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(byte) => {
                out.push(byte);
                i += 4;
            }
            None => {
                out.push(bytes[i]);
                i += 1;
            }
        }
    }
    out
}

/// `www.shop.test.` -> `test.shop.www.`: what Route 53 sorts by, escapes resolved, the trailing dot counted.
fn reversed(name: &str) -> String {
    let plain = String::from_utf8_lossy(&unescaped(name)).into_owned();
    let mut labels: Vec<&str> = plain.trim_end_matches('.').split('.').collect();
    labels.reverse();
    labels.join(".") + "."
}

/// Whether a (normal) name is the zone itself or below it.
pub fn within(name: &str, zone: &str) -> bool {
    name == zone || name.ends_with(&format!(".{zone}"))
}

/// A name that DNS can carry: labels of 1 to 63 characters, 255 in all, `*` only as a whole label.
pub fn valid_domain_name(name: &str) -> bool {
    let plain = unescaped(name);
    let text = String::from_utf8_lossy(&plain);
    let trimmed = text.trim_end_matches('.');
    !trimmed.is_empty()
        && trimmed.len() <= 254
        && !text.contains(char::is_whitespace)
        && trimmed.split('.').all(|l| !l.is_empty() && l.len() <= 63)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_in_lower_case_with_octal_wildcards() {
        assert_eq!(normal_name("*.Shop.Test"), "\\052.shop.test.");
        assert_eq!(normal_name("\\052.shop.test."), "\\052.shop.test.");
    }

    #[test]
    fn listings_sort_by_reversed_labels_with_the_dot_counted() {
        let mut names = [
            "b.shop.test.",
            "a-b.shop.test.",
            "x.a.shop.test.",
            "shop.test.",
            "a.shop.test.",
            "\\052.shop.test.",
        ]
        .map(|n| (Key::new(n, "A", ""), n));
        names.sort();
        let order: Vec<&str> = names.iter().map(|(_, n)| *n).collect();
        assert_eq!(
            order,
            [
                "shop.test.",
                "\\052.shop.test.",
                "a-b.shop.test.",
                "a.shop.test.",
                "x.a.shop.test.",
                "b.shop.test."
            ]
        );
    }
}
