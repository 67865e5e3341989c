//! `probe.hosts`: every host answers through green's load balancer as it does today, before any name is switched.

use super::util::{address_of, params};
use super::{Cx, Settle, Step, StepResult};
use crate::object::Side;
use crate::world::probe::{HttpAnswer, HttpProbe, Via};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// Makes the step.
pub fn make(value: &Value) -> Result<Box<dyn Step>, String> {
    Ok(Box::new(params::<ProbeHosts>("probe.hosts", value)?))
}

#[derive(Deserialize)]
struct ProbeHosts {
    hosts: Vec<HostProbe>,
}

#[derive(Deserialize)]
struct HostProbe {
    host: String,
    object: String,
}

/// GET of a host's probe path.
pub(super) async fn ask(cx: &Cx, host: &str, via: Via) -> crate::world::Result<HttpAnswer> {
    let probe = HttpProbe {
        method: "GET".into(),
        host: host.into(),
        path: cx.plan.spec.probes.path.clone(),
        body: None,
        via,
    };
    cx.world.probe.http(&probe).await
}

#[async_trait]
impl Step for ProbeHosts {
    async fn observe(&self, _: &Cx) -> StepResult<Value> {
        Ok(json!({}))
    }
    async fn apply(&self, _: &Cx, _: &Value) -> StepResult<Value> {
        Ok(json!({}))
    }
    async fn settle(&self, cx: &Cx, _: &Value, _: &Value) -> StepResult<Settle> {
        let pending = |why: String| {
            Ok(Settle::Pending {
                why,
                poll: Duration::from_secs(1),
            })
        };
        for HostProbe { host, object } in &self.hosts {
            let Some(address) = address_of(cx, Side::Green, object).await? else {
                return pending(format!("green's load balancer of {object}"));
            };
            // Never blue's: a copied status or target annotation would make the cutover a no-op (externaldns.md trap 24).
            if address_of(cx, Side::Blue, object).await?.as_ref() == Some(&address) {
                return Ok(Settle::Failed {
                    why: format!("{object} on green has blue's load balancer address {address}"),
                    remedy:
                        "remove the target annotation or fixed address from the object; plan again"
                            .into(),
                });
            }
            let green = match ask(cx, host, Via::LoadBalancer(address.clone())).await {
                Ok(answer) => answer,
                Err(e) if e.is_transient() => {
                    return pending(format!("{host} through {address}: {}", e.message));
                }
                Err(e) => return Err(e.into()),
            };
            let blue = match ask(cx, host, Via::Dns).await {
                Ok(answer) => answer,
                Err(e) if e.is_transient() => {
                    return pending(format!("{host} as it is today: {}", e.message));
                }
                Err(e) => return Err(e.into()),
            };
            if green.status != blue.status {
                if green.status >= 500 || green.status == 404 {
                    return pending(format!(
                        "{host} answers {} on green, {} today",
                        green.status, blue.status
                    ));
                }
                return Ok(Settle::Failed {
                    why: format!("{host} answers {} on green, {} today", green.status, blue.status),
                    remedy: "compare the two; fix green, or list the host under probes.skip if the difference is wanted".into(),
                });
            }
        }
        Ok(Settle::Ready)
    }
    async fn undo(&self, _: &Cx, _: &Value, _: Option<&Value>) -> StepResult<()> {
        Ok(())
    }
}
