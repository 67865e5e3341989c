//! Steps with their edges: the order of eks.md 0.4, replay.md 3 and the cutover of externaldns.md 8.

use super::diff;
use super::dns::Names;
use super::generated;
use super::holds;
use super::model::{Phase, Promise, ResourceState, StepSpec, Target, Verdict};
use super::resources;
use super::wake::{Order, Wake};
use super::waves::{self, Layout, Stage};
use crate::object::ObjectId;
use crate::snapshot::model::Snapshot;
use crate::spec::model::{DataMode, Spec, Via};
use crate::step::hold::Hold;
use crate::world::cloud::Resource;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What the steps are made from.
pub(super) struct Input<'a> {
    pub spec: &'a Spec,
    pub snapshot: &'a Snapshot,
    pub target: &'a Target,
    pub names: &'a Names,
    pub verdicts: &'a [Verdict],
    pub generated: &'a [Value],
}

impl Input<'_> {
    /// How long caches may hold an answer that was given before a switch.
    fn drain_seconds(&self) -> u32 {
        self.spec.dns.drain_seconds.max(self.spec.dns.low_ttl)
    }
}

struct Builder {
    steps: Vec<StepSpec>,
}

impl Builder {
    #[allow(clippy::too_many_arguments)]
    fn add(
        &mut self,
        id: &str,
        phase: Phase,
        kind: &str,
        needs: &[String],
        promise: Promise,
        summary: String,
        params: Value,
        expect_s: [u32; 2],
    ) -> String {
        let mut needs: Vec<String> = needs.to_vec();
        needs.sort();
        needs.dedup();
        self.steps.push(StepSpec {
            id: id.into(),
            phase,
            kind: kind.into(),
            needs,
            promise,
            summary,
            params,
            expect_s,
        });
        id.into()
    }
}

/// All steps, not yet sorted.
pub(super) fn steps(i: &Input) -> Vec<StepSpec> {
    let mut b = Builder { steps: vec![] };
    let pins = b.add(
        "preflight/pins",
        Phase::Preflight,
        "pins",
        &[],
        Promise::None("reads only".into()),
        "prove account, region, clusters and zones against the plan".into(),
        json!({}),
        [1, 20],
    );
    let proof =
        super::access_proof::proof(&i.target.access, &i.spec.waivers, i.snapshot).principals;
    let pins = if proof.is_empty() {
        pins
    } else {
        b.add(
            "preflight/access",
            Phase::Preflight,
            "access.assume",
            &[pins],
            Promise::None("reads only".into()),
            format!(
                "prove that the caller can act as {}",
                people(proof.len(), "admin role")
            ),
            json!({"principals": proof}),
            [1, 20],
        )
    };
    let ttl_wait = ttl(i, &mut b, &pins);
    let (provisioned, nodes) = provision(i, &mut b, &pins);
    let layout = waves::layout(i.verdicts, i.generated);
    let replayed = replay(&mut b, &provisioned, &layout);
    let streams = streams(i, &mut b, &pins);
    let proven = unpark(i, &mut b, &replayed, nodes.as_slice(), &streams, &layout);
    let mut gate = proven.clone();
    gate.extend(ttl_wait);
    let frozen = freeze(i, &mut b, &gate);
    let closed = data(i, &mut b, &gate, &frozen, &streams);
    let moved = cutover(i, &mut b, &closed);
    open(i, &mut b, &moved);
    b.steps
}

fn ttl(i: &Input, b: &mut Builder, pins: &str) -> Vec<String> {
    let low = i.spec.dns.low_ttl;
    let mut by_zone: BTreeMap<&str, Vec<(&str, u32)>> = BTreeMap::new();
    for n in &i.names.names {
        if let Some(t) = n.ttl.filter(|t| *t > low) {
            by_zone.entry(&n.zone_id).or_default().push((&n.host, t));
        }
    }
    let mut waits = vec![];
    for (zone, names) in by_zone {
        let label = i
            .names
            .zones
            .iter()
            .find(|(_, id)| *id == zone)
            .map_or(zone, |(n, _)| n);
        let hosts: Vec<&str> = names.iter().map(|(h, _)| *h).collect();
        let old = names.iter().map(|(_, t)| *t).max().unwrap_or(0);
        let id = b.add(
            &format!("ttl/lower/{label}"),
            Phase::Ttl,
            "dns.ttl",
            &[pins.to_string()],
            Promise::Exact,
            format!(
                "lower the TTL of {} to {low} s",
                people(hosts.len(), "name")
            ),
            json!({"zone_id": zone, "names": hosts, "low_ttl": low}),
            [1, 90],
        );
        waits.push(b.add(
            &format!("ttl/wait/{label}"),
            Phase::Ttl,
            "dns.ttl-wait",
            std::slice::from_ref(&id),
            Promise::None("waits only".into()),
            format!("wait until no cache can hold the old TTL ({old} s) any more"),
            json!({"ttl_step": id}),
            [old, old + 60],
        ));
    }
    waits
}

