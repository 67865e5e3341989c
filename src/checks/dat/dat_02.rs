//! DAT-02: sessions of writers are counted, ended and counted again when the fence closes.

use super::stores::copied;
use crate::checks::{Answered, Check, Input, Report, few};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "DAT-02",
    severity: Severity::Blocker,
    question: "Are writers of blue still connected to the store?",
    needs: &[],
    answered: Answered::Run("fence.close"),
    remedy: "Give the application a role of its own at the database, used by nothing else.",
    source: "checks.md DAT-02",
    run,
};

fn run(i: &Input, r: &mut Report) {
    let roles: Vec<String> = copied(i)
        .into_iter()
        .filter_map(|d| Some(format!("{} of {}", d.blue.as_ref()?.role, d.name)))
        .collect();
    if !roles.is_empty() {
        r.ask(
            "data",
            format!(
                "sessions of role {} must be 0 behind the fence",
                few(&roles)
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::NotChecked;

    #[test]
    fn sessions_are_counted_by_the_run_where_a_set_is_copied_and_only_there() {
        fires(
            &with_postgres(true),
            &empty(),
            "DAT-02",
            NotChecked,
            "role orders of orders",
        );
        silent(&spec(), &empty(), "DAT-02");
    }
}
