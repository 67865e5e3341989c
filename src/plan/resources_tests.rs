//! What is made with which fields and after what, as a team reads it in the steps of its plan.

use crate::plan::model::{Plan, Severity, StepSpec, TargetAddon};
use crate::plan::plan;
use crate::plan::tests::spec;
use crate::snapshot::model::Snapshot;
use crate::spec::model::{Conflicts, Identity, Spec, StateBucket, Support};
use crate::world::cloud::{CloudIdentity, Inventory, Resource, Role};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const ACCOUNT: &str = "000000000000";
const MAILER: &str = "arn:aws:iam::000000000000:role/app/shop-mailer";

/// A company whose roles stand under a path and a boundary, with a mailer that has a role of its own by IRSA.
fn company() -> (Spec, Snapshot) {
    let mut s = Snapshot::default();
    s.kops.cluster = Some(
        json!({"kind": "Cluster", "metadata": {"name": "shop.test"}, "spec": {"kubernetesVersion": "1.21.14", "networkCIDR": "172.20.0.0/16",
        "iam": {"permissionsBoundary": "arn:aws:iam::000000000000:policy/house"},
        "authorization": {"rbac": {}}, "networking": {"calico": {}}, "clusterAutoscaler": {"enabled": true}, "awsLoadBalancerController": {"enabled": true},
        "subnets": [{"name": "a", "zone": "eu-west-1a", "type": "Private", "cidr": "172.20.32.0/24"}, {"name": "b", "zone": "eu-west-1b", "type": "Private", "cidr": "172.20.33.0/24"}]}}),
    );
    s.kops.kops_version = Some("1.22.6".into());
    s.kops.instance_groups = vec![
        json!({"kind": "InstanceGroup", "metadata": {"name": "nodes"}, "spec": {"role": "Node", "machineType": "m5.large", "minSize": 2, "maxSize": 2, "subnets": ["a", "b"]}}),
    ];
    let role = |name: &str, arn: &str| Role {
        name: name.into(),
        arn: arn.into(),
        trust: json!({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}]}),
        managed_policies: vec![],
        inline_policies: BTreeMap::new(),
        boundary: None,
        tags: BTreeMap::new(),
    };
    s.aws = Some(Inventory {
        identity: CloudIdentity {
            account: ACCOUNT.into(),
            region: "eu-west-1".into(),
            arn: format!("arn:aws:iam::{ACCOUNT}:user/x"),
        },
        roles: vec![
            role(
                "nodes.shop.test",
                "arn:aws:iam::000000000000:role/team/nodes.shop.test",
            ),
            role("shop-mailer", MAILER),
        ],
        policies: Some(BTreeMap::from([(
            "arn:aws:iam::000000000000:policy/house".to_string(),
            json!({}),
        )])),
        instance_profiles: Some(BTreeMap::new()),
        ..Inventory::default()
    });
    s.blue.objects = vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "web"}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "mailer", "namespace": "web", "annotations": {"eks.amazonaws.com/role-arn": MAILER}}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "mailer", "namespace": "web"},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "mailer"}}, "template": {"metadata": {"labels": {"app": "mailer"}},
                "spec": {"serviceAccountName": "mailer", "containers": [{"name": "m", "image": "registry.shop.test/mailer:1"}]}}}}),
    ];
    (spec("shop.test"), s)
}

fn step<'p>(p: &'p Plan, id: &str) -> &'p StepSpec {
    p.steps
        .iter()
        .find(|s| s.id == format!("provision/{id}"))
        .unwrap_or_else(|| {
            let all: Vec<&str> = p.steps.iter().map(|s| s.id.as_str()).collect();
            panic!("{id}: {all:#?}")
        })
}

fn resource(p: &Plan, id: &str) -> Resource {
    serde_json::from_value(step(p, id).params["resource"].clone()).expect("a resource")
}

fn needs(p: &Plan, id: &str, what: &str) -> bool {
    step(p, id)
        .needs
        .iter()
        .any(|n| *n == format!("provision/{what}"))
}

fn resources(p: &Plan) -> Vec<Resource> {
    p.steps
        .iter()
        .filter(|s| s.kind == "cloud.ensure")
        .map(|s| serde_json::from_value(s.params["resource"].clone()).expect("a resource"))
        .collect()
}

