//! Load balancers: who has which address, and what answers there.

use super::state::{Ev, State};
use super::store::{Key, key_of};
use crate::object::{Side, uid};
use crate::snapshot::model::Snapshot;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Address of blue's ingress controller when the snapshot does not say.
const BLUE_INGRESS: &str = "203.0.113.10";
/// Address that green's ingress controller gets.
const GREEN_INGRESS: &str = "198.51.100.10";

/// What answers behind an address for a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// Ready pods of this service.
    Served(Side, String),
    /// The load balancer is there, its service has no ready pod: 503.
    NoPods(Side, String),
    /// The load balancer does not know the host: 404.
    NoHost(Side),
    /// Nothing answers at this address.
    Nobody,
}

#[derive(Clone, Debug)]
enum Front {
    Service(Key),
    Ingress,
}

/// Addresses of load balancers.
#[derive(Clone)]
pub(super) struct LbState {
    fronts: BTreeMap<String, (Side, Front)>,
    region: String,
    /// Blue's ingress controller publishes a host name (an ELB), so green's will too.
    ingress_by_name: bool,
    cache: BTreeMap<(String, String), Route>,
    seen: (u64, u64),
    /// Moves when an address appears or goes.
    generation: u64,
}

impl LbState {
    pub fn new(snapshot: &Snapshot) -> Self {
        LbState {
            fronts: BTreeMap::new(),
            region: snapshot
                .aws
                .as_ref()
                .map_or_else(|| "eu-west-1".into(), |a| a.identity.region.clone()),
            ingress_by_name: snapshot.blue.of_kind("Ingress").any(|i| {
                i.pointer("/status/loadBalancer/ingress/0/hostname")
                    .is_some()
            }),
            cache: BTreeMap::new(),
            seen: (0, 0),
            generation: 1,
        }
    }
}

/// Addresses in an object's load balancer status.
pub(super) fn addresses(object: &Value) -> Vec<String> {
    object
        .pointer("/status/loadBalancer/ingress")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|i| i["hostname"].as_str().or(i["ip"].as_str()))
        .map(normal)
        .collect()
}

/// One spelling for an address: lower case, no final dot, without the prefix that Route 53's console adds to aliases.
pub(super) fn normal(address: &str) -> String {
    let a = address.trim_end_matches('.').to_lowercase();
    a.strip_prefix("dualstack.").map(String::from).unwrap_or(a)
}

/// `a<uid>-<number>.<region>.elb.amazonaws.com`, as AWS names a Service's load balancer and as the bench does.
pub(super) fn cloud_host(uid: &str, region: &str) -> String {
    let mut name = format!("a{}", uid.replace('-', ""));
    name.truncate(32);
    let number = Sha256::digest(uid.as_bytes())
        .iter()
        .take(4)
        .fold(0_u32, |n, b| (n << 8) | u32::from(*b));
    format!("{name}-{number}.{region}.elb.amazonaws.com")
}

/// Host names that an object asks for.
fn names_of(object: &Value) -> Vec<String> {
    let mut names: Vec<String> = object["spec"]["rules"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|r| r["host"].as_str())
        .map(String::from)
        .collect();
    for key in [
        "external-dns.alpha.kubernetes.io/hostname",
        "external-dns.kubernetes.io/hostname",
    ] {
        let listed = crate::object::annotation(object, key).unwrap_or("");
        names.extend(
            listed
                .split(',')
                .map(|n| n.trim().to_owned())
                .filter(|n| !n.is_empty()),
        );
    }
    names
}

/// By it the cloud controller deletes the load balancer before the Service goes.
pub(super) const CLEANUP: &str = "service.kubernetes.io/load-balancer-cleanup";

fn wants_lb(object: &Value) -> bool {
    object["kind"] == json!("Ingress") || object["spec"]["type"] == json!("LoadBalancer")
}

