//! What an ExternalDNS says that it would do (`--dry-run`), so that it can be held against what the model says.

use super::bare;
use super::switch::record_of;
use crate::world::dns::Change;
use std::collections::BTreeSet;

/// One change, as the log and the model can both spell it: action, name without final dot, type.
pub type Said = (String, String, String);

/// The changes that a log of any age announces, in text or JSON (externaldns.md 6).
pub fn announced(log: &str) -> BTreeSet<Said> {
    const MARK: &str = "Desired change: ";
    log.lines()
        .filter_map(|line| {
            let rest = &line[line.find(MARK)? + MARK.len()..];
            let mut words = rest
                .split(|c: char| c.is_whitespace() || c == '"' || c == '\\')
                .filter(|w| !w.is_empty());
            let (action, name, rtype) = (words.next()?, words.next()?, words.next()?);
            Some((action.to_uppercase(), plain(name), rtype.to_uppercase()))
        })
        .collect()
}

/// The same of the model's changes.
pub fn of_changes(changes: &[Change]) -> BTreeSet<Said> {
    changes
        .iter()
        .map(|c| {
            let action = match c {
                Change::Create(_) => "CREATE",
                Change::Delete(_) => "DELETE",
                Change::Upsert(_) => "UPSERT",
            };
            let r = record_of(c);
            (action.into(), plain(&r.name), r.rtype.clone())
        })
        .collect()
}

/// The escape of a wildcard loses its backslash in a log line that is JSON inside text.
fn plain(name: &str) -> String {
    let n = bare(name);
    match n.strip_prefix("052.") {
        Some(rest) => format!("*.{rest}"),
        None => n,
    }
}

/// Where the two differ, one line each; empty when they agree (externaldns.md rule 11).
pub fn differences(binary: &BTreeSet<Said>, model: &BTreeSet<Said>) -> Vec<String> {
    let line = |who: &str, s: &Said| format!("only {who}: {} {} {}", s.0, s.1, s.2);
    let mut out: Vec<String> = binary
        .difference(model)
        .map(|s| line("ExternalDNS", s))
        .collect();
    out.extend(model.difference(binary).map(|s| line("the plan", s)));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_json_logs_say_the_same() {
        let text = "time=\"2026-11-30T10:00:00Z\" level=info msg=\"Desired change: CREATE a-www.shop.test TXT [Id: /hostedzone/Z1]\"";
        let json = r#"{"level":"info","msg":"Desired change: CREATE a-www.shop.test TXT","profile":"default","zoneName":"shop.test."}"#;
        let want = BTreeSet::from([(
            "CREATE".to_string(),
            "a-www.shop.test".to_string(),
            "TXT".to_string(),
        )]);
        assert_eq!(announced(text), want);
        assert_eq!(announced(json), want);
        assert!(announced("level=info msg=\"All records are already up to date\"").is_empty());
        assert_eq!(
            differences(&want, &BTreeSet::new()),
            ["only ExternalDNS: CREATE a-www.shop.test TXT"]
        );
    }
}
