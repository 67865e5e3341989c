//! DNS-01, and externaldns.md rule 4: who cannot be told apart is refused. A registry that keeps no TXT is found where names are picked.

use crate::checks::{Answered, Check, Input, Report};
use crate::edns;
use crate::plan::model::Severity;
use std::collections::BTreeMap;

pub(super) const CHECK: Check = Check {
    id: "DNS-01",
    severity: Severity::Blocker,
    question: "Is the owner id of an ExternalDNS missing, `default`, encrypted, or the same on both sides?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Set ids first.",
    source: "checks.md DNS-01",
    run,
};

fn run(i: &Input, r: &mut Report) {
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

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::Blocker;

    #[test]
    fn two_instances_of_one_owner_and_an_owner_that_somebody_else_uses_block() {
        let mut s = shop();
        let mut second = external_dns(&[]);
        second["metadata"]["name"] = "other-dns".into();
        s.blue.objects.push(second);
        fires(&spec(), &s, "DNS-01", Blocker, "shares owner `shop-blue`");
        let mut s = shop();
        s.zones[0]
            .records
            .push(txt("x.shop.test", "shop-green", "ingress/x/x"));
        fires(&spec(), &s, "DNS-01", Blocker, "somebody uses green's");
    }

    #[test]
    fn an_owner_of_its_own_is_fine() {
        silent(&spec(), &shop(), "DNS-01");
    }
}
