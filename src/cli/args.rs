//! The command line as a tree: help, completions and man pages all come from here.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Moves production from a kops cluster to EKS, and can always move it back.
#[derive(Parser, Debug)]
#[command(
    name = "crossfade",
    version,
    propagate_version = true,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "A first migration:\n  crossfade init shop --cluster shop.example.com ...\n  crossfade discover plans/shop\n  crossfade plan plans/shop\n  crossfade rehearse plans/shop --faults\n  crossfade review plans/shop --approve all\n  crossfade migrate plans/shop\n  crossfade rollback plans/shop      (any time before finalize)\n\nExit codes: 0 done or no changes, 2 changes planned, 3 blocked by findings, 4 stale or unapproved plan,\n5 stuck (needs a person), 6 interrupted but resumable, 64 usage, 65 bad input, 69 a server could not be reached, 70 bug."
)]
pub struct Cli {
    /// Global flags.
    #[command(flatten)]
    pub global: Global,
    /// Verb.
    #[command(subcommand)]
    pub command: Command,
}

/// Flags that every verb knows.
#[derive(Args, Clone, Debug)]
pub struct Global {
    /// Output format
    #[arg(short = 'o', long = "output", value_enum, default_value_t = Format::Text, global = true)]
    pub output: Format,
    /// Plan folder, or the run folder in it (instead of the PLAN argument)
    #[arg(long, value_name = "DIR", global = true)]
    pub run: Option<PathBuf>,
}

/// Output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For programs; documented and stable.
    Json,
}

/// Which plan folder.
#[derive(Args, Clone, Debug, Default)]
pub struct Folder {
    /// Plan folder; the only one in ./plans when absent
    #[arg(value_name = "PLAN")]
    pub plan: Option<PathBuf>,
}

/// Phases, as clap sees them.
fn phase(name: &str) -> Result<crate::plan::model::Phase, String> {
    crate::plan::model::Phase::parse(name).ok_or_else(|| {
        let names: Vec<_> = crate::plan::model::Phase::ALL
            .iter()
            .map(|p| p.name())
            .collect();
        format!("phases are {}", names.join(", "))
    })
}

