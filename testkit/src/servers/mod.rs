//! The real servers: etcd, two API servers with their controllers, KWOK, the AWS emulator, PostgreSQL.

pub mod pki;

pub use pki::TestCa;