impl State {
    /// At the start: keeps the addresses that the snapshot shows, gives the missing ones.
    pub fn adopt_lb(&mut self, side: Side, key: &Key) {
        let object = &self.store(side).objects[key];
        if !wants_lb(object) {
            return;
        }
        if addresses(object).is_empty() && side == Side::Blue {
            // A dump without status: the zone says where the names of this object lead.
            let known = names_of(object)
                .iter()
                .find_map(|n| self.look_up(n))
                .map(|f| f.0);
            if let Some(address) = known {
                let field = if address.parse::<std::net::IpAddr>().is_ok() {
                    "ip"
                } else {
                    "hostname"
                };
                self.store_mut(side).update(key, |o| {
                    o["status"]["loadBalancer"] = json!({"ingress": [{field: address}]});
                });
            }
        }
        if addresses(&self.store(side).objects[key]).is_empty() {
            self.load_balancer(side, key);
        } else {
            self.register_front(side, key);
        }
    }

    /// A client wrote a Service or Ingress.
    pub fn lb_wanted(&mut self, side: Side, key: &Key) {
        let Some(object) = self.store(side).objects.get(key) else {
            return;
        };
        if wants_lb(object) && addresses(object).is_empty() {
            let after = self.secs(if key.1 == "Ingress" { 5 } else { 60 });
            self.at(after, Ev::LoadBalancer(side, key.clone()));
        }
    }

    /// The cloud has made the load balancer; its controller writes the status.
    pub fn load_balancer(&mut self, side: Side, key: &Key) {
        let Some(object) = self.store(side).objects.get(key) else {
            return;
        };
        if !wants_lb(object) || !addresses(object).is_empty() {
            return;
        }
        let id = uid(object).unwrap_or("").to_owned();
        let entry = if key.1 == "Ingress" && !self.lb.ingress_by_name {
            json!({"ip": if side == Side::Blue { BLUE_INGRESS } else { GREEN_INGRESS }})
        } else if key.1 == "Ingress" {
            let pin = self.store(side).identity.uid.clone();
            json!({"hostname": cloud_host(&pin, &self.lb.region)})
        } else {
            json!({"hostname": cloud_host(&id, &self.lb.region)})
        };
        self.store_mut(side).update(key, |o| {
            o["status"]["loadBalancer"] = json!({"ingress": [entry]});
            if o["kind"] == json!("Service") {
                o["metadata"]["finalizers"] = json!([CLEANUP]);
            }
        });
        self.register_front(side, key);
    }

    /// The cloud has deleted the load balancer of a dying Service: its controller lets the object go.
    pub fn load_balancer_gone(&mut self, side: Side, key: &Key) {
        self.store_mut(side).update(key, |o| {
            if let Some(held) = o
                .pointer_mut("/metadata/finalizers")
                .and_then(Value::as_array_mut)
            {
                held.retain(|f| f != CLEANUP);
            }
        });
        self.finish_deletion(side, key);
    }

    fn register_front(&mut self, side: Side, key: &Key) {
        let front = if key.1 == "Ingress" {
            Front::Ingress
        } else {
            Front::Service(key.clone())
        };
        for a in addresses(&self.store(side).objects[key]) {
            // An address belongs to the side that had it first: a copied status gives nobody a load balancer.
            self.lb.fronts.entry(a).or_insert((side, front.clone()));
        }
        self.lb.cache.clear();
        self.lb.generation += 1;
    }

    /// The Service or Ingress went: a Service's balancer goes with it, an ingress controller's stays as long as it routes anything.
    pub fn lb_gone(&mut self, side: Side, key: &Key) {
        let ingresses = self
            .store(side)
            .of_kind("networking.k8s.io", "Ingress")
            .count();
        self.lb.fronts.retain(|_, (s, front)| match front {
            Front::Service(k) => *s != side || k != key,
            Front::Ingress => *s != side || ingresses > 0,
        });
        self.lb.cache.clear();
        self.lb.generation += 1;
    }

    /// Green's cluster is gone and all that hung on it.
    pub fn lb_side_gone(&mut self, side: Side) {
        self.lb.fronts.retain(|_, (s, _)| *s != side);
        self.lb.cache.clear();
        self.lb.generation += 1;
    }

    /// Whether an address belongs to one of the two clusters.
    pub fn is_front(&self, address: &str) -> bool {
        self.lb.fronts.contains_key(address)
    }

