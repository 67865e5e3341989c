//! Blue object to green object: pure, one rule at a time, each with its number in `replay.md`.
