//! The files of the root module.

use super::hcl::{self, Expr, Item, Key, attr, block, reference, text};
use super::imports::{self, Import, Known};
use super::inputs::{ACCOUNT_ROLES, Names, SERVICE_ROLES, subnet, template};
use super::{Made, Purpose, Rendering, modules, readme};
use crate::plan::model::Plan;
use crate::world::cloud::{RUN_TAG, Resource};
use std::collections::{BTreeMap, BTreeSet};

/// Modules in the order in which they are written, with their folder.
const ORDER: &[(&str, &str)] = &[
    ("network", "network"),
    ("logs", "logs"),
    (SERVICE_ROLES, "roles"),
    ("cluster", "cluster"),
    ("oidc", "oidc"),
    ("access", "access"),
    (ACCOUNT_ROLES, "roles"),
    ("pod_identity", "pod-identity"),
    ("addons_before_nodes", "addons"),
    ("nodes", "nodes"),
    ("addons", "addons"),
    ("shared", "shared"),
];

/// Who waits for whom beyond what the inputs say (eks.md 0.4).
fn waits(module: &str) -> &'static [&'static str] {
    match module {
        "cluster" => &["logs"],
        // Pods cannot use a role whose issuer IAM does not know.
        ACCOUNT_ROLES => &["oidc"],
        "addons_before_nodes" => &["pod_identity"],
        "nodes" => &["addons_before_nodes"],
        "addons" => &["nodes", "pod_identity"],
        _ => &[],
    }
}

/// Everything of a rendering.
pub fn files(
    plan: &Plan,
    made: &Made,
    purpose: &Purpose,
    rendered: Vec<Resource>,
    existing: BTreeMap<String, Resource>,
    left: Vec<(String, String)>,
) -> Rendering {
    let known = Known {
        account: plan
            .basis
            .account
            .clone()
            .or_else(|| plan.spec.aws.account.clone()),
        caller: made.caller.clone(),
    };
    let mut files: BTreeMap<String, String> = modules::FILES
        .iter()
        .map(|(path, text)| ((*path).to_string(), (*text).to_string()))
        .collect();
    let mut todo = vec![];
    let main = main_file(plan, &rendered, &mut files);
    let unknown = main.matches("var.subnets[").count() > 0;
    let caller = main.contains("var.caller");
    files.insert("main.tf".into(), main);
    files.insert("versions.tf".into(), versions());
    files.insert("provider.tf".into(), provider(plan, purpose));
    files.insert("variables.tf".into(), variables(caller, unknown));
    files.insert("outputs.tf".into(), outputs(&rendered));
    if let Some(backend) = &plan.spec.provision.backend
        && *purpose != Purpose::GoOn
    {
        files.insert("backend.tf".into(), backend_file(backend));
    }
    let mut values = vec![];
    match &known.account {
        Some(a) => values.push(attr("account", text(a))),
        None => todo.push("account: the account's id, 12 digits, was not read".into()),
    }
    if caller {
        match &known.caller {
            Some(c) => values.push(attr("caller", text(c))),
            None => todo.push(
                "caller: the IAM role or user that crossfade ran as, which has an access entry"
                    .into(),
            ),
        }
    }
    if unknown {
        todo.push("subnets: ids of blue's subnets by their names in the kops spec; the account was not read".into());
    }
    if !values.is_empty() {
        files.insert("terraform.tfvars".into(), hcl::file(&values));
    }
    let cluster = &plan.target.cluster.name;
    let mut blocks = vec![];
    for resource in &rendered {
        let id = crate::plan::diff::shown(&resource.id(), cluster);
        let Some(found) = existing.get(&id) else {
            continue;
        };
        match imports::imports(resource, found, &known) {
            Ok(list) => blocks.extend(list),
            Err(why) => todo.push(format!("import {id}: {why}")),
        }
    }
    if !blocks.is_empty() {
        files.insert("imports.tf".into(), imports_file(&blocks));
    }
    if *purpose == Purpose::GoOn {
        let text = readme::text(plan, &rendered, blocks.len(), &left, &todo);
        files.insert("README.md".into(), text);
    }
    Rendering {
        files,
        rendered,
        left,
        todo,
    }
}

