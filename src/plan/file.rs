//! The plan on disk: canonical JSON whose digest must hold.

use super::model::{Basis, Plan};
use crate::error::{Error, Kind, Result};
use crate::object::{Hashing, digest, separate, write_canonical};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

/// sha256 over the canonical JSON of everything but the digest itself.
pub fn digest_of(plan: &Plan) -> String {
    let mut hash = Hashing::default();
    write(plan, false, None, &mut hash).expect("a hash takes what is written");
    hash.hex()
}

/// Writes the canonical JSON of a plan piece by piece: a plan of 50,000 objects is hundreds of megabytes as one JSON value.
fn write(
    plan: &Plan,
    with_digest: bool,
    indent: Option<usize>,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    // Taken apart field by field: a new field that is not written does not compile.
    let Plan {
        api_version,
        kind,
        digest,
        spec,
        basis,
        target,
        findings,
        verdicts,
        generated,
        fields,
        hazards,
        network,
        cost,
        names,
        steps,
        timeline,
    } = plan;
    let mut w = Fields {
        out,
        indent,
        begun: false,
    };
    w.one("api_version", api_version)?;
    w.basis(basis)?;
    w.one("cost", cost)?;
    if with_digest {
        w.one("digest", digest)?;
    }
    w.list("fields", fields)?;
    w.list("findings", findings)?;
    w.list("generated", generated)?;
    w.one("hazards", hazards)?;
    w.one("kind", kind)?;
    w.list("names", names)?;
    w.one("network", network)?;
    w.one("spec", spec)?;
    w.list("steps", steps)?;
    w.one("target", target)?;
    w.one("timeline", timeline)?;
    w.list("verdicts", verdicts)?;
    separate(false, w.indent, w.out)?;
    w.out.write_all(b"}")
}

/// Fields of one object, written in the order of the calls, which is the sorted one.
struct Fields<'o> {
    out: &'o mut dyn Write,
    indent: Option<usize>,
    begun: bool,
}

impl Fields<'_> {
    fn key(&mut self, key: &str) -> std::io::Result<()> {
        if !self.begun {
            self.out.write_all(b"{")?;
        }
        separate(self.begun, self.indent.map(|n| n + 2), self.out)?;
        self.begun = true;
        serde_json::to_writer(&mut *self.out, key)?;
        self.out
            .write_all(if self.indent.is_some() { b": " } else { b":" })
    }
    fn one<T: Serialize>(&mut self, key: &str, value: &T) -> std::io::Result<()> {
        self.key(key)?;
        write_canonical(
            &serde_json::to_value(value)?,
            self.indent.map(|n| n + 2),
            self.out,
        )
    }
    /// The basis with one hash for each object, which as a JSON value would be as large again.
    fn basis(&mut self, basis: &Basis) -> std::io::Result<()> {
        let Basis {
            account,
            region,
            blue,
            zones,
            objects,
            records,
            not_checked,
        } = basis;
        self.key("basis")?;
        let mut w = Fields {
            out: &mut *self.out,
            indent: self.indent.map(|n| n + 2),
            begun: false,
        };
        w.one("account", account)?;
        w.one("blue", blue)?;
        w.one("not_checked", not_checked)?;
        w.map("objects", objects)?;
        w.map("records", records)?;
        w.one("region", region)?;
        w.one("zones", zones)?;
        separate(false, w.indent, w.out)?;
        w.out.write_all(b"}")
    }
    fn map(&mut self, key: &str, map: &BTreeMap<String, String>) -> std::io::Result<()> {
        self.key(key)?;
        if map.is_empty() {
            return self.out.write_all(b"{}");
        }
        let mut w = Fields {
            out: &mut *self.out,
            indent: self.indent.map(|n| n + 2),
            begun: false,
        };
        for (key, value) in map {
            w.key(key)?;
            serde_json::to_writer(&mut *w.out, value)?;
        }
        separate(false, w.indent, w.out)?;
        w.out.write_all(b"}")
    }
    fn list<T: Serialize>(&mut self, key: &str, list: &[T]) -> std::io::Result<()> {
        self.key(key)?;
        if list.is_empty() {
            return self.out.write_all(b"[]");
        }
        let inner = self.indent.map(|n| n + 4);
        self.out.write_all(b"[")?;
        for (n, item) in list.iter().enumerate() {
            separate(n > 0, inner, self.out)?;
            write_canonical(&serde_json::to_value(item)?, inner, self.out)?;
        }
        separate(false, self.indent.map(|n| n + 2), self.out)?;
        self.out.write_all(b"]")
    }
}

