//! DNS of the bench: an authoritative server over the emulator's zones and caching resolvers of three tempers.

mod authority;
mod resolver;
mod route53;
mod wire;
mod zone;

pub use self::authority::{Authority, AuthorityConfig};
pub use self::resolver::{Mode, Resolver};
pub use self::route53::POLLER_KEY;
pub use self::wire::query;
pub use self::zone::{Alias, RecordSet, Zone};
