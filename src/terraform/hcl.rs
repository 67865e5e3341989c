//! HCL in the one form that `terraform fmt` leaves as it is: two spaces a level, `=` of neighbouring one-line attributes in one column.

use serde_json::Value;
use std::fmt::Write;

/// Widest list that stands on one line.
const INLINE: usize = 72;

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number as it is written.
    Number(String),
    /// A string, with references in it.
    Text(Vec<Part>),
    /// A reference or any other expression on one line.
    Ref(String),
    /// A list.
    List(Vec<Expr>),
    /// An object or map, in this order.
    Object(Vec<(Key, Expr)>),
    /// A function of one argument.
    Call(&'static str, Box<Expr>),
}

/// A part of a string.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Plain text.
    Lit(String),
    /// `${...}`
    Ref(String),
}

/// A key of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Key {
    /// A name of a schema.
    Ident(String),
    /// Somebody's name: always quoted.
    Text(Vec<Part>),
}

/// What a body holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// `name = value`
    Attr(String, Expr),
    /// A block; an empty line stands before it, unless it is the first.
    Block(Block),
    /// Lines with `#`; an empty line stands before them, unless they are the first.
    Comment(String),
}

/// A block.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// Type and labels, as in `module "cluster"`.
    pub head: String,
    /// What is in it.
    pub body: Vec<Item>,
}

/// A block with a quoted label.
pub fn block(kind: &str, label: &str, body: Vec<Item>) -> Item {
    Item::Block(Block {
        head: if label.is_empty() {
            kind.into()
        } else {
            format!("{kind} {}", quoted(&[Part::Lit(label.into())]))
        },
        body,
    })
}

/// `name = value`
pub fn attr(name: &str, value: Expr) -> Item {
    Item::Attr(name.into(), value)
}

/// A plain string.
pub fn text(s: &str) -> Expr {
    Expr::Text(vec![Part::Lit(s.into())])
}

/// A reference.
pub fn reference(s: impl Into<String>) -> Expr {
    Expr::Ref(s.into())
}

/// JSON as an expression; `string` says what becomes of a string in it.
pub fn json(value: &Value, string: &impl Fn(&str) -> Vec<Part>) -> Expr {
    match value {
        Value::Null => Expr::Null,
        Value::Bool(b) => Expr::Bool(*b),
        Value::Number(n) => Expr::Number(n.to_string()),
        Value::String(s) => Expr::Text(string(s)),
        Value::Array(a) => Expr::List(a.iter().map(|v| json(v, string)).collect()),
        Value::Object(o) => Expr::Object(
            o.iter()
                .map(|(k, v)| {
                    let key = if ident(k) {
                        Key::Ident(k.clone())
                    } else {
                        Key::Text(string(k))
                    };
                    (key, json(v, string))
                })
                .collect(),
        ),
    }
}

/// Whether a key may stand without quotes and means itself.
fn ident(s: &str) -> bool {
    s.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && s.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !matches!(s, "null" | "true" | "false" | "for" | "if")
}

/// A whole file.
pub fn file(items: &[Item]) -> String {
    let mut out = String::new();
    body(items, 0, &mut out);
    out
}

fn body(items: &[Item], depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    let mut at = 0;
    let mut after: Option<&Item> = None;
    while let Some(item) = items.get(at) {
        let glued = match (after, item) {
            (None, _) => true,
            // A comment belongs to what follows it.
            (Some(Item::Comment(_)), Item::Comment(_)) => false,
            (Some(Item::Comment(_)), _) => true,
            (Some(Item::Attr(..)), Item::Attr(..)) => true,
            _ => false,
        };
        if !glued {
            out.push('\n');
        }
        match item {
            Item::Attr(..) => {
                let end = items[at..]
                    .iter()
                    .position(|i| !matches!(i, Item::Attr(..)))
                    .map_or(items.len(), |n| at + n);
                let attrs = items[at..end].iter().filter_map(|i| match i {
                    Item::Attr(name, value) => Some((name.clone(), lines(value))),
                    _ => None,
                });
                for line in aligned(attrs.collect()) {
                    let _ = writeln!(out, "{indent}{line}");
                }
                after = items.get(end - 1);
                at = end;
                continue;
            }
            Item::Block(b) if b.body.is_empty() => {
                let _ = writeln!(out, "{indent}{} {{}}", b.head);
            }
            Item::Block(b) => {
                let _ = writeln!(out, "{indent}{} {{", b.head);
                body(&b.body, depth + 1, out);
                let _ = writeln!(out, "{indent}}}");
            }
            Item::Comment(text) => {
                for line in text.lines() {
                    let _ = writeln!(out, "{}", format!("{indent}# {line}").trim_end());
                }
            }
        }
        after = Some(item);
        at += 1;
    }
}

