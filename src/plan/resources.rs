//! Roles and add-ons of the target, and every cloud resource in the order of eks.md 0.4.

use super::dns::Names;
use super::generated;
use super::kops::role_name;
use super::model::{Target, TargetAddon, TargetRole};
use crate::rewrite::{Context, partition};
use crate::snapshot::model::Snapshot;
use crate::spec::model::Spec;
use crate::world::cloud::Resource;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const WORKER: &[&str] = &[
    "AmazonEKSWorkerNodePolicy",
    "AmazonEC2ContainerRegistryPullOnly",
    "AmazonSSMManagedInstanceCore",
];

fn managed(region: &str, name: &str) -> String {
    let path = if name == "AmazonEBSCSIDriverPolicy" {
        "service-role/"
    } else {
        ""
    };
    format!("arn:{}:iam::aws:policy/{path}{name}", partition(region))
}

fn role_arn(region: &str, name: &str) -> String {
    format!("arn:{}:iam::${{account}}:role/{name}", partition(region))
}

/// Service accounts with a role of blue: (namespace/name, role name, ARN).
pub(super) fn existing_roles(cx: &Context) -> Vec<(String, String, String)> {
    cx.sa_roles
        .iter()
        .map(|(sa, arn)| {
            let name = arn.rsplit('/').next().unwrap_or(arn).to_string();
            (sa.clone(), name, arn.clone())
        })
        .collect()
}

/// Adds roles and add-ons to the target.
pub(super) fn complete(
    mut target: Target,
    spec: &Spec,
    snapshot: &Snapshot,
    cx: &Context,
    names: &Names,
) -> Target {
    let green = &spec.green.name;
    let region = target.cluster.region.clone();
    let role = |what: &str, sa: Option<&str>, policies: Vec<String>| TargetRole {
        name: role_name(green, what),
        service_account: sa.map(String::from),
        policies,
        existing: false,
    };
    target.roles.push(role(
        "cluster",
        None,
        vec![managed(&region, "AmazonEKSClusterPolicy")],
    ));
    target.roles.push(role(
        "node",
        None,
        WORKER.iter().map(|p| managed(&region, p)).collect(),
    ));
    target.roles.push(role(
        "vpc-cni",
        Some("kube-system/aws-node"),
        vec![managed(&region, "AmazonEKS_CNI_Policy")],
    ));
    target.roles.push(role(
        "ebs-csi",
        Some("kube-system/ebs-csi-controller-sa"),
        vec![managed(&region, "AmazonEBSCSIDriverPolicy")],
    ));
    if !names.instances.is_empty() {
        let sa = format!(
            "{}/{}",
            generated::namespace(spec, names),
            generated::EXTERNAL_DNS
        );
        target.roles.push(role(
            generated::EXTERNAL_DNS,
            Some(&sa),
            vec!["route53".into()],
        ));
    }
    for (sa, name, _) in existing_roles(cx) {
        target.roles.push(TargetRole {
            name,
            service_account: Some(sa),
            policies: vec![],
            existing: true,
        });
    }
    let network = snapshot
        .kops
        .cluster
        .as_ref()
        .and_then(|c| c.pointer("/spec/networking"))
        .and_then(Value::as_object)
        .and_then(|n| {
            n.keys()
                .find(|k| {
                    !matches!(
                        k.as_str(),
                        "subnets"
                            | "topology"
                            | "networkCIDR"
                            | "nonMasqueradeCIDR"
                            | "networkID"
                            | "podCIDR"
                            | "serviceClusterIPRange"
                    )
                })
                .cloned()
        })
        .unwrap_or_default();
    let addon = |name: &str, replaces: &str| TargetAddon {
        name: name.into(),
        replaces: replaces.into(),
    };
    target.addons = vec![
        addon("vpc-cni", &network),
        addon("kube-proxy", "kube-proxy"),
        addon("eks-pod-identity-agent", ""),
        addon("coredns", "coredns"),
        addon(
            "aws-ebs-csi-driver",
            "kubernetes.io/aws-ebs and kops's aws-ebs-csi-driver",
        ),
    ];
    let metrics = snapshot
        .blue
        .find("Deployment", Some("kube-system"), "metrics-server")
        .is_some()
        || snapshot
            .kops
            .cluster
            .as_ref()
            .is_some_and(|c| c.pointer("/spec/metricsServer/enabled") == Some(&json!(true)));
    if metrics {
        target
            .addons
            .push(addon("metrics-server", "metrics-server"));
    }
    target
}

/// A resource with the ids of resources that must be there before it.
pub(super) struct Needed {
    pub resource: Resource,
    pub needs: Vec<String>,
}

