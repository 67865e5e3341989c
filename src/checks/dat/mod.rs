//! DAT: stores, how they are compared, and what happens to writes of green when it goes back (reversibility.md 3.2).

mod dat_01;
mod dat_02;
mod dat_03;
mod dat_04;
mod dat_05;
mod dat_06;
mod dat_07;
mod stores;

use super::Check;

/// The family.
pub(super) const ALL: &[Check] = &[
    dat_01::CHECK,
    dat_02::CHECK,
    dat_03::CHECK,
    dat_04::CHECK,
    dat_05::CHECK,
    dat_06::CHECK,
    dat_07::CHECK,
];
