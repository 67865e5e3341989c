//! Priority levels before v1: shares have another name, and 0 had another meaning.

use super::super::removed::Removal;
use super::super::work::{Work, set, take};
use super::rename;
use serde_json::json;

const SHARES: &str = "/spec/limited/nominalConcurrencyShares";
/// By this a v1beta3 object said that its 0 is meant.
const KEEP_ZERO: &str =
    "/metadata/annotations/flowcontrol.k8s.io~1v1beta3-preserve-zero-concurrency-shares";

/// Rule 65: before v1 the server read 0 as "not given" and took 30.
pub(super) fn convert(w: &mut Work, r: &Removal) {
    let meant = take(&mut w.object, KEEP_ZERO).is_some();
    rename::convert(w, r);
    if !meant && w.object.pointer(SHARES) == Some(&json!(0)) {
        set(&mut w.object, SHARES, json!(30));
    }
    w.changed(65);
}