fn trust_service(service: &str) -> Value {
    json!({"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Principal": {"Service": service}, "Action": ["sts:AssumeRole"]}]})
}

/// The statement by which a service account of green assumes a role (eks.md 3).
fn web_identity(region: &str, sid: Option<&str>, sa: &str) -> Value {
    let subject = sa.replace('/', ":");
    let mut s = json!({
        "Effect": "Allow",
        "Principal": {"Federated": format!("arn:{}:iam::${{account}}:oidc-provider/${{cluster.issuer}}", partition(region))},
        "Action": "sts:AssumeRoleWithWebIdentity",
        "Condition": {"StringEquals": {
            "${cluster.issuer}:aud": "sts.amazonaws.com",
            "${cluster.issuer}:sub": format!("system:serviceaccount:{subject}")
        }}
    });
    if let Some(sid) = sid {
        s["Sid"] = json!(sid);
    }
    s
}

/// A Sid: letters and digits only.
fn sid(green: &str, sa: &str) -> String {
    let mut out = String::from("Crossfade");
    let mut upper = true;
    for c in format!("{green}/{sa}").chars() {
        if c.is_ascii_alphanumeric() {
            out.push(if upper { c.to_ascii_uppercase() } else { c });
            upper = false;
        } else {
            upper = true;
        }
    }
    out
}