fn main_file(plan: &Plan, rendered: &[Resource], files: &mut BTreeMap<String, String>) -> String {
    let mut names = Names {
        cluster: rendered
            .iter()
            .any(|r| matches!(r, Resource::Cluster { .. })),
        ..Names::default()
    };
    let partition = crate::rewrite::partition(&plan.target.cluster.region);
    for r in rendered {
        if let Resource::Role { name, path, .. } = r {
            let path = path.as_deref().unwrap_or("/");
            let place = (imports::module(r), name.clone());
            let account = plan.basis.account.as_deref();
            for account in [Some("${account}"), account].into_iter().flatten() {
                let arn = format!("arn:{partition}:iam::{account}:role{path}{name}");
                names.roles.insert(arn, place.clone());
            }
        }
    }
    // An id of the account, or a name of the kops spec when the account was not read.
    let target = &plan.target;
    let spelled: BTreeSet<&String> = target
        .cluster
        .subnets
        .iter()
        .chain(target.node_groups.iter().flat_map(|g| &g.subnets))
        .filter(|s| !s.starts_with("subnet-"))
        .collect();
    let present: BTreeSet<&str> = rendered
        .iter()
        .map(imports::module)
        .chain(names.cluster.then_some("network"))
        .collect();
    let mut items = vec![Item::Comment(format!(
        "Green ({}) of plan {}, as crossfade rendered it: its inputs are the plan's, the modules beside it are generic.",
        target.cluster.name,
        plan.digest.chars().take(12).collect::<String>()
    ))];
    items.extend(locals(&target.cluster.name, names.cluster));
    for (module, folder) in ORDER {
        if !present.contains(module) {
            continue;
        }
        let of: Vec<&Resource> = rendered
            .iter()
            .filter(|r| imports::module(r) == *module)
            .collect();
        let mut body = vec![attr("source", text(&format!("./modules/{folder}")))];
        body.extend(arguments(module, &of, rendered, &names, &spelled, files));
        let waits: Vec<Expr> = waits(module)
            .iter()
            .filter(|m| present.contains(*m))
            .map(|m| reference(format!("module.{m}")))
            .collect();
        if !waits.is_empty() {
            body.push(attr("depends_on", Expr::List(waits)));
        }
        items.push(block("module", module, body));
    }
    hcl::file(&items)
}

fn locals(cluster: &str, rendered: bool) -> Vec<Item> {
    let mut out = vec![];
    let name = if rendered {
        reference("module.cluster.name")
    } else {
        out.push(block(
            "data \"aws_eks_cluster\"",
            "green",
            vec![attr("name", text(cluster))],
        ));
        reference("data.aws_eks_cluster.green.name")
    };
    let from = |module: &str, data: &str| {
        reference(if rendered {
            module.to_string()
        } else {
            data.to_string()
        })
    };
    out.push(block(
        "locals",
        "",
        vec![
            attr("cluster", name),
            attr(
                "issuer",
                from(
                    "module.cluster.issuer",
                    "trimprefix(data.aws_eks_cluster.green.identity[0].oidc[0].issuer, \"https://\")",
                ),
            ),
            attr(
                "cluster_security_group",
                from(
                    "module.cluster.security_group",
                    "data.aws_eks_cluster.green.vpc_config[0].cluster_security_group_id",
                ),
            ),
        ],
    ));
    out
}

/// Arguments of one module.
fn arguments(
    module: &str,
    of: &[&Resource],
    rendered: &[Resource],
    names: &Names,
    spelled: &BTreeSet<&String>,
    files: &mut BTreeMap<String, String>,
) -> Vec<Item> {
    let mut entry = |r: &Resource| -> (Key, Expr) {
        let mut beside = None;
        if let Resource::LaunchTemplate {
            name,
            user_data: Some(data),
            ..
        } = r
        {
            let path = format!("user-data/{}.txt", file_name(name));
            files.insert(path.clone(), data.clone());
            beside = Some(path);
        }
        let mut fields = names.input(r, beside.as_deref()).unwrap_or_default();
        if let Resource::Tag { resource, .. } = r
            && spelled.contains(resource)
            && let Some((_, value)) = fields.first_mut()
        {
            *value = subnet(resource);
        }
        (Key::Text(template(&imports::key(r))), Expr::Object(fields))
    };
    let mut map = |of: Vec<&Resource>| Expr::Object(of.into_iter().map(&mut entry).collect());
    let cluster = attr("cluster", reference("local.cluster"));
    let all = of.to_vec();
    match module {
        "network" => {
            let subnets = rendered.iter().find_map(|r| match r {
                Resource::Cluster { subnets, .. } => Some(subnets),
                _ => None,
            });
            let list = subnets.into_iter().flatten().map(|s| subnet(s)).collect();
            vec![attr("subnets", Expr::List(list))]
        }
        "logs" => vec![attr("log_groups", map(all))],
        SERVICE_ROLES | ACCOUNT_ROLES => vec![attr("roles", map(all))],
        "cluster" | "oidc" => {
            let fields = of.first().and_then(|r| names.input(r, None));
            fields
                .into_iter()
                .flatten()
                .filter_map(|(key, value)| match key {
                    Key::Ident(name) => Some(attr(&name, value)),
                    Key::Text(_) => None,
                })
                .collect()
        }
        "access" => vec![cluster, attr("entries", map(all))],
        "pod_identity" => vec![cluster, attr("associations", map(all))],
        "addons" | "addons_before_nodes" => vec![cluster, attr("addons", map(all))],
        "nodes" => {
            let (templates, groups): (Vec<&Resource>, Vec<&Resource>) = all
                .into_iter()
                .partition(|r| matches!(r, Resource::LaunchTemplate { .. }));
            let mut out = vec![cluster];
            if !templates.is_empty() {
                out.push(attr("launch_templates", map(templates)));
            }
            if !groups.is_empty() {
                out.push(attr("node_groups", map(groups)));
            }
            out
        }
        _ => {
            let (tags, rules): (Vec<&Resource>, Vec<&Resource>) = all
                .into_iter()
                .partition(|r| matches!(r, Resource::Tag { .. }));
            let mut out = vec![];
            if !rules.is_empty() {
                out.push(attr("rules", map(rules)));
            }
            if !tags.is_empty() {
                out.push(attr("tags", map(tags)));
            }
            out
        }
    }
}

