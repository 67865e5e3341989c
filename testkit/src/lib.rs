//! The bench that crossfade is proven on: real API servers, real ExternalDNS, a strict AWS layer,
//! DNS, load balancers, traffic. Tests start it themselves; a person starts it with `crossfade-bench up`.

pub mod error;
pub use error::{Context, Error, Result};
/// HCL, parsed by somebody else's library: what crossfade renders is read back with it.
pub use hcl_edit as hcl;
pub use servers::TestCa;

// Room "servers": the real processes, the fixture and the bench that holds everything together.
pub mod bench;
pub mod fixture;
pub mod servers;

// Room "strict": the AWS layer in front of the emulator, the token webhook, node groups to nodes.
pub mod nodes;
pub mod strict;
pub mod webhook;

// Room "far": what lies behind a proxy, a bastion or an SSM session.
pub mod far;

// Room "kubelet": processes for pods, load balancers, DNS, the little apps, traffic.
pub mod apps;
pub mod dns;
pub mod kubelet;
pub mod lb;
pub mod net;
pub mod traffic;
pub mod usage;
pub mod wire;
