//! Rules 29 to 36 of replay.md: Services, endpoints and load balancers. A test of each is named `rule_NN_...`.