/// Expected seconds of a cloud resource (eks.md 1.8: cluster 13 to 17 minutes whole, budgets 30/45/15).
fn expected(r: &Resource) -> [u32; 2] {
    match r {
        Resource::Cluster { .. } => [480, 1200],
        Resource::NodeGroup { .. } => [120, 300],
        Resource::Addon { .. } => [20, 180],
        Resource::Role { .. } | Resource::TrustStatement { .. } => [5, 30],
        _ => [1, 15],
    }
}

/// Id of the step that makes what Terraform makes.
const TERRAFORM: &str = "provision/terraform";

/// What Terraform makes in one step.
#[derive(Default)]
struct ByTerraform {
    resources: Vec<Resource>,
    ids: BTreeSet<String>,
    /// What it waits for that is not its own.
    needs: BTreeSet<String>,
}

impl ByTerraform {
    /// Its longest way: cluster, an add-on, node groups beside each other, add-ons beside each other.
    fn expected(&self) -> [u32; 2] {
        let longest = |of: &dyn Fn(&&Resource) -> bool| {
            let all = self.resources.iter().filter(of).map(expected);
            all.fold([0, 0], |a: [u32; 2], b| [a[0].max(b[0]), a[1].max(b[1])])
        };
        let cluster = longest(&|r| matches!(r, Resource::Cluster { .. }));
        let groups = longest(&|r| matches!(r, Resource::NodeGroup { .. }));
        let addons = longest(&|r| matches!(r, Resource::Addon { .. }));
        let rest = longest(&|r| {
            !matches!(
                r,
                Resource::Cluster { .. } | Resource::NodeGroup { .. } | Resource::Addon { .. }
            )
        });
        [0, 1].map(|n| 20 + cluster[n] + groups[n] + 2 * addons[n] + 2 * rest[n])
    }
}

