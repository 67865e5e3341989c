//! Quotas, throttling, pages (eks.md 1.6, 2.3, 3, 7).

use std::time::Duration;

use aws_sdk_eks::types::NodegroupStatus;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::strict_bench::{ec2, eventually, iam, role, trust};
use crate::world::{code, scaling, world};

// eks.md 1.6: 100 clusters a region, 30 node groups a cluster, 450 nodes a group; all adjustable.
#[tokio::test]
async fn a_full_quota_of_eks_refuses_one_more_and_frees_with_one_less() {
    let world = world().await;
    let strict = &world.layer.strict;
    strict.quota("L-1194D53C", 1);
    world.cluster("green").await;
    let (kind, message) = code(world.creation("second").send().await);
    assert_eq!(kind, "ResourceLimitExceededException");
    assert!(message.contains("1 of 1 clusters"), "{message}");
    strict.quota("L-BD136A63", 2);
    let (kind, message) = code(world.group("main").send().await);
    assert_eq!(kind, "ResourceLimitExceededException");
    assert!(message.contains("2 nodes at most, not 3"), "{message}");
    strict.quota("L-BD136A63", 3);
    strict.quota("L-6D54EA21", 1);
    world.group("main").send().await.expect("the first");
    let (kind, _) = code(world.group("second").send().await);
    assert_eq!(kind, "ResourceLimitExceededException");
    strict.quota("L-6D54EA21", 2);
    world.group("second").send().await.expect("raised");
}

// eks.md 3: roles 1,000 and OIDC providers 100 an account; the trust policy's size is the account's own.
#[tokio::test]
async fn a_full_quota_of_iam_refuses_one_more() {
    let world = world().await;
    let strict = &world.layer.strict;
    let api = iam(strict);
    let there = api.list_roles().send().await.expect("roles").roles().len();
    strict.quota("L-FE177D64", there as u64 + 1);
    role(strict, "last", "ec2.amazonaws.com").await;
    let one_more = api
        .create_role()
        .role_name("more")
        .assume_role_policy_document(trust("ec2.amazonaws.com"));
    let (kind, message) = code(one_more.send().await);
    assert_eq!(kind, "LimitExceeded");
    assert!(message.contains("RolesPerAccount"), "{message}");
    strict.quota("L-858F3967", 1);
    let provider = |id: &str| {
        api.create_open_id_connect_provider()
            .url(format!("https://oidc.eks.eu-west-1.amazonaws.com/id/{id}"))
            .client_id_list("sts.amazonaws.com")
            .send()
    };
    provider("A").await.expect("the first");
    assert_eq!(code(provider("B").await).0, "LimitExceeded");
    strict.quota("L-0DA4ABF3", 1);
    let attach = |policy: &str| {
        api.attach_role_policy()
            .role_name("last")
            .policy_arn(format!("arn:aws:iam::aws:policy/{policy}"))
            .send()
    };
    attach("AmazonEKSClusterPolicy").await.expect("the first");
    let (kind, message) = code(attach("AmazonEKSVPCResourceController").await);
    assert_eq!(kind, "LimitExceeded");
    assert!(message.contains("PoliciesPerRole: 1"), "{message}");
    strict.quota("L-C07B4B0D", 100);
    let update = api
        .update_assume_role_policy()
        .role_name("last")
        .policy_document(trust("ec2.amazonaws.com"));
    assert_eq!(code(update.send().await).0, "LimitExceeded");
    let summary = api.get_account_summary().send().await.expect("summary");
    let said = summary.summary_map().expect("map");
    assert_eq!(
        said.get(&"AssumeRolePolicySizeQuota".into()),
        Some(&100),
        "eks.md 3: it tells the account's real value"
    );
}