#[test]
fn every_role_that_is_made_stands_under_the_houses_path_and_boundary() {
    let (mut spec, snapshot) = company();
    for way in [Identity::Irsa, Identity::PodIdentity] {
        spec.green.identity.addons = way;
        let p = plan(&spec, &snapshot);
        let mut seen = 0;
        for r in resources(&p) {
            if let Resource::Role {
                name,
                boundary,
                path,
                ..
            } = r
            {
                seen += 1;
                assert_eq!(
                    boundary.as_deref(),
                    Some("arn:aws:iam::000000000000:policy/house"),
                    "{name}"
                );
                assert_eq!(path.as_deref(), Some("/team/"), "{name}");
            }
        }
        // cluster, node, CNI, EBS, load balancer controller, autoscaler
        assert_eq!(seen, 6);
    }
}

#[test]
fn controllers_that_kops_ran_have_their_role_ready_and_the_finding_names_it() {
    let (spec, snapshot) = company();
    let p = plan(&spec, &snapshot);
    let Resource::Role {
        inline_policies,
        trust,
        ..
    } = resource(&p, "role/shop-green-aws-load-balancer-controller")
    else {
        panic!("a role")
    };
    assert!(
        inline_policies["aws-load-balancer-controller"]
            .to_string()
            .contains("elasticloadbalancing:CreateLoadBalancer")
    );
    assert!(
        trust
            .to_string()
            .contains("system:serviceaccount:kube-system:aws-load-balancer-controller")
    );
    let told = p
        .findings
        .iter()
        .find(|f| f.object == "component/aws-load-balancer-controller")
        .expect("it is told");
    assert!(
        told.remedy
            .contains("role shop-green-aws-load-balancer-controller"),
        "{told:?}"
    );
    // Somebody's own role for it is enough.
    let mut own = spec.clone();
    own.green.roles.insert(
        "kube-system/aws-load-balancer-controller".into(),
        serde_json::from_value(json!({"role": "shop-mailer"})).expect("a wish"),
    );
    let p = plan(&own, &snapshot);
    assert!(
        !p.target
            .roles
            .iter()
            .any(|r| r.name == "shop-green-aws-load-balancer-controller")
    );
}

#[test]
fn a_workload_with_pod_identity_has_an_association_a_trust_for_it_and_no_annotation_that_would_win()
{
    let (mut spec, snapshot) = company();
    let irsa = plan(&spec, &snapshot);
    assert!(
        !resources(&irsa)
            .iter()
            .any(|r| matches!(r, Resource::PodIdentityAssociation { .. })),
        "old images do not know it: nobody gets it unasked (eks.md 0.5)"
    );
    spec.green
        .identity
        .accounts
        .insert("web/mailer".into(), Identity::PodIdentity);
    let p = plan(&spec, &snapshot);
    assert_eq!(
        resource(&p, "pod-identity/shop-green/web/mailer"),
        Resource::PodIdentityAssociation {
            cluster: "shop-green".into(),
            namespace: "web".into(),
            service_account: "mailer".into(),
            role_arn: MAILER.into(),
        }
    );
    assert!(needs(
        &p,
        "pod-identity/shop-green/web/mailer",
        "cluster/shop-green"
    ));
    let trust = "trust-statement/shop-mailer/CrossfadeShopGreenPodIdentity";
    assert!(needs(&p, "pod-identity/shop-green/web/mailer", trust));
    let Resource::TrustStatement { statement, .. } = resource(&p, trust) else {
        panic!("a statement")
    };
    assert_eq!(
        statement["Principal"],
        json!({"Service": "pods.eks.amazonaws.com"})
    );
    assert!(
        !resources(&p).iter().any(|r| matches!(r, Resource::TrustStatement { statement, .. } if statement["Principal"]["Federated"].is_string())),
        "who has Pod Identity needs no trust in green's issuer"
    );
    let account = p
        .verdicts
        .get("serviceaccount/web/mailer")
        .expect("in memory")
        .expect("judged");
    let target = account.target.as_ref().expect("it is created");
    assert_eq!(target.pointer("/metadata/annotations"), None, "{target}");
    let said = p
        .findings
        .iter()
        .find(|f| f.id == "IAM-05" && f.object == "workloads/pod-identity")
        .expect("old SDKs are asked about");
    assert!(said.message.contains("deployment/web/mailer"), "{said:?}");
}

