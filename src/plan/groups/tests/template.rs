//! The launch template: volumes, metadata, groups, tags (kops.md 1.4, 1.5, 3; kops's autoscalinggroup.go for its defaults).

use super::{Company, blocks, finding, silent};
use crate::plan::model::{Severity, TargetLaunchTemplate};
use crate::world::cloud::{Disk, Inventory, Resource, SecurityGroup};
use serde_json::{Value, json};

fn template(ig: Value) -> TargetLaunchTemplate {
    Company::new(ig).one().launch_template
}

fn disk(device: &str, gib: u32, kind: &str, iops: Option<u32>, throughput: Option<u32>) -> Disk {
    Disk {
        device: device.into(),
        gib,
        kind: kind.into(),
        iops,
        throughput,
        encrypted: true,
        kms_key: None,
        delete_on_termination: true,
    }
}

#[test]
fn a_root_volume_has_the_defaults_of_the_kops_that_made_blue() {
    let mut c = Company::new(json!({"machineType": "m5.large"}));
    assert_eq!(
        c.one().launch_template.root,
        disk("/dev/xvda", 128, "gp3", Some(3000), Some(125))
    );
    c.snapshot.kops.kops_version = Some("1.19.3".into());
    let root = c.one().launch_template.root;
    assert_eq!(
        (root.kind.as_str(), root.iops, root.encrypted),
        ("gp2", None, false),
        "gp2, not encrypted up to 1.19"
    );
}

#[test]
fn sizes_speeds_and_keys_of_the_root_volume_are_those_of_blue() {
    let root = |ig| template(ig).root;
    let r = root(json!({"rootVolumeSize": 64, "rootVolumeType": "io1"}));
    assert_eq!(
        (r.gib, r.kind.as_str(), r.iops, r.throughput),
        (64, "io1", Some(100), None)
    );
    let r =
        root(json!({"rootVolumeType": "gp3", "rootVolumeIops": 4000, "rootVolumeThroughput": 50}));
    assert_eq!(
        (r.iops, r.throughput),
        (Some(4000), Some(125)),
        "kops raises what is below the least of the type"
    );
    let r = root(json!({"rootVolumeEncryption": true, "rootVolumeEncryptionKey": "alias/shop"}));
    assert_eq!(r.kms_key.as_deref(), Some("alias/shop"));
    // Without the word of encryption kops does not look at the key.
    let c = Company::new(json!({"rootVolumeEncryptionKey": "alias/shop"}));
    assert_eq!(c.one().launch_template.root.kms_key, None);
    finding(&c.plan(), "KOPS-ig-disk");
    assert!(!root(json!({"rootVolumeEncryption": false})).encrypted);
    assert_eq!(
        root(json!({"rootVolumeSize": 8})).gib,
        20,
        "EKS's image is of 20 GiB"
    );
}

#[test]
fn further_volumes_come_along_and_one_that_outlives_its_node_is_told() {
    let c = Company::new(json!({"volumes": [
        {"device": "/dev/xvdd", "size": 20, "type": "gp2", "encrypted": false, "deleteOnTermination": false},
        {"device": "/dev/xvde", "size": 50, "key": "alias/data"},
        {"device": "/dev/xvda", "size": 9}
    ]}));
    let v = c.one().launch_template.volumes;
    assert_eq!(v.len(), 2, "the root volume is not one of them");
    assert_eq!(
        v[0],
        Disk {
            encrypted: false,
            delete_on_termination: false,
            ..disk("/dev/xvdd", 20, "gp2", None, None)
        }
    );
    assert_eq!(
        v[1],
        Disk {
            kms_key: Some("alias/data".into()),
            ..disk("/dev/xvde", 50, "gp3", Some(3000), Some(125))
        }
    );
    let p = c.plan();
    assert!(
        p.findings
            .iter()
            .any(|f| f.id == "KOPS-ig-disk" && f.message.contains("stays behind"))
    );
    // Without a grant of the key no node starts: for a further volume as for the root.
    let grants: Vec<_> = p
        .findings
        .iter()
        .filter(|f| f.id == "KOPS-ig-disk" && f.remedy.contains("AWSServiceRoleForAutoScaling"))
        .collect();
    assert_eq!(grants.len(), 1, "{grants:?}");
    assert_eq!(grants[0].severity, Severity::Warning);
    for word in ["/dev/xvde", "alias/data"] {
        assert!(grants[0].message.contains(word), "{grants:?}");
    }
    let f = finding(&p, "KOPS-ig-volumes");
    assert!(
        f.message
            .contains("/dev/xvde 50 GiB gp3, encrypted with alias/data"),
        "{f:?}"
    );
}

