//! `crossfade init`: writes `migration.yaml` from what it finds. Never over an existing one.

use super::discover::{Report, live};
use crate::error::{Error, Kind, Result};
use crate::object::{ObjectId, annotation};
use crate::plan::model::Plan;
use crate::snapshot::mask::Key;
use crate::snapshot::model::Snapshot;
use crate::snapshot::{files, store};
use crate::spec;
use crate::spec::model::Spec;
use clap::Args;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::{Component, Path, PathBuf};

/// `init`
#[derive(Args, Clone, Debug, Default)]
pub struct InitArgs {
    /// Plan folder to make: a path, or a name for plans/NAME
    #[arg(value_name = "PLAN")]
    pub plan: PathBuf,
    /// Name of the kops cluster
    #[arg(long, value_name = "NAME")]
    pub cluster: Option<String>,
    /// Kubeconfig of blue
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context in that kubeconfig
    #[arg(long, value_name = "NAME", requires = "kubeconfig")]
    pub context: Option<String>,
    /// kops state store: s3://BUCKET/PREFIX or a folder
    #[arg(long, value_name = "URL")]
    pub state_store: Option<String>,
    /// AWS region
    #[arg(long)]
    pub region: Option<String>,
    /// AWS profile
    #[arg(long)]
    pub profile: Option<String>,
    /// Read this snapshot instead of servers
    #[arg(long, value_name = "DIR", conflicts_with = "from_files")]
    pub snapshot: Option<PathBuf>,
    /// Read these files instead of servers: kops exports, kubectl dumps, AWS CLI output
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub from_files: Vec<PathBuf>,
}

/// Runs the verb.
pub fn run(args: &InitArgs) -> Result<Report> {
    // A bare word is a name below ./plans; anything with a separator is a path.
    let folder = if args.plan.components().count() == 1
        && matches!(args.plan.components().next(), Some(Component::Normal(_)))
    {
        Path::new("plans").join(&args.plan)
    } else {
        args.plan.clone()
    };
    let target = folder.join("migration.yaml");
    if target.exists() {
        return Err(Error::new(
            Kind::BadInput,
            "there is a migration.yaml already, and init never overwrites one",
        )
        .at(target.display().to_string())
        .remedy("edit it, or name another plan folder"));
    }
    let snapshot = read(args, &folder)?;
    let mut spec = spec::defaults_for(&snapshot);
    apply(args, &folder, &mut spec);
    // The planner knows best what it cannot decide by itself.
    let plan = crate::plan::plan(&spec, &snapshot);
    let text = render(&spec, &snapshot, &plan);
    // What init writes must be what the next verb reads.
    let checked = spec::parse(&text, &target.display().to_string())?;
    if checked != spec {
        return Err(
            Error::new(Kind::Bug, "init would write something else than it means")
                .at(target.display().to_string()),
        );
    }
    let fail = |e: std::io::Error| {
        Error::new(Kind::BadInput, format!("the file cannot be written: {e}"))
            .at(target.display().to_string())
            .remedy("check path and permissions")
    };
    std::fs::create_dir_all(&folder).map_err(fail)?;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    std::io::Write::write_all(&mut options.open(&target).map_err(fail)?, text.as_bytes())
        .map_err(fail)?;
    // From where init read, discover reads again: a plan from files needs no server.
    let next = match (&args.snapshot, args.from_files.as_slice()) {
        (Some(dir), _) => format!(
            "crossfade plan --snapshot {} --spec {}",
            dir.display(),
            target.display()
        ),
        (None, []) => format!("crossfade discover {}", folder.display()),
        (None, paths) => format!(
            "crossfade discover {} --from-files {}",
            folder.display(),
            paths
                .iter()
                .map(|p| p.display().to_string())
                .collect::<Vec<_>>()
                .join(" ")
        ),
    };
    Ok(Report {
        text: format!(
            "wrote {}\nread it, fill in what only you know (databases, access), then: {next}",
            target.display()
        ),
        json: json!({"spec": target, "name": spec.name, "cluster": spec.blue.cluster, "green": spec.green.name, "next": next}),
        notes: snapshot
            .not_checked
            .iter()
            .map(|n| format!("not read: {}: {}", n.what, n.why))
            .collect(),
    })
}