/// What of the resources Terraform makes, when the user says so: what is to be made and wholly green's own. What is there already is looked
/// at as ever, and its order no longer matters: a step that waited for Terraform is nothing that Terraform waits for.
fn by_terraform(i: &Input, all: Vec<resources::Needed>) -> (Vec<resources::Needed>, ByTerraform) {
    let mut out = ByTerraform::default();
    if i.spec.provision.via != Via::Terraform {
        return (all, out);
    }
    let cluster = &i.target.cluster.name;
    let made = |r: &Resource| {
        let id = diff::shown(&r.id(), cluster);
        let state = i.target.resources.iter().find(|t| t.id == id);
        crate::terraform::covers(r) && state.is_none_or(|t| t.state == ResourceState::Create)
    };
    let (its, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(|n| made(&n.resource));
    out.ids = its.iter().map(|n| n.resource.id()).collect();
    let mut after: BTreeSet<String> = BTreeSet::new();
    for n in &rest {
        if n.needs
            .iter()
            .any(|x| out.ids.contains(x) || after.contains(x))
        {
            after.insert(n.resource.id());
        }
    }
    for n in its {
        let needs = n.needs.iter();
        out.needs.extend(
            needs
                .filter(|x| !out.ids.contains(*x) && !after.contains(*x))
                .cloned(),
        );
        out.resources.push(n.resource);
    }
    (rest, out)
}

fn provision(i: &Input, b: &mut Builder, pins: &str) -> (Vec<String>, Vec<String>) {
    let all = resources::all(i.target, i.spec, i.snapshot);
    // Ids are for people too: what is only known once the cluster stands goes by its role in the plan.
    let cluster = i.target.cluster.name.clone();
    let step_id = |r: &str| format!("provision/{}", diff::shown(r, &cluster));
    let mut ids = vec![];
    let mut groups = vec![];
    let mut group_steps = vec![];
    let (all, terraform) = by_terraform(i, all);
    if !terraform.resources.is_empty() {
        let mut needs: Vec<String> = terraform.needs.iter().map(|x| step_id(x)).collect();
        needs.push(pins.to_string());
        let id = b.add(
            TERRAFORM,
            Phase::Provision,
            crate::terraform::APPLY,
            &needs,
            Promise::Compensating(
                "destroyed again, only what it created; time and money are spent, and logs stay"
                    .into(),
            ),
            format!(
                "let Terraform make {} from the reviewed plan",
                people(terraform.resources.len(), "AWS resource")
            ),
            json!({"resources": terraform.resources}),
            terraform.expected(),
        );
        for r in &terraform.resources {
            if let Resource::NodeGroup { name, desired, .. } = r {
                groups.push(json!({"name": name, "count": desired}));
                group_steps.push(id.clone());
            }
        }
        ids.push(id);
    }
    for n in all {
        let rid = n.resource.id();
        let mut needs: Vec<String> = n
            .needs
            .iter()
            .map(|x| {
                if terraform.ids.contains(x) {
                    TERRAFORM.into()
                } else {
                    step_id(x)
                }
            })
            .collect();
        needs.push(pins.to_string());
        let promise = match &n.resource {
            Resource::TrustStatement { .. }
            | Resource::SecurityGroupRule { .. }
            | Resource::Tag { .. } => Promise::Exact,
            Resource::NodeGroup { .. } | Resource::Cluster { .. } => Promise::Compensating(
                "deleted again; time and money are spent, and its logs stay".into(),
            ),
            Resource::LogGroup { .. } => {
                Promise::Compensating("deleted again, with what it holds".into())
            }
            _ => Promise::Exact,
        };
        let summary = match &n.resource {
            Resource::Role { name, .. } => format!("create role {name}"),
            Resource::Cluster { name, version, .. } => {
                format!("create EKS cluster {name} ({version})")
            }
            Resource::OidcProvider { .. } => "register green's token issuer with IAM".into(),
            Resource::Addon { name, .. } => format!("install add-on {name}"),
            Resource::AccessEntry { principal, .. } => format!(
                "let {} into green",
                if principal == "${caller}" {
                    "the caller"
                } else {
                    principal
                }
            ),
            Resource::NodeGroup {
                name,
                min,
                max,
                capacity_type,
                ..
            } => format!("create node group {name} ({capacity_type}, {min} to {max})"),
            Resource::LaunchTemplate { name, .. } => format!("create launch template {name}"),
            Resource::SecurityGroupRule { group, .. } => {
                format!("let green's nodes into security group {group} as blue's are")
            }
            Resource::Tag { resource, .. } => format!("mark {resource} as shared with green"),
            Resource::TrustStatement { role, .. } => {
                format!("let a service account of green assume {role}")
            }
            Resource::PodIdentityAssociation {
                namespace,
                service_account,
                role_arn,
                ..
            } => format!(
                "give {namespace}/{service_account} the role {} by Pod Identity",
                role_arn.rsplit('/').next().unwrap_or(role_arn)
            ),
            Resource::LogGroup {
                name,
                retention_days,
            } => match retention_days {
                Some(days) => format!("create log group {name}, kept for {days} days"),
                None => format!("create log group {name}"),
            },
            Resource::StateBucket {
                name, create: true, ..
            } => {
                format!("create bucket {name} for crossfade's records, if it is not there")
            }
            Resource::StateBucket { name, .. } => {
                format!("check that bucket {name} is versioned, encrypted and closed")
            }
        };
        let shown = diff::shown(&rid, &cluster);
        let state = i.target.resources.iter().find(|t| t.id == shown);
        let kept = state.and_then(|t| match t.state {
            ResourceState::ExistsEqual => Some(format!("keep {shown}: it is there")),
            ResourceState::Adopt => Some(format!("use {shown} as it is; never deleted")),
            ResourceState::Terraform => Some(format!("use {shown}; left to Terraform ({})", t.why)),
            _ => None,
        });
        let is_kept = kept.is_some();
        let id = b.add(
            &step_id(&rid),
            Phase::Provision,
            "cloud.ensure",
            &needs,
            if is_kept { Promise::Exact } else { promise },
            kept.unwrap_or(summary),
            json!({"resource": n.resource}),
            if is_kept {
                [1, 15]
            } else {
                expected(&n.resource)
            },
        );
        if let Resource::NodeGroup { name, desired, .. } = &n.resource {
            // An existing group is not resized: its nodes are as many as they are.
            let count = diff::nodes_now(i.snapshot, &cluster, name)
                .filter(|_| is_kept)
                .unwrap_or(*desired);
            groups.push(json!({"name": name, "count": count}));
            group_steps.push(id.clone());
        }
        ids.push(id);
    }
    prove_access(i, b, &mut ids);
    let mut nodes = vec![];
    if !groups.is_empty() {
        nodes.push(b.add(
            "provision/nodes-ready",
            Phase::Provision,
            "nodes.ready",
            &group_steps,
            Promise::None("waits only".into()),
            "wait for green's nodes to be ready".into(),
            json!({"node_groups": groups}),
            [30, 240],
        ));
    }
    (ids, nodes)
}

/// Before anything else is built on green: its admins get in, not only the caller (nobody is locked out with the role of the run).
fn prove_access(i: &Input, b: &mut Builder, ids: &mut Vec<String>) {
    let principals =
        super::access_proof::proof(&i.target.access, &i.spec.waivers, i.snapshot).principals;
    if principals.is_empty() {
        return;
    }
    let cluster = format!("provision/cluster/{}", i.target.cluster.name);
    let entries: Vec<String> = ids
        .iter()
        .filter(|id| id.starts_with("provision/access-entry/") || *id == TERRAFORM)
        .cloned()
        .collect();
    let proven = b.add(
        "provision/access-proven",
        Phase::Provision,
        "access.prove",
        &entries,
        Promise::None("reads only".into()),
        format!(
            "prove that green lets {} in, with all rights",
            people(principals.len(), "admin role")
        ),
        json!({"principals": principals}),
        [5, 60],
    );
    for s in b.steps.iter_mut() {
        if s.phase == Phase::Provision && s.needs.contains(&cluster) && !entries.contains(&s.id) {
            s.needs.push(proven.clone());
            s.needs.sort();
        }
    }
    ids.push(proven);
}

fn replay(b: &mut Builder, provisioned: &[String], layout: &Layout) -> Vec<String> {
    // Objects need the API and the caller's way in, not the nodes.
    let mut before: Vec<String> = provisioned
        .iter()
        .filter(|p| {
            ["cluster/", "access-entry/", "access-proven"]
                .iter()
                .any(|k| {
                    p.strip_prefix("provision/")
                        .is_some_and(|p| p.starts_with(k))
                })
                || *p == TERRAFORM
        })
        .cloned()
        .collect();
    let mut done = vec![];
    // What green makes by itself is there when its namespace is.
    let mut namespaces = before.clone();
    for stage in &layout.stages {
        let id = wave(b, "replay", Phase::Replay, &before, stage);
        if stage.name == "namespaces" {
            namespaces = vec![id.clone()];
        }
        before = vec![id.clone()];
        done.push(id);
    }
    if !layout.merged.is_empty() {
        done.push(b.add(
            "replay/defaults",
            Phase::Replay,
            "replay.merge",
            &namespaces,
            Promise::Exact,
            format!(
                "add pull secrets and annotations to {} that green makes by itself",
                people(layout.merged.len(), "service account")
            ),
            json!({"objects": layout.merged}),
            [1, 5 + layout.merged.len() as u32 / 5],
        ));
    }
    done
}

/// One step that creates objects.
fn wave(b: &mut Builder, prefix: &str, phase: Phase, needs: &[String], stage: &Stage) -> String {
    let count = stage.objects.len() + stage.generated.len();
    b.add(
        &format!("{prefix}/{}", stage.name),
        phase,
        "replay.wave",
        needs,
        Promise::Exact,
        format!(
            "create {} on green ({})",
            people(count, "object"),
            stage.name
        ),
        json!({"wave": stage.name, "objects": stage.objects, "generated": stage.generated, "kinds": stage.kinds()}),
        [1, 10 + count as u32 / 5],
    )
}

fn sets(i: &Input) -> Vec<String> {
    i.spec
        .data
        .iter()
        .filter(|d| d.mode != DataMode::Shared)
        .map(|d| d.name.clone())
        .collect()
}

fn streams(i: &Input, b: &mut Builder, pins: &str) -> Vec<String> {
    sets(i)
        .into_iter()
        .map(|s| {
            b.add(
                &format!("data/stream/{s}"),
                Phase::Data,
                "data.stream",
&[pins.to_string()],
                Promise::Compensating(
                    "the copy on green's database stays there, closed; a later run empties and refills it".into(),
                ),
                format!(
                    "copy data set {s} to green and keep it in step; green stays closed for writes"
                ),
                json!({"set": s}),
                [10, 3600],
            )
        })
        .collect()
}

/// What wakes at open, by what stops its copy on blue: its replicas, its schedule, or nothing of these.
struct Held<'a> {
    singles: Vec<&'a str>,
    cron: Vec<&'a str>,
    jobs: Vec<&'a str>,
    /// KEDA's scalers, which wake with their targets.
    scalers: Vec<&'a str>,
    others: Vec<&'a str>,
}

