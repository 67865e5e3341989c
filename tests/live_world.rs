//! The live world against real API servers of both ages, the strict AWS layer, DNS, load balancers and PostgreSQL.
//!
//! The AWS SDK takes its endpoint from the environment, so the outer test starts the bench and runs the inner one in a
//! process of its own, as the released binary would run.

use crossfade::object::{ObjectId, Side};
use crossfade::spec::model::Spec;
use crossfade::world::cloud::{Found, Resource, Status, Taint};
use crossfade::world::dns::{Change, RecordSet};
use crossfade::world::kube::{ApiKind, CreateOptions};
use crossfade::world::probe::{HttpProbe, Via};
use crossfade::world::{Class, World, live};
use futures::StreamExt as _;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use testkit::bench::{Bench, BenchOptions};

/// Names the spec for the inner test.
const SPEC: &str = "CROSSFADE_TEST_SPEC";
const RUN: &str = "run-live-world";

#[tokio::test(flavor = "multi_thread")]
async fn the_live_world_reads_and_writes_real_servers() {
    let bench = Bench::start(BenchOptions::default())
        .await
        .expect("the bench starts");
    let spec = bench.workdir().join("migration.yaml");
    std::fs::write(
        &spec,
        bench
            .migration_yaml()
            .unwrap()
            .expect("the fixture has a template"),
    )
    .unwrap();
    let before = bench.record_sets();
    let mut command = tokio::process::Command::new(std::env::current_exe().unwrap());
    command
        .args(["--ignored", "--exact", "inside_the_bench", "--nocapture"])
        .env(SPEC, &spec)
        .env(live::ROUTE53_RPS, "100")
        // Ambient context that must decide nothing.
        .env("KUBECONFIG", "/nonexistent/kubeconfig")
        .env("HTTPS_PROXY", "http://127.0.0.1:9");
    for (key, value) in bench.env() {
        match (key.as_str(), value) {
            ("KUBECONFIG" | "HTTPS_PROXY", _) => {}
            (_, Some(value)) => {
                command.env(key, value);
            }
            (_, None) => {
                command.env_remove(key);
            }
        }
    }
    let outcome = command.status().await.unwrap();
    assert!(outcome.success(), "the inner test failed, see above");
    assert_eq!(bench.record_sets(), before, "every record is as it was");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by the test above, in the bench's environment"]
async fn inside_the_bench() {
    let path = PathBuf::from(std::env::var(SPEC).expect("started by the outer test"));
    let spec: Spec = serde_saphyr::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let base = path.parent().unwrap();
    let world = live::connect(&spec, base).unwrap();
    blue_is_read_as_it_is(&world).await;
    store_and_inventory(&world, &spec, base).await;
    names_and_hosts(&world).await;
    route_53(&world).await;
    databases(&world).await;
    green_is_made_used_and_unmade(&world, &spec).await;
}

fn id(api: &str, kind: &str, ns: Option<&str>, name: &str) -> ObjectId {
    ObjectId::new(api, kind, ns, name)
}

async fn blue_is_read_as_it_is(world: &World) {
    let blue = world.kube(Side::Blue);
    assert_eq!(blue.version().await.unwrap().minor, 21);
    let me = blue.identity().await.unwrap();
    assert_eq!(me, blue.identity().await.unwrap());
    assert_eq!((me.uid.len(), me.ca_sha256.len()), (36, 64), "{me:?}");
    let kinds = blue.kinds(false).await.unwrap();
    for version in ["v1", "v1beta1"] {
        assert!(
            kinds.iter().any(|k| k.group == "networking.k8s.io"
                && k.version == version
                && k.kind == "Ingress"),
            "Ingress networking.k8s.io/{version}: every served version is listed, not only the preferred one"
        );
    }
    let deployments = kinds
        .iter()
        .find(|k| k.group == "apps" && k.kind == "Deployment")
        .unwrap();
    let list = blue.list(deployments).await.unwrap();
    assert!(
        list.items
            .iter()
            .all(|o| o["apiVersion"] == "apps/v1" && o["kind"] == "Deployment")
    );
    assert!(!list.resource_version.is_empty());
    let web = blue
        .get(&id("apps/v1", "Deployment", Some("storefront"), "web"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(web["spec"]["replicas"], 3);
    assert_eq!(
        blue.get(&id("apps/v1", "Deployment", Some("storefront"), "nothing"))
            .await
            .unwrap(),
        None
    );
    let unserved = id(
        "gateway.networking.k8s.io/v1",
        "Gateway",
        Some("storefront"),
        "x",
    );
    assert_eq!(blue.get(&unserved).await.unwrap(), None);
    let custom = blue
        .get(&id(
            "shop.test/v1",
            "Promotion",
            Some("storefront"),
            "summer",
        ))
        .await
        .unwrap();
    assert!(custom.is_some(), "custom resources are read by kind alone");
}

async fn store_and_inventory(world: &World, spec: &Spec, base: &Path) {
    let kops = live::read_state_store(
        spec.blue.state_store.as_deref().unwrap(),
        base,
        &spec.blue.cluster,
        &spec.aws,
    )
    .await
    .unwrap();
    assert_eq!(kops.cluster.unwrap()["metadata"]["name"], "shop.test");
    assert!(kops.instance_groups.len() >= 3);
    assert!(kops.kops_version.is_some());
    assert!(
        kops.sources
            .values()
            .all(|s| s.starts_with("s3://") && !s.contains("/pki/"))
    );

    let who = world.cloud.identity().await.unwrap();
    assert_eq!(
        (who.account.as_str(), who.region.as_str()),
        ("000000000000", "eu-west-1")
    );
    let all = world.cloud.inventory("shop.test").await.unwrap();
    let vpc = all.vpc.expect("the VPC of the kops cluster");
    assert!(!vpc.cidrs.is_empty());
    assert!(
        !all.subnets.is_empty()
            && all
                .subnets
                .iter()
                .all(|s| s.vpc == vpc.id && s.free_ips > 0)
    );
    assert!(
        all.security_groups
            .iter()
            .any(|g| g.name == "nodes.shop.test" && !g.ingress.is_empty())
    );
    let nodes = all
        .roles
        .iter()
        .find(|r| r.name == "nodes.shop.test")
        .expect("kops's node role");
    assert!(nodes.trust["Statement"].is_array(), "{}", nodes.trust);
    assert!(
        !nodes.inline_policies.is_empty() && nodes.inline_policies.values().all(Value::is_object)
    );
    assert!(all.clusters.is_empty());
    assert!(
        world
            .cloud
            .inventory("no.such.cluster")
            .await
            .unwrap()
            .vpc
            .is_none()
    );
}

async fn names_and_hosts(world: &World) {
    let answer = world.probe.resolve("www.shop.test", "A").await.unwrap();
    assert_eq!(answer.values, ["203.0.113.10"]);
    assert!((1..=20).contains(&answer.ttl), "{answer:?}");
    let nothing = world
        .probe
        .resolve("nothing.shop.test", "A")
        .await
        .unwrap_err();
    assert_eq!(nothing.class, Class::NotFound);
    let ask = |host: &str, via: Via| HttpProbe {
        method: "GET".into(),
        host: host.into(),
        path: "/".into(),
        body: None,
        via,
    };
    let answer = world
        .probe
        .http(&ask("www.shop.test", Via::Dns))
        .await
        .unwrap();
    assert_eq!(
        (answer.status, answer.headers["x-served-by"].as_str()),
        (200, "blue")
    );
    assert_eq!(answer.address, "203.0.113.10");
    let orders = world
        .kube(Side::Blue)
        .get(&id("v1", "Service", Some("orders"), "orders"))
        .await
        .unwrap()
        .unwrap();
    let lb = orders["status"]["loadBalancer"]["ingress"][0]["hostname"]
        .as_str()
        .unwrap()
        .to_string();
    let through = world
        .probe
        .http(&ask("orders.shop.test", Via::LoadBalancer(lb.clone())))
        .await
        .unwrap();
    assert_eq!((through.status, through.address), (200, lb));
    assert_eq!(
        world
            .probe
            .http(&ask("orders.shop.test", Via::Dns))
            .await
            .unwrap()
            .status,
        200
    );
}

fn a(name: &str, value: &str) -> RecordSet {
    RecordSet {
        name: name.into(),
        rtype: "A".into(),
        ttl: Some(20),
        values: vec![value.into()],
        alias: None,
        set_identifier: None,
        routing: BTreeMap::new(),
    }
}

async fn route_53(world: &World) {
    let zones = world.dns.zones().await.unwrap();
    let zone = zones
        .iter()
        .find(|z| z.name == "shop.test." && !z.private)
        .expect("the public zone");
    let records = world.dns.records(&zone.id).await.unwrap();
    assert!(records.iter().any(|r| r.rtype == "A"
        && r.name == "orders.shop.test."
        && r.alias.is_some()
        && r.ttl.is_none()));
    assert!(records.iter().any(|r| r.rtype == "MX"));
    let (one, two) = (
        a("*.crossfade.shop.test.", "192.0.2.1"),
        a("two.crossfade.shop.test.", "192.0.2.2"),
    );
    let change = world
        .dns
        .change(
            &zone.id,
            &[Change::Create(one.clone()), Change::Create(two.clone())],
            "test",
        )
        .await
        .unwrap();
    let start = Instant::now();
    while !world.dns.in_sync(&change).await.unwrap() {
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "the change never reached the name servers"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let listed = world.dns.records(&zone.id).await.unwrap();
    assert!(
        listed.contains(&one) && listed.contains(&two),
        "a wildcard comes back as it was written"
    );
    // Somebody changed one of them since: the whole batch is refused, and says which record.
    let stale = a("two.crossfade.shop.test.", "192.0.2.99");
    let refusal = world
        .dns
        .change(
            &zone.id,
            &[Change::Delete(one.clone()), Change::Delete(stale)],
            "test",
        )
        .await
        .unwrap_err();
    assert_eq!(refusal.class, Class::Conflict);
    assert!(
        refusal.message.contains("two.crossfade.shop.test"),
        "{}",
        refusal.message
    );
    assert_eq!(world.dns.records(&zone.id).await.unwrap(), listed);
    world
        .dns
        .change(
            &zone.id,
            &[Change::Delete(one), Change::Delete(two)],
            "test",
        )
        .await
        .unwrap();
    // Enough records for three pages, with weighted sets across the page ends.
    let many: Vec<RecordSet> = (0..350)
        .flat_map(|n| {
            ["blue", "green"].map(|side| RecordSet {
                set_identifier: Some(side.into()),
                routing: BTreeMap::from([(
                    "Weight".to_string(),
                    json!(if side == "blue" { 100 } else { 0 }),
                )]),
                ..a(&format!("w{n:03}.crossfade.shop.test."), "192.0.2.7")
            })
        })
        .collect();
    for part in many.chunks(400) {
        let batch: Vec<Change> = part.iter().cloned().map(Change::Create).collect();
        world.dns.change(&zone.id, &batch, "test").await.unwrap();
    }
    let all = world.dns.records(&zone.id).await.unwrap();
    let weighted: Vec<&RecordSet> = all
        .iter()
        .filter(|r| r.name.contains(".crossfade."))
        .collect();
    assert_eq!(
        weighted.len(),
        many.len(),
        "no record lost or doubled at a page's end"
    );
    assert!(many.iter().all(|m| weighted.contains(&m)));
    for part in many.chunks(400) {
        let batch: Vec<Change> = part.iter().cloned().map(Change::Delete).collect();
        world.dns.change(&zone.id, &batch, "test").await.unwrap();
    }
    assert_eq!(world.dns.records(&zone.id).await.unwrap(), records);
    assert_eq!(
        world
            .dns
            .records("Z00000000000000000000")
            .await
            .unwrap_err()
            .class,
        Class::NotFound
    );
}

async fn databases(world: &World) {
    let blue = world.data.state("orders", Side::Blue).await.unwrap();
    assert!(blue.writable && blue.has_schema, "{blue:?}");
    let green = world.data.state("orders", Side::Green).await.unwrap();
    assert!(!green.writable && !green.has_schema, "{green:?}");
}

async fn found(world: &World, resource: &Resource) -> Option<Found> {
    world
        .cloud
        .find(resource)
        .await
        .unwrap_or_else(|e| panic!("find {}: {e}", resource.id()))
}

/// Creates, waits until ready, checks that it is ours and as asked; twice does no harm.
async fn make(world: &World, resource: &Resource, tagged: bool) -> Found {
    assert_eq!(
        found(world, resource).await,
        None,
        "{} is there already",
        resource.id()
    );
    let start = Instant::now();
    while let Err(e) = world.cloud.create(resource, RUN).await {
        assert!(
            e.is_transient() && start.elapsed() < Duration::from_secs(30),
            "create {}: {e}",
            resource.id()
        );
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    loop {
        match found(world, resource).await {
            Some(f) if f.status == Status::Ready => {
                assert!(f.equal, "{} is not as asked for: {f:?}", resource.id());
                if tagged {
                    assert_eq!(f.run.as_deref(), Some(RUN), "{}", resource.id());
                }
                return f;
            }
            Some(Found {
                status: Status::Failed(why),
                ..
            }) => panic!("{}: {why}", resource.id()),
            _ => {}
        }
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "{} never became ready",
            resource.id()
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn unmake(world: &World, resource: &Resource) {
    let start = Instant::now();
    loop {
        match world.cloud.delete(resource).await {
            Ok(()) if found(world, resource).await.is_none() => break,
            Ok(()) => {}
            Err(e) if e.is_transient() => {}
            Err(e) => panic!("delete {}: {e}", resource.id()),
        }
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "{} is not gone",
            resource.id()
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    world
        .cloud
        .delete(resource)
        .await
        .expect("deleting what is gone is fine");
}

fn role(name: &str, service: &str, policies: &[&str]) -> Resource {
    Resource::Role {
        name: name.into(),
        trust: json!({"Version": "2012-10-17", "Statement": [
            {"Effect": "Allow", "Principal": {"Service": service}, "Action": ["sts:AssumeRole", "sts:TagSession"]}]}),
        managed_policies: policies
            .iter()
            .map(|p| format!("arn:aws:iam::aws:policy/{p}"))
            .collect(),
        inline_policies: BTreeMap::from([(
            "own".to_string(),
            json!({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::x/*"}]}),
        )]),
        boundary: None,
        path: None,
    }
}

async fn green_is_made_used_and_unmade(world: &World, spec: &Spec) {
    let early = world.green.version().await.unwrap_err();
    assert_eq!(early.class, Class::NotReady, "{early}");
    let all = world.cloud.inventory("shop.test").await.unwrap();
    let mut zones = BTreeMap::new();
    for s in &all.subnets {
        zones.entry(s.zone.clone()).or_insert(s.id.clone());
    }
    let subnets: Vec<String> = zones.into_values().collect();
    let name = spec.green.name.clone();
    let who = &all.identity;
    let arn = |r: &str| format!("arn:aws:iam::{}:role/{r}", who.account);

    let cluster_role = role(
        "shop-green-cluster",
        "eks.amazonaws.com",
        &["AmazonEKSClusterPolicy"],
    );
    let node_role = role(
        "shop-green-node",
        "ec2.amazonaws.com",
        &[
            "AmazonEKSWorkerNodePolicy",
            "AmazonEC2ContainerRegistryPullOnly",
        ],
    );
    make(world, &cluster_role, true).await;
    make(world, &node_role, true).await;
    world
        .cloud
        .create(&node_role, RUN)
        .await
        .expect("a role that is ours is completed, not refused");
    assert_eq!(
        world
            .cloud
            .create(&node_role, "another run")
            .await
            .unwrap_err()
            .class,
        Class::AlreadyExists
    );

    let cluster = Resource::Cluster {
        name: name.clone(),
        version: spec.green.version.clone(),
        role_arn: arn("shop-green-cluster"),
        subnets: subnets.clone(),
        service_cidr: Some("10.100.0.0/16".into()),
        public_endpoint: true,
        private_endpoint: true,
        endpoint_cidrs: vec![],
        logging: vec![],
        kms_key: None,
        deletion_protection: false,
        support_type: "STANDARD".into(),
        security_groups: vec![],
    };
    let made = make(world, &cluster, true).await;
    for key in ["issuer", "endpoint", "caData", "securityGroup"] {
        assert!(!made.attributes[key].is_empty(), "{key}");
    }
    assert!(!made.attributes["issuer"].starts_with("https://"));
    let oidc = Resource::OidcProvider {
        issuer: format!("https://{}", made.attributes["issuer"]),
        client_ids: vec!["sts.amazonaws.com".into()],
    };
    make(world, &oidc, true).await;
    let entry = Resource::AccessEntry {
        cluster: name.clone(),
        principal: who.arn.clone(),
        groups: vec![],
        policy: Some("AmazonEKSClusterAdminPolicy".into()),
        namespaces: vec![],
    };
    assert_eq!(
        world.green.kinds(true).await.unwrap_err().class,
        Class::Unauthorized,
        "nobody gets in without an entry"
    );
    make(world, &entry, true).await;
    let addon = Resource::Addon {
        cluster: name.clone(),
        name: "vpc-cni".into(),
        version: None,
        service_account_role: None,
        configuration: None,
        conflicts: "OVERWRITE".into(),
    };
    make(world, &addon, true).await;
    let group = Resource::NodeGroup {
        cluster: name.clone(),
        name: "nodes".into(),
        role_arn: arn("shop-green-node"),
        subnets,
        instance_types: vec!["m5.large".into()],
        ami_type: "AL2023_x86_64_STANDARD".into(),
        capacity_type: "SPOT".into(),
        min: 1,
        max: 4,
        desired: 2,
        disk_gib: 30,
        labels: BTreeMap::from([("workload".to_string(), "spot".to_string())]),
        taints: vec![Taint {
            key: "workload".into(),
            value: "spot".into(),
            effect: "NoSchedule".into(),
        }],
        launch_template: None,
        max_unavailable: None,
        repair: false,
    };
    make(world, &group, true).await;
    assert_eq!(
        world
            .cloud
            .create(&group, "another run")
            .await
            .unwrap_err()
            .class,
        Class::AlreadyExists
    );
    let nodes_group = all
        .security_groups
        .iter()
        .find(|g| g.name == "nodes.shop.test")
        .unwrap();
    let rule = Resource::SecurityGroupRule {
        group: nodes_group.id.clone(),
        protocol: "tcp".into(),
        from_port: 5432,
        to_port: 5432,
        source_group: made.attributes["securityGroup"].clone(),
        description: "crossfade shop: as the nodes of blue".into(),
    };
    make(world, &rule, false).await;
    let tag = Resource::Tag {
        resource: all.subnets[0].id.clone(),
        key: format!("kubernetes.io/cluster/{name}"),
        value: "shared".into(),
    };
    make(world, &tag, false).await;
    world
        .cloud
        .create(&tag, RUN)
        .await
        .expect("the same tag again");
    let other_value = match &tag {
        Resource::Tag { resource, key, .. } => Resource::Tag {
            resource: resource.clone(),
            key: key.clone(),
            value: "owned".into(),
        },
        _ => unreachable!(),
    };
    assert!(!found(world, &other_value).await.unwrap().equal);
    assert_eq!(
        world
            .cloud
            .create(&other_value, RUN)
            .await
            .unwrap_err()
            .class,
        Class::Conflict
    );
    let trust = Resource::TrustStatement {
        role: "shop-mailer".into(),
        sid: "CrossfadeShopGreen".into(),
        statement: json!({"Effect": "Allow", "Principal": {"Federated": format!("arn:aws:iam::{}:oidc-provider/{}", who.account, made.attributes["issuer"])},
            "Action": "sts:AssumeRoleWithWebIdentity",
            "Condition": {"StringEquals": {format!("{}:aud", made.attributes["issuer"]): "sts.amazonaws.com"}}}),
    };
    make(world, &trust, false).await;

    green_is_used(world).await;

    for resource in [
        &trust,
        &tag,
        &rule,
        &group,
        &addon,
        &entry,
        &oidc,
        &cluster,
        &node_role,
        &cluster_role,
    ] {
        unmake(world, resource).await;
    }
    let after = world.cloud.inventory("shop.test").await.unwrap();
    assert_eq!(
        after.roles, all.roles,
        "the trust policies are as they were"
    );
    assert_eq!(after.security_groups, all.security_groups);
    assert_eq!(
        after.subnets.iter().map(|s| &s.tags).collect::<Vec<_>>(),
        all.subnets.iter().map(|s| &s.tags).collect::<Vec<_>>()
    );
    assert!(after.clusters.is_empty() && after.oidc_providers == all.oidc_providers);
}

async fn green_is_used(world: &World) {
    let green = world.kube(Side::Green);
    assert_eq!(green.version().await.unwrap().minor, 36);
    assert_ne!(
        green.identity().await.unwrap().uid,
        world.blue.identity().await.unwrap().uid
    );
    let plain = CreateOptions::default();
    let config = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "many", "name": name}, "data": {"k": "v"}});
    assert_eq!(
        green
            .create(&config("early"), plain)
            .await
            .unwrap_err()
            .class,
        Class::NotFound,
        "no such namespace"
    );
    let ns = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "many"}});
    green.create(&ns, plain).await.unwrap();
    assert_eq!(
        green.create(&ns, plain).await.unwrap_err().class,
        Class::AlreadyExists
    );

    // No more at once than a replay has in flight: the server turns away what its queues do not hold (429), and the
    // waiting after it is the step's, not this layer's.
    futures::stream::iter(0..1_100)
        .map(|n| {
            let object = config(&format!("c{n}"));
            async move { green.create(&object, plain).await.unwrap() }
        })
        .buffer_unordered(32)
        .for_each(|_| std::future::ready(()))
        .await;
    let kind: ApiKind = green
        .kinds(false)
        .await
        .unwrap()
        .into_iter()
        .find(|k| k.kind == "ConfigMap")
        .unwrap();
    let listed = green.list(&kind).await.unwrap();
    let ours: std::collections::BTreeSet<&str> = listed
        .items
        .iter()
        .filter(|o| o["metadata"]["namespace"] == "many")
        .filter_map(|o| o["metadata"]["name"].as_str())
        .filter(|n| n.starts_with('c'))
        .collect();
    assert_eq!(ours.len(), 1_100, "three pages, none lost or doubled");

    let first = id("v1", "ConfigMap", Some("many"), "c0");
    let live = green.get(&first).await.unwrap().unwrap();
    assert_eq!(
        live["metadata"]["managedFields"][0]["manager"],
        live::FIELD_MANAGER
    );
    let version = live["metadata"]["resourceVersion"].clone();
    let changed = green
        .merge(
            &first,
            &json!({"metadata": {"resourceVersion": version}, "data": {"k": "w"}}),
        )
        .await
        .unwrap();
    assert_eq!(changed["data"]["k"], "w");
    let stale = green
        .merge(
            &first,
            &json!({"metadata": {"resourceVersion": version}, "data": {"k": "x"}}),
        )
        .await
        .unwrap_err();
    assert_eq!(stale.class, Class::Conflict);
    let absent = id("v1", "ConfigMap", Some("many"), "absent");
    assert_eq!(
        green
            .merge(&absent, &json!({"data": {}}))
            .await
            .unwrap_err()
            .class,
        Class::NotFound
    );

    green
        .create(
            &config("dry"),
            CreateOptions {
                dry_run: true,
                strict: false,
            },
        )
        .await
        .unwrap();
    assert_eq!(
        green
            .get(&id("v1", "ConfigMap", Some("many"), "dry"))
            .await
            .unwrap(),
        None
    );
    let mut odd = config("odd");
    odd["dta"] = json!({"k": "v"});
    let refusal = green
        .create(
            &odd,
            CreateOptions {
                dry_run: false,
                strict: true,
            },
        )
        .await
        .unwrap_err();
    assert_eq!(refusal.class, Class::Refused);
    assert!(refusal.message.contains("dta"), "{}", refusal.message);

    let uid = live["metadata"]["uid"].as_str().unwrap();
    let wrong = green
        .delete(&first, "00000000-0000-0000-0000-000000000000")
        .await
        .unwrap_err();
    assert_eq!(wrong.class, Class::Conflict, "{wrong}");
    green.delete(&first, uid).await.unwrap();
    assert_eq!(
        green.delete(&first, uid).await.unwrap_err().class,
        Class::NotFound
    );

    // A kind that did not exist when discovery was read.
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "promotions.shop.test"},
        "spec": {"group": "shop.test", "scope": "Namespaced", "names": {"kind": "Promotion", "plural": "promotions"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}});
    let promotion = json!({"apiVersion": "shop.test/v1", "kind": "Promotion", "metadata": {"namespace": "many", "name": "summer"}, "percent": 20});
    let early = green.create(&promotion, plain).await.unwrap_err();
    assert_eq!(early.class, Class::NotReady, "{early}");
    green.create(&crd, plain).await.unwrap();
    let start = Instant::now();
    loop {
        match green.create(&promotion, plain).await {
            Ok(made) => break assert_eq!(made["percent"], 20),
            Err(e) => assert!(
                matches!(e.class, Class::NotReady | Class::NotFound)
                    && start.elapsed() < Duration::from_secs(20),
                "{e}"
            ),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
