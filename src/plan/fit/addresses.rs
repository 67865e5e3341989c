//! Addresses and pods of a node with the VPC CNI (eks.md 2.1): E interfaces of I addresses each.

use crate::world::cloud::InstanceType;

/// How the VPC CNI of green hands out addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mode {
    /// /28 prefixes instead of single addresses (`ENABLE_PREFIX_DELEGATION`); Nitro only.
    pub prefixes: bool,
    /// `WARM_IP_TARGET`: addresses kept ready besides those in use; whole interfaces when neither this nor the minimum is set.
    pub warm_ips: Option<u32>,
    /// `MINIMUM_IP_TARGET`.
    pub minimum_ips: Option<u32>,
    /// `WARM_PREFIX_TARGET`, 1 by default.
    pub warm_prefixes: Option<u32>,
    /// Pods have addresses of other subnets than nodes (`AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG`): the first interface serves no pod.
    pub custom_networking: bool,
}

/// Why a node takes no more pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Interfaces and their addresses.
    Interfaces,
    /// 110 up to 30 vCPUs, 250 above: what a managed node group allows at most.
    Ceiling,
    /// maxPods of blue's kubelet.
    Kubelet,
}

impl Bound {
    /// For people.
    pub fn word(self) -> &'static str {
        match self {
            Bound::Interfaces => "addresses of its interfaces",
            Bound::Ceiling => "the ceiling of managed node groups",
            Bound::Kubelet => "maxPods of the kubelet",
        }
    }
}

impl Mode {
    /// Whether a node of this type really works with prefixes: previous generations do not (eks.md 2.1).
    pub fn prefixes_on(self, t: &InstanceType) -> bool {
        self.prefixes && t.nitro
    }

    /// Pods that a node takes at most, hostNetwork ones counted, and why. `kubelet`: maxPods that blue's kubelet is told, and green's after it.
    pub fn max_pods(self, t: &InstanceType, kubelet: Option<u32>) -> (u32, Bound) {
        let interfaces = if self.custom_networking {
            t.interfaces.saturating_sub(1)
        } else {
            t.interfaces
        };
        let slots = interfaces * t.addresses.saturating_sub(1);
        let by_interfaces = if self.prefixes_on(t) {
            slots * 16 + 2
        } else {
            slots + 2
        };
        let ceiling = if t.vcpus <= 30 { 110 } else { 250 };
        let mut out = (by_interfaces, Bound::Interfaces);
        if ceiling < out.0 {
            out = (ceiling, Bound::Ceiling);
        }
        match kubelet {
            Some(k) if k < out.0 => (k, Bound::Kubelet),
            _ => out,
        }
    }

    /// Addresses that a node takes from its subnet when `pods` pods with addresses of their own run on it.
    pub fn node_addresses(self, t: &InstanceType, pods: u32) -> u32 {
        let per_interface = t.addresses.saturating_sub(1).max(1);
        if self.prefixes_on(t) {
            // WARM_IP_TARGET and MINIMUM_IP_TARGET win over WARM_PREFIX_TARGET in this mode too; then no whole spare prefix is kept.
            let prefixes = match (self.warm_ips, self.minimum_ips) {
                (None, None) => pods.div_ceil(16) + self.warm_prefixes.unwrap_or(1),
                (w, m) => (pods + w.unwrap_or(0)).max(m.unwrap_or(0)).div_ceil(16),
            };
            return 16 * prefixes + prefixes.div_ceil(per_interface).max(1);
        }
        match (self.warm_ips, self.minimum_ips) {
            (None, None) => t.interfaces.min(pods.div_ceil(per_interface) + 1) * t.addresses,
            (w, m) => {
                let wanted = (pods + w.unwrap_or(0)).max(m.unwrap_or(0));
                // Never more than its interfaces hold.
                (wanted + wanted.div_ceil(per_interface)).min(t.interfaces * t.addresses)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instance_types::known;

    fn t(name: &str) -> InstanceType {
        known(name).expect("in the table")
    }

    #[test]
    fn pods_per_node_are_those_of_the_table_of_the_vpc_cni() {
        // eks.md 2.1: max pods, custom networking, prefix delegation. The ceiling is left out there for m5.4xlarge without prefixes.
        let custom = Mode {
            custom_networking: true,
            ..Mode::default()
        };
        let prefix = Mode {
            prefixes: true,
            ..Mode::default()
        };
        for (name, plain, own, prefixes) in [
            ("t3.medium", 17, 12, 110),
            ("m5.large", 29, 20, 110),
            ("m5.xlarge", 58, 44, 110),
        ] {
            assert_eq!(
                Mode::default().max_pods(&t(name), None),
                (plain, Bound::Interfaces),
                "{name}"
            );
            assert_eq!(custom.max_pods(&t(name), None).0, own, "{name}");
            assert_eq!(prefix.max_pods(&t(name), None).0, prefixes, "{name}");
        }
        assert_eq!(
            Mode::default().max_pods(&t("m5.4xlarge"), None),
            (110, Bound::Ceiling)
        );
        assert_eq!(
            Mode::default().max_pods(&t("m5.24xlarge"), None),
            (250, Bound::Ceiling)
        );
        assert_eq!(
            Mode::default().max_pods(&t("m5.large"), Some(20)),
            (20, Bound::Kubelet)
        );
        assert_eq!(Mode::default().max_pods(&t("m5.large"), Some(110)).0, 29);
        // A previous generation takes no prefixes, whatever the setting.
        assert_eq!(
            prefix.max_pods(&t("m4.large"), None),
            (20, Bound::Interfaces)
        );
    }

    #[test]
    fn addresses_per_node_are_those_of_the_table_of_the_vpc_cni() {
        // eks.md 2.1: idle, 20 pods, full, 20 pods with w=2 m=20, 20 pods with prefixes.
        let warm = Mode {
            warm_ips: Some(2),
            minimum_ips: Some(20),
            ..Mode::default()
        };
        let prefix = Mode {
            prefixes: true,
            ..Mode::default()
        };
        let plain = Mode::default();
        for (name, idle, twenty, full, pods, targets) in [
            ("m5.large", 10, 30, 30, 29, 25),
            ("m5.xlarge", 15, 45, 60, 58, 24),
            ("m5.4xlarge", 30, 60, 240, 234, 23),
        ] {
            let t = t(name);
            assert_eq!(plain.node_addresses(&t, 0), idle, "{name}");
            assert_eq!(plain.node_addresses(&t, 20), twenty, "{name}");
            assert_eq!(plain.node_addresses(&t, pods - 2), full, "{name}");
            assert_eq!(warm.node_addresses(&t, 20), targets, "{name}");
            assert_eq!(prefix.node_addresses(&t, 20), 49, "{name}");
        }
        assert_eq!(plain.node_addresses(&t("t3.medium"), 15), 18);
    }
}
