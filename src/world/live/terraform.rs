//! The program `terraform` or `tofu`, in a folder of its own beside the plan.
//!
//! What it makes can take half an hour. So it runs on its own: started through a shell that writes down its process id, what it says and how it
//! ended. It outlives a crossfade that is killed, and Ctrl-C does not reach it half way through.

use crate::object::sha256_hex;
use crate::world::terraform::{Change, Doing, Job, Kept, Planned, Terraform, What};
use crate::world::{Class, Error, Result};
use async_trait::async_trait;
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::process::Command;

/// Folder beside `migration.yaml` in which Terraform works.
pub const FOLDER: &str = "terraform-run";
/// Plan, log and process of a started run. `$1` is the program, `$2` the plan file.
const SCRIPT: &str = "trap '' HUP\n\
echo $$ > apply.pid.new && mv apply.pid.new apply.pid\n\
\"$1\" apply -input=false -no-color -lock-timeout=0s \"$2\" > apply.log 2>&1 < /dev/null\n\
echo $? > apply.exit.new && mv apply.exit.new apply.exit\n";

/// The program in its folder.
pub struct LiveTerraform {
    binary: String,
    dir: PathBuf,
    profile: Option<String>,
}

impl LiveTerraform {
    /// `base` is the folder of the spec.
    pub fn new(spec: &crate::spec::model::Spec, base: &Path) -> Self {
        let given = spec.provision.binary.as_deref().unwrap_or("terraform");
        let binary = if given.contains('/') {
            let path = base.join(given);
            // Terraform runs in a folder of its own.
            std::path::absolute(&path)
                .unwrap_or(path)
                .display()
                .to_string()
        } else {
            given.into()
        };
        let dir = base.join(FOLDER);
        LiveTerraform {
            binary,
            dir: std::path::absolute(&dir).unwrap_or(dir),
            profile: spec.aws.profile.clone(),
        }
    }

