//! What an EC2 instance type is: what the account said, else the table in `data/instance-types.json`.
//!
//! The table is a fallback for plans made offline. It holds what DescribeInstanceTypes answered on its day (see `data/README.md`); types that EC2
//! no longer lists (p2, g3 ...) are not in it, and then the planner says that it does not know them.

use crate::snapshot::model::Snapshot;
use crate::world::cloud::InstanceType;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// vCPUs, MiB, interfaces, addresses each, arm64, GPUs, nitro, instance store in GB.
type Row = (u32, u32, u32, u32, u8, u32, u8, u32);

#[derive(Deserialize)]
struct Table {
    date: String,
    source: String,
    types: BTreeMap<String, Row>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    serde_json::from_str(include_str!("data/instance-types.json"))
        .expect("the table of instance types is part of the program, and a test reads it")
});

/// A type by name, as in `m5.large`: as the account describes it, else as the table does. `None`: nobody knows it.
pub fn find(snapshot: &Snapshot, name: &str) -> Option<InstanceType> {
    snapshot
        .aws
        .as_ref()
        .and_then(|a| a.instance_types.as_ref())
        .and_then(|t| t.get(name))
        .cloned()
        .or_else(|| known(name))
}

/// A type as the table has it.
pub fn known(name: &str) -> Option<InstanceType> {
    TABLE.types.get(name).map(|r| InstanceType {
        vcpus: r.0,
        memory_mib: r.1,
        interfaces: r.2,
        addresses: r.3,
        arch: if r.4 == 1 { "arm64" } else { "x86_64" }.into(),
        gpus: r.5,
        nitro: r.6 == 1,
        instance_store_gb: r.7,
    })
}

/// Names of all types of the table, sorted.
pub fn names() -> impl Iterator<Item = &'static str> {
    TABLE.types.keys().map(String::as_str)
}

/// The day of the table and where it comes from.
pub fn source() -> (&'static str, &'static str) {
    (&TABLE.date, &TABLE.source)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::cloud::Inventory;

    #[test]
    fn types_are_as_the_tables_of_the_vpc_cni_have_them() {
        // eks.md 2.1: E x I.
        for (name, interfaces, addresses) in [
            ("t3.medium", 3, 6),
            ("m5.large", 3, 10),
            ("m5.xlarge", 4, 15),
            ("m5.2xlarge", 4, 15),
            ("m5.4xlarge", 8, 30),
        ] {
            let t = known(name).expect(name);
            assert_eq!(
                (t.interfaces, t.addresses),
                (interfaces, addresses),
                "{name}"
            );
            assert!(t.nitro, "{name}");
        }
        // A machine with four network cards: only those of the first count (eks.md 2.1).
        assert_eq!(
            known("p4d.24xlarge").map(|t| (t.interfaces, t.gpus)),
            Some((15, 8))
        );
        assert_eq!(known("m6g.large").map(|t| t.arch), Some("arm64".into()));
        // Previous generations are no Nitro machines: no prefixes for the VPC CNI.
        for old in ["m3.large", "m4.large", "c4.xlarge", "t2.medium", "r4.large"] {
            assert_eq!(known(old).map(|t| t.nitro), Some(false), "{old}");
        }
        assert_eq!(known("m5.metal").map(|t| t.nitro), Some(true));
        assert_eq!(known("m5.lagre"), None);
        assert!(names().count() > 1000);
        assert_eq!(source().0.len(), "2026-05-10".len());
    }

    #[test]
    fn what_the_account_says_wins_over_the_table() {
        let mut s = Snapshot::default();
        assert_eq!(find(&s, "m5.large").map(|t| t.vcpus), Some(2));
        let own = InstanceType {
            vcpus: 3,
            ..known("m5.large").expect("listed")
        };
        s.aws = Some(Inventory {
            instance_types: Some([("m5.large".to_string(), own)].into()),
            ..Inventory::default()
        });
        assert_eq!(find(&s, "m5.large").map(|t| t.vcpus), Some(3));
        assert_eq!(find(&s, "m5.xlarge").map(|t| t.vcpus), Some(4));
    }
}
