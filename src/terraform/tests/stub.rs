//! The maintained modules with every AWS resource turned into one of Terraform's own `terraform_data`, mechanically: so that the real program
//! evaluates every expression of them, with real inputs, and makes and destroys what they make, without the AWS provider.
//!
//! What is not tried like that: whether the provider takes these arguments.

use super::read_back::parse;
use std::collections::BTreeMap;
use std::fmt::Write;
use testkit::hcl::Ident;
use testkit::hcl::expr::Expression;
use testkit::hcl::structure::{Attribute, Block, Body, Structure};

/// Attributes that only AWS knows, as expressions.
const COMPUTED: &[(&str, &str, &str)] = &[
    (
        "aws_iam_role",
        "arn",
        "\"arn:aws:iam::000000000000:role${each.value.path}${each.key}\"",
    ),
    (
        "aws_eks_cluster",
        "identity",
        "[{ oidc = [{ issuer = \"https://oidc.test/id/GREEN\" }] }]",
    ),
    ("aws_eks_cluster", "endpoint", "\"https://green.test\""),
    (
        "aws_eks_cluster",
        "certificate_authority",
        "[{ data = \"Q0E=\" }]",
    ),
    (
        "aws_iam_openid_connect_provider",
        "arn",
        "\"arn:aws:iam::000000000000:oidc-provider/oidc.test/id/GREEN\"",
    ),
    ("aws_launch_template", "latest_version", "1"),
    // Each subnet in a zone of its own, all in one VPC.
    ("aws_subnet", "availability_zone", "each.key"),
    ("aws_subnet", "vpc_id", "\"vpc-1\""),
    ("aws_launch_template", "default_version", "1"),
];

/// An expression as text.
fn expression(e: &Expression) -> String {
    let one: Body = [Structure::Attribute(Attribute::new(
        Ident::new("x"),
        e.clone(),
    ))]
    .into_iter()
    .collect();
    let text = one.to_string();
    let (_, value) = text.split_once('=').expect("an attribute");
    value.trim().to_string()
}

fn key(a: &Attribute) -> &str {
    a.key.value().as_str()
}

fn label(b: &Block, n: usize) -> &str {
    b.labels[n].as_str()
}

/// `aws_x.y` is `terraform_data.aws_x__y.output` now, wherever it is referred to for a value.
fn renamed(text: &str, names: &[(String, String, bool)]) -> String {
    let mut out = text.to_string();
    for (kind, name, data) in names {
        let (from, to) = if *data {
            (
                format!("data.{kind}.{name}"),
                format!("terraform_data.data__{kind}__{name}"),
            )
        } else {
            (
                format!("{kind}.{name}"),
                format!("terraform_data.{kind}__{name}"),
            )
        };
        let mut done = String::new();
        let mut rest = out.as_str();
        while let Some(at) = rest.find(&from) {
            let before = rest[..at].chars().last();
            let own = !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '.');
            done.push_str(&rest[..at]);
            rest = &rest[at + from.len()..];
            if !own {
                done.push_str(&from);
                continue;
            }
            // `[key]` belongs to the resource, what follows to its attributes.
            let mut depth = 0;
            let mut end = 0;
            for (i, c) in rest.char_indices() {
                match c {
                    '[' => depth += 1,
                    ']' => depth -= 1,
                    _ if depth == 0 => break,
                    _ => {}
                }
                end = i + c.len_utf8();
            }
            let (index, after) = rest.split_at(if rest.starts_with('[') { end } else { 0 });
            if index.is_empty() && !after.starts_with('.') {
                // All of them, by key: what counts of each is its output.
                let _ = write!(done, "{{ for k__, v__ in {to} : k__ => v__.output }}");
            } else {
                let output = if after.starts_with('.') {
                    ".output"
                } else {
                    ""
                };
                let _ = write!(done, "{to}{index}{output}");
            }
            rest = after;
        }
        done.push_str(rest);
        out = done;
    }
    out
}

