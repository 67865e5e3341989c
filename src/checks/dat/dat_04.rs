//! DAT-04: a copy that was never rehearsed has no known length (S24, S26). A plan does not know of rehearsals: they leave their own report.

use super::stores::copied;
use crate::checks::{Answered, Check, Input, Report, few};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "DAT-04",
    severity: Severity::Blocker,
    question: "Is the last rehearsal missing, too old, or longer than the window?",
    needs: &[],
    answered: Answered::Person,
    remedy: "Run `crossfade rehearse` on this plan and compare its measured times with limits.writeClosedSeconds.",
    source: "checks.md DAT-04",
    run,
};

fn run(i: &Input, r: &mut Report) {
    let sets: Vec<&str> = copied(i).into_iter().map(|d| d.name.as_str()).collect();
    if !sets.is_empty() {
        r.ask(
            "limits.writeClosedSeconds",
            format!(
                "when the copy of {} was rehearsed last, and whether it fitted into {} s without writes",
                few(&sets),
                i.spec.limits.write_closed_seconds
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::NotChecked;

    #[test]
    fn a_copy_asks_for_its_rehearsal_and_a_move_without_data_does_not() {
        fires(
            &with_postgres(true),
            &empty(),
            "DAT-04",
            NotChecked,
            "fitted into 300 s",
        );
        silent(&spec(), &shop(), "DAT-04");
    }
}
