//! What an ExternalDNS instance was told: its version from the image tag, its behaviour from its arguments.

use crate::error::{Error, Kind, Result};
use std::fmt;

/// Version of ExternalDNS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Major.
    pub major: u32,
    /// Minor.
    pub minor: u32,
    /// Patch.
    pub patch: u32,
}

impl Version {
    /// A version.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Version {
            major,
            minor,
            patch,
        }
    }
    /// Whether this is at least `0.minor.patch`.
    pub fn at_least(self, minor: u32, patch: u32) -> bool {
        self >= Version::new(0, minor, patch)
    }
    /// From an image reference (`repo:v0.10.2`, `repo:0.10.2-debian-10-r1@sha256:...`, `repo:v20230529-v0.13.5`).
    pub fn of_image(image: &str) -> Option<Version> {
        let without_digest = image.split('@').next()?;
        let last = without_digest.rsplit('/').next()?;
        let (_, tag) = last.split_once(':')?;
        Version::of_text(tag)
    }
    /// From a tag or a label: the first part between `-`, `+` and `_` that is three numbers.
    pub fn of_text(text: &str) -> Option<Version> {
        text.trim().split(['-', '+', '_']).find_map(|part| {
            let mut parts = part
                .trim_start_matches('v')
                .split('.')
                .map(|p| p.parse::<u32>().ok());
            let version = Version::new(parts.next()??, parts.next()??, parts.next()??);
            parts.next().is_none().then_some(version)
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// What an instance may do to records (externaldns.md 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Create, update, delete.
    Sync,
    /// Create, update.
    UpsertOnly,
    /// Create.
    CreateOnly,
}

/// Configuration of one instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Image as written.
    pub image: String,
    /// Version from the image's tag.
    pub version: Version,
    /// `--provider`.
    pub provider: String,
    /// `--txt-owner-id`, `default` when absent (externaldns.md 1.2).
    pub owner: String,
    /// Whether the owner was given, not defaulted.
    pub owner_given: bool,
    /// `--policy`; `sync` when absent up to 0.21.
    pub policy: Policy,
    /// `--registry`: `txt`, `noop`, `dynamodb`, `aws-sd`, `crd`.
    pub registry: String,
    /// `--txt-prefix`, lower case.
    pub prefix: String,
    /// `--txt-suffix`, lower case.
    pub suffix: String,
    /// `--txt-wildcard-replacement`, lower case, empty when absent.
    pub wildcard: String,
    /// `--txt-encrypt-enabled`.
    pub encrypted: bool,
    /// `--txt-new-format-only` (0.16, 0.17).
    pub new_format_only: bool,
    /// `--migrate-from-txt-owner`.
    pub migrate_from: Option<String>,
    /// `--source`s.
    pub sources: Vec<String>,
    /// `--domain-filter`s.
    pub domain_filter: Vec<String>,
    /// `--exclude-domains`.
    pub exclude_domains: Vec<String>,
    /// `--zone-id-filter`s.
    pub zone_ids: Vec<String>,
    /// `--aws-zone-type`: `public`, `private` or empty for both.
    pub zone_type: String,
    /// `--aws-zone-match-parent`.
    pub match_parent: bool,
    /// `--interval`, seconds; 60 when absent.
    pub interval: u32,
    /// Annotation prefix with the final slash.
    pub annotation_prefix: String,
    /// `--managed-record-types`, or the version's default.
    pub managed: Vec<String>,
    /// `--exclude-record-types`.
    pub excluded: Vec<String>,
    /// `--namespace`.
    pub namespace: Option<String>,
    /// `--ingress-class`es.
    pub ingress_classes: Vec<String>,
    /// `--annotation-filter`.
    pub annotation_filter: Option<String>,
    /// `--label-filter`.
    pub label_filter: Option<String>,
    /// `--service-type-filter`s.
    pub service_types: Vec<String>,
    /// `--publish-internal-services`.
    pub publish_internal: bool,
    /// `--ignore-ingress-tls-spec`.
    pub ignore_tls: bool,
    /// `--ignore-ingress-rules-spec`.
    pub ignore_rules: bool,
    /// `--ignore-hostname-annotation`.
    pub ignore_hostname: bool,
    /// `--compatibility`.
    pub compatibility: Option<String>,
    /// `--fqdn-template`: not modelled; names it makes are not known.
    pub fqdn_template: Option<String>,
    /// `--min-ttl` in seconds (usable from 0.21).
    pub min_ttl: Option<u32>,
    /// `--aws-prefer-cname`.
    pub prefer_cname: bool,
    /// `--aws-evaluate-target-health`.
    pub evaluate_target_health: bool,
    /// `--dry-run`.
    pub dry_run: bool,
    /// `--once`.
    pub once: bool,
    /// `--txt-cache-interval`, `--provider-cache-time` or `--aws-zones-cache-duration` is not zero (externaldns.md 1.6).
    pub caches: bool,
    /// Flags that this model does not know, as written: what they do is unknown.
    pub unknown: Vec<String>,
}

/// Flags that take a value and change nothing that the model computes.
const HARMLESS: &[&str] = &[
    "server",
    "kubeconfig",
    "request-timeout",
    "log-format",
    "log-level",
    "metrics-address",
    "aws-batch-change-size",
    "aws-batch-change-size-bytes",
    "aws-batch-change-size-values",
    "aws-batch-change-interval",
    "aws-api-retries",
    "aws-assume-role",
    "aws-assume-role-external-id",
    "aws-profile",
    "min-event-sync-interval",
    "crd-source-apiversion",
    "crd-source-kind",
    "txt-encrypt-aes-key",
    "gloo-namespace",
    "skipper-routegroup-groupversion",
    "openshift-router-name",
    "contour-load-balancer",
    "google-project",
];
/// Switches (no value) of the same kind.
const HARMLESS_SWITCHES: &[&str] = &[
    "events",
    "always-publish-not-ready-addresses",
    "publish-host-ip",
    "aws-sd-service-cleanup",
    "listen-endpoint-events",
    "exclude-unschedulable",
];
/// Switches that the model knows.
const SWITCHES: &[&str] = &[
    "dry-run",
    "once",
    "txt-encrypt-enabled",
    "txt-new-format-only",
    "aws-prefer-cname",
    "aws-evaluate-target-health",
    "aws-zone-match-parent",
    "publish-internal-services",
    "ignore-ingress-tls-spec",
    "ignore-ingress-rules-spec",
    "ignore-hostname-annotation",
    "combine-fqdn-annotation",
];

impl Config {
    /// From an image and its arguments (`--flag=value` or `--flag value`). A flag that is not known lands in `unknown`.
    pub fn from_args(image: &str, args: &[String]) -> Result<Config> {
        let version = Version::of_image(image).ok_or_else(|| {
            Error::new(
                Kind::BadInput,
                format!("the ExternalDNS version cannot be told from image `{image}`"),
            )
            .remedy("Use an image with a tag such as `:v0.21.0`: ownership depends on the version.")
        })?;
        Config::of_version(image, version, args)
    }

    pub(super) fn of_version(image: &str, version: Version, args: &[String]) -> Result<Config> {
        let mut c = Config::defaults(image, version);
        let mut policy_given = false;
        let mut managed = vec![];
        let mut it = args.iter().peekable();
        while let Some(arg) = it.next() {
            let Some(flag) = arg.strip_prefix("--") else {
                if !arg.is_empty() {
                    c.unknown.push(arg.clone());
                }
                continue;
            };
            let (name, mut value) = match flag.split_once('=') {
                Some((n, v)) => (n, Some(v.to_string())),
                None => (flag, None),
            };
            let positive = name.strip_prefix("no-").unwrap_or(name);
            if SWITCHES.contains(&positive) || HARMLESS_SWITCHES.contains(&positive) {
                let on = positive == name && value.as_deref() != Some("false");
                c.switch(positive, on);
                continue;
            }
            if value.is_none() && it.peek().is_some_and(|next| !next.starts_with("--")) {
                value = it.next().cloned();
            }
            let v = value.unwrap_or_default();
            match name {
                "policy" => {
                    policy_given = true;
                    c.policy = match v.as_str() {
                        "sync" => Policy::Sync,
                        "upsert-only" => Policy::UpsertOnly,
                        "create-only" => Policy::CreateOnly,
                        _ => return Err(bad(image, "--policy", &v)),
                    }
                }
                "interval" => {
                    c.interval = seconds(&v).ok_or_else(|| bad(image, "--interval", &v))?
                }
                "min-ttl" => {
                    c.min_ttl = Some(seconds(&v).ok_or_else(|| bad(image, "--min-ttl", &v))?)
                }
                "managed-record-types" => managed.push(v.to_uppercase()),
                _ if c.value(name, &v) => {}
                _ => c.unknown.push(arg.clone()),
            }
        }
        if !managed.is_empty() {
            c.managed = managed;
        }
        if !policy_given && version.at_least(22, 0) {
            return Err(Error::new(
                Kind::BadInput,
                format!("ExternalDNS {version} does not start without --policy"),
            )
            .at(image)
            .remedy("Give --policy=upsert-only or --policy=sync."));
        }
        if !c.prefix.is_empty() && !c.suffix.is_empty() {
            return Err(Error::new(
                Kind::BadInput,
                "--txt-prefix and --txt-suffix exclude each other",
            )
            .at(image)
            .remedy("Give only one."));
        }
        Ok(c)
    }

    fn defaults(image: &str, version: Version) -> Config {
        let mut managed = vec!["A".to_string(), "CNAME".to_string()];
        if version.at_least(13, 5) {
            managed.insert(1, "AAAA".into());
        }
        Config {
            image: image.into(),
            version,
            provider: String::new(),
            owner: "default".into(),
            owner_given: false,
            policy: Policy::Sync,
            registry: "txt".into(),
            prefix: String::new(),
            suffix: String::new(),
            wildcard: String::new(),
            encrypted: false,
            new_format_only: false,
            migrate_from: None,
            sources: vec![],
            domain_filter: vec![],
            exclude_domains: vec![],
            zone_ids: vec![],
            zone_type: String::new(),
            match_parent: false,
            interval: 60,
            // 0.22 changed the default with no fall-back (externaldns.md 0).
            annotation_prefix: if version.at_least(22, 0) {
                "external-dns.kubernetes.io/".into()
            } else {
                "external-dns.alpha.kubernetes.io/".into()
            },
            managed,
            excluded: vec![],
            namespace: None,
            ingress_classes: vec![],
            annotation_filter: None,
            label_filter: None,
            service_types: vec![],
            publish_internal: false,
            ignore_tls: false,
            ignore_rules: false,
            ignore_hostname: false,
            compatibility: None,
            fqdn_template: None,
            min_ttl: None,
            prefer_cname: false,
            evaluate_target_health: true,
            dry_run: false,
            once: false,
            caches: false,
            unknown: vec![],
        }
    }

    fn switch(&mut self, name: &str, on: bool) {
        match name {
            "dry-run" => self.dry_run = on,
            "once" => self.once = on,
            "txt-encrypt-enabled" => self.encrypted = on,
            "txt-new-format-only" => self.new_format_only = on,
            "aws-prefer-cname" => self.prefer_cname = on,
            "aws-evaluate-target-health" => self.evaluate_target_health = on,
            "aws-zone-match-parent" => self.match_parent = on,
            "publish-internal-services" => self.publish_internal = on,
            "ignore-ingress-tls-spec" => self.ignore_tls = on,
            "ignore-ingress-rules-spec" => self.ignore_rules = on,
            "ignore-hostname-annotation" => self.ignore_hostname = on,
            _ => {}
        }
    }

    /// Takes a flag with a value; `false` when the flag is not known.
    fn value(&mut self, name: &str, v: &str) -> bool {
        let v = v.to_string();
        match name {
            "provider" => self.provider = v,
            "txt-owner-id" => {
                self.owner = v;
                self.owner_given = true;
            }
            "registry" => self.registry = v,
            "txt-prefix" => self.prefix = v.to_lowercase(),
            "txt-suffix" => self.suffix = v.to_lowercase(),
            "txt-wildcard-replacement" => self.wildcard = v.to_lowercase(),
            "migrate-from-txt-owner" => self.migrate_from = Some(v),
            "source" => self.sources.push(v),
            "domain-filter" if v.is_empty() => {}
            "domain-filter" => self.domain_filter.push(v.to_lowercase()),
            "exclude-domains" => self.exclude_domains.push(v.to_lowercase()),
            "zone-id-filter" => {
                self.zone_ids
                    .push(v.trim_start_matches("/hostedzone/").into());
            }
            "aws-zone-type" => self.zone_type = v,
            "annotation-prefix" => {
                self.annotation_prefix = if v.ends_with('/') { v } else { format!("{v}/") }
            }
            "exclude-record-types" => self.excluded.push(v.to_uppercase()),
            "namespace" => self.namespace = (!v.is_empty()).then_some(v),
            "ingress-class" => self.ingress_classes.push(v),
            "annotation-filter" => self.annotation_filter = (!v.is_empty()).then_some(v),
            "label-filter" => self.label_filter = (!v.is_empty()).then_some(v),
            "service-type-filter" => self.service_types.push(v),
            "compatibility" => self.compatibility = (!v.is_empty()).then_some(v),
            "fqdn-template" => self.fqdn_template = (!v.is_empty()).then_some(v),
            "txt-cache-interval" | "provider-cache-time" | "aws-zones-cache-duration" => {
                self.caches |= seconds(&v) != Some(0);
            }
            _ => return HARMLESS.contains(&name),
        }
        true
    }

    /// Whether the instance looks at a zone at all.
    pub fn sees_zone(&self, zone: &crate::world::dns::Zone) -> bool {
        let name = super::bare(&zone.name);
        let by_type = match self.zone_type.as_str() {
            "public" => !zone.private,
            "private" => zone.private,
            _ => true,
        };
        let by_id = self.zone_ids.is_empty() || self.zone_ids.contains(&zone.id);
        let by_name = self.matches_domain(&name)
            || self.match_parent && self.domain_filter.iter().any(|f| super::in_zone(f, &name));
        by_type && by_id && by_name
    }

    /// `--domain-filter` and `--exclude-domains` on a name without final dot.
    pub fn matches_domain(&self, name: &str) -> bool {
        let under = |f: &String| {
            let f = f.trim_end_matches('.');
            match f.strip_prefix('.') {
                Some(_) => name.ends_with(f),
                None => name == f || name.ends_with(&format!(".{f}")),
            }
        };
        (self.domain_filter.is_empty() || self.domain_filter.iter().any(under))
            && !self.exclude_domains.iter().any(under)
    }

    /// Whether records of a type are managed.
    pub fn manages(&self, rtype: &str) -> bool {
        self.managed.iter().any(|m| m == rtype) && !self.excluded.iter().any(|m| m == rtype)
    }
}

fn bad(image: &str, flag: &str, value: &str) -> Error {
    Error::new(
        Kind::BadInput,
        format!("ExternalDNS would not start: {flag} has the value `{value}`"),
    )
    .at(image)
    .remedy("Correct the argument of the ExternalDNS workload.")
}

/// Seconds of a Go duration (`90s`, `1m30s`, `2h`) or a plain number.
pub(crate) fn seconds(text: &str) -> Option<u32> {
    if let Ok(n) = text.parse::<u32>() {
        return Some(n);
    }
    let mut total = 0f64;
    let mut rest = text;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        let unit_end = rest[digits..]
            .find(|c: char| c.is_ascii_digit())
            .map_or(rest.len(), |i| digits + i);
        total += number
            * match &rest[digits..unit_end] {
                "ms" => 0.001,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3600.0,
                _ => return None,
            };
        rest = &rest[unit_end..];
    }
    (total <= f64::from(u32::MAX)).then_some(total as u32)
}