/// Names and values as lines. A value of several lines ends the column, as in `terraform fmt`.
fn aligned(entries: Vec<(String, Vec<String>)>) -> Vec<String> {
    let mut out = vec![];
    let mut rest = entries.as_slice();
    while let Some((name, value)) = rest.first() {
        if value.len() > 1 {
            out.push(format!("{name} = {}", value[0]));
            out.extend(value[1..].iter().cloned());
            rest = &rest[1..];
            continue;
        }
        let n = rest.iter().take_while(|(_, v)| v.len() == 1).count();
        let width = rest[..n].iter().map(|(k, _)| k.chars().count()).max();
        let width = width.unwrap_or(0);
        for (k, v) in &rest[..n] {
            let pad = " ".repeat(width - k.chars().count());
            out.push(format!("{k}{pad} = {}", v[0]));
        }
        rest = &rest[n..];
    }
    out
}

/// An expression's lines: the first to stand after something, the others relative to the depth of the first.
fn lines(value: &Expr) -> Vec<String> {
    match value {
        Expr::Null => vec!["null".into()],
        Expr::Bool(b) => vec![b.to_string()],
        Expr::Number(n) => vec![n.clone()],
        Expr::Ref(r) => vec![r.clone()],
        // `"${x}"` alone is what fmt writes as `x`.
        Expr::Text(parts) => match parts.as_slice() {
            [Part::Ref(r)] => vec![r.clone()],
            parts => vec![quoted(parts)],
        },
        Expr::List(items) if items.is_empty() => vec!["[]".into()],
        Expr::List(items) => {
            let all: Vec<Vec<String>> = items.iter().map(lines).collect();
            let width: usize = all.iter().map(|l| l[0].chars().count() + 2).sum();
            if all.iter().all(|l| l.len() == 1) && (width <= INLINE || all.len() == 1) {
                let one: Vec<String> = all.into_iter().flatten().collect();
                return vec![format!("[{}]", one.join(", "))];
            }
            let mut out = vec!["[".to_string()];
            for mut item in all {
                if let Some(last) = item.last_mut() {
                    last.push(',');
                }
                out.extend(item.into_iter().map(|l| format!("  {l}")));
            }
            out.push("]".into());
            out
        }
        Expr::Object(entries) if entries.is_empty() => vec!["{}".into()],
        Expr::Object(entries) => {
            let inner = entries.iter().map(|(k, v)| (key(k), lines(v))).collect();
            let mut out = vec!["{".to_string()];
            out.extend(aligned(inner).into_iter().map(|l| format!("  {l}")));
            out.push("}".into());
            out
        }
        Expr::Call(name, argument) => {
            let mut out = lines(argument);
            out[0] = format!("{name}({}", out[0]);
            if let Some(last) = out.last_mut() {
                last.push(')');
            }
            out
        }
    }
}

fn key(k: &Key) -> String {
    match k {
        Key::Ident(name) => name.clone(),
        Key::Text(parts) => match parts.as_slice() {
            [Part::Ref(r)] => format!("({r})"),
            parts => quoted(parts),
        },
    }
}

/// A quoted template.
pub fn quoted(parts: &[Part]) -> String {
    let mut out = String::from("\"");
    for part in parts {
        match part {
            Part::Ref(r) => {
                let _ = write!(out, "${{{r}}}");
            }
            Part::Lit(text) => {
                let chars: Vec<char> = text.chars().collect();
                for (i, c) in chars.iter().enumerate() {
                    match c {
                        '"' => out.push_str("\\\""),
                        '\\' => out.push_str("\\\\"),
                        '\n' => out.push_str("\\n"),
                        '\r' => out.push_str("\\r"),
                        '\t' => out.push_str("\\t"),
                        // A template would begin here.
                        '$' | '%' if chars.get(i + 1) == Some(&'{') => {
                            out.push(*c);
                            out.push(*c);
                        }
                        c if c.is_control() => {
                            let _ = write!(out, "\\u{:04x}", u32::from(*c));
                        }
                        c => out.push(*c),
                    }
                }
            }
        }
    }
    out.push('"');
    out
}
