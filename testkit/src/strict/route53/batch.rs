//! `ChangeResourceRecordSets` as Route 53 judges it: the whole batch or nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::record::{Key, RecordSet, Routing, valid_domain_name, within};
use super::values;
use crate::strict::http::Refusal;

pub type Records = BTreeMap<Key, RecordSet>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Create,
    Delete,
    Upsert,
}

impl Action {
    pub fn parse(text: &str) -> Option<Action> {
        Some(match text {
            "CREATE" => Action::Create,
            "DELETE" => Action::Delete,
            "UPSERT" => Action::Upsert,
            _ => return None,
        })
    }
}

/// Values per batch; UPSERT counts twice.
const MAX_VALUES: usize = 1000;
/// Characters of all values per batch; UPSERT counts twice.
const MAX_CHARACTERS: usize = 32_000;

/// Zone id that AWS hands out for load balancers of a region (Classic and Application): an alias must name it.
/// (Network load balancers have other ids and other names: `elb.<region>`.)
const ELB_ZONES: &[(&str, &str)] = &[
    ("us-east-1", "Z35SXDOTRQ7X7K"),
    ("us-east-2", "Z3AADJGX6KTTL2"),
    ("us-west-1", "Z368ELLRRE2KJ0"),
    ("us-west-2", "Z1H1FL5HABSF5"),
    ("eu-west-1", "Z32O12XQLNTSW2"),
    ("eu-west-2", "ZHURV8PSTC4K8"),
    ("eu-west-3", "Z3Q77PNBQS71R4"),
    ("eu-central-1", "Z215JYRZR1TBD5"),
    ("eu-north-1", "Z23TAZ6LKFMNIO"),
];
const NLB_ZONES: &[(&str, &str)] = &[
    ("us-east-1", "Z26RNL4JYFTOTI"),
    ("us-east-2", "ZLMOA37VPKANP"),
    ("us-west-1", "Z24FKFUX50B4VW"),
    ("us-west-2", "Z18D5FSROUN65G"),
    ("eu-west-1", "Z2IFOLAFXWLO4F"),
    ("eu-west-2", "ZD4D7Y8KGAS4G"),
    ("eu-west-3", "Z1CMS0P5QUZ6D5"),
    ("eu-central-1", "Z3F0SRJ5LGBH90"),
    ("eu-north-1", "Z1UDT6IFJ4EJM"),
];

/// What the judge must know of the world beside the zone.
pub struct Context<'a> {
    pub zone_id: &'a str,
    pub zone_name: &'a str,
    /// All hosted zones of the account: id -> (name, records).
    pub other_zones: &'a dyn Fn(&str) -> Option<(String, Records)>,
    /// Health checks named by the batch that do not exist.
    pub unknown_health_checks: &'a BTreeSet<String>,
}

/// The zone after the batch, or why nothing at all was done.
pub fn apply(
    context: &Context<'_>,
    current: &Records,
    changes: &[(Action, RecordSet)],
) -> Result<Records, Refusal> {
    limits(changes)?;
    let mut problems = Vec::new();
    for (action, record) in changes {
        problems.extend(judge(context, *action, record));
    }
    problems.extend(contradictions(changes));
    let mut next = current.clone();
    // Deletes first: replacing a set is DELETE + CREATE in one batch.
    for (action, record) in changes {
        if *action == Action::Delete {
            match next.get(&record.key()) {
                None => problems.push(format!(
                    "Tried to delete resource record set {} but it was not found",
                    record.describe()
                )),
                Some(old) if !old.same_as(record) => problems.push(format!(
                    "Tried to delete resource record set {} but the values provided do not match the current values",
                    record.describe()
                )),
                Some(_) => {
                    next.remove(&record.key());
                }
            }
        }
    }
    for (action, record) in changes {
        match action {
            Action::Delete => {}
            Action::Create if next.contains_key(&record.key()) => problems.push(format!(
                "Tried to create resource record set {} but it already exists",
                record.describe()
            )),
            Action::Upsert
                if next
                    .get(&record.key())
                    .is_some_and(|old| old.routing.kind() != record.routing.kind()) =>
            {
                problems.push(format!(
                    "Tried to change the routing policy of resource record set {}: delete and create it instead",
                    record.describe()
                ));
            }
            Action::Create | Action::Upsert => {
                next.insert(record.key(), record.clone());
            }
        }
    }
    problems.extend(conflicts(context, &next, changes));
    problems.extend(alias_targets(context, &next, changes));
    if problems.is_empty() {
        Ok(next)
    } else {
        Err(Refusal::new(
            400,
            "InvalidChangeBatch",
            format!("[{}]", problems.join(", ")),
        ))
    }
}

