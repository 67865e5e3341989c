//! What a process used: CPU time and memory as Linux counts them, for measurements.

use std::time::Duration;

/// Clock ticks a second in `/proc/PID/stat` (`USER_HZ`, the same on every Linux that this runs on).
const TICKS: u64 = 100;

/// CPU time (user and system) of a process, also of one that has ended and was not waited for yet.
pub fn cpu(pid: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    cpu_of(&stat)
}

fn cpu_of(stat: &str) -> Option<Duration> {
    // The name in brackets may hold anything; what follows the last bracket is regular. Fields 14 and 15, counted from 1.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let user: u64 = fields.nth(11)?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(Duration::from_millis((user + system) * 1000 / TICKS))
}

/// Whether a process has ended (and was not waited for, so that its numbers can still be read).
pub fn ended(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| {
        stat.rsplit_once(") ")
            .is_none_or(|(_, rest)| rest.starts_with('Z'))
    })
}

/// Most memory that a process ever held, in KiB (`VmHWM`); nothing once it has ended.
pub fn peak_memory(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_read_behind_a_name_with_brackets_and_blanks() {
        let stat = "42 (a ) b) S 1 42 42 0 -1 4194560 100 0 0 0 250 50 7 7 20 0 1 0 100 1000 10";
        assert_eq!(cpu_of(stat), Some(Duration::from_secs(3)));
    }

    #[test]
    fn a_busy_child_is_counted_until_somebody_waits_for_it() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"])
            .spawn()
            .expect("starts");
        let pid = child.id();
        while !ended(pid) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let used = cpu(pid).expect("still there");
        assert!(used >= Duration::from_millis(10), "{used:?}");
        assert!(peak_memory(std::process::id()).is_some_and(|k| k > 1000));
        child.wait().expect("ends");
        assert!(ended(pid));
    }
}
