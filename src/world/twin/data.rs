//! Databases: rows, fence, sequences, replication with lag.

use super::Twin;
use super::state::{Ev, State};
use crate::object::{Side, sha256_hex};
use crate::spec::model::{DataMode, Spec};
use crate::world::data::{Data, DatabaseState, StreamState, TableState};
use crate::world::{Class, Error, Result};
use async_trait::async_trait;
use std::collections::BTreeMap;

/// Rows that a database holds before the simulation starts.
const HISTORY: u64 = 200;
/// Bytes of WAL that one row costs.
const ROW_BYTES: u64 = 128;

/// A row: which writer, its number.
pub(super) type Row = (u32, u64);

#[derive(Clone, Default)]
pub(super) struct Database {
    pub writable: bool,
    pub has_schema: bool,
    pub rows: BTreeMap<u64, Row>,
    /// Next value of the sequence.
    next: u64,
    /// Rows written here by the application, oldest first: what a publication sends.
    wal: Vec<(u64, Row)>,
    /// Writes that met an id which replication had brought already.
    pub duplicate_keys: u64,
}

impl Database {
    /// Whether the application can write here.
    pub fn accepts(&self) -> bool {
        self.writable && self.has_schema
    }
    /// INSERT by the application; `None` when refused.
    pub fn insert(&mut self, row: Row) -> Option<u64> {
        if !self.accepts() {
            return None;
        }
        let id = self.next;
        self.next += 1;
        if self.rows.contains_key(&id) {
            self.duplicate_keys += 1;
            return None;
        }
        self.rows.insert(id, row);
        self.wal.push((id, row));
        Some(id)
    }
}

#[derive(Clone, Debug)]
struct Stream {
    copied: bool,
    /// Rows of the source's WAL that the target has.
    position: usize,
    /// A row that the target refuses (duplicate key): the stream stands still, as a real subscription does.
    stuck: bool,
    scheduled: bool,
}

#[derive(Clone)]
pub(super) struct Set {
    pub blue: Database,
    pub green: Database,
    streams: BTreeMap<Side, Stream>,
    tables: Vec<String>,
}

impl Set {
    pub fn side(&self, side: Side) -> &Database {
        if side == Side::Blue {
            &self.blue
        } else {
            &self.green
        }
    }
    pub fn side_mut(&mut self, side: Side) -> &mut Database {
        if side == Side::Blue {
            &mut self.blue
        } else {
            &mut self.green
        }
    }
}

pub(super) fn other(side: Side) -> Side {
    if side == Side::Blue {
        Side::Green
    } else {
        Side::Blue
    }
}

#[derive(Clone, Default)]
pub(super) struct DataState {
    pub sets: BTreeMap<String, Set>,
    shared: Vec<String>,
}

impl DataState {
    pub fn new(spec: &Spec) -> Self {
        let mut state = DataState::default();
        for d in &spec.data {
            if d.mode == DataMode::Shared {
                state.shared.push(d.name.clone());
                continue;
            }
            let blue = Database {
                writable: true,
                has_schema: true,
                rows: (1..=HISTORY).map(|n| (n, (0, n))).collect(),
                next: HISTORY + 1,
                ..Database::default()
            };
            // Green's server holds an empty database: without tables nothing can be written.
            let green = Database {
                next: 1,
                ..Database::default()
            };
            let tables = if d.tables.is_empty() {
                vec![format!("public.{}", d.name)]
            } else {
                d.tables.clone()
            };
            state.sets.insert(
                d.name.clone(),
                Set {
                    blue,
                    green,
                    streams: BTreeMap::new(),
                    tables,
                },
            );
        }
        state
    }
}

impl State {
    fn set(&mut self, name: &str) -> Result<&mut Set> {
        self.data.sets.get_mut(name).ok_or_else(|| {
            Error::new(
                Class::NotFound,
                format!("data/{name}"),
                "no data set of mode postgres has this name",
            )
        })
    }

    /// The application of a side inserts a row; its replication will carry it over. `None` when refused.
    pub fn insert_row(&mut self, set: &str, side: Side, row: Row) -> Option<u64> {
        let id = self.data.sets.get_mut(set)?.side_mut(side).insert(row)?;
        self.stream_wakes(set, side);
        Some(id)
    }

    fn stream_wakes(&mut self, set: &str, from: Side) {
        // Shorter than the pause between two orders: a healthy stream is now and then level, as on real servers.
        let after = self.secs(1);
        let Some(s) = self.data.sets.get_mut(set) else {
            return;
        };
        let Some(stream) = s.streams.get_mut(&from) else {
            return;
        };
        if stream.copied && !stream.scheduled && !stream.stuck {
            stream.scheduled = true;
            self.at(after, Ev::Stream(set.into(), from));
        }
    }

    /// The subscription applies what has arrived.
    pub fn stream_moves(&mut self, name: &str, from: Side) {
        let Some(set) = self.data.sets.get_mut(name) else {
            return;
        };
        let Some(mut stream) = set.streams.get(&from).cloned() else {
            return;
        };
        stream.scheduled = false;
        if !stream.copied {
            // The initial copy: everything that was there when it began came first, the rest is streamed.
            stream.copied = true;
            let source = set.side(from);
            let later: Vec<u64> = source.wal[stream.position..].iter().map(|w| w.0).collect();
            let rows: Vec<(u64, Row)> = source
                .rows
                .iter()
                .filter(|(id, _)| !later.contains(id))
                .map(|(i, r)| (*i, *r))
                .collect();
            set.side_mut(other(from)).rows.extend(rows);
        }
        let fresh: Vec<(u64, Row)> = set.side(from).wal[stream.position..].to_vec();
        let target = set.side_mut(other(from));
        for (id, row) in fresh {
            match target.rows.get(&id) {
                Some(have) if *have != row => {
                    stream.stuck = true;
                    break;
                }
                _ => target.rows.insert(id, row),
            };
            stream.position += 1;
        }
        let stuck = stream.stuck;
        set.streams.insert(from, stream);
        if stuck {
            self.violate(format!(
                "replication of {name} from {from} stands still: duplicate key"
            ));
        }
    }

