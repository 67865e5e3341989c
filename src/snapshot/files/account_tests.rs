//! The account out of what `aws` prints: what kops 1.22.6 made (`tests/corpus/kops-live`), and the parts its emulator lacks by hand.

use super::tests::{folder, gaps};
use super::*;
use serde_json::json;
use std::path::Path;

fn live() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/kops-live")
}

fn read(paths: &[PathBuf]) -> FromFiles {
    from_files(paths, None, &Key::from_bytes([9; 32])).expect("read")
}

#[test]
fn the_account_that_kops_made_is_read_from_what_the_aws_cli_printed() {
    let f = read(&[live().join("get-all.yaml"), live().join("aws")]);
    let aws = f.snapshot.aws.as_ref().expect("aws");
    let vpc = aws.vpc.as_ref().expect("the cluster's of two VPCs");
    assert_eq!(vpc.tags["KubernetesCluster"], "shop.test");

    let nat = aws.nat_gateways.as_ref().expect("nat");
    assert_eq!(nat.len(), 2);
    assert!(nat.iter().all(|n| {
        aws.subnets
            .iter()
            .any(|s| s.id == n.subnet && s.tags["SubnetType"] == "Utility")
    }));

    let routes = aws.route_tables.as_ref().expect("routes");
    assert_eq!(
        routes.len(),
        4,
        "one main, one public, one private in each zone"
    );
    assert_eq!(routes.iter().filter(|r| r.main).count(), 1);
    let out: Vec<&str> = routes
        .iter()
        .filter_map(|r| r.routes.get("0.0.0.0/0"))
        .map(|t| t.split('-').next().unwrap_or_default())
        .collect();
    assert_eq!(
        (
            out.iter().filter(|t| **t == "nat").count(),
            out.iter().filter(|t| **t == "igw").count()
        ),
        (2, 1)
    );
    assert!(
        routes
            .iter()
            .all(|r| r.routes.keys().all(|d| !d.is_empty()))
    );

    let volumes = aws.volumes.as_ref().expect("volumes");
    assert_eq!(volumes.len(), 2);
    assert!(volumes.iter().all(|v| v.encrypted
        && v.kind == "gp3"
        && v.size_gib == 20
        && v.tags.keys().any(|k| k.starts_with("k8s.io/etcd/"))));

    let profiles = aws.instance_profiles.as_ref().expect("profiles");
    assert_eq!(
        profiles["arn:aws:iam::000000000000:instance-profile/nodes.shop.test"],
        "nodes.shop.test"
    );
    let nodes = aws
        .roles
        .iter()
        .find(|r| r.name == "nodes.shop.test")
        .expect("role");
    assert!(nodes.inline_policies.contains_key("nodes.shop.test"));

    // Not given is not read; it is never an empty list.
    assert_eq!(
        (&aws.load_balancers, &aws.auto_scaling_groups, &aws.quotas),
        (&None, &None, &None)
    );
    for part in [
        "aws.load-balancers",
        "aws.auto-scaling-groups",
        "aws.quotas",
        "aws.instance-types",
        "aws.offerings",
        "aws.policies",
    ] {
        assert!(gaps(&f).contains(&part), "{part}");
    }
    for part in [
        "aws.nat-gateways",
        "aws.route-tables",
        "aws.volumes",
        "aws.instance-profiles",
    ] {
        assert!(!gaps(&f).contains(&part), "{part}");
    }
}

const CLUSTER: &str = "apiVersion: kops.k8s.io/v1alpha2\nkind: Cluster\nmetadata: {name: shop.test}\nspec: {cloudProvider: aws, kubernetesVersion: 1.21.14, networkID: vpc-1}\n";