#[test]
fn metadata_options_of_blue_are_kept_and_the_old_default_becomes_tokens_over_two_hops() {
    let imds = |ig| {
        let t = template(ig);
        (t.http_tokens, t.hop_limit)
    };
    assert_eq!(
        imds(json!({"instanceMetadata": {"httpTokens": "required", "httpPutResponseHopLimit": 1}})),
        ("required".into(), 1)
    );
    assert_eq!(
        imds(json!({"instanceMetadata": {"httpTokens": "optional"}})),
        ("optional".into(), 1)
    );
    assert_eq!(
        imds(json!({"instanceMetadata": {"httpPutResponseHopLimit": 3}})),
        ("required".into(), 3)
    );
    // kops at Kubernetes 1.24 asks for no token: every pod reached the metadata. So it must on green.
    let mut c = Company::new(json!({}));
    assert_eq!(imds(json!({})), ("required".into(), 2));
    assert_eq!(finding(&c.plan(), "KOPS-ig-imds").severity, Severity::Info);
    // From 1.27 on tokens are kops's default, over one hop: pods never reached it, and do not on green.
    c.cluster()["kubernetesVersion"] = json!("1.27.3");
    let t = c.one().launch_template;
    assert_eq!((t.http_tokens.as_str(), t.hop_limit), ("required", 1));
    silent(&c.plan(), "KOPS-ig-imds");
}

#[test]
fn groups_of_blue_stand_beside_the_clusters_own_and_never_without_it() {
    let c = Company::new(json!({"additionalSecurityGroups": ["sg-1", "sg-2", "sg-1"]}));
    assert_eq!(
        c.one().launch_template.security_groups,
        ["${cluster.security_group}", "sg-1", "sg-2"],
        "else no node joins (eks.md 8.2)"
    );
    assert!(template(json!({})).security_groups.is_empty());
    let p = c.plan();
    let step = p
        .steps
        .iter()
        .find(|s| s.id == "provision/launch-template/crossfade-shop-green-nodes")
        .expect("a step");
    assert!(
        step.needs.contains(&"provision/cluster/shop-green".into()),
        "the cluster's group is known once it stands: {:?}",
        step.needs
    );
    let five = json!({"additionalSecurityGroups": ["sg-1", "sg-2", "sg-3", "sg-4", "sg-5"]});
    blocks(&finding(
        &Company::new(five).plan(),
        "KOPS-ig-additionalSecurityGroups",
    ));
}

#[test]
fn a_group_of_kopss_own_never_stands_on_greens_nodes() {
    let mut c = Company::new(
        json!({"additionalSecurityGroups": ["sg-blue"], "securityGroupOverride": "sg-own"}),
    );
    c.snapshot.aws = Some(Inventory {
        security_groups: vec![SecurityGroup {
            id: "sg-blue".into(),
            name: "nodes.shop.test".into(),
            vpc: "vpc-1".into(),
            tags: [("KubernetesCluster".to_string(), "shop.test".to_string())].into(),
            ingress: vec![],
        }],
        ..Default::default()
    });
    assert_eq!(
        c.one().launch_template.security_groups,
        ["${cluster.security_group}", "sg-own"]
    );
    let p = c.plan();
    finding(&p, "KOPS-ig-securityGroupOverride");
    let absent = p
        .findings
        .iter()
        .find(|f| f.message.contains("sg-own is not in blue's VPC"))
        .expect("the groups of the VPC were read, and it is none of them");
    blocks(absent);
}

#[test]
fn tags_are_the_clusters_then_the_groups_and_never_those_that_kops_deletes_by() {
    let mut c = Company::new(
        json!({"cloudLabels": {"team": "nodes", "KubernetesCluster": "shop.test",
        "k8s.io/cluster-autoscaler/node-template/label/x": "1"}}),
    );
    c.cluster()["cloudLabels"] =
        json!({"team": "all", "owner": "John Doe", "kubernetes.io/cluster/shop.test": "owned"});
    let t = c.one().launch_template.tags;
    let got: Vec<(&str, &str)> = t.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(got, [("owner", "John Doe"), ("team", "nodes")]);
    let p = c.plan();
    assert!(
        finding(&p, "KOPS-ig-tags")
            .message
            .contains("KubernetesCluster")
    );
    assert_eq!(
        finding(&p, "KOPS-ig-autoscaler-tags").severity,
        Severity::Warning
    );
}

