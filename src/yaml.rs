//! The one module that reads YAML. Two readers: *manifests* as kubectl reads them, *our own config* strictly.
//!
//! Only serde-saphyr reads a manifest as kubectl does (measured against kubectl; the table is this module's tests).
//! JSON is read here too, since people hand over both forms of every export.

use crate::error::{Error, Kind, Result};
use serde::Serialize;
use serde::de::{DeserializeOwned, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::{Budget, Options, Spanned};
use std::fmt;

#[cfg(test)]
mod tests;

/// Limits for one file of a cluster export: many documents and deep CRD schemas are normal there, alias bombs are not.
fn budget() -> Option<Budget> {
    serde_saphyr::budget! {
        max_reader_input_bytes: Some(2 << 30),
        max_events: 400_000_000,
        max_nodes: 200_000_000,
        max_documents: 5_000_000,
        max_total_scalar_bytes: 2 << 30,
        max_depth: 255,
        flow_nesting_limit: 255,
    }
}

fn manifest_options() -> Options {
    serde_saphyr::options! {
        budget: budget(),
        legacy_octal_numbers: true,
        strict_booleans: false,
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 200_000 },
    }
}

fn config_options() -> Options {
    serde_saphyr::options! { strict_booleans: true }
}

/// Blanks lines that begin with `//` before the first other line (`kops get cluster --full` prints such a block), so that
/// line numbers stay true, and drops a byte-order mark.
fn without_banner(text: &str) -> String {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut out = String::with_capacity(text.len());
    let mut in_head = true;
    for line in text.split_inclusive('\n') {
        let bare = line.trim();
        in_head = in_head && (bare.is_empty() || bare.starts_with("//"));
        out.push_str(if in_head { "\n" } else { line });
    }
    out
}

/// Reads manifests as kubectl does: many documents, empty ones skipped, `0644` octal, `on`/`yes` booleans; a duplicate key is
/// an error of its document, and reading goes on after it. JSON (an object, several, an array) is read as well; an array
/// yields its items. Each value comes with the line it begins on; `file` names the text in errors.
pub fn manifests(text: &str, file: &str) -> Vec<Result<(Value, usize)>> {
    let text = without_banner(text);
    let mut found = vec![];
    if text.trim_start().starts_with(['{', '[']) {
        match json(&text) {
            Ok(values) => found.extend(values.into_iter().map(Ok)),
            // A flow-style YAML document also begins with a bracket: let the YAML reader decide and word the error.
            Err(_) => found = yaml_documents(&text, file),
        }
    } else {
        found = yaml_documents(&text, file);
    }
    let mut out = vec![];
    for item in found {
        match item {
            Ok((Value::Array(items), line)) => out.extend(items.into_iter().map(|v| Ok((v, line)))),
            other => out.push(other),
        }
    }
    out
}

fn json(text: &str) -> Result<Vec<(Value, usize)>, serde_json::Error> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let (mut values, mut line, mut seen) = (vec![], 1, 0);
    loop {
        let rest = &text[stream.byte_offset()..];
        let start = stream.byte_offset() + rest.len() - rest.trim_start().len();
        line += text[seen..start].matches('\n').count();
        seen = start;
        match stream.next() {
            Some(value) => values.push((value?, line)),
            None => return Ok(values),
        }
    }
}

fn yaml_documents(text: &str, file: &str) -> Vec<Result<(Value, usize)>> {
    let mut bytes = text.as_bytes();
    serde_saphyr::read_with_options::<_, Spanned<Value>>(&mut bytes, manifest_options())
        .filter(|r| !matches!(r, Ok(s) if s.value.is_null()))
        .map(|r| match r {
            Ok(s) => Ok((s.value, s.referenced.line() as usize)),
            // Other people's documents may hold secrets, so none of their text is shown: the place says where to look.
            Err(e) => Err(explain(&e, text, file).without_excerpt()),
        })
        .collect()
}

/// Reads one document of our own config: unknown fields, wrong types, duplicate keys and a second document are errors
/// that say `file:line:column`, show the line and name the nearest right spelling.
pub fn strict<T: DeserializeOwned>(text: &str, file: &str) -> Result<T> {
    let content = |l: &str| {
        let l = l.trim();
        !l.is_empty() && !l.starts_with('#') && l != "---" && l != "..."
    };
    if !text.lines().any(content) {
        return Err(Error::new(Kind::BadInput, "the file is empty")
            .at(format!("{file}:1:1"))
            .remedy("write a document, or let `crossfade init` write one"));
    }
    serde_saphyr::from_str_with_options(text, config_options()).map_err(|e| explain(&e, text, file))
}

