//! GIT: pipelines, GitOps and Terraform: who else writes.

mod git_01;
mod git_02;
mod git_03;
mod git_04;
mod git_05;
#[cfg(test)]
mod tests;

use super::Check;

/// The family.
pub(super) const ALL: &[Check] = &[
    git_01::CHECK,
    git_02::CHECK,
    git_03::CHECK,
    git_04::CHECK,
    git_05::CHECK,
];