#[test]
fn monitoring_tenancy_credits_and_public_addresses_come_along_where_they_can() {
    let t = template(
        json!({"machineType": "t3.large", "detailedInstanceMonitoring": true, "tenancy": "dedicated", "cpuCredits": "standard"}),
    );
    assert!(t.monitoring);
    assert_eq!(t.tenancy.as_deref(), Some("dedicated"));
    assert_eq!(t.cpu_credits.as_deref(), Some("standard"));
    assert_eq!(
        t.associate_public_ip, None,
        "never a public address in a private subnet"
    );
    assert_eq!(
        template(json!({"machineType": "m5.large", "cpuCredits": "standard"})).cpu_credits,
        None,
        "EC2 refuses credits for m5"
    );
    let public = |more: Value| {
        let mut ig = json!({"subnets": ["public-a"]});
        for (k, v) in more.as_object().expect("a map") {
            ig[k] = v.clone();
        }
        template(ig).associate_public_ip
    };
    // kops's public subnets give no address by themselves (eks.md 1.6).
    assert_eq!(public(json!({})), Some(true));
    assert_eq!(public(json!({"associatePublicIp": false})), Some(false));
}

#[test]
fn an_update_takes_away_as_many_nodes_as_blue_said() {
    let of = |ig| Company::new(ig).one().max_unavailable;
    assert_eq!(of(json!({})), None);
    assert_eq!(
        of(json!({"rollingUpdate": {"maxUnavailable": 2}})).as_deref(),
        Some("2")
    );
    assert_eq!(
        of(json!({"rollingUpdate": {"maxUnavailable": "20%", "maxSurge": 1}})).as_deref(),
        Some("20%")
    );
    assert_eq!(
        of(json!({"rollingUpdate": {"maxUnavailable": 0}})).as_deref(),
        Some("1"),
        "EKS takes at least one"
    );
    let mut c = Company::new(json!({"rollingUpdate": {"maxSurge": 1}}));
    c.cluster()["rollingUpdate"] = json!({"maxUnavailable": "10%"});
    assert_eq!(c.one().max_unavailable.as_deref(), Some("10%"));
}

#[test]
fn the_node_group_asks_for_its_template_and_waits_for_it() {
    let p = Company::new(json!({"machineType": "m5.large"})).plan();
    let step = p
        .steps
        .iter()
        .find(|s| s.id == "provision/node-group/shop-green/nodes")
        .expect("a step");
    assert!(
        step.needs
            .contains(&"provision/launch-template/crossfade-shop-green-nodes".into()),
        "{:?}",
        step.needs
    );
    let resource: Resource =
        serde_json::from_value(step.params["resource"].clone()).expect("a resource");
    let Resource::NodeGroup {
        launch_template, ..
    } = resource
    else {
        panic!("a node group")
    };
    assert_eq!(
        launch_template.as_deref(),
        Some("crossfade-shop-green-nodes")
    );
}

#[test]
fn what_has_no_place_in_a_managed_group_is_said_with_what_to_do() {
    let mut c = Company::new(json!({
        "externalLoadBalancers": [{"loadBalancerName": "old-elb"}, {"targetGroupArn": "arn:aws:elasticloadbalancing:eu-west-1:000000000000:targetgroup/x/1"}],
        "iam": {"profile": "arn:aws:iam::000000000000:instance-profile/own"},
        "suspendProcesses": ["AZRebalance"], "instanceProtection": true, "maxInstanceLifetime": "48h",
        "autoscale": false, "autoscalePriority": 5, "image": "ami-1234"
    }));
    c.cluster()["warmPool"] = json!({"maxSize": 1, "enableLifecycleHook": true});
    c.snapshot.aws = Some(Inventory {
        instance_profiles: Some(
            [(
                "arn:aws:iam::000000000000:instance-profile/own".to_string(),
                "own-role".to_string(),
            )]
            .into(),
        ),
        ..Default::default()
    });
    let p = c.plan();
    let balancers: Vec<Severity> = p
        .findings
        .iter()
        .filter(|f| f.id == "KOPS-ig-externalLoadBalancers")
        .map(|f| f.severity)
        .collect();
    assert_eq!(
        balancers,
        [Severity::Blocker, Severity::Warning],
        "a classic load balancer cannot serve both sides, a target group can"
    );
    assert!(finding(&p, "KOPS-ig-iam").message.contains("role own-role"));
    for id in [
        "KOPS-ig-suspendProcesses",
        "KOPS-ig-instanceProtection",
        "KOPS-ig-maxInstanceLifetime",
        "KOPS-ig-autoscale",
        "KOPS-ig-autoscalePriority",
        "KOPS-ig-warmPool",
        "KOPS-ig-image",
    ] {
        assert!(!finding(&p, id).remedy.is_empty(), "{id}");
    }
    c.snapshot.kops.instance_groups[0]["spec"]["warmPool"] = json!({"maxSize": 0});
    silent(&c.plan(), "KOPS-ig-warmPool");
}