/// All cloud resources with what they need.
pub(super) fn all(
    target: &Target,
    spec: &Spec,
    snapshot: &Snapshot,
    cx: &Context,
    names: &Names,
) -> Vec<Needed> {
    let green = spec.green.name.clone();
    let region = target.cluster.region.clone();
    let mut out: Vec<Needed> = vec![];
    let mut add = |resource: Resource, needs: &[String]| -> String {
        let id = resource.id();
        out.push(Needed {
            resource,
            needs: needs.to_vec(),
        });
        id
    };
    let plain = |what: &str, service: &str, policies: Vec<String>| Resource::Role {
        name: role_name(&green, what),
        trust: trust_service(service),
        managed_policies: policies,
        inline_policies: BTreeMap::new(),
        boundary: None,
        path: None,
    };
    let cluster_role = add(
        plain(
            "cluster",
            "eks.amazonaws.com",
            vec![managed(&region, "AmazonEKSClusterPolicy")],
        ),
        &[],
    );
    let node_role = add(
        plain(
            "node",
            "ec2.amazonaws.com",
            WORKER.iter().map(|p| managed(&region, p)).collect(),
        ),
        &[],
    );
    // Also those that only load balancers use: green's controllers skip a subnet that carries blue's tag alone (eks.md 2.2.6).
    let mut tagged: Vec<String> = target.cluster.subnets.clone();
    for subnet in snapshot.aws.iter().flat_map(|a| &a.subnets) {
        let for_balancers = ["kubernetes.io/role/elb", "kubernetes.io/role/internal-elb"]
            .iter()
            .any(|role| subnet.tags.contains_key(*role));
        if for_balancers && !tagged.contains(&subnet.id) {
            tagged.push(subnet.id.clone());
        }
    }
    for s in &tagged {
        add(
            Resource::Tag {
                resource: s.clone(),
                key: format!("kubernetes.io/cluster/{green}"),
                value: "shared".into(),
            },
            &[],
        );
    }
    let cluster = add(
        Resource::Cluster {
            name: green.clone(),
            version: target.cluster.version.clone(),
            role_arn: role_arn(&region, &role_name(&green, "cluster")),
            subnets: target.cluster.subnets.clone(),
            service_cidr: spec.green.service_cidr.clone(),
            public_endpoint: spec.green.public_endpoint,
            private_endpoint: true,
            endpoint_cidrs: spec.green.endpoint_cidrs.clone(),
        },
        &[cluster_role],
    );
    let oidc = add(
        Resource::OidcProvider {
            issuer: "https://${cluster.issuer}".into(),
            client_ids: vec!["sts.amazonaws.com".into()],
        },
        std::slice::from_ref(&cluster),
    );
    let mut entries: Vec<(String, Vec<String>, Option<String>)> = vec![(
        "${caller}".into(),
        vec![],
        Some("AmazonEKSClusterAdminPolicy".into()),
    )];
    let mut seen = BTreeSet::new();
    entries.extend(
        spec.green
            .access
            .iter()
            .filter(|a| seen.insert(a.principal.clone()))
            .map(|a| (a.principal.clone(), a.groups.clone(), a.policy.clone())),
    );
    for (principal, groups, policy) in entries {
        add(
            Resource::AccessEntry {
                cluster: green.clone(),
                principal,
                groups,
                policy,
                namespaces: vec![],
            },
            std::slice::from_ref(&cluster),
        );
    }
    let irsa = |what: &str, sa: &str, policies: Vec<String>, inline: BTreeMap<String, Value>| {
        Resource::Role {
            name: role_name(&green, what),
            trust: json!({"Version": "2012-10-17", "Statement": [web_identity(&region, None, sa)]}),
            managed_policies: policies,
            inline_policies: inline,
            boundary: None,
            path: None,
        }
    };
    let cni_role = add(
        irsa(
            "vpc-cni",
            "kube-system/aws-node",
            vec![managed(&region, "AmazonEKS_CNI_Policy")],
            BTreeMap::new(),
        ),
        std::slice::from_ref(&oidc),
    );
    let csi_role = add(
        irsa(
            "ebs-csi",
            "kube-system/ebs-csi-controller-sa",
            vec![managed(&region, "AmazonEBSCSIDriverPolicy")],
            BTreeMap::new(),
        ),
        std::slice::from_ref(&oidc),
    );
    if !names.instances.is_empty() {
        let sa = format!(
            "{}/{}",
            generated::namespace(spec, names),
            generated::EXTERNAL_DNS
        );
        let inline = BTreeMap::from([("route53".to_string(), route53(&region, names))]);
        add(
            irsa(generated::EXTERNAL_DNS, &sa, vec![], inline),
            std::slice::from_ref(&oidc),
        );
    }
    for (sa, name, _) in existing_roles(cx) {
        let sid = sid(&green, &sa);
        add(
            Resource::TrustStatement {
                role: name,
                statement: web_identity(&region, Some(&sid), &sa),
                sid,
            },
            std::slice::from_ref(&oidc),
        );
    }
    let addon = |name: &str, role: Option<&str>| Resource::Addon {
        cluster: green.clone(),
        name: name.into(),
        version: None,
        service_account_role: role.map(|r| role_arn(&region, &role_name(&green, r))),
        configuration: None,
    };
    let mut before_nodes = vec![
        add(
            addon("vpc-cni", Some("vpc-cni")),
            &[cluster.clone(), cni_role],
        ),
        add(addon("kube-proxy", None), std::slice::from_ref(&cluster)),
        add(
            addon("eks-pod-identity-agent", None),
            std::slice::from_ref(&cluster),
        ),
    ];
    before_nodes.push(node_role);
    let mut nodes = vec![];
    for g in &target.node_groups {
        nodes.push(add(
            Resource::NodeGroup {
                cluster: green.clone(),
                name: g.name.clone(),
                role_arn: role_arn(&region, &role_name(&green, "node")),
                subnets: g.subnets.clone(),
                instance_types: g.instance_types.clone(),
                ami_type: g.ami_type.clone(),
                capacity_type: g.capacity_type.clone(),
                min: g.min,
                max: g.max,
                desired: g.desired,
                disk_gib: g.disk_gib,
                labels: g.labels.clone(),
                taints: g.taints.clone(),
                launch_template: None,
                max_unavailable: None,
            },
            &before_nodes,
        ));
    }
    let mut late = nodes.clone();
    late.push(cluster.clone());
    for a in &target.addons {
        if matches!(
            a.name.as_str(),
            "vpc-cni" | "kube-proxy" | "eks-pod-identity-agent"
        ) {
            continue;
        }
        if a.name == "aws-ebs-csi-driver" {
            let mut needs = late.clone();
            needs.push(csi_role.clone());
            add(addon(&a.name, Some("ebs-csi")), &needs);
        } else {
            add(addon(&a.name, None), &late);
        }
    }
    // Rules of other people's groups that let blue's nodes in, once more for green's (eks.md 2.3): added beside them, never edited.
    for trust in super::trust::trust_of_blue(snapshot, spec, target) {
        if let super::trust::NodeTrust::Mirrored { rule, .. } = trust {
            add(rule, std::slice::from_ref(&cluster));
        }
    }
    out
}

/// Least rights on the zones that are handed over.
fn route53(region: &str, names: &Names) -> Value {
    let zones: Vec<String> = names
        .zones
        .values()
        .map(|id| format!("arn:{}:route53:::hostedzone/{id}", partition(region)))
        .collect();
    let zones = if zones.is_empty() {
        vec![format!("arn:{}:route53:::hostedzone/*", partition(region))]
    } else {
        zones
    };
    json!({"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Action": ["route53:ChangeResourceRecordSets", "route53:ListResourceRecordSets", "route53:ListTagsForResource"], "Resource": zones},
        {"Effect": "Allow", "Action": ["route53:ListHostedZones"], "Resource": ["*"]}
    ]})
}