fn read(args: &InitArgs, folder: &Path) -> Result<Snapshot> {
    if let Some(dir) = &args.snapshot {
        return store::read(dir);
    }
    // Only the spec is kept of this reading, so a key that nobody keeps is right.
    let key = Key::from_bytes([0; 32]);
    if !args.from_files.is_empty() {
        return Ok(files::from_files(&args.from_files, args.cluster.as_deref(), &key)?.snapshot);
    }
    let Some(cluster) = &args.cluster else {
        return Err(Error::new(Kind::Usage, "which cluster is to be moved?")
            .remedy("give --cluster NAME with --kubeconfig and --state-store, or --snapshot DIR, or --from-files PATH..."));
    };
    let mut wish = spec::defaults_for(&Snapshot::default());
    wish.blue.cluster = cluster.clone();
    apply(args, folder, &mut wish);
    live(&wish, folder, &key)
}

/// What the command line says beats what was found.
fn apply(args: &InitArgs, folder: &Path, spec: &mut Spec) {
    if let Some(name) = folder
        .file_name()
        .and_then(|n| n.to_str())
        .and_then(migration_name)
    {
        spec.name = name;
    }
    if let Some(cluster) = &args.cluster {
        spec.blue.cluster = cluster.clone();
    }
    spec.blue.kubeconfig = args.kubeconfig.as_deref().map(|k| relative(k, folder));
    spec.blue.context = args.context.clone();
    spec.blue.state_store = args.state_store.as_ref().map(|s| {
        if s.contains("://") {
            s.clone()
        } else {
            relative(Path::new(s), folder)
        }
    });
    if args.region.is_some() {
        spec.aws.region = args.region.clone();
    }
    spec.aws.profile = args.profile.clone();
}

/// The folder's name, when it can name a migration.
fn migration_name(word: &str) -> Option<String> {
    let good = word.len() <= 40
        && word.starts_with(|c: char| c.is_ascii_lowercase())
        && !word.ends_with('-')
        && word
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    good.then(|| word.to_string())
}

/// A path as seen from a folder: paths in a spec are relative to it, so that the plan can be moved with its files.
fn relative(path: &Path, folder: &Path) -> String {
    let full = |p: &Path| std::path::absolute(p).unwrap_or_else(|_| p.to_path_buf());
    let (path, folder) = (full(path), full(folder));
    let a: Vec<_> = path.components().collect();
    let b: Vec<_> = folder.components().collect();
    let same = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    // Only the root in common: an absolute path says it better than a row of `..`.
    if same <= 1 {
        return path.display().to_string();
    }
    let up = std::iter::repeat_n(Component::ParentDir, b.len() - same);
    up.chain(a[same..].iter().copied())
        .collect::<PathBuf>()
        .display()
        .to_string()
}

/// A scalar: JSON's quoting is YAML's.
fn q(text: &str) -> String {
    Value::from(text).to_string()
}

fn line(out: &mut String, text: impl AsRef<str>) {
    let _ = writeln!(out, "{}", text.as_ref()); // writing to a String cannot fail
}

