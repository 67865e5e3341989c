//! TLS: certificates that clients see, and who renews them. The content of a Secret is never in a snapshot, only its keyed hash: names and
//! expiry are known where a cert-manager Certificate tells them.

mod certs;
mod tls_01;
mod tls_02;
mod tls_03;
mod tls_04;
mod tls_05;
mod tls_06;

use super::Check;

/// The family.
pub(super) const ALL: &[Check] = &[
    tls_01::CHECK,
    tls_02::CHECK,
    tls_03::CHECK,
    tls_04::CHECK,
    tls_05::CHECK,
    tls_06::CHECK,
];
