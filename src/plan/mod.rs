//! The planner: a pure function of Spec and Snapshot.

pub mod model;
