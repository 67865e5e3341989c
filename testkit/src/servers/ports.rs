//! Free ports for servers that must be told their port before they start.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::net::TcpListener;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::{Context, Error, Result};

/// Below the kernel's ephemeral range (32768 and up), so that no outgoing connection takes one between
/// the choice and the server's bind.
const RANGE: std::ops::Range<u16> = 20_000..32_000;

/// A reserved port: no other bench on this machine gets it while this value lives.
#[derive(Debug)]
pub struct Port {
    number: u16,
}

/// Locks are held per process: a second lock of one process on one file would succeed or not by platform.
fn held() -> &'static Mutex<HashMap<u16, File>> {
    static HELD: OnceLock<Mutex<HashMap<u16, File>>> = OnceLock::new();
    HELD.get_or_init(Mutex::default)
}

impl Port {
    /// Reserves a free port on 127.0.0.1.
    pub fn reserve() -> Result<Self> {
        let folder = std::env::temp_dir().join("crossfade-bench-ports");
        std::fs::create_dir_all(&folder)
            .context(|| format!("could not create {}", folder.display()))?;
        let mut held = held().lock().unwrap_or_else(PoisonError::into_inner);
        let span = RANGE.end - RANGE.start;
        // Where the search starts does not matter, only that two benches rarely meet.
        let seed = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |d| d.subsec_nanos())
            .wrapping_mul(2_654_435_761)
            .wrapping_add(std::process::id());
        for step in 0..span {
            let offset = (seed.wrapping_add(u32::from(step) * 7)) % u32::from(span);
            let number = RANGE.start + u16::try_from(offset).unwrap_or(0);
            if held.contains_key(&number) {
                continue;
            }
            let Ok(file) = OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .open(folder.join(number.to_string()))
            else {
                continue;
            };
            if file.try_lock().is_err() || TcpListener::bind(("127.0.0.1", number)).is_err() {
                continue;
            }
            held.insert(number, file);
            return Ok(Port { number });
        }
        Err(Error::new(format!(
            "no free port between {} and {} on 127.0.0.1: end other benches (crossfade-bench down)",
            RANGE.start, RANGE.end
        )))
    }

    /// The port number.
    pub fn number(&self) -> u16 {
        self.number
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        held()
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_port_is_given_twice_while_it_is_held() {
        let ports: Vec<Port> = (0..50).map(|_| Port::reserve().expect("port")).collect();
        let mut numbers: Vec<u16> = ports.iter().map(Port::number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 50);
        assert!(numbers.iter().all(|n| RANGE.contains(n)));
    }
}
