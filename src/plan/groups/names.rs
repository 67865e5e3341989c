//! Names of node groups and launch templates: deterministic, unique, inside the limits of EKS and EC2.

use crate::object::sha256_hex;
use std::collections::BTreeSet;

/// Longest name of a node group (eks.md 1.6).
const GROUP: usize = 63;
/// Longest name of a launch template (EC2: 3 to 128).
const TEMPLATE: usize = 128;

/// Gives names, each once.
pub(super) struct Names {
    green: String,
    /// Own names of the instance groups: no split of another group may take one.
    reserved: BTreeSet<String>,
    taken: BTreeSet<String>,
}

impl Names {
    pub fn new<'a>(green: &str, instance_groups: impl Iterator<Item = &'a str>) -> Names {
        Names {
            green: green.into(),
            reserved: instance_groups.map(clean).collect(),
            taken: BTreeSet::new(),
        }
    }

    /// Name of a node group: the instance group's, with a suffix for each part of a split one.
    pub fn group(&mut self, ig: &str, suffix: &str) -> String {
        let whole = format!("{ig}{suffix}");
        let mut name = clean(&whole);
        let foreign = !suffix.is_empty() && self.reserved.contains(&name);
        if name.len() > GROUP || foreign || self.taken.contains(&name) {
            name = cut(&name, GROUP, &whole);
        }
        // Two groups whose names differ only in letters that EKS has not.
        let mut n = 2;
        while self.taken.contains(&name) {
            name = cut(&clean(&whole), GROUP, &format!("{whole}#{n}"));
            n += 1;
        }
        self.taken.insert(name.clone());
        name
    }

    /// Name of a group's launch template: unique because the group's name is.
    pub fn template(&self, group: &str) -> String {
        let name = format!("crossfade-{}-{group}", self.green);
        if name.len() <= TEMPLATE {
            return name;
        }
        cut(&name, TEMPLATE, &name)
    }
}

/// Letters, digits, `-` and `_`, beginning with a letter or digit (eks.md 1.6).
fn clean(name: &str) -> String {
    let clean: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '-' || c == '_' {
                c
            } else {
                '-'
            }
        })
        .collect::<String>()
        .trim_start_matches(['-', '_'])
        .into();
    if clean.is_empty() {
        "nodes".into()
    } else {
        clean
    }
}

/// The beginning of a name and a hash of the whole.
fn cut(name: &str, longest: usize, whole: &str) -> String {
    let hash = &sha256_hex(whole)[..6];
    format!(
        "{}-{hash}",
        name.chars().take(longest - 7).collect::<String>()
    )
}

/// A label value that names an instance group: at most 63 letters, digits, `-`, `_`, `.`, beginning and ending with a letter or digit.
pub(super) fn label_value(name: &str) -> String {
    let ok = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let edge = |c: char| c.is_ascii_alphanumeric();
    if (1..=63).contains(&name.len())
        && name.chars().all(ok)
        && name.starts_with(edge)
        && name.ends_with(edge)
    {
        return name.into();
    }
    cut(&clean(name), 63, name)
}
