//! The answer, as text and as JSON.

use super::changes;
use super::fields;
use super::search::Found;
use crate::cli::plan::fate_name;
use crate::cli::printer::Printer;
use crate::cli::review::promise;
use crate::plan::fates::HIDDEN;
use serde_json::{Value, json};

impl Found<'_> {
    /// As JSON.
    pub fn as_json(&self) -> Value {
        let steps: Vec<&str> = self.steps.iter().map(|s| s.id.as_str()).collect();
        let mut out = json!({"verdicts": self.verdicts, "generated": self.generated, "names": self.names, "node_groups": self.groups, "roles": self.roles, "addons": self.addons, "findings": self.findings, "steps": steps, "records_left_alone": self.left_alone});
        let of_fields = fields::json(&self.fields);
        out["fields"] = of_fields["fields"].clone();
        out["unset"] = of_fields["unset"].clone();
        if let Some(plan) = self.cluster {
            out["cluster"] = json!(plan.target.cluster);
        }
        if let Some((id, users)) = &self.subnet {
            out["subnet"] = json!({"id": id, "used_by": users});
        }
        if let Some((rule, objects)) = &self.rule {
            out["rule"] = json!({"number": rule.number, "says": rule.says, "room": rule.room, "objects": objects});
        }
        if !self.changes.is_empty() {
            out["changes"] = json!(self.changes);
        }
        out
    }

    /// As text.
    pub fn show(&self, p: &Printer) {
        self.show_fields(p);
        self.show_cluster(p);
        self.show_rule(p);
        self.show_objects(p);
        self.show_target(p);
        for f in &self.findings {
            finding(p, f, "");
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

    fn show_rule(&self, p: &Printer) {
        const SHOWN: usize = 20;
        let Some((rule, objects)) = &self.rule else {
            return;
        };
        p.line(format!(
            "{}  {}",
            p.bold(&format!("replay.md {}", rule.number)),
            rule.says
        ));
        match objects.len() {
            0 => p.line("  touched no object of this plan"),
            n => p.line(format!("  touched {n} of this plan's objects:")),
        }
        for o in objects.iter().take(SHOWN) {
            p.line(format!("  {o}"));
        }
        if objects.len() > SHOWN {
            p.line(format!(
                "  and {} more (-o json has all)",
                objects.len() - SHOWN
            ));
        }
    }

    fn show_fields(&self, p: &Printer) {
        for s in &self.fields.set {
            let f = s.field;
            let place = f
                .place
                .as_ref()
                .map(|at| format!("  ({at})"))
                .unwrap_or_default();
            p.line(format!(
                "{}  {} on blue{place}",
                p.bold(&format!("{}/{}", f.document, f.path)),
                fields::shown(&f.value),
            ));
            p.line(format!("  {}: {}", f.fate.name(), f.sentence));
            p.line(format!("  by {}", f.rule));
            for b in &s.became {
                p.line(format!("  became {b}"));
            }
            if f.value == HIDDEN {
                p.line("  its value may be code or a credential, and is not repeated");
            }
            for x in &s.findings {
                finding(p, x, "  ");
            }
        }
        for u in &self.fields.unset {
            p.line(format!(
                "{}  is not set on blue",
                p.bold(&format!("{}/{}", u.document, u.known.pattern))
            ));
            if let Some(d) = &u.default {
                p.line(format!("  in force: {d}"));
            }
            p.line(format!(
                "  if it were: {}: {}",
                u.known.fate.name(),
                u.known.sentence
            ));
            p.line(format!("  by {}", u.known.rule));
        }
    }

    fn show_cluster(&self, p: &Printer) {
        if let Some(plan) = self.cluster {
            let c = &plan.target.cluster;
            p.line(format!(
                "{}  EKS {} in {}, in place of {} (kops)",
                p.bold(&format!("cluster {}", c.name)),
                c.version,
                c.region,
                plan.spec.blue.cluster
            ));
            p.line(format!("  subnets {}", c.subnets.join(", ")));
            p.line(format!(
                "  {} node groups, {} roles, {} add-ons, {} names to hand over",
                plan.target.node_groups.len(),
                plan.target.roles.len(),
                plan.target.addons.len(),
                plan.names.len()
            ));
            if let Some(line) = plan.hazards.line() {
                p.line(format!("  {line}"));
            }
        }
        if let Some((id, users)) = &self.subnet {
            let users = if users.is_empty() {
                "no part of green".into()
            } else {
                users.join(", ")
            };
            p.line(format!(
                "{}  used by {users}",
                p.bold(&format!("subnet {id}"))
            ));
        }
    }

    fn show_objects(&self, p: &Printer) {
        for v in &self.verdicts {
            p.line(format!(
                "{}  {} ({} on blue)",
                p.bold(&v.object),
                fate_name(v.verdict),
                v.api_version
            ));
            for rule in &v.rules {
                let says = changes::rule(rule).map(|s| format!(": {s}"));
                p.line(format!("  by {rule}{}", says.unwrap_or_default()));
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
            if let Some(changes) = self.changes.get(&v.object) {
                changes::show(p, changes);
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
        for r in &self.left_alone {
            p.line(format!(
                "{}  {} record of zone {} ({})",
                p.bold(&r.name),
                r.rtype,
                r.zone,
                r.values.join(", ")
            ));
            p.line(format!("  {}", r.why));
        }
    }

    fn show_target(&self, p: &Printer) {
        for g in &self.groups {
            p.line(format!(
                "{}  node group {}..{} of {}, from instance group {}",
                p.bold(&g.name),
                g.min,
                g.max,
                g.instance_types.join("|"),
                g.instance_group
            ));
            p.line(format!(
                "  {} {}, {} GiB {}, now {}, in {}",
                g.capacity_type,
                g.ami_type,
                g.disk_gib,
                g.disk_type,
                g.desired,
                g.subnets.join(", ")
            ));
            super::super::groups::show(g, p);
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
            if let Some(from) = &r.from {
                p.line(format!("  its rights are those of {from} on blue"));
            }
            for g in &r.grants {
                p.line(format!(
                    "  {} statement {}: {}",
                    g.policy, g.statement, g.from
                ));
            }
        }
        for a in &self.addons {
            let replaces = if a.replaces.is_empty() {
                String::new()
            } else {
                format!(", in place of {}", a.replaces)
            };
            p.line(format!("{}  add-on{replaces}", p.bold(&a.name)));
            if let Some(settings) = &a.configuration {
                p.line(format!("  settings {settings}"));
            }
        }
    }
}

fn finding(p: &Printer, f: &crate::plan::model::Finding, indent: &str) {
    p.line(format!(
        "{indent}{} {}: {}",
        p.bold(&f.id),
        f.object,
        f.message
    ));
    if !f.remedy.is_empty() {
        p.line(format!("{indent}  next: {} ({})", f.remedy, f.source));
    }
}