#[test]
fn groups_balancers_types_offerings_and_quotas_are_read_and_those_of_others_are_left_out() {
    let tag = |k: &str, v: &str| json!({"Key": k, "Value": v});
    let f = folder(&[
        ("cluster.yaml", CLUSTER),
        ("vpcs.json", &json!({"Vpcs": [{"VpcId": "vpc-1", "CidrBlock": "10.0.0.0/16"}, {"VpcId": "vpc-2", "CidrBlock": "10.1.0.0/16"}]}).to_string()),
        ("asg.json", &json!({"AutoScalingGroups": [
            {"AutoScalingGroupName": "nodes.shop.test", "MinSize": 2, "MaxSize": 9, "DesiredCapacity": 4, "Instances": [{}, {}, {}], "VPCZoneIdentifier": "subnet-b, subnet-a", "Tags": []},
            {"AutoScalingGroupName": "other", "MinSize": 1, "MaxSize": 1, "DesiredCapacity": 1, "Tags": [tag("KubernetesCluster", "other.test")]},
        ]}).to_string()),
        ("elb.json", &json!({"LoadBalancerDescriptions": [{"LoadBalancerName": "a1", "DNSName": "a1.elb", "Scheme": "internet-facing", "VPCId": "vpc-1", "SecurityGroups": ["sg-1"]}]}).to_string()),
        ("elb-tags.json", &json!({"TagDescriptions": [{"LoadBalancerName": "a1", "Tags": [tag("kubernetes.io/service-name", "shop/web")]}, {"ResourceArn": "arn:n1", "Tags": [tag("x", "y")]}]}).to_string()),
        ("elbv2.json", &json!({"LoadBalancers": [
            {"LoadBalancerName": "n1", "LoadBalancerArn": "arn:n1", "Type": "network", "DNSName": "n1.elb", "Scheme": "internal", "VpcId": "vpc-1"},
            {"LoadBalancerName": "foreign", "LoadBalancerArn": "arn:f", "Type": "application", "VpcId": "vpc-2"}]}).to_string()),
        ("types.json", &json!({"InstanceTypes": [
            {"InstanceType": "m5.large", "Hypervisor": "nitro", "BareMetal": false, "VCpuInfo": {"DefaultVCpus": 2}, "MemoryInfo": {"SizeInMiB": 8192}, "ProcessorInfo": {"SupportedArchitectures": ["x86_64"]},
             "NetworkInfo": {"MaximumNetworkInterfaces": 3, "Ipv4AddressesPerInterface": 10, "DefaultNetworkCardIndex": 0, "NetworkCards": [{"NetworkCardIndex": 0, "MaximumNetworkInterfaces": 3}]}},
            {"InstanceType": "p4d.24xlarge", "Hypervisor": "nitro", "VCpuInfo": {"DefaultVCpus": 96}, "MemoryInfo": {"SizeInMiB": 1179648}, "ProcessorInfo": {"SupportedArchitectures": ["x86_64"]}, "GpuInfo": {"Gpus": [{"Count": 8}]}, "InstanceStorageInfo": {"TotalSizeInGB": 8000},
             "NetworkInfo": {"MaximumNetworkInterfaces": 60, "Ipv4AddressesPerInterface": 50, "DefaultNetworkCardIndex": 0, "NetworkCards": [{"NetworkCardIndex": 0, "MaximumNetworkInterfaces": 15}, {"NetworkCardIndex": 1, "MaximumNetworkInterfaces": 15}]}},
            {"InstanceType": "m3.medium", "Hypervisor": "xen", "ProcessorInfo": {"SupportedArchitectures": ["i386", "x86_64"]}}]}).to_string()),
        ("offerings.json", &json!({"InstanceTypeOfferings": [{"InstanceType": "m5.large", "LocationType": "availability-zone", "Location": "eu-west-1b"}, {"InstanceType": "m5.large", "LocationType": "availability-zone", "Location": "eu-west-1a"}, {"InstanceType": "m6g.large", "LocationType": "region", "Location": "eu-west-1"}]}).to_string()),
        ("quotas.json", &json!({"Quotas": [{"ServiceCode": "ec2", "QuotaCode": "L-1216C47A", "QuotaName": "Running On-Demand Standard", "Value": 64.0}]}).to_string()),
        ("quota.json", &json!({"Quota": {"ServiceCode": "vpc", "QuotaCode": "L-F678F1CE", "QuotaName": "VPCs", "Value": 5.0}}).to_string()),
        ("auth.json", &json!({"RoleDetailList": [{"RoleName": "nodes.shop.test", "Arn": "arn:aws:iam::1:role/nodes.shop.test", "AssumeRolePolicyDocument": {}, "InstanceProfileList": [{"Arn": "arn:p", "Roles": [{"RoleName": "nodes.shop.test"}]}]}],
            "Policies": [{"Arn": "arn:aws:iam::1:policy/own", "PolicyVersionList": [{"VersionId": "v1", "IsDefaultVersion": false, "Document": {"old": true}}, {"VersionId": "v2", "IsDefaultVersion": true, "Document": "%7B%22Statement%22%3A%5B%5D%7D"}]}]}).to_string()),
        ("volumes.json", &json!({"Volumes": [
            {"VolumeId": "vol-pv", "Size": 10, "VolumeType": "gp2", "AvailabilityZone": "eu-west-1a", "KmsKeyId": "arn:k", "Encrypted": true, "Attachments": [{"InstanceId": "i-1"}]},
            {"VolumeId": "vol-other", "Size": 10}]}).to_string()),
        ("pv.yaml", "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: pv}\nspec: {awsElasticBlockStore: {volumeID: \"aws://eu-west-1a/vol-pv\"}}\n"),
        ("nodegroup.json", &json!({"nodegroup": {"clusterName": "green", "nodegroupName": "nodes"}}).to_string()),
        ("entry.json", &json!({"accessEntry": {"clusterName": "green", "principalArn": "arn:me"}}).to_string()),
    ])
    .expect("read");
    assert_eq!(f.unused, Vec::<String>::new());
    let aws = f.snapshot.aws.as_ref().expect("aws");
    let groups = aws.auto_scaling_groups.as_ref().expect("groups");
    assert_eq!(groups.len(), 1, "the other cluster's is left out");
    let g = &groups[0];
    assert_eq!((g.min, g.max, g.desired, g.instances), (2, 9, 4, 3));
    assert_eq!(g.subnets, ["subnet-a", "subnet-b"]);

    let balancers = aws.load_balancers.as_ref().expect("balancers");
    let named: Vec<(&str, &str, &str)> = balancers
        .iter()
        .map(|b| (b.name.as_str(), b.kind.as_str(), b.scheme.as_str()))
        .collect();
    assert_eq!(
        named,
        [
            ("a1", "classic", "internet-facing"),
            ("n1", "network", "internal")
        ]
    );
    assert_eq!(balancers[0].tags["kubernetes.io/service-name"], "shop/web");
    assert_eq!(balancers[1].tags["x"], "y");

    let types = aws.instance_types.as_ref().expect("types");
    let m5 = &types["m5.large"];
    assert_eq!(
        (
            m5.vcpus,
            m5.memory_mib,
            m5.interfaces,
            m5.addresses,
            m5.nitro
        ),
        (2, 8192, 3, 10, true)
    );
    let p4 = &types["p4d.24xlarge"];
    assert_eq!(
        (p4.interfaces, p4.gpus, p4.instance_store_gb),
        (15, 8, 8000),
        "the default card only"
    );
    assert_eq!(
        (types["m3.medium"].arch.as_str(), types["m3.medium"].nitro),
        ("x86_64", false)
    );

    let offerings = aws.offerings.as_ref().expect("offerings");
    assert_eq!(offerings["m5.large"], ["eu-west-1a", "eu-west-1b"]);
    assert!(
        !offerings.contains_key("m6g.large"),
        "an offering of a region says nothing of zones"
    );
    let quotas = aws.quotas.as_ref().expect("quotas");
    assert_eq!(
        (
            quotas["ec2/L-1216C47A"].value,
            quotas["vpc/L-F678F1CE"].value
        ),
        (64.0, 5.0)
    );

    assert_eq!(
        aws.policies.as_ref().expect("policies")["arn:aws:iam::1:policy/own"],
        json!({"Statement": []})
    );
    assert_eq!(
        aws.instance_profiles.as_ref().expect("profiles")["arn:p"],
        "nodes.shop.test"
    );
    let volumes = aws.volumes.as_ref().expect("volumes");
    assert_eq!(volumes.len(), 1, "a persistent volume of blue names it");
    assert_eq!(
        (
            volumes[0].kms_key.as_deref(),
            volumes[0].attached_to.as_deref()
        ),
        (Some("arn:k"), Some("i-1"))
    );
    assert_eq!(aws.clusters[0].node_groups, ["nodes"]);
    assert_eq!(aws.clusters[0].access_entries, ["arn:me"]);
}

