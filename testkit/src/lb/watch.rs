//! The controller: Services of type LoadBalancer and Ingresses to balancers, routes and statuses.

use std::collections::HashMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Endpoints, Service, ServicePort};
use k8s_openapi::api::networking::v1::{Ingress, IngressBackend};
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Config, Meter, Routes, Rule, balancer};
use crate::apps::http::HttpServer;

/// The finalizer with which a cloud keeps a Service until its load balancer is gone.
const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";
/// The annotation that names an Ingress's class; `spec.ingressClassName` is its successor.
const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

/// A cloud load balancer of one Service.
struct Cloud {
    host: String,
    address: String,
    namespace: String,
    name: String,
    routes: Arc<Routes>,
    _server: HttpServer,
}

struct Controller {
    config: Config,
    client: kube::Client,
    nginx: Arc<Routes>,
    meter: Meter,
    clouds: HashMap<String, Cloud>,
}

/// What the API server says now.
struct View {
    services: HashMap<(String, String), Service>,
    endpoints: HashMap<(String, String), Endpoints>,
    ingresses: Vec<Ingress>,
}

/// Never ends: a failed poll keeps the routes as they are, as nginx does while the API server is away.
pub(super) async fn run(config: Config, client: kube::Client, nginx: Arc<Routes>, meter: Meter) {
    let mut tick = tokio::time::interval(config.poll);
    let mut controller = Controller {
        config,
        client,
        nginx,
        meter,
        clouds: HashMap::new(),
    };
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let polled = async {
            let view = controller.look().await?;
            controller.ingresses(&view).await?;
            controller.services(&view).await
        };
        if let Err(error) = polled.await {
            tracing::debug!(side = controller.config.side, %error, "load balancers: poll failed");
        }
    }
}

fn key(object: &impl Resource) -> (String, String) {
    let meta = object.meta();
    (
        meta.namespace.clone().unwrap_or_default(),
        meta.name.clone().unwrap_or_default(),
    )
}

/// The host name that AWS would give the load balancer of a Service: `a<uid>-<number>.<region>.elb.amazonaws.com`.
fn cloud_host(uid: &str, region: &str) -> String {
    let mut name = format!("a{}", uid.replace('-', ""));
    name.truncate(32);
    let digest = Sha256::digest(uid.as_bytes());
    let number = digest
        .iter()
        .take(4)
        .fold(0_u32, |number, byte| (number << 8) | u32::from(*byte));
    format!("{name}-{number}.{region}.elb.amazonaws.com")
}

/// Ready `podIP:port` pairs of a Service's port.
fn backends(endpoints: Option<&Endpoints>, port: &ServicePort) -> Vec<String> {
    let mut found = Vec::new();
    for subset in endpoints
        .and_then(|endpoints| endpoints.subsets.as_deref())
        .unwrap_or_default()
    {
        let named = subset.ports.iter().flatten().find(|candidate| {
            candidate.name.as_deref().unwrap_or_default()
                == port.name.as_deref().unwrap_or_default()
        });
        let Some(target) = named else { continue };
        let addresses = subset.addresses.iter().flatten();
        found.extend(addresses.map(|address| format!("{}:{}", address.ip, target.port)));
    }
    found.sort();
    found
}

impl View {
    /// The ready pods behind an Ingress's backend; none when the Service or its port does not exist.
    fn ingress_backends(&self, namespace: &str, backend: &IngressBackend) -> Vec<String> {
        let Some(wanted) = &backend.service else {
            return Vec::new();
        };
        let key = (namespace.to_owned(), wanted.name.clone());
        let Some(service) = self.services.get(&key) else {
            return Vec::new();
        };
        let mut ports = service
            .spec
            .iter()
            .flat_map(|spec| spec.ports.iter().flatten());
        let port = ports.find(|port| match &wanted.port {
            Some(reference) => {
                reference.number == Some(port.port)
                    || (reference.name.is_some() && reference.name == port.name)
            }
            None => true,
        });
        port.map(|port| backends(self.endpoints.get(&key), port))
            .unwrap_or_default()
    }

