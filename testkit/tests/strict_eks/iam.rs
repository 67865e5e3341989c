//! IAM's own refusals, and the seconds that its changes take to be known (eks.md 1.3, 3, 7).

use std::time::Duration;

use aws_sdk_iam::types::Tag;

use crate::strict_bench::{eventually, iam, layer, role, trust};
use crate::world::{code, world};

const DELAY: Duration = Duration::from_millis(700);

// eks.md 1.3: new roles are eventually consistent: InvalidParameter "role" errors pass.
#[tokio::test]
async fn a_new_role_is_unknown_to_eks_for_a_while() {
    let world = world().await;
    let strict = &world.layer.strict;
    world.cluster("green").await;
    strict.iam_delay(DELAY);
    let fresh = role(strict, "fresh", "eks.amazonaws.com").await;
    let cluster = || world.creation("second").role_arn(&fresh).send();
    let (kind, message) = code(cluster().await);
    assert_eq!(kind, "InvalidParameterException");
    assert!(
        message.contains("could not be assumed because it does not exist"),
        "{message}"
    );
    let nodes = role(strict, "fresh-nodes", "ec2.amazonaws.com").await;
    let (_, message) = code(world.group("main").node_role(&nodes).send().await);
    assert!(
        message.contains("The role with name fresh-nodes cannot be found"),
        "{message}"
    );
    let pods = role(strict, "fresh-pods", "pods.eks.amazonaws.com").await;
    let associate = || {
        world
            .api
            .create_pod_identity_association()
            .cluster_name("green")
            .namespace("platform")
            .service_account("mailer")
            .role_arn(&pods)
            .send()
    };
    let (_, message) = code(associate().await);
    assert!(
        message.contains("Role provided in the request does not exist"),
        "{message}"
    );
    // IAM itself does not know a new role as a principal either.
    let api = iam(strict);
    let trusting = trust("ec2.amazonaws.com").replace(
        r#""Service":"ec2.amazonaws.com""#,
        &format!(r#""AWS":"{pods}""#),
    );
    let chained = || {
        api.create_role()
            .role_name("chained")
            .assume_role_policy_document(&trusting)
            .send()
    };
    let (kind, message) = code(chained().await);
    assert_eq!(kind, "MalformedPolicyDocument");
    assert!(message.contains("Invalid principal in policy"), "{message}");
    tokio::time::sleep(DELAY).await;
    cluster().await.expect("known now");
    associate().await.expect("known now");
    chained().await.expect("known now");
}

// eks.md 1.3: the cluster role carries AmazonEKSClusterPolicy, and EKS looks.
#[tokio::test]
async fn a_policy_attached_a_moment_ago_is_not_seen_yet_nor_is_a_changed_trust() {
    let world = world().await;
    let strict = &world.layer.strict;
    let api = iam(strict);
    strict.iam_delay(DELAY);
    // The role itself is known by now.
    tokio::time::sleep(DELAY).await;
    api.attach_role_policy()
        .role_name("cluster")
        .policy_arn("arn:aws:iam::aws:policy/AmazonEKSClusterPolicy")
        .send()
        .await
        .expect("attached");
    tokio::time::sleep(Duration::from_millis(50)).await;
    let made = eventually("only the policy is unknown", || async {
        let (_, message) = code(world.creation("green").send().await);
        (!message.contains("could not be assumed")).then_some(message)
    })
    .await;
    assert!(
        made.contains("The provided role doesn't have the Amazon EKS Managed Policies associated with it. Please ensure the following policy is attached: arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"),
        "{made}"
    );
    tokio::time::sleep(DELAY).await;
    world.creation("green").send().await.expect("seen now");
    world.active("green").await;
    let blue = role(strict, "mailer", "ec2.amazonaws.com").await;
    tokio::time::sleep(DELAY).await;
    let associate = || {
        world
            .api
            .create_pod_identity_association()
            .cluster_name("green")
            .namespace("platform")
            .service_account("mailer")
            .role_arn(&blue)
            .send()
    };
    let (kind, message) = code(associate().await);
    assert_eq!(kind, "InvalidParameterException");
    assert_eq!(message, "Trust policy of the role provided is invalid");
    // AssumeRole alone is not enough: the session is tagged (eks.md 3).
    let half = trust("pods.eks.amazonaws.com").replace(r#","sts:TagSession""#, "");
    let change = |document: String| {
        api.update_assume_role_policy()
            .role_name("mailer")
            .policy_document(document)
            .send()
    };
    change(half).await.expect("IAM takes it");
    tokio::time::sleep(DELAY).await;
    let (_, message) = code(associate().await);
    assert_eq!(message, "Trust policy of the role provided is invalid");
    change(trust("pods.eks.amazonaws.com"))
        .await
        .expect("whole");
    assert!(associate().await.is_err(), "not known yet");
    tokio::time::sleep(DELAY).await;
    associate().await.expect("known now");
}

// eks.md 7: the emulator has neither document checks nor limits of tags, paths and versions.
#[tokio::test]
async fn documents_paths_and_tags_are_checked_as_iam_does() {
    let layer = layer().await.expect("layer");
    let api = iam(&layer.strict);
    let create = |name: &str| {
        api.create_role()
            .role_name(name)
            .assume_role_policy_document(trust("ec2.amazonaws.com"))
    };
    let tag = |key: &str, value: &str| Tag::builder().key(key).value(value).build().expect("tag");
    for (why, code_wanted, request) in [
        ("path", "ValidationError", create("r").path("crossfade")),
        (
            "two hours",
            "ValidationError",
            create("r").max_session_duration(60),
        ),
        (
            "system tag",
            "InvalidInput",
            create("r").tags(tag("aws:x", "y")),
        ),
        (
            "long tag",
            "ValidationError",
            create("r").tags(tag(&"k".repeat(129), "y")),
        ),
        (
            "odd tag",
            "ValidationError",
            create("r").tags(tag("k", "a;b")),
        ),
        (
            "many tags",
            "LimitExceeded",
            (0..51).fold(create("r"), |r, n| r.tags(tag(&format!("k{n}"), "v"))),
        ),
        (
            "boundary",
            "NoSuchEntity",
            create("r").permissions_boundary("arn:aws:iam::000000000000:policy/nobody"),
        ),
    ] {
        assert_eq!(code(request.send().await).0, code_wanted, "{why}");
    }
    create("r")
        .path("/crossfade/green/")
        .send()
        .await
        .expect("role");
    assert_eq!(code(create("r").send().await).0, "EntityAlreadyExists");
    let put = |document: &str| {
        api.put_role_policy()
            .role_name("r")
            .policy_name("p")
            .policy_document(document)
            .send()
    };
    for (why, document) in [
        ("not JSON", "{"),
        ("no statement", r#"{"Version":"2012-10-17"}"#),
        (
            "a principal",
            r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":"s3:*","Resource":"*"}]}"#,
        ),
        (
            "no resource",
            r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:*"}]}"#,
        ),
        (
            "not an ARN",
            r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:*","Resource":"bucket"}]}"#,
        ),
        (
            "no vendor",
            r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"GetObject","Resource":"*"}]}"#,
        ),
        (
            "version",
            r#"{"Version":"2026-01-01","Statement":[{"Effect":"Allow","Action":"s3:*","Resource":"*"}]}"#,
        ),
        (
            "Sid",
            r#"{"Version":"2012-10-17","Statement":[{"Sid":"a-b","Effect":"Allow","Action":"s3:*","Resource":"*"}]}"#,
        ),
    ] {
        assert_eq!(
            code(put(document).await).0,
            "MalformedPolicyDocument",
            "{why}"
        );
    }
    let sound = r#"{"Version":"2012-10-17","Statement":[{"Sid":"ab","Effect":"Allow","Action":"s3:*","Resource":"arn:aws:s3:::b/*"}]}"#;
    put(sound).await.expect("sound");
    let trusting_s3 = trust("ec2.amazonaws.com").replace("sts:TagSession", "s3:GetObject");
    let update = api
        .update_assume_role_policy()
        .role_name("r")
        .policy_document(trusting_s3);
    assert_eq!(code(update.send().await).0, "MalformedPolicyDocument");
    // A role goes when nothing hangs on it any more.
    assert_eq!(
        code(api.delete_role().role_name("r").send().await).0,
        "DeleteConflict",
        "an inline policy"
    );
    let made = api
        .create_policy()
        .policy_name("m")
        .policy_document(sound)
        .send()
        .await
        .expect("policy");
    let arn = made.policy.and_then(|p| p.arn).expect("ARN");
    for _ in 0..4 {
        api.create_policy_version()
            .policy_arn(&arn)
            .policy_document(sound)
            .send()
            .await
            .expect("version");
    }
    let sixth = api
        .create_policy_version()
        .policy_arn(&arn)
        .policy_document(sound);
    assert_eq!(code(sixth.send().await).0, "LimitExceeded");
}

