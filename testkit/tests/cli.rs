//! `crossfade-bench` as a person uses it.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn bench(args: &[&str], dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crossfade-bench"));
    command
        .args(args)
        .arg("--dir")
        .arg(dir)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

fn wait_for(file: &Path, process: &mut Child) {
    let start = Instant::now();
    while !file.is_file() {
        assert!(
            process.try_wait().expect("wait").is_none(),
            "the bench ended"
        );
        assert!(
            start.elapsed() < Duration::from_secs(120),
            "no {}",
            file.display()
        );
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Processes whose command line mention a folder; zombies have none.
fn processes_with(needle: &str) -> Vec<String> {
    std::fs::read_dir("/proc")
        .expect("/proc")
        .flatten()
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " "))
        .filter(|line| line.contains(needle))
        .collect()
}

#[test]
fn an_empty_bench_comes_up_writes_its_files_and_dies_whole_even_by_sigkill() {
    let dir = tempfile::tempdir().expect("folder");
    let mut first = bench(&["up", "--empty"], dir.path())
        .spawn()
        .expect("starts");
    wait_for(&dir.path().join("env.sh"), &mut first);
    let script = std::fs::read_to_string(dir.path().join("env.sh")).expect("env.sh");
    assert!(
        script.contains("export AWS_ENDPOINT_URL='http://127.0.0.1:"),
        "{script}"
    );
    assert!(script.contains("unset AWS_CA_BUNDLE"), "{script}");
    for file in ["blue.kubeconfig", "green.kubeconfig", "migration.yaml"] {
        let text = std::fs::read_to_string(dir.path().join(file)).expect(file);
        assert!(
            !text.contains('@') || file != "migration.yaml",
            "a place was not filled in:\n{text}"
        );
    }
    // A second one on the same folder is refused while the first runs.
    let second = bench(&["up", "--empty"], dir.path())
        .status()
        .expect("runs");
    assert!(!second.success());

    let folder = script
        .lines()
        .find_map(|line| line.strip_prefix("export KUBECONFIG='"))
        .and_then(|path| path.strip_suffix("/blue/operator.kubeconfig'"))
        .expect("the bench's own folder")
        .to_owned();
    assert!(processes_with(&folder).len() >= 9);
    first.kill().expect("SIGKILL");
    first.wait().expect("wait");
    let start = Instant::now();
    while !processes_with(&folder).is_empty() {
        assert!(
            start.elapsed() < Duration::from_secs(10),
            "{:#?}",
            processes_with(&folder)
        );
        std::thread::sleep(Duration::from_millis(50));
    }

    // The killed one is no obstacle, and `down` ends the next in order.
    std::fs::remove_file(dir.path().join("env.sh")).expect("remove");
    let mut third = bench(&["up", "--empty"], dir.path())
        .spawn()
        .expect("starts");
    wait_for(&dir.path().join("env.sh"), &mut third);
    assert!(
        !Path::new(&folder).exists(),
        "the killed bench's folder is swept by the next"
    );
    let ended = std::thread::spawn(move || third.wait().expect("wait"));
    assert!(
        bench(&["down"], dir.path())
            .status()
            .expect("runs")
            .success()
    );
    assert!(ended.join().expect("thread").success());
    assert!(!dir.path().join("pid").exists());
}
