//! crossfade moves production from a kops cluster (**blue**) to an EKS cluster (**green**) and can always move it back.
//!
//! Dependencies point one way: `cli -> engine -> step -> world` and `cli -> plan -> {spec, snapshot, checks, rewrite, step}`.
//! `world` imports none of them; `rewrite`, `checks`, `plan` and `edns` are pure and know no I/O.
#![warn(missing_docs)]

pub mod checks;
pub mod cli;
pub mod drift;
pub mod edns;
pub mod engine;
pub mod error;
pub mod helm;
pub mod instance_types;
pub mod journal;
pub mod object;
pub mod plan;
pub mod policy;
pub mod rewrite;
pub mod snapshot;
pub mod spec;
pub mod step;
pub mod terraform;
pub mod world;
pub mod yaml;