// eks.md 3: role names have 64 characters; kops' own were cut there too.
#[tokio::test]
async fn a_role_that_something_hangs_on_is_not_deleted() {
    let layer = layer().await.expect("layer");
    let api = iam(&layer.strict);
    let name = "r".repeat(64);
    role(&layer.strict, &name, "ec2.amazonaws.com").await;
    api.attach_role_policy()
        .role_name(&name)
        .policy_arn("arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy")
        .send()
        .await
        .expect("attached");
    let delete = || api.delete_role().role_name(&name).send();
    let (kind, message) = code(delete().await);
    assert_eq!(kind, "DeleteConflict");
    assert!(
        message.contains("must detach all policies first"),
        "{message}"
    );
    api.detach_role_policy()
        .role_name(&name)
        .policy_arn("arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy")
        .send()
        .await
        .expect("detached");
    api.create_instance_profile()
        .instance_profile_name("nodes")
        .send()
        .await
        .expect("profile");
    let add = |role: &str| {
        api.add_role_to_instance_profile()
            .instance_profile_name("nodes")
            .role_name(role)
            .send()
    };
    add(&name).await.expect("added");
    role(&layer.strict, "other", "ec2.amazonaws.com").await;
    assert_eq!(
        code(add("other").await).0,
        "LimitExceeded",
        "one role a profile"
    );
    let (kind, message) = code(delete().await);
    assert_eq!(kind, "DeleteConflict");
    assert!(message.contains("instance profiles"), "{message}");
}

