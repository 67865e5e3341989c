//! How long a plan takes and how much memory, by the size of the company: `cargo bench --bench planner`.
//!
//! `-- --write=FOLDER --objects=N` instead writes the plan of a company of N objects into a folder, for the memory of the verbs that read it.
//!
//! Each size runs in a process of its own, so that its peak memory is its own. The aim: a plan of 50,000 objects, 5,000 records, 40 instance groups and 2,000
//! service accounts in at most 5 s and 500 MB, and the time per object flat from 5,000 to 50,000 objects.

mod company;

use company::{Size, company};
use std::time::Instant;

const SIZES: [Size; 4] = [
    Size {
        objects: 5_000,
        records: 500,
        groups: 40,
        accounts: 200,
    },
    Size {
        objects: 10_000,
        records: 1_000,
        groups: 40,
        accounts: 400,
    },
    Size {
        objects: 25_000,
        records: 2_500,
        groups: 40,
        accounts: 1_000,
    },
    Size {
        objects: 50_000,
        records: 5_000,
        groups: 40,
        accounts: 2_000,
    },
];

/// Peak resident memory of this process, KiB.
fn peak() -> u64 {
    std::fs::read_to_string("/proc/self/status")
        .unwrap_or_default()
        .lines()
        .find_map(|l| {
            l.strip_prefix("VmHWM:")?
                .trim()
                .strip_suffix("kB")?
                .trim()
                .parse()
                .ok()
        })
        .unwrap_or(0)
}

/// Processor time of this process so far, all threads, seconds: other work on the machine makes the clock run, not this.
fn busy() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the name, which may hold anything: fields 14 and 15 of proc(5), in hundredths of a second.
    let ticks: u64 = stat
        .rsplit(") ")
        .next()
        .unwrap_or_default()
        .split(' ')
        .skip(11)
        .take(2)
        .filter_map(|n| n.parse::<u64>().ok())
        .sum();
    ticks as f64 / 100.0
}

fn one(size: Size) {
    let snapshot = company(size);
    let spec = crossfade::spec::defaults_for(&snapshot);
    let before = peak();
    let busy_before = busy();
    let start = Instant::now();
    let plan = crossfade::plan::plan(&spec, &snapshot);
    let seconds = start.elapsed().as_secs_f64();
    let worked = busy() - busy_before;
    let blockers = plan.findings.len();
    println!(
        "{:>8} {:>8} {:>8.2} {:>8.2} {:>10.1} {:>10} {:>10} {:>9} {:>8}",
        size.objects,
        size.records,
        seconds,
        worked,
        worked * 1e6 / size.objects as f64,
        before / 1024,
        peak() / 1024,
        plan.steps.len(),
        blockers
    );
}

/// Writes a plan folder without a snapshot: what `status`, `review` and `migrate` read.
fn write(folder: &str, objects: usize) {
    let snapshot = company(Size {
        objects,
        records: objects / 10,
        groups: 40,
        accounts: objects / 25,
    });
    let spec = crossfade::spec::defaults_for(&snapshot);
    let plan = crossfade::plan::plan(&spec, &snapshot);
    let path = std::path::Path::new(folder).join("plan.json");
    std::fs::create_dir_all(folder).unwrap_or_else(|e| panic!("{folder}: {e}"));
    crossfade::plan::store(&path, &plan).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let value = |name: &str| args.iter().find_map(|a| a.strip_prefix(name));
    if let Some(folder) = value("--write=") {
        let objects = value("--objects=").and_then(|n| n.parse().ok());
        return write(folder, objects.unwrap_or(100_000));
    }
    if let Some(n) = args
        .iter()
        .find_map(|a| a.strip_prefix("--size=")?.parse::<usize>().ok())
    {
        if let Some(size) = SIZES.iter().find(|s| s.objects == n) {
            one(*size);
        }
        return;
    }
    println!(
        "{:>8} {:>8} {:>8} {:>8} {:>10} {:>10} {:>10} {:>9} {:>8}",
        "objects",
        "records",
        "seconds",
        "cpu s",
        "cpu us/obj",
        "input MB",
        "peak MB",
        "steps",
        "findings"
    );
    for size in SIZES {
        let me =
            std::env::current_exe().unwrap_or_else(|e| panic!("the benchmark's own file: {e}"));
        let done = std::process::Command::new(me)
            .arg(format!("--size={}", size.objects))
            .status();
        assert!(done.is_ok_and(|s| s.success()), "{} objects", size.objects);
    }
}
