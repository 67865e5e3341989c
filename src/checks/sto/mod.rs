//! STO: volumes, classes, drivers (eks.md 4; replay.md 54 to 60). That a volume or claim has no plan of its own is WL-04's, found by the rewrite.

mod sto_01;
mod sto_02;
mod sto_03;
mod sto_04;
mod sto_05;
mod sto_06;
mod sto_07;
mod sto_08;
mod sto_09;
mod volumes;

use super::Check;

/// The family.
pub(super) const ALL: &[Check] = &[
    sto_01::CHECK,
    sto_02::CHECK,
    sto_03::CHECK,
    sto_04::CHECK,
    sto_05::CHECK,
    sto_06::CHECK,
    sto_07::CHECK,
    sto_08::CHECK,
    sto_09::CHECK,
];
