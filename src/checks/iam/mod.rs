//! IAM: AWS rights of pods, and who gets in. What the planner's rooms `iam`, `addons` and `access` found is said under these ids.

mod components;
mod iam_01;
mod iam_02;
mod iam_03;
mod iam_04;
mod iam_05;
mod iam_06;
mod iam_07;
mod iam_08;
mod iam_authz;
mod iam_limits;

#[cfg(test)]
mod tests;

use super::{Check, Input, Report};

/// The family.
pub(super) const ALL: &[Check] = &[
    iam_01::CHECK,
    iam_02::CHECK,
    iam_03::CHECK,
    iam_04::CHECK,
    iam_05::CHECK,
    iam_06::CHECK,
    iam_07::CHECK,
    iam_08::CHECK,
    iam_authz::CHECK,
    iam_limits::CHECK,
    components::CHECK,
];

/// Says what the planner's rooms found under this id.
fn said(i: &Input, r: &mut Report) {
    for p in i.iam.problems.iter().filter(|p| p.check == r.check.id) {
        r.say(p.severity, &p.object, &p.message, &p.remedy);
    }
}
