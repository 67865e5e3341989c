//! A rendering on disk: a person's files beside it and in it are safe.

use super::Rendering;
use crate::error::{Error, Kind, Result};
use crate::object::sha256_hex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Which files a rendering wrote, and what was in them.
pub const MANIFEST: &str = ".crossfade-rendered.json";

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    /// sha256 by path.
    files: BTreeMap<String, String>,
}

/// What writing changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// New or changed files.
    pub written: Vec<String>,
    /// Files of an earlier rendering that are gone.
    pub removed: Vec<String>,
    /// Files that are as they were.
    pub same: usize,
}

fn io(path: &Path, e: &std::io::Error) -> Error {
    Error::new(Kind::BadInput, e.to_string())
        .at(path.display().to_string())
        .remedy("check path and permissions")
}

fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(io(path, &e)),
    }
}

/// Writes a rendering into a folder. A file that somebody edited, or that was there before, is not overwritten unless `force`;
/// then nothing at all is written. Files of an earlier rendering that this one does not have go, if nobody edited them.
pub fn write(dir: &Path, rendering: &Rendering, force: bool) -> Result<Written> {
    let manifest_path = dir.join(MANIFEST);
    let before: Manifest = match read(&manifest_path)? {
        None => Manifest::default(),
        Some(bytes) => serde_json::from_slice(&bytes).map_err(|e| {
            Error::new(
                Kind::BadInput,
                format!("what was rendered before cannot be read: {e}"),
            )
            .at(manifest_path.display().to_string())
            .remedy("put it back, or remove it and render with --force")
        })?,
    };
    let mut edited = vec![];
    let mut plan = Written::default();
    for (path, text) in &rendering.files {
        match read(&dir.join(path))? {
            Some(have) if have == text.as_bytes() => plan.same += 1,
            Some(have) => {
                if before.files.get(path) != Some(&sha256_hex(&have)) {
                    edited.push(path.clone());
                }
                plan.written.push(path.clone());
            }
            None => plan.written.push(path.clone()),
        }
    }
    for (path, hash) in &before.files {
        if rendering.files.contains_key(path) {
            continue;
        }
        // The manifest could be edited too: only what lies in this folder is ever removed.
        let inside = Path::new(path)
            .components()
            .all(|c| matches!(c, std::path::Component::Normal(_)));
        if !inside {
            continue;
        }
        if let Some(have) = read(&dir.join(path))?
            && *hash == sha256_hex(&have)
        {
            plan.removed.push(path.clone());
        }
    }
    if !edited.is_empty() && !force {
        return Err(Error::new(
            Kind::Blocked,
            format!(
                "somebody wrote or edited {}: it would be overwritten; nothing was written",
                edited.join(", ")
            ),
        )
        .at(dir.display().to_string())
        .remedy("render elsewhere (--out DIR) and compare, or overwrite with --force"));
    }
    for path in &plan.written {
        let to = dir.join(path);
        if let Some(parent) = to.parent() {
            std::fs::create_dir_all(parent).map_err(|e| io(parent, &e))?;
        }
        whole(&to, &rendering.files[path])?;
    }
    for path in &plan.removed {
        let gone = dir.join(path);
        std::fs::remove_file(&gone).map_err(|e| io(&gone, &e))?;
    }
    let after = Manifest {
        files: rendering
            .files
            .iter()
            .map(|(p, t)| (p.clone(), sha256_hex(t)))
            .collect(),
    };
    if after.files != before.files {
        let text = serde_json::to_string_pretty(&after)
            .map_err(|e| Error::new(Kind::Bug, e.to_string()))?;
        whole(&manifest_path, &(text + "\n"))?;
    }
    Ok(plan)
}

/// A reader sees the old or the new content, never half of it.
fn whole(path: &Path, text: &str) -> Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".crossfade-new");
    let beside = std::path::PathBuf::from(name);
    std::fs::write(&beside, text)
        .and_then(|()| std::fs::rename(&beside, path))
        .map_err(|e| io(path, &e))
}
