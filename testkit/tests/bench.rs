//! A whole bench: it starts, holds the company, and leaves nothing behind.

use std::time::Instant;

use testkit::Result;
use testkit::bench::{Bench, BenchOptions};
use testkit::servers::Side;

/// Command lines of all processes on this machine that mention `needle`.
fn processes_with(needle: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("/proc").flatten() {
        let Ok(bytes) = std::fs::read(entry.path().join("cmdline")) else {
            continue;
        };
        let line = String::from_utf8_lossy(&bytes).replace('\0', " ");
        if line.contains(needle) {
            found.push(line);
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bench_starts_with_the_company_in_it_and_leaves_nothing_behind() -> Result<()> {
    let _ = tracing_subscriber::fmt()
        .with_env_filter("warn,kube_client=off,testkit=info")
        .with_test_writer()
        .try_init();
    let start = Instant::now();
    let mut bench = Bench::start(BenchOptions::default()).await?;
    println!("up after {:?}", start.elapsed());
    bench.check_alive()?;

    for (side, version) in [(Side::Blue, "v1.21.14"), (Side::Green, "v1.36.3")] {
        let client = bench.control_plane(side).client().await?;
        let info = client.apiserver_version().await.expect("version");
        assert_eq!(info.git_version, version);
    }

    let folder = bench.workdir().to_owned();
    let needle = folder.display().to_string();
    assert!(
        processes_with(&needle).len() >= 9,
        "etcd, 2 x 3 of Kubernetes, 2 databases"
    );
    let emulator = bench.aws_endpoint();
    let start = Instant::now();
    drop(bench);
    println!("down after {:?}", start.elapsed());
    assert_eq!(processes_with(&needle), Vec::<String>::new());
    assert!(!folder.exists(), "{needle} is still there");
    let port = emulator
        .rsplit_once(':')
        .expect("port")
        .1
        .parse::<u16>()
        .expect("port");
    assert!(
        std::net::TcpStream::connect(("127.0.0.1", port)).is_err(),
        "the emulator still answers"
    );
    Ok(())
}
