//! API: versions, kinds and fields that green serves or not.

mod api_01;
mod api_02;
mod api_03;
mod api_04;
mod api_05;
mod api_06;
mod api_07;
mod api_08;
mod api_09;
mod api_10;
mod api_11;
mod api_12;
mod api_13;
#[cfg(test)]
mod tests;

use super::Check;

/// The family.
pub(super) const ALL: &[Check] = &[
    api_01::CHECK,
    api_02::CHECK,
    api_03::CHECK,
    api_04::CHECK,
    api_05::CHECK,
    api_06::CHECK,
    api_07::CHECK,
    api_08::CHECK,
    api_09::CHECK,
    api_10::CHECK,
    api_11::CHECK,
    api_12::CHECK,
    api_13::CHECK,
];