#[test]
fn a_listing_that_was_cut_off_is_said() {
    let f = folder(&[(
        "v.json",
        &json!({"Volumes": [], "NextToken": "abc"}).to_string(),
    )])
    .expect("read");
    assert!(gaps(&f).contains(&"aws.pages"));
}

#[test]
fn a_terraform_state_beside_the_exports_is_recognised() {
    let state = json!({"version": 4, "terraform_version": "1.5.7", "resources": [{"mode": "managed", "type": "aws_eks_cluster", "name": "g", "instances": [{"attributes": {"id": "green", "name": "green"}}]}]});
    let f = folder(&[
        ("cluster.yaml", CLUSTER),
        ("infra/terraform.tfstate", &state.to_string()),
    ])
    .expect("read");
    let all = f.snapshot.terraform.as_ref().expect("state");
    assert_eq!(all[0].address, "aws_eks_cluster.g");
    assert_eq!(all[0].attributes["name"], "green");
    assert_eq!(
        folder(&[("cluster.yaml", CLUSTER)])
            .expect("read")
            .snapshot
            .terraform,
        None
    );
}

/// The store, the exports and the full form that the real kops 1.22.6 wrote are one cluster.
#[test]
fn the_store_and_every_export_of_a_real_kops_give_the_same_cluster() {
    let store = read(&[live().join("state")]);
    let kops = &store.snapshot.kops;
    assert_eq!(kops.kops_version.as_deref(), Some("1.22.6"));
    assert_eq!(kops.instance_groups.len(), 4);
    assert!(kops.completed.is_some());
    assert!(kops.sources["completed"].starts_with("shop.test/cluster-completed.spec:"));
    assert!(
        kops.addons.contains_key("dns-controller.addons.k8s.io"),
        "{:?}",
        kops.addons
    );
    assert_eq!(
        kops.closed_keys,
        [
            "pki/ssh/public/admin/cbe2c1b19cd6fb21434c9e823c43aca4",
            "backups/etcd/events/control/etcd-cluster-spec",
            "backups/etcd/main/control/etcd-cluster-spec"
        ]
    );
    let spec = |f: &FromFiles| f.snapshot.kops.cluster.as_ref().map(|c| c["spec"].clone());
    let groups = |f: &FromFiles| -> Vec<Value> {
        f.snapshot
            .kops
            .instance_groups
            .iter()
            .map(|g| g["spec"].clone())
            .collect()
    };
    for form in ["get-all.yaml", "get-all.json"] {
        let f = read(&[live().join(form)]);
        assert_eq!(
            (spec(&f), groups(&f)),
            (spec(&store), groups(&store)),
            "{form}"
        );
        // Every leaf of every form has a place, and the place leads to the value.
        let text = std::fs::read_to_string(live().join(form)).expect("text");
        for (path, place) in &f.snapshot.kops.places {
            let mut parts = place.split(':');
            let (_, line, column) = (parts.next(), parts.next(), parts.next());
            let number = |n: Option<&str>| n.and_then(|n| n.parse::<usize>().ok()).expect("number");
            let line = text.lines().nth(number(line) - 1).expect("line");
            let there: String = line.chars().skip(number(column) - 1).collect();
            let (document, field) = path.split_at(
                path.rfind("/spec")
                    .or(path.rfind("/metadata"))
                    .or(path.rfind("/kind"))
                    .or(path.rfind("/apiVersion"))
                    .expect("field"),
            );
            let doc = match document {
                "cluster" => f.snapshot.kops.cluster.as_ref().expect("cluster"),
                group => f
                    .snapshot
                    .kops
                    .instance_groups
                    .iter()
                    .find(|g| group.ends_with(crate::snapshot::kops::name_of(g)))
                    .expect("group"),
            };
            if let Some(Value::String(value)) = crate::snapshot::kops::at(doc, &field[1..]) {
                assert!(
                    there.trim_start_matches('"').starts_with(value.as_str()),
                    "{form} {path}: {there}"
                );
            }
        }
        assert!(
            f.snapshot.kops.places.len() > 90,
            "{}",
            f.snapshot.kops.places.len()
        );
    }
    let full = read(&[
        live().join("get-all.yaml"),
        live().join("get-cluster-full.yaml"),
    ]);
    assert_eq!(
        full.snapshot
            .kops
            .completed
            .as_ref()
            .map(|c| c["spec"].clone()),
        kops.completed.as_ref().map(|c| c["spec"].clone())
    );
}