/// The commented file.
fn render(spec: &Spec, s: &Snapshot, plan: &Plan) -> String {
    let mut o = String::new();
    let mut l = |text: String| line(&mut o, text);
    l("# Written by `crossfade init` from what it found; yours to edit. Paths are relative to this file.".into());
    l("# Every key: `crossfade schema`.".into());
    for text in decisions(plan) {
        l(text);
    }
    l(format!("apiVersion: {}", spec.api_version));
    l("kind: Migration".into());
    l(format!("name: {}", q(&spec.name)));
    l("\n# The kops cluster that production leaves.".into());
    l("blue:".into());
    l(format!("  cluster: {}", q(&spec.blue.cluster)));
    for (key, value, hint) in [
        ("kubeconfig", &spec.blue.kubeconfig, "blue.kubeconfig"),
        ("context", &spec.blue.context, "its-context"),
        ("stateStore", &spec.blue.state_store, "s3://bucket"),
    ] {
        l(match value {
            Some(v) => format!("  {key}: {}", q(v)),
            None => format!("  # {key}: {hint}"),
        });
    }
    l("\n# The EKS cluster that production goes to.".into());
    l("green:".into());
    l(format!("  name: {}", q(&spec.green.name)));
    l(format!("  version: {}", q(&spec.green.version)));
    if let Some(cidr) = &spec.green.service_cidr {
        l("  # Cannot be changed later. kops's own range (100.64.0.0/13) cannot be kept.".into());
        l(format!("  serviceCidr: {cidr}"));
    }
    l("  # subnets: []            # blue's private subnets when empty".into());
    endpoint(&mut l, spec, s);
    l("  # Who gets in besides crossfade itself; kops's client certificates are of no use on EKS.".into());
    l("  # access:".into());
    l("  # - principal: arn:aws:iam::123456789012:role/NAME".into());
    l("  #   policy: AmazonEKSClusterAdminPolicy".into());
    l("\n# Pinned: any other account stops the run.".into());
    if spec.aws == Default::default() {
        l("# aws: {account: \"123456789012\", region: eu-west-1}".into());
    } else {
        l("aws:".into());
        for (key, value) in [
            ("account", &spec.aws.account),
            ("region", &spec.aws.region),
            ("profile", &spec.aws.profile),
        ] {
            if let Some(v) = value {
                l(format!("  {key}: {}", q(v)));
            }
        }
    }
    l("\ndns:".into());
    let zones: Vec<String> = s
        .zones
        .iter()
        .map(|z| z.zone.name.trim_end_matches('.').to_string())
        .collect();
    if !zones.is_empty() {
        l(format!("  # Found: {}", zones.join(", ")));
    }
    l(
        "  # zones: []              # all in which blue's ExternalDNS owns records when empty"
            .into(),
    );
    l("  # TTL while names move; lowered hours before, restored by finalize.".into());
    l(format!("  lowTtl: {}", spec.dns.low_ttl));
    l("  # canary: host           # moved first, alone".into());
    l(
        "  # waves: [{hosts: [a.example.com], namespaces: [shop]}]  # by list, after the canary"
            .into(),
    );
    l("  # waveSize: 10           # names per wave after them; all at once when 0".into());
    l("  # waveGateSeconds: 300   # so long each wave is watched before the next".into());
    l("\nworkloads:".into());
    l("  # Of these never two may run, across both clusters.".into());
    if spec.workloads.singletons.is_empty() {
        l("  singletons: []".into());
    } else {
        l("  singletons:".into());
        spec.workloads
            .singletons
            .iter()
            .for_each(|id| l(format!("  - {id}")));
    }
    for id in single_looking(s)
        .iter()
        .filter(|id| !spec.workloads.singletons.contains(id))
    {
        l(format!(
            "  # - {id}    # one replica and strategy Recreate: is it one?"
        ));
    }
    l(
        "  # Addresses of blue that are others on green, in ConfigMaps and plain env values."
            .into(),
    );
    l("  # replace: {10.0.0.5: 10.0.0.6}".into());
    l("\n# Databases that move with the workloads. Without one, crossfade closes no writes and copies no rows.".into());
    for hint in databases(s) {
        l(format!("# Found: {hint}"));
    }
    for text in [
        "# data:",
        "# - name: orders",
        "#   mode: postgres       # or shared: both clusters use the same store",
        "#   blue: {host: 10.0.0.5, database: orders, admin: postgres, adminPasswordEnv: ADMIN_PASSWORD, role: orders}",
        "#   green: {host: 10.0.0.6, database: orders, admin: postgres, adminPasswordEnv: ADMIN_PASSWORD, role: orders}",
        "#   writeProbe: {host: shop.example.com, path: /orders}",
    ] {
        l(text.into());
    }
    l("\nlimits:".into());
    l(format!(
        "  writeClosedSeconds: {}",
        spec.limits.write_closed_seconds
    ));
    l(format!("  soakSeconds: {}", spec.limits.soak_seconds));
    o
}

