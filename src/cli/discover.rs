//! `crossfade discover`: a snapshot of blue, the account and the zones, live or from files. Reads only.

use crate::error::{Error, Kind, Result};
use crate::snapshot::mask::Key;
use crate::snapshot::model::{Kops, Snapshot, TerraformResource};
use crate::snapshot::{discover, files, store};
use crate::spec::model::Spec;
use clap::Args;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// `discover`
#[derive(Args, Clone, Debug, Default)]
pub struct DiscoverArgs {
    /// Plan folder; the only one in ./plans when absent
    #[arg(value_name = "PLAN")]
    pub plan: Option<PathBuf>,
    /// Read these files and folders instead of servers: kops exports, kubectl dumps, AWS CLI output
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub from_files: Vec<PathBuf>,
    /// Where the snapshot goes; PLAN/snapshot when absent
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Which kops cluster, when the files hold several
    #[arg(long, value_name = "NAME", requires = "from_files")]
    pub cluster: Option<String>,
    /// Day on which the files were taken (today when absent): ages and expiry dates are counted from it
    #[arg(long, value_name = "YYYY-MM-DD", requires = "from_files")]
    pub taken: Option<String>,
}

/// What a verb has to say: for people, for programs, and remarks for stderr.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Text output.
    pub text: String,
    /// Machine output.
    pub json: Value,
    /// Remarks for stderr, in text output only.
    pub notes: Vec<String>,
}

/// Runs the verb. `plan_folder` finds the plan folder; it is asked only when one is needed.
pub fn run(args: &DiscoverArgs, plan_folder: impl FnOnce() -> Result<PathBuf>) -> Result<Report> {
    // UTC: a plan made from the same snapshot says the same everywhere.
    let day: jiff::civil::Date = match &args.taken {
        None => jiff::Timestamp::now()
            .to_zoned(jiff::tz::TimeZone::UTC)
            .date(),
        Some(day) => day.parse().map_err(|_| {
            Error::new(Kind::Usage, format!("`{day}` is no day"))
                .at("--taken")
                .remedy("write it as 2026-11-30")
        })?,
    };
    let (dir, key, mut snapshot, unused, declared) = if args.from_files.is_empty() {
        let plan = plan_folder()?;
        let dir = args.out.clone().unwrap_or_else(|| plan.join("snapshot"));
        let spec = crate::spec::load(&plan.join("migration.yaml"))?;
        let key = Key::load_or_new(&dir)?;
        let snapshot = live(&spec, &plan, &key)?;
        (dir, key, snapshot, vec![], terraform(&spec, &plan)?)
    } else {
        let dir = match &args.out {
            Some(dir) => dir.clone(),
            None => plan_folder()?.join("snapshot"),
        };
        let spec = match &args.plan {
            Some(plan) if plan.join("migration.yaml").is_file() => {
                Some(crate::spec::load(&plan.join("migration.yaml"))?)
            }
            _ => None,
        };
        let wanted = match (&args.cluster, &args.plan) {
            (Some(name), _) => Some(name.clone()),
            (None, Some(_)) => spec.as_ref().map(|s| s.blue.cluster.clone()),
            _ => None,
        };
        let declared = match (&args.plan, &spec) {
            (Some(plan), Some(spec)) => terraform(spec, plan)?,
            _ => None,
        };
        let key = Key::load_or_new(&dir)?;
        let found = files::from_files(&args.from_files, wanted.as_deref(), &key)?;
        (dir, key, found.snapshot, found.unused, declared)
    };
    if let Some(declared) = declared {
        let all = snapshot.terraform.get_or_insert_default();
        all.extend(declared);
        all.sort_by(|a, b| (&a.address, &a.attributes).cmp(&(&b.address, &b.attributes)));
        all.dedup();
    }
    snapshot.taken = Some(day.to_string());
    // Only now is anything written: bad input and unreachable servers leave no trace.
    key.keep(&dir)?;
    store::write(&dir, &snapshot)?;
    Ok(report(&dir, &snapshot, unused))
}

/// The Terraform state that migration.yaml names, relative to its folder.
fn terraform(spec: &Spec, base: &Path) -> Result<Option<Vec<TerraformResource>>> {
    let path = spec.green.terraform_state.as_ref();
    path.map(|p| files::terraform_file(&base.join(p)))
        .transpose()
}