    fn io(&self, path: &Path, e: &std::io::Error) -> Error {
        Error::new(Class::Refused, path.display().to_string(), e.to_string())
            .remedy("check path and permissions")
    }

    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.dir)
            .stdin(Stdio::null())
            .env("TF_IN_AUTOMATION", "1")
            .env("TF_INPUT", "0")
            .env("CHECKPOINT_DISABLE", "1");
        // The plan alone says what is made: nothing of the caller's shell may add to it.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            let ours = text.starts_with("TF_VAR_")
                || text.starts_with("TF_CLI_ARGS")
                || matches!(
                    text.as_ref(),
                    "TF_WORKSPACE" | "TF_DATA_DIR" | "AWS_PROFILE"
                );
            if ours {
                command.env_remove(&name);
            }
        }
        if let Some(profile) = &self.profile {
            command.env("AWS_PROFILE", profile);
        }
        command
    }

    /// One command that ends soon; its output.
    async fn run(&self, args: &[&str]) -> Result<String> {
        let what = format!("{} {}", self.binary, args.first().copied().unwrap_or(""));
        let output = self
            .command(&self.binary)
            .args(args)
            .kill_on_drop(true)
            .output()
            .await
            .map_err(|e| self.not_started(&e))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = format!(
            "{}\n{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        Err(self.failed(&what, &said))
    }

    fn not_started(&self, e: &std::io::Error) -> Error {
        let why = if e.kind() == std::io::ErrorKind::NotFound {
            "it is not on this machine".to_string()
        } else {
            format!("it cannot be started: {e}")
        };
        Error::new(Class::Refused, self.binary.clone(), why).remedy(
            "install it, name another program (provision.binary), or let crossfade make the resources itself (leave out provision.via)",
        )
    }

    fn failed(&self, what: &str, said: &str) -> Error {
        let why = errors(said);
        Error::new(class(said), what, why.clone()).remedy(match class(said) {
            Class::NotReady => "somebody holds the state: wait for them; a lock that was left behind goes with force-unlock in the folder terraform-run",
            _ => "read what it says, cure it, then repeat",
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Puts the job's files there; refuses a folder that says something else too.
    async fn files(&self, job: &Job) -> Result<()> {
        std::fs::create_dir_all(&self.dir).map_err(|e| self.io(&self.dir, &e))?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // Account and role names are nobody else's business on a shared machine.
            std::fs::set_permissions(&self.dir, std::fs::Permissions::from_mode(0o700))
                .map_err(|e| self.io(&self.dir, &e))?;
        }
        for entry in std::fs::read_dir(&self.dir).map_err(|e| self.io(&self.dir, &e))? {
            let entry = entry.map_err(|e| self.io(&self.dir, &e))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let counts = [
                ".tf",
                ".tf.json",
                ".tofu",
                ".tofu.json",
                ".tfvars",
                ".tfvars.json",
            ]
            .iter()
            .any(|end| name.ends_with(end));
            if counts && !job.files.contains_key(&name) {
                return Err(Error::new(
                    Class::Refused,
                    entry.path().display().to_string(),
                    "it would change what Terraform makes, and is no part of the plan",
                )
                .remedy("remove it: this folder is crossfade's own"));
            }
        }
        for (name, text) in &job.files {
            let path = self.path(name);
            if std::fs::read(&path).is_ok_and(|have| have == text.as_bytes()) {
                continue;
            }
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent).map_err(|e| self.io(parent, &e))?;
            }
            std::fs::write(&path, text).map_err(|e| self.io(&path, &e))?;
        }
        Ok(())
    }

    async fn init(&self, job: &Job) -> Result<()> {
        self.files(job).await?;
        self.run(&["init", "-input=false", "-no-color"]).await?;
        Ok(())
    }

    async fn shown(&self, file: &str) -> Result<Value> {
        let text = self.run(&["show", "-json", "-no-color", file]).await?;
        self.json(&text)
    }

    fn json(&self, text: &str) -> Result<Value> {
        serde_json::from_str(text).map_err(|e| {
            Error::new(
                Class::Internal,
                format!("{} show", self.binary),
                format!("its answer is no JSON: {e}"),
            )
        })
    }

    fn hash(&self, file: &str) -> Result<Option<String>> {
        let path = self.path(file);
        match std::fs::read(&path) {
            Ok(bytes) => Ok(Some(sha256_hex(&bytes))),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(self.io(&path, &e)),
        }
    }

    fn text(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.path(name)).ok()
    }
}

/// sha256 over the files of a job.
fn job_hash(job: &Job) -> String {
    let mut all = String::new();
    for (name, text) in &job.files {
        all.push_str(&format!("{name} {}\n", sha256_hex(text)));
    }
    sha256_hex(all)
}

fn plan_file(what: &What) -> &'static str {
    match what {
        What::Pinned => "pinned.tfplan",
        What::Rest => "rest.tfplan",
        What::Destroy(_) => "destroy.tfplan",
    }
}

/// What Terraform calls an error, in one line; its last words when it names none.
pub(super) fn errors(said: &str) -> String {
    let plain = |l: &str| {
        l.trim_start_matches(['│', '╷', '╵', '|', ' '])
            .trim()
            .to_string()
    };
    let lines: Vec<String> = said.lines().map(plain).filter(|l| !l.is_empty()).collect();
    let mut out: Vec<String> = vec![];
    for (i, line) in lines.iter().enumerate() {
        if line.starts_with("Error:") {
            let rest = lines[i + 1..]
                .iter()
                .take_while(|l| !l.starts_with("Error:"))
                .take(4);
            let mut all = vec![line.trim_start_matches("Error:").trim().to_string()];
            all.extend(rest.cloned());
            out.push(all.join(" "));
        }
    }
    if out.is_empty() {
        let from = lines.len().saturating_sub(3);
        return lines[from..].join(" ");
    }
    out.dedup();
    out.truncate(5);
    out.join("; ")
}

