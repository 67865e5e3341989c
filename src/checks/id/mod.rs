//! ID: the right cluster, account, region and zones, that everything was read, and that nobody else is at it.

mod id_01;
mod id_02;
mod id_03;
mod id_04;
mod id_05;
mod id_06;
mod id_07;
mod id_08;
mod id_09;
mod id_10;
mod read_01;
#[cfg(test)]
mod tests;

use super::Check;

/// The family.
pub(super) const ALL: &[Check] = &[
    read_01::CHECK,
    id_01::CHECK,
    id_02::CHECK,
    id_03::CHECK,
    id_04::CHECK,
    id_05::CHECK,
    id_06::CHECK,
    id_07::CHECK,
    id_08::CHECK,
    id_09::CHECK,
    id_10::CHECK,
];