#[test]
fn a_role_of_another_account_cannot_be_had_by_pod_identity_and_the_plan_says_so() {
    let (mut spec, mut snapshot) = company();
    let foreign = "arn:aws:iam::111111111111:role/theirs";
    for o in &mut snapshot.blue.objects {
        if o["kind"] == "ServiceAccount" {
            o["metadata"]["annotations"]["eks.amazonaws.com/role-arn"] = json!(foreign);
        }
    }
    spec.green.identity.workloads = Identity::PodIdentity;
    let p = plan(&spec, &snapshot);
    assert!(
        p.findings
            .iter()
            .any(|f| f.object == "serviceaccount/web/mailer"
                && f.message.contains("another account")),
        "{:#?}",
        p.findings
    );
    assert!(
        !p.steps
            .iter()
            .any(|s| s.id.starts_with("provision/pod-identity/"))
    );
}

#[test]
fn addons_with_pod_identity_have_their_association_before_they_start_and_the_cni_before_the_first_node()
 {
    let (mut spec, snapshot) = company();
    spec.green.identity.addons = Identity::PodIdentity;
    let p = plan(&spec, &snapshot);
    let cni = "pod-identity/shop-green/kube-system/aws-node";
    assert!(needs(&p, "addon/shop-green/vpc-cni", cni));
    assert!(needs(&p, cni, "role/shop-green-vpc-cni"));
    let Resource::Addon {
        service_account_role,
        ..
    } = resource(&p, "addon/shop-green/vpc-cni")
    else {
        panic!("an add-on")
    };
    assert_eq!(service_account_role, None, "one way to a role, not two");
    for early in ["vpc-cni", "kube-proxy", "eks-pod-identity-agent"] {
        assert!(
            needs(
                &p,
                "node-group/shop-green/nodes",
                &format!("addon/shop-green/{early}")
            ),
            "{early}"
        );
    }
    let Resource::Role { trust, .. } = resource(&p, "role/shop-green-ebs-csi") else {
        panic!("a role")
    };
    assert_eq!(
        trust["Statement"][0]["Condition"]["ArnEquals"]["aws:SourceArn"],
        "arn:aws:eks:eu-west-1:${account}:cluster/shop-green"
    );
}

#[test]
fn the_log_group_stands_before_the_cluster_that_would_make_one_without_retention() {
    let (mut spec, snapshot) = company();
    let p = plan(&spec, &snapshot);
    assert!(
        !p.steps
            .iter()
            .any(|s| s.id.starts_with("provision/log-group/")),
        "EKS's default: no logs"
    );
    let Resource::Cluster {
        deletion_protection,
        support_type,
        ..
    } = resource(&p, "cluster/shop-green")
    else {
        panic!("a cluster")
    };
    assert!(deletion_protection, "eks.md 0.3");
    assert_eq!(support_type, "STANDARD", "EKS's own default is EXTENDED");

    let plane = &mut spec.green.control_plane;
    plane.logs = vec!["audit".into()];
    plane.log_days = Some(90);
    plane.support = Support::Extended;
    plane.secrets_key = Some("arn:aws:kms:eu-west-1:000000000000:key/k".into());
    plane.security_groups = vec!["sg-ops".into()];
    let p = plan(&spec, &snapshot);
    let group = "log-group//aws/eks/shop-green/cluster";
    assert!(needs(&p, "cluster/shop-green", group));
    assert_eq!(
        resource(&p, group),
        Resource::LogGroup {
            name: "/aws/eks/shop-green/cluster".into(),
            retention_days: Some(90)
        }
    );
    let made = step(&p, "cluster/shop-green").params["resource"].clone();
    for (field, value) in [
        ("logging", json!(["audit"])),
        ("supportType", json!("EXTENDED")),
        ("kmsKey", json!("arn:aws:kms:eu-west-1:000000000000:key/k")),
        ("securityGroups", json!(["sg-ops"])),
    ] {
        assert_eq!(made[field], value, "{field}");
    }
    assert!(
        p.findings
            .iter()
            .any(|f| f.id == "EKS-key" && f.object == "green.controlPlane.secretsKey"),
        "a key that was not read is no key that is fit"
    );
}

