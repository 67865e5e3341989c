//! The promises of the compare on thousands of made-up edits: blue's changes arrive, nobody's change on green is lost, a second look
//! finds nothing to do.

use super::compare::{Options, compare};
use super::{Path, Seg, apply_ops};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A small generator of our own: the same numbers on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }
}

/// What the run wrote.
fn base() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web", "team": "a"}, "annotations": {"note": "1", "other": "1"}},
        "spec": {
            "replicas": 0, "minReadySeconds": 5, "paused": false,
            "template": {
                "metadata": {"labels": {"app": "web", "v": "1"}},
                "spec": {
                    "terminationGracePeriodSeconds": 30,
                    "nodeSelector": {"pool": "a"},
                    "containers": [
                        {"name": "web", "image": "web:1", "args": ["-a", "-b"], "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "1"}],
                         "ports": [{"containerPort": 80, "protocol": "TCP", "name": "http"}], "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}},
                        {"name": "side", "image": "side:1", "env": [{"name": "A", "value": "1"}]}
                    ],
                    "volumes": [{"name": "data", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "conf", "configMap": {"name": "conf"}}]
                }
            }
        }
    })
}

fn item(name: &str) -> Seg {
    Seg::Item(BTreeMap::from([("name".into(), json!(name))]))
}

fn key(name: &str) -> Seg {
    Seg::Key(name.into())
}

/// Places that people edit; none lies within another, so that each edit can be told from the others.
fn places() -> Vec<Path> {
    let pod = || vec![key("spec"), key("template"), key("spec")];
    let container = |c: &str, more: &[Seg]| {
        let mut path = pod();
        path.push(key("containers"));
        path.push(item(c));
        path.extend_from_slice(more);
        Path(path)
    };
    let in_pod = |more: &[Seg]| {
        let mut path = pod();
        path.extend_from_slice(more);
        Path(path)
    };
    vec![
        Path::keys(&["metadata", "labels", "team"]),
        Path::keys(&["metadata", "labels", "new"]),
        Path::keys(&["metadata", "annotations", "note"]),
        Path::keys(&["metadata", "annotations", "other"]),
        Path::keys(&["metadata", "annotations", "new/one"]),
        Path::keys(&["spec", "minReadySeconds"]),
        Path::keys(&["spec", "paused"]),
        Path::keys(&["spec", "template", "metadata", "labels", "v"]),
        in_pod(&[key("terminationGracePeriodSeconds")]),
        in_pod(&[key("nodeSelector"), key("pool")]),
        in_pod(&[key("nodeSelector"), key("zone")]),
        in_pod(&[
            key("volumes"),
            item("data"),
            key("emptyDir"),
            key("sizeLimit"),
        ]),
        in_pod(&[key("volumes"), item("conf"), key("configMap"), key("name")]),
        container("web", &[key("image")]),
        container("web", &[key("args")]),
        container("web", &[key("env"), item("A"), key("value")]),
        container("web", &[key("env"), item("B"), key("value")]),
        container("web", &[key("env"), item("NEW"), key("value")]),
        container("web", &[key("resources"), key("limits"), key("cpu")]),
        container("side", &[key("image")]),
        container("side", &[key("env"), item("A"), key("value")]),
        container("side", &[key("env"), item("X"), key("value")]),
    ]
}

/// A few edits; values are few too, so that both sides often mean the same.
fn edits(dice: &mut Dice, places: &[Path]) -> BTreeMap<usize, Option<Value>> {
    (0..dice.roll(7))
        .map(|_| {
            let n = dice.roll(places.len());
            let gone = dice.roll(4) == 0 && places[n].last_key() != Some("value");
            (n, (!gone).then(|| json!(["2", "3"][dice.roll(2)])))
        })
        .collect()
}

fn edited(mut object: Value, places: &[Path], edits: &BTreeMap<usize, Option<Value>>) -> Value {
    for (n, value) in edits {
        match value {
            Some(v) => places[*n].set(&mut object, v.clone()),
            None => places[*n].remove(&mut object),
        }
    }
    object
}

/// What green's server puts beside.
fn defaulted(mut object: Value) -> Value {
    object["spec"]["progressDeadlineSeconds"] = json!(600);
    object["spec"]["template"]["spec"]["dnsPolicy"] = json!("ClusterFirst");
    object["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"] = json!("Always");
    object["metadata"]["annotations"]["crossfade.dev/run"] = json!("r");
    object["spec"]["replicas"] = json!(4);
    object
}

#[test]
fn on_any_edits_of_both_sides_exactly_blues_changes_arrive_and_none_of_greens_is_lost() {
    let places = places();
    let park = Options {
        park: vec!["/spec/replicas".into()],
    };
    let mut seen = BTreeSet::new();
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    for round in 0..2000 {
        let base = base();
        let (on_blue, on_green) = (edits(&mut dice, &places), edits(&mut dice, &places));
        let now = edited(base.clone(), &places, &on_blue);
        let green = edited(defaulted(base.clone()), &places, &on_green);
        let out = compare(&base, &now, &green, &park);
        let mut after = green.clone();
        apply_ops(&mut after, &out.ops());

        // Place by place, by the definition.
        let mut wanted = green.clone();
        for (n, place) in places.iter().enumerate() {
            let at = |o: &Value| place.get(o).cloned();
            let (b, x, g) = (at(&base), at(&now), at(&green));
            match (b != x, b != g) {
                (true, false) => {
                    seen.insert("bring");
                    match &on_blue[&n] {
                        Some(v) => place.set(&mut wanted, v.clone()),
                        None => place.remove(&mut wanted),
                    }
                }
                (false, true) => {
                    seen.insert("kept");
                }
                (true, true) if x != g => {
                    seen.insert("conflict");
                    let conflicts = out.conflicts.iter().any(|f| f.path.meets(place));
                    assert!(conflicts, "round {round}: {place}: {out:?}");
                }
                (true, true) => {
                    seen.insert("alike");
                }
                (false, false) => {}
            }
        }
        // A free map that became empty on the way is as good as none.
        for o in [&mut wanted, &mut after] {
            for at in [&["spec", "template", "spec", "nodeSelector"][..]] {
                if Path::keys(at).get(o).is_some_and(|m| *m == json!({})) {
                    Path::keys(at).remove(o);
                }
            }
        }
        assert_eq!(
            after, wanted,
            "round {round}: blue {on_blue:?}, green {on_green:?}"
        );
        // A second look, with what was written as the base, has nothing to write.
        let again = compare(&now, &now, &after, &park);
        assert!(again.ops().is_empty(), "round {round}: {again:?}");
        assert!(again.recreate.is_empty());
    }
    assert_eq!(
        seen,
        BTreeSet::from(["alike", "bring", "conflict", "kept"]),
        "the edits met in every way"
    );
}

#[test]
fn without_a_change_on_blue_nothing_is_ever_written() {
    let places = places();
    let mut dice = Dice(77);
    for round in 0..1000 {
        let base = base();
        let on_green = edits(&mut dice, &places);
        let green = edited(defaulted(base.clone()), &places, &on_green);
        let out = compare(&base, &base, &green, &Options::default());
        assert!(
            out.ops().is_empty() && out.conflicts.is_empty(),
            "round {round}"
        );
    }
}
