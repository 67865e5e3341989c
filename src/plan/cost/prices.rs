//! The price file: dated, of one region, overridable key by key.

use crate::spec::model::Spec;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Hours of a month as AWS bills storage: 730.
pub(super) const HOURS_A_MONTH: f64 = 730.0;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    date: String,
    region: String,
    source: String,
    family_large: BTreeMap<String, f64>,
    instance: BTreeMap<String, f64>,
    spot_part: f64,
    ebs: BTreeMap<String, f64>,
    hour: BTreeMap<String, f64>,
}

/// Prices with the overrides of a spec.
pub(super) struct Prices<'a> {
    file: File,
    overrides: &'a BTreeMap<String, f64>,
}

impl<'a> Prices<'a> {
    pub fn new(spec: &'a Spec) -> Option<Prices<'a>> {
        Some(Prices {
            file: serde_saphyr::from_str(include_str!("prices.yaml")).ok()?,
            overrides: &spec.cost.prices,
        })
    }
    pub fn date(&self) -> &str {
        &self.file.date
    }
    pub fn region(&self) -> &str {
        &self.file.region
    }
    pub fn source(&self) -> &str {
        &self.file.source
    }
    /// An hour of a service, US dollars.
    pub fn hour(&self, key: &str) -> Option<f64> {
        self.overrides
            .get(key)
            .or_else(|| self.file.hour.get(key))
            .copied()
    }
    /// An hour of one GiB, US dollars.
    pub fn gib_hour(&self, kind: &str) -> Option<f64> {
        let month = self
            .overrides
            .get(&format!("ebs/{kind}"))
            .or_else(|| self.file.ebs.get(kind))?;
        Some(month / HOURS_A_MONTH)
    }
    /// An hour of an instance type, US dollars. A spot price of the overrides is `spot/TYPE`.
    pub fn instance(&self, kind: &str, spot: bool) -> Option<f64> {
        if spot && let Some(price) = self.overrides.get(&format!("spot/{kind}")) {
            return Some(*price);
        }
        let full = self
            .overrides
            .get(&format!("instance/{kind}"))
            .or_else(|| self.file.instance.get(kind))
            .copied()
            .or_else(|| {
                let (family, size) = kind.split_once('.')?;
                Some(self.file.family_large.get(family)? * size_factor(size)?)
            })?;
        Some(if spot {
            full * self.file.spot_part
        } else {
            full
        })
    }
}

/// How many `large` a size is; `None` for `metal` and what else does not scale.
fn size_factor(size: &str) -> Option<f64> {
    Some(match size {
        "nano" => 1.0 / 16.0,
        "micro" => 1.0 / 8.0,
        "small" => 1.0 / 4.0,
        "medium" => 1.0 / 2.0,
        "large" => 1.0,
        "xlarge" => 2.0,
        _ => 2.0 * size.strip_suffix("xlarge")?.parse::<u32>().ok()? as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_a_family_scale_and_metal_has_no_price() {
        let spec = crate::spec::defaults_for(&Default::default());
        let p = Prices::new(&spec).expect("the price file is whole");
        let near = |a: Option<f64>, b: f64| (a.expect("a price") - b).abs() < 1e-9;
        assert!(near(p.instance("m5.large", false), 0.096));
        assert!(near(p.instance("m5.4xlarge", false), 0.768));
        assert!(near(p.instance("t3.medium", false), 0.0416));
        assert!(near(p.instance("t3.medium", true), 0.01456));
        assert!(near(p.instance("g4dn.2xlarge", false), 0.752));
        assert_eq!(p.instance("m5.metal", false), None);
        assert_eq!(p.instance("quantum.large", false), None);
    }

    #[test]
    fn a_price_of_the_spec_wins() {
        let mut spec = crate::spec::defaults_for(&Default::default());
        spec.cost.prices = BTreeMap::from([
            ("instance/m5.large".to_string(), 0.05),
            ("spot/m5.large".to_string(), 0.02),
            ("eks/cluster".to_string(), 0.2),
        ]);
        let p = Prices::new(&spec).expect("the price file is whole");
        assert_eq!(p.instance("m5.large", false), Some(0.05));
        assert_eq!(p.instance("m5.large", true), Some(0.02));
        assert_eq!(p.hour("eks/cluster"), Some(0.2));
    }
}
