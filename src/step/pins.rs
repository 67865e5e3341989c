//! `pins`: proves account, region, cluster and zones against the plan. Writes nothing.

use super::util::refused;
use super::{Cx, Settle, Step, StepResult};
use crate::object::Side;
use crate::spec::model::DataMode;
use async_trait::async_trait;
use serde_json::{Value, json};

/// Makes the step.
pub fn make(_: &Value) -> Result<Box<dyn Step>, String> {
    Ok(Box::new(Pins))
}

struct Pins;

#[async_trait]
impl Step for Pins {
    async fn observe(&self, cx: &Cx) -> StepResult<Value> {
        let basis = &cx.plan.basis;
        let who = cx.world.cloud.identity().await?;
        let blue = cx.world.blue.identity().await?;
        let zones = cx.world.dns.zones().await?;
        let checks = [
            ("AWS account", basis.account.clone(), who.account.clone()),
            ("AWS region", basis.region.clone(), who.region.clone()),
            (
                "uid of blue's namespace kube-system",
                basis.blue.as_ref().map(|b| b.uid.clone()),
                blue.uid.clone(),
            ),
            (
                "CA of blue's API server (sha256)",
                basis.blue.as_ref().map(|b| b.ca_sha256.clone()),
                blue.ca_sha256.clone(),
            ),
        ];
        for (what, pinned, found) in checks {
            match pinned {
                Some(pinned) if pinned == found => {}
                Some(pinned) => {
                    return Err(refused(
                        what,
                        format!("the plan was made for {pinned}, this is {found}"),
                        "check kubeconfig, context and profile of migration.yaml; nothing was written",
                    ));
                }
                None => {
                    return Err(refused(
                        what,
                        "the plan was made without reading it, so nothing pins it",
                        "run discover with live access, then plan and review again",
                    ));
                }
            }
        }
        for (name, id) in &basis.zones {
            if !zones
                .iter()
                .any(|z| &z.id == id && z.name.trim_end_matches('.') == name.trim_end_matches('.'))
            {
                return Err(refused(
                    format!("zone/{name}"),
                    format!("no hosted zone {id} of that name in this account"),
                    "run discover again, then plan and review",
                ));
            }
        }
        for set in cx
            .plan
            .spec
            .data
            .iter()
            .filter(|d| d.mode == DataMode::Postgres)
        {
            for side in [Side::Blue, Side::Green] {
                cx.world.data.state(&set.name, side).await?;
            }
        }
        Ok(json!({ "account": who.account, "region": who.region, "caller": who.arn, "blue": blue }))
    }
    async fn apply(&self, _: &Cx, before: &Value) -> StepResult<Value> {
        Ok(before.clone())
    }
    async fn settle(&self, _: &Cx, _: &Value, _: &Value) -> StepResult<Settle> {
        Ok(Settle::Ready)
    }
    async fn undo(&self, _: &Cx, _: &Value, _: Option<&Value>) -> StepResult<()> {
        Ok(())
    }
}
