//! Rules beyond types. Each refusal names the place in the file.

mod connections;
mod control_plane;
mod green;
mod provision;

use super::model::{API_VERSION, DataMode, Database, Spec};
use crate::checks::ids;
use crate::error::{Error, Result};
use crate::yaml;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// Access policies of EKS (eks.md 1.4).
const ACCESS_POLICIES: &[&str] = &[
    "AmazonEKSAdminPolicy",
    "AmazonEKSAdminViewPolicy",
    "AmazonEKSClusterAdminPolicy",
    "AmazonEKSEditPolicy",
    "AmazonEKSViewPolicy",
];

/// Checks apiVersion and kind before the fields: a file of another version would otherwise fail on some field's name, which
/// tells nobody what is wrong.
pub fn head(text: &str, file: &str) -> Result<()> {
    let Some(Ok((value, _))) = yaml::manifests(text, file).into_iter().next() else {
        return Ok(()); // the strict reader words this one
    };
    for (key, want, what) in [
        ("apiVersion", API_VERSION, "version of the spec"),
        ("kind", "Migration", "kind"),
    ] {
        let Some(found) = value.get(key).and_then(|v| v.as_str()) else {
            continue;
        };
        if found != want {
            let place = yaml::locate(text, &[key]);
            return Err(
                yaml::error_at(text, file, place, format!("unknown {what} `{found}`"))
                    .remedy(format!("this crossfade reads `{key}: {want}`")),
            );
        }
    }
    Ok(())
}

/// Checks a whole spec; the first broken rule is the error.
pub fn spec(spec: &Spec, text: &str, file: &str) -> Result<()> {
    let c = Checker { text, file };
    c.api(spec)?;
    c.green(spec)?;
    c.control_plane(spec)?;
    c.identity(spec)?;
    c.state_bucket(spec)?;
    c.node_groups(spec)?;
    c.aws(spec)?;
    c.connections(spec)?;
    c.provision(spec)?;
    c.dns(spec)?;
    c.workloads(spec)?;
    c.data(spec)?;
    c.limits(spec)?;
    c.cost(spec)?;
    c.waivers(spec)
}

struct Checker<'a> {
    text: &'a str,
    file: &'a str,
}