fn held<'a>(i: &'a Input) -> Held<'a> {
    let mut held = Held {
        singles: vec![],
        cron: vec![],
        jobs: vec![],
        scalers: vec![],
        others: vec![],
    };
    for v in i.verdicts {
        let Some(park) = v.park.as_ref().filter(|p| p.wakes == "open") else {
            continue;
        };
        let kind = v.target.as_ref().and_then(|t| t["kind"].as_str());
        let list = match kind {
            Some("CronJob") => &mut held.cron,
            Some("Job") => &mut held.jobs,
            Some("ScaledObject") => &mut held.scalers,
            _ if park.field == "/spec/replicas" => &mut held.singles,
            _ => &mut held.others,
        };
        list.push(&v.object);
    }
    held
}

/// Parameters of a step that wakes: who, in which order, how many together.
fn waking(order: &Order) -> Value {
    json!({"objects": order.objects, "levels": order.levels})
}

/// How long waking takes: a minute for each level at most, and half a minute for each so many pods.
fn waking_s(i: &Input, order: &Order) -> [u32; 2] {
    let size = |o: &String| {
        let at = i.verdicts.binary_search_by(|v| v.object.cmp(o)).ok();
        let park = at.and_then(|n| i.verdicts[n].park.as_ref());
        park.and_then(|p| p.value.as_u64()).unwrap_or(1)
    };
    let pods: u64 = order.objects.iter().map(size).sum();
    let batches = order.levels.len() as u64 + pods / u64::from(i.spec.limits.wake_pods.max(1));
    let n = u32::try_from(batches).unwrap_or(u32::MAX).max(1);
    [n.saturating_mul(5), n.saturating_mul(60).max(300)]
}