// eks.md 1.6: AsgInstanceLaunchFailures, minutes after the request was taken.
#[tokio::test]
async fn too_few_vcpus_or_addresses_fail_the_group_after_it_was_taken() {
    let world = world().await;
    let strict = &world.layer.strict;
    world.cluster("green").await;
    world.addon("vpc-cni").await;
    strict.quota("L-1216C47A", 3);
    // Two m5.large need four.
    world
        .group("main")
        .instance_types("m5.large")
        .send()
        .await
        .expect("taken");
    let failed = |name: &'static str| {
        let world = &world;
        async move {
            eventually("CREATE_FAILED", || async {
                let found = world
                    .api
                    .describe_nodegroup()
                    .cluster_name("green")
                    .nodegroup_name(name)
                    .send()
                    .await
                    .ok()?
                    .nodegroup?;
                (found.status == Some(NodegroupStatus::CreateFailed)).then_some(found)
            })
            .await
        }
    };
    let group = failed("main").await;
    let issue = &group.health().expect("health").issues()[0];
    assert_eq!(
        issue.code().map(|c| c.as_str()),
        Some("AsgInstanceLaunchFailures")
    );
    assert!(
        issue
            .message()
            .unwrap_or("")
            .contains("VcpuLimitExceeded - You have requested more vCPU capacity than your current vCPU limit of 3"),
        "{issue:?}"
    );
    assert!(!issue.resource_ids().is_empty(), "the Auto Scaling group");
    strict.quota("L-1216C47A", 1_000);
    let small = ec2(strict)
        .create_subnet()
        .vpc_id(world.vpc().await)
        .cidr_block("10.0.200.0/28")
        .availability_zone("eu-west-1a")
        .send()
        .await
        .expect("subnet");
    let small = small.subnet.and_then(|s| s.subnet_id).expect("id");
    world
        .api
        .create_nodegroup()
        .cluster_name("green")
        .nodegroup_name("crowded")
        .node_role(&world.node_role)
        .subnets(small)
        .scaling_config(scaling(1, 12, 12))
        .send()
        .await
        .expect("taken");
    let group = failed("crowded").await;
    let issue = &group.health().expect("health").issues()[0];
    assert_eq!(
        issue.code().map(|c| c.as_str()),
        Some("InsufficientFreeAddresses")
    );
    assert!(
        issue.message().unwrap_or("").contains("12 nodes, 11 free"),
        "{issue:?}"
    );
}

