//! The three-way compare of one object. Pure.

use super::Op;
use super::immutable::immutable;
use super::lists::keyed;
use super::managers::Managers;
use super::path::{Path, Seg};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Annotations of ours, and those that controllers rewrite all the time.
const NOT_COMPARED: &[&str] = &[
    "deployment.kubernetes.io/revision",
    "deprecated.daemonset.template.generation",
    "control-plane.alpha.kubernetes.io/leader",
    "endpoints.kubernetes.io/last-change-trigger-time",
    "autoscaling.alpha.kubernetes.io/conditions",
    "autoscaling.alpha.kubernetes.io/current-metrics",
    "pv.kubernetes.io/bind-completed",
    "pv.kubernetes.io/bound-by-controller",
    "volume.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/selected-node",
];
/// Prefix of our own marks (replay.md 14).
const MARKS: &str = "crossfade.dev/";

/// Maps of free keys: each entry is a field of its own, whoever else has entries beside it. In every other map the fields belong together
/// (a probe, a volume's source).
const FREE_MAPS: &[&str] = &[
    "labels",
    "annotations",
    "data",
    "binaryData",
    "nodeSelector",
    "matchLabels",
    "limits",
    "requests",
    "hard",
    "parameters",
];
/// Maps of quantities, which a server spells its own way.
const QUANTITIES: &[&str] = &[
    "limits",
    "requests",
    "hard",
    "capacity",
    "default",
    "defaultRequest",
    "max",
    "min",
];

/// What the compare needs to know beside the three objects.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Fields (JSON pointers) by which the object is parked: the steps that wake it own them.
    pub park: Vec<String>,
}

/// One field that is not the same everywhere. Of a Secret the values are markers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Field {
    /// Which.
    pub path: Path,
    /// What the run wrote.
    pub base: Option<Value>,
    /// What blue's object gives now.
    pub blue: Option<Value>,
    /// What green has now.
    pub green: Option<Value>,
    /// Managers who hold it on green, beside us.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub who: Vec<String>,
}

/// What became of one object.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// Only blue changed these: to be written.
    pub bring: Vec<Field>,
    /// Only green changed these: left.
    pub kept: Vec<Field>,
    /// Both changed these, differently: shown, not written.
    pub conflicts: Vec<Field>,
    /// Blue changed these, and no server lets them change: the object must be made again (replay.md 68). Nothing of it is written.
    pub recreate: Vec<Field>,
}

impl Outcome {
    /// Nothing differs that counts.
    pub fn is_equal(&self) -> bool {
        self.bring.is_empty()
            && self.kept.is_empty()
            && self.conflicts.is_empty()
            && self.recreate.is_empty()
    }
    /// What is to be written on green; nothing when the object must be made again: half of it would be neither the old nor the new one.
    pub fn ops(&self) -> Vec<Op> {
        if !self.recreate.is_empty() {
            return vec![];
        }
        self.bring
            .iter()
            .map(|f| Op {
                path: f.path.clone(),
                value: f.blue.clone(),
                was: f.green.clone(),
            })
            .collect()
    }
}

/// Compares what the run wrote, what blue's object would be on green now, and green's object. All three in green's API version.
pub fn compare(base: &Value, now: &Value, green: &Value, options: &Options) -> Outcome {
    let mut walk = Walk {
        kind: green["kind"].as_str().unwrap_or(""),
        managers: Managers::of(green),
        park: options.park.iter().map(|p| Path::pointer(p)).collect(),
        green,
        out: Outcome::default(),
    };
    let root = Path::default();
    for key in keys([Some(base), Some(now), Some(green)]) {
        match key.as_str() {
            "apiVersion" | "kind" | "status" => {}
            "metadata" => {
                for part in ["labels", "annotations"] {
                    let at = |o: &'_ Value| o["metadata"].get(part).cloned();
                    let (b, n, g) = (at(base), at(now), at(green));
                    walk.go(
                        &root.key("metadata").key(part),
                        b.as_ref(),
                        n.as_ref(),
                        g.as_ref(),
                    );
                }
            }
            k => walk.go(&root.key(k), base.get(k), now.get(k), green.get(k)),
        }
    }
    walk.out
}

/// Keys of maps, each once, in order.
fn keys<'v>(maps: impl IntoIterator<Item = Option<&'v Value>>) -> Vec<String> {
    let mut all: Vec<String> = maps
        .into_iter()
        .flatten()
        .filter_map(Value::as_object)
        .flat_map(|m| m.keys().cloned())
        .collect();
    all.sort();
    all.dedup();
    all
}

