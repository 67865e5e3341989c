//! The bench's real servers.
pub mod pki;
