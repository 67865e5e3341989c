//! DAT-01: the fence is proven by writes that must fail: at the database by the run, at the front door by the declared probe.

use super::stores::copied;
use crate::checks::{Answered, Check, Input, Report, few};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "DAT-01",
    severity: Severity::Blocker,
    question: "Does a write succeed during maintenance, on either side?",
    needs: &[],
    answered: Answered::Run("fence.close"),
    remedy: "Rehearse it with `crossfade rehearse`.",
    source: "checks.md DAT-01",
    run,
};

fn run(i: &Input, r: &mut Report) {
    let sets = copied(i);
    for d in sets.iter().filter(|d| d.write_probe.is_none()) {
        r.warning(
            format!("data/{}", d.name),
            "no writeProbe: the fence is proven at the database only, not at the front door",
            "Declare a write through the company's front door.",
        );
    }
    if !sets.is_empty() {
        let names: Vec<&str> = sets.iter().map(|d| d.name.as_str()).collect();
        r.ask(
            "data",
            format!(
                "writes to {} must fail on both sides while it is copied",
                few(&names)
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::{NotChecked, Warning};

    #[test]
    fn a_set_without_a_write_probe_is_named_and_the_proof_is_left_to_the_run() {
        fires(
            &with_postgres(false),
            &empty(),
            "DAT-01",
            Warning,
            "no writeProbe",
        );
        fires(
            &with_postgres(true),
            &empty(),
            "DAT-01",
            NotChecked,
            "writes to orders must fail",
        );
        never_says(&with_postgres(true), &empty(), "DAT-01", "no writeProbe");
    }

    #[test]
    fn without_a_copied_set_there_is_no_fence_to_prove() {
        silent(&spec(), &empty(), "DAT-01");
    }
}
