//! OBS-06: clients that will not follow the name: endless DNS caches, pools, web sockets (S41, S42, S45). Most are outside of every API;
//! what blue's ingress tells is long-lived connections.

use crate::checks::look::{annotations, count};
use crate::checks::{Answered, Check, Input, Need, Report, few};
use crate::plan::model::Severity;
use std::collections::BTreeSet;

pub(super) const CHECK: Check = Check {
    id: "OBS-06",
    severity: Severity::Warning,
    question: "Which clients will stay on blue after the flip (endless DNS caches, pools, web sockets)?",
    needs: &[Need::Blue],
    answered: Answered::Person,
    remedy: "List them by user agent and address; set their DNS TTL (a JVM's networkaddress.cache.ttl), and plan restarts in small groups.",
    source: "checks.md OBS-06",
    run,
};

/// A read timeout from which on connections are kept on purpose, seconds.
const LONG: u32 = 600;

fn run(i: &Input, r: &mut Report) {
    if i.names.is_empty() {
        return;
    }
    let moved: BTreeSet<&str> = i.names.iter().map(|n| n.object.as_str()).collect();
    let long: Vec<&str> = i
        .moving(&["Ingress"])
        .filter(|o| moved.contains(o.name.as_str()))
        .filter(|o| {
            annotations(o.object).any(|(k, v)| {
                k.ends_with("/websocket-services")
                    || (k.ends_with("/proxy-read-timeout") || k.ends_with("/proxy-send-timeout"))
                        && v.trim_matches(['"', 's'])
                            .parse::<u32>()
                            .is_ok_and(|t| t >= LONG)
            })
        })
        .map(|o| o.name.as_str())
        .collect();
    if !long.is_empty() {
        r.found(
            long[0],
            format!("{} with web sockets or connections of {LONG} s and more: {}; they stay on blue until they are closed", count(long.len(), "Ingress"), few(&long)),
        );
    }
    r.ask(
        "clients",
        format!(
            "which clients of {} hold addresses or connections for longer than the TTL",
            count(i.names.len(), "host")
        ),
    );
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::{NotChecked, Warning};

    #[test]
    fn an_ingress_with_hour_long_connections_is_named_and_other_clients_are_asked_about() {
        let mut s = shop();
        fires(&spec(), &s, "OBS-06", NotChecked, "which clients of 1 host");
        never_says(&spec(), &s, "OBS-06", "web sockets or");
        s.blue.objects[1]["metadata"]["annotations"]["nginx.ingress.kubernetes.io/proxy-read-timeout"] =
            "3600".into();
        fires(&spec(), &s, "OBS-06", Warning, "ingress/web/web");
    }

    #[test]
    fn without_names_there_are_no_clients_to_ask_about() {
        let mut s = shop();
        s.zones[0].records.clear();
        silent(&spec(), &s, "OBS-06");
    }
}
