//! DNS: owners, formats, writers (externaldns.md). Foreign records of moving hosts (DNS-02) are found where names are picked.

use super::{Input, Report};
use crate::edns::{self, Version, txt_written_by};
use crate::object::label;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// DNS-01, and rule 4: who cannot be told apart is refused.
pub(super) fn owners(i: &Input, r: &mut Report) {
    let green = i
        .spec
        .dns
        .external_dns
        .owner_id
        .clone()
        .unwrap_or_else(|| i.spec.green.name.clone());
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for (object, c) in i.instances {
        if !c.owner_given || c.owner == "default" {
            r.blocker(object, "has no --txt-owner-id: its owner is `default`, which every instance without one shares", "Give blue's ExternalDNS an owner of its own and let it rewrite its records first.");
        }
        if c.owner == green {
            r.blocker(
                object,
                format!("its owner `{green}` is green's too: ownership could not be told apart"),
                "Set dns.externalDns.ownerId to another value.",
            );
        }
        if c.encrypted {
            r.blocker(
                object,
                "its ownership records are encrypted, and the key is not known to crossfade",
                "Switch --txt-encrypt-enabled off and let it rewrite its records first.",
            );
        }
        if let Some(other) = seen.insert(&c.owner, object) {
            r.blocker(
                object,
                format!("shares owner `{}` with {other}", c.owner),
                "Give each instance an owner of its own.",
            );
        }
    }
    // The owner must not be in use in the zone by somebody else (a third cluster).
    for z in &i.snapshot.zones {
        let foreign = z
            .records
            .iter()
            .filter(|x| x.rtype == "TXT")
            .filter_map(|x| edns::Heritage::parse(x.values.first()?))
            .any(|h| h.owner() == Some(green.as_str()));
        if foreign {
            r.blocker(
                format!("zone/{}", z.zone.name.trim_end_matches('.')),
                format!(
                    "records of owner `{green}` are there already: somebody uses green's owner id"
                ),
                "Set dns.externalDns.ownerId to a value that nobody uses.",
            );
        }
    }
}

/// DNS-05: versions and what differs between them.
pub(super) fn formats(i: &Input, r: &mut Report) {
    if i.instances.is_empty() {
        return;
    }
    let Some(green) = Version::of_image(&i.spec.dns.external_dns.image) else {
        r.blocker(
            "dns.externalDns.image",
            format!(
                "no version can be told from `{}`",
                i.spec.dns.external_dns.image
            ),
            "Give an image with a version tag.",
        );
        return;
    };
    if i.cx.green_minor >= 33 && !green.at_least(18, 0) {
        r.blocker(
            "dns.externalDns.image",
            format!(
                "ExternalDNS {green} does not run on Kubernetes 1.{}",
                i.cx.green_minor
            ),
            "Take 0.18 or later.",
        );
    }
    for (object, c) in i.instances {
        if !c.unknown.is_empty() {
            r.blocker(object, format!("arguments that crossfade does not know: {}", c.unknown.join(" ")), "Remove them, or report them: what they do to records is unknown (externaldns.md rule 1).");
        }
        if c.fqdn_template.is_some() {
            r.warning(object, "--fqdn-template makes names that are not in the objects: crossfade does not know them", "Write the host names into the objects.");
        }
        if c.caches {
            r.warning(
                object,
                "caches records or zones: it may not see a change for that long",
                "Set the cache intervals to 0 before the cutover.",
            );
        }
        if txt_written_by(c.version) != txt_written_by(green) {
            r.info(object, format!("{} writes other ownership records than green's {green}: every variant is handed over", c.version), "Nothing to do.");
        }
        let prefix = if green.at_least(20, 0) {
            c.annotation_prefix.clone()
        } else {
            "external-dns.alpha.kubernetes.io/".into()
        };
        if prefix != c.annotation_prefix {
            r.blocker(
                object,
                format!(
                    "blue reads annotations with prefix {}, green's {green} cannot",
                    c.annotation_prefix
                ),
                "Take ExternalDNS 0.20 or later on green.",
            );
        }
    }
}

