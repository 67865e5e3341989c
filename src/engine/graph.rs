//! The graph of steps: which may begin, which may be undone.

use super::Registry;
use crate::error::{Error, Kind, Result};
use crate::journal::State;
use crate::plan::model::{Phase, Plan, StepSpec};
use std::collections::{BTreeMap, BTreeSet};

/// A plan that this version can run: every kind is known, every parameter is understood, every need exists and comes before.
pub fn check_plan(plan: &Plan, registry: &Registry) -> Result<()> {
    check_steps(&plan.steps, registry)
}

pub(super) fn check_steps(steps: &[StepSpec], registry: &Registry) -> Result<()> {
    let mut seen = BTreeSet::new();
    let bad = |step: &StepSpec, message: String| {
        Err(Error::new(Kind::BadInput, message)
            .at(format!("plan.json: step {}", step.id))
            .remedy("make the plan again with this version: crossfade plan"))
    };
    for step in steps {
        match registry.get(step.kind.as_str()) {
            None => {
                return bad(
                    step,
                    format!("this version knows no step of kind {}", step.kind),
                );
            }
            Some(make) => {
                if let Err(why) = make(&step.params) {
                    return bad(step, format!("its parameters are not understood: {why}"));
                }
            }
        }
        if let Some(need) = step.needs.iter().find(|n| !seen.contains(n.as_str())) {
            return bad(
                step,
                format!("it needs step {need}, which does not come before it"),
            );
        }
        if !seen.insert(step.id.as_str()) {
            return bad(step, "there are two steps with this id".into());
        }
    }
    Ok(())
}

/// The steps of a run: those of the plan and those that it got since, each after all it needs.
pub fn steps_of(plan: &Plan, state: &State) -> Vec<StepSpec> {
    let mut steps = plan.steps.clone();
    for extension in state.extensions() {
        for step in &extension.steps {
            let after = steps
                .iter()
                .rposition(|s| step.needs.contains(&s.id))
                .map_or(0, |n| n + 1);
            steps.insert(after, step.clone());
            let waiting = extension
                .before
                .get(&step.id)
                .map_or(&[][..], Vec::as_slice);
            for later in steps[after + 1..].iter_mut() {
                if waiting.contains(&later.id) && !later.needs.contains(&step.id) {
                    later.needs.push(step.id.clone());
                }
            }
        }
    }
    steps
}

/// Steps of a plan that are to wait for a new step: those of later phases that have not begun, except what the new step itself waits for.
pub(crate) fn waiting_for(plan: &Plan, state: &State, new: &StepSpec) -> Vec<String> {
    let its: BTreeSet<&str> = with_needs(&plan.steps, |s| new.needs.contains(&s.id))
        .into_iter()
        .map(|s| s.id.as_str())
        .collect();
    plan.steps
        .iter()
        .filter(|s| !its.contains(s.id.as_str()))
        // What is new is stopped before blue is closed for writes, as in the plan.
        .filter(|s| s.phase > new.phase || s.phase == new.phase && s.kind == "fence.close")
        .filter(|s| !state.status(&s.id).is_active())
        .map(|s| s.id.clone())
        .collect()
}

/// Some steps and all they need, in the plan's order.
pub(super) fn with_needs(steps: &[StepSpec], wanted: impl Fn(&StepSpec) -> bool) -> Vec<&StepSpec> {
    let mut ids = BTreeSet::new();
    // Needs come before, so one walk from the end sees every step after all that need it.
    for step in steps.iter().rev() {
        if wanted(step) || ids.contains(step.id.as_str()) {
            ids.insert(step.id.as_str());
            ids.extend(step.needs.iter().map(String::as_str));
        }
    }
    steps
        .iter()
        .filter(|s| ids.contains(s.id.as_str()))
        .collect()
}

/// Steps of a run up to a phase: those of that phase and before, and whatever they need.
pub fn steps_to(steps: &[StepSpec], to: Option<Phase>) -> Vec<&StepSpec> {
    with_needs(steps, super::within(to))
}

/// Ids of the steps that need each step directly.
pub(super) fn dependents(steps: &[StepSpec]) -> BTreeMap<&str, Vec<&str>> {
    let mut map: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for step in steps {
        for need in &step.needs {
            map.entry(need).or_default().push(&step.id);
        }
    }
    map
}

/// Steps to undo for a rollback to the end of a phase, last first: what was begun in later phases, except what a step that stays needs
/// (a data stream that runs early, for example, stays when the step that waits for it stays).
pub(super) fn to_undo<'p>(
    steps: &'p [StepSpec],
    state: &State,
    to: Option<Phase>,
) -> Vec<&'p StepSpec> {
    let stays =
        |s: &StepSpec| to.is_some_and(|to| s.phase <= to) && state.status(&s.id).is_active();
    let kept: BTreeSet<&str> = with_needs(steps, stays)
        .into_iter()
        .map(|s| s.id.as_str())
        .collect();
    steps
        .iter()
        .rev()
        .filter(|s| !kept.contains(s.id.as_str()) && state.status(&s.id).is_active())
        .collect()
}
