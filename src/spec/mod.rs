//! What the user wants: `migration.yaml`, strict and versioned.

pub mod model;