    fn ingress_rules(&self, ingress: &Ingress) -> Vec<Rule> {
        let namespace = ingress.namespace().unwrap_or_default();
        let Some(spec) = &ingress.spec else {
            return Vec::new();
        };
        let mut rules = Vec::new();
        if let Some(backend) = &spec.default_backend {
            let backends = self.ingress_backends(&namespace, backend);
            rules.push(Rule {
                host: None,
                path: "/".to_owned(),
                exact: false,
                backends,
            });
        }
        for rule in spec.rules.iter().flatten() {
            let host = rule
                .host
                .as_ref()
                .filter(|host| !host.is_empty())
                .map(|host| host.to_ascii_lowercase());
            for path in rule.http.iter().flat_map(|http| http.paths.iter()) {
                rules.push(Rule {
                    host: host.clone(),
                    path: path
                        .path
                        .clone()
                        .filter(|path| !path.is_empty())
                        .unwrap_or_else(|| "/".to_owned()),
                    exact: path.path_type == "Exact",
                    backends: self.ingress_backends(&namespace, &path.backend),
                });
            }
        }
        rules
    }
}

impl Controller {
    async fn look(&self) -> Result<View, kube::Error> {
        let all = ListParams::default().match_any();
        let services: Api<Service> = Api::all(self.client.clone());
        let endpoints: Api<Endpoints> = Api::all(self.client.clone());
        // networking.k8s.io/v1 is served from 1.19 on: the server converts what was written as v1beta1.
        let ingresses: Api<Ingress> = Api::all(self.client.clone());
        let (services, endpoints, ingresses) = tokio::try_join!(
            services.list(&all),
            endpoints.list(&all),
            ingresses.list(&all)
        )?;
        Ok(View {
            services: services
                .items
                .into_iter()
                .map(|service| (key(&service), service))
                .collect(),
            endpoints: endpoints
                .items
                .into_iter()
                .map(|endpoints| (key(&endpoints), endpoints))
                .collect(),
            ingresses: ingresses.items,
        })
    }

    /// Whether nginx serves this Ingress. Without a class it does not, as ingress-nginx does by default.
    fn is_ours(&self, ingress: &Ingress) -> bool {
        let annotation = ingress.annotations().get(CLASS_ANNOTATION);
        let class = ingress
            .spec
            .as_ref()
            .and_then(|spec| spec.ingress_class_name.as_ref());
        annotation
            .or(class)
            .is_some_and(|class| *class == self.config.ingress_class)
    }

    async fn ingresses(&self, view: &View) -> Result<(), kube::Error> {
        let ours: Vec<&Ingress> = view
            .ingresses
            .iter()
            .filter(|ingress| self.is_ours(ingress))
            .collect();
        self.nginx.replace(
            ours.iter()
                .flat_map(|ingress| view.ingress_rules(ingress))
                .collect(),
        );
        let ip = self.config.ingress_ip.to_string();
        for ingress in ours {
            let balancers = ingress
                .status
                .as_ref()
                .and_then(|status| status.load_balancer.as_ref());
            let told = balancers
                .and_then(|status| status.ingress.as_ref())
                .is_some_and(|list| list.len() == 1 && list[0].ip.as_deref() == Some(ip.as_str()));
            if !told && ingress.metadata.deletion_timestamp.is_none() {
                let patch = json!({"status": {"loadBalancer": {"ingress": [{"ip": ip}]}}});
                let (namespace, name) = key(ingress);
                let api: Api<Ingress> = Api::namespaced(self.client.clone(), &namespace);
                tolerate(
                    api.patch_status(&name, &PatchParams::default(), &Patch::Merge(&patch))
                        .await,
                )?;
            }
        }
        Ok(())
    }

