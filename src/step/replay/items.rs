//! The objects of a wave, in the order in which they are created. Targets are read one at a time, when their turn comes.

use crate::object::ObjectId;
use crate::step::util::refused;
use crate::step::{Cx, StepResult};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// Parameters of the step.
#[derive(Deserialize)]
pub struct Wave {
    /// Names of copied objects, owners before what they own.
    #[serde(default)]
    pub objects: Vec<String>,
    /// Indices into `Plan.generated`.
    #[serde(default)]
    pub generated: Vec<usize>,
    /// apiVersion, kind and number of objects of each kind on green: what `observe` asks green for.
    #[serde(default)]
    pub kinds: Vec<(String, String, usize)>,
    /// Objects that name owners of the same wave (replay.md 10), with those.
    #[serde(default)]
    pub owners: BTreeMap<String, Vec<String>>,
}

/// One object, as it is to be created.
pub struct Planned {
    /// Without marks; a Secret's values are markers.
    pub target: Value,
    /// uid on blue.
    pub source_uid: Option<String>,
    /// Version in which it was read on blue; empty for what the plan made.
    pub blue_version: String,
}

/// The objects of a wave.
pub struct Items<'a> {
    cx: &'a Cx,
    pub wave: &'a Wave,
    /// Spelled names of generated objects.
    generated: Vec<String>,
    order: Vec<usize>,
}

/// Kind of a spelled name: what stands before its first slash.
pub fn kind_of_name(name: &str) -> &str {
    name.split('/').next().unwrap_or_default()
}

/// What must stand before this kind, inside one wave (replay.md 3 and 4).
pub fn after(kind: &str) -> &'static [&'static str] {
    match kind {
        // A binding before its role would be refused to whoever may not bind what does not exist.
        "rolebinding" | "clusterrolebinding" => &["role", "clusterrole"],
        "persistentvolumeclaim" => &["persistentvolume", "limitrange"],
        // Endpoints without their Service are taken for leftovers by the mirroring controller (velero #6280).
        "endpoints" => &["service"],
        "endpointslice" => &["service", "endpoints"],
        "validatingwebhookconfiguration" | "mutatingwebhookconfiguration" => &["apiservice"],
        "validatingadmissionpolicybinding" => &["validatingadmissionpolicy"],
        "mutatingadmissionpolicybinding" => &["mutatingadmissionpolicy"],
        _ => &[],
    }
}

/// How many must stand before a kind, one after the other.
fn depth(kind: &str) -> usize {
    after(kind).iter().map(|k| 1 + depth(k)).max().unwrap_or(0)
}

impl<'a> Items<'a> {
    pub fn new(cx: &'a Cx, wave: &'a Wave) -> StepResult<Items<'a>> {
        let mut generated = vec![];
        for index in &wave.generated {
            let id = cx.plan.generated.get(*index).and_then(ObjectId::of);
            let id = id.ok_or_else(|| {
                refused(
                    &cx.step,
                    format!("the plan has no generated object {index} with a name"),
                    "make the plan again",
                )
            })?;
            generated.push(id.to_string());
        }
        let mut items = Items {
            cx,
            wave,
            generated,
            order: vec![],
        };
        // What others wait for comes first; the rest in equal parts all along. A Service costs a server twice what a Secret costs it: one
        // kind after the other, the stream would be bound now by this and now by that.
        let all = wave.generated.len() + wave.objects.len();
        let mut count: HashMap<&str, usize> = HashMap::new();
        let places: Vec<usize> = (0..all)
            .map(|n| {
                let seen = count.entry(kind_of_name(items.name(n))).or_default();
                *seen += 1;
                *seen
            })
            .collect();
        let mut order: Vec<usize> = (0..all).collect();
        order.sort_by_cached_key(|n| {
            let kind = kind_of_name(items.name(*n));
            let of = count.get(kind).copied().unwrap_or(1);
            (depth(kind), (2 * places[*n] - 1) * all / of, *n)
        });
        items.order = order;
        Ok(items)
    }

    /// Numbers of all objects, in the order of creation.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    pub fn name(&self, n: usize) -> &str {
        match n.checked_sub(self.generated.len()) {
            None => &self.generated[n],
            Some(n) => &self.wave.objects[n],
        }
    }

    /// Reads one from the plan.
    pub fn planned(&self, n: usize) -> StepResult<Planned> {
        if let Some(index) = self.wave.generated.get(n) {
            return Ok(Planned {
                target: self
                    .cx
                    .plan
                    .generated
                    .get(*index)
                    .cloned()
                    .unwrap_or_default(),
                source_uid: None,
                blue_version: String::new(),
            });
        }
        let name = self.name(n);
        let verdict = self.cx.verdict(name)?;
        Ok(Planned {
            target: verdict
                .target
                .ok_or_else(|| refused(name, "the plan does not copy it", "make the plan again"))?,
            source_uid: verdict.uid,
            blue_version: verdict.api_version,
        })
    }

    /// apiVersion, kind and number of objects, for each kind of the wave.
    pub fn kinds(&self) -> StepResult<Vec<(String, String, usize)>> {
        if !self.wave.kinds.is_empty() {
            return Ok(self.wave.kinds.clone());
        }
        let mut count: BTreeMap<(String, String), usize> = BTreeMap::new();
        for n in &self.order {
            let id = id_of(self.name(*n), &self.planned(*n)?.target)?;
            *count.entry((id.api_version, id.kind)).or_default() += 1;
        }
        Ok(count.into_iter().map(|((v, k), n)| (v, k, n)).collect())
    }
}

/// The id of a target on green.
pub fn id_of(name: &str, target: &Value) -> StepResult<ObjectId> {
    ObjectId::of(target)
        .ok_or_else(|| refused(name, "its target has no name", "make the plan again"))
}
