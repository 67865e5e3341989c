//! The bench that crossfade is proven on: real API servers, real ExternalDNS, a strict AWS layer,
//! DNS, load balancers, traffic. Tests start it themselves; a person starts it with `crossfade-bench up`.

pub mod apps;
pub mod dns;
pub mod kubelet;
pub mod lb;
pub mod net;
pub mod traffic;
