//! Batches on their way: whole names, packed to Route 53's limits; what is refused is found and held, the rest goes on.
//!
//! Each batch is announced in the journal before it is sent and noted after: so a later process looks before it sends, and waits for changes
//! whose ids it knows, or out the time that any change takes where an answer was lost.

use super::{Cx, Groups, IN_SYNC, Seen, StepError, StepResult, moment, text};
use crate::edns::switch::{self, Hold};
use crate::step::util::recorded;
use crate::world::Class;
use crate::world::dns::{Change, RecordSet};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

/// Progress records of the step. `Sending` and `Sent` are of the way back, as journals of before batches were noted have them.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Progress {
    /// A batch is about to be sent.
    Batch(Timestamp),
    /// Id of the change that the last announced batch became.
    Change(String),
    /// Units that were held back at the end of an attempt.
    Held(Vec<String>),
    /// Units that were held and are taken up as they are now.
    Reread(Groups),
    /// The way back is about to be sent.
    Sending(Timestamp),
    /// Ids of all changes of the way back.
    Sent(Vec<String>),
}

impl Progress {
    fn all(cx: &Cx) -> StepResult<Vec<Progress>> {
        let records = cx.log.recorded(&cx.step);
        records.iter().map(|r| recorded(&cx.step, r)).collect()
    }

    pub(super) fn log(&self, cx: &Cx) -> StepResult<()> {
        cx.log
            .progress(&cx.step, json!(self))
            .map_err(StepError::Journal)
    }
}

/// Where the names of a step stand, by its progress records.
pub(super) struct Standing {
    /// What the way back restores: as observed, or as it was when a held name was taken up.
    pub groups: Groups,
    /// Units that the last attempt held back.
    pub held: BTreeSet<String>,
    /// Nothing was ever sent: the zone is as it was observed.
    pub untouched: bool,
}

/// Of the application that is under way.
pub(super) fn standing(cx: &Cx, observed: &Groups) -> StepResult<Standing> {
    of_records(Progress::all(cx)?, observed)
}

/// The same without the last completed way back: what that one restored.
pub(super) fn last_standing(cx: &Cx, observed: &Groups) -> StepResult<Groups> {
    let mut records = Progress::all(cx)?;
    if matches!(records.last(), Some(Progress::Sent(_))) {
        records.pop();
    }
    Ok(of_records(records, observed)?.groups)
}

fn of_records(records: Vec<Progress>, observed: &Groups) -> StepResult<Standing> {
    let mut standing = Standing {
        groups: observed.clone(),
        held: BTreeSet::new(),
        untouched: records.is_empty(),
    };
    for record in records {
        match record {
            Progress::Held(keys) => standing.held = keys.into_iter().collect(),
            Progress::Reread(groups) => {
                let known = |(k, _): &(String, Vec<RecordSet>)| observed.contains_key(k);
                standing.groups.extend(groups.into_iter().filter(known));
            }
            // A completed way back ends an application.
            Progress::Sent(_) => {
                standing.groups = observed.clone();
                standing.held.clear();
            }
            Progress::Batch(_) | Progress::Change(_) | Progress::Sending(_) => {}
        }
    }
    Ok(standing)
}

/// What became of the batches.
pub(super) struct Sent {
    /// Ids of the changes.
    pub ids: Vec<String>,
    /// Units that Route 53 does not take.
    pub refused: BTreeMap<String, Hold>,
}

type Work = Vec<(String, Vec<Change>)>;

/// What somebody did to a name between our look and our write.
pub(super) fn foreign(old: &[RecordSet], have: &[RecordSet]) -> Hold {
    Hold::new(
        format!(
            "it was changed by somebody since it was read: expected {}, found {}",
            text(old),
            text(have)
        ),
        "find the other writer of the zone; what is there now is taken up when you resume",
    )
}