#[test]
fn nodes_wishes_reach_every_template_and_group() {
    let (mut spec, snapshot) = company();
    spec.green.nodes.volume_key = Some("alias/nodes".into());
    spec.green.nodes.repair = true;
    let p = plan(&spec, &snapshot);
    for r in resources(&p) {
        match r {
            Resource::LaunchTemplate { root, .. } => {
                assert!(root.encrypted);
                assert_eq!(root.kms_key.as_deref(), Some("alias/nodes"));
            }
            Resource::NodeGroup { repair, .. } => assert!(repair),
            _ => {}
        }
    }
    assert!(
        p.findings
            .iter()
            .any(|f| f.id == "EKS-key" && f.object == "key/alias/nodes"),
        "no node starts when Auto Scaling may not use it (eks.md 4)"
    );
}

#[test]
fn an_addons_version_and_way_with_conflicts_stand_in_the_plan_that_is_approved() {
    let (mut spec, snapshot) = company();
    let wish = spec.green.addons.entry("coredns".into()).or_default();
    wish.version = Some("v1.13.2-eksbuild.1".into());
    wish.conflicts = Some(Conflicts::Preserve);
    wish.configuration = Some(json!({"replicaCount": 3}));
    let p = plan(&spec, &snapshot);
    let coredns: &TargetAddon = p
        .target
        .addons
        .iter()
        .find(|a| a.name == "coredns")
        .expect("it is planned");
    assert_eq!(coredns.version.as_deref(), Some("v1.13.2-eksbuild.1"));
    let made = step(&p, "addon/shop-green/coredns").params["resource"].clone();
    assert_eq!(made["conflicts"], "PRESERVE");
    assert_eq!(made["configuration"]["replicaCount"], 3);
}

#[test]
fn the_bucket_for_records_is_checked_first_and_made_only_when_somebody_asks() {
    let (mut spec, snapshot) = company();
    spec.aws.state_bucket = Some(StateBucket {
        name: "records".into(),
        create: false,
    });
    let p = plan(&spec, &snapshot);
    let s = step(&p, "state-bucket/records");
    assert!(s.summary.starts_with("check that"), "{}", s.summary);
    assert_eq!(s.params["resource"]["create"], Value::Bool(false));
    let stops = |p: &Plan, id: &str, part: &str| {
        assert!(
            p.findings.iter().any(|f| f.id == id
                && f.severity == Severity::Blocker
                && f.object == "state-bucket/records"
                && f.message.contains(part)),
            "{id}: {:#?}",
            p.findings
        );
    };
    stops(&p, "ADOPT-10", "does not know it");
    // Open to the public: no place for the record of a run, whoever made it.
    let mut open = snapshot.clone();
    let mut bucket = Resource::state_bucket("records", false);
    if let Resource::StateBucket { closed, .. } = &mut bucket {
        *closed = false;
    }
    let found = |resource: Resource| crate::world::cloud::Existing {
        resource,
        tags: BTreeMap::new(),
        status: crate::world::cloud::Status::Ready,
        extras: vec![],
        attributes: BTreeMap::new(),
        now: Default::default(),
    };
    open.aws.as_mut().expect("read").state_bucket = Some(found(bucket));
    stops(
        &plan(&spec, &open),
        "ADOPT-02",
        "closed: false instead of true",
    );
    open.aws.as_mut().expect("read").state_bucket =
        Some(found(Resource::state_bucket("records", false)));
    let good = plan(&spec, &open);
    assert!(
        step(&good, "state-bucket/records")
            .summary
            .starts_with("keep"),
        "naming it in migration.yaml is consent enough"
    );
}

/// Plans of before have none of the new fields: they read, and mean what they meant.
#[test]
fn a_resource_of_an_older_plan_reads_and_is_written_as_it_was() {
    for old in [
        json!({"type": "cluster", "name": "g", "version": "1.35", "roleArn": "r", "subnets": ["a", "b"], "serviceCidr": null, "publicEndpoint": true, "privateEndpoint": true}),
        json!({"type": "addon", "cluster": "g", "name": "coredns", "version": null, "serviceAccountRole": null}),
        json!({"type": "node-group", "cluster": "g", "name": "n", "roleArn": "r", "subnets": ["a"], "instanceTypes": ["m5.large"], "amiType": "x",
            "capacityType": "SPOT", "min": 1, "max": 1, "desired": 1, "diskGib": 20, "labels": {}, "taints": []}),
    ] {
        let r: Resource = serde_json::from_value(old.clone()).expect("it reads");
        assert_eq!(serde_json::to_value(&r).expect("written"), old);
    }
}