fn unpark(
    i: &Input,
    b: &mut Builder,
    replayed: &[String],
    nodes: &[String],
    streams: &[String],
    layout: &Layout,
) -> Vec<String> {
    let mut needs: Vec<String> = replayed
        .iter()
        .chain(nodes)
        .chain(streams)
        .cloned()
        .collect();
    needs.extend(
        b.steps
            .iter()
            .filter(|s| s.phase == Phase::Provision)
            .map(|s| s.id.clone()),
    );
    let (operators, workloads) = Wake::new(i.verdicts, i.snapshot).at_unpark();
    let mut last = needs.clone();
    if !operators.objects.is_empty() {
        last = vec![b.add(
            "unpark/operators",
            Phase::Unpark,
            "unpark",
            &needs,
            Promise::Exact,
            format!(
                "bring {} that others rely on to live size on green",
                people(operators.objects.len(), "operator or agent")
            ),
            waking(&operators),
            waking_s(i, &operators),
        )];
    }
    for stage in &layout.late {
        last = vec![wave(b, "unpark", Phase::Unpark, &last, stage)];
    }
    let hooks = &layout.last;
    if !hooks.is_empty() {
        last = vec![b.add(
            "unpark/webhooks",
            Phase::Unpark,
            "replay.wave",
            &last,
            Promise::Exact,
            format!(
                "create {} whose backends run now",
                people(hooks.len(), "webhook or aggregated API")
            ),
            json!({"wave": "webhooks", "objects": hooks, "generated": []}),
            [1, 20],
        )];
    }
    // After the webhooks: pods get their sidecars from the injectors among them.
    if !workloads.objects.is_empty() {
        last = vec![b.add(
            "unpark/workloads",
            Phase::Unpark,
            "unpark",
            &last,
            Promise::Exact,
            format!(
                "bring {} to live size on green",
                people(workloads.objects.len(), "workload")
            ),
            waking(&workloads),
            waking_s(i, &workloads),
        )];
    }
    let pods: Vec<&str> = i
        .verdicts
        .iter()
        .filter(|v| v.target.as_ref().is_some_and(|t| t["kind"] == "Pod"))
        .map(|v| v.object.as_str())
        .collect();
    if !pods.is_empty() {
        last = vec![b.add(
            "unpark/pods",
            Phase::Unpark,
            "replay.wave",
            &last,
            Promise::Exact,
            format!(
                "create {} that nothing makes again",
                people(pods.len(), "bare pod")
            ),
            json!({"wave": "pods", "objects": pods, "generated": []}),
            [1, 20],
        )];
    }
    let hosts: Vec<Value> = i
        .names
        .names
        .iter()
        .filter(|n| !i.spec.probes.skip.contains(&n.host) && !n.host.starts_with("*."))
        .map(|n| json!({"host": n.host, "object": n.object}))
        .collect();
    if !hosts.is_empty() {
        last = vec![b.add(
            "unpark/probe",
            Phase::Unpark,
            "probe.hosts",
            &last,
            Promise::None("reads only".into()),
            format!(
                "ask {} through green's load balancers and compare with blue",
                people(hosts.len(), "host")
            ),
            json!({"hosts": hosts}),
            [2, 300],
        )];
    }
    last
}

