//! The twin: an in-process, deterministic simulation of everything in [`World`](super::World).
