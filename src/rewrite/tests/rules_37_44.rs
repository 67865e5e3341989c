//! Rules 37 to 44 of replay.md: identity, secrets and RBAC. A test of each is named `rule_NN_...`.
