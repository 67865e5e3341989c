//! Runs a plan's steps as a DAG, forwards and back.
