use super::*;
use crate::spec;
use crate::world::cloud::{CloudIdentity, Found, Inventory, Resource};
use crate::world::dns::{Change, RecordSet, Zone};
use crate::world::kube::{ClusterIdentity, CreateOptions, KubeVersion, Listing};
use crate::world::{data, probe};
use async_trait::async_trait;
use serde_json::json;
use std::sync::Arc;

/// A small world that can only be read: every write panics the test.
struct Small {
    kinds: Result<Vec<ApiKind>, Class>,
    up: bool,
}

fn kind(api: &str, kind: &str, plural: &str) -> ApiKind {
    let (group, version) = api.split_once('/').unwrap_or(("", api));
    ApiKind {
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        plural: plural.into(),
        namespaced: true,
        verbs: vec!["list".into(), "create".into()],
    }
}

fn down<T>() -> world::Result<T> {
    Err(world::Error::new(
        Class::Unreachable,
        "somewhere",
        "connection refused",
    ))
}

#[async_trait]
impl Kube for Small {
    async fn version(&self) -> world::Result<KubeVersion> {
        Ok(KubeVersion {
            git_version: "v1.21.14".into(),
            minor: 21,
        })
    }
    async fn identity(&self) -> world::Result<ClusterIdentity> {
        Ok(ClusterIdentity {
            uid: "u".into(),
            ca_sha256: "c".into(),
        })
    }
    async fn kinds(&self, _: bool) -> world::Result<Vec<ApiKind>> {
        self.kinds
            .clone()
            .map_err(|class| world::Error::new(class, "https://blue", "connection refused"))
    }
    async fn list(&self, k: &ApiKind) -> world::Result<Listing> {
        let item = |name: &str| json!({"apiVersion": k.api_version(), "kind": k.kind, "metadata": {"namespace": "n", "name": name}, "data": {"a": "Q0FOQVJZ"}});
        match k.plural.as_str() {
            "events" => panic!("Events are never listed"),
            "forbidden" => Err(world::Error::new(
                Class::Unauthorized,
                "x",
                "forbidden is forbidden",
            )),
            _ => Ok(Listing {
                items: vec![item("b"), item("a")],
                resource_version: "1".into(),
            }),
        }
    }
    async fn get(&self, _: &ObjectId) -> world::Result<Option<Value>> {
        Ok(None)
    }
    async fn create(&self, _: &Value, _: CreateOptions) -> world::Result<Value> {
        panic!("discover writes nothing")
    }
    async fn merge(&self, _: &ObjectId, _: &Value) -> world::Result<Value> {
        panic!("discover writes nothing")
    }
    async fn delete(&self, _: &ObjectId, _: &str) -> world::Result<()> {
        panic!("discover writes nothing")
    }
}

#[async_trait]
impl crate::world::dns::Dns for Small {
    async fn zones(&self) -> world::Result<Vec<Zone>> {
        if !self.up {
            return down();
        }
        let zone = |id: &str, name: &str| Zone {
            id: id.into(),
            name: name.into(),
            private: false,
        };
        Ok(vec![zone("Z2", "shop.test."), zone("Z1", "other.test.")])
    }
    async fn records(&self, _: &str) -> world::Result<Vec<RecordSet>> {
        Ok(vec![])
    }
    async fn change(&self, _: &str, _: &[Change], _: &str) -> world::Result<String> {
        panic!("discover writes nothing")
    }
    async fn in_sync(&self, _: &str) -> world::Result<bool> {
        Ok(true)
    }
}

#[async_trait]
impl crate::world::cloud::Cloud for Small {
    async fn assumable(&self, _: &str) -> world::Result<Option<String>> {
        down()
    }
    async fn identity(&self) -> world::Result<CloudIdentity> {
        down()
    }
    async fn find(&self, _: &Resource) -> world::Result<Option<Found>> {
        down()
    }
    async fn create(&self, _: &Resource, _: &str) -> world::Result<()> {
        panic!("discover writes nothing")
    }
    async fn delete(&self, _: &Resource) -> world::Result<()> {
        panic!("discover writes nothing")
    }
    async fn inventory(&self, _: &str) -> world::Result<Inventory> {
        down()
    }
}

#[async_trait]
impl crate::world::probe::Probe for Small {
    async fn http(&self, _: &probe::HttpProbe) -> world::Result<probe::HttpAnswer> {
        panic!("discover sends no probe")
    }
    async fn resolve(&self, _: &str, _: &str) -> world::Result<probe::DnsAnswer> {
        panic!("discover sends no probe")
    }
}