fn class(said: &str) -> Class {
    let has = |words: &[&str]| words.iter().any(|w| said.contains(w));
    if has(&["Error acquiring the state lock"]) {
        Class::NotReady
    } else if has(&["Throttling", "Rate exceeded", "TooManyRequests"]) {
        Class::Throttled
    } else if has(&[
        "AccessDenied",
        "UnauthorizedOperation",
        "ExpiredToken",
        "No valid credential",
    ]) {
        Class::Unauthorized
    } else if has(&[
        "no such host",
        "connection refused",
        "connection reset",
        "i/o timeout",
    ]) {
        Class::Unreachable
    } else {
        Class::Refused
    }
}

/// Changes of a plan as `show -json` tells them.
pub(super) fn changes(plan: &Value) -> Vec<Change> {
    let mut out: Vec<Change> = plan["resource_changes"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|c| c["mode"] == "managed")
        .filter_map(|c| {
            let word = |v: &Value| v.as_str().map(String::from);
            let mut actions: Vec<String> = c["change"]["actions"]
                .as_array()?
                .iter()
                .filter_map(word)
                .collect();
            if c["change"]["importing"].is_object() && actions == ["no-op"] {
                actions = vec!["import".into()];
            }
            // An object that a failed replacement left behind goes: that is a deletion too.
            if c.get("deposed").is_some() && !actions.iter().any(|a| a == "delete") {
                actions.push("delete".into());
            }
            Some(Change {
                address: word(&c["address"])?,
                kind: word(&c["type"]).unwrap_or_default(),
                actions,
            })
        })
        .filter(|c| c.actions != ["no-op"] && c.actions != ["read"])
        .collect();
    out.sort_by(|a, b| a.address.cmp(&b.address));
    out
}

/// Everything managed in a state, as `show -json` tells it.
pub(super) fn kept(state: &Value) -> Vec<Kept> {
    fn walk(module: &Value, out: &mut Vec<Kept>) {
        for r in module["resources"].as_array().into_iter().flatten() {
            if r["mode"] != "managed" {
                continue;
            }
            out.push(Kept {
                address: r["address"].as_str().unwrap_or_default().into(),
                kind: r["type"].as_str().unwrap_or_default().into(),
                id: r["values"]["id"].as_str().map(String::from),
                tainted: r["tainted"] == true,
            });
        }
        for m in module["child_modules"].as_array().into_iter().flatten() {
            walk(m, out);
        }
    }
    let mut out = vec![];
    walk(&state["values"]["root_module"], &mut out);
    out.sort_by(|a, b| a.address.cmp(&b.address));
    out
}

#[async_trait]
impl Terraform for LiveTerraform {
    async fn plan(&self, job: &Job, what: &What) -> Result<Planned> {
        self.init(job).await?;
        let file = plan_file(what);
        let out = format!("-out={file}");
        let mut args = vec![
            "plan".to_string(),
            "-input=false".into(),
            "-no-color".into(),
            "-lock-timeout=0s".into(),
            out,
        ];
        if let What::Destroy(addresses) = what {
            args.push("-destroy".into());
            args.extend(addresses.iter().map(|a| format!("-target={a}")));
        }
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        self.run(&args).await?;
        let shown = self.shown(file).await?;
        let name = Path::new(&self.binary)
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        let planned = Planned {
            sha256: self
                .hash(file)?
                .ok_or_else(|| Error::new(Class::Internal, file, "Terraform wrote no plan file"))?,
            tool: format!(
                "{name} {}",
                shown["terraform_version"].as_str().unwrap_or("?")
            ),
            job: job_hash(job),
            changes: changes(&shown),
        };
        if *what == What::Pinned {
            let path = self.path("pinned.json");
            let text = serde_json::to_string_pretty(&planned)
                .map_err(|e| Error::new(Class::Internal, "pinned.json", e.to_string()))?;
            std::fs::write(&path, text + "\n").map_err(|e| self.io(&path, &e))?;
        }
        Ok(planned)
    }