/// Who reaches green's API, and why that is what `init` took.
fn endpoint(l: &mut impl FnMut(String), spec: &Spec, s: &Snapshot) {
    let doors = spec::api_doors(&s.kops);
    let why = if doors.internal {
        "blue's API is Internal: green's is reached from inside the VPC only (by CI and operators too)".into()
    } else if doors.open() {
        "blue's API lets everybody in, so green's does; endpointCidrs narrows it".into()
    } else {
        let left: Vec<&str> = doors
            .list
            .iter()
            .map(String::as_str)
            .filter(|r| !spec.green.endpoint_cidrs.iter().any(|c| c == r))
            .collect();
        let left = match left.as_slice() {
            [] => String::new(),
            _ => format!(
                "; it takes no private ranges, IPv6 or prefix lists: {} left out",
                left.join(", ")
            ),
        };
        format!("what blue's kubernetesApiAccess lists{left}")
    };
    l(format!(
        "  {}",
        comment(&format!("Who reaches the API: {why}."))
    ));
    l(format!("  publicEndpoint: {}", spec.green.public_endpoint));
    if !spec.green.endpoint_cidrs.is_empty() {
        l("  endpointCidrs:".into());
        for range in &spec.green.endpoint_cidrs {
            l(format!("  - {}", q(range)));
        }
    }
}

/// What stands in the way until a person decides, at the head of the file: one line a cause, the objects counted.
fn decisions(plan: &Plan) -> Vec<String> {
    use crate::plan::model::Severity;
    let mut causes: Vec<(&str, &str, Vec<&crate::plan::model::Finding>)> = vec![];
    for f in plan
        .findings
        .iter()
        .filter(|f| f.severity == Severity::Blocker && f.waived.is_none())
    {
        match causes
            .iter_mut()
            .find(|(id, remedy, _)| *id == f.id && *remedy == f.remedy)
        {
            Some((_, _, all)) => all.push(f),
            None => causes.push((&f.id, &f.remedy, vec![f])),
        }
    }
    let mut out = vec![];
    if causes.is_empty() {
        return out;
    }
    out.push(format!(
        "#\n# {} to take before this plan can run (`crossfade explain ID` tells more; a finding that you accept goes under `waivers`):",
        if causes.len() == 1 {
            "One decision".to_string()
        } else {
            format!("{} decisions", causes.len())
        }
    ));
    for (id, remedy, all) in causes {
        let first = all[0];
        let more = match all.len() {
            1 => String::new(),
            n => format!(" (and {} more)", n - 1),
        };
        out.push(comment(&format!(
            "- {id} {}{more}: {}",
            first.object, first.message
        )));
        if !remedy.is_empty() {
            out.push(comment(&format!("    {remedy}")));
        }
    }
    out
}

/// Text as one comment line: names and messages of other people's objects must not end it.
fn comment(text: &str) -> String {
    let flat: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    format!("# {flat}")
}

/// Deployments that look like singletons, without saying so.
fn single_looking(s: &Snapshot) -> Vec<String> {
    s.blue
        .of_kind("Deployment")
        .filter(|d| d.pointer("/spec/replicas").is_none_or(|r| *r == json!(1)))
        .filter(|d| d.pointer("/spec/strategy/type") == Some(&json!("Recreate")))
        .filter(|d| annotation(d, "crossfade.dev/singleton").is_none())
        // ExternalDNS is moved by its own phase.
        .filter(|d| !d.to_string().contains("/external-dns:"))
        .filter_map(ObjectId::of)
        .filter(|id| id.namespace.as_deref() != Some("kube-system"))
        .map(|id| id.to_string())
        .collect()
}

/// ConfigMap entries that look like the address of a database.
fn databases(s: &Snapshot) -> Vec<String> {
    let mut out = vec![];
    for map in s.blue.of_kind("ConfigMap") {
        let Some(data) = map.get("data").and_then(Value::as_object) else {
            continue;
        };
        for (key, value) in data {
            let word = key.to_uppercase();
            let database = ["DATABASE", "POSTGRES", "PGHOST", "DB_"]
                .iter()
                .any(|w| word.contains(w));
            if database
                && word.contains("HOST")
                && let (Some(id), Some(v)) = (ObjectId::of(map), value.as_str())
            {
                let v: String = v.chars().filter(|c| !c.is_control()).take(80).collect();
                out.push(format!("{id} {key}={v}"));
            }
        }
    }
    out
}

#[cfg(test)]
#[path = "init_tests.rs"]
mod tests;
