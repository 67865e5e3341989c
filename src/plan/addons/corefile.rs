//! The Corefile of green's coredns: what blue's DNS forwards, by whichever means it says so.

use super::*;

/// The Corefile of EKS with blue's own zones and forwarders, or the one that blue was given as a whole.
pub(super) fn corefile(
    blue: &Blue,
    snapshot: &Snapshot,
    problems: &mut Vec<Problem>,
) -> Option<Value> {
    let dns = blue.field("/kubeDNS");
    let domain = blue
        .field("/clusterDNSDomain")
        .or(dns.and_then(|d| d.get("domain")))
        .and_then(Value::as_str)
        .map_or("cluster.local", |d| d.trim_end_matches('.'));
    let cached = cached_zones(dns, problems);
    if let Some(own) = dns.and_then(|d| d["externalCoreFile"].as_str()) {
        probes_and_files(own, problems);
        if !own.contains(&format!("kubernetes {domain}")) {
            problems.push(problem(
                Severity::Warning,
                "addon/coredns",
                format!("blue's externalCoreFile serves no `kubernetes {domain}`: pods would not find Services"),
                "Read it, and correct it on blue or after the add-on stands.",
            ));
        }
        if own.contains("100.64.") {
            problems.push(problem(
                Severity::Warning,
                "addon/coredns",
                "blue's externalCoreFile names addresses of 100.64.0.0/10, blue's services and pods".into(),
                "Replace them by names or by addresses that green reaches.",
            ));
        }
        let there = blocks(own);
        let mut whole = own.to_string();
        for (zone, body) in cached.iter().filter(|(z, _)| !there.contains_key(*z)) {
            if !whole.ends_with('\n') {
                whole.push('\n');
            }
            whole.push_str(&format!("{zone} {{\n{body}}}\n"));
        }
        return Some(json!({"corefile": whole}));
    }
    let forwarders: Vec<&str> = dns
        .and_then(|d| d["upstreamNameservers"].as_array())
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut zones: BTreeMap<String, String> = BTreeMap::new();
    for (zone, servers) in dns
        .and_then(|d| d["stubDomains"].as_object())
        .into_iter()
        .flatten()
    {
        let list: Vec<&str> = servers
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if !list.is_empty() {
            zones.insert(
                format!("{zone}:53"),
                format!(
                    "    errors\n    cache 30\n    forward . {}\n",
                    list.join(" ")
                ),
            );
        }
    }
    // Zones that somebody added to the live Corefile.
    let live = snapshot
        .blue
        .of_kind("ConfigMap")
        .find(|o| {
            text(o, "/metadata/namespace") == Some("kube-system")
                && text(o, "/metadata/name") == Some("coredns")
        })
        .and_then(|o| text(o, "/data/Corefile"));
    for (zone, body) in live.map(blocks).unwrap_or_default() {
        if !matches!(zone.as_str(), "." | ".:53") {
            zones.entry(zone).or_insert(body);
        }
    }
    for (zone, body) in cached {
        zones.entry(zone).or_insert(body);
    }
    if forwarders.is_empty() && zones.is_empty() {
        return None;
    }
    let to = if forwarders.is_empty() {
        "/etc/resolv.conf".to_string()
    } else {
        forwarders.join(" ")
    };
    let mut text = format!(
        ".:53 {{\n    errors\n    health {{\n        lameduck 5s\n    }}\n    ready\n    kubernetes {domain} in-addr.arpa ip6.arpa {{\n        pods insecure\n        fallthrough in-addr.arpa ip6.arpa\n    }}\n    prometheus :9153\n    forward . {to}\n    cache 30\n    loop\n    reload\n    loadbalance\n}}\n"
    );
    for (zone, body) in zones {
        text.push_str(&format!("{zone} {{\n{body}}}\n"));
    }
    Some(json!({"corefile": text}))
}

