//! The real servers: etcd, two API servers with their controllers, KWOK, the AWS emulator, PostgreSQL.
//! How each is started: `bench.md` 3.

pub mod etcd;
pub mod http;
pub mod kube;
pub mod kwok;
pub mod ministack;
pub mod paths;
pub mod pki;
pub mod ports;
pub mod postgres;
pub mod process;

pub use self::kube::{ControlPlane, Side, User};
pub use self::pki::TestCa;