/// Reads and verifies a plan.
pub fn load(path: &Path) -> Result<Plan> {
    let place = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|e| {
        Error::new(Kind::BadInput, format!("the plan cannot be read: {e}"))
            .at(&place)
            .remedy("Run `crossfade plan` first, or give the folder that holds plan.json.")
    })?;
    parse(&text, &place)
}

/// Reads and verifies a plan from text; `place` is for errors.
pub fn parse(text: &str, place: &str) -> Result<Plan> {
    let plan: Plan = serde_json::from_str(text).map_err(|e| {
        Error::new(Kind::BadInput, format!("this is no plan: {e}"))
            .at(format!("{place}:{}:{}", e.line(), e.column()))
            .remedy("Make it again with `crossfade plan`.")
    })?;
    // The digest covers what the file says, not only what this version understands of it.
    let mut raw: Value = serde_json::from_str(text)
        .map_err(|e| Error::new(Kind::BadInput, format!("this is no plan: {e}")).at(place))?;
    raw.as_object_mut().map(|o| o.shift_remove("digest"));
    let actual = digest(&raw);
    if actual != plan.digest {
        return Err(Error::new(
            Kind::StalePlan,
            format!(
                "the plan was edited by hand: it says digest {}, its content has {}",
                short(&plan.digest),
                short(&actual)
            ),
        )
        .at(place)
        .remedy("Change migration.yaml instead and run `crossfade plan` again."));
    }
    Ok(plan)
}

fn short(digest: &str) -> String {
    digest.chars().take(12).collect()
}

/// Writes a plan: canonical JSON, pretty for people, through a temporary file so that no half plan is ever seen.
pub fn store(path: &Path, plan: &Plan) -> Result<()> {
    let place = path.display().to_string();
    let fail = |e: std::io::Error| {
        Error::new(Kind::BadInput, format!("the plan cannot be written: {e}"))
            .at(&place)
            .remedy("Check the folder and the space on the disk.")
    };
    let tmp = path.with_extension("json.tmp");
    let f = std::fs::File::create(&tmp).map_err(fail)?;
    let mut out = std::io::BufWriter::new(&f);
    write(plan, true, Some(0), &mut out)
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush())
        .map_err(fail)?;
    drop(out);
    f.sync_all().map_err(fail)?;
    std::fs::rename(&tmp, path).map_err(fail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{canonical, sha256_hex};

    fn plan() -> Plan {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("plans/demo/snapshot");
        let snapshot = crate::snapshot::store::read(&dir).expect("the demo's snapshot");
        super::super::plan(&crate::spec::defaults_for(&snapshot), &snapshot)
    }

    #[test]
    fn a_plan_written_piece_by_piece_is_the_canonical_json_of_the_whole() {
        let plan = plan();
        let mut whole = serde_json::to_value(&plan).expect("plain data");
        let mut pieces = Vec::new();
        write(&plan, true, None, &mut pieces).expect("memory");
        assert!(canonical(&whole) == String::from_utf8(pieces).expect("UTF-8"));
        whole.as_object_mut().map(|o| o.shift_remove("digest"));
        assert_eq!(plan.digest, sha256_hex(canonical(&whole)));
    }

    #[test]
    fn a_stored_plan_is_readable_and_reads_back_the_same() {
        let plan = plan();
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("plan.json");
        store(&path, &plan).expect("stored");
        let text = std::fs::read_to_string(&path).expect("text");
        assert!(
            text.starts_with("{\n  \"api_version\": \"crossfade.dev/v1alpha1\",\n  \"basis\": {\n"),
            "{}",
            &text[..200]
        );
        assert!(load(&path).expect("the digest holds") == plan);
    }
}
