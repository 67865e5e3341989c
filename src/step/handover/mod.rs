//! `dns.handover`: one wave of names goes from blue to green. Record and every ownership TXT of a name change in one atomic batch,
//! with the exact old values as precondition (Delete old + Create new), so a change by anybody else in between is refused by Route 53 itself.
//!
//! What a name becomes is not invented here: `edns::switch` rewrites the owner in the TXTs that exist (externaldns.md rule 7) and lets the model
//! of green's ExternalDNS say what it would still change. So its first loop has nothing to do.
//!
//! A name that cannot go (no target on green, another answer, a change by somebody else, a refusal of Route 53) is held and the others go on;
//! the last step of the phase (`held_of`) takes what was held up again and stops the run while anything of it is left.

mod green;
mod look;
mod ready;
mod send;

pub(crate) use green::{dry_run, not_handed_over, still_blues};

use super::probe_hosts::ask;
use super::util::{params, recorded};
use super::{Cx, Settle, Step, StepError, StepResult};
use crate::edns::Config;
use crate::edns::switch::{self, Hold};
use crate::world::dns::{RecordSet, Zone};
use crate::world::probe::Via;
use crate::world::{Class, Error};
use async_trait::async_trait;
use futures::StreamExt;
use green::{desired, green_config, zone_of};
use jiff::{SignedDuration, Timestamp};
use send::{Progress, Sent};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

/// Makes the step.
pub fn make(value: &Value) -> Result<Box<dyn Step>, String> {
    Ok(Box::new(Handover {
        p: params::<Params>("dns.handover", value)?,
        seen: Mutex::default(),
    }))
}

#[derive(Deserialize)]
struct Params {
    zone_id: String,
    names: Vec<String>,
    /// Whether held names are left to a later step; a canary's are not.
    #[serde(default)]
    hold: bool,
    /// Steps whose held names this one takes up again; then `names` is all of the zone.
    #[serde(default)]
    held_of: Vec<String>,
}

struct Handover {
    p: Params,
    seen: Mutex<Seen>,
}

/// What this process has seen of the settling. Not journaled: after a restart everything is asked again.
#[derive(Default)]
struct Seen {
    in_sync: BTreeSet<String>,
    verified: bool,
    answered: BTreeSet<String>,
}

/// Record sets by unit: its hosts joined by `+`.
type Groups = BTreeMap<String, Vec<RecordSet>>;

#[derive(Serialize, Deserialize)]
struct Before {
    /// Records and every ownership TXT as they were. This is the undo file.
    groups: Groups,
}

#[derive(Serialize, Deserialize)]
struct After {
    groups: Groups,
    changes: Vec<String>,
    /// Names that were held back, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    held: BTreeMap<String, String>,
    /// Longest TTL that was served before, seconds: so long a cache may still lead to blue.
    #[serde(default)]
    longest_old_ttl: u32,
    /// Longest TTL that is served since, seconds: so long a cache may still lead to green on the way back.
    #[serde(default)]
    longest_new_ttl: u32,
}

/// Route 53 has a change on all name servers within this time; waited out where a crash lost the change's id.
pub(crate) const IN_SYNC: SignedDuration = SignedDuration::from_secs(60);
/// Hosts that are probed at once.
const PROBES: usize = 16;

/// Longest TTL, seconds, that the handovers of this plan which are done met in the zones, or (on the way back) left there.
pub(crate) fn longest_ttl(cx: &Cx, back: bool) -> u32 {
    let outputs = cx.outputs.read().unwrap_or_else(|p| p.into_inner());
    let field = if back {
        "longest_new_ttl"
    } else {
        "longest_old_ttl"
    };
    let of = |id: &str| outputs.get(id).and_then(|o| o[field].as_u64());
    let steps = cx.plan.steps.iter().filter(|s| s.kind == "dns.handover");
    let longest = steps.filter_map(|s| of(&s.id)).max().unwrap_or(0);
    u32::try_from(longest).unwrap_or(u32::MAX)
}

