//! What green has already that rules ask for.

use super::context::Context;
use super::work::items;
use crate::object::ObjectId;
use crate::snapshot::model::Snapshot;
use serde_json::Value;

impl Context {
    /// What green has already that rules ask for.
    pub(super) fn green(&mut self, snapshot: &Snapshot) {
        let Some(green) = &snapshot.green else { return };
        for k in &green.kinds {
            self.aggregated.remove(&k.api_version());
        }
        for o in green.of_kind("Service") {
            let Some(id) = ObjectId::of(o) else { continue };
            let health = o
                .pointer("/spec/healthCheckNodePort")
                .and_then(Value::as_u64);
            let ports = items(o, "/spec/ports").filter_map(|p| {
                let protocol = p["protocol"].as_str().unwrap_or("TCP");
                Some((p["nodePort"].as_u64()?, protocol.to_string()))
            });
            for port in ports.chain(health.map(|h| (h, "TCP".to_string()))) {
                self.green_node_ports.insert(port, id.to_string());
            }
        }
    }
}
