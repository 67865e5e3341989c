//! What AWS refuses and the emulator accepts (measured on MiniStack 1.5.33; eks.md 3 and 7).

mod strict_bench;

use aws_sdk_ec2::types::{IpPermission, IpRange, Tag, UserIdGroupPair};
use aws_sdk_iam::error::ProvideErrorMetadata;
use strict_bench::{ec2, iam, layer, network, role, sts, trust};
use testkit::fixture;

/// Asserts that a call is refused with this code.
macro_rules! refused {
    ($call:expr, $code:expr) => {{
        let error = $call.send().await.expect_err($code);
        assert_eq!(error.code(), Some($code), "{:?}", error.message());
    }};
}

fn statements(count: usize) -> String {
    let one = |i: usize| {
        format!(
            r#"{{"Sid":"S{i}","Effect":"Allow","Principal":{{"Federated":"arn:aws:iam::000000000000:oidc-provider/oidc.eks.eu-west-1.amazonaws.com/id/0123456789ABCDEF0123456789ABCDEF"}},"Action":"sts:AssumeRoleWithWebIdentity","Condition":{{"StringEquals":{{"oidc.eks.eu-west-1.amazonaws.com/id/0123456789ABCDEF0123456789ABCDEF:aud":"sts.amazonaws.com","oidc.eks.eu-west-1.amazonaws.com/id/0123456789ABCDEF0123456789ABCDEF:sub":"system:serviceaccount:platform:mailer"}}}}}}"#
        )
    };
    format!(
        r#"{{"Version":"2012-10-17","Statement":[{}]}}"#,
        (0..count).map(one).collect::<Vec<_>>().join(",")
    )
}