/// DNS-08.
pub(super) fn ttl_on_alias(i: &Input, r: &mut Report) {
    let Some((_, c)) = i.instances.first() else {
        return;
    };
    for n in i.names.iter().filter(|n| n.ttl.is_none()) {
        let annotated = i.snapshot.blue.objects.iter().any(|o| {
            crate::object::ObjectId::of(o).is_some_and(|id| id.to_string() == n.object)
                && crate::object::annotation(o, &format!("{}ttl", c.annotation_prefix)).is_some()
        });
        if annotated {
            r.warning(format!("host/{}", n.host), "its TTL annotation has no effect: an alias has the TTL of its target (60 s for a load balancer)", "Plan with 60 s.");
        }
    }
}

/// DNS-10: a batch holds 1000 values and 32000 characters, an UPSERT counts twice.
pub(super) fn batches(i: &Input, r: &mut Report) {
    let mut by_wave: BTreeMap<(u32, &str), usize> = BTreeMap::new();
    for n in i.names {
        *by_wave.entry((n.wave, &n.zone_id)).or_default() += 2 + 2 * n.txt.len();
    }
    for ((wave, zone), values) in by_wave {
        if values > 1000 {
            r.warning(
                format!("zone/{zone}"),
                format!(
                    "wave {wave} needs {} batches: it is not one change any more",
                    values.div_ceil(1000)
                ),
                "Set dns.waveSize.",
            );
        }
    }
}

/// DNS-11: other owners in the same zones.
pub(super) fn other_writers(i: &Input, r: &mut Report) {
    let blue: BTreeSet<&str> = i.instances.iter().map(|(_, c)| c.owner.as_str()).collect();
    for z in &i.snapshot.zones {
        if !i.names.iter().any(|n| n.zone_id == z.zone.id) {
            continue;
        }
        let others: BTreeSet<String> = z
            .records
            .iter()
            .filter(|x| x.rtype == "TXT")
            .filter_map(|x| edns::Heritage::parse(x.values.first()?))
            .filter_map(|h| h.owner().map(String::from))
            .filter(|o| !blue.contains(o.as_str()))
            .collect();
        if !others.is_empty() {
            r.warning(
                format!("zone/{}", z.zone.name.trim_end_matches('.')),
                format!(
                    "other owners write here too: {}",
                    others.into_iter().collect::<Vec<_>>().join(", ")
                ),
                "Their records are never touched; ask them to pause during the cutover.",
            );
        }
    }
}

/// DNS-12: blue's ExternalDNS must stay stopped.
pub(super) fn stop_is_durable(i: &Input, r: &mut Report) {
    for (object, _) in i.instances {
        let Some(o) =
            i.snapshot.blue.objects.iter().find(|o| {
                crate::object::ObjectId::of(o).is_some_and(|id| id.to_string() == *object)
            })
        else {
            continue;
        };
        if o["kind"] != "Deployment" {
            r.blocker(
                object,
                "is no Deployment: it cannot be stopped by its replica count",
                "Run blue's ExternalDNS as a Deployment.",
            );
        }
        if label(o, "app.kubernetes.io/managed-by") == Some("kops")
            || label(o, "k8s-addon").is_some()
        {
            r.blocker(object, "is kept by kops's add-on manager, which may start it again (externaldns.md trap 22)", "Set externalDns.provider to none in the kops spec and run your own, or pause the add-on.");
        }
        let gitops = [
            "argocd.argoproj.io/instance",
            "kustomize.toolkit.fluxcd.io/name",
            "helm.toolkit.fluxcd.io/name",
        ]
        .iter()
        .any(|l| label(o, l).is_some());
        if gitops {
            r.blocker(
                object,
                "is kept by a GitOps tool, which would start it again",
                "Suspend its reconciler first.",
            );
        }
        let replicas = o
            .pointer("/spec/replicas")
            .and_then(Value::as_u64)
            .unwrap_or(1);
        if replicas != 1 {
            r.warning(
                object,
                format!("runs with {replicas} replicas"),
                "One replica writes; check why.",
            );
        }
    }
}