    /// Moves whenever the answer of [`State::route`] could.
    pub fn routes_version(&self) -> (u64, u64, u64) {
        (self.blue.routes, self.green.routes, self.lb.generation)
    }

    /// What answers for a host at an address.
    pub fn route(&mut self, address: &str, host: &str) -> Route {
        let now = (self.blue.routes, self.green.routes);
        if self.lb.seen != now {
            self.lb.seen = now;
            self.lb.cache.clear();
        }
        let id = (address.to_owned(), host.to_owned());
        if let Some(known) = self.lb.cache.get(&id) {
            return known.clone();
        }
        let route = self.find_route(address, host);
        self.lb.cache.insert(id, route.clone());
        route
    }

    fn find_route(&self, address: &str, host: &str) -> Route {
        let Some((side, front)) = self.lb.fronts.get(address) else {
            return Route::Nobody;
        };
        let side = *side;
        let service = match front {
            Front::Service(key) => Some((key.2.clone(), key.3.clone())),
            Front::Ingress => self.ingress_backend(side, host),
        };
        match service {
            None => Route::NoHost(side),
            Some((ns, name)) if self.has_ready_pods(side, &ns, &name) => Route::Served(side, name),
            Some((_, name)) => Route::NoPods(side, name),
        }
    }

    /// Service behind a host of an Ingress, in either shape of the backend.
    fn ingress_backend(&self, side: Side, host: &str) -> Option<(String, String)> {
        for (key, ingress) in self.store(side).of_kind("networking.k8s.io", "Ingress") {
            for rule in ingress["spec"]["rules"].as_array().into_iter().flatten() {
                if rule["host"].as_str() != Some(host) {
                    continue;
                }
                let backend = rule.pointer("/http/paths/0/backend")?;
                let name = backend
                    .pointer("/service/name")
                    .or(backend.get("serviceName"))?
                    .as_str()?;
                return Some((key.2.clone(), name.to_owned()));
            }
        }
        None
    }

    fn has_ready_pods(&self, side: Side, ns: &str, service: &str) -> bool {
        let store = self.store(side);
        let Some(s) = store.get("", "Service", ns, service) else {
            return false;
        };
        let selector = &s["spec"]["selector"];
        store
            .pods_in(ns)
            .any(|(_, p)| p.ready && p.selected(selector))
    }

    /// Endpoints of the services that take a pod follow it.
    pub fn sync_endpoints(&mut self, side: Side, ns: &str, pod: &str) {
        let store = self.store(side);
        let Some(info) = store.pods.get(&(ns.to_owned(), pod.to_owned())) else {
            return;
        };
        let services: Vec<Key> = store
            .in_namespace("", "Service", ns)
            .filter(|(_, s)| info.selected(&s["spec"]["selector"]))
            .map(|(k, _)| k.clone())
            .collect();
        for service in services {
            self.sync_service(side, &service);
        }
    }

    /// The Endpoints object of one service.
    pub fn sync_service(&mut self, side: Side, service: &Key) {
        let store = self.store(side);
        let (ns, name) = (&service.2, &service.3);
        let Some(selector) = store.objects.get(service).map(|s| &s["spec"]["selector"]) else {
            return;
        };
        if selector.as_object().is_none_or(|m| m.is_empty()) {
            return;
        }
        let ready: Vec<Value> = store
            .pods_in(ns)
            .filter(|(_, p)| p.ready && p.selected(selector))
            .filter_map(|(pod, _)| store.get("", "Pod", ns, pod))
            .map(|p| json!({"ip": p["status"]["podIP"]}))
            .collect();
        let subsets = if ready.is_empty() {
            json!([])
        } else {
            json!([{"addresses": ready}])
        };
        let stamp = self.stamp();
        let key = key_of("", "Endpoints", ns, name);
        if self.store(side).objects.contains_key(&key) {
            self.store_mut(side)
                .update(&key, |o| o["subsets"] = subsets);
        } else {
            self.store_mut(side).insert(
                json!({"apiVersion":"v1","kind":"Endpoints","metadata":{"name":name,"namespace":ns},"subsets":subsets}),
                &stamp,
            );
        }
    }
}