    async fn services(&mut self, view: &View) -> Result<(), kube::Error> {
        let mut wanted: HashMap<String, &Service> = HashMap::new();
        for service in view.services.values() {
            let spec = service.spec.as_ref();
            let kind = spec
                .and_then(|spec| spec.type_.as_deref())
                .unwrap_or("ClusterIP");
            let foreign = spec.is_some_and(|spec| spec.load_balancer_class.is_some());
            let Some(uid) = service.uid() else { continue };
            if kind == "LoadBalancer" && !foreign && service.metadata.deletion_timestamp.is_none() {
                wanted.insert(uid, service);
            } else if service
                .finalizers()
                .iter()
                .any(|finalizer| finalizer == FINALIZER)
            {
                self.forget(&uid);
                self.release(service).await?;
            }
        }
        let gone: Vec<String> = self
            .clouds
            .keys()
            .filter(|uid| !wanted.contains_key(*uid))
            .cloned()
            .collect();
        for uid in gone {
            self.forget(&uid);
        }
        for (uid, service) in wanted {
            self.provide(&uid, service, view).await?;
        }
        Ok(())
    }

    async fn provide(
        &mut self,
        uid: &str,
        service: &Service,
        view: &View,
    ) -> Result<(), kube::Error> {
        let (namespace, name) = key(service);
        let api: Api<Service> = Api::namespaced(self.client.clone(), &namespace);
        if !service
            .finalizers()
            .iter()
            .any(|finalizer| finalizer == FINALIZER)
        {
            let mut finalizers = service.finalizers().to_vec();
            finalizers.push(FINALIZER.to_owned());
            // With the version that was read: a list is replaced as a whole, so nobody's entry may be lost.
            let patch = json!({"metadata": {"finalizers": finalizers, "resourceVersion": service.resource_version()}});
            tolerate(
                api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch))
                    .await,
            )?;
        }
        if !self.clouds.contains_key(uid) {
            let routes = Arc::new(Routes::default());
            let server =
                match balancer(routes.clone(), self.config.net.clone(), self.meter.clone()).await {
                    Ok(server) => server,
                    Err(error) => {
                        tracing::warn!(namespace, name, %error, "no listener for a load balancer");
                        return Ok(());
                    }
                };
            let host = cloud_host(uid, &self.config.region);
            let ip = self.config.net.next_balancer_ip();
            self.config.net.register(&ip.to_string(), server.addr());
            self.config.net.register(&host, server.addr());
            self.config.net.set_name(&host, ip);
            let cloud = Cloud {
                host,
                address: ip.to_string(),
                namespace: namespace.clone(),
                name: name.clone(),
                routes,
                _server: server,
            };
            self.clouds.insert(uid.to_owned(), cloud);
        }
        let Some(cloud) = self.clouds.get(uid) else {
            return Ok(());
        };
        let port = service
            .spec
            .as_ref()
            .and_then(|spec| spec.ports.as_ref())
            .and_then(|ports| ports.first());
        let pods = port
            .map(|port| backends(view.endpoints.get(&key(service)), port))
            .unwrap_or_default();
        cloud.routes.replace(vec![Rule {
            host: None,
            path: "/".to_owned(),
            exact: false,
            backends: pods,
        }]);

        let balancers = service
            .status
            .as_ref()
            .and_then(|status| status.load_balancer.as_ref());
        let told = balancers
            .and_then(|status| status.ingress.as_ref())
            .is_some_and(|list| {
                list.len() == 1 && list[0].hostname.as_deref() == Some(cloud.host.as_str())
            });
        if !told {
            let patch =
                json!({"status": {"loadBalancer": {"ingress": [{"hostname": cloud.host}]}}});
            tolerate(
                api.patch_status(&name, &PatchParams::default(), &Patch::Merge(&patch))
                    .await,
            )?;
        }
        Ok(())
    }

    /// The load balancer is gone: its name no longer resolves, its address answers nothing.
    fn forget(&mut self, uid: &str) {
        if let Some(cloud) = self.clouds.remove(uid) {
            tracing::debug!(
                namespace = cloud.namespace,
                name = cloud.name,
                "load balancer removed"
            );
            self.config.net.remove_name(&cloud.host);
            self.config.net.unregister(&cloud.host);
            self.config.net.unregister(&cloud.address);
        }
    }

    /// Lets the Service go (or, when it only changed its type, clears its status).
    async fn release(&self, service: &Service) -> Result<(), kube::Error> {
        let (namespace, name) = key(service);
        let api: Api<Service> = Api::namespaced(self.client.clone(), &namespace);
        if service.metadata.deletion_timestamp.is_none() {
            let patch = json!({"status": {"loadBalancer": Value::Null}});
            tolerate(
                api.patch_status(&name, &PatchParams::default(), &Patch::Merge(&patch))
                    .await,
            )?;
        }
        let finalizers: Vec<&String> = service
            .finalizers()
            .iter()
            .filter(|finalizer| *finalizer != FINALIZER)
            .collect();
        let mut patch = json!({"metadata": {"finalizers": finalizers}});
        if service.metadata.deletion_timestamp.is_some() {
            patch["metadata"]["resourceVersion"] = json!(service.resource_version());
        }
        tolerate(
            api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch))
                .await,
        )
    }
}

