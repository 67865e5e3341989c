//! DNS: who writes names, who owns them, what the switch needs (externaldns.md).

mod after;
mod dns_01;
mod dns_02;
mod dns_03;
mod dns_04;
mod dns_05;
mod dns_06;
mod dns_07;
mod dns_08;
mod dns_09;
mod dns_10;
mod dns_11;
mod dns_12;
mod dns_13;
mod dns_14;
mod dns_15;
mod dns_16;
mod dns_17;
#[cfg(test)]
mod rules_tests;

pub(super) use after::{After, dry_run};

use super::Check;

/// The family.
pub(super) const ALL: &[Check] = &[
    dns_01::CHECK,
    dns_02::CHECK,
    dns_03::CHECK,
    dns_04::CHECK,
    dns_05::CHECK,
    dns_06::CHECK,
    dns_07::CHECK,
    dns_08::CHECK,
    dns_09::CHECK,
    dns_10::CHECK,
    dns_11::CHECK,
    dns_12::CHECK,
    dns_13::CHECK,
    dns_14::CHECK,
    dns_15::CHECK,
    dns_16::CHECK,
    dns_17::CHECK,
];