impl Checker<'_> {
    fn refuse(
        &self,
        path: &[&str],
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Error {
        yaml::error_at(self.text, self.file, yaml::locate(self.text, path), message).remedy(remedy)
    }

    fn range(&self, path: &[&str], value: u64, low: u64, high: u64, unit: &str) -> Result<()> {
        if (low..=high).contains(&value) {
            return Ok(());
        }
        Err(self.refuse(
            path,
            format!("`{}` is {value}", path.join(".")),
            format!("give {low} to {high}{unit}"),
        ))
    }

    fn cost(&self, spec: &Spec) -> Result<()> {
        if let Some(weeks) = spec.cost.both_weeks {
            self.range(&["cost", "bothWeeks"], weeks.into(), 0, 104, " weeks")?;
        }
        for (key, price) in &spec.cost.prices {
            if !price.is_finite() || !(0.0..=100_000.0).contains(price) {
                return Err(self.refuse(
                    &["cost", "prices", key],
                    format!("the price of `{key}` is {price}"),
                    "give US dollars, 0 to 100000",
                ));
            }
        }
        Ok(())
    }

    fn not_empty(&self, path: &[&str], value: &str) -> Result<()> {
        if value.trim().is_empty() {
            return Err(self.refuse(
                path,
                format!("`{}` is empty", path.join(".")),
                "give a value",
            ));
        }
        Ok(())
    }

    fn unique<'v>(&self, path: &[&str], values: impl IntoIterator<Item = &'v str>) -> Result<()> {
        let mut seen = BTreeSet::new();
        for (i, value) in values.into_iter().enumerate() {
            if !seen.insert(value) {
                let index = i.to_string();
                let path: Vec<&str> = path.iter().copied().chain([index.as_str()]).collect();
                return Err(self.refuse(
                    &path,
                    format!("`{value}` is named twice"),
                    "keep one of the two",
                ));
            }
        }
        Ok(())
    }

    fn api(&self, spec: &Spec) -> Result<()> {
        // The name becomes part of AWS names and of file names.
        let good = spec.name.len() <= 40
            && spec.name.starts_with(|c: char| c.is_ascii_lowercase())
            && !spec.name.ends_with('-')
            && spec
                .name
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        if !good {
            return Err(self.refuse(
                &["name"],
                format!("`{}` cannot name a migration", spec.name),
                "use 1 to 40 lower-case letters, digits and `-`, beginning with a letter and not ending with `-`",
            ));
        }
        self.not_empty(&["blue", "cluster"], &spec.blue.cluster)
    }

    fn aws(&self, spec: &Spec) -> Result<()> {
        if let Some(account) = &spec.aws.account
            && !(account.len() == 12 && account.chars().all(|c| c.is_ascii_digit()))
        {
            return Err(self.refuse(
                &["aws", "account"],
                format!("`{account}` is no AWS account id"),
                "give 12 digits in quotes (a leading zero is lost without them)",
            ));
        }
        Ok(())
    }

    fn dns(&self, spec: &Spec) -> Result<()> {
        let dns = &spec.dns;
        self.range(&["dns", "lowTtl"], dns.low_ttl.into(), 1, 3600, " seconds")?;
        self.range(
            &["dns", "drainSeconds"],
            dns.drain_seconds.into(),
            1,
            86400,
            " seconds",
        )?;
        self.range(
            &["dns", "waveGateSeconds"],
            dns.wave_gate_seconds.into(),
            0,
            86400,
            " seconds",
        )?;
        self.range(
            &["dns", "externalDns", "interval"],
            dns.external_dns.interval.into(),
            1,
            3600,
            " seconds",
        )?;
        self.not_empty(&["dns", "externalDns", "image"], &dns.external_dns.image)?;
        self.unique(
            &["dns", "zones"],
            dns.zones.iter().map(|z| z.trim_end_matches('.')),
        )?;
        for (path, host) in dns
            .zones
            .iter()
            .enumerate()
            .map(|(i, z)| (vec!["dns".to_string(), "zones".into(), i.to_string()], z))
            .chain(
                dns.canary
                    .iter()
                    .map(|c| (vec!["dns".to_string(), "canary".into()], c)),
            )
        {
            if !is_host(host) {
                let path: Vec<&str> = path.iter().map(String::as_str).collect();
                return Err(self.refuse(
                    &path,
                    format!("`{host}` is no DNS name"),
                    "write it as `shop.example.com`",
                ));
            }
        }
        if let Some(canary) = &dns.canary
            && !dns.zones.is_empty()
            && !dns.zones.iter().any(|z| under(canary, z))
        {
            return Err(self.refuse(
                &["dns", "canary"],
                format!(
                    "the canary `{canary}` is in none of the zones {}",
                    dns.zones.join(", ")
                ),
                "name a host of one of these zones, or add its zone",
            ));
        }
        Ok(())
    }

    fn workloads(&self, spec: &Spec) -> Result<()> {
        let w = &spec.workloads;
        for (i, id) in w.singletons.iter().enumerate() {
            let parts: Vec<&str> = id.split('/').collect();
            let good = parts.len() == 3
                && parts.iter().all(|p| !p.is_empty())
                && ["deployment", "statefulset", "replicaset"].contains(&parts[0]);
            if !good {
                let i = i.to_string();
                return Err(self.refuse(
                    &["workloads", "singletons", &i],
                    format!("`{id}` names no workload that has replicas"),
                    "write it as `deployment/NAMESPACE/NAME` (or statefulset)",
                ));
            }
        }
        self.unique(
            &["workloads", "singletons"],
            w.singletons.iter().map(String::as_str),
        )?;
        for (i, id) in w.skip.iter().enumerate() {
            let parts: Vec<&str> = id.split('/').collect();
            if !(2..=3).contains(&parts.len()) || parts.iter().any(|p| p.is_empty()) {
                let i = i.to_string();
                return Err(self.refuse(
                    &["workloads", "skip", &i],
                    format!("`{id}` names no object"),
                    "write it as `kind/NAMESPACE/NAME` or `namespace/NAME`",
                ));
            }
        }
        if w.replace.keys().any(|k| k.is_empty()) {
            return Err(self.refuse(
                &["workloads", "replace"],
                "an empty text cannot be replaced",
                "name the text to look for",
            ));
        }
        Ok(())
    }

    fn data(&self, spec: &Spec) -> Result<()> {
        let mut names = BTreeSet::new();
        for (i, set) in spec.data.iter().enumerate() {
            let i = i.to_string();
            // The name becomes part of the names of publications and slots.
            let good = !set.name.is_empty()
                && set.name.len() <= 40
                && set
                    .name
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_');
            if !good {
                return Err(self.refuse(
                    &["data", &i, "name"],
                    format!("`{}` cannot name a data set", set.name),
                    "use 1 to 40 lower-case letters, digits, `-` and `_`",
                ));
            }
            if !names.insert(&set.name) {
                return Err(self.refuse(
                    &["data", &i, "name"],
                    format!("two data sets are named `{}`", set.name),
                    "give each its own name",
                ));
            }
            match (set.mode, &set.blue, &set.green) {
                (DataMode::Postgres, Some(blue), Some(green)) => {
                    self.database(&["data", &i, "blue"], blue)?;
                    self.database(&["data", &i, "green"], green)?;
                    if (&blue.host, blue.port, &blue.database)
                        == (&green.host, green.port, &green.database)
                    {
                        return Err(self.refuse(
                            &["data", &i, "green"],
                            format!("blue and green of `{}` are the same database", set.name),
                            "name two databases, or say `mode: shared`",
                        ));
                    }
                }
                (DataMode::Postgres, blue, _) => {
                    let missing = if blue.is_none() { "blue" } else { "green" };
                    return Err(self.refuse(
                        &["data", &i],
                        format!("data set `{}` has mode postgres but no `{missing}` database", set.name),
                        format!("add `{missing}:` with host, database, admin and role, or say `mode: shared`"),
                    ));
                }
                (DataMode::Shared, None, None) => {}
                (DataMode::Shared, blue, _) => {
                    let extra = if blue.is_some() { "blue" } else { "green" };
                    return Err(self.refuse(
                        &["data", &i, extra],
                        format!(
                            "data set `{}` is shared, so it has no `{extra}` database",
                            set.name
                        ),
                        "remove it, or say `mode: postgres`",
                    ));
                }
            }
            for (j, table) in set.tables.iter().enumerate() {
                if table.split('.').filter(|p| !p.is_empty()).count() != 2 {
                    let j = j.to_string();
                    return Err(self.refuse(
                        &["data", &i, "tables", &j],
                        format!("`{table}` names no table"),
                        "write it as `schema.table`",
                    ));
                }
            }
            if let Some(probe) = &set.write_probe {
                if !is_host(&probe.host) {
                    return Err(self.refuse(
                        &["data", &i, "writeProbe", "host"],
                        format!("`{}` is no DNS name", probe.host),
                        "write it as `shop.example.com`",
                    ));
                }
                if !probe.path.starts_with('/') {
                    return Err(self.refuse(
                        &["data", &i, "writeProbe", "path"],
                        format!("the path `{}` has no leading `/`", probe.path),
                        "begin it with `/`",
                    ));
                }
                if !["POST", "PUT", "PATCH", "DELETE"].contains(&probe.method.as_str()) {
                    return Err(self.refuse(
                        &["data", &i, "writeProbe", "method"],
                        format!("`{}` does not write", probe.method),
                        "use POST, PUT, PATCH or DELETE",
                    ));
                }
            }
        }
        Ok(())
    }

    fn database(&self, at: &[&str], db: &Database) -> Result<()> {
        for (key, value) in [
            ("host", &db.host),
            ("database", &db.database),
            ("admin", &db.admin),
            ("role", &db.role),
        ] {
            self.not_empty(&[at, &[key]].concat(), value)?;
        }
        if db.port == 0 {
            return Err(self.refuse(
                &[at, &["port"]].concat(),
                "port 0 cannot be reached",
                "give 1 to 65535",
            ));
        }
        if db.admin == db.role {
            return Err(self.refuse(
                &[at, &["role"]].concat(),
                format!("`{}` is both the admin and the application's role", db.role),
                "the fence closes the application's role, so the admin must be another one",
            ));
        }
        Ok(())
    }

    fn limits(&self, spec: &Spec) -> Result<()> {
        let l = &spec.limits;
        self.range(
            &["limits", "writeClosedSeconds"],
            l.write_closed_seconds.into(),
            1,
            86_400,
            " seconds",
        )?;
        self.range(
            &["limits", "soakSeconds"],
            l.soak_seconds.into(),
            0,
            30 * 86_400,
            " seconds",
        )?;
        self.range(
            &["limits", "writeConcurrency"],
            l.write_concurrency.unwrap_or(64).into(),
            1,
            64,
            "",
        )?;
        self.range(
            &["limits", "wakePods"],
            l.wake_pods.into(),
            1,
            10_000,
            " pods",
        )?;
        if !spec.probes.path.starts_with('/') {
            return Err(self.refuse(
                &["probes", "path"],
                format!("the path `{}` has no leading `/`", spec.probes.path),
                "begin it with `/`",
            ));
        }
        Ok(())
    }
}

