//! Where the built servers and the emulator's environment are, and how they get there.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Context, Error, Result};

/// The AWS emulator's version on PyPI. `bench.md` 1
pub const MINISTACK: &str = "1.5.33";

/// The servers a bench needs, in the order in which they are built.
pub const SERVERS: [&str; 6] = [
    "etcd",
    "kwok",
    "kube-1.21",
    "kube-1.36",
    "external-dns-0.10.2",
    "external-dns-0.21.0",
];

/// `$CROSSFADE_BENCH_CACHE`, else `~/.cache/crossfade`: outside the checkout, so that a second clone starts in seconds.
pub fn cache() -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os("CROSSFADE_BENCH_CACHE") {
        return Ok(folder.into());
    }
    let home = std::env::var_os("HOME").ok_or_else(|| {
        Error::new("HOME is not set: set CROSSFADE_BENCH_CACHE to a folder with 2 GB of room")
    })?;
    Ok(Path::new(&home).join(".cache").join("crossfade"))
}

/// The folder with the pins and the build script.
pub fn pins() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("servers")
}

/// The folder of the fixture `shop`.
pub fn shop_fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/shop")
}

/// The program `program` of server `server`, e.g. `("kube-1.21", "kube-apiserver")`.
pub fn binary(server: &str, program: &str) -> Result<PathBuf> {
    let path = cache()?.join("servers").join(server).join(program);
    // `.key` is written last: a build that is still running is not taken for a finished one.
    let done = path.with_file_name(".key").is_file();
    if path.is_file() && done {
        return Ok(path);
    }
    Err(Error::new(format!(
        "{} is not built: run `crossfade-bench build` (needs Go; minutes the first time, seconds afterwards)",
        path.display()
    )))
}

/// Builds the servers that are missing or whose pins changed, one after the other; the script prints the seconds of each.
pub fn build(names: &[String]) -> Result<()> {
    let out = cache()?.join("servers");
    std::fs::create_dir_all(&out).context(|| format!("could not create {}", out.display()))?;
    let script = pins().join("build");
    let status = Command::new(&script)
        .arg(&out)
        .args(if names.is_empty() {
            SERVERS.map(String::from).to_vec()
        } else {
            names.to_vec()
        })
        .status()
        .context(|| format!("could not run {}", script.display()))?;
    if status.success() {
        Ok(())
    } else {
        Err(Error::new(format!(
            "{} failed ({status}): its output above says why; Go 1.26 or newer and the Go module proxy are needed",
            script.display()
        )))
    }
}

/// The emulator's program; makes its virtual environment when it is missing.
pub fn ministack() -> Result<PathBuf> {
    let venv = cache()?.join("venv");
    let program = venv.join("bin/ministack");
    let stamp = venv.join(format!(".ministack-{MINISTACK}"));
    if program.is_file() && stamp.is_file() {
        return Ok(program);
    }
    std::fs::create_dir_all(cache()?).context(|| "could not create the bench's cache".into())?;
    // Two tests may start their first bench at once.
    let lock = std::fs::File::create(cache()?.join("venv.lock"))
        .context(|| "could not create the lock of the virtual environment".into())?;
    lock.lock()
        .context(|| "could not lock the virtual environment".into())?;
    if program.is_file() && stamp.is_file() {
        return Ok(program);
    }
    run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    run(Command::new(venv.join("bin/pip")).args([
        "install",
        "--quiet",
        &format!("ministack=={MINISTACK}"),
    ]))?;
    std::fs::write(&stamp, "").context(|| format!("could not write {}", stamp.display()))?;
    Ok(program)
}

fn run(command: &mut Command) -> Result<()> {
    let output = command
        .output()
        .context(|| format!("could not run {:?}", command.get_program()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Error::new(format!(
        "{command:?} failed ({}): {}",
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    )))
}

/// A PostgreSQL program: on `PATH`, else where Debian keeps it.
pub fn postgres(program: &str) -> Result<PathBuf> {
    let on_path = std::env::var_os("PATH")
        .map(|path| std::env::split_paths(&path).collect::<Vec<_>>())
        .unwrap_or_default();
    let debian = std::fs::read_dir("/usr/lib/postgresql")
        .map(|entries| {
            let mut versions: Vec<PathBuf> =
                entries.flatten().map(|e| e.path().join("bin")).collect();
            versions.sort();
            versions.reverse();
            versions
        })
        .unwrap_or_default();
    on_path
        .into_iter()
        .chain(debian)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
        .ok_or_else(|| {
            Error::new(format!(
                "{program} was found neither on PATH nor under /usr/lib/postgresql: install PostgreSQL 15 or newer (Debian: apt-get install postgresql)"
            ))
        })
}
