//! What is: one folder of plain files. `discover` writes it, `plan` and the twin read it.

pub mod discover;
pub mod files;
pub mod kops;
pub mod mask;
pub mod model;
pub mod prefer;
pub mod roll;
pub mod store;
