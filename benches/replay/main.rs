//! How fast the replay is, beside what else could write the same objects: `cargo bench --bench replay`.
//!
//! Real servers: blue is kube-apiserver 1.21 with the objects, green 1.36, emptied (a new store, new processes) before each
//! measurement, both with their controllers, one etcd. Ours is the released binary, `crossfade migrate --to replay`, from its
//! start to its end: plan read, pins proven, Secrets fetched from blue, every object created, journal on disk. Beside it: a bare
//! writer (POST, no rules, no journal) with 4 to 64 requests in flight, `kubectl apply --server-side`, and one object at a time;
//! then the same with 20 ms of round trip before green. Everybody writes as an ordinary user, not as `system:masters`, which
//! flow control lets pass. Numbers depend on the machine: only ratios taken in one sitting mean something.
//!
//! `--objects=N` (10000), `--rounds=N` (2) of ours and the best bare writer in turns, `--sample=N` (2000) objects for
//! those that are slow, `--only=bare,ours,kubectl,one,delay,second,journal`.

mod company;
mod table;

#[path = "../../tests/replay/mod.rs"]
mod replay;

use crossfade::plan::model::{Phase, Plan};
use kube::Client;
use replay::writer::{self, Pace};
use replay::{Move, is_write};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use table::{Line, Table};
use testkit::servers::{Side, User, paths};
use testkit::usage;
use testkit::wire::{Proxy, Way};

const WIDTHS: [usize; 5] = [4, 8, 16, 32, 64];
const ONE_WAY: Duration = Duration::from_millis(10);

struct Args {
    objects: usize,
    rounds: usize,
    sample: usize,
    only: Vec<String>,
}

impl Args {
    fn read() -> Args {
        let all: Vec<String> = std::env::args().collect();
        let text = |key: &str| {
            let found = all.iter().find_map(|a| a.strip_prefix(key));
            found.map(str::to_owned)
        };
        let number = |key: &str, usual: usize| {
            text(key).map_or(usual, |v| {
                v.parse().unwrap_or_else(|e| panic!("{key}{v}: {e}"))
            })
        };
        Args {
            objects: number("--objects=", 10_000),
            rounds: number("--rounds=", 2),
            sample: number("--sample=", 2_000),
            only: text("--only=").map_or(vec![], |v| v.split(',').map(str::to_owned).collect()),
        }
    }

    fn wants(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|o| o == part)
    }
}

struct Bench {
    it: Move,
    /// What everybody writes: the plan's targets, in the order of the replay, Secrets with their values.
    targets: Vec<Value>,
    places: usize,
}

/// CPU time of green's API server and of etcd.
fn server_cpu(it: &Move) -> Duration {
    let server = it.bench.control_plane(Side::Green).server_pid();
    let pids = server.into_iter().chain([it.bench.etcd_pid()]);
    pids.filter_map(usage::cpu).sum()
}

