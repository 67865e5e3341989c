//! SNG-03: what looks as if it must be single and is not declared: a guess by name and strategy, so a warning.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "SNG-03",
    severity: Severity::Blocker,
    question: "Would a second scheduler start on green?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "List it under workloads.singletons, or annotate it `crossfade.dev/singleton: \"false\"`.",
    source: "checks.md SNG-03",
    run,
};

/// Words of names and arguments of schedulers.
const WORDS: &[&str] = &["scheduler", "beat", "cron", "clock", "ticker"];

fn run(i: &Input, r: &mut Report) {
    for o in super::undeclared(i).filter(|o| o.replicas() == 1) {
        let named = super::words(o)
            .iter()
            .any(|w| WORDS.iter().any(|k| w.contains(k)));
        if named || super::recreated(o) {
            r.warning(
                &o.name,
                format!(
                    "looks as if it must be single ({}): from unpark on a second one runs on green",
                    if named {
                        "one replica, named like a scheduler"
                    } else {
                        "one replica, strategy Recreate"
                    }
                ),
                CHECK.remedy,
            );
        }
    }
}
