//! What blue costs an hour, what green will, and both together while both run: an estimate from a dated price file.

mod prices;
mod sides;

#[cfg(test)]
mod tests;

use super::model::Target;
use crate::snapshot::roll::Found;
use crate::spec::model::Spec;
use serde::{Deserialize, Serialize};

/// Weeks during which both clusters run when the spec says nothing: rehearsals, the night, the soak, the rollback clause.
const BOTH_WEEKS: u32 = 4;
/// Hours of a week.
const WEEK: u64 = 168;

/// The estimate. Money is in millionths of a US dollar: whole numbers, so that a plan's digest does not hang on rounding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Cost {
    /// Date of the price file.
    pub prices_of: String,
    /// Region of the price file, which may not be green's.
    pub prices_region: String,
    /// Where the prices come from.
    pub source: String,
    /// Blue, an hour.
    pub blue: Side,
    /// Green, an hour.
    pub green: Side,
    /// Weeks with both.
    pub both_weeks: u32,
    /// What green costs beside blue during these weeks, in all.
    pub both_extra: u64,
    /// What the numbers do not hold.
    pub not_counted: Vec<String>,
}

/// One side.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Side {
    /// Sum of the lines, an hour.
    pub hourly: u64,
    /// What it is made of.
    pub lines: Vec<Line>,
}

/// One line of an estimate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Line {
    /// What, as in `3 x m5.large (instance group nodes)`.
    pub what: String,
    /// Key of the price, for an override.
    pub key: String,
    /// An hour in all; `None` when the file has no price.
    pub hourly: Option<u64>,
}

/// Makes the estimate. Pure.
pub(super) fn cost(spec: &Spec, snapshot: &Found, target: &Target) -> Cost {
    let Some(prices) = prices::Prices::new(spec) else {
        return Cost::default();
    };
    let blue = sides::blue(&prices, snapshot);
    let green = sides::green(&prices, spec, snapshot, target);
    let both_weeks = spec.cost.both_weeks.unwrap_or(BOTH_WEEKS);
    let mut not_counted = vec![
        "traffic between zones (0.01 USD a GB each way), NAT and load balancer traffic, public IPv4 addresses, CloudWatch logs, snapshots, support, taxes".to_string(),
        "discounts: reserved instances and savings plans of blue do not move to other instance families".to_string(),
    ];
    if !target.cluster.region.is_empty() && target.cluster.region != prices.region() {
        not_counted.push(format!(
            "the difference between {} and {}, whose prices these are",
            target.cluster.region,
            prices.region()
        ));
    }
    for (side, s) in [("blue", &blue), ("green", &green)] {
        for line in s.lines.iter().filter(|l| l.hourly.is_none()) {
            not_counted.push(format!(
                "{side}: {}: the price file has no {}; give one under cost.prices",
                line.what, line.key
            ));
        }
    }
    if snapshot
        .aws
        .as_ref()
        .is_none_or(|a| a.nat_gateways.is_none())
    {
        not_counted.push("NAT gateways: they were not read".into());
    }
    Cost {
        prices_of: prices.date().into(),
        prices_region: prices.region().into(),
        source: prices.source().into(),
        both_extra: green
            .hourly
            .saturating_mul(WEEK)
            .saturating_mul(both_weeks.into()),
        blue,
        green,
        both_weeks,
        not_counted,
    }
}

/// Dollars and cents for people: `1.23`, with thousands separated: `1,234.50`.
pub fn dollars(micros: u64) -> String {
    let cents = micros.saturating_add(5_000) / 10_000;
    let whole = (cents / 100).to_string();
    let mut grouped = String::new();
    for (i, c) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(c);
    }
    format!("{grouped}.{:02}", cents % 100)
}