impl Bench {
    /// A green that has never seen an object, quiet.
    async fn fresh(&mut self) {
        let green = self.it.bench.control_plane_mut(Side::Green);
        green.restart_empty().await.expect("green starts again");
        let client = self.it.client(Side::Green).await;
        // The bare writers and kubectl come with a plain token.
        let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "system:bench-writer", "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": replay::OPERATOR}]});
        writer::create_all(&client, &[binding], 1, true).await;
        // Controllers make what every cluster has, nodes register.
        tokio::time::sleep(Duration::from_secs(4)).await;
    }

    fn kubeconfig(&self, proxy: Option<&Proxy>) -> PathBuf {
        let green = self.it.bench.control_plane(Side::Green);
        let path = green.kubeconfig(User::Operator);
        let Some(proxy) = proxy else { return path };
        let text = std::fs::read_to_string(path).expect("a kubeconfig");
        let far = self.it.dir.path().join("far.kubeconfig");
        let url = format!("https://{}", proxy.address());
        std::fs::write(&far, text.replace(green.url(), &url)).expect("written");
        far
    }

    async fn bare(
        &mut self,
        width: usize,
        objects: usize,
        proxy: Option<&Proxy>,
    ) -> (Pace, Duration, Duration) {
        self.fresh().await;
        let client = client(&self.kubeconfig(proxy)).await;
        let objects = sample(&self.targets, objects);
        let (server, own) = (server_cpu(&self.it), usage::cpu(std::process::id()));
        let pace = writer::create_all(&client, &objects, width, false).await;
        let own = usage::cpu(std::process::id())
            .zip(own)
            .map_or(Duration::ZERO, |(a, b)| a.saturating_sub(b));
        (pace, server_cpu(&self.it).saturating_sub(server), own)
    }

    /// A working directory as it was before the replay. On a RAM disk when asked.
    fn place(&mut self, ram: bool) -> String {
        self.places += 1;
        let name = format!("ours-{}", self.places);
        if ram {
            let ram = Path::new("/dev/shm").join(format!(
                "crossfade-bench-{}-{}",
                std::process::id(),
                self.places
            ));
            std::fs::create_dir_all(&ram).expect("a folder");
            std::os::unix::fs::symlink(&ram, self.it.dir.path().join(&name)).expect("a link");
        }
        self.it.copy_place("work", &name);
        name
    }

    async fn ours(&mut self, place: &str) -> Ours {
        let server = server_cpu(&self.it);
        let json = ["migrate", "--to", "replay", "-o", "json"];
        let said = self.it.run_in(place, &json, &[]).await;
        said.expect(0);
        let cpu = server_cpu(&self.it).saturating_sub(server);
        tell(&said.stdout);
        Ours {
            pace: Pace {
                objects: self.targets.len(),
                took: said.took,
                ..Pace::default()
            },
            waves: waves(&self.it.journal(place)),
            server: cpu,
            own: said.cpu,
            peak_kib: said.peak_kib,
        }
    }

    fn writes_of_product(&self) -> usize {
        let audit = self.it.audit_of_product(Side::Green);
        audit.iter().filter(|e| is_write(e)).count()
    }
}

struct Ours {
    pace: Pace,
    /// From the moment when the run goes on to the end of its last wave.
    waves: Duration,
    server: Duration,
    own: Duration,
    peak_kib: u64,
}

/// A share of the objects with all their kinds: namespaces and definitions, then every n-th.
fn sample(objects: &[Value], count: usize) -> Vec<Value> {
    let first = |o: &&Value| o["kind"] == "Namespace" || o["kind"] == "CustomResourceDefinition";
    let mut taken: Vec<Value> = objects.iter().filter(first).cloned().collect();
    let rest: Vec<&Value> = objects.iter().filter(|o| !first(o)).collect();
    let wanted = count.saturating_sub(taken.len()).min(rest.len());
    taken.extend((0..wanted).map(|i| rest[i * rest.len() / wanted.max(1)].clone()));
    taken
}

/// How long the waves took by the journal's own times.
fn waves(journal: &Path) -> Duration {
    let text = std::fs::read_to_string(journal).expect("a journal");
    let (mut began, mut ended) = (None, None);
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).expect("a record");
        let at: Option<jiff::Timestamp> = line["at"].as_str().and_then(|t| t.parse().ok());
        let record = &line["record"];
        if record["type"] == "resumed" {
            began = at;
        } else if record["type"] == "done"
            && record["step"]
                .as_str()
                .is_some_and(|s| s.starts_with("replay/"))
        {
            ended = at;
        }
    }
    let between = began.zip(ended).map(|(a, b)| b.duration_since(a));
    between
        .and_then(|d| Duration::try_from(d).ok())
        .expect("the waves are in the journal")
}

/// How long each wave took, and what the run waited for, in its own words.
fn tell(events: &str) {
    let mut waves = String::new();
    let mut waits: BTreeMap<String, usize> = BTreeMap::new();
    for event in events.lines() {
        let event: Value = serde_json::from_str(event).unwrap_or_default();
        let text = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
        match event["event"].as_str() {
            Some("step_done") => {
                let took = event["took_s"].as_f64().unwrap_or(0.0);
                waves.push_str(&format!(
                    " {} {took:.1}",
                    text("step").replace("replay/", "")
                ));
            }
            Some("waiting") => *waits.entry(text("why")).or_default() += 1,
            Some("retrying") => *waits.entry(text("error")).or_default() += 1,
            _ => {}
        }
    }
    println!("  seconds a wave:{waves}");
    for (why, times) in waits {
        println!("  waited {times} times: {why}");
    }
}

