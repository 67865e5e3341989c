//! "Did you mean": the known field that a misspelt one is nearest to.

use super::row::{Doc, Piece, Table};
use crate::snapshot::kops::{Part, parts};

/// The known spelling of a path whose last unknown key differs by case, or by up to two letters.
pub(super) fn near(doc: Doc, path: &str) -> Option<String> {
    let parts = parts(path)?;
    let keys: Vec<&str> = parts
        .iter()
        .filter_map(|p| match p {
            Part::Key(k) => Some(k.as_str()),
            Part::Index(_) => None,
        })
        .collect();
    let mut best: Option<(usize, String)> = None;
    for (d, entry) in Table::get().entries() {
        if d != doc {
            continue;
        }
        let known: Vec<&str> = entry
            .parts
            .iter()
            .filter_map(|p| match p {
                Piece::Key(k) => Some(k.as_str()),
                Piece::AnyKey | Piece::Rest => Some("*"),
                Piece::AnyItem => None,
            })
            .collect();
        // Only the first key that differs may differ: beyond it nothing is known.
        let Some(at) = (0..keys.len()).find(|&i| known.get(i).is_none_or(|k| !same(k, keys[i])))
        else {
            continue;
        };
        let Some(candidate) = known.get(at) else {
            continue;
        };
        let Some(d) = distance(keys[at], candidate) else {
            continue;
        };
        let spelled = known[..=at].join(".");
        if best.as_ref().is_none_or(|(b, s)| (d, &spelled) < (*b, s)) {
            best = Some((d, spelled));
        }
    }
    best.map(|(_, s)| s)
}

fn same(known: &str, key: &str) -> bool {
    known == "*" || known == key
}

/// 0 when only case differs, else the edit distance up to 2 (for words of at least five letters).
fn distance(a: &str, b: &str) -> Option<usize> {
    let (low_a, low_b) = (a.to_lowercase(), b.to_lowercase());
    if low_a == low_b {
        return Some(0);
    }
    if a.len().min(b.len()) < 5 || a.len().abs_diff(b.len()) > 2 {
        return None;
    }
    let b: Vec<char> = low_b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in low_a.chars().enumerate() {
        let mut left = i;
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let up = row[j + 1];
            row[j + 1] = (left + usize::from(ca != *cb)).min(up + 1).min(row[j] + 1);
            left = up;
        }
    }
    row.last().copied().filter(|d| *d <= 2)
}