impl Checker<'_> {
    fn waivers(&self, spec: &Spec) -> Result<()> {
        let mut seen = BTreeSet::new();
        for (n, w) in spec.waivers.iter().enumerate() {
            let n = n.to_string();
            let at = |key: &'static str| ["waivers", n.as_str(), key];
            if !ids::is_known(&w.check) {
                return Err(self.refuse(
                    &at("check"),
                    format!("there is no check `{}`", w.check),
                    format!("`crossfade checks` lists them; {}", ids::nearest(&w.check)),
                ));
            }
            if let Some(why) = ids::never_waived(&w.check) {
                return Err(self.refuse(
                    &at("check"),
                    format!("{} cannot be waived: {why}", w.check),
                    "remove the waiver, and what the finding names",
                ));
            }
            if w.reason.trim().is_empty() {
                return Err(self.refuse(
                    &at("reason"),
                    format!("the waiver of {} gives no reason", w.check),
                    "say who accepts it and why: it is shown in the plan",
                ));
            }
            if let Some(o) = &w.object
                && (o.trim_end_matches('*').is_empty()
                    || o.strip_suffix('*').unwrap_or(o).contains('*'))
            {
                return Err(self.refuse(
                    &at("object"),
                    format!("`{o}` names no object"),
                    "write the object as the finding spells it, or the beginning of it and one `*` at the end; leave it out for all objects",
                ));
            }
            if let Some(day) = &w.expires
                && day.parse::<jiff::civil::Date>().is_err()
            {
                return Err(self.refuse(
                    &at("expires"),
                    format!("`{day}` is no day"),
                    "write it as `2026-12-31`",
                ));
            }
            if !seen.insert((&w.check, &w.object)) {
                return Err(self.refuse(
                    &at("check"),
                    format!("{} is waived twice for the same object", w.check),
                    "keep one of the two",
                ));
            }
        }
        Ok(())
    }
}

