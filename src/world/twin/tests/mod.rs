//! Tests of the twin by itself.