/// Hosts that handovers which are done hold back.
pub(crate) fn held(cx: &Cx) -> BTreeSet<String> {
    let outputs = cx.outputs.read().unwrap_or_else(|p| p.into_inner());
    let steps = cx.plan.steps.iter().filter(|s| s.kind == "dns.handover");
    steps
        .filter_map(|s| outputs.get(&s.id)?["held"].as_object())
        .flat_map(|held| held.keys().flat_map(|k| k.split('+').map(String::from)))
        .collect()
}

impl Handover {
    /// What each unit becomes, and those that cannot go now.
    async fn wanted(
        &self,
        cx: &Cx,
        config: &Config,
        zone: &Zone,
        before: &Groups,
    ) -> StepResult<(Groups, BTreeMap<String, Hold>)> {
        let endpoints = desired(cx, config).await?;
        let blues = green::blues_addresses(cx).await?;
        let by_host = self.by_host(cx);
        let (mut wanted, mut held) = (Groups::new(), BTreeMap::new());
        for (key, old) in before {
            let unit = Self::unit(&by_host, key, old);
            let mine: Vec<&crate::edns::Endpoint> = unit
                .hosts
                .iter()
                .flat_map(|h| endpoints.get(&h.host).into_iter().flatten())
                .filter(|e| {
                    unit.hosts
                        .iter()
                        .any(|h| h.host == e.name && h.sets.contains(&e.set_identifier))
                })
                .collect();
            match ready::leads_to_green(&mine, &blues)
                .and_then(|()| switch::target(&unit, &mine, config, zone))
            {
                Ok(records) => {
                    wanted.insert(key.clone(), records);
                }
                Err(hold) => {
                    held.insert(key.clone(), hold);
                }
            }
        }
        // What answers otherwise than blue does is held as well, in the last moment before its name moves.
        let asked: Vec<(&String, Vec<String>)> = wanted
            .iter()
            .filter(|(key, records)| *records != &before[*key])
            .map(|(key, _)| (key, ready::hosts_to_ask(cx, key)))
            .collect();
        let different = ready::different(cx, &asked, &endpoints).await?;
        for (key, hold) in different {
            wanted.remove(&key);
            held.insert(key, hold);
        }
        Ok((wanted, held))
    }
}

fn text(group: &[RecordSet]) -> String {
    serde_json::to_string(group).unwrap_or_default()
}

fn changed(host: &str, expected: &[RecordSet], found: &[RecordSet]) -> StepError {
    StepError::Changed {
        object: format!("record/{host}"),
        expected: text(expected),
        found: text(found),
    }
}

#[async_trait]
impl Step for Handover {
    async fn observe(&self, cx: &Cx) -> StepResult<Value> {
        let units = self.units(cx, &green_config(cx)?).await?;
        Ok(json!(Before {
            groups: units.into_iter().map(|u| (u.key(), u.records)).collect()
        }))
    }

