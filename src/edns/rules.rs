//! The 18 rules and 28 traps of externaldns.md (8 and 9): what each says. A test finds one without a test of its number (`dns_rule_07_...`,
//! `dns_trap_12_...`); where a rule is about ExternalDNS's own behaviour, the real binaries decide in `tests/edns_ages.rs`.

/// A rule that the cutover keeps, or a trap that it stays out of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Row {
    /// Number in externaldns.md.
    pub number: u32,
    /// What it says.
    pub says: &'static str,
    /// The real binary decides: ExternalDNS's own behaviour, of an age that can be had (0.10.2, 0.14.2, 0.21.0).
    pub binary: bool,
}

const fn ours(number: u32, says: &'static str) -> Row {
    Row {
        number,
        says,
        binary: false,
    }
}

const fn theirs(number: u32, says: &'static str) -> Row {
    Row {
        number,
        says,
        binary: true,
    }
}

/// externaldns.md 8.
pub const RULES: [Row; 18] = [
    ours(
        1,
        "every writer of the zones on blue is known, with version, owner, flags and filters; one that cannot be told is refused",
    ),
    ours(
        2,
        "each zone is kept whole before it is changed, and can be restored byte for byte",
    ),
    ours(
        3,
        "each record is classified: whose, alias or not, simple or routed, with all its ownership TXTs",
    ),
    ours(
        4,
        "what cannot be told apart is refused: registries without TXT, shared owners, encryption without the key, zones of one name",
    ),
    theirs(
        5,
        "TTLs are lowered only where there is one, never on registry TXTs; annotated ones through the annotation; the old ones run out first",
    ),
    ours(
        6,
        "blue's ExternalDNS is stopped and proven stopped, again before each later phase",
    ),
    theirs(
        7,
        "the owner is rewritten in every TXT variant of a name, in one batch; a resurrected blue plans nothing",
    ),
    ours(8, "what nobody owns gets no ownership TXT"),
    theirs(
        9,
        "green starts as upsert-only, with blue's affixes and filters and its annotation prefix pinned",
    ),
    ours(
        10,
        "a name moves only when its own target on green is there, is green's and answers; only that name waits",
    ),
    theirs(
        11,
        "a dry run of green changes nothing that the plan does not name",
    ),
    theirs(
        12,
        "after green's first loop the zone is what was planned, by the zone itself and not by a log line",
    ),
    ours(
        13,
        "sync comes last, with nothing owned that green does not want",
    ),
    theirs(
        14,
        "the way back restores every record and TXT, takes away what green added, and needs no ExternalDNS of blue",
    ),
    ours(
        15,
        "each write has the old value as its condition, each name its progress; a crash anywhere ends the same",
    ),
    ours(
        16,
        "blue is not deleted while it owns a live name, or while that would take away what green needs",
    ),
    ours(
        17,
        "the account's budget is kept: 2 requests a second, 1000 values and 32000 characters a batch, names never split",
    ),
    theirs(18, "TTLs stay low on green until the way back is closed"),
];