async fn client(kubeconfig: &Path) -> Client {
    testkit::servers::kube::client(kubeconfig)
        .await
        .expect("a client")
}

/// What the replay creates, with the Secrets' values that only the servers hold.
fn targets(plan: &Plan, blue: &[Value]) -> Vec<Value> {
    let key = |o: &Value| {
        let text = |p: &str| {
            o.pointer(p)
                .and_then(Value::as_str)
                .unwrap_or("")
                .to_owned()
        };
        (
            text("/kind"),
            text("/metadata/namespace"),
            text("/metadata/name"),
        )
    };
    let secrets: BTreeMap<_, &Value> = blue
        .iter()
        .filter(|o| o["kind"] == "Secret")
        .map(|o| (key(o), o))
        .collect();
    let mut all = vec![];
    for step in plan.steps.iter().filter(|s| s.phase == Phase::Replay) {
        let list = |name: &str| step.params[name].as_array().cloned().unwrap_or_default();
        for n in list("generated") {
            let n = n.as_u64().and_then(|n| usize::try_from(n).ok());
            all.push(plan.generated[n.expect("an index")].clone());
        }
        for name in list("objects") {
            let verdict = plan.verdicts.get(name.as_str().expect("a name"));
            let verdict = verdict.expect("a plan").expect("a verdict").into_owned();
            let mut target = verdict.target.expect("a target");
            if let Some(secret) = secrets.get(&key(&target)) {
                target["data"] = secret["data"].clone();
            }
            all.push(target);
        }
    }
    all
}

#[tokio::main]
async fn main() {
    let args = Args::read();
    let began = Instant::now();
    let mut bench = prepare(&args).await;
    let mut table = Table::default();
    let mut best: Option<(usize, f64)> = None;
    let count = bench.targets.len();
    if args.wants("bare") {
        for width in WIDTHS {
            let (pace, server, own) = bench.bare(width, count, None).await;
            if best.is_none_or(|(_, rate)| pace.rate() > rate) {
                best = Some((width, pace.rate()));
            }
            table.add(Line::bare(
                &format!("bare writer, {width} in flight"),
                &pace,
                server,
                own,
            ));
        }
    }
    let mut ours_rates = vec![];
    let mut bare_rates: Vec<f64> = best.iter().map(|(_, rate)| *rate).collect();
    let mut last = None;
    if args.wants("ours") {
        for round in 1..=args.rounds {
            if let (Some((width, _)), true) = (best, round > 1) {
                let (pace, server, own) = bench.bare(width, count, None).await;
                bare_rates.push(pace.rate());
                table.add(Line::bare(
                    &format!("bare writer, {width} in flight, again"),
                    &pace,
                    server,
                    own,
                ));
            }
            bench.fresh().await;
            let place = bench.place(false);
            let ours = bench.ours(&place).await;
            ours_rates.push(ours.pace.rate());
            table.add(Line::ours("crossfade migrate --to replay", &ours));
            last = Some((place, ours));
        }
    }
    let best_bare = bare_rates.iter().copied().fold(0.0, f64::max);
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len().max(1) as f64;
    let ours_rate = mean(&ours_rates);
    if let Some((place, ours)) = &last {
        table.ratio(
            "ours / best bare writer (mean of its rounds)",
            ours_rate / mean(&bare_rates),
            ">= 0.9",
        );
        table.ratio(
            "ours / best bare writer (its best)",
            ours_rate / best_bare,
            ">= 0.9",
        );
        table.ratio(
            "our CPU / CPU of API server and etcd",
            ours.own.as_secs_f64() / ours.server.as_secs_f64(),
            "<= 0.1",
        );
        table.number(
            "our peak memory",
            ours.peak_kib as f64 / 1024.0,
            "MB",
            "< 200",
        );
        if args.wants("journal") {
            let spent = journal_again(&bench.it, place);
            table.ratio(
                "time inside the journal / time of the run",
                spent.as_secs_f64() / ours.pace.took.as_secs_f64(),
                "<= 0.02",
            );
        }
        if args.wants("second") {
            second(&mut bench, place, ours, &mut table).await;
        }
    }
    if args.wants("journal") && args.wants("ours") && Path::new("/dev/shm").is_dir() {
        bench.fresh().await;
        let place = bench.place(true);
        let ram = bench.ours(&place).await;
        table.add(Line::ours(
            "  the same, its folder in memory (no fsync)",
            &ram,
        ));
        let target = std::fs::read_link(bench.it.dir.path().join(&place)).expect("a link");
        std::fs::remove_dir_all(target).expect("removed");
    }
    if args.wants("one") {
        let (pace, server, own) = bench.bare(1, args.sample, None).await;
        table.ratio("ours / one at a time", ours_rate / pace.rate(), "");
        table.add(Line::bare("one at a time", &pace, server, own));
    }
    if args.wants("kubectl") {
        match paths::binary("kubectl", "kubectl") {
            Ok(kubectl) => {
                let (pace, server, own) = kubectl_apply(&mut bench, &kubectl, args.sample).await;
                table.ratio(
                    "ours / kubectl apply --server-side",
                    ours_rate / pace.rate(),
                    ">= 4",
                );
                table.add(Line::bare(
                    "kubectl apply --server-side -f",
                    &pace,
                    server,
                    own,
                ));
            }
            Err(_) => {
                table.note("kubectl: not measured, it is not built (crossfade-bench build kubectl)")
            }
        }
    }
    table.ratio(
        "ours / Velero (22 objects/s, bench.md 5: not measured here)",
        ours_rate / 22.0,
        ">= 15",
    );
    if args.wants("delay") {
        delayed(&args, &mut bench, best_bare, &mut table).await;
    }
    println!(
        "\n{count} objects, {} s in all\n",
        began.elapsed().as_secs()
    );
    table.print();
}

