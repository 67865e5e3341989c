//! OBS: whether anybody would see that something is wrong, on either side, during the move.

mod obs_01;
mod obs_02;
mod obs_03;
mod obs_04;
mod obs_05;
mod obs_06;
mod obs_07;
mod rules;

use super::Check;

/// The family.
pub(super) const ALL: &[Check] = &[
    obs_01::CHECK,
    obs_02::CHECK,
    obs_03::CHECK,
    obs_04::CHECK,
    obs_05::CHECK,
    obs_06::CHECK,
    obs_07::CHECK,
];