// eks.md 0.10: quotas are read at plan time.
#[tokio::test]
async fn service_quotas_tells_the_quota_in_force_and_aws_default() {
    let world = world().await;
    let strict = &world.layer.strict;
    strict.quota("L-1194D53C", 7);
    let ask = |action: &'static str, body: &'static str| {
        let address = strict.endpoint().replace("http://", "");
        async move {
            let mut stream = TcpStream::connect(&address).await.expect("layer");
            let request = format!(
                "POST / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/x-amz-json-1.1\r\nX-Amz-Target: ServiceQuotasV20190624.{action}\r\nAuthorization: AWS4-HMAC-SHA256 Credential=test/20261130/eu-west-1/servicequotas/aws4_request, SignedHeaders=host, Signature=0\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(request.as_bytes()).await.expect("sent");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.expect("answer");
            answer
        }
    };
    let clusters = r#"{"ServiceCode": "eks", "QuotaCode": "L-1194D53C"}"#;
    let now = ask("GetServiceQuota", clusters).await;
    assert!(
        now.starts_with("HTTP/1.1 200") && now.contains("\"Value\":7.0"),
        "{now}"
    );
    let default = ask("GetAWSDefaultServiceQuota", clusters).await;
    assert!(default.contains("\"Value\":100.0"), "{default}");
    let unknown = ask(
        "GetServiceQuota",
        r#"{"ServiceCode": "eks", "QuotaCode": "L-0"}"#,
    )
    .await;
    assert!(
        unknown.starts_with("HTTP/1.1 400") && unknown.contains("NoSuchResourceException"),
        "{unknown}"
    );
    strict.throttle("servicequotas", 1);
    ask("GetServiceQuota", clusters).await;
    let throttled = ask("GetServiceQuota", clusters).await;
    assert!(
        throttled.contains("\"__type\":\"ThrottlingException\""),
        "{throttled}"
    );
}

// eks.md 7: no emulator throttles; AWS does, by a bucket an operation or a service.
#[tokio::test]
async fn a_bucket_throttles_in_the_words_of_its_service_and_fills_again() {
    let world = world().await;
    let strict = &world.layer.strict;
    strict.throttle("iam", 2);
    strict.throttle("eks:ListClusters", 1);
    strict.throttle("ec2:Describe*", 1);
    let api = iam(strict);
    let get = || api.get_role().role_name("cluster").send();
    get().await.expect("the first");
    get().await.expect("the second");
    let (kind, message) = code(get().await);
    assert_eq!(
        (kind.as_str(), message.as_str()),
        ("Throttling", "Rate exceeded")
    );
    world.api.list_clusters().send().await.expect("the first");
    assert_eq!(
        code(world.api.list_clusters().send().await).0,
        "ThrottlingException"
    );
    world
        .api
        .list_access_policies()
        .send()
        .await
        .expect("another operation");
    let ec2 = ec2(strict);
    ec2.describe_vpcs().send().await.expect("the first");
    assert_eq!(
        code(ec2.describe_subnets().send().await).0,
        "RequestLimitExceeded"
    );
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    get().await.expect("filled again");
    strict.throttle("iam", 0);
    for _ in 0..5 {
        get().await.expect("no bucket any more");
    }
}

// eks.md 7: the emulator ignores MaxResults everywhere; a reader that forgets the next page loses what is on it.
#[tokio::test]
async fn lists_come_in_pages_and_the_pages_are_the_list() {
    let world = world().await;
    let strict = &world.layer.strict;
    for n in 0..5 {
        role(strict, &format!("role-{n}"), "ec2.amazonaws.com").await;
    }
    let api = iam(strict);
    let ec2 = ec2(strict);
    let all = api.list_roles().send().await.expect("roles").roles().len();
    assert!(all >= 7);
    strict.page_size(Some(3));
    let first = api.list_roles().send().await.expect("page");
    assert_eq!((first.roles().len(), first.is_truncated()), (3, true));
    let mut names = vec![];
    let mut pages = api.list_roles().into_paginator().items().send();
    while let Some(role) = pages.next().await {
        names.push(role.expect("role").role_name);
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all);
    let mut details = 0;
    let mut pages = api
        .get_account_authorization_details()
        .into_paginator()
        .send();
    while let Some(page) = pages.next().await {
        let page = page.expect("page");
        assert!(page.role_detail_list().len() + page.policies().len() <= 3);
        details += page.role_detail_list().len();
    }
    assert_eq!(details, all);
    let subnets = ec2.describe_subnets().send().await.expect("page");
    assert_eq!(subnets.subnets().len(), 3);
    assert!(subnets.next_token().is_some());
    let mut ids = vec![];
    let mut pages = ec2.describe_subnets().into_paginator().items().send();
    while let Some(subnet) = pages.next().await {
        ids.extend(subnet.expect("subnet").subnet_id);
    }
    for id in &world.subnets {
        assert!(ids.contains(id), "{id} is on no page");
    }
    // By id there are no pages, and asking for both is refused.
    let by_id = ec2
        .describe_subnets()
        .set_subnet_ids(Some(ids[..4].to_vec()));
    assert_eq!(
        by_id
            .clone()
            .send()
            .await
            .expect("all four")
            .subnets()
            .len(),
        4
    );
    assert_eq!(
        code(by_id.max_results(5).send().await).0,
        "InvalidParameterCombination"
    );
    assert_eq!(
        code(ec2.describe_vpcs().max_results(4).send().await).0,
        "InvalidParameterValue",
        "5 to 1,000"
    );
    assert_eq!(
        code(ec2.describe_vpcs().next_token("what").send().await).0,
        "InvalidNextToken"
    );
    for name in ["a", "b", "c", "d"] {
        world.creation(name).send().await.expect("cluster");
    }
    let page = world.api.list_clusters().send().await.expect("page");
    assert_eq!(page.clusters(), ["a", "b", "c"]);
    let next = world
        .api
        .list_clusters()
        .next_token(page.next_token().expect("token"))
        .send()
        .await
        .expect("page");
    assert_eq!(next.clusters(), ["d"]);
}