// eks.md 3, 7: pods of kops hold tokens for `amazonaws.com`; green's provider can be told to take them, and to take them no more.
#[tokio::test]
async fn a_provider_takes_another_client_id_and_gives_it_back() {
    let layer = layer().await.expect("layer");
    let api = iam(&layer.strict);
    let made = api
        .create_open_id_connect_provider()
        .url("https://oidc.eks.eu-west-1.amazonaws.com/id/A")
        .client_id_list("sts.amazonaws.com")
        .send()
        .await
        .expect("provider");
    let arn = made.open_id_connect_provider_arn.expect("ARN");
    let ids = || async {
        let found = api
            .get_open_id_connect_provider()
            .open_id_connect_provider_arn(&arn)
            .send()
            .await;
        found.expect("provider").client_id_list().to_vec()
    };
    for _ in 0..2 {
        api.add_client_id_to_open_id_connect_provider()
            .open_id_connect_provider_arn(&arn)
            .client_id("amazonaws.com")
            .send()
            .await
            .expect("twice is once");
    }
    assert_eq!(ids().await, ["sts.amazonaws.com", "amazonaws.com"]);
    api.remove_client_id_from_open_id_connect_provider()
        .open_id_connect_provider_arn(&arn)
        .client_id("amazonaws.com")
        .send()
        .await
        .expect("removed");
    assert_eq!(ids().await, ["sts.amazonaws.com"]);
    let nobody = api
        .add_client_id_to_open_id_connect_provider()
        .open_id_connect_provider_arn("arn:aws:iam::000000000000:oidc-provider/nobody")
        .client_id("amazonaws.com");
    assert_eq!(code(nobody.send().await).0, "NoSuchEntity");
    let short = api
        .create_open_id_connect_provider()
        .url("https://oidc.eks.eu-west-1.amazonaws.com/id/B")
        .thumbprint_list("abc");
    assert_eq!(code(short.send().await).0, "InvalidInput");
}
