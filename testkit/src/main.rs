//! `crossfade-bench`: a person starts the bench, plays with it, and ends it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};
use testkit::bench::{Bench, BenchOptions};
use testkit::servers::{paths, process};
use testkit::{Context, Error, Result};
use tokio::signal::unix::{SignalKind, signal};

/// Real servers to prove a migration on: two API servers, AWS, DNS, a database, traffic.
#[derive(Parser)]
#[command(
    version,
    after_help = "Example:\n  crossfade-bench build && crossfade-bench up --dir .bench\n  (in another terminal) . .bench/env.sh && crossfade discover"
)]
struct Cli {
    #[command(subcommand)]
    command: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Starts a bench in the foreground until Ctrl-C (or `down`)
    Up {
        /// Where env.sh, kubeconfigs and migration.yaml are written
        #[arg(long, default_value = ".bench")]
        dir: PathBuf,
        /// Leave blue, AWS, DNS and the databases empty
        #[arg(long)]
        empty: bool,
    },
    /// Ends the bench that `up` started with the same folder
    Down {
        #[arg(long, default_value = ".bench")]
        dir: PathBuf,
    },
    /// Says whether the bench of this folder runs
    Status {
        #[arg(long, default_value = ".bench")]
        dir: PathBuf,
    },
    /// Runs as ssh or aws (tests write scripts that call this)
    #[command(hide = true)]
    StandIn {
        script: PathBuf,
        name: String,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Builds the Go servers into the cache and sets up the AWS emulator (minutes the first time)
    Build {
        /// Only these servers
        names: Vec<String>,
    },
}

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_default_env()
                .unwrap_or_else(|_| "warn,kube_client=off,testkit=info".into()),
        )
        .with_target(false)
        .with_writer(std::io::stderr)
        .init();
    let result = match Cli::parse().command {
        Verb::Up { dir, empty } => tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .context(|| "could not start the async runtime".into())
            .and_then(|runtime| runtime.block_on(up(&dir, empty))),
        Verb::StandIn {
            script,
            name,
            words,
        } => tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context(|| "could not start the async runtime".into())
            .and_then(|runtime| {
                runtime.block_on(testkit::far::programs::stand_in(&script, &name, &words))
            }),
        Verb::Down { dir } => down(&dir),
        Verb::Status { dir } => {
            match running(&dir) {
                Some(pid) => println!("the bench of {} runs (pid {pid})", dir.display()),
                None => println!("no bench of {} runs", dir.display()),
            }
            Ok(())
        }
        Verb::Build { names } => build(&names),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn build(names: &[String]) -> Result<()> {
    paths::build(names)?;
    let start = Instant::now();
    paths::ministack()?;
    println!("AWS emulator: ready in {} s", start.elapsed().as_secs());
    Ok(())
}

async fn up(dir: &Path, empty: bool) -> Result<()> {
    if let Some(pid) = running(dir) {
        return Err(Error::new(format!(
            "a bench of {} runs already (pid {pid}): end it with `crossfade-bench down --dir {}`, or use another --dir",
            dir.display(),
            dir.display()
        )));
    }
    std::fs::create_dir_all(dir).context(|| format!("could not make {}", dir.display()))?;
    let pid_file = dir.join("pid");
    write(&pid_file, &std::process::id().to_string())?;
    // Before the start, so that Ctrl-C while it starts ends the servers too.
    let mut terminate =
        signal(SignalKind::terminate()).context(|| "could not listen for SIGTERM".into())?;
    let mut interrupt =
        signal(SignalKind::interrupt()).context(|| "could not listen for Ctrl-C".into())?;
    let options = BenchOptions {
        load_fixture: !empty,
        ..BenchOptions::default()
    };
    let start = Instant::now();
    let mut bench = tokio::select! {
        bench = Bench::start(options) => bench.inspect_err(|_| {
            let _ = std::fs::remove_file(&pid_file);
        })?,
        _ = terminate.recv() => return Ok(()),
        _ = interrupt.recv() => return Ok(()),
    };
    let files = bench.write_files(dir)?;
    println!(
        "The bench is up after {:.1} s. In another terminal:\n\n  . {}\n",
        start.elapsed().as_secs_f32(),
        dir.join("env.sh").display()
    );
    for file in files {
        println!("  {}", file.display());
    }
    println!(
        "\nlogs: {}\nCtrl-C (or `crossfade-bench down --dir {}`) ends it.",
        bench.workdir().display(),
        dir.display()
    );
    let mut look = tokio::time::interval(Duration::from_secs(2));
    let result = loop {
        tokio::select! {
            _ = terminate.recv() => break Ok(()),
            _ = interrupt.recv() => break Ok(()),
            _ = look.tick() => if let Err(error) = bench.check_alive() {
                break Err(error);
            },
        }
    };
    eprintln!("ending the bench");
    drop(bench);
    let _ = std::fs::remove_file(&pid_file);
    result
}

fn down(dir: &Path) -> Result<()> {
    let Some(pid) = running(dir) else {
        println!("no bench of {} runs", dir.display());
        return Ok(());
    };
    process::signal_one(pid, libc::SIGTERM);
    let start = Instant::now();
    while running(dir).is_some() {
        if start.elapsed() > Duration::from_secs(30) {
            return Err(Error::new(format!(
                "the bench of {} (pid {pid}) does not end: `kill -9 {pid}` ends it and all its servers",
                dir.display()
            )));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    println!("the bench of {} has ended", dir.display());
    Ok(())
}

/// The process id of the folder's bench, if it still is one: ids are used again.
fn running(dir: &Path) -> Option<u32> {
    let pid: u32 = std::fs::read_to_string(dir.join("pid"))
        .ok()?
        .trim()
        .parse()
        .ok()?;
    let program = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let mine =
        pid != std::process::id() && String::from_utf8_lossy(&program).contains("crossfade-bench");
    mine.then_some(pid)
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).context(|| format!("could not write {}", path.display()))
}