/// Writes YAML that kubectl and this reader read back to the same value.
pub fn to_string<T: Serialize>(value: &T) -> Result<String> {
    serde_saphyr::to_string(value)
        .map_err(|e| Error::new(Kind::Bug, format!("could not write YAML: {e}")))
}

/// A place in a text, both counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Line.
    pub line: usize,
    /// Column, in characters.
    pub column: usize,
}

/// Where the value at a path stands (`["data", "0", "blue"]`; list items by index). When the path ends early because a key
/// is absent, the place of the deepest part that exists.
pub fn locate(text: &str, path: &[&str]) -> Place {
    let mut place = Place { line: 1, column: 1 };
    let Ok(root) = serde_saphyr::from_str_with_options::<Spanned<Node>>(text, config_options())
    else {
        return place;
    };
    let mut at = &root;
    place = spot(&root.referenced);
    for part in path {
        let next = match &at.value {
            Node::Map(entries) => entries
                .iter()
                .find(|(k, _)| k.value == *part)
                .map(|(k, v)| {
                    // A list or map begins on a later line than its key; people look for the key.
                    place = spot(match v.value {
                        Node::Scalar | Node::Null => &v.referenced,
                        _ => &k.referenced,
                    });
                    v
                }),
            Node::Seq(items) => part
                .parse::<usize>()
                .ok()
                .and_then(|i| items.get(i))
                .inspect(|v| {
                    place = spot(&v.referenced);
                }),
            Node::Scalar | Node::Null => None,
        };
        match next {
            Some(n) => at = n,
            None => break,
        }
    }
    place
}

fn spot(l: &serde_saphyr::Location) -> Place {
    Place {
        line: (l.line() as usize).max(1),
        column: (l.column() as usize).max(1),
    }
}

/// The same documents as [`manifests`] gives, in the same order, with every leaf (scalar, empty map, empty list) replaced by
/// its place as the text `line:column`, each with the line it begins on. Empty when the text cannot be read as a whole: then no
/// place is known.
pub fn places(text: &str) -> Vec<(Value, usize)> {
    let text = without_banner(text);
    let mut found: Vec<Spanned<Node>> = vec![];
    let mut bytes = text.as_bytes();
    let read = serde_saphyr::read_with_options::<_, Spanned<Node>>(&mut bytes, manifest_options());
    for document in read {
        match document {
            Ok(d) => found.push(d),
            // JSON of several objects in a row is no YAML: each is read alone.
            Err(_) => {
                found = json_row(&text);
                break;
            }
        }
    }
    let mut out = vec![];
    for document in found {
        match document.value {
            Node::Null => {}
            Node::Seq(items) => out.extend(
                items
                    .into_iter()
                    .map(|i| (marked(&i), spot(&i.referenced).line)),
            ),
            _ => out.push((marked(&document), spot(&document.referenced).line)),
        }
    }
    out
}

/// JSON objects in a row, each read at its own place of the text.
fn json_row(text: &str) -> Vec<Spanned<Node>> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<serde::de::IgnoredAny>();
    let (mut out, mut start) = (vec![], 0);
    while let Some(Ok(_)) = stream.next() {
        let end = stream.byte_offset();
        // What stands before is blanked, so that lines and columns stay true.
        let head: String = text[..start]
            .chars()
            .map(|c| if c == '\n' { '\n' } else { ' ' })
            .collect();
        let one = head + &text[start..end];
        match serde_saphyr::from_str_with_options(&one, manifest_options()) {
            Ok(d) => out.push(d),
            Err(_) => return vec![],
        }
        // Blanking costs the square of their number; a row this long was made by a program, and nobody looks up a line in it.
        if out.len() > 1000 {
            return vec![];
        }
        start = end;
    }
    out
}

fn marked(node: &Spanned<Node>) -> Value {
    let here = || {
        let p = spot(&node.referenced);
        Value::from(format!("{}:{}", p.line, p.column))
    };
    match &node.value {
        Node::Map(entries) if !entries.is_empty() => Value::Object(
            entries
                .iter()
                .map(|(k, v)| (k.value.clone(), marked(v)))
                .collect(),
        ),
        Node::Seq(items) if !items.is_empty() => items.iter().map(marked).collect(),
        _ => here(),
    }
}

/// A bad-input error at a place of a text, with the line shown.
pub fn error_at(text: &str, file: &str, place: Place, message: impl Into<String>) -> Error {
    Error::new(Kind::BadInput, message)
        .at(format!("{file}:{}:{}", place.line, place.column))
        .excerpt(excerpt(text, place))
}

