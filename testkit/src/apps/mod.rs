//! The little company's programs: they run as tasks of the bench, each with its own listener.

pub mod http;