#[test]
fn a_number_of_another_shape_is_an_error_with_its_file_and_place_and_never_0() {
    for (text, part) in [
        (
            r#"{"Volumes": [{"VolumeId": "vol-1", "Size": 8}, {"VolumeId": "vol-2", "Size": "100"}]}"#,
            r#"Volumes[1].Size is the text "100" where a whole number belongs"#,
        ),
        (
            r#"{"Subnets": [{"SubnetId": "s", "AvailableIpAddressCount": {"n": 1}}]}"#,
            "Subnets[0].AvailableIpAddressCount is a map",
        ),
        (
            r#"{"AutoScalingGroups": [{"AutoScalingGroupName": "g", "MinSize": -1}]}"#,
            "AutoScalingGroups[0].MinSize is -1",
        ),
        (
            r#"{"InstanceTypes": [{"InstanceType": "m5.large", "NetworkInfo": {"NetworkCards": [{"MaximumNetworkInterfaces": [3]}]}}]}"#,
            "InstanceTypes[0].NetworkInfo.NetworkCards[0].MaximumNetworkInterfaces is a list",
        ),
        (
            r#"{"SecurityGroups": [{"GroupId": "g", "IpPermissions": [{"FromPort": "443"}]}]}"#,
            r#"SecurityGroups[0].IpPermissions[0].FromPort is the text "443" where a port belongs"#,
        ),
        (
            r#"{"Quotas": [{"QuotaCode": "L-1", "Value": "5"}]}"#,
            r#"Quotas[0].Value is the text "5""#,
        ),
    ] {
        let e = folder(&[("aws/out.json", text)]).expect_err(part);
        let said = e.to_string();
        assert!(said.contains(part), "{said}");
        assert!(e.at.contains("out.json"), "{}", e.at);
    }
}