struct Walk<'a> {
    kind: &'a str,
    managers: Managers,
    park: Vec<Path>,
    green: &'a Value,
    out: Outcome,
}

type Opt<'v> = Option<&'v Value>;

impl Walk<'_> {
    fn ignored(&self, path: &Path) -> bool {
        if self.park.contains(path) {
            return true;
        }
        match path.0.as_slice() {
            [Seg::Key(m), Seg::Key(a), Seg::Key(name)] if m == "metadata" && a == "annotations" => {
                name.starts_with(MARKS) || NOT_COMPARED.contains(&name.as_str())
            }
            _ => false,
        }
    }

    fn go(&mut self, path: &Path, base: Opt, now: Opt, green: Opt) {
        if self.ignored(path) || (base.is_none() && now.is_none() && green.is_none()) {
            return;
        }
        // Fast and common: all three the same.
        if base == now && now == green {
            return;
        }
        let map = |v: Opt| v.is_some_and(Value::is_object);
        let maps = [base, now, green].into_iter().filter(|v| map(*v)).count();
        let there = [base, now, green].into_iter().flatten().count();
        if maps == there && self.descends(path, base, now, green) {
            for key in keys([base, now, green]) {
                let at = |v: Opt<'_>| v.and_then(|v| v.get(&key)).cloned();
                let (b, n, g) = (at(base), at(now), at(green));
                self.go(&path.key(&key), b.as_ref(), n.as_ref(), g.as_ref());
            }
            return;
        }
        if let Some(items) = self.items(path, base, now, green) {
            for (id, [b, n, g]) in items {
                self.go(&path.item(&id), b.as_ref(), n.as_ref(), g.as_ref());
            }
            return;
        }
        self.leaf(path, base, now, green);
    }

    /// Whether maps are compared field by field. Where one side has none at all, a map whose fields belong together is one value.
    fn descends(&self, path: &Path, base: Opt, now: Opt, green: Opt) -> bool {
        let free = path
            .last_key()
            .is_some_and(|k| FREE_MAPS.contains(&k) || self.kind == "Service" && k == "selector");
        match (base.is_some(), now.is_some(), green.is_some()) {
            (true, true, true) | (false, true, true) => true,
            // Gone on blue or on green, or only on green: entry by entry only when entries stand for themselves.
            (true, false, true) | (true, true, false) | (false, false, true) => free,
            _ => false,
        }
    }

    /// A list of named things as such, when all who have it agree on who is who and in which order those of base and blue stand (the
    /// order of init containers is meaning).
    #[allow(clippy::type_complexity)]
    fn items(
        &self,
        path: &Path,
        base: Opt,
        now: Opt,
        green: Opt,
    ) -> Option<Vec<(BTreeMap<String, Value>, [Option<Value>; 3])>> {
        // As with maps: a list that is gone as a whole is one value.
        let (now, green) = (now?, green?);
        let lists = [base, Some(now), Some(green)];
        let mut out: Vec<(BTreeMap<String, Value>, [Option<Value>; 3])> = vec![];
        let mut orders: [Vec<BTreeMap<String, Value>>; 3] = Default::default();
        for (n, list) in lists.into_iter().enumerate() {
            let Some(list) = list else { continue };
            for (id, item) in keyed(self.kind, path, list.as_array()?)? {
                orders[n].push(id.clone());
                match out.iter_mut().find(|(other, _)| *other == id) {
                    Some((_, all)) => all[n] = Some(item.clone()),
                    None => {
                        let mut all = [None, None, None];
                        all[n] = Some(item.clone());
                        out.push((id, all));
                    }
                }
            }
        }
        let common = |a: &[BTreeMap<String, Value>], b: &[BTreeMap<String, Value>]| {
            a.iter()
                .filter(|x| b.contains(x))
                .cloned()
                .collect::<Vec<_>>()
        };
        (common(&orders[0], &orders[1]) == common(&orders[1], &orders[0])).then_some(out)
    }

    fn leaf(&mut self, path: &Path, base: Opt, now: Opt, green: Opt) {
        let quantity = path
            .0
            .iter()
            .rev()
            .nth(1)
            .is_some_and(|s| matches!(s, Seg::Key(k) if QUANTITIES.contains(&k.as_str())));
        let same = |a: Opt, b: Opt| {
            alike(a, b) || quantity && matches!((a, b), (Some(a), Some(b)) if same_quantity(a, b))
        };
        let on_blue = !(base == now || absent(base) && absent(now));
        let on_green = !same(base, green) && !self.ours_still(path, base, green);
        let field = |walk: &Self| Field {
            path: path.clone(),
            base: base.cloned(),
            blue: now.cloned(),
            green: green.cloned(),
            who: walk.managers.others(path),
        };
        match (on_blue, on_green) {
            (false, false) => {}
            (false, true) if base.is_none() => {
                // Beside our fields: a default, unless a person (or their tool) is known to have put it there.
                if !self.managers.people(path).is_empty() {
                    let field = field(self);
                    self.out.kept.push(field);
                }
            }
            (false, true) => {
                let field = field(self);
                self.out.kept.push(field);
            }
            // Strictly here: an empty map may be the very change (replay.md 18).
            (true, _) if now == green || absent(now) && absent(green) => {}
            (true, _)
                if quantity
                    && matches!((now, green), (Some(n), Some(g)) if same_quantity(n, g)) => {}
            (true, changed) => {
                let field = field(self);
                if immutable(self.kind, self.green, path) {
                    self.out.recreate.push(field);
                } else if changed {
                    self.out.conflicts.push(field);
                } else {
                    self.out.bring.push(field);
                }
            }
        }
    }

    /// Whether a value that differs from what we wrote still is what we wrote: in the server's spelling, or with its defaults beside.
    fn ours_still(&self, path: &Path, base: Opt, green: Opt) -> bool {
        let Some(green) = green else { return false };
        if self.managers.only_ours(path) {
            return true;
        }
        base.is_some_and(|b| covers(green, b)) && self.managers.others(path).is_empty()
    }
}

