//! Rules beyond types. Each refusal names the place in the file.

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
    c.node_groups(spec)?;
    c.aws(spec)?;
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

    fn green(&self, spec: &Spec) -> Result<()> {
        let green = &spec.green;
        // eks.md: ^[0-9A-Za-z][A-Za-z0-9_-]*$, at most 100 characters.
        let good = (1..=100).contains(&green.name.len())
            && green.name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && green
                .name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        if !good {
            return Err(self.refuse(
                &["green", "name"],
                format!("`{}` cannot name an EKS cluster", green.name),
                "use 1 to 100 letters, digits, `-` and `_`, beginning with a letter or digit (no dots)",
            ));
        }
        if green.name == spec.blue.cluster {
            return Err(self.refuse(
                &["green", "name"],
                format!("green has blue's name `{}`", green.name),
                "give green a name of its own: tags and names tell the two apart",
            ));
        }
        let version = green
            .version
            .split_once('.')
            .map(|(a, b)| (a.parse::<u32>(), b.parse::<u32>()));
        if !matches!(version, Some((Ok(1), Ok(_)))) {
            return Err(self.refuse(
                &["green", "version"],
                format!("`{}` is no Kubernetes version of EKS", green.version),
                "write it as \"1.36\", quoted, without a patch number",
            ));
        }
        for (i, subnet) in green.subnets.iter().enumerate() {
            if !subnet.starts_with("subnet-") {
                let i = i.to_string();
                return Err(self.refuse(
                    &["green", "subnets", &i],
                    format!("`{subnet}` is no subnet id"),
                    "write it as `subnet-...`",
                ));
            }
        }
        self.unique(
            &["green", "subnets"],
            green.subnets.iter().map(String::as_str),
        )?;
        if let Some(cidr) = &green.service_cidr {
            service_cidr(cidr).map_err(|why| {
                self.refuse(
                    &["green", "serviceCidr"],
                    format!("`{cidr}` cannot be green's service range: {why}"),
                    "give a range inside 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16, between /24 and /12 (kops's 100.64.0.0/13 cannot be kept)",
                )
            })?;
        }
        for (i, access) in green.access.iter().enumerate() {
            let i = i.to_string();
            let arn = &access.principal;
            let iam = arn.starts_with("arn:")
                && arn.contains(":iam:")
                && (arn.contains(":role/") || arn.contains(":user/"));
            if !iam {
                return Err(self.refuse(
                    &["green", "access", &i, "principal"],
                    format!("`{arn}` is no IAM role or user"),
                    "give the ARN of an IAM role or user, as in arn:aws:iam::123456789012:role/NAME (never of an STS session)",
                ));
            }
            for (j, group) in access.groups.iter().enumerate() {
                if group.starts_with("system:") {
                    let j = j.to_string();
                    return Err(self.refuse(
                        &["green", "access", &i, "groups", &j],
                        format!("EKS refuses the group `{group}` in an access entry"),
                        "use `policy: AmazonEKSClusterAdminPolicy`, or a group of your own with a binding",
                    ));
                }
            }
            if access.policy.is_none() && access.groups.is_empty() {
                return Err(self.refuse(
                    &["green", "access", &i],
                    format!("the access of `{arn}` allows nothing"),
                    "give a policy or at least one group",
                ));
            }
        }
        for (i, access) in green.access.iter().enumerate() {
            if let Some(policy) = access.policy.as_deref()
                && !ACCESS_POLICIES.contains(&policy)
            {
                let i = i.to_string();
                let near = yaml::nearest(policy, ACCESS_POLICIES.iter().copied())
                    .map(|n| format!("did you mean `{n}`? "))
                    .unwrap_or_default();
                return Err(self.refuse(
                    &["green", "access", &i, "policy"],
                    format!("`{policy}` is no access policy of EKS"),
                    format!("{near}EKS has {}", ACCESS_POLICIES.join(", ")),
                ));
            }
        }
        self.roles(green)?;
        let mut principals = BTreeSet::new();
        for (i, access) in green.access.iter().enumerate() {
            if !principals.insert(&access.principal) {
                let i = i.to_string();
                return Err(self.refuse(
                    &["green", "access", &i, "principal"],
                    format!("`{}` is named twice", access.principal),
                    "EKS has one access entry a principal: put its groups together",
                ));
            }
        }
        Ok(())
    }

    /// eks.md 1.6. Whether blue has such an instance group only the planner can tell.
    fn node_groups(&self, spec: &Spec) -> Result<()> {
        for (name, wish) in &spec.green.node_groups {
            let at = |key: &'static str| ["green", "nodeGroups", name.as_str(), key];
            if wish.instance_types.len() > 20 {
                return Err(self.refuse(
                    &at("instanceTypes"),
                    format!("{} instance types", wish.instance_types.len()),
                    "a managed node group takes 1 to 20",
                ));
            }
            for (i, t) in wish.instance_types.iter().enumerate() {
                let good = t.split_once('.').is_some_and(|(family, size)| {
                    [family, size].iter().all(|p| {
                        !p.is_empty()
                            && p.chars()
                                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
                    })
                });
                if !good {
                    let i = i.to_string();
                    return Err(self.refuse(
                        &["green", "nodeGroups", name, "instanceTypes", &i],
                        format!("`{t}` is no instance type"),
                        "write it as `m6i.large`",
                    ));
                }
            }
            self.unique(
                &at("instanceTypes"),
                wish.instance_types.iter().map(String::as_str),
            )?;
            if let Some(ami) = &wish.ami_type
                && !AMI_TYPES.contains(&ami.as_str())
            {
                let near = yaml::nearest(ami, AMI_TYPES.iter().copied())
                    .map(|n| format!(" (did you mean {n}?)"))
                    .unwrap_or_default();
                return Err(self.refuse(
                    &at("amiType"),
                    format!("`{ami}` is no AMI type that crossfade makes nodes of{near}"),
                    format!("one of {}", AMI_TYPES.join(", ")),
                ));
            }
            if wish.max == Some(0) {
                return Err(self.refuse(
                    &at("max"),
                    "the largest size is 0",
                    "a managed node group has at least 1; say `skip: true` for no group",
                ));
            }
            if let (Some(min), Some(max)) = (wish.min, wish.max)
                && min > max
            {
                return Err(self.refuse(
                    &at("min"),
                    format!("the smallest size {min} is above the largest {max}"),
                    "turn them round",
                ));
            }
            for (k, v) in &wish.labels {
                if ["kubernetes.io/", "k8s.io/", "eks.amazonaws.com/"]
                    .iter()
                    .any(|part| k.contains(part))
                {
                    return Err(self.refuse(
                        &["green", "nodeGroups", name, "labels", k],
                        format!("EKS refuses the label `{k}`"),
                        "use a name of your own: those of Kubernetes, kops and EKS are reserved",
                    ));
                }
                if !label_key(k) || !(v.is_empty() || label_name(v)) {
                    return Err(self.refuse(
                        &["green", "nodeGroups", name, "labels", k],
                        format!("`{k}: {v}` is no label"),
                        "use at most 63 letters, digits, `-`, `_` and `.`, beginning and ending with a letter or digit; before the name a DNS name and `/` may stand",
                    ));
                }
            }
        }
        Ok(())
    }

    fn roles(&self, green: &super::model::Green) -> Result<()> {
        for (account, wish) in &green.roles {
            let path = ["green", "roles", account.as_str()];
            let parts: Vec<&str> = account.split('/').collect();
            if parts.len() != 2 || parts.iter().any(|p| p.is_empty()) {
                return Err(self.refuse(
                    &path,
                    format!("`{account}` names no service account"),
                    "write it as `NAMESPACE/ACCOUNT`",
                ));
            }
            let own = !wish.from_node_role.is_empty() || !wish.policies.is_empty();
            if wish.role.is_some() && own {
                return Err(self.refuse(
                    &path,
                    format!("`{account}` names a role that exists and rights for a new one"),
                    "keep `role`, or keep `fromNodeRole` and `policies`: crossfade adds no rights to a role that others use",
                ));
            }
            if wish.role.is_none() && !own {
                return Err(self.refuse(
                    &path,
                    format!("`{account}` gets nothing"),
                    "give `role`, `fromNodeRole` or `policies`, or leave the account out",
                ));
            }
            if let Some(bad) = wish.from_node_role.iter().find(|s| !s.contains('/')) {
                return Err(self.refuse(
                    &path,
                    format!("`{bad}` names no statement"),
                    "write it as the finding IAM-04 does: `POLICY/SID` or `POLICY/INDEX`",
                ));
            }
            if let Some(bad) = wish
                .policies
                .iter()
                .find(|p| !(p.starts_with("arn:") && p.contains(":policy/")))
            {
                return Err(self.refuse(
                    &path,
                    format!("`{bad}` is no managed policy"),
                    "give its ARN, as in arn:aws:iam::123456789012:policy/NAME",
                ));
            }
        }
        Ok(())
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
            l.write_concurrency.into(),
            1,
            64,
            "",
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
        Some((prefix, name)) => is_host(prefix) && !prefix.contains('*') && label_name(name),
    }
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