fn limits(changes: &[(Action, RecordSet)]) -> Result<(), Refusal> {
    let twice = |action: Action| if action == Action::Upsert { 2 } else { 1 };
    let values: usize = changes
        .iter()
        .map(|(a, r)| twice(*a) * r.values.len().max(1))
        .sum();
    let characters: usize = changes
        .iter()
        .map(|(a, r)| twice(*a) * r.values.iter().map(|v| v.chars().count()).sum::<usize>())
        .sum();
    for (what, limit, found) in [
        ("records", MAX_VALUES, values),
        ("characters", MAX_CHARACTERS, characters),
    ] {
        if found > limit {
            return Err(Refusal::new(
                400,
                "InvalidChangeBatch",
                format!("[Number of {what} limit of {limit} exceeded.]"),
            ));
        }
    }
    Ok(())
}

/// What is wrong with one change, whatever else the zone holds.
fn judge(context: &Context<'_>, action: Action, record: &RecordSet) -> Vec<String> {
    let mut problems = Vec::new();
    let (name, rtype, zone) = (&record.name, record.rtype.as_str(), context.zone_name);
    if !values::TYPES.contains(&rtype) {
        problems.push(format!("Unknown resource record type '{rtype}' for {name}"));
    }
    if !valid_domain_name(name) {
        problems.push(format!(
            "FATAL problem: DomainLabelTooLong (Domain label is empty or too long) encountered with '{name}'"
        ));
    }
    if !within(name, zone) {
        problems.push(format!(
            "RRSet with DNS name {name} is not permitted in zone {zone}"
        ));
        return problems;
    }
    let apex = name == zone;
    if apex && rtype == "CNAME" {
        problems.push(format!(
            "RRSet of type CNAME with DNS name {name} is not permitted at apex in zone {zone}"
        ));
    }
    if rtype == "SOA" && (!apex || action != Action::Upsert) {
        problems.push(format!(
            "A HostedZone must contain exactly one SOA record: {name} in zone {zone}"
        ));
    }
    if rtype == "NS" && apex && action == Action::Delete {
        problems.push(format!(
            "A HostedZone must contain at least one NS record for the zone itself: {name} in zone {zone}"
        ));
    }
    if record.values.len() > 1 && matches!(rtype, "CNAME" | "SOA") {
        problems.push(format!(
            "RRSet of type {rtype} with DNS name {name} may hold one value, not {}",
            record.values.len()
        ));
    }
    let mut seen = BTreeSet::new();
    for value in &record.values {
        if !seen.insert(value) {
            problems.push(format!("Duplicate Resource Record: '{value}'"));
        }
        if let Err(why) = values::check(rtype, value) {
            problems.push(why);
        }
    }
    if let Some(id) = &record.health_check
        && context.unknown_health_checks.contains(id)
        && action != Action::Delete
    {
        problems.push(format!("No health check found with ID: {id}"));
    }
    problems
}

/// Several changes of one record set, except DELETE followed by CREATE.
fn contradictions(changes: &[(Action, RecordSet)]) -> Vec<String> {
    let mut by_key: BTreeMap<Key, (Vec<Action>, &RecordSet)> = BTreeMap::new();
    for (action, record) in changes {
        by_key
            .entry(record.key())
            .or_insert_with(|| (Vec::new(), record))
            .0
            .push(*action);
    }
    by_key
        .values()
        .filter(|(actions, _)| actions.len() > 1 && **actions != [Action::Delete, Action::Create])
        .map(|(_, record)| {
            format!(
                "The request contains an invalid set of changes for a resource record set '{} {}'",
                record.rtype, record.name
            )
        })
        .collect()
}

/// Record sets that cannot stand side by side after the batch, at the names that the batch touched.
fn conflicts(
    context: &Context<'_>,
    next: &Records,
    changes: &[(Action, RecordSet)],
) -> Vec<String> {
    let mut problems = Vec::new();
    let touched: BTreeSet<&str> = changes
        .iter()
        .filter(|(a, _)| *a != Action::Delete)
        .map(|(_, r)| r.name.as_str())
        .collect();
    for name in touched {
        let first = Key::new(name, "", "");
        let here: Vec<&RecordSet> = next
            .range(&first..)
            .take_while(|(key, _)| key.order == first.order)
            .map(|(_, record)| record)
            .collect();
        if here.iter().any(|r| r.rtype == "CNAME") {
            for other in here.iter().filter(|r| r.rtype != "CNAME") {
                problems.push(format!(
                    "RRSet of type CNAME with DNS name {name} is not permitted as it conflicts with other records with the same DNS name in zone {} (there is one of type {})",
                    context.zone_name, other.rtype
                ));
            }
        }
        let types: BTreeSet<&str> = here.iter().map(|r| r.rtype.as_str()).collect();
        for rtype in types {
            let sets: Vec<&&RecordSet> = here.iter().filter(|r| r.rtype == rtype).collect();
            problems.extend(routing_conflicts(name, rtype, &sets));
        }
    }
    problems
}