#[async_trait]
impl data::Data for Small {
    async fn state(&self, _: &str, _: Side) -> world::Result<data::DatabaseState> {
        panic!("discover asks no database")
    }
    async fn set_writable(&self, _: &str, _: Side, _: bool) -> world::Result<()> {
        panic!("discover asks no database")
    }
    async fn probe_write(&self, _: &str, _: Side) -> world::Result<bool> {
        panic!("discover asks no database")
    }
    async fn start_stream(&self, _: &str, _: Side, _: bool) -> world::Result<()> {
        panic!("discover asks no database")
    }
    async fn stream(&self, _: &str, _: Side) -> world::Result<data::StreamState> {
        panic!("discover asks no database")
    }
    async fn stop_stream(&self, _: &str, _: Side) -> world::Result<()> {
        panic!("discover asks no database")
    }
    async fn copy_sequences(&self, _: &str, _: Side) -> world::Result<()> {
        panic!("discover asks no database")
    }
    async fn tables(&self, _: &str, _: Side) -> world::Result<Vec<data::TableState>> {
        panic!("discover asks no database")
    }
}

impl world::Clock for Small {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::UNIX_EPOCH
    }
}

fn small(blue: Result<Vec<ApiKind>, Class>, up: bool) -> World {
    let other = Arc::new(Small {
        kinds: Err(Class::NotReady),
        up,
    });
    World {
        blue: Arc::new(Small { kinds: blue, up }),
        green: other.clone(),
        dns: other.clone(),
        cloud: other.clone(),
        terraform: Arc::new(crate::world::terraform::Without),
        data: other.clone(),
        probe: other.clone(),
        clock: other,
    }
}

fn wish() -> Spec {
    spec::parse(
        "apiVersion: crossfade.dev/v1alpha1\nkind: Migration\nname: shop\nblue: {cluster: shop.test}\ngreen: {name: shop-green}\ndns: {zones: [shop.test, gone.test]}\n",
        "m.yaml",
    )
    .expect("good")
}

fn key() -> Key {
    Key::from_bytes([3; 32])
}

fn cluster_doc(cloud: &str) -> Result<Kops> {
    Ok(Kops {
        cluster: Some(
            json!({"apiVersion": "kops.k8s.io/v1alpha2", "kind": "Cluster", "metadata": {"name": "shop.test"}, "spec": {"cloudProvider": cloud}}),
        ),
        ..Kops::default()
    })
}

#[tokio::test]
async fn what_cannot_be_read_is_said_and_the_rest_is_kept_sorted_with_secrets_masked() {
    let world = small(
        Ok(vec![
            kind("v1", "Secret", "secrets"),
            kind("extensions/v1beta1", "Ingress", "ingresses"),
            kind("networking.k8s.io/v1", "Ingress", "ingresses"),
            kind("v1", "Event", "events"),
            kind("x.test/v1", "Forbidden", "forbidden"),
        ]),
        true,
    );
    let s = live(&world, &wish(), cluster_doc("aws"), &key())
        .await
        .expect("read");
    let ids: Vec<String> = s
        .blue
        .objects
        .iter()
        .filter_map(ObjectId::of)
        .map(|id| format!("{} {id}", id.api_version))
        .collect();
    assert_eq!(
        ids,
        [
            "networking.k8s.io/v1 ingress/n/a",
            "networking.k8s.io/v1 ingress/n/b",
            "v1 secret/n/a",
            "v1 secret/n/b"
        ]
    );
    let text = serde_json::to_string(&s).expect("json");
    assert!(
        !text.contains(r#""a":"Q0FOQVJZ"},"kind":"Secret""#) && text.contains("hmac-sha256:"),
        "{text}"
    );
    assert_eq!(s.blue.kinds.len(), 5, "discovery is kept whole");
    assert_eq!(
        s.zones
            .iter()
            .map(|z| z.zone.id.as_str())
            .collect::<Vec<_>>(),
        ["Z2"],
        "only declared zones"
    );
    assert!(
        s.green.is_none(),
        "a green that does not exist yet is no gap"
    );
    let gaps: Vec<&str> = s.not_checked.iter().map(|n| n.what.as_str()).collect();
    assert_eq!(
        gaps,
        [
            "aws.inventory",
            "blue.kind/forbidden.x.test",
            "zone/gone.test"
        ]
    );
}

#[tokio::test]
async fn when_nothing_answers_the_first_reason_is_the_error() {
    let world = small(Err(Class::Unreachable), false);
    let e = live(&world, &wish(), cluster_doc("aws"), &key())
        .await
        .expect_err("nothing answered");
    assert_eq!(e.kind, Kind::Unreachable);
    assert_eq!(e.at, "https://blue");
}

#[tokio::test]
async fn a_kops_cluster_of_another_cloud_is_refused_by_name() {
    let world = small(Ok(vec![]), true);
    let e = live(&world, &wish(), cluster_doc("gce"), &key())
        .await
        .expect_err("another cloud");
    assert_eq!(e.kind, Kind::BadInput);
    assert!(e.message.contains("Google Cloud"), "{}", e.message);
}
