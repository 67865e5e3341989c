//! Blue object to green object: pure, one rule at a time, each with its number in `replay.md`.

/// stand-in until the plan branch lands
pub fn for_green(live: &serde_json::Value, target: &serde_json::Value) -> serde_json::Value {
    let mut o = target.clone();
    o["data"] = live["data"].clone();
    o
}