    async fn apply(&self, cx: &Cx, before: &Value) -> StepResult<Value> {
        let before: Before = recorded(&cx.step, before)?;
        super::edns::still_stopped(cx).await?;
        if before.groups.is_empty() {
            return Ok(json!(After {
                groups: Groups::new(),
                changes: vec![],
                held: BTreeMap::new(),
                longest_old_ttl: 0,
                longest_new_ttl: 0,
            }));
        }
        let config = green_config(cx)?;
        let zone = zone_of(cx, &self.p.zone_id).await?;
        let mut standing = send::standing(cx, &before.groups)?;
        // Before the first batch the zone is as it was observed a moment ago, and Route 53 itself refuses a batch where it is not.
        let now = if standing.untouched {
            standing.groups.clone()
        } else {
            self.again(cx, &config, &before.groups).await?
        };
        // What was held and told to a person is taken up as it is now: the way back gives that back.
        let reread: Groups = standing
            .held
            .iter()
            .filter_map(|key| Some((key.clone(), now.get(key)?.clone())))
            .filter(|(key, have)| {
                standing.groups.get(key) != Some(have)
                    && !switch::owners_of(have).contains(&config.owner)
            })
            .collect();
        if !reread.is_empty() {
            Progress::Reread(reread.clone()).log(cx)?;
            standing.groups.extend(reread);
        }
        let old = standing.groups;
        let (wanted, mut held) = self.wanted(cx, &config, &zone, &old).await?;
        let mut work = vec![];
        for (key, target) in &wanted {
            let (old, have) = (&old[key], &now[key]);
            if have != old && have != target {
                held.insert(key.clone(), send::foreign(old, have));
            } else {
                work.push((key.clone(), switch::batch(have, target)));
            }
        }
        let Sent { ids, refused } = send::send(cx, &self.p.zone_id, work).await?;
        if !refused.is_empty() {
            // Which of them was changed by somebody, and how, is only seen by looking.
            let now = self.again(cx, &config, &before.groups).await?;
            for (key, hold) in refused {
                let (old, have) = (&old[&key], &now[&key]);
                // Sent before, answer lost: it is as it should be.
                if have == &wanted[&key] {
                    continue;
                }
                let why = if have == old {
                    hold
                } else {
                    send::foreign(old, have)
                };
                held.insert(key, why);
            }
        }
        let groups: Groups = wanted
            .into_iter()
            .filter(|(k, _)| !held.contains_key(k))
            .collect();
        if !held.is_empty() {
            Progress::Held(held.keys().cloned().collect()).log(cx)?;
        }
        let moved = groups.keys().filter_map(|k| old.get(k));
        Ok(json!(After {
            longest_old_ttl: moved.map(|g| switch::longest_ttl(g)).max().unwrap_or(0),
            longest_new_ttl: groups
                .values()
                .map(|g| switch::longest_ttl(g))
                .max()
                .unwrap_or(0),
            groups,
            changes: ids,
            held: held
                .into_iter()
                .map(|(k, h)| (k, format!("{}; {}", h.why, h.remedy)))
                .collect(),
        }))
    }

    async fn settle(&self, cx: &Cx, before: &Value, after: &Value) -> StepResult<Settle> {
        let before: Before = recorded(&cx.step, before)?;
        let after: After = recorded(&cx.step, after)?;
        if let Some(why) = send::not_in_sync(cx, &after.changes, &self.seen).await? {
            return Ok(pending(why, 5));
        }
        if !self.seen(|s| s.verified) && !after.groups.is_empty() {
            let now = self.again(cx, &green_config(cx)?, &before.groups).await?;
            for (key, group) in &after.groups {
                if now.get(key) != Some(group) {
                    return Ok(Settle::Failed {
                        why: format!(
                            "{key} was changed again by somebody right after its handover"
                        ),
                        remedy: "find the other writer of the zone; roll back the cutover".into(),
                    });
                }
            }
            self.seen(|s| s.verified = true);
        }
        let left: Vec<String> = after
            .groups
            .keys()
            .flat_map(|key| ready::hosts_to_ask(cx, key))
            .filter(|h| !self.seen(|s| s.answered.contains(h)))
            .collect();
        let answers = futures::stream::iter(left)
            .map(|host| async move {
                let answer = ask(cx, &host, Via::Dns).await;
                (host, answer)
            })
            .buffered(PROBES)
            .collect::<Vec<_>>()
            .await;
        for (host, answer) in answers {
            match answer {
                Ok(a) if a.status < 500 => self.seen(|s| {
                    s.answered.insert(host);
                }),
                Ok(a) => return Ok(pending(format!("{host} answers {}", a.status), 2)),
                Err(e) if e.is_transient() => {
                    return Ok(pending(format!("{host}: {}", e.message), 2));
                }
                Err(e) => return Err(e.into()),
            }
        }
        if !after.held.is_empty() && (!self.p.hold || after.groups.is_empty()) {
            let names: Vec<String> = after
                .held
                .iter()
                .map(|(k, why)| format!("{k}: {why}"))
                .collect();
            return Ok(Settle::Failed {
                why: format!("still on blue, held: {}", names.join(" | ")),
                remedy: "the others are on green; cure what is said of each name, then resume; or roll back the cutover".into(),
            });
        }
        Ok(Settle::Ready)
    }

