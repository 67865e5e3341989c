//! The network in a few lines: pods and addresses per node, what each subnet has and must give, and how green leaves.

use super::printer::Printer;
use crate::plan::fit::NetworkFit;

/// Lines of a plan's network; none when nothing is known.
pub fn show(fit: &NetworkFit, printer: &Printer) {
    let lines = lines(fit);
    if lines.is_empty() {
        return;
    }
    printer.line("");
    printer.line(printer.bold("Network"));
    for line in lines {
        printer.line(format!("  {line}"));
    }
}

fn lines(fit: &NetworkFit) -> Vec<String> {
    let mut out = vec![];
    for g in &fit.groups {
        out.push(format!(
            "{:<20} {} of {} pods a node ({}, by {}), {} addresses each, {} when full{}",
            g.node_group,
            g.pods,
            g.max_pods,
            g.instance_type,
            g.bound,
            g.addresses,
            g.addresses_full,
            if fit.prefix_delegation {
                ", in prefixes"
            } else {
                ""
            }
        ));
    }
    for s in &fit.subnets {
        let verdict = match s.ok {
            Some(true) => "enough",
            Some(false) => "too few",
            None => "not known",
        };
        let free = s.free.map_or("free addresses not read".to_string(), |n| {
            format!("{n} addresses free")
        });
        out.push(format!(
            "{}{}: {free}, green takes {} at first and {} at its largest: {verdict}",
            s.subnet,
            if s.zone.is_empty() {
                String::new()
            } else {
                format!(" in {}", s.zone)
            },
            s.need_now,
            s.need_max
        ));
    }
    let e = &fit.egress;
    let by = |addresses: &[String], ways: &[String]| {
        if addresses.is_empty() {
            ways.join(", ")
        } else {
            addresses.join(", ")
        }
    };
    match e.same {
        Some(true) if e.green.is_empty() => out.push("leaves by blue's own routes".into()),
        Some(true) => out.push(format!(
            "leaves by {}, as blue does",
            by(&e.green_addresses, &e.green)
        )),
        Some(false) => out.push(format!(
            "leaves by {}, blue by {}",
            by(&e.green_addresses, &e.green),
            by(&e.blue_addresses, &e.blue)
        )),
        None => {}
    }
    for offer in &fit.offers {
        out.push(format!("possible: {offer}"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::fit::{Egress, GroupFit, SubnetFit};

    #[test]
    fn the_network_is_told_in_a_few_lines_with_what_is_not_known() {
        assert!(lines(&NetworkFit::default()).is_empty());
        let fit = NetworkFit {
            groups: vec![GroupFit {
                node_group: "nodes".into(),
                instance_type: "m5.large".into(),
                max_pods: 29,
                bound: "addresses of its interfaces".into(),
                pods: 12,
                addresses: 20,
                addresses_full: 30,
            }],
            subnets: vec![SubnetFit {
                subnet: "subnet-a".into(),
                zone: "eu-west-1a".into(),
                free: None,
                need_now: 136,
                need_max: 136,
                ok: None,
            }],
            egress: Egress {
                blue_addresses: vec!["198.51.100.1".into()],
                green_addresses: vec!["198.51.100.2".into()],
                same: Some(false),
                ..Egress::default()
            },
            ..NetworkFit::default()
        };
        let text = lines(&fit).join("\n");
        assert!(
            text.contains("12 of 29 pods a node (m5.large, by addresses of its interfaces)"),
            "{text}"
        );
        assert!(text.contains("subnet-a in eu-west-1a: free addresses not read, green takes 136 at first and 136 at its largest: not known"), "{text}");
        assert!(
            text.contains("leaves by 198.51.100.2, blue by 198.51.100.1"),
            "{text}"
        );
    }
}