fn freeze(i: &Input, b: &mut Builder, gate: &[String]) -> Vec<String> {
    let mut out = vec![];
    let hold = |b: &mut Builder, id: &str, needs: &[String], summary: String, holds: &[Hold]| {
        (!holds.is_empty()).then(|| {
            b.add(
                id,
                Phase::Freeze,
                "freeze.hold",
                needs,
                Promise::Exact,
                summary,
                json!({"holds": holds}),
                [1, 300],
            )
        })
    };
    // First of all: a reconciler would undo whatever follows.
    let gitops = holds::gitops(i.snapshot, &i.spec.blue.cluster);
    let summary = format!("suspend {} on blue", people(gitops.len(), "GitOps object"));
    out.extend(hold(b, "freeze/gitops", gate, summary, &gitops));
    let needs: Vec<String> = gate.iter().chain(&out).cloned().collect();
    let volumes = holds::volumes(i.snapshot);
    let summary = format!(
        "let {} on blue outlive their claims (Retain)",
        people(volumes.len(), "volume")
    );
    out.extend(hold(b, "freeze/volumes", &needs, summary, &volumes));
    let scalers = holds::scalers(i.snapshot, i.verdicts);
    let summary = format!("pause {} of KEDA on blue", people(scalers.len(), "scaler"));
    let paused = hold(b, "freeze/scalers", &needs, summary, &scalers);
    let stop: Vec<String> = needs.iter().chain(&paused).cloned().collect();
    out.extend(paused);
    let held = held(i);
    if !held.cron.is_empty() {
        out.push(b.add(
            "freeze/cron",
            Phase::Freeze,
            "freeze.cron",
            &needs,
            Promise::Exact,
            format!(
                "suspend {} on blue and let running jobs end",
                people(held.cron.len(), "cron job")
            ),
            json!({"objects": held.cron}),
            [1, 600],
        ));
    }
    if !held.singles.is_empty() {
        out.push(b.add(
            "freeze/singletons",
            Phase::Freeze,
            "freeze.singletons",
            &stop,
            Promise::Exact,
            format!(
                "stop {} on blue of which never two may run",
                people(held.singles.len(), "workload")
            ),
            json!({"objects": held.singles}),
            [2, 120],
        ));
    }
    out
}

fn data(
    i: &Input,
    b: &mut Builder,
    gate: &[String],
    frozen: &[String],
    streams: &[String],
) -> Vec<String> {
    let sets = sets(i);
    let mut before: Vec<String> = frozen.iter().chain(gate).cloned().collect();
    if sets.is_empty() {
        return before;
    }
    before.extend(streams.iter().cloned());
    let fence = b.add(
        "freeze/fence",
        Phase::Freeze,
        "fence.close",
        &before,
        Promise::Exact,
        format!(
            "close blue for writes ({}), proven by a write that must fail",
            sets.join(", ")
        ),
        json!({"sets": sets}),
        [1, 15],
    );
    sets.iter()
        .map(|s| {
            b.add(
                &format!("data/switch/{s}"),
                Phase::Data,
                "data.switch",
                &[fence.clone(), format!("data/stream/{s}")],
                Promise::Exact,
                format!("drain and compare data set {s}, then turn its stream round"),
                json!({"set": s}),
                [2, 60],
            )
        })
        .collect()
}

