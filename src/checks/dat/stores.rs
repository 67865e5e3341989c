//! Workloads that keep data in volumes, and the data sets of the spec.

use crate::checks::look::{items, text};
use crate::checks::{BlueObject, Input};
use crate::spec::model::{DataMode, DataSet};

/// A workload that goes to green and keeps data in volumes.
pub(super) struct Store<'a> {
    /// The workload.
    pub object: &'a BlueObject<'a>,
    /// Claim templates and claims that its pods mount.
    pub claims: Vec<String>,
}

/// Stores, in the order of objects.
pub(super) fn stores<'a>(i: &Input<'a>) -> Vec<Store<'a>> {
    i.moving(&["StatefulSet", "Deployment", "DaemonSet", "ReplicaSet"])
        .filter_map(|o| {
            let ns = o.id.namespace.as_deref().unwrap_or("");
            let templates = items(o.object, "/spec/volumeClaimTemplates")
                .filter_map(|t| text(t, "/metadata/name"))
                .map(|t| format!("{ns}/{t}-{}-", o.id.name));
            let mounted = o
                .pod()
                .into_iter()
                .flat_map(|p| items(p, "/volumes"))
                .filter_map(|v| text(v, "/persistentVolumeClaim/claimName"))
                .map(|c| format!("{ns}/{c}"));
            let claims: Vec<String> = templates.chain(mounted).collect();
            (!claims.is_empty()).then_some(Store { object: o, claims })
        })
        .collect()
}

/// Data sets that are copied.
pub(super) fn copied<'a>(i: &Input<'a>) -> Vec<&'a DataSet> {
    i.spec
        .data
        .iter()
        .filter(|d| d.mode == DataMode::Postgres)
        .collect()
}

/// Whether a data set is declared for a workload: of its name, or of a part of its name (`orders` for `orders-db`).
pub(super) fn declared(i: &Input, name: &str) -> bool {
    i.spec.data.iter().any(|d| {
        name == d.name
            || name.split('-').any(|part| part == d.name)
            || name.starts_with(&format!("{}-", d.name))
    })
}