/// externaldns.md 9.
pub const TRAPS: [Row; 28] = [
    theirs(
        1,
        "a legacy TXT left with blue's owner lets an old blue flip the name back",
    ),
    ours(
        2,
        "a green of 0.22 leaves cname TXTs that a blue of 0.17 to 0.21 still believes (0.22 cannot be had: fixture)",
    ),
    ours(
        3,
        "with 0.12 to 0.13.4 the last listed variant decides, so ownership hangs on the host name (0.12 cannot be had: fixture)",
    ),
    theirs(
        4,
        "a blue that still owns a name deletes green's live record when its ingress goes",
    ),
    theirs(
        5,
        "green as sync with blue's owner deletes each name whose load balancer is pending",
    ),
    ours(
        6,
        "a green of 0.22 reads no alpha annotations (0.22 cannot be had: fixture)",
    ),
    theirs(
        7,
        "one character in owner or prefix means: silently nothing",
    ),
    theirs(
        8,
        "an orphan TXT makes green create a record that it does not own",
    ),
    theirs(
        9,
        "the migrate flag never settles, and as sync goes for what this cluster does not want",
    ),
    theirs(10, "a lowered TTL jumps to 300 at green's first upsert"),
    theirs(
        11,
        "a registry TXT with another TTL cannot be deleted by ExternalDNS any more",
    ),
    theirs(12, "a running blue reverts an annotated TTL"),
    theirs(
        13,
        "an alias AAAA stays on green after the way back to an old blue",
    ),
    theirs(
        14,
        "another record type under upsert-only conflicts for ever",
    ),
    ours(
        15,
        "one poison record blocks the whole zone before 0.13.4 (fixture; 0.10.2 refuses in the twin)",
    ),
    theirs(16, "the typed TXT of an apex lies outside its zone"),
    theirs(17, "a host called a-team gives its ownership to team"),
    theirs(
        18,
        "wildcards are listed as \\052, and their TXT follows the replacement",
    ),
    theirs(
        19,
        "routed records are told apart by their set identifier, which TXTs carry too",
    ),
    theirs(
        20,
        "a private zone of the same name gets the change as well",
    ),
    ours(21, "two replicas are two writers"),
    ours(22, "kops's add-on manager starts blue's ExternalDNS again"),
    ours(23, "caches hide our edits from green"),
    ours(
        24,
        "a copied target or status is a cutover that still points at blue",
    ),
    ours(25, "throttling in the middle of a handover"),
    theirs(
        26,
        "an encrypted TXT looks like nobody's, and `default` is the owner of many",
    ),
    ours(27, "an alias has no TTL, or 0 from emulators"),
    theirs(
        28,
        "of several TXT values only the first is read; the others stay",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Names of all test functions below a place.
    fn tests_below(place: &Path, found: &mut Vec<String>) {
        if place.is_dir() {
            for entry in std::fs::read_dir(place).expect("a source folder") {
                tests_below(&entry.expect("readable").path(), found);
            }
        } else if place.extension().is_some_and(|e| e == "rs") {
            let text = std::fs::read_to_string(place).expect("readable");
            let mut armed = false;
            for line in text.lines().map(str::trim) {
                if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
                    armed = true;
                } else if let Some(rest) = line
                    .strip_prefix("fn ")
                    .or_else(|| line.strip_prefix("async fn "))
                    && armed
                {
                    found.push(rest.split('(').next().unwrap_or_default().to_string());
                    armed = false;
                }
            }
        }
    }

    fn missing(rows: &[Row], word: &str, names: &[String]) -> Vec<String> {
        let prefix = |r: &Row| format!("dns_{word}_{:02}_", r.number);
        rows.iter()
            .map(prefix)
            .filter(|p| !names.iter().any(|n| n.starts_with(p.as_str())))
            .collect()
    }

    #[test]
    fn each_of_the_18_rules_and_28_traps_has_a_test_named_after_it() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut names = vec![];
        tests_below(&root.join("src"), &mut names);
        tests_below(&root.join("tests"), &mut names);
        let mut without = missing(&RULES, "rule", &names);
        without.extend(missing(&TRAPS, "trap", &names));
        assert!(without.is_empty(), "without a test: {without:?}");
    }

    #[test]
    fn where_external_dns_itself_is_meant_the_real_binary_decides() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut names = vec![];
        tests_below(&root.join("tests/edns_ages.rs"), &mut names);
        tests_below(&root.join("tests/edns_ages"), &mut names);
        let of = |rows: &[Row]| -> Vec<Row> { rows.iter().filter(|r| r.binary).copied().collect() };
        let mut without = missing(&of(&RULES), "rule", &names);
        without.extend(missing(&of(&TRAPS), "trap", &names));
        assert!(without.is_empty(), "without a binary: {without:?}");
    }

    #[test]
    fn every_row_stands_at_its_number() {
        for rows in [&RULES[..], &TRAPS[..]] {
            for (n, row) in rows.iter().enumerate() {
                assert_eq!(row.number as usize, n + 1);
            }
        }
    }
}
