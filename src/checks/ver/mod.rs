//! VER: what changes between the versions of both sides.

mod eks_version;
#[cfg(test)]
mod tests;
mod ver_01;
mod ver_02;
mod ver_03;
mod ver_04;
mod ver_05;

use super::Check;
use super::Input;
use crate::rewrite::minor;

/// The family.
pub(super) const ALL: &[Check] = &[
    ver_01::CHECK,
    ver_02::CHECK,
    ver_03::CHECK,
    ver_04::CHECK,
    ver_05::CHECK,
    eks_version::CHECK,
];

/// Minor version of blue, from its server or from the kops document.
pub(super) fn blue_minor(i: &Input) -> Option<u32> {
    i.snapshot
        .blue
        .version
        .as_ref()
        .map(|v| v.minor)
        .or_else(|| {
            let c = i.snapshot.kops.cluster.as_ref()?;
            let v = c.pointer("/spec/kubernetesVersion")?.as_str()?;
            minor(&format!(
                "v{}",
                v.rsplit('/').next()?.trim_start_matches('v')
            ))
        })
}
