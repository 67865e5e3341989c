//! Rules 1 to 21 of replay.md: reading, order and metadata. A test of each is named `rule_NN_...`.
