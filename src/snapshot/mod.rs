//! What is: one folder of plain files. `discover` writes it, `plan` and the twin read it.

pub mod model;
