//! DNS-10: a batch holds 1000 values and 32 000 characters of values; ours delete the old value and create the new one, so each counts
//! twice, as an UPSERT does (externaldns.md 4, rule 17; practice.md 5). Five calls a second for the whole account.

use crate::checks::{Answered, Check, Input, Report};
use crate::edns::{Version, txt_written_by};
use crate::plan::model::{Name, Severity};
use crate::world::dns::RecordSet;
use std::collections::BTreeMap;

pub(super) const CHECK: Check = Check {
    id: "DNS-10",
    severity: Severity::Warning,
    question: "Does a wave need more than one batch of Route 53?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Set dns.waveSize so that a wave is one change, and pause other writers of the account.",
    source: "checks.md DNS-10",
    run,
};

/// Values and characters that handing over one name counts.
fn weight(
    n: &Name,
    records: &BTreeMap<(&str, &str), &RecordSet>,
    green_owner: &str,
    typed: bool,
) -> (usize, usize) {
    let host = format!("{}.", n.host);
    let sets: Vec<&RecordSet> = std::iter::once((host.as_str(), n.rtype.as_str()))
        .chain(n.txt.iter().map(|t| (t.as_str(), "TXT")))
        .filter_map(|k| records.get(&k).copied())
        .collect();
    // What is not in the listing (no zone was read) still is a record and its TXTs.
    let values = sets
        .iter()
        .map(|s| s.values.len().max(1))
        .sum::<usize>()
        .max(1 + n.txt.len());
    let characters: usize = sets.iter().flat_map(|s| &s.values).map(String::len).sum();
    let longest_txt = sets
        .iter()
        .filter(|s| s.rtype == "TXT")
        .flat_map(|s| &s.values)
        .map(String::len)
        .max()
        .unwrap_or(0);
    // Green's version adds its typed TXT where only the legacy one is there (externaldns.md 1.3).
    let one_more = usize::from(typed && n.txt.len() < 2);
    (
        2 * values + one_more,
        2 * characters + (n.txt.len() + one_more) * green_owner.len() + one_more * longest_txt,
    )
}

fn run(i: &Input, r: &mut Report) {
    let records: BTreeMap<(&str, &str), &RecordSet> = i
        .zones()
        .into_iter()
        .flat_map(|z| &z.records)
        .map(|x| ((x.name.as_str(), x.rtype.as_str()), x))
        .collect();
    let owner = i.spec.dns.external_dns.owner_id.as_ref();
    let owner = owner.unwrap_or(&i.spec.green.name);
    let typed =
        Version::of_image(&i.spec.dns.external_dns.image).is_none_or(|v| txt_written_by(v).typed);
    let mut by_wave: BTreeMap<(u32, &str), (usize, usize, usize)> = BTreeMap::new();
    for n in i.names {
        let (values, characters) = weight(n, &records, owner, typed);
        let w = by_wave.entry((n.wave, &n.zone_id)).or_default();
        *w = (w.0 + 1, w.1 + values, w.2 + characters);
    }
    for ((wave, zone), (names, values, characters)) in by_wave {
        let batches = values.div_ceil(1000).max(characters.div_ceil(32_000));
        if batches > 1 {
            // Each batch is in sync within 60 s, one after the other.
            r.found(
                format!("zone/{zone}"),
                format!("wave {wave} ({names} names, {values} values, {characters} characters) needs {batches} batches and up to {} s: it is not one change any more", batches * 60),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::Warning;
    use crate::snapshot::model::Snapshot;

    fn many(n: usize) -> Snapshot {
        let hosts: Vec<String> = (0..n).map(|n| format!("h{n:03}.shop.test")).collect();
        let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
        let mut s = with(vec![external_dns(&[]), ingress("web", &hosts)]);
        s.zones = vec![zone(kept(&hosts))];
        s
    }

    #[test]
    fn two_hundred_names_are_more_characters_than_one_batch_holds() {
        // 200 names of two values, deleted and created, and a typed TXT each: 1000 values, which one batch would hold; but a TXT has
        // about 90 characters.
        fires(
            &spec(),
            &many(200),
            "DNS-10",
            Warning,
            "wave 0 (200 names, 1000 values",
        );
        let mut s = spec();
        s.dns.wave_size = 50;
        silent(&s, &many(200), "DNS-10");
    }

    #[test]
    fn a_few_names_are_one_batch() {
        silent(&spec(), &many(20), "DNS-10");
    }
}
