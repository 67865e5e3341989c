//! EKS, IAM and EC2.

use super::company::*;
use crate::world::Class;
use crate::world::cloud::{Resource, Status};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn green_answers_only_when_it_is_active_and_lets_the_caller_in() {
    let (t, w) = company();
    assert_eq!(w.green.identity().await.unwrap_err().class, Class::NotReady);
    w.cloud.create(&cluster(), "run-1").await.unwrap();
    pass(60).await;
    assert_eq!(w.green.identity().await.unwrap_err().class, Class::NotReady);
    assert_eq!(
        w.cloud.create(&access(), "run-1").await.unwrap_err().class,
        Class::NotReady
    );
    ensure(&w, &cluster()).await;
    assert!(
        t.elapsed().as_secs() >= 540,
        "nine minutes, {:?}",
        t.elapsed()
    );
    assert_eq!(
        w.green.identity().await.unwrap_err().class,
        Class::Unauthorized
    );
    ensure(&w, &access()).await;
    pass(5).await;
    assert_ne!(
        w.green.identity().await.unwrap(),
        w.blue.identity().await.unwrap()
    );
}

#[tokio::test(start_paused = true)]
async fn a_repeat_by_the_same_run_finds_what_it_made_and_another_run_does_not_take_it() {
    let (_, w) = company();
    w.cloud.create(&cluster(), "run-1").await.unwrap();
    w.cloud.create(&cluster(), "run-1").await.unwrap();
    assert_eq!(
        w.cloud.create(&cluster(), "run-2").await.unwrap_err().class,
        Class::AlreadyExists
    );
    let found = w.cloud.find(&cluster()).await.unwrap().unwrap();
    assert_eq!(found.run.as_deref(), Some("run-1"));
    assert!(found.equal);
}

#[tokio::test(start_paused = true)]
async fn what_eks_refuses_is_refused() {
    let (_, w) = company();
    let mut bad = cluster();
    if let Resource::Cluster { role_arn, .. } = &mut bad {
        *role_arn = "arn:aws:iam::000000000000:role/nobody".into();
    }
    assert_eq!(
        w.cloud.create(&bad, "r").await.unwrap_err().class,
        Class::Refused
    );
    let mut bad = cluster();
    if let Resource::Cluster { subnets, .. } = &mut bad {
        subnets.truncate(1);
    }
    assert_eq!(
        w.cloud.create(&bad, "r").await.unwrap_err().class,
        Class::Refused
    );
    let mut bad = access();
    if let Resource::AccessEntry { principal, .. } = &mut bad {
        *principal = "${caller}".into();
    }
    assert_eq!(
        w.cloud.create(&bad, "r").await.unwrap_err().class,
        Class::Refused
    );
    assert_eq!(
        w.cloud.create(&node_group(), "r").await.unwrap_err().class,
        Class::NotFound
    );
}