/// Somebody else was faster, or the object is gone: the next poll sees it.
fn tolerate<T>(result: Result<T, kube::Error>) -> Result<(), kube::Error> {
    match result {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(objects: Value) -> View {
        let services: Vec<Service> = serde_json::from_value(objects["services"].clone()).unwrap();
        let endpoints: Vec<Endpoints> =
            serde_json::from_value(objects["endpoints"].clone()).unwrap();
        View {
            services: services
                .into_iter()
                .map(|service| (key(&service), service))
                .collect(),
            endpoints: endpoints
                .into_iter()
                .map(|endpoints| (key(&endpoints), endpoints))
                .collect(),
            ingresses: Vec::new(),
        }
    }

    #[test]
    fn an_ingress_reaches_only_ready_pods_on_the_target_port_of_the_named_service_port() {
        let view = view(json!({
            "services": [{"metadata": {"namespace": "storefront", "name": "web"}, "spec": {"ports": [
                {"name": "admin", "port": 9000}, {"name": "http", "port": 80, "targetPort": 8080}]}}],
            "endpoints": [{"metadata": {"namespace": "storefront", "name": "web"}, "subsets": [{
                "addresses": [{"ip": "10.200.0.2"}, {"ip": "10.200.0.1"}],
                "notReadyAddresses": [{"ip": "10.200.0.3"}],
                "ports": [{"name": "http", "port": 8080}]}]}],
        }));
        let ingress: Ingress = serde_json::from_value(json!({
            "metadata": {"namespace": "storefront", "name": "web"},
            "spec": {"rules": [
                {"host": "WWW.shop.test", "http": {"paths": [
                    {"pathType": "ImplementationSpecific", "backend": {"service": {"name": "web", "port": {"number": 80}}}}]}},
                {"host": "m.shop.test", "http": {"paths": [
                    {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "web", "port": {"number": 81}}}}]}}]},
        }))
        .unwrap();
        let rules = view.ingress_rules(&ingress);
        assert_eq!(rules[0].host.as_deref(), Some("www.shop.test"));
        assert_eq!(rules[0].path, "/");
        assert_eq!(rules[0].backends, ["10.200.0.1:8080", "10.200.0.2:8080"]);
        // A port that the Service does not have: no pods, hence 503.
        assert!(rules[1].backends.is_empty());
    }

    #[test]
    fn the_same_service_always_gets_the_same_load_balancer_name_and_another_one_another() {
        let host = cloud_host("0b7c1a52-95d8-4b6e-8a52-0d6a4ad0e9f1", "eu-west-1");
        assert_eq!(
            host,
            cloud_host("0b7c1a52-95d8-4b6e-8a52-0d6a4ad0e9f1", "eu-west-1")
        );
        assert!(
            host.starts_with("a0b7c1a5295d84b6e8a520d6a4ad0e9f-"),
            "{host}"
        );
        assert!(host.ends_with(".eu-west-1.elb.amazonaws.com"), "{host}");
        assert_ne!(
            host,
            cloud_host("1b7c1a52-95d8-4b6e-8a52-0d6a4ad0e9f1", "eu-west-1")
        );
    }
}