fn cutover(i: &Input, b: &mut Builder, before: &[String]) -> Vec<String> {
    if i.names.names.is_empty() {
        return before.to_vec();
    }
    let mut stops = vec![];
    for (object, config) in &i.names.instances {
        if !object.starts_with("deployment/") && !object.starts_with("statefulset/") {
            continue;
        }
        stops.push(b.add(
            &format!("cutover/stop/{object}"),
            Phase::Cutover,
            "edns.stop",
            before,
            Promise::Exact,
            format!(
                "stop blue's ExternalDNS {} and prove that it stays stopped",
                config.version
            ),
            json!({"object": object, "interval": config.interval}),
            [2 * config.interval.min(60), 2 * config.interval + 30],
        ));
    }
    let mut last = if stops.is_empty() {
        before.to_vec()
    } else {
        stops
    };
    let drain = i.drain_seconds();
    last = vec![b.add(
        "cutover/drain-back",
        Phase::Cutover,
        "dns.drain",
        &last,
        Promise::Exact,
        format!("on the way back: let caches forget green for {drain} s before blue takes writes"),
        json!({"seconds": drain, "direction": "back"}),
        [0, 1],
    )];
    let canary = i.spec.dns.canary.is_some();
    let mut handovers: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let waves: BTreeSet<u32> = i.names.names.iter().map(|n| n.wave).collect();
    let last_wave = waves.last().copied();
    for wave in waves {
        // A canary that is held stops the run; of any other wave the held names wait for the last step, and the others go on.
        let hold = !(canary && wave == 0);
        let mut ids = vec![];
        let mut watched: Vec<&str> = vec![];
        for (zone_name, zone) in &i.names.zones {
            let mut hosts: Vec<&str> = i
                .names
                .names
                .iter()
                .filter(|n| n.wave == wave && n.zone_id == *zone)
                .map(|n| n.host.as_str())
                .collect();
            hosts.dedup();
            if hosts.is_empty() {
                continue;
            }
            let probed =
                |h: &&str| !h.starts_with("*.") && !i.spec.probes.skip.iter().any(|s| s == h);
            watched.extend(hosts.iter().copied().filter(probed));
            let id = b.add(
                &format!("cutover/handover/{wave}/{zone_name}"),
                Phase::Cutover,
                "dns.handover",
                &last,
                Promise::Exact,
                format!(
                    "hand over {} to green: {}",
                    people(hosts.len(), "name"),
                    shortened(&hosts)
                ),
                json!({"zone_id": zone, "names": hosts, "wave": wave, "hold": hold}),
                [1, 60],
            );
            if hold {
                handovers.entry(zone_name).or_default().push(id.clone());
            }
            ids.push(id);
        }
        last = ids;
        let gate = i.spec.dns.wave_gate_seconds;
        if gate > 0 && Some(wave) != last_wave && !watched.is_empty() {
            last = vec![b.add(
                &format!("cutover/gate/{wave}"),
                Phase::Cutover,
                "soak.watch",
                &last,
                Promise::None("reads only".into()),
                format!("watch wave {wave} for {gate} s before the next one"),
                json!({"hosts": watched, "seconds": gate, "part": true}),
                [gate, gate + 5],
            )];
        }
    }
    for (zone_name, held_of) in handovers {
        let zone = &i.names.zones[zone_name];
        let mut hosts: Vec<&str> = i
            .names
            .names
            .iter()
            .filter(|n| n.zone_id == *zone)
            .map(|n| n.host.as_str())
            .collect();
        hosts.sort_unstable();
        hosts.dedup();
        let mut needs = last.clone();
        needs.extend(held_of.iter().cloned());
        last =
            vec![
                b.add(
                    &format!("cutover/handover/held/{zone_name}"),
                    Phase::Cutover,
                    "dns.handover",
                    &needs,
                    Promise::Exact,
                    "hand over what was held back in its wave; stop while anything of it is left"
                        .into(),
                    json!({"zone_id": zone, "names": hosts, "held_of": held_of}),
                    [0, 5],
                ),
            ];
    }
    let ns = generated::namespace(i.spec, i.names);
    let object =
        ObjectId::new("apps/v1", "Deployment", Some(&ns), generated::EXTERNAL_DNS).to_string();
    let zones: Vec<&String> = i.names.zones.values().collect();
    let interval = i.spec.dns.external_dns.interval;
    // Both watch the same minutes: green's ExternalDNS proves that it leaves the zone alone while caches run out.
    let start = b.add(
        "cutover/start",
        Phase::Cutover,
        "edns.start",
        &last,
        Promise::Exact,
        "start green's ExternalDNS after a dry run that changes nothing".into(),
        json!({"object": object, "zone_ids": zones, "interval": interval}),
        [interval.min(60), 2 * interval + 60],
    );
    let drained = b.add(
        "cutover/drain",
        Phase::Cutover,
        "dns.drain",
        &last,
        Promise::Exact,
        format!("let caches forget blue for {drain} s before writes open on green"),
        json!({"seconds": drain, "direction": "there"}),
        [drain, drain + 5],
    );
    vec![start, drained]
}