/// Reads the live world of a spec. `base` is the folder of its `migration.yaml`.
pub fn live(spec: &Spec, base: &Path, key: &Key) -> Result<Snapshot> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|e| Error::new(Kind::Bug, format!("no runtime: {e}")))?;
    runtime.block_on(async {
        let world = crate::world::live::connect(spec, base)?;
        let kops = state_store(spec, base).await;
        let snapshot = discover::live(&world, spec, kops, key).await?;
        essential(&snapshot)?;
        Ok(snapshot)
    })
}

/// A live snapshot without blue, without the account or without a declared zone would make a plan that looks whole and is not.
fn essential(snapshot: &Snapshot) -> Result<()> {
    let why = |what: &str| {
        let gap = snapshot
            .not_checked
            .iter()
            .find(|n| n.what.starts_with(what));
        gap.map_or("no reason was given", |n| n.why.as_str())
            .to_string()
    };
    let missing = if snapshot.blue.identity.is_none() {
        Some((
            "blue",
            "check kubeconfig, context and network; nothing was written",
        ))
    } else if snapshot.aws.is_none() {
        Some((
            "aws",
            "check the profile and its credentials; nothing was written",
        ))
    } else {
        None
    };
    if let Some((what, remedy)) = missing {
        return Err(Error::new(
            Kind::Unreachable,
            format!("{what} could not be read: {}", why(what)),
        )
        .at(what)
        .remedy(remedy));
    }
    match snapshot.not_checked.iter().find(|n| n.what.starts_with("zone/") && !n.what.ends_with(".records")) {
        None => Ok(()),
        Some(gap) => Err(Error::new(Kind::BadInput, gap.why.clone())
            .at(gap.what.clone())
            .remedy("correct dns.zones in migration.yaml, or use the account that holds the zone; nothing was written")),
    }
}

/// The kops documents of the declared state store. A store that cannot be reached is a gap, a wrong one an error.
async fn state_store(spec: &Spec, base: &Path) -> Result<Kops> {
    let Some(location) = &spec.blue.state_store else {
        return Err(Error::new(Kind::BadInput, "no state store is declared")
            .at("migration.yaml: blue.stateStore")
            .remedy("add blue.stateStore: s3://BUCKET, as in KOPS_STATE_STORE"));
    };
    crate::world::live::read_state_store(location, base, &spec.blue.cluster, &spec.aws).await
}

/// What was found, in a few lines.
pub fn report(dir: &Path, s: &Snapshot, unused: Vec<String>) -> Report {
    let groups = s.kops.instance_groups.len();
    let records: usize = s.zones.iter().map(|z| z.records.len()).sum();
    let cluster = s
        .kops
        .cluster
        .as_ref()
        .map(|c| crate::snapshot::kops::name_of(c).to_string());
    let version = s.blue.version.as_ref().map(|v| v.git_version.clone());
    let mut text = format!(
        "snapshot {}\n  kops      {}, {groups} instance groups\n  blue      {}, {} objects\n  green     {}\n  aws       {}\n  dns       {} zones, {records} record sets",
        dir.display(),
        cluster.as_deref().unwrap_or("no cluster"),
        version.as_deref().unwrap_or("unknown version"),
        s.blue.objects.len(),
        match &s.green {
            Some(g) => format!("{} objects", g.objects.len()),
            None => "none yet".into(),
        },
        match &s.aws {
            Some(a) => format!(
                "account {}, {} subnets, {} roles",
                a.identity.account,
                a.subnets.len(),
                a.roles.len()
            ),
            None => "not read".into(),
        },
        s.zones.len(),
    );
    for gap in &s.not_checked {
        text.push_str(&format!("\n  not read  {}: {}", gap.what, gap.why));
    }
    Report {
        text,
        json: json!({
            "snapshot": dir,
            "cluster": cluster,
            "kubernetes": version,
            "instance_groups": groups,
            "objects": s.blue.objects.len(),
            "zones": s.zones.len(),
            "records": records,
            "not_checked": s.not_checked,
            "unused": unused,
        }),
        notes: unused
            .into_iter()
            .map(|u| format!("not used: {u}"))
            .collect(),
    }
}
