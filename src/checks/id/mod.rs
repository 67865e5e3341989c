//! ID: the right cluster, account, region and zones, and that everything was read.

mod id_01;
mod id_02;
mod id_03;
mod read_01;

use super::Check;

/// The family.
pub(super) const ALL: &[Check] = &[read_01::CHECK, id_01::CHECK, id_02::CHECK, id_03::CHECK];