    async fn undo(&self, cx: &Cx, before: &Value, after: Option<&Value>) -> StepResult<()> {
        let before: Before = recorded(&cx.step, before)?;
        let after: Option<After> = after.map(|a| recorded(&cx.step, a)).transpose()?;
        let config = green_config(cx)?;
        let before = Before {
            groups: send::last_standing(cx, &before.groups)?,
        };
        let now = self.again(cx, &config, &before.groups).await?;
        let by_host = self.by_host(cx);
        let mut endpoints = None;
        let mut work = vec![];
        for (key, have) in &now {
            let old = &before.groups[key];
            if have == old {
                continue;
            }
            let written = after.as_ref().map(|a| a.groups.get(key));
            let greens = switch::owners_of(have).contains(&config.owner);
            match written {
                Some(Some(w)) if w == have => {}
                // It was held, or died before its batch: what differs there is somebody else's doing, and not ours to take back.
                Some(None) | None if !greens => continue,
                _ => {
                    // Green's own ExternalDNS may have added ownership TXTs and AAAA records, or followed its load balancer, since then.
                    if endpoints.is_none() {
                        endpoints = Some((
                            zone_of(cx, &self.p.zone_id).await?,
                            desired(cx, &config).await?,
                        ));
                    }
                    let (zone, wanted) = endpoints
                        .as_ref()
                        .ok_or_else(|| Error::new(Class::Internal, key, "unreachable"))?;
                    let unit = Self::unit(&by_host, key, have);
                    let as_sent = written.flatten();
                    if !ready::greens_doing(
                        &unit,
                        as_sent.map(Vec::as_slice),
                        wanted,
                        &config,
                        zone,
                    ) {
                        return Err(changed(key, as_sent.unwrap_or(old), have));
                    }
                }
            }
            work.push((key.clone(), switch::batch(have, old)));
        }
        if work.is_empty() {
            return send::nothing_to_send_back(cx);
        }
        let Sent { refused, .. } = send::send_back(cx, &self.p.zone_id, work).await?;
        match refused.into_iter().next() {
            None => Ok(()),
            Some((key, hold)) => Err(StepError::Changed {
                object: format!("record/{key}"),
                expected: text(&before.groups[&key]),
                found: hold.why,
            }),
        }
    }

    async fn undone(&self, cx: &Cx, before: &Value, _: Option<&Value>) -> StepResult<Settle> {
        let before: Before = recorded(&cx.step, before)?;
        let config = green_config(cx)?;
        let before = Before {
            groups: send::last_standing(cx, &before.groups)?,
        };
        let now = self.again(cx, &config, &before.groups).await?;
        let late = now.iter().find(|(key, have)| {
            *have != &before.groups[*key] && switch::owners_of(have).contains(&config.owner)
        });
        if let Some((key, _)) = late {
            return Ok(pending(
                format!("the zone to show the old records of {key}"),
                2,
            ));
        }
        match send::back_not_in_sync(cx, &self.seen).await? {
            Some(why) => Ok(pending(why, 5)),
            None => Ok(Settle::Ready),
        }
    }
}

impl Handover {
    fn seen<T>(&self, look: impl FnOnce(&mut Seen) -> T) -> T {
        look(&mut self.seen.lock().unwrap_or_else(|p| p.into_inner()))
    }
}

fn pending(why: String, seconds: u64) -> Settle {
    Settle::Pending {
        why,
        poll: Duration::from_secs(seconds),
    }
}

/// A moment, as progress records spell it.
fn moment(cx: &Cx) -> Timestamp {
    cx.world.clock.now()
}