/// Verbs.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Write plans/NAME/migration.yaml from what is found (kops state, kubeconfig, zones, or files)
    #[command(
        after_help = "Example:\n  crossfade init shop --cluster shop.example.com --kubeconfig ~/.kube/config --context shop --state-store s3://kops-state --region eu-west-1\n  crossfade init shop --from-files dumps/"
    )]
    Init(super::init::InitArgs),
    /// Read blue, AWS and DNS into a snapshot; writes nothing anywhere else
    #[command(
        after_help = "Example:\n  crossfade discover plans/shop\n  crossfade discover --from-files dumps/ --out snap/    (offline)"
    )]
    Discover(super::discover::DiscoverArgs),
    /// Make a plan from the snapshot and migration.yaml (exit 0 nothing to do, 2 changes, 3 blocked)
    #[command(
        after_help = "Example:\n  crossfade plan plans/shop\n  crossfade plan --snapshot snap/ --out plan.json -o json    (offline, init's defaults)\n  crossfade plan plans/shop --render terraform               (green as Terraform, into plans/shop/terraform)"
    )]
    Plan(PlanArgs),
    /// Show the staged plan phase by phase, and approve it
    #[command(
        after_help = "Example:\n  crossfade review plans/shop\n  crossfade review plans/shop --approve ttl\n  crossfade review plans/shop --approve all"
    )]
    Review(ReviewArgs),
    /// Run the whole plan and its way back on a simulated twin of the snapshot
    #[command(
        after_help = "Example:\n  crossfade rehearse plans/shop\n  crossfade rehearse plans/shop --faults        (die and fail here and there)\n  crossfade rehearse plans/shop --faults=all    (at every journal record and call)"
    )]
    Rehearse(RehearseArgs),
    /// Move production to green: every phase up to its gate; resumable, Ctrl-C is safe
    #[command(
        after_help = "Example:\n  crossfade migrate plans/shop\n  crossfade migrate plans/shop --to unpark    (stop before writes close)"
    )]
    Migrate(MigrateArgs),
    /// Compare blue as it is now with green, three ways, and bring what changed on blue since the plan (exit 0 nothing, 2 changes, 3 a person decides)
    #[command(
        after_help = "Example:\n  crossfade replay plans/shop                     (looks only)\n  crossfade replay plans/shop --apply             (writes only what blue changed and nobody changed on green)\n  crossfade replay plans/shop --apply --prune     (deletes also what is gone from blue)"
    )]
    Replay(ReplayArgs),
    /// Show where the run is, what it waits for, and what undo would do now
    #[command(
        after_help = "Example:\n  crossfade status plans/shop\n  crossfade status plans/shop -o json"
    )]
    Status(StatusArgs),
    /// Walk back, from anywhere, to the end of any earlier phase or to the start
    #[command(
        after_help = "Example:\n  crossfade rollback plans/shop --dry-run\n  crossfade rollback plans/shop\n  crossfade rollback plans/shop --to unpark    (unpark stays, everything after it is undone)"
    )]
    Rollback(RollbackArgs),
    /// Leave a stuck undo as it is, with a reason; then run rollback again
    #[command(
        after_help = "Example:\n  crossfade skip ttl/shop.test plans/shop --reason \"the DNS team changed this TTL on purpose\""
    )]
    Skip(SkipArgs),
    /// List the checks of a plan, what became of each in one plan, or one check in full
    #[command(
        after_help = "Example:\n  crossfade checks                     (the register)\n  crossfade checks plans/shop          (what each says about this plan)\n  crossfade checks DNS-01 plans/shop   (one of them in full)"
    )]
    Checks(ChecksArgs),
    /// Explain why an object, record, role, node group or field of the kops spec is changed, held or left alone
    #[command(
        after_help = "Example:\n  crossfade explain deployment/orders/orders plans/shop\n  crossfade explain www.shop.test\n  crossfade explain node-group/nodes-spot\n  crossfade explain spec.kubelet.maxPods\n  crossfade explain instancegroup/nodes/spec.minSize"
    )]
    Explain(ExplainArgs),
    /// Show why blue is not upgraded in place: its hazards, and what each hop would break
    #[command(
        after_help = "Example:\n  crossfade hazards plans/shop\n  crossfade hazards plans/shop -o json"
    )]
    Hazards(HazardsArgs),
    /// Estimate what blue and green cost, and both together
    #[command(
        after_help = "Example:\n  crossfade cost plans/shop\n  crossfade cost --snapshot snap/ -o json    (offline)"
    )]
    Cost(CostArgs),
    /// Print the least IAM policy that a run of this plan needs: what only reads and what changes, apart
    #[command(
        after_help = "Example:\n  crossfade policy plans/shop\n  crossfade policy plans/shop --verb discover\n  crossfade policy plans/shop --verb migrate --verb rollback --out policies/    (one file for each managed policy)"
    )]
    Policy(PolicyArgs),
    /// The only point of no return: original TTLs, sync, end of the way back
    #[command(
        after_help = "Example:\n  crossfade finalize plans/shop                           (asks for the cluster's name)\n  crossfade finalize plans/shop --confirm shop.test"
    )]
    Finalize(FinalizeArgs),
    /// Print the JSON Schema of migration.yaml, for editors
    #[command(after_help = "Example:\n  crossfade schema > migration.schema.json")]
    Schema,
    /// Print a completion script for a shell
    #[command(
        after_help = "Example:\n  crossfade completions bash > /etc/bash_completion.d/crossfade"
    )]
    Completions {
        /// Shell
        shell: clap_complete::Shell,
    },
    /// Write man pages into a folder
    #[command(after_help = "Example:\n  crossfade man target/man && man -l target/man/crossfade.1")]
    Man {
        /// Folder
        dir: PathBuf,
    },
}

/// `plan`
#[derive(Args, Debug)]
pub struct PlanArgs {
    /// Which.
    #[command(flatten)]
    pub folder: Folder,
    /// Snapshot folder instead of the plan folder's; works offline
    #[arg(long, value_name = "DIR")]
    pub snapshot: Option<PathBuf>,
    /// Spec file; init's defaults when absent and --snapshot is given
    #[arg(long, value_name = "FILE")]
    pub spec: Option<PathBuf>,
    /// Where to write the plan, with NAME.objects.ndjson beside NAME.json; PLAN/plan.json and PLAN/objects.ndjson in a plan folder, nowhere with --snapshot
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Every finding, also those that are folded to a count
    #[arg(long)]
    pub all_findings: bool,
    /// Render green's AWS resources for a team to go on with after the move, into --out (PLAN/terraform when absent): nothing else is written.
    /// With import blocks for what a run has made
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub render: Option<Render>,
    /// Overwrite rendered files that somebody edited
    #[arg(long, requires = "render")]
    pub force: bool,
    /// Ask green's server (when there is one) what it would make of every object; writes nothing
    #[arg(long, conflicts_with = "snapshot")]
    pub server_dry_run: bool,
}

/// What `plan --render` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Render {
    /// A root module with the modules that it uses.
    Terraform,
}

/// `checks`
#[derive(Args, Debug)]
pub struct ChecksArgs {
    /// Id of a check, a plan folder, or both
    #[arg(value_name = "CHECK|PLAN", num_args = 0..=2)]
    pub what: Vec<PathBuf>,
}