/// Servers, the objects on blue, a plan of what `discover` saw, green provisioned.
async fn prepare(args: &Args) -> Bench {
    // Another build of the product can be measured with the same benchmark.
    let binary = std::env::var("CROSSFADE_BENCH_BINARY");
    let binary = binary.unwrap_or_else(|_| env!("CARGO_BIN_EXE_crossfade").into());
    let it = Move::open(&binary, "").await;
    let objects = company::objects(args.objects);
    let blue = it.client(Side::Blue).await;
    let pace = writer::create_all(&blue, &objects, 16, true).await;
    println!(
        "blue (1.21) took {} objects at {:.0}/s",
        pace.objects,
        pace.rate()
    );
    let said = it.run(&["discover"]).await;
    println!("discover: peak {} MB", said.expect(0).peak_kib / 1024);
    let said = it.run(&["plan"]).await;
    println!("plan: peak {} MB", said.peak_kib / 1024);
    if said.code == Some(3) {
        // What this company lacks beside its objects is not the question here.
        let plan = it.plan("work");
        let mut waivers = String::from("waivers:\n");
        for f in plan.findings.iter().filter(|f| f.blocks()) {
            println!("waived: {} {} {}", f.id, f.object, f.message);
            waivers.push_str(&format!(
                "- {{check: {}, object: {:?}, reason: a benchmark}}\n",
                f.id, f.object
            ));
        }
        it.write_spec(&waivers);
        it.run(&["plan"]).await.expect(2);
    }
    it.provision().await;
    let targets = targets(&it.plan("work"), &objects);
    println!("the replay creates {} objects", targets.len());
    Bench {
        it,
        targets,
        places: 0,
    }
}

/// The records of a run written once more, one by one, each with its fsync: all that the journal cost, without the waiting of
/// others for it.
fn journal_again(it: &Move, place: &str) -> Duration {
    let entries = crossfade::journal::read(&it.folder(place).join("run")).expect("a journal");
    let folder = it.dir.path().join("journal-again");
    let journal = crossfade::journal::Journal::open(&folder, "bench")
        .expect("opens")
        .journal;
    let before = entries.iter().position(|e| {
        let line = e.line();
        line.contains("\"resumed\"")
    });
    let mut spent = Duration::ZERO;
    for (n, entry) in entries.iter().enumerate() {
        let start = Instant::now();
        journal
            .append(entry.at, entry.record.clone())
            .expect("written");
        // What came before the replay is not its cost.
        if before.is_some_and(|b| n >= b) {
            spent += start.elapsed();
        }
    }
    println!(
        "journal: {} records, {:.3} s for those of the replay",
        entries.len(),
        spent.as_secs_f64()
    );
    spent
}

