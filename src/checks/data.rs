//! DAT: data sets.

use super::{Input, Report};
use crate::spec::model::DataMode;

/// DAT-03, DAT-05.
pub(super) fn sets_are_declared(i: &Input, r: &mut Report) {
    for d in &i.spec.data {
        if d.mode == DataMode::Postgres && d.write_probe.is_none() {
            r.warning(
                format!("data/{}", d.name),
                "no writeProbe: the fence is proven at the database only, not at the front door",
                "Declare a write through the company's front door.",
            );
        }
    }
    if i.spec.data.is_empty() && !i.names.is_empty() {
        r.warning("data", "no data set is declared: stores are taken as shared by both sides, and nothing is copied or fenced", "Declare each store, with mode shared if both sides use it.");
    }
}