/// Sends whole units; each answer is noted in the journal.
pub(super) async fn send(cx: &Cx, zone: &str, work: Work) -> StepResult<Sent> {
    let mut refused = BTreeMap::new();
    let (fitting, big): (Work, Work) = work.into_iter().partition(|(_, c)| switch::fits(c));
    for (key, changes) in big {
        let (values, characters) = switch::weight(&changes);
        refused.insert(
            key,
            Hold::new(
                format!("its records need {values} values and {characters} characters in one batch; Route 53 takes 1000 and 32000"),
                "take values out of its records",
            ),
        );
    }
    let mut ids = vec![];
    // The next batch is at the end.
    let mut waiting: Vec<Work> = switch::pack(fitting);
    waiting.reverse();
    while let Some(units) = waiting.pop() {
        let changes: Vec<Change> = units.iter().flat_map(|(_, c)| c.clone()).collect();
        Progress::Batch(moment(cx)).log(cx)?;
        let comment = format!("crossfade {} {}", cx.run, cx.step);
        match cx.world.dns.change(zone, &changes, &comment).await {
            Ok(id) => {
                Progress::Change(id.clone()).log(cx)?;
                ids.push(id);
            }
            Err(e) if matches!(e.class, Class::Conflict | Class::Refused) => {
                if let [(key, _)] = units.as_slice() {
                    refused.insert(
                        key.clone(),
                        Hold::new(
                            format!("Route 53 refuses it: {}", e.message),
                            "cure the record, then resume",
                        ),
                    );
                    continue;
                }
                // Route 53 takes all or nothing and names what it does not like: those are tried alone, the rest goes on together.
                let (bad, good): (Work, Work) = units
                    .into_iter()
                    .partition(|(_, c)| switch::named_in(&e.message, c));
                if bad.is_empty() || good.is_empty() {
                    let mut all = if bad.is_empty() { good } else { bad };
                    let second = all.split_off(all.len() / 2);
                    waiting.push(second);
                    waiting.push(all);
                } else {
                    waiting.extend(bad.into_iter().map(|unit| vec![unit]));
                    waiting.push(good);
                }
            }
            Err(e) => return Err(e.into()),
        }
    }
    Ok(Sent { ids, refused })
}

/// The same on the way back.
pub(super) async fn send_back(cx: &Cx, zone: &str, work: Work) -> StepResult<Sent> {
    Progress::Sending(moment(cx)).log(cx)?;
    let sent = send(cx, zone, work).await?;
    Progress::Sent(sent.ids.clone()).log(cx)?;
    Ok(sent)
}

/// Ends an application of which nothing has to be taken back.
pub(super) fn nothing_to_send_back(cx: &Cx) -> StepResult<()> {
    match Progress::all(cx)?.last() {
        None | Some(Progress::Sent(_)) => Ok(()),
        Some(_) => Progress::Sent(vec![]).log(cx),
    }
}

/// What is not yet on all name servers, of changes with these ids and of batches of this application whose answers were lost.
pub(super) async fn not_in_sync(
    cx: &Cx,
    ids: &[String],
    seen: &Mutex<Seen>,
) -> StepResult<Option<String>> {
    let (mut all, mut lost): (Vec<String>, Option<Timestamp>) = (ids.to_vec(), None);
    for record in Progress::all(cx)? {
        match record {
            Progress::Batch(at) => lost = Some(at),
            Progress::Change(id) => {
                lost = None;
                all.push(id);
            }
            Progress::Held(_) | Progress::Reread(_) => {}
            Progress::Sending(_) | Progress::Sent(_) => {
                // Of an application that was taken back.
                all = ids.to_vec();
                lost = None;
            }
        }
    }
    wait_for(cx, &all, lost, seen).await
}

/// The same of the last way back.
pub(super) async fn back_not_in_sync(cx: &Cx, seen: &Mutex<Seen>) -> StepResult<Option<String>> {
    let (mut all, mut lost, mut back): (Vec<String>, Option<Timestamp>, bool) =
        (vec![], None, false);
    for record in Progress::all(cx)? {
        match record {
            Progress::Sending(at) => {
                (all, lost, back) = (vec![], Some(at), true);
            }
            Progress::Batch(at) if back => lost = Some(at),
            Progress::Change(id) if back => {
                lost = None;
                all.push(id);
            }
            // A batch whose answer was lost is not in sync because a later look finds nothing left to send: only its `Change` says so.
            Progress::Sent(ids) => all.extend(ids),
            _ => {}
        }
    }
    wait_for(cx, &all, lost, seen).await
}

async fn wait_for(
    cx: &Cx,
    ids: &[String],
    lost: Option<Timestamp>,
    seen: &Mutex<Seen>,
) -> StepResult<Option<String>> {
    const WHY: &str = "Route 53 to have the change on all name servers";
    for id in ids {
        let known = |s: &mut Seen| s.in_sync.contains(id);
        if known(&mut seen.lock().unwrap_or_else(|p| p.into_inner())) {
            continue;
        }
        if !cx.world.dns.in_sync(id).await? {
            return Ok(Some(WHY.into()));
        }
        let mut seen = seen.lock().unwrap_or_else(|p| p.into_inner());
        seen.in_sync.insert(id.clone());
    }
    Ok(lost
        .filter(|at| moment(cx) < *at + IN_SYNC)
        .map(|_| WHY.into()))
}