#[tokio::test]
async fn a_role_has_a_short_plain_name_and_a_sound_trust_policy() {
    let layer = layer().await.expect("layer");
    let api = iam(&layer.strict);
    let create = |name: &str, trust: &str| {
        api.create_role()
            .role_name(name)
            .assume_role_policy_document(trust)
    };
    let good = trust("ec2.amazonaws.com");
    refused!(create(&"x".repeat(65), &good), "ValidationError");
    refused!(create("a b", &good), "ValidationError");
    refused!(create("r", "{"), "MalformedPolicyDocument");
    refused!(
        create("r", r#"{"Version":"2012-10-17"}"#),
        "MalformedPolicyDocument"
    );
    refused!(
        create(
            "r",
            &good.replace(
                r#""Service":"ec2.amazonaws.com""#,
                r#""AWS":"arn:aws:iam::000000000000:role/nobody""#
            )
        ),
        "MalformedPolicyDocument"
    );
    // Four statements for service accounts fit into 2,048 characters, five do not (eks.md 3).
    create("four", &statements(4))
        .send()
        .await
        .expect("four fit");
    refused!(create("five", &statements(5)), "LimitExceeded");
    let update = |trust: &str| {
        api.update_assume_role_policy()
            .role_name("four")
            .policy_document(trust)
    };
    refused!(update(&statements(5)), "LimitExceeded");
    refused!(update("{"), "MalformedPolicyDocument");
    // White space does not count.
    update(&statements(4).replace(',', ",\n        "))
        .send()
        .await
        .expect("white space is free");
    refused!(api.get_role().role_name("five"), "NoSuchEntity");
}

#[tokio::test]
async fn policies_have_sizes_and_a_role_takes_ten() {
    let layer = layer().await.expect("layer");
    let api = iam(&layer.strict);
    role(&layer.strict, "r", "ec2.amazonaws.com").await;
    let policy = |actions: usize| {
        let list: Vec<String> = (0..actions).map(|i| format!("\"s3:X{i:04}\"")).collect();
        format!(
            r#"{{"Version":"2012-10-17","Statement":[{{"Effect":"Allow","Action":[{}],"Resource":"*"}}]}}"#,
            list.join(",")
        )
    };
    let create = |name: &str, actions: usize| {
        api.create_policy()
            .policy_name(name)
            .policy_document(policy(actions))
    };
    refused!(create("big", 600), "LimitExceeded");
    let inline = |name: &str, actions: usize| {
        api.put_role_policy()
            .role_name("r")
            .policy_name(name)
            .policy_document(policy(actions))
    };
    inline("one", 500).send().await.expect("5 kB");
    inline("two", 400).send().await.expect("another 4 kB");
    refused!(inline("three", 300), "LimitExceeded");
    inline("one", 100)
        .send()
        .await
        .expect("a smaller one in its place");
    let attach = |arn: &str| api.attach_role_policy().role_name("r").policy_arn(arn);
    refused!(
        attach("arn:aws:iam::000000000000:policy/nothing"),
        "NoSuchEntity"
    );
    refused!(
        attach("arn:aws:iam::aws:policy/NoSuchPolicyAtAll"),
        "NoSuchEntity"
    );
    attach("arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy")
        .send()
        .await
        .expect("attached");
    for i in 0..9 {
        let made = create(&format!("p{i}"), 1)
            .send()
            .await
            .expect("policy")
            .policy
            .expect("policy");
        attach(made.arn().expect("arn"))
            .send()
            .await
            .expect("attached");
    }
    refused!(
        attach("arn:aws:iam::aws:policy/AmazonEKS_CNI_Policy"),
        "LimitExceeded"
    );
    attach("arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy")
        .send()
        .await
        .expect("attaching again changes nothing");
    refused!(api.delete_role().role_name("r"), "DeleteConflict");
    refused!(
        sts(&layer.strict)
            .assume_role()
            .role_arn("arn:aws:iam::000000000000:role/nobody")
            .role_session_name("s"),
        "AccessDenied"
    );
}

#[tokio::test]
async fn a_security_group_rule_exists_once_and_goes_exactly() {
    let layer = layer().await.expect("layer");
    let api = ec2(&layer.strict);
    let (vpc, subnets) = network(&layer.strict).await;
    let group = |name: &str| {
        let call = api
            .create_security_group()
            .group_name(name)
            .description("d")
            .vpc_id(&vpc);
        async move { call.send().await.expect("group").group_id.expect("id") }
    };
    let (database, green) = (group("database").await, group("green").await);
    let rule = |peer: &str, description: &str| {
        IpPermission::builder()
            .ip_protocol("tcp")
            .from_port(5432)
            .to_port(5432)
            .user_id_group_pairs(
                UserIdGroupPair::builder()
                    .group_id(peer)
                    .description(description)
                    .build(),
            )
            .build()
    };
    let allow = |rule: IpPermission| {
        api.authorize_security_group_ingress()
            .group_id(&database)
            .ip_permissions(rule)
    };
    let revoke = |rule: IpPermission| {
        api.revoke_security_group_ingress()
            .group_id(&database)
            .ip_permissions(rule)
    };
    allow(rule(&green, "crossfade"))
        .send()
        .await
        .expect("allowed");
    refused!(
        allow(rule(&green, "another description")),
        "InvalidPermission.Duplicate"
    );
    refused!(
        allow(rule("sg-00000000000000000", "x")),
        "InvalidGroup.NotFound"
    );
    refused!(
        api.delete_security_group().group_id(&green),
        "DependencyViolation"
    );
    let by_cidr = IpPermission::builder()
        .ip_protocol("tcp")
        .from_port(5432)
        .to_port(5432)
        .ip_ranges(IpRange::builder().cidr_ip("10.0.0.0/24").build())
        .build();
    refused!(revoke(by_cidr.clone()), "InvalidPermission.NotFound");
    allow(by_cidr).send().await.expect("another rule");
    revoke(rule(&green, "crossfade"))
        .send()
        .await
        .expect("revoked");
    refused!(
        revoke(rule(&green, "crossfade")),
        "InvalidPermission.NotFound"
    );
    api.delete_security_group()
        .group_id(&green)
        .send()
        .await
        .expect("free now");
    let tag = |id: &str, key: &str| {
        api.create_tags()
            .resources(id)
            .tags(Tag::builder().key(key).value("v").build())
    };
    refused!(tag(&subnets[0], "aws:x"), "InvalidParameterValue");
    refused!(
        tag("subnet-00000000000000000", "x"),
        "InvalidSubnetID.NotFound"
    );
    tag(&subnets[0], "kubernetes.io/cluster/shop-green")
        .send()
        .await
        .expect("tagged");
    refused!(
        api.create_vpc().cidr_block("10.9.0.0/16").dry_run(true),
        "DryRunOperation"
    );
    refused!(
        api.create_subnet()
            .vpc_id(&vpc)
            .cidr_block("10.0.0.128/25")
            .availability_zone("eu-west-1a"),
        "InvalidSubnet.Conflict"
    );
}

// eks.md 2.3: 60 rules in each direction; the description of a rule names the migration, in EC2's letters.
#[tokio::test]
async fn groups_and_rules_have_plain_words_and_one_vpc() {
    let layer = layer().await.expect("layer");
    let api = ec2(&layer.strict);
    let (vpc, subnets) = network(&layer.strict).await;
    let other = api
        .create_vpc()
        .cidr_block("10.77.0.0/16")
        .send()
        .await
        .expect("vpc");
    let other = other.vpc.and_then(|v| v.vpc_id).expect("id");
    let create = |name: &str, description: &str, vpc: &str| {
        api.create_security_group()
            .group_name(name)
            .description(description)
            .vpc_id(vpc)
    };
    refused!(create("sg-mine", "d", &vpc), "InvalidParameterValue");
    refused!(create("a", "blue > green", &vpc), "InvalidParameterValue");
    refused!(
        create("a", "d", "vpc-00000000000000000"),
        "InvalidVpcID.NotFound"
    );
    let id = |made: aws_sdk_ec2::operation::create_security_group::CreateSecurityGroupOutput| {
        made.group_id.expect("id")
    };
    let here = id(create("a", "d", &vpc).send().await.expect("group"));
    let there = id(create("a", "d", &other).send().await.expect("group"));
    refused!(create("a", "d", &vpc), "InvalidGroup.Duplicate");
    let allow = |port: i32, cidr: &str, description: &str| {
        api.authorize_security_group_ingress()
            .group_id(&here)
            .ip_permissions(
                IpPermission::builder()
                    .ip_protocol("tcp")
                    .from_port(port)
                    .to_port(port)
                    .ip_ranges(
                        IpRange::builder()
                            .cidr_ip(cidr)
                            .description(description)
                            .build(),
                    )
                    .build(),
            )
    };
    refused!(
        allow(443, "10.0.0.0/16", "crossfade: \"shop\""),
        "InvalidParameterValue"
    );
    refused!(allow(443, "10.0.0/16", "d"), "InvalidParameterValue");
    let foreign = IpPermission::builder()
        .ip_protocol("-1")
        .user_id_group_pairs(UserIdGroupPair::builder().group_id(&there).build())
        .build();
    let error = api
        .authorize_security_group_ingress()
        .group_id(&here)
        .ip_permissions(foreign)
        .send()
        .await
        .expect_err("another VPC");
    assert!(
        error.message().unwrap_or("").contains("different networks"),
        "{error:?}"
    );
    layer.strict.quota("L-0EA8095F", 2);
    allow(1, "10.0.0.0/16", "d").send().await.expect("one");
    allow(2, "10.0.0.0/16", "d").send().await.expect("two");
    refused!(
        allow(3, "10.0.0.0/16", "d"),
        "RulesPerSecurityGroupLimitExceeded"
    );
    // 50 tags a resource, of 128 and 256 characters.
    let tag = |key: &str, value: &str| {
        api.create_tags()
            .resources(&subnets[0])
            .tags(Tag::builder().key(key).value(value).build())
    };
    refused!(tag(&"k".repeat(129), "v"), "InvalidParameterValue");
    refused!(tag("k", &"v".repeat(257)), "InvalidParameterValue");
    let many = (0..50).map(|n| Tag::builder().key(format!("k{n}")).value("v").build());
    api.create_tags()
        .resources(&subnets[0])
        .set_tags(Some(many.collect()))
        .send()
        .await
        .expect("fifty");
    tag("k7", "again").send().await.expect("one of the fifty");
    refused!(tag("one-more", "v"), "TagLimitExceeded");
}

#[tokio::test]
async fn the_shop_fixture_is_acceptable_to_the_strict_layer() {
    let layer = layer().await.expect("layer");
    let shop = fixture::Fixture::shop();
    fixture::aws::load(&shop, &layer.strict.endpoint())
        .await
        .expect("AWS inventory");
    fixture::aws::load_zone(&shop, &layer.strict.endpoint())
        .await
        .expect("zone");
    let zones = layer.strict.zones();
    assert_eq!(zones.len(), 1);
    assert!(zones[0].find("mail.shop.test", "A").is_some());
    let calls = layer.strict.calls();
    let kinds: std::collections::BTreeSet<&str> =
        calls.iter().map(|c| c.service.as_str()).collect();
    assert!(
        kinds.contains("s3") && kinds.contains("ec2") && kinds.contains("iam"),
        "{kinds:?}"
    );
    assert!(
        calls.iter().all(|c| c.status < 400 && !c.action.is_empty()),
        "{calls:?}"
    );
}