/// The replay once more on a green that has everything.
async fn second(bench: &mut Bench, first: &str, ours: &Ours, table: &mut Table) {
    let before = bench.writes_of_product();
    let help = bench.it.run_in(first, &["replay", "--help"], &[]).await;
    let (name, said) = if help.code == Some(0) {
        let said = bench.it.run_in(first, &["replay", "--apply"], &[]).await;
        ("crossfade replay --apply, second run", said)
    } else {
        // A run that knows nothing of the first: everything is there already and ours.
        let place = bench.place(false);
        let said = bench
            .it
            .run_in(&place, &["migrate", "--to", "replay"], &[])
            .await;
        ("a second run without the first one's journal", said)
    };
    println!("second run: exit {:?}", said.code);
    let pace = Pace {
        objects: bench.targets.len(),
        took: said.took,
        ..Pace::default()
    };
    table.add(Line::bare(name, &pace, Duration::ZERO, said.cpu));
    table.number(
        "  writes of the second run",
        (bench.writes_of_product() - before) as f64,
        "",
        "0",
    );
    table.ratio(
        "second run / first run, time",
        said.took.as_secs_f64() / ours.pace.took.as_secs_f64(),
        "< 0.33",
    );
}

async fn kubectl_apply(
    bench: &mut Bench,
    kubectl: &Path,
    objects: usize,
) -> (Pace, Duration, Duration) {
    bench.fresh().await;
    let objects = sample(&bench.targets, objects);
    let first = |o: &&Value| o["kind"] == "Namespace" || o["kind"] == "CustomResourceDefinition";
    let (first, rest): (Vec<&Value>, Vec<&Value>) = objects.iter().partition(first);
    let kubeconfig = bench.kubeconfig(None);
    let server = server_cpu(&bench.it);
    let (mut took, mut own) = (Duration::ZERO, Duration::ZERO);
    // kubectl looks all kinds up before it begins, so definitions need a call of their own.
    for (name, part) in [("first.json", first), ("rest.json", rest)] {
        let file = bench.it.dir.path().join(name);
        let list = json!({"apiVersion": "v1", "kind": "List", "items": part});
        std::fs::write(&file, list.to_string()).expect("written");
        let mut command = std::process::Command::new(kubectl);
        command
            .args(["apply", "--server-side", "-f"])
            .arg(&file)
            .env("HOME", bench.it.dir.path())
            .env("KUBECONFIG", &kubeconfig)
            .env_remove("HTTPS_PROXY");
        let said = bench.it.spawn(command).end().await;
        said.expect(0);
        took += said.took;
        own += said.cpu;
        if name == "first.json" {
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
    }
    let pace = Pace {
        objects: objects.len(),
        took,
        ..Pace::default()
    };
    (pace, server_cpu(&bench.it).saturating_sub(server), own)
}

/// Ours and one at a time with green 20 ms away.
async fn delayed(args: &Args, bench: &mut Bench, best_bare: f64, table: &mut Table) {
    let green = bench.it.bench.control_plane(Side::Green).url().to_owned();
    let upstream = green
        .trim_start_matches("https://")
        .parse()
        .expect("an address");
    let way = Way {
        one_way: ONE_WAY,
        cut_after: None,
    };
    let proxy = Proxy::start(upstream, way, 1).await.expect("a proxy");
    let (one, server, own) = bench.bare(1, args.sample.min(1000), Some(&proxy)).await;
    table.add(Line::bare(
        "one at a time, green 20 ms away",
        &one,
        server,
        own,
    ));
    bench.fresh().await;
    bench
        .it
        .bench
        .strict()
        .reach_clusters_at(&format!("https://{}", proxy.address()));
    let place = bench.place(false);
    let ours = bench.ours(&place).await;
    bench.it.bench.strict().reach_clusters_at(&green);
    println!(
        "ours used {} connections through the proxy",
        proxy.connections()
    );
    assert!(proxy.connections() > 0, "the long way was not taken");
    table.add(Line::ours("crossfade, green 20 ms away", &ours));
    table.ratio(
        "20 ms away: ours / one at a time",
        ours.pace.rate() / one.rate(),
        ">= 10",
    );
    if best_bare > 0.0 {
        table.ratio(
            "ours 20 ms away / best bare writer without the way",
            ours.pace.rate() / best_bare,
            ">= 0.85",
        );
    }
}
