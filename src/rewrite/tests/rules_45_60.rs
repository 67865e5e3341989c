//! Rules 45 to 60 of replay.md: workloads and storage. A test of each is named `rule_NN_...`.