/// The line of a place between its neighbours, with a mark under the column.
fn excerpt(text: &str, place: Place) -> String {
    let first = place.line.saturating_sub(2);
    let width = (place.line + 1).to_string().len();
    let mut out = String::new();
    for (i, line) in text
        .lines()
        .enumerate()
        .skip(first)
        .take(place.line + 1 - first)
    {
        out.push_str(&format!("{:>width$} | {}\n", i + 1, line.trim_end()));
        if i + 1 == place.line {
            out.push_str(&format!(
                "{:>width$} | {}^\n",
                "",
                " ".repeat(place.column - 1)
            ));
        }
    }
    out
}

/// Turns the reader's error into one for people.
fn explain(e: &serde_saphyr::Error, text: &str, file: &str) -> Error {
    use serde_saphyr::Error as E;
    let inner = e.without_snippet();
    let place = inner
        .location()
        .map_or(Place { line: 1, column: 1 }, |l| spot(&l));
    let (message, remedy) = match inner {
        E::SerdeUnknownField {
            field, expected, ..
        } => (
            format!("unknown field `{field}`"),
            suggestion(field, expected, "fields here"),
        ),
        E::SerdeUnknownVariant {
            variant, expected, ..
        } => (
            format!("unknown value `{variant}`"),
            suggestion(variant, expected, "values here"),
        ),
        E::SerdeMissingField { field, .. } => (
            format!("the field `{field}` is missing"),
            format!("add `{field}:`"),
        ),
        E::SerdeInvalidType {
            unexpected,
            expected,
            ..
        } => (
            format!("wrong type: found {unexpected}, expected {expected}"),
            format!("write {expected} here"),
        ),
        E::SerdeInvalidValue {
            unexpected,
            expected,
            ..
        } => (
            format!("wrong value: found {unexpected}, expected {expected}"),
            format!("write {expected} here"),
        ),
        E::DuplicateMappingKey { key, .. } => (
            match key {
                Some(k) => format!("the key `{k}` appears twice"),
                None => "a key appears twice".into(),
            },
            "keep one of the two".into(),
        ),
        E::MultipleDocuments { .. } => (
            "the file holds more than one document".into(),
            "keep one document; a second migration belongs in a folder of its own".into(),
        ),
        other => {
            let text = other.to_string();
            let line = text.lines().next().unwrap_or_default();
            // The place is said by the error's own field; the reader repeats it at either end of its text.
            let line = line.strip_prefix("error: ").unwrap_or(line);
            let line = match line.strip_prefix("line ") {
                Some(rest) => rest.split_once(": ").map_or(line, |(_, m)| m),
                None => line.rfind(" at line ").map_or(line, |i| &line[..i]),
            };
            (line.to_string(), "correct the text at this place".into())
        }
    };
    error_at(text, file, place, message).remedy(remedy)
}

fn suggestion(found: &str, expected: &[&'static str], what: &str) -> String {
    match nearest(found, expected.iter().copied()) {
        Some(best) => format!("did you mean `{best}`?"),
        None => format!("{what}: {}", expected.join(", ")),
    }
}

/// The candidate that is nearest to a misspelt word, when one is near enough to be meant.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |s: &str| s.to_lowercase().replace(['-', '_'], "");
    let limit = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|c| (distance(&plain(word), &plain(c)), c))
        .filter(|(d, _)| *d <= limit)
        .min_by_key(|(d, _)| *d)
        .map(|(_, c)| c)
}

/// Edit distance where two swapped neighbours count once: the commonest slip of the fingers.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (row[j - 1] + 1)
                .min(rows[i - 1][j] + 1)
                .min(rows[i - 1][j - 1] + change);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

/// The shape of a document with the place of every key and value; nothing else is kept.
enum Node {
    Map(Vec<(Spanned<String>, Spanned<Node>)>),
    Seq(Vec<Spanned<Node>>),
    Scalar,
    Null,
}

impl<'de> serde::Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Shape;
        macro_rules! scalars {
            ($($method:ident: $ty:ty),*) => {
                $(fn $method<E>(self, _: $ty) -> Result<Node, E> { Ok(Node::Scalar) })*
            };
        }
        impl<'de> Visitor<'de> for Shape {
            type Value = Node;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }
            scalars!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_i128: i128, visit_u128: u128, visit_f64: f64, visit_str: &str);
            fn visit_unit<E>(self) -> Result<Node, E> {
                Ok(Node::Null)
            }
            fn visit_none<E>(self) -> Result<Node, E> {
                Ok(Node::Null)
            }
            fn visit_map<A: MapAccess<'de>>(self, mut m: A) -> Result<Node, A::Error> {
                let mut entries = vec![];
                while let Some(key) = m.next_key()? {
                    entries.push((key, m.next_value()?));
                }
                Ok(Node::Map(entries))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut s: A) -> Result<Node, A::Error> {
                let mut items = vec![];
                while let Some(item) = s.next_element()? {
                    items.push(item);
                }
                Ok(Node::Seq(items))
            }
        }
        d.deserialize_any(Shape)
    }
}