#[tokio::test(start_paused = true)]
async fn coredns_without_a_node_is_degraded() {
    let (_, w) = company();
    ensure(&w, &cluster()).await;
    w.cloud.create(&addon("coredns"), "r").await.unwrap();
    pass(120).await;
    let found = w.cloud.find(&addon("coredns")).await.unwrap().unwrap();
    // No failure: it heals when a node comes (eks.md 1.5).
    assert!(
        matches!(&found.status, Status::Pending(what) if what.starts_with("DEGRADED")),
        "{found:?}"
    );
    assert_eq!(found.issues[0].code, "InsufficientNumberOfReplicas");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_with_node_groups_cannot_be_deleted_and_a_deleted_one_leaves_nothing() {
    let (_, w) = company();
    let before = w.cloud.inventory("shop.test").await.unwrap();
    green_up(&w).await;
    assert_eq!(
        w.cloud.delete(&cluster()).await.unwrap_err().class,
        Class::Refused
    );
    w.cloud.delete(&node_group()).await.unwrap();
    assert_eq!(
        w.cloud.delete(&cluster()).await.unwrap_err().class,
        Class::NotReady
    );
    pass(200).await;
    w.cloud.delete(&addon("coredns")).await.unwrap();
    w.cloud.delete(&addon("vpc-cni")).await.unwrap();
    w.cloud.delete(&access()).await.unwrap();
    w.cloud.delete(&cluster()).await.unwrap();
    assert_eq!(
        w.cloud.find(&cluster()).await.unwrap().unwrap().status,
        Status::Deleting
    );
    pass(400).await;
    assert_eq!(w.cloud.find(&cluster()).await.unwrap(), None);
    assert_eq!(w.cloud.inventory("shop.test").await.unwrap(), before);
    assert_eq!(w.green.identity().await.unwrap_err().class, Class::NotReady);
}

#[tokio::test(start_paused = true)]
async fn trust_statements_rules_and_tags_come_and_go_without_a_trace() {
    let (_, w) = company();
    let before = w.cloud.inventory("shop.test").await.unwrap();
    let things = [
        Resource::TrustStatement {
            role: "shop-mailer".into(),
            sid: "CrossfadeShop".into(),
            statement: json!({"Effect":"Allow","Principal":{"Federated":"arn:x"},"Action":"sts:AssumeRoleWithWebIdentity"}),
        },
        Resource::Tag {
            resource: "subnet-a".into(),
            key: "kubernetes.io/cluster/shop-green".into(),
            value: "shared".into(),
        },
        Resource::SecurityGroupRule {
            group: "sg-db".into(),
            protocol: "tcp".into(),
            from_port: 5432,
            to_port: 5432,
            source_group: "sg-db".into(),
            description: "crossfade shop".into(),
        },
    ];
    for t in &things {
        w.cloud.create(t, "r").await.unwrap();
        w.cloud.create(t, "r").await.unwrap();
        assert!(w.cloud.find(t).await.unwrap().unwrap().equal);
    }
    assert_ne!(w.cloud.inventory("shop.test").await.unwrap(), before);
    for t in &things {
        w.cloud.delete(t).await.unwrap();
        w.cloud.delete(t).await.unwrap();
        assert_eq!(w.cloud.find(t).await.unwrap(), None);
    }
    assert_eq!(w.cloud.inventory("shop.test").await.unwrap(), before);
}

#[tokio::test(start_paused = true)]
async fn a_node_group_wants_its_template_first_and_the_template_outlives_it() {
    let (_, w) = company();
    ensure(&w, &cluster()).await;
    ensure(&w, &access()).await;
    let own = w.cloud.find(&cluster()).await.unwrap().unwrap().attributes["securityGroup"].clone();
    let template = |groups: &[&str], user_data: &str| -> Resource {
        serde_json::from_value(json!({"type": "launch-template", "name": "green-nodes", "httpTokens": "required", "hopLimit": 2,
            "root": {"device": "/dev/xvda", "gib": 64, "kind": "gp3", "encrypted": true, "deleteOnTermination": true},
            "securityGroups": groups, "userData": user_data, "monitoring": false}))
        .unwrap()
    };
    let mut group = node_group();
    if let Resource::NodeGroup {
        launch_template, ..
    } = &mut group
    {
        *launch_template = Some("green-nodes".into());
    }
    let refused = async |r: &Resource| w.cloud.create(r, "run-1").await.unwrap_err();
    let e = refused(&group).await;
    assert!(e.message.contains("does not exist"), "{e}");
    let e = refused(&template(&[], &"x".repeat(16 * 1024 + 1))).await;
    assert!(e.message.contains("16 KB"), "{e}");
    // eks.md 8.2: without the cluster's own group nodes never join.
    let cut_off = template(&["sg-db"], "MIME");
    ensure(&w, &cut_off).await;
    let e = refused(&group).await;
    assert!(e.message.contains(&own), "{e}");
    w.cloud.delete(&cut_off).await.unwrap();

    let good = template(&["sg-db", &own], "MIME");
    ensure(&w, &good).await;
    ensure(&w, &group).await;
    let e = w.cloud.delete(&good).await.unwrap_err();
    assert!(e.message.contains("still uses it"), "{e}");
    let seen = w.cloud.inventory("").await.unwrap();
    let templates = serde_json::to_string(&seen.launch_templates).unwrap();
    assert!(
        templates.contains("sha256:") && !templates.contains("MIME"),
        "user data may hold secrets: {templates}"
    );
    w.cloud.delete(&group).await.unwrap();
    pass(200).await;
    w.cloud.delete(&good).await.unwrap();
    assert_eq!(w.cloud.find(&good).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn an_association_wants_a_role_that_trusts_pods_and_gives_it_to_the_account() {
    let (_, w) = company();
    ensure(&w, &cluster()).await;
    ensure(&w, &access()).await;
    let association = |role: &str| Resource::PodIdentityAssociation {
        cluster: "shop-green".into(),
        namespace: "platform".into(),
        service_account: "mailer".into(),
        role_arn: format!("arn:aws:iam::000000000000:role/{role}"),
    };
    for (role, why) in [
        ("nobody", "does not exist"),
        ("shop-mailer", "does not trust"),
    ] {
        let e = w.cloud.create(&association(role), "r").await.unwrap_err();
        assert_eq!(e.class, Class::Refused);
        assert!(e.message.contains(why), "{e}");
    }
    let trust = Resource::TrustStatement {
        role: "shop-mailer".into(),
        sid: "CrossfadePodIdentity".into(),
        statement: json!({"Effect": "Allow", "Principal": {"Service": "pods.eks.amazonaws.com"}, "Action": ["sts:AssumeRole", "sts:TagSession"]}),
    };
    w.cloud.create(&trust, "r").await.unwrap();
    let good = association("shop-mailer");
    w.cloud.create(&good, "r").await.unwrap();
    w.cloud.create(&good, "r").await.expect("the same again");
    let found = w.cloud.find(&good).await.unwrap().unwrap();
    assert!(found.equal && found.run.as_deref() == Some("r"));
    let other = w
        .cloud
        .find(&association("green-node"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(other.differences[0].field, "roleArn");
    w.cloud.delete(&good).await.unwrap();
    assert_eq!(w.cloud.find(&good).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn log_groups_and_the_bucket_for_records_come_and_go_without_a_trace() {
    let (_, w) = company();
    let before = w.cloud.inventory("shop.test").await.unwrap();
    let group = Resource::LogGroup {
        name: "/aws/eks/shop-green/cluster".into(),
        retention_days: Some(90),
    };
    let bucket = |create: bool| Resource::state_bucket("records", create);
    let e = w.cloud.create(&bucket(false), "r").await.unwrap_err();
    assert!(e.message.contains("nobody asked"), "{e}");
    for r in [&group, &bucket(true)] {
        w.cloud.create(r, "r").await.unwrap();
        assert!(w.cloud.find(r).await.unwrap().unwrap().equal);
    }
    let now = w.cloud.inventory("shop.test").await.unwrap();
    assert_eq!(now.log_groups.unwrap().len(), 1);
    assert!(now.state_bucket.is_some());
    for r in [&group, &bucket(true)] {
        w.cloud.delete(r).await.unwrap();
        assert_eq!(w.cloud.find(r).await.unwrap(), None);
    }
    assert_eq!(w.cloud.inventory("shop.test").await.unwrap(), before);
}

#[tokio::test(start_paused = true)]
async fn a_clusters_fields_are_checked_as_eks_does() {
    let (_, w) = company();
    let with = |change: serde_json::Value| -> Resource {
        let mut v = serde_json::to_value(cluster()).unwrap();
        v.as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        serde_json::from_value(v).unwrap()
    };
    for (change, why) in [
        (json!({"logging": ["audits"]}), "no log type"),
        (json!({"kmsKey": "alias/x"}), "not the ARN"),
        (json!({"securityGroups": ["sg-nowhere"]}), "does not exist"),
        (
            json!({"securityGroups": ["a", "b", "c", "d", "e"]}),
            "at most 4",
        ),
    ] {
        let e = w.cloud.create(&with(change), "r").await.unwrap_err();
        assert!(
            e.class == Class::Refused && e.message.contains(why),
            "{why}: {e}"
        );
    }
    let protected = with(json!({"deletionProtection": true, "logging": ["audit"]}));
    ensure(&w, &protected).await;
    let found = w.cloud.find(&cluster()).await.unwrap().unwrap();
    let fields: Vec<&str> = found.differences.iter().map(|d| d.field.as_str()).collect();
    assert_eq!(
        fields,
        ["deletionProtection"],
        "logs that nobody asked for are no difference"
    );
    w.cloud.delete(&protected).await.unwrap();
    pass(400).await;
    assert_eq!(w.cloud.find(&protected).await.unwrap(), None);
}