    /// Acknowledged rows that the writable side does not have.
    pub fn lost_rows(&self) -> Vec<String> {
        let mut lost = vec![];
        for (name, set) in &self.data.sets {
            let side = match (set.blue.accepts(), set.green.accepts()) {
                (true, false) => Side::Blue,
                (false, true) => Side::Green,
                _ => continue,
            };
            let rows = &set.side(side).rows;
            let gone = self.traffic.acknowledged.get(name).map_or(0, |acked| {
                acked
                    .iter()
                    .filter(|(id, row)| rows.get(id) != Some(row))
                    .count()
            });
            if gone > 0 {
                lost.push(format!("{gone} acknowledged rows of {name} are missing on {side}, which is open for writes"));
            }
        }
        lost
    }
}

#[async_trait]
impl Data for Twin {
    async fn state(&self, set: &str, side: Side) -> Result<DatabaseState> {
        self.call(format!("data state {set} {side}"), false, |s| {
            if s.data.shared.iter().any(|n| n == set) {
                return Ok(DatabaseState {
                    writable: true,
                    sessions: 1,
                    has_schema: true,
                });
            }
            let db = s.set(set)?.side(side);
            Ok(DatabaseState {
                writable: db.writable,
                sessions: u32::from(db.accepts()),
                has_schema: db.has_schema,
            })
        })
        .await
    }
    async fn set_writable(&self, set: &str, side: Side, writable: bool) -> Result<()> {
        self.call(
            format!("data set-writable {set} {side} {writable}"),
            true,
            |s| {
                s.set(set)?.side_mut(side).writable = writable;
                Ok(())
            },
        )
        .await
    }
    async fn probe_write(&self, set: &str, side: Side) -> Result<bool> {
        self.call(format!("data probe-write {set} {side}"), false, |s| {
            Ok(s.set(set)?.side(side).accepts())
        })
        .await
    }
    async fn start_stream(&self, set: &str, from: Side, initial: bool) -> Result<()> {
        self.call(format!("data start-stream {set} from {from}"), true, |s| {
            let copy = s.secs(if initial { 60 } else { 1 });
            let at = format!("data/{set}");
            let state = s.set(set)?;
            if state.streams.contains_key(&from) {
                return Ok(());
            }
            if !state.side(from).has_schema {
                return Err(Error::new(
                    Class::Refused,
                    at,
                    format!("{from} has no tables to replicate"),
                ));
            }
            if initial && state.side(other(from)).accepts() {
                return Err(Error::new(
                    Class::Refused,
                    at,
                    format!("{} is open for writes and would be emptied", other(from)),
                )
                .remedy("close it first"));
            }
            let position = state.side(from).wal.len();
            let target = state.side_mut(other(from));
            if initial {
                let writable = target.writable;
                *target = Database {
                    writable,
                    has_schema: true,
                    next: 1,
                    ..Database::default()
                };
            }
            target.has_schema = true;
            state.streams.insert(
                from,
                Stream {
                    copied: !initial,
                    position,
                    stuck: false,
                    scheduled: initial,
                },
            );
            if initial {
                s.at(copy, Ev::Stream(set.into(), from));
            }
            Ok(())
        })
        .await
    }
    async fn stream(&self, set: &str, from: Side) -> Result<StreamState> {
        self.call(format!("data stream {set} from {from}"), false, |s| {
            let set = s.set(set)?;
            let wal = set.side(from).wal.len();
            Ok(match set.streams.get(&from) {
                None => StreamState {
                    exists: false,
                    copied: false,
                    lag_bytes: 0,
                },
                Some(x) => StreamState {
                    exists: true,
                    copied: x.copied,
                    lag_bytes: wal.saturating_sub(x.position) as u64 * ROW_BYTES,
                },
            })
        })
        .await
    }
    async fn stop_stream(&self, set: &str, from: Side) -> Result<()> {
        self.call(format!("data stop-stream {set} from {from}"), true, |s| {
            s.set(set)?.streams.remove(&from);
            Ok(())
        })
        .await
    }
    async fn copy_sequences(&self, set: &str, from: Side) -> Result<()> {
        self.call(
            format!("data copy-sequences {set} from {from}"),
            true,
            |s| {
                let set = s.set(set)?;
                let next = set.side(from).next;
                let target = set.side_mut(other(from));
                target.next = target.next.max(next);
                Ok(())
            },
        )
        .await
    }
    async fn tables(&self, set: &str, side: Side) -> Result<Vec<TableState>> {
        self.call(format!("data tables {set} {side}"), false, |s| {
            let set = s.set(set)?;
            let db = set.side(side);
            if !db.has_schema {
                return Ok(vec![]);
            }
            // The rows live in the table that is named like the set, or in the first one; the others are empty.
            let mut sum = 0u64;
            for (id, (client, seq)) in &db.rows {
                let mut x = id ^ (u64::from(*client) << 40) ^ (seq << 20);
                x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                sum = sum.wrapping_add(x ^ (x >> 31));
            }
            Ok(set
                .tables
                .iter()
                .enumerate()
                .map(|(i, name)| TableState {
                    name: name.clone(),
                    rows: if i == 0 { db.rows.len() as u64 } else { 0 },
                    checksum: sha256_hex(format!("{}", if i == 0 { sum } else { 0 }))[..16]
                        .to_owned(),
                })
                .collect())
        })
        .await
    }
}
