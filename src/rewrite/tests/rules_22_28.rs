//! Rules 22 to 28 of replay.md: what is never copied. A test of each is named `rule_NN_...`.