fn routing_conflicts(name: &str, rtype: &str, sets: &[&&RecordSet]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut choices = BTreeSet::new();
    for (i, set) in sets.iter().enumerate() {
        if let Some(other) = sets[..i]
            .iter()
            .find(|o| o.routing.kind() != set.routing.kind())
        {
            problems.push(format!(
                "RRSet with DNS name {name}, type {rtype}, SetIdentifier {} cannot be created as other RRSets exist with the same name and type ({} beside {})",
                set.set_id.as_deref().unwrap_or("null"),
                set.routing.kind(),
                other.routing.kind()
            ));
            break;
        }
        let choice = match &set.routing {
            Routing::Latency(region) => Some(region.clone()),
            Routing::Failover(role) => Some(role.clone()),
            Routing::Geo(element) => {
                let mut text = String::new();
                element.write(&mut text);
                Some(text)
            }
            _ => None,
        };
        if let Some(choice) = choice
            && !choices.insert(choice.clone())
        {
            problems.push(format!(
                "RRSet with DNS name {name}, type {rtype}: two sets for the same {} choice '{choice}'",
                set.routing.kind()
            ));
        }
    }
    problems
}

fn alias_targets(
    context: &Context<'_>,
    next: &Records,
    changes: &[(Action, RecordSet)],
) -> Vec<String> {
    let mut problems = Vec::new();
    for (action, record) in changes {
        let (Some(alias), false) = (&record.alias, *action == Action::Delete) else {
            continue;
        };
        let tried = format!(
            "Tried to create an alias that targets {}, type {} in zone {}",
            alias.name, record.rtype, alias.zone_id
        );
        if matches!(record.rtype.as_str(), "NS" | "SOA") {
            problems.push(format!(
                "{tried}, but alias records of that type are not permitted"
            ));
            continue;
        }
        let own;
        let target_zone = if alias.zone_id == context.zone_id {
            own = (context.zone_name.to_owned(), next.clone());
            Some(own)
        } else {
            (context.other_zones)(&alias.zone_id)
        };
        match target_zone {
            Some((zone_name, records)) => {
                let first = Key::new(&alias.name, &record.rtype, "");
                if !within(&alias.name, &zone_name) {
                    problems.push(format!(
                        "{tried}, but the alias target name does not lie within the target zone"
                    ));
                } else if alias.zone_id == context.zone_id && alias.name == record.name {
                    problems.push(format!("{tried}, but an alias cannot target itself"));
                } else if !records
                    .range(&first..)
                    .next()
                    .is_some_and(|(k, _)| k.order == first.order && k.rtype == first.rtype)
                {
                    problems.push(format!("{tried}, but that target was not found"));
                }
            }
            None => {
                if !matches!(record.rtype.as_str(), "A" | "AAAA") {
                    problems.push(format!("{tried}, but that target was not found"));
                } else if !service_owns(&alias.zone_id, &alias.name) {
                    problems.push(format!(
                        "{tried}, but the alias target name does not lie within the target zone"
                    ));
                }
            }
        }
    }
    problems
}

/// Whether a zone of AWS's own can hold this name. Load balancers are checked by region; the rest by suffix.
fn service_owns(zone_id: &str, name: &str) -> bool {
    let Some(rest) = name.strip_suffix(".amazonaws.com.") else {
        return name.ends_with(".cloudfront.net.") || name.ends_with(".awsglobalaccelerator.com.");
    };
    let labels: Vec<&str> = rest.split('.').collect();
    let known = |table: &[(&str, &str)], region: &str| {
        table
            .iter()
            .find(|(r, _)| *r == region)
            .is_none_or(|(_, id)| *id == zone_id)
    };
    match labels.as_slice() {
        [.., region, "elb"] => known(ELB_ZONES, region),
        [.., "elb", region] => known(NLB_ZONES, region),
        _ => true,
    }
}
