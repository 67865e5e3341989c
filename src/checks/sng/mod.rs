//! SNG: what must never run twice.

mod sng_01;

use super::Check;

/// The family.
pub(super) const ALL: &[Check] = &[sng_01::CHECK];
