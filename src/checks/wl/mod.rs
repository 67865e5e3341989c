//! WL: what runs, and whether it can run on green.

#[cfg(test)]
mod tests;
mod wl_01;
mod wl_02;
mod wl_03;
mod wl_04;
mod wl_05;
mod wl_06;
mod wl_07;
mod wl_08;
mod wl_09;
mod wl_10;
mod wl_11;

use super::Check;

/// The family.
pub(super) const ALL: &[Check] = &[
    wl_01::CHECK,
    wl_02::CHECK,
    wl_03::CHECK,
    wl_04::CHECK,
    wl_05::CHECK,
    wl_06::CHECK,
    wl_07::CHECK,
    wl_08::CHECK,
    wl_09::CHECK,
    wl_10::CHECK,
    wl_11::CHECK,
];