fn open(i: &Input, b: &mut Builder, moved: &[String]) {
    let sets = sets(i);
    let mut last = moved.to_vec();
    if !sets.is_empty() {
        last = vec![b.add(
            "open/fence",
            Phase::Open,
            "fence.open",
            &last,
            Promise::Exact,
            format!("open green for writes ({})", sets.join(", ")),
            json!({"sets": sets}),
            [1, 5],
        )];
    }
    let held = held(i);
    let wake = Wake::new(i.verdicts, i.snapshot);
    let cron: Vec<&str> = held.cron.iter().chain(&held.jobs).copied().collect();
    let singles: Vec<&str> = held.scalers.iter().chain(&held.singles).copied().collect();
    // What reconciles wakes last: it would undo the others' rest.
    for (id, what, objects) in [
        ("open/singletons", "single workload", singles),
        ("open/cron", "cron job or job", cron),
        ("open/reconcilers", "GitOps object", held.others),
    ] {
        if objects.is_empty() {
            continue;
        }
        let order = wake.at_open(&objects);
        last = vec![b.add(
            id,
            Phase::Open,
            "unpark",
            &last,
            Promise::Exact,
            format!("start {} on green", people(objects.len(), what)),
            waking(&order),
            [1, 120],
        )];
    }
    let hosts: Vec<&str> = i
        .names
        .names
        .iter()
        .filter(|n| !i.spec.probes.skip.contains(&n.host) && !n.host.starts_with("*."))
        .map(|n| n.host.as_str())
        .collect();
    if !hosts.is_empty() {
        let s = i.spec.limits.soak_seconds;
        b.add(
            "soak/watch",
            Phase::Soak,
            "soak.watch",
            &last,
            Promise::None("reads only".into()),
            format!("watch {} for {s} s", people(hosts.len(), "host")),
            json!({"hosts": hosts, "seconds": s}),
            [s, s + 30],
        );
    }
}

fn people(n: usize, what: &str) -> String {
    if n == 1 {
        format!("1 {what}")
    } else {
        format!("{n} {what}s")
    }
}

fn shortened(hosts: &[&str]) -> String {
    let head: Vec<&str> = hosts.iter().take(4).copied().collect();
    if hosts.len() > 4 {
        format!("{} and {} more", head.join(", "), hosts.len() - 4)
    } else {
        head.join(", ")
    }
}

/// Topological order that keeps the phases in order where the edges allow it; stable.
pub(super) fn sort(steps: &mut Vec<StepSpec>) {
    let index: BTreeMap<String, usize> = steps
        .iter()
        .enumerate()
        .map(|(i, s)| (s.id.clone(), i))
        .collect();
    let mut done = vec![false; steps.len()];
    let mut order = vec![];
    let mut phases: VecDeque<Phase> = Phase::ALL.into();
    while order.len() < steps.len() {
        let ready = |p: Option<Phase>, done: &[bool]| {
            (0..steps.len()).find(|i| {
                !done[*i]
                    && p.is_none_or(|p| steps[*i].phase <= p)
                    && steps[*i]
                        .needs
                        .iter()
                        .all(|n| index.get(n).is_none_or(|k| done[*k]))
            })
        };
        match ready(phases.front().copied(), &done) {
            Some(i) => {
                done[i] = true;
                order.push(i);
            }
            None if phases.pop_front().is_some() => {}
            None => break,
        }
    }
    let mut old: Vec<Option<StepSpec>> = std::mem::take(steps).into_iter().map(Some).collect();
    steps.extend(order.into_iter().filter_map(|i| old[i].take()));
    // A cycle would be a bug here; what is left stays visible at the end.
    steps.extend(old.into_iter().flatten());
}
