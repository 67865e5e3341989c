//! DNS-05: versions of ExternalDNS and what differs between them. A version or argument that cannot be told is found where names are picked.

use crate::checks::{Answered, Check, Input, Report};
use crate::edns::{Version, txt_written_by};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "DNS-05",
    severity: Severity::Blocker,
    question: "Do annotation prefix, TXT name format or policy of the two ExternalDNS versions differ in a way that matters?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Set prefix, format, policy.",
    source: "checks.md DNS-05",
    run,
};

fn run(i: &Input, r: &mut Report) {
    if i.instances.is_empty() {
        return;
    }
    let Some(green) = Version::of_image(&i.spec.dns.external_dns.image) else {
        r.blocker(
            "dns.externalDns.image",
            format!(
                "no version can be told from `{}`",
                i.spec.dns.external_dns.image
            ),
            "Give an image with a version tag.",
        );
        return;
    };
    if i.cx.green_minor >= 33 && !green.at_least(18, 0) {
        r.blocker(
            "dns.externalDns.image",
            format!(
                "ExternalDNS {green} does not run on Kubernetes 1.{}",
                i.cx.green_minor
            ),
            "Take 0.18 or later.",
        );
    }
    for (object, c) in i.instances {
        if !c.unknown.is_empty() {
            r.blocker(object, format!("arguments that crossfade does not know: {}", c.unknown.join(" ")), "Remove them, or report them: what they do to records is unknown (externaldns.md rule 1).");
        }
        if c.fqdn_template.is_some() {
            r.warning(object, "--fqdn-template makes names that are not in the objects: crossfade does not know them", "Write the host names into the objects.");
        }
        if c.caches {
            r.warning(
                object,
                "caches records or zones: it may not see a change for that long",
                "Set the cache intervals to 0 before the cutover.",
            );
        }
        if txt_written_by(c.version) != txt_written_by(green) {
            r.info(object, format!("{} writes other ownership records than green's {green}: every variant is handed over", c.version), "Nothing to do.");
        }
        let prefix = if green.at_least(20, 0) {
            c.annotation_prefix.clone()
        } else {
            "external-dns.alpha.kubernetes.io/".into()
        };
        if prefix != c.annotation_prefix {
            r.blocker(
                object,
                format!(
                    "blue reads annotations with prefix {}, green's {green} cannot",
                    c.annotation_prefix
                ),
                "Take ExternalDNS 0.20 or later on green.",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::{Blocker, Info, Warning};

    #[test]
    fn an_unknown_argument_blocks_and_a_cache_is_named() {
        let mut s = shop();
        s.blue.objects[0] = external_dns(&["--frobnicate", "--txt-cache-interval=5m"]);
        fires(&spec(), &s, "DNS-05", Blocker, "--frobnicate");
        fires(&spec(), &s, "DNS-05", Warning, "caches records");
    }

    #[test]
    fn a_custom_prefix_cannot_be_read_by_a_green_before_0_20() {
        let mut s = shop();
        s.blue.objects[0] = external_dns(&["--annotation-prefix=shop.test/"]);
        let mut old = spec();
        old.dns.external_dns.image = "registry.k8s.io/external-dns/external-dns:v0.19.0".into();
        fires(&old, &s, "DNS-05", Blocker, "prefix shop.test/");
        never_says(&spec(), &s, "DNS-05", "prefix shop.test/");
    }

    #[test]
    fn other_ownership_records_than_greens_are_only_information() {
        let s = shop();
        fires(&spec(), &s, "DNS-05", Info, "every variant is handed over");
        never_says(&spec(), &s, "DNS-05", "do not know");
    }
}
