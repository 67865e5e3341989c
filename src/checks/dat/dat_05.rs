//! DAT-05: "first write on green, then back": a PostgreSQL set streams back, a shared store is the same; a store that nobody declared has no
//! answer (reversibility.md 3.2 case 1).

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "DAT-05",
    severity: Severity::Blocker,
    question: "What happens to writes of green when it goes back to blue?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Declare each store, with mode shared if both sides use it.",
    source: "checks.md DAT-05",
    run,
};

fn run(i: &Input, r: &mut Report) {
    if i.spec.data.is_empty() && !i.names.is_empty() {
        // Most companies keep their data outside of the cluster, where both sides use one store: a warning, no blocker.
        r.warning("data", "no data set is declared: stores are taken as shared by both sides, and nothing is copied or fenced", CHECK.remedy);
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::Warning;

    #[test]
    fn a_move_of_names_without_any_data_set_is_named_and_a_declared_store_is_the_answer() {
        fires(
            &spec(),
            &shop(),
            "DAT-05",
            Warning,
            "no data set is declared",
        );
        silent(&with_postgres(true), &shop(), "DAT-05");
        silent(&spec(), &empty(), "DAT-05");
    }
}
