//! EndpointSlices before v1: topology is a field of its own.

use super::super::removed::Removal;
use super::super::work::{Work, take};
use super::rename;
use serde_json::{Value, json};

/// Keys of the old topology, and the fields that hold them in v1.
const FIELDS: &[(&str, &str)] = &[
    ("kubernetes.io/hostname", "nodeName"),
    ("topology.kubernetes.io/zone", "zone"),
    // Until 1.17 the zone had this name.
    ("failure-domain.beta.kubernetes.io/zone", "zone"),
];

/// Rule 65. The rest of the old topology is read-only in v1 (`deprecatedTopology`) and says nothing on green.
pub(super) fn convert(w: &mut Work, r: &Removal) {
    let list = w.object.get_mut("endpoints").and_then(Value::as_array_mut);
    for endpoint in list.into_iter().flatten() {
        let Some(topology) = take(endpoint, "/topology") else {
            continue;
        };
        for (key, field) in FIELDS {
            if let Some(v) = topology.get(*key)
                && endpoint.get(*field).is_none()
            {
                endpoint[*field] = v.clone();
            }
        }
    }
    // v1alpha1 had one type for both families; v1 wants one that says which.
    if w.object["addressType"] == "IP" {
        w.object["addressType"] = json!("IPv4");
    }
    rename::convert(w, r);
}
