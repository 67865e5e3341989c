//! DAT-03: what is copied is compared. PostgreSQL sets are compared by the run, table by table; a store in a volume has no comparison unless
//! somebody declares one. That it would start empty is WL-04's.

use super::stores::{declared, stores};
use crate::checks::look::count;
use crate::checks::{Answered, Check, Input, Need, Report, few};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "DAT-03",
    severity: Severity::Blocker,
    question: "Is there a store whose copy nothing compares (counts, hashes, offsets)?",
    needs: &[Need::Blue],
    answered: Answered::Plan,
    remedy: "Declare a data set of its name, or write down how the copy is compared and answer with a waiver of DAT-03.",
    source: "checks.md DAT-03",
    run,
};

fn run(i: &Input, r: &mut Report) {
    let loose: Vec<&str> = stores(i)
        .into_iter()
        .filter(|s| !declared(i, &s.object.id.name))
        .map(|s| s.object.name.as_str())
        .collect();
    if !loose.is_empty() {
        // WL-04 blocks already: this says what else its owner must bring along.
        r.warning(
            loose[0],
            format!(
                "{} in volumes and without a data set: {}; nothing would compare a copy with blue",
                count(loose.len(), "store"),
                few(&loose)
            ),
            CHECK.remedy,
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::Warning;
    use crate::snapshot::model::Snapshot;
    use serde_json::json;

    fn store(name: &str) -> Snapshot {
        let mut set = workload("StatefulSet", name, "db:1", json!({}));
        set["spec"]["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}]);
        with(vec![set])
    }

    #[test]
    fn a_store_in_a_volume_without_a_data_set_is_named() {
        fires(
            &spec(),
            &store("wiki-db"),
            "DAT-03",
            Warning,
            "statefulset/web/wiki-db",
        );
    }

    #[test]
    fn a_store_with_a_data_set_of_its_name_is_compared_by_the_run() {
        silent(&with_postgres(true), &store("orders-db"), "DAT-03");
        silent(
            &spec(),
            &with(vec![workload("StatefulSet", "cache", "c:1", json!({}))]),
            "DAT-03",
        );
    }
}
