//! What several step kinds need: parameters, compare-and-set on one field.

pub use super::pods::{at_size, pods_of};
use super::{Cx, StepError, StepResult};
use crate::object::{self, ObjectId, Side};
use crate::plan::model::Verdict;
use crate::world::kube::{ApiKind, Kube};
use crate::world::{Class, Error};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::borrow::Cow;

/// Annotation that marks what a run made on green.
pub const RUN_ANNOTATION: &str = "crossfade.dev/run";

/// Reads a step's parameters; the message names the kind.
pub fn params<T: DeserializeOwned>(kind: &str, value: &Value) -> Result<T, String> {
    // Not a copy first: a wave names all its objects.
    T::deserialize(value).map_err(|e| format!("parameters of step kind {kind}: {e}"))
}

/// Reads what an earlier `observe` or `apply` recorded.
pub fn recorded<T: DeserializeOwned>(what: &str, value: &Value) -> StepResult<T> {
    T::deserialize(value).map_err(|e| StepError::Refused {
        object: what.into(),
        why: format!("the journal's record of this step cannot be read: {e}"),
        remedy: "use the crossfade version that wrote the journal".into(),
    })
}

/// A refusal in three parts.
pub fn refused(
    object: impl Into<String>,
    why: impl Into<String>,
    remedy: impl Into<String>,
) -> StepError {
    StepError::Refused {
        object: object.into(),
        why: why.into(),
        remedy: remedy.into(),
    }
}

impl Cx {
    /// The verdict on an object of blue.
    pub fn verdict(&self, object: &str) -> StepResult<Verdict> {
        if let Some(later) = self.extra.get(object) {
            return Ok(later.clone());
        }
        let found = self.plan.verdicts.get(object);
        let found = found.map_err(|e| refused(object, format!("{e} ({})", e.at), e.remedy))?;
        found.map(Cow::into_owned).ok_or_else(|| {
            refused(
                object,
                "the plan has no verdict on it",
                "make the plan again",
            )
        })
    }

    /// The object as the plan wants it on green.
    pub fn target(&self, object: &str) -> StepResult<Value> {
        self.verdict(object)?
            .target
            .ok_or_else(|| refused(object, "the plan does not copy it", "make the plan again"))
    }

    /// The object's id on green.
    pub fn green_id(&self, object: &str) -> StepResult<ObjectId> {
        ObjectId::of(&self.target(object)?)
            .ok_or_else(|| refused(object, "its target has no name", "make the plan again"))
    }

    /// The object's id on blue, in the version in which the plan read it.
    pub fn blue_id(&self, object: &str) -> StepResult<ObjectId> {
        let verdict = self.verdict(object)?;
        match &verdict.target {
            Some(target) => {
                let id = ObjectId::of(target).ok_or_else(|| {
                    refused(object, "its target has no name", "make the plan again")
                })?;
                Ok(id.in_version(&verdict.api_version))
            }
            None => workload_id(object).map(|id| id.in_version(&verdict.api_version)),
        }
    }

    /// What `apply` of another step returned.
    pub fn output(&self, step: &str) -> StepResult<Value> {
        let outputs = self.outputs.read().unwrap_or_else(|p| p.into_inner());
        outputs
            .get(step)
            .cloned()
            .ok_or_else(|| refused(step, "it has no recorded result", "make the plan again"))
    }
}

/// The id of a workload from its spelling alone, in the version that every supported server serves.
pub fn workload_id(object: &str) -> StepResult<ObjectId> {
    let mut parts = object.split('/');
    let (kind, namespace, name) = (parts.next().unwrap_or(""), parts.next(), parts.next());
    let (api_version, kind) = match kind {
        "deployment" => ("apps/v1", "Deployment"),
        "statefulset" => ("apps/v1", "StatefulSet"),
        "daemonset" => ("apps/v1", "DaemonSet"),
        "cronjob" => ("batch/v1", "CronJob"),
        "ingress" => ("networking.k8s.io/v1", "Ingress"),
        "service" => ("v1", "Service"),
        other => {
            return Err(refused(
                object,
                format!("{other} is not a kind that a step can act on"),
                "make the plan again",
            ));
        }
    };
    match (namespace, name) {
        (Some(ns), Some(name)) => Ok(ObjectId::new(api_version, kind, Some(ns), name)),
        _ => Err(refused(
            object,
            "it is not spelled kind/namespace/name",
            "make the plan again",
        )),
    }
}

/// Reads an object that must be there.
pub async fn must_get(kube: &dyn Kube, id: &ObjectId) -> StepResult<Value> {
    Ok(kube.get(id).await?.ok_or_else(|| {
        Error::new(Class::NotFound, id.to_string(), "it is gone")
            .remedy("look who deleted it; make a new plan if that was meant")
    })?)
}