/// A launch template's name takes `(`, `)`, `/` too: as a file it takes letters, digits, `.`, `-` and `_`.
fn file_name(name: &str) -> String {
    name.chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') {
                c
            } else {
                '_'
            }
        })
        .collect()
}

fn versions() -> String {
    hcl::file(&[block(
        "terraform",
        "",
        vec![
            // Ids of import blocks may be expressions from 1.6 on.
            attr("required_version", text(">= 1.6, < 2.0")),
            block(
                "required_providers",
                "",
                vec![attr(
                    "aws",
                    Expr::Object(vec![
                        (Key::Ident("source".into()), text("hashicorp/aws")),
                        (Key::Ident("version".into()), text(">= 6.28, < 7.0")),
                    ]),
                )],
            ),
        ],
    )])
}

/// Where the state is kept, when the user says so.
fn backend_file(backend: &crate::spec::model::Backend) -> String {
    let settings = backend.config.iter().map(|(k, v)| attr(k, text(v)));
    hcl::file(&[block(
        "terraform",
        "",
        vec![block("backend", &backend.kind, settings.collect())],
    )])
}

fn provider(plan: &Plan, purpose: &Purpose) -> String {
    let mut body = vec![];
    let region = &plan.target.cluster.region;
    if !region.is_empty() {
        body.push(attr("region", text(region)));
    }
    body.push(attr(
        "allowed_account_ids",
        Expr::List(vec![reference("var.account")]),
    ));
    body.push(match purpose {
        Purpose::GoOn => block(
            "ignore_tags",
            "",
            vec![attr("keys", Expr::List(vec![text(RUN_TAG)]))],
        ),
        Purpose::Run { run, .. } => block(
            "default_tags",
            "",
            vec![attr(
                "tags",
                Expr::Object(vec![(Key::Text(template(RUN_TAG)), text(run))]),
            )],
        ),
    });
    hcl::file(&[block("provider", "aws", body)])
}

fn variables(caller: bool, subnets: bool) -> String {
    let of = |name: &str, what: &str, kind: &str| {
        block(
            "variable",
            name,
            vec![
                attr("description", text(what)),
                attr("type", reference(kind)),
            ],
        )
    };
    let mut out = vec![of(
        "account",
        "AWS account, 12 digits: any other is refused.",
        "string",
    )];
    if caller {
        out.push(of(
            "caller",
            "IAM role or user that made green: it has an access entry.",
            "string",
        ));
    }
    if subnets {
        out.push(of(
            "subnets",
            "Ids of blue's subnets by their names in the kops spec.",
            "map(string)",
        ));
    }
    hcl::file(&out)
}

fn outputs(rendered: &[Resource]) -> String {
    let cluster = rendered
        .iter()
        .any(|r| matches!(r, Resource::Cluster { .. }));
    let output = |name: &str, what: &str, value: &str| {
        block(
            "output",
            name,
            vec![
                attr("description", text(what)),
                attr("value", reference(value)),
            ],
        )
    };
    let mut out = vec![
        output("cluster", "Name of green.", "local.cluster"),
        output(
            "issuer",
            "Issuer of green's service account tokens, without https://.",
            "local.issuer",
        ),
    ];
    if cluster {
        out.push(output(
            "endpoint",
            "Address of green's API server.",
            "module.cluster.endpoint",
        ));
    }
    hcl::file(&out)
}

fn imports_file(blocks: &[Import]) -> String {
    let mut items = vec![Item::Comment(
        "What crossfade has made already: Terraform takes it over as it is. After the first apply this file may go.".into(),
    )];
    let templates: Vec<Expr> = blocks
        .iter()
        .filter_map(|b| match &b.id {
            Expr::Ref(r) => r
                .strip_prefix("data.aws_launch_template.made[")
                .and_then(|r| r.strip_suffix("].id"))
                .map(|quoted| Expr::Ref(quoted.into())),
            _ => None,
        })
        .collect();
    if !templates.is_empty() {
        items.push(block(
            "data \"aws_launch_template\"",
            "made",
            vec![
                attr(
                    "for_each",
                    Expr::Call("toset", Box::new(Expr::List(templates))),
                ),
                attr("name", reference("each.key")),
            ],
        ));
    }
    for b in blocks {
        items.push(block(
            "import",
            "",
            vec![attr("to", reference(&b.to)), attr("id", b.id.clone())],
        ));
    }
    hcl::file(&items)
}
