//! ID and IAM: the right account, the right zones, roles that green may assume.

use super::{Input, Report};
use serde_json::Value;

/// READ-01: what discover could not read is said, never taken for "nothing there".
pub(super) fn everything_was_read(i: &Input, r: &mut Report) {
    for gap in &i.snapshot.not_checked {
        r.not_checked(
            gap.what.clone(),
            &gap.why,
            "Give discover access to it, or the file that shows it, and plan again.",
        );
    }
}

/// ID-02.
pub(super) fn account_and_region(i: &Input, r: &mut Report) {
    let Some(aws) = &i.snapshot.aws else {
        r.not_checked(
            "aws",
            "the account was not read",
            "Run discover with AWS credentials.",
        );
        return;
    };
    if let Some(a) = &i.spec.aws.account
        && *a != aws.identity.account
    {
        r.blocker(
            "aws.account",
            format!(
                "migration.yaml says account {a}, the snapshot was made in {}",
                aws.identity.account
            ),
            "Use the right profile, then discover again.",
        );
    }
    if let Some(region) = &i.spec.aws.region
        && *region != aws.identity.region
    {
        r.blocker(
            "aws.region",
            format!(
                "migration.yaml says region {region}, the snapshot was made in {}",
                aws.identity.region
            ),
            "Use the right region, then discover again.",
        );
    }
}

/// ID-03.
pub(super) fn zones_are_public(i: &Input, r: &mut Report) {
    if i.instances.is_empty() {
        return;
    }
    if i.snapshot.zones.is_empty() && i.snapshot.blue.identity.is_some() {
        r.blocker(
            "dns",
            "blue's ExternalDNS runs, but no hosted zone was read: writes would move to green and no name would",
            "Correct dns.zones, or discover with the account that holds the zones.",
        );
        return;
    }
    if i.snapshot.zones.is_empty() {
        r.not_checked(
            "dns",
            "no hosted zone was read",
            "Run discover with access to Route 53, or give the zones' listings.",
        );
        return;
    }
    let plain = |name: &str| name.trim_end_matches('.').to_lowercase();
    for wanted in i.spec.dns.zones.iter().map(|z| plain(z)) {
        if !i
            .snapshot
            .zones
            .iter()
            .any(|z| plain(&z.zone.name) == wanted)
        {
            r.blocker(
                format!("zone/{wanted}"),
                "there is no hosted zone of this name among those that were read",
                "Correct dns.zones, or discover with the account that holds the zone.",
            );
        }
    }
    for a in &i.snapshot.zones {
        let twin = i
            .snapshot
            .zones
            .iter()
            .any(|b| b.zone.name == a.zone.name && b.zone.id != a.zone.id);
        let used = i.names.iter().any(|n| n.zone_id == a.zone.id);
        if twin
            && used
            && i.instances
                .iter()
                .any(|(_, c)| c.zone_type.is_empty() && c.zone_ids.is_empty())
        {
            r.blocker(format!("zone/{}", a.zone.name.trim_end_matches('.')), "there are two zones of this name, and blue's ExternalDNS writes to both (externaldns.md trap 20)", "Give blue's ExternalDNS --aws-zone-type or --zone-id-filter first.");
        } else if used && a.zone.private {
            r.warning(
                format!("zone/{}", a.zone.name.trim_end_matches('.')),
                "a private zone: it cannot be asked from outside the VPC",
                "Run the probes from inside.",
            );
        }
    }
}

/// ID-01, the part that a plan can see: green is neither blue nor something that is there already.
pub(super) fn green_is_not_blue(i: &Input, r: &mut Report) {
    if let Some(found) = i
        .snapshot
        .kops
        .cluster
        .as_ref()
        .and_then(|c| c.pointer("/metadata/name"))
        .and_then(Value::as_str)
        && found != i.spec.blue.cluster
    {
        r.blocker(
            "blue.cluster",
            format!(
                "migration.yaml says {}, the snapshot was made of {found}",
                i.spec.blue.cluster
            ),
            "Correct blue.cluster, or discover the right cluster.",
        );
    }
    if i.spec.green.name == i.spec.blue.cluster {
        r.blocker(
            "green.name",
            "green has blue's name: load balancer controllers would mistake one for the other",
            "Choose another name.",
        );
    }
    let Some(aws) = &i.snapshot.aws else { return };
    if let Some(c) = aws.clusters.iter().find(|c| c.name == i.spec.green.name) {
        let ours = c.tags.contains_key(crate::world::cloud::RUN_TAG);
        if !ours {
            r.blocker(
                format!("cluster/{}", c.name),
                "an EKS cluster of this name exists and was not made by crossfade",
                "Choose another name under green.name.",
            );
        }
    }
}

/// IAM-03.
pub(super) fn roles_exist_and_fit(i: &Input, r: &mut Report) {
    for role in i.target.roles.iter().filter(|x| x.existing) {
        let object = format!("role/{}", role.name);
        let Some(aws) = &i.snapshot.aws else {
            r.not_checked(
                object,
                "the account's roles were not read",
                "Run discover with AWS credentials.",
            );
            continue;
        };
        match aws.roles.iter().find(|x| x.name == role.name) {
            None => r.blocker(
                object,
                format!(
                    "service account {} needs this role, and the account does not have it",
                    role.service_account.as_deref().unwrap_or("?")
                ),
                "Create the role, or correct the annotation on blue.",
            ),
            Some(found) => {
                // One statement for green's issuer has about 443 characters (eks.md 3); the quota counts no white space.
                let size = text_size(&found.trust) + 443;
                if size > 2048 {
                    r.warning(object, format!("its trust policy would have {size} characters, the default quota is 2048"), "Raise the quota, or thin the policy out.");
                }
            }
        }
    }
}

fn text_size(v: &Value) -> usize {
    v.to_string().chars().filter(|c| !c.is_whitespace()).count()
}
