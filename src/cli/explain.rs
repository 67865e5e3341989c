//! `explain`: everything that the plan says about one thing.

use super::args::{ExplainArgs, Global};
use super::exit;
use super::folder::PlanFolder;
use super::plan::fate_name;
use super::printer::Printer;
use super::review::promise;
use crate::error::{Error, Kind, Result};
use crate::plan::model::{Plan, StepSpec};
use serde_json::{Value, json};

/// Runs the verb.
pub fn run(args: &ExplainArgs, global: &Global, printer: &Printer) -> Result<u8> {
    let folder = PlanFolder::resolve(&args.folder, global)?;
    let plan = folder.load_plan()?;
    let found = search(&plan, &args.what);
    if found.is_empty() {
        return Err(
            Error::new(Kind::BadInput, format!("the plan says nothing about {:?}", args.what))
                .at(folder.plan().display().to_string())
                .remedy("objects are spelled kind/namespace/name, as in deployment/orders/orders; a part of that is enough"),
        );
    }
    if printer.json() {
        printer.document(&found.as_json());
    } else {
        found.show(printer);
    }
    Ok(exit::DONE)
}

#[derive(Default)]
struct Found<'p> {
    verdicts: Vec<&'p crate::plan::model::Verdict>,
    generated: Vec<String>,
    names: Vec<&'p crate::plan::model::Name>,
    groups: Vec<&'p crate::plan::model::TargetNodeGroup>,
    roles: Vec<&'p crate::plan::model::TargetRole>,
    addons: Vec<&'p crate::plan::model::TargetAddon>,
    findings: Vec<&'p crate::plan::model::Finding>,
    steps: Vec<&'p StepSpec>,
}

/// Exact spellings win over parts: `deployment/orders/orders` is not also `deployment/orders/orders-admin`.
fn search<'p>(plan: &'p Plan, what: &str) -> Found<'p> {
    // `record/www.shop.test/A` is how findings and journals spell a record; the plan's names go by host.
    let record = what
        .strip_prefix("record/")
        .map(|r| r.split('/').next().unwrap_or(r));
    let what = record.unwrap_or(what).trim_end_matches('.');
    let exact = collect(plan, |text| text == what);
    if exact.is_empty() {
        collect(plan, |text| text.contains(what))
    } else {
        exact
    }
}

fn collect<'p>(plan: &'p Plan, hit: impl Fn(&str) -> bool) -> Found<'p> {
    let t = &plan.target;
    let mut found = Found {
        verdicts: plan.verdicts.iter().filter(|v| hit(&v.object)).collect(),
        generated: plan
            .generated
            .iter()
            .filter_map(|o| Some(crate::object::ObjectId::of(o)?.to_string()))
            .filter(|o| hit(o))
            .collect(),
        names: plan
            .names
            .iter()
            .filter(|n| hit(&n.host) || hit(&n.object))
            .collect(),
        groups: t
            .node_groups
            .iter()
            .filter(|g| hit(&g.name) || hit(&g.instance_group))
            .collect(),
        roles: t.roles.iter().filter(|r| hit(&r.name)).collect(),
        addons: t.addons.iter().filter(|a| hit(&a.name)).collect(),
        findings: plan
            .findings
            .iter()
            .filter(|f| hit(&f.object) || hit(&f.id))
            .collect(),
        steps: vec![],
    };
    // Steps by their own id, and those that touch what was found.
    let mut touched: Vec<&str> = found.verdicts.iter().map(|v| v.object.as_str()).collect();
    touched.extend(found.names.iter().map(|n| n.host.as_str()));
    touched.extend(found.groups.iter().map(|g| g.name.as_str()));
    touched.extend(found.roles.iter().map(|r| r.name.as_str()));
    touched.extend(found.addons.iter().map(|a| a.name.as_str()));
    touched.extend(found.generated.iter().map(String::as_str));
    let steps = plan
        .steps
        .iter()
        .filter(|s| hit(&s.id) || touched.iter().any(|t| mentions(&s.params, t)))
        .collect();
    found.steps = steps;
    found
}

/// Whether a string of the parameters is exactly this.
fn mentions(params: &Value, text: &str) -> bool {
    match params {
        Value::String(s) => s == text,
        Value::Array(a) => a.iter().any(|v| mentions(v, text)),
        Value::Object(m) => m.values().any(|v| mentions(v, text)),
        _ => false,
    }
}

impl Found<'_> {
    fn is_empty(&self) -> bool {
        self.verdicts.is_empty()
            && self.generated.is_empty()
            && self.names.is_empty()
            && self.groups.is_empty()
            && self.roles.is_empty()
            && self.addons.is_empty()
            && self.findings.is_empty()
            && self.steps.is_empty()
    }
    fn as_json(&self) -> Value {
        let steps: Vec<&str> = self.steps.iter().map(|s| s.id.as_str()).collect();
        json!({"verdicts": self.verdicts, "generated": self.generated, "names": self.names, "node_groups": self.groups, "roles": self.roles, "addons": self.addons, "findings": self.findings, "steps": steps})
    }
    fn show(&self, p: &Printer) {
        for v in &self.verdicts {
            p.line(format!(
                "{}  {} ({} on blue)",
                p.bold(&v.object),
                fate_name(v.verdict),
                v.api_version
            ));
            for rule in &v.rules {
                p.line(format!("  by {rule}"));
            }
            if let Some(park) = &v.park {
                p.line(format!(
                    "  parked: {} waits until {}, then becomes what blue has then ({} when planned)",
                    park.field, park.wakes, park.value
                ));
            }
            if let Some(api) = v.target.as_ref().and_then(|t| t["apiVersion"].as_str())
                && api != v.api_version
            {
                p.line(format!("  created on green as {api}"));
            }
        }
        for o in &self.generated {
            p.line(format!("{}  made for green only", p.bold(o)));
        }
        for n in &self.names {
            let ttl = n.ttl.map_or("alias".into(), |t| format!("TTL {t}"));
            p.line(format!(
                "{}  {} record ({ttl}) of {}, handed over in wave {}",
                p.bold(&n.host),
                n.rtype,
                n.object,
                n.wave
            ));
        }
        for g in &self.groups {
            p.line(format!(
                "{}  node group {}..{} of {}, from instance group {}",
                p.bold(&g.name),
                g.min,
                g.max,
                g.instance_types.join("|"),
                g.instance_group
            ));
        }
        for r in &self.roles {
            let used = r.service_account.as_deref().unwrap_or("no service account");
            let how = if r.existing {
                "exists; gets a trust statement"
            } else {
                "is created"
            };
            p.line(format!("{}  role, {how}, for {used}", p.bold(&r.name)));
            for policy in &r.policies {
                p.line(format!("  policy {policy}"));
            }
        }
        for a in &self.addons {
            let replaces = if a.replaces.is_empty() {
                String::new()
            } else {
                format!(", in place of {}", a.replaces)
            };
            p.line(format!("{}  add-on{replaces}", p.bold(&a.name)));
        }
        for f in &self.findings {
            p.line(format!("{} {}: {}", p.bold(&f.id), f.object, f.message));
            if !f.remedy.is_empty() {
                p.line(format!("  next: {} ({})", f.remedy, f.source));
            }
        }
        for s in &self.steps {
            p.line(format!(
                "step {} ({}): {}; undo {}",
                s.id,
                s.phase.name(),
                s.summary,
                promise(&s.promise)
            ));
        }
    }
}
