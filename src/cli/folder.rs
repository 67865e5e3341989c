//! The plan folder: `migration.yaml`, `snapshot/`, `plan.json`, `objects.ndjson`, `approvals.json`, `run/`.

use super::args::{Folder, Global};
use crate::error::{Error, Kind, Result};
use crate::journal::{self, Entry, JOURNAL, State};
use crate::plan::model::Plan;
use std::path::{Path, PathBuf};

/// A plan folder.
#[derive(Clone, Debug)]
pub struct PlanFolder {
    /// Its path as the user would write it.
    pub root: PathBuf,
    /// Whether it has to be named on the command line (it is not the only one in ./plans).
    named: bool,
}

impl PlanFolder {
    /// From the argument, from `--run`, or the only folder in `./plans`.
    pub fn resolve(folder: &Folder, global: &Global) -> Result<Self> {
        match (&folder.plan, &global.run) {
            (Some(_), Some(_)) => Err(Error::new(
                Kind::Usage,
                "both a plan folder and --run are given",
            )
            .remedy("give one of them")),
            (Some(plan), None) => Self::at(plan),
            (None, Some(run)) => {
                let parent = run.parent().unwrap_or(Path::new(""));
                let is_run = !has_plan_files(run)
                    && (run.join(JOURNAL).exists() || run.ends_with("run"))
                    && has_plan_files(parent);
                Self::at(if is_run { parent } else { run })
            }
            (None, None) => Self::only(Path::new("plans")),
        }
    }
    fn at(path: &Path) -> Result<Self> {
        if path.is_dir() {
            return Ok(PlanFolder {
                root: path.into(),
                named: true,
            });
        }
        Err(Error::new(Kind::BadInput, "there is no such plan folder")
            .at(path.display().to_string())
            .remedy("make one with `crossfade init`, or check the path"))
    }
    fn only(plans: &Path) -> Result<Self> {
        let mut found: Vec<PathBuf> = std::fs::read_dir(plans)
            .into_iter()
            .flatten()
            .flatten()
            .map(|e| e.path())
            .filter(|p| p.is_dir() && has_plan_files(p))
            .collect();
        found.sort();
        match found.as_slice() {
            [one] => Ok(PlanFolder {
                root: one.clone(),
                named: false,
            }),
            [] => Err(Error::new(
                Kind::Usage,
                "no plan folder is given, and there is none in ./plans",
            )
            .remedy("make one with `crossfade init`, or name it: crossfade VERB plans/NAME")),
            many => Err(
                Error::new(Kind::Usage, "which plan folder?").remedy(format!(
                    "name one of them: {}",
                    many.iter()
                        .map(|p| p.display().to_string())
                        .collect::<Vec<_>>()
                        .join(", ")
                )),
            ),
        }
    }
    /// ` plans/shop` for commands that are printed, empty when it can be left out.
    pub fn arg(&self) -> String {
        if self.named {
            format!(" {}", self.root.display())
        } else {
            String::new()
        }
    }
    /// `migration.yaml`
    pub fn spec(&self) -> PathBuf {
        self.root.join("migration.yaml")
    }
    /// `snapshot/`
    pub fn snapshot(&self) -> PathBuf {
        self.root.join("snapshot")
    }
    /// `plan.json`
    pub fn plan(&self) -> PathBuf {
        self.root.join("plan.json")
    }
    /// `approvals.json`
    pub fn approvals(&self) -> PathBuf {
        self.root.join("approvals.json")
    }
    /// `run/`
    pub fn run(&self) -> PathBuf {
        self.root.join("run")
    }
    /// The plan, digest verified.
    pub fn load_plan(&self) -> Result<Plan> {
        if !self.plan().exists() {
            return Err(Error::new(Kind::StalePlan, "there is no plan yet")
                .at(self.plan().display().to_string())
                .remedy(format!("make one: crossfade plan{}", self.arg())));
        }
        crate::plan::load(&self.plan())
    }
    /// The records of the run so far, without taking the lock.
    pub fn read_journal(&self) -> Result<(Vec<Entry>, State)> {
        let entries = journal::read(&self.run())?;
        let state =
            State::replay(entries.iter().map(|e| (e.at, &e.record))).map_err(|(n, why)| {
                Error::from(journal::JournalError::Broken {
                    record: n as u64 + 1,
                    offset: 0,
                    why,
                    path: self.run().join(JOURNAL).display().to_string(),
                })
            })?;
        Ok((entries, state))
    }
    /// Puts the journal of an earlier plan aside when nothing of its run is left in the world.
    pub fn archive_clean_run(&self, digest: &str) -> Result<Option<PathBuf>> {
        let (_, state) = self.read_journal()?;
        let Some(run) = &state.run else {
            return Ok(None);
        };
        if run.plan_digest == digest
            || !state.is_clean()
            || journal::Holder::of(&self.run()).is_some()
        {
            return Ok(None);
        }
        let aside = (1..)
            .map(|n| self.root.join(format!("run.{n}")))
            .find(|p| !p.exists())
            .unwrap_or_else(|| self.root.join("run.old"));
        std::fs::rename(self.run(), &aside).map_err(|e| io(&self.run(), &e))?;
        Ok(Some(aside))
    }
}

fn has_plan_files(dir: &Path) -> bool {
    ["migration.yaml", "plan.json", "snapshot"]
        .iter()
        .any(|f| dir.join(f).exists())
}

/// A file system error as people see it.
pub fn io(path: &Path, e: &std::io::Error) -> Error {
    Error::new(Kind::BadInput, e.to_string())
        .at(path.display().to_string())
        .remedy("check path and permissions")
}

/// Writes a file so that a reader sees the old or the new content, never half of it.
pub fn write_file(path: &Path, text: &str) -> Result<()> {
    if let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent).map_err(|e| io(parent, &e))?;
    }
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    let beside = PathBuf::from(name);
    std::fs::write(&beside, text)
        .and_then(|()| std::fs::rename(&beside, path))
        .map_err(|e| io(path, &e))
}