/// A plan: that of a plan folder (made anew when there is none yet), or one made from a snapshot.
#[derive(Args, Clone, Debug, Default)]
pub struct Source {
    /// Which.
    #[command(flatten)]
    pub folder: Folder,
    /// Snapshot folder instead of a plan folder; works offline
    #[arg(long, value_name = "DIR")]
    pub snapshot: Option<PathBuf>,
    /// Spec file; init's defaults when absent and --snapshot is given
    #[arg(long, value_name = "FILE", requires = "snapshot")]
    pub spec: Option<PathBuf>,
}

/// `cost`
#[derive(Args, Debug)]
pub struct CostArgs {
    /// Of which plan.
    #[command(flatten)]
    pub source: Source,
}

/// What is going to be done, as `policy` takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PolicyVerb {
    /// Read the account, the zones, the state store.
    Discover,
    /// Make green and move production.
    Migrate,
    /// Take it back.
    Rollback,
    /// End the way back.
    Finalize,
}

/// `policy`
#[derive(Args, Debug)]
pub struct PolicyArgs {
    /// Of which plan.
    #[command(flatten)]
    pub source: Source,
    /// For this verb only; may be repeated; all of them when absent
    #[arg(long, value_enum, value_name = "VERB")]
    pub verb: Vec<PolicyVerb>,
    /// Write each document into this folder, as NAME.json, instead of printing it
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// `review`
#[derive(Args, Debug)]
pub struct ReviewArgs {
    /// Which.
    #[command(flatten)]
    pub folder: Folder,
    /// Approve a phase, or all; may be repeated
    #[arg(long, value_name = "PHASE|all")]
    pub approve: Vec<String>,
    /// Every finding, also those that are folded to a count
    #[arg(long)]
    pub all_findings: bool,
}

/// How many faults are rehearsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Faults {
    /// Some of each class, evenly spread: about a minute.
    Sample,
    /// Every journal record and every call: many minutes.
    All,
}

/// `rehearse`
#[derive(Args, Debug)]
pub struct RehearseArgs {
    /// Which.
    #[command(flatten)]
    pub folder: Folder,
    /// Die at journal records and in calls, fail calls, then resume or roll back; compare every end state
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "sample")]
    pub faults: Option<Faults>,
    /// Print every step
    #[arg(long, short)]
    pub verbose: bool,
}

/// `migrate`
#[derive(Args, Debug)]
pub struct MigrateArgs {
    /// Which.
    #[command(flatten)]
    pub folder: Folder,
    /// Last phase to run
    #[arg(long, value_name = "PHASE", value_parser = phase)]
    pub to: Option<crate::plan::model::Phase>,
    /// Freeze even if blue changed since the plan: what changed is left behind
    #[arg(long)]
    pub leave_drift: bool,
}

/// `replay`
#[derive(Args, Debug)]
pub struct ReplayArgs {
    /// Which.
    #[command(flatten)]
    pub folder: Folder,
    /// Write it: changed fields by server-side apply, new objects parked as in the replay; journaled, so that rollback takes it back
    #[arg(long)]
    pub apply: bool,
    /// Delete on green what is gone from blue, if the run made it and nobody changed it since
    #[arg(long)]
    pub prune: bool,
    /// Write only if it still is what was shown under this digest
    #[arg(long, value_name = "DIGEST", requires = "apply")]
    pub digest: Option<String>,
}

/// `status`
#[derive(Args, Debug)]
pub struct StatusArgs {
    /// Which.
    #[command(flatten)]
    pub folder: Folder,
}

/// `rollback`
#[derive(Args, Debug)]
pub struct RollbackArgs {
    /// Which.
    #[command(flatten)]
    pub folder: Folder,
    /// Last phase that stays; all is undone when absent
    #[arg(long, value_name = "PHASE", value_parser = phase)]
    pub to: Option<crate::plan::model::Phase>,
    /// Only show what would be undone, and what that gives back
    #[arg(long)]
    pub dry_run: bool,
}

/// `skip`
#[derive(Args, Debug)]
pub struct SkipArgs {
    /// Step whose undo is stuck
    pub step: String,
    /// Which.
    #[command(flatten)]
    pub folder: Folder,
    /// Why; goes into the journal
    #[arg(long)]
    pub reason: String,
}

/// `explain`
#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// Object (kind/ns/name), field (spec.kubelet.maxPods, nodes/spec.minSize), host, node-group/NAME, role/NAME, addon/NAME,
    /// subnet/ID, `cluster`, step, finding id, or a part of one
    pub what: String,
    /// Which.
    #[command(flatten)]
    pub folder: Folder,
}

/// `hazards`
#[derive(Args, Debug)]
pub struct HazardsArgs {
    /// Which.
    #[command(flatten)]
    pub folder: Folder,
}

/// `finalize`
#[derive(Args, Debug)]
pub struct FinalizeArgs {
    /// Which.
    #[command(flatten)]
    pub folder: Folder,
    /// Name of the kops cluster, instead of the question
    #[arg(long, value_name = "CLUSTER")]
    pub confirm: Option<String>,
}
