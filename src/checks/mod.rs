//! Preflight checks: pure functions from snapshot and spec to findings.