/// Attributes and nested blocks of a body as one object.
fn object(body: &Body, skip: &[&str]) -> String {
    let mut out = String::from("{\n");
    let mut blocks: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for s in body.iter() {
        match s {
            Structure::Attribute(a) if skip.contains(&key(a)) => {}
            Structure::Attribute(a) => {
                let _ = writeln!(out, "{} = {}", key(a), expression(&a.value));
            }
            Structure::Block(b) if b.ident.value().as_str() == "lifecycle" => {}
            Structure::Block(b) if b.ident.value().as_str() == "dynamic" => {
                let name = label(b, 0).to_string();
                let each = b
                    .body
                    .attributes()
                    .find(|a| key(a) == "for_each")
                    .expect("for_each");
                let content = b
                    .body
                    .blocks()
                    .find(|c| c.ident.value().as_str() == "content")
                    .expect("content");
                let inner = object(&content.body, &[])
                    .replace(&format!("{name}.value"), "it")
                    .replace(&format!("{name}.key"), "it");
                let list = format!("[for it in {} : {inner}]", expression(&each.value));
                blocks.entry(name).or_default().push(list);
            }
            Structure::Block(b) => {
                let inner = object(&b.body, &[]);
                blocks
                    .entry(b.ident.value().as_str().into())
                    .or_default()
                    .push(format!("[{inner}]"));
            }
        }
    }
    for (name, parts) in blocks {
        let _ = writeln!(out, "{name} = concat({})", parts.join(", "));
    }
    out.push('}');
    out
}

/// Type, name and whether it is only read, of each resource of a module.
type Names = Vec<(String, String, bool)>;

fn names(body: &Body) -> Names {
    body.blocks()
        .filter(|b| matches!(b.ident.value().as_str(), "resource" | "data"))
        .map(|b| {
            let data = b.ident.value().as_str() == "data";
            (label(b, 0).to_string(), label(b, 1).to_string(), data)
        })
        .collect()
}

/// One file of a module that has these resources.
fn module(body: &Body, names: &Names) -> String {
    let mut out = String::new();
    for s in body.iter() {
        match s {
            Structure::Block(b) if matches!(b.ident.value().as_str(), "resource" | "data") => {
                let (kind, name) = (label(b, 0), label(b, 1));
                let data = if b.ident.value().as_str() == "data" {
                    "data__"
                } else {
                    ""
                };
                let _ = writeln!(
                    out,
                    "resource \"terraform_data\" \"{data}{kind}__{name}\" {{"
                );
                for a in b.body.attributes().filter(|a| key(a) == "for_each") {
                    let value = renamed(&expression(&a.value), names);
                    let _ = writeln!(out, "{} = {value}", key(a));
                }
                let given = renamed(&object(&b.body, &["for_each", "depends_on"]), names);
                let mut computed = String::from("{\n");
                for (_, name, value) in COMPUTED.iter().filter(|(k, _, _)| k == &kind) {
                    let _ = writeln!(computed, "{name} = {value}");
                }
                if kind == "aws_eks_cluster" {
                    computed
                        .push_str("vpc_config = [{ cluster_security_group_id = \"sg-green\" }]\n");
                }
                computed.push('}');
                let _ = writeln!(out, "input = merge({given}, {computed})\n}}");
            }
            other => {
                let mut other = other.clone();
                if let Structure::Block(b) = &mut other {
                    // Who waits for whom is not what is tried here.
                    b.body.remove_attribute("depends_on");
                }
                let one: Body = [other].into_iter().collect();
                out.push_str(&renamed(&one.to_string(), names));
                out.push('\n');
            }
        }
    }
    out
}

/// A root module that the real program can plan and apply without the AWS provider: the rendered one, over stubbed modules.
pub fn files(rendered: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let folder = |path: &str| path.rsplit_once('/').map_or("", |(f, _)| f).to_string();
    let mut all: BTreeMap<String, Names> = BTreeMap::new();
    for (path, text) in rendered.iter().filter(|(p, _)| p.ends_with(".tf")) {
        all.entry(folder(path))
            .or_default()
            .extend(names(&parse(path, text)));
    }
    let mut out = BTreeMap::new();
    for (path, text) in rendered {
        let skip = path.ends_with("versions.tf")
            || matches!(
                path.as_str(),
                "provider.tf" | "imports.tf" | "backend.tf" | "README.md"
            );
        if skip {
            continue;
        }
        let stubbed = path.starts_with("modules/") && !path.ends_with("variables.tf");
        let text = if stubbed {
            module(&parse(path, text), &all[&folder(path)])
        } else {
            text.clone()
        };
        out.insert(path.clone(), text);
    }
    out
}

/// An address of a stubbed module as that of the real one.
#[allow(dead_code)]
pub fn real_address(address: &str) -> String {
    let Some((module, rest)) = address.split_once(".terraform_data.") else {
        return address.into();
    };
    let (name, index) = rest.split_at(rest.find('[').unwrap_or(rest.len()));
    match name.split_once("__") {
        Some((kind, name)) => format!("{module}.{kind}.{name}{index}"),
        None => address.into(),
    }
}
