//! Where a rule or trap of externaldns.md is about ExternalDNS's own behaviour, the real binary decides: 0.10.2 (legacy TXTs), 0.14.2 (both
//! formats) and 0.21.0 (typed TXTs) as blue, 0.21.0 as green, against the strict Route 53. Each round of a binary is also held against the model
//! (`agree`), so that the planner and the twin are wrong as soon as a binary says so.

#[path = "edns_ages/bench.rs"]
mod bench;
#[path = "edns_ages/rules.rs"]
mod rules;
#[path = "edns_ages/traps.rs"]
mod traps;
