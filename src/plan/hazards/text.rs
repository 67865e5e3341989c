//! The report for people.

use super::{Hazard, Hazards};
use crate::plan::model::Severity;

/// `3 hops`, `1 hop`.
fn many(n: usize, one: &str) -> String {
    format!("{n} {one}{}", if n == 1 { "" } else { "s" })
}

fn word(s: Severity) -> &'static str {
    match s {
        Severity::Blocker => "blocker",
        Severity::Warning => "warning",
        Severity::Info => "info",
        Severity::NotChecked => "not known",
    }
}

impl Hazard {
    /// `(since ..., until ...)`.
    fn when(&self) -> String {
        let mut parts = vec![];
        if let Some(s) = &self.since {
            parts.push(format!("since {s}"));
        }
        if let Some(u) = &self.until {
            parts.push(format!("until {u}"));
        }
        if parts.is_empty() {
            String::new()
        } else {
            format!(" [{}]", parts.join("; "))
        }
    }
}

impl Hazards {
    /// One line for `plan`; `None` when nothing is known.
    pub fn line(&self) -> Option<String> {
        self.kubernetes.as_ref()?;
        let n = |s: Severity| self.hazards.iter().filter(|h| h.severity == s).count();
        Some(format!(
            "in place instead: {} to {}, {}; {}, {}",
            many(self.total.hops, "hop"),
            self.green,
            many(self.total.rolling_updates, "rolling update"),
            many(n(Severity::Blocker), "blocker"),
            many(n(Severity::Warning), "warning"),
        ))
    }

    /// The whole report, line by line.
    pub fn lines(&self) -> Vec<String> {
        let mut out = vec![format!(
            "Why blue is not upgraded in place: Kubernetes {}, {}",
            self.kubernetes.as_deref().unwrap_or("not known"),
            self.kops
        )];
        out.push(String::new());
        out.push("Hazards".into());
        if self.hazards.is_empty() {
            out.push("  none".into());
        }
        for h in &self.hazards {
            out.push(format!(
                "  {} {}: {}{} ({})",
                word(h.severity),
                h.id,
                h.what,
                h.when(),
                h.source
            ));
        }
        out.push(String::new());
        out.push(format!("Hops to {}", self.green));
        if self.hops.is_empty() {
            out.push(match &self.kubernetes {
                Some(v) => format!("  none: blue runs {v}"),
                None => "  not known".into(),
            });
        }
        let unread = |h: &Hazard| h.id == "HAZ-removed-apis" && h.severity == Severity::NotChecked;
        let nothing = if self.hazards.iter().any(unread) {
            "nothing that is known (blue's objects were not read)"
        } else {
            "nothing that is known"
        };
        for hop in &self.hops {
            out.push(format!("  {} to {} (kops {})", hop.from, hop.to, hop.kops));
            if hop.breaks.is_empty() {
                out.push(format!("    {nothing}"));
            }
            for b in &hop.breaks {
                let n = b.objects.map(|n| format!("{n}: ")).unwrap_or_default();
                out.push(format!("    {n}{} ({})", b.what, b.source));
            }
        }
        out.push(String::new());
        let t = &self.total;
        let goal = match (&self.oldest_supported, t.hops_to_supported) {
            (Some(v), Some(n)) => format!(
                "{} to {v}, the oldest that EKS and kops support; ",
                many(n, "hop")
            ),
            _ => String::new(),
        };
        out.push(format!(
            "In all: {goal}{} to {}, {} of groups, {} replaced. crossfade makes {} beside blue instead.",
            many(t.hops, "hop"),
            self.green,
            many(t.rolling_updates, "rolling update"),
            many(t.instances, "instance"),
            self.green
        ));
        out
    }
}