/// AMI types of managed node groups whose nodes crossfade knows how to configure (eks.md 1.6).
const AMI_TYPES: &[&str] = &[
    "AL2023_x86_64_STANDARD",
    "AL2023_ARM_64_STANDARD",
    "AL2023_x86_64_NVIDIA",
    "AL2023_ARM_64_NVIDIA",
    "AL2023_x86_64_NEURON",
    "BOTTLEROCKET_x86_64",
    "BOTTLEROCKET_ARM_64",
    "BOTTLEROCKET_x86_64_FIPS",
    "BOTTLEROCKET_ARM_64_FIPS",
    "BOTTLEROCKET_x86_64_NVIDIA",
    "BOTTLEROCKET_ARM_64_NVIDIA",
    "BOTTLEROCKET_x86_64_NVIDIA_FIPS",
    "BOTTLEROCKET_ARM_64_NVIDIA_FIPS",
];

/// A label value, or the name of a label's key.
fn label_name(name: &str) -> bool {
    let edge = |c: char| c.is_ascii_alphanumeric();
    (1..=63).contains(&name.len())
        && name.starts_with(edge)
        && name.ends_with(edge)
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

fn label_key(key: &str) -> bool {
    match key.split_once('/') {
        None => label_name(key),
        Some((prefix, name)) => {
            // A DNS name as Kubernetes takes it: lower case.
            let wrong = |c: char| c == '*' || c == '_' || c.is_ascii_uppercase();
            is_host(prefix) && !prefix.contains(wrong) && label_name(name)
        }
    }
}

/// What Kubernetes takes for a label, and so EKS (eks.md 1.6).
pub(crate) fn is_label(key: &str, value: &str) -> bool {
    label_key(key) && (value.is_empty() || label_name(value))
}

fn is_host(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    !name.is_empty()
        && name.len() <= 253
        && name.split('.').all(|l| {
            (1..=63).contains(&l.len())
                && (l == "*"
                    || l.chars()
                        .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_'))
        })
}

/// Whether a host lies in a zone, label by label: `myshop.test` is not in `shop.test`.
fn under(host: &str, zone: &str) -> bool {
    let (host, zone) = (
        host.trim_end_matches('.').to_lowercase(),
        zone.trim_end_matches('.').to_lowercase(),
    );
    host == zone || host.ends_with(&format!(".{zone}"))
}

/// Network and prefix length of an IPv4 CIDR.
pub(crate) fn cidr(text: &str) -> Option<(u32, u32)> {
    let (ip, bits) = text.split_once('/')?;
    let (ip, bits) = (ip.parse::<Ipv4Addr>().ok()?, bits.parse::<u32>().ok()?);
    (bits <= 32).then_some((u32::from(ip), bits))
}

fn mask(bits: u32) -> u32 {
    u32::MAX.checked_shl(32 - bits).unwrap_or(0)
}

/// Whether two IPv4 CIDRs share an address.
pub(crate) fn overlap(a: &str, b: &str) -> bool {
    match (cidr(a), cidr(b)) {
        (Some((a, m)), Some((b, n))) => {
            let m = mask(m.min(n));
            a & m == b & m
        }
        _ => false,
    }
}

/// EKS's rules for `serviceIpv4Cidr` (eks.md).
fn service_cidr(text: &str) -> Result<(), String> {
    let (ip, bits) = cidr(text).ok_or("it is no IPv4 range")?;
    if ip & !mask(bits) != 0 {
        return Err(format!(
            "its first address is {}",
            Ipv4Addr::from(ip & mask(bits))
        ));
    }
    if !(12..=24).contains(&bits) {
        return Err(format!("/{bits} is not between /24 and /12"));
    }
    let inside = [
        ("10.0.0.0/8", 8),
        ("172.16.0.0/12", 12),
        ("192.168.0.0/16", 16),
    ]
    .iter()
    .any(|(range, n)| bits >= *n && overlap(range, text));
    if inside {
        Ok(())
    } else {
        Err("it is outside the private ranges that EKS takes".into())
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