    async fn pinned(&self, job: &Job) -> Result<Option<Planned>> {
        let path = self.path("pinned.json");
        let Some(text) = self.text("pinned.json") else {
            return Ok(None);
        };
        let planned: Planned = serde_json::from_str(&text).map_err(|e| {
            Error::new(Class::Refused, path.display().to_string(), e.to_string())
                .remedy("remove it and plan again: crossfade plan")
        })?;
        let same = planned.job == job_hash(job)
            && self.hash(plan_file(&What::Pinned))?.as_deref() == Some(&planned.sha256);
        Ok(same.then_some(planned))
    }

    async fn state(&self, job: &Job) -> Result<Vec<Kept>> {
        if !self.path(".terraform").exists() && !self.path(".terraform.lock.hcl").exists() {
            self.init(job).await?;
        }
        let text = self.run(&["show", "-json", "-no-color"]).await?;
        Ok(kept(&self.json(&text)?))
    }

    async fn start(&self, job: &Job, what: &What, sha256: &str) -> Result<()> {
        let file = plan_file(what);
        if let Some(before) = self.text("apply.what") {
            match self.doing(job, before.trim()).await? {
                Doing::Running(_) if before.trim() == sha256 => return Ok(()),
                Doing::Running(line) => {
                    return Err(Error::new(
                        Class::NotReady,
                        &self.binary,
                        format!("an earlier run of it still works: {line}"),
                    ));
                }
                _ => {}
            }
        }
        let have = self.hash(file)?;
        if have.as_deref() != Some(sha256) {
            return Err(Error::new(
                Class::Refused,
                self.path(file).display().to_string(),
                format!(
                    "it is not the plan that was approved: sha256 {}, approved {sha256}",
                    have.as_deref().unwrap_or("of nothing")
                ),
            )
            .remedy("plan and review again: crossfade plan, crossfade review"));
        }
        for name in ["apply.exit", "apply.pid", "apply.log"] {
            match std::fs::remove_file(self.path(name)) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    return Err(self.io(&self.path(name), &e));
                }
                _ => {}
            }
        }
        let mark = self.path("apply.what");
        std::fs::write(&mark, sha256).map_err(|e| self.io(&mark, &e))?;
        let mut command = self.command("sh");
        command
            .args(["-c", SCRIPT, "crossfade-terraform", &self.binary, file])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // Ctrl-C is for crossfade: Terraform ends what it began.
        #[cfg(unix)]
        command.process_group(0);
        command.spawn().map_err(|e| self.not_started(&e))?;
        Ok(())
    }

    async fn doing(&self, _: &Job, sha256: &str) -> Result<Doing> {
        if self.text("apply.what").as_deref().map(str::trim) != Some(sha256) {
            return Ok(Doing::Nothing);
        }
        let log = self.text("apply.log").unwrap_or_default();
        if let Some(code) = self.text("apply.exit") {
            return Ok(match code.trim() {
                "0" => Doing::Ended,
                "127" => Doing::Failed(format!("{} is not on this machine", self.binary)),
                _ => Doing::Failed(errors(&log)),
            });
        }
        let last = log
            .lines()
            .rev()
            .find(|l| !l.trim().is_empty())
            .unwrap_or("Terraform starts")
            .trim()
            .to_string();
        let Some(pid) = self.text("apply.pid") else {
            return Ok(Doing::Running(last));
        };
        let alive = self
            .command("kill")
            .args(["-0", pid.trim()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .await
            .is_ok_and(|s| s.success());
        if alive {
            return Ok(Doing::Running(last));
        }
        // It may have ended between the two looks.
        match self.text("apply.exit") {
            Some(code) if code.trim() == "0" => Ok(Doing::Ended),
            Some(_) => Ok(Doing::Failed(errors(&log))),
            None => Ok(Doing::Failed(format!(
                "Terraform was killed; it said last: {last}"
            ))),
        }
    }

    async fn import(&self, job: &Job, address: &str, id: &str) -> Result<()> {
        self.files(job).await?;
        self.run(&[
            "import",
            "-input=false",
            "-no-color",
            "-lock-timeout=0s",
            address,
            id,
        ])
        .await?;
        Ok(())
    }
}