/// Absent, null, and empty lists and maps: servers drop the latter when they store a typed object.
fn nothing(v: Opt) -> bool {
    match v {
        None | Some(Value::Null) => true,
        Some(Value::Object(m)) => m.is_empty(),
        Some(Value::Array(a)) => a.is_empty(),
        _ => false,
    }
}

fn absent(v: Opt) -> bool {
    matches!(v, None | Some(Value::Null))
}

/// The same but for what a server drops.
fn alike(a: Opt, b: Opt) -> bool {
    match (a, b) {
        _ if nothing(a) && nothing(b) => true,
        (Some(Value::Object(x)), Some(Value::Object(y))) => {
            keys([a, b]).iter().all(|k| alike(x.get(k), y.get(k)))
        }
        (Some(Value::Array(x)), Some(Value::Array(y))) => {
            x.len() == y.len() && x.iter().zip(y).all(|(x, y)| alike(Some(x), Some(y)))
        }
        (Some(x), Some(y)) => x == y,
        _ => false,
    }
}

/// Every field of `wanted` is there with its value; lists have the same length.
fn covers(there: &Value, wanted: &Value) -> bool {
    match (there, wanted) {
        (Value::Object(t), Value::Object(w)) => w.iter().all(|(k, v)| {
            nothing(Some(v)) && nothing(t.get(k)) || t.get(k).is_some_and(|t| covers(t, v))
        }),
        (Value::Array(t), Value::Array(w)) => {
            t.len() == w.len() && t.iter().zip(w).all(|(t, w)| covers(t, w))
        }
        (t, w) => t == w,
    }
}

/// `1000m` and `1`, `1Gi` and `1024Mi`.
fn same_quantity(a: &Value, b: &Value) -> bool {
    fn thousandths(v: &Value) -> Option<i128> {
        let text = match v {
            Value::String(s) => s.clone(),
            Value::Number(n) => n.to_string(),
            _ => return None,
        };
        let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-'));
        let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
        let scale: i128 = match unit {
            "m" => 1,
            "" => 1000,
            "k" => 1_000_000,
            "M" => 1_000_000_000,
            "G" => 1_000_000_000_000,
            "T" => 1_000_000_000_000_000,
            "Ki" => 1000 << 10,
            "Mi" => 1000 << 20,
            "Gi" => 1000 << 30,
            "Ti" => 1000 << 40,
            _ => return None,
        };
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        let denominator = 10i128.checked_pow(u32::try_from(part.len()).ok()?)?;
        let all: i128 = format!("{whole}{part}").parse().ok()?;
        let scaled = all.checked_mul(scale)?;
        (scaled % denominator == 0).then_some(scaled / denominator)
    }
    matches!((thousandths(a), thousandths(b)), (Some(a), Some(b)) if a == b)
}
