//! ID-03: the zones are the ones that resolvers are sent to.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "ID-03",
    severity: Severity::Blocker,
    question: "Are these the zones that resolvers are sent to?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Correct the zones, or their delegation.",
    source: "checks.md ID-03",
    run,
};

/// ID-03.
fn run(i: &Input, r: &mut Report) {
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
