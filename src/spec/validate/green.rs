//! Rules of `green`: the cluster, its node groups, its roles.

use super::*;

impl Checker<'_> {
    pub(super) fn green(&self, spec: &Spec) -> Result<()> {
        let green = &spec.green;
        // eks.md: ^[0-9A-Za-z][A-Za-z0-9_-]*$, at most 100 characters.
        let good = (1..=100).contains(&green.name.len())
            && green.name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && green
                .name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        if !good {
            return Err(self.refuse(
                &["green", "name"],
                format!("`{}` cannot name an EKS cluster", green.name),
                "use 1 to 100 letters, digits, `-` and `_`, beginning with a letter or digit (no dots)",
            ));
        }
        if green.name == spec.blue.cluster {
            return Err(self.refuse(
                &["green", "name"],
                format!("green has blue's name `{}`", green.name),
                "give green a name of its own: tags and names tell the two apart",
            ));
        }
        let version = green
            .version
            .split_once('.')
            .map(|(a, b)| (a.parse::<u32>(), b.parse::<u32>()));
        if !matches!(version, Some((Ok(1), Ok(_)))) {
            return Err(self.refuse(
                &["green", "version"],
                format!("`{}` is no Kubernetes version of EKS", green.version),
                "write it as \"1.36\", quoted, without a patch number",
            ));
        }
        for (i, subnet) in green.subnets.iter().enumerate() {
            if !subnet.starts_with("subnet-") {
                let i = i.to_string();
                return Err(self.refuse(
                    &["green", "subnets", &i],
                    format!("`{subnet}` is no subnet id"),
                    "write it as `subnet-...`",
                ));
            }
        }
        self.unique(
            &["green", "subnets"],
            green.subnets.iter().map(String::as_str),
        )?;
        if let Some(cidr) = &green.service_cidr {
            service_cidr(cidr).map_err(|why| {
                self.refuse(
                    &["green", "serviceCidr"],
                    format!("`{cidr}` cannot be green's service range: {why}"),
                    "give a range inside 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16, between /24 and /12 (kops's 100.64.0.0/13 cannot be kept)",
                )
            })?;
        }
        for (i, access) in green.access.iter().enumerate() {
            let i = i.to_string();
            let arn = &access.principal;
            let iam = arn.starts_with("arn:")
                && arn.contains(":iam:")
                && (arn.contains(":role/") || arn.contains(":user/"));
            if !iam {
                return Err(self.refuse(
                    &["green", "access", &i, "principal"],
                    format!("`{arn}` is no IAM role or user"),
                    "give the ARN of an IAM role or user, as in arn:aws:iam::123456789012:role/NAME (never of an STS session)",
                ));
            }
            for (j, group) in access.groups.iter().enumerate() {
                if group.starts_with("system:") {
                    let j = j.to_string();
                    return Err(self.refuse(
                        &["green", "access", &i, "groups", &j],
                        format!("EKS refuses the group `{group}` in an access entry"),
                        "use `policy: AmazonEKSClusterAdminPolicy`, or a group of your own with a binding",
                    ));
                }
            }
            if access.policy.is_none() && access.groups.is_empty() {
                return Err(self.refuse(
                    &["green", "access", &i],
                    format!("the access of `{arn}` allows nothing"),
                    "give a policy or at least one group",
                ));
            }
        }
        for (i, access) in green.access.iter().enumerate() {
            if let Some(policy) = access.policy.as_deref()
                && !ACCESS_POLICIES.contains(&policy)
            {
                let i = i.to_string();
                let near = yaml::nearest(policy, ACCESS_POLICIES.iter().copied())
                    .map(|n| format!("did you mean `{n}`? "))
                    .unwrap_or_default();
                return Err(self.refuse(
                    &["green", "access", &i, "policy"],
                    format!("`{policy}` is no access policy of EKS"),
                    format!("{near}EKS has {}", ACCESS_POLICIES.join(", ")),
                ));
            }
        }
        self.roles(green)?;
        let mut principals = BTreeSet::new();
        for (i, access) in green.access.iter().enumerate() {
            if !principals.insert(&access.principal) {
                let i = i.to_string();
                return Err(self.refuse(
                    &["green", "access", &i, "principal"],
                    format!("`{}` is named twice", access.principal),
                    "EKS has one access entry a principal: put its groups together",
                ));
            }
        }
        Ok(())
    }

    /// eks.md 1.6. Whether blue has such an instance group only the planner can tell.
    pub(super) fn node_groups(&self, spec: &Spec) -> Result<()> {
        for (name, wish) in &spec.green.node_groups {
            let at = |key: &'static str| ["green", "nodeGroups", name.as_str(), key];
            if wish.instance_types.len() > 20 {
                return Err(self.refuse(
                    &at("instanceTypes"),
                    format!("{} instance types", wish.instance_types.len()),
                    "a managed node group takes 1 to 20",
                ));
            }
            for (i, t) in wish.instance_types.iter().enumerate() {
                let good = t.split_once('.').is_some_and(|(family, size)| {
                    [family, size].iter().all(|p| {
                        !p.is_empty()
                            && p.chars()
                                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
                    })
                });
                if !good {
                    let i = i.to_string();
                    return Err(self.refuse(
                        &["green", "nodeGroups", name, "instanceTypes", &i],
                        format!("`{t}` is no instance type"),
                        "write it as `m6i.large`",
                    ));
                }
            }
            self.unique(
                &at("instanceTypes"),
                wish.instance_types.iter().map(String::as_str),
            )?;
            if let Some(ami) = &wish.ami_type
                && !AMI_TYPES.contains(&ami.as_str())
            {
                let near = yaml::nearest(ami, AMI_TYPES.iter().copied())
                    .map(|n| format!(" (did you mean {n}?)"))
                    .unwrap_or_default();
                return Err(self.refuse(
                    &at("amiType"),
                    format!("`{ami}` is no AMI type that crossfade makes nodes of{near}"),
                    format!("one of {}", AMI_TYPES.join(", ")),
                ));
            }
            if wish.max == Some(0) {
                return Err(self.refuse(
                    &at("max"),
                    "the largest size is 0",
                    "a managed node group has at least 1; say `skip: true` for no group",
                ));
            }
            if let (Some(min), Some(max)) = (wish.min, wish.max)
                && min > max
            {
                return Err(self.refuse(
                    &at("min"),
                    format!("the smallest size {min} is above the largest {max}"),
                    "turn them round",
                ));
            }
            for (k, v) in &wish.labels {
                if ["kubernetes.io/", "k8s.io/", "eks.amazonaws.com/"]
                    .iter()
                    .any(|part| k.contains(part))
                {
                    return Err(self.refuse(
                        &["green", "nodeGroups", name, "labels", k],
                        format!("EKS refuses the label `{k}`"),
                        "use a name of your own: those of Kubernetes, kops and EKS are reserved",
                    ));
                }
                if !label_key(k) || !(v.is_empty() || label_name(v)) {
                    return Err(self.refuse(
                        &["green", "nodeGroups", name, "labels", k],
                        format!("`{k}: {v}` is no label"),
                        "use at most 63 letters, digits, `-`, `_` and `.`, beginning and ending with a letter or digit; before the name a DNS name and `/` may stand",
                    ));
                }
            }
        }
        Ok(())
    }

    fn roles(&self, green: &crate::spec::model::Green) -> Result<()> {
        for (account, wish) in &green.roles {
            let path = ["green", "roles", account.as_str()];
            let parts: Vec<&str> = account.split('/').collect();
            if parts.len() != 2 || parts.iter().any(|p| p.is_empty()) {
                return Err(self.refuse(
                    &path,
                    format!("`{account}` names no service account"),
                    "write it as `NAMESPACE/ACCOUNT`",
                ));
            }
            let own = !wish.from_node_role.is_empty() || !wish.policies.is_empty();
            if wish.role.is_some() && own {
                return Err(self.refuse(
                    &path,
                    format!("`{account}` names a role that exists and rights for a new one"),
                    "keep `role`, or keep `fromNodeRole` and `policies`: crossfade adds no rights to a role that others use",
                ));
            }
            if wish.role.is_none() && !own {
                return Err(self.refuse(
                    &path,
                    format!("`{account}` gets nothing"),
                    "give `role`, `fromNodeRole` or `policies`, or leave the account out",
                ));
            }
            if let Some(bad) = wish.from_node_role.iter().find(|s| !s.contains('/')) {
                return Err(self.refuse(
                    &path,
                    format!("`{bad}` names no statement"),
                    "write it as the finding IAM-04 does: `POLICY/SID` or `POLICY/INDEX`",
                ));
            }
            if let Some(bad) = wish
                .policies
                .iter()
                .find(|p| !(p.starts_with("arn:") && p.contains(":policy/")))
            {
                return Err(self.refuse(
                    &path,
                    format!("`{bad}` is no managed policy"),
                    "give its ARN, as in arn:aws:iam::123456789012:policy/NAME",
                ));
            }
        }
        Ok(())
    }
}