/// Zones of blue's DNS cache on every node: without it, only CoreDNS can answer for them (kops docs, nodeLocalDNS).
fn cached_zones(dns: Option<&Value>, problems: &mut Vec<Problem>) -> BTreeMap<String, String> {
    // What the cache has by itself, CoreDNS has too.
    const OWN: &[&str] = &[".", "cluster.local", "in-addr.arpa", "ip6.arpa"];
    let Some(cache) = dns
        .map(|d| &d["nodeLocalDNS"])
        .filter(|c| c["enabled"] == true)
    else {
        return BTreeMap::new();
    };
    let mut out = BTreeMap::new();
    let (mut named, mut left) = (vec![], vec![]);
    for field in ["additionalConfig", "externalCoreFile"] {
        for (zone, body) in cache[field].as_str().map(blocks).unwrap_or_default() {
            let bare = |z: &str| {
                z.rsplit_once(':')
                    .map_or(z, |(name, _)| name)
                    .trim_end_matches('.')
                    .to_string()
            };
            if zone
                .split_whitespace()
                .all(|z| bare(z).is_empty() || OWN.contains(&bare(z).as_str()))
            {
                continue;
            }
            // Placeholders that only the cache's own pod fills in.
            if body.contains("__PILLAR__") {
                left.push(zone);
                continue;
            }
            let first = |l: &&str, word: &str| l.split_whitespace().next() == Some(word);
            let to: Vec<&str> = body
                .lines()
                .filter(|l| first(l, "forward"))
                .flat_map(|l| l.split_whitespace().skip(2).filter(|w| *w != "{"))
                .collect();
            named.push(if to.is_empty() {
                zone.clone()
            } else {
                format!("{zone} (to {})", to.join(" "))
            });
            // The cache listens on an address that CoreDNS does not have.
            let kept: String = body
                .lines()
                .filter(|l| !first(l, "bind"))
                .map(|l| format!("{l}\n"))
                .collect();
            out.entry(zone).or_insert(kept);
        }
    }
    if !named.is_empty() {
        problems.push(problem(
            Severity::Warning,
            "addon/coredns",
            format!(
                "zones of blue's DNS cache on every node (kubeDNS.nodeLocalDNS) are in the corefile of green's coredns add-on: {}",
                named.join(", ")
            ),
            "Check that these servers answer addresses of green's pods, and give a DNS cache of green the same zones.",
        ));
    }
    if !left.is_empty() {
        problems.push(problem(
            Severity::Warning,
            "addon/coredns",
            format!(
                "zones of blue's DNS cache on every node are written with placeholders of the cache and are left out: {}",
                left.join(", ")
            ),
            "Write them as stub zones (kubeDNS.stubDomains) on blue, or give them to a DNS cache of green.",
        ));
    }
    out
}

/// What keeps a Corefile of blue from working in the pods of the add-on: they are probed by `health` and `ready`, and mount nothing of blue's.
fn probes_and_files(own: &str, problems: &mut Vec<Problem>) {
    let words: Vec<Vec<&str>> = own
        .lines()
        .map(|l| {
            l.split('#')
                .next()
                .unwrap_or("")
                .split_whitespace()
                .collect()
        })
        .collect();
    let has = |w: &str| words.iter().any(|l| l.first() == Some(&w));
    let missing: Vec<&str> = ["health", "ready"]
        .into_iter()
        .filter(|w| !has(w))
        .collect();
    if !missing.is_empty() {
        problems.push(problem(
            Severity::Warning,
            "addon/coredns",
            format!(
                "blue's externalCoreFile has no `{}`, by which the pods of EKS's coredns add-on are probed: they would be restarted or never be ready",
                missing.join("` and no `")
            ),
            "Add it to the `.:53` block on blue.",
        ));
    }
    let files: BTreeSet<String> = words
        .iter()
        .filter(|l| match l.as_slice() {
            ["import", ..] => true,
            ["file" | "hosts", second, ..] => *second != "{",
            _ => false,
        })
        .map(|l| l.iter().take(2).copied().collect::<Vec<_>>().join(" "))
        .collect();
    if !files.is_empty() {
        problems.push(problem(
            Severity::Warning,
            "addon/coredns",
            format!(
                "blue's externalCoreFile reads files that the pods of EKS's coredns add-on do not have: {}",
                files.into_iter().collect::<Vec<_>>().join(", ")
            ),
            "Write their content into the Corefile (`hosts { ... }`), or serve the zone elsewhere and forward to it.",
        ));
    }
}

/// Server blocks of a Corefile: name to the lines between its braces.
fn blocks(corefile: &str) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    let (mut depth, mut name, mut body) = (0_i32, String::new(), String::new());
    for line in corefile.lines() {
        let code = line.split('#').next().unwrap_or("").trim_end();
        if depth == 0 {
            if let Some(head) = code.strip_suffix('{') {
                name = head.trim().to_string();
                body.clear();
                depth = 1;
            }
            continue;
        }
        depth += i32::try_from(code.matches('{').count()).unwrap_or(0)
            - i32::try_from(code.matches('}').count()).unwrap_or(0);
        if depth <= 0 {
            out.insert(std::mem::take(&mut name), std::mem::take(&mut body));
            depth = 0;
        } else {
            body.push_str(line.trim_end());
            body.push('\n');
        }
    }
    out
}