/// The value at a JSON pointer, `null` when absent.
pub fn at<'a>(object: &'a Value, pointer: &str) -> &'a Value {
    object.pointer(pointer).unwrap_or(&Value::Null)
}

/// A merge patch that sets one field (`null` removes it).
pub fn patch_of(pointer: &str, value: &Value) -> Value {
    pointer
        .split('/')
        .skip(1)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .fold(
            value.clone(),
            |inner, key| json!({ key.replace("~1", "/").replace("~0", "~"): inner }),
        )
}

/// Changes one object under its resourceVersion, read again when somebody else was quicker: controllers touch objects all the time (status).
/// `patch` gives the merge patch for what is there, or none when nothing is to do. `false` when the object is not there.
pub async fn change(
    kube: &dyn Kube,
    id: &ObjectId,
    mut patch: impl FnMut(&Value) -> StepResult<Option<Value>>,
) -> StepResult<bool> {
    for _ in 0..8 {
        let there = match kube.get(id).await {
            Ok(Some(there)) => there,
            Ok(None) => return Ok(false),
            Err(e) if e.class == Class::NotFound => return Ok(false),
            Err(e) => return Err(e.into()),
        };
        let Some(mut body) = patch(&there)? else {
            return Ok(true);
        };
        if let Some(version) = object::resource_version(&there) {
            body["metadata"]["resourceVersion"] = json!(version);
        }
        match kube.merge(id, &body).await {
            Ok(_) => return Ok(true),
            Err(e) if e.class == Class::Conflict => {}
            Err(e) => return Err(e.into()),
        }
    }
    Err(busy(&id.to_string()))
}

/// Somebody else writes an object again and again.
pub fn busy(object: &str) -> StepError {
    Error::new(
        Class::Unreachable,
        object,
        "it keeps changing under our hands",
    )
    .remedy("find the controller or person that writes it all the time (its managedFields say who), then resume")
    .into()
}

/// What [`set`] accepts as the present value.
pub enum Expect<'a> {
    /// Exactly this; anything else is somebody else's change.
    Value(&'a Value),
    /// Whatever is there.
    Anything,
}

/// Compare-and-set of one field. A conflict on resourceVersion only means: read again. A *value* that is neither the expected nor the wanted
/// one stops.
pub async fn set(
    kube: &dyn Kube,
    id: &ObjectId,
    pointer: &str,
    expect: Expect<'_>,
    value: &Value,
) -> StepResult<()> {
    let there = change(kube, id, |object| {
        let now = at(object, pointer);
        if now == value || (value.is_null() && now.is_null()) {
            return Ok(None);
        }
        match expect {
            Expect::Value(expected) if now != expected => Err(StepError::Changed {
                object: format!("{id} {pointer}"),
                expected: expected.to_string(),
                found: now.to_string(),
            }),
            _ => Ok(Some(patch_of(pointer, value))),
        }
    })
    .await?;
    if there {
        return Ok(());
    }
    must_get(kube, id).await.map(|_| ())
}

/// The kind as the server serves it in this version, from discovery.
pub async fn kind_of(kube: &dyn Kube, api_version: &str, kind: &str) -> StepResult<ApiKind> {
    let found = kube
        .kinds(false)
        .await?
        .into_iter()
        .find(|k| k.kind == kind && k.api_version() == api_version);
    Ok(found.ok_or_else(|| {
        Error::new(
            Class::NotFound,
            format!("{kind} {api_version}"),
            "the server does not serve this kind",
        )
    })?)
}

/// A server's message in one line that fits beside others.
pub fn shortened(message: &str) -> String {
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(200) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

/// `, 23 h left` for long waits, so that who looks sees it move.
pub fn hours(seconds: i64) -> String {
    if seconds < 7200 {
        return String::new();
    }
    format!(", {} h left", seconds / 3600)
}

/// Addresses that a side's Ingress or Service got from its load balancer: IPs and host names.
pub fn load_balancer(object: &Value) -> Vec<String> {
    at(object, "/status/loadBalancer/ingress")
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            entry
                .get("hostname")
                .or_else(|| entry.get("ip"))
                .and_then(Value::as_str)
                .map(String::from)
        })
        .collect()
}

/// The load balancer address of the object that serves a host on a side.
pub async fn address_of(cx: &Cx, side: Side, object: &str) -> StepResult<Option<String>> {
    let id = match side {
        Side::Blue => cx.blue_id(object)?,
        Side::Green => cx.green_id(object)?,
    };
    Ok(cx
        .world
        .kube(side)
        .get(&id)
        .await?
        .as_ref()
        .map(load_balancer)
        .unwrap_or_default()
        .into_iter()
        .next())
}
