//! VER-01: what changes between the versions of both sides.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "VER-01",
    severity: Severity::Warning,
    question: "More than 3 minors apart?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Read and confirm each.",
    source: "checks.md VER-01",
    run,
};

/// VER-01.
fn run(i: &Input, r: &mut Report) {
    let Some(blue) = super::blue_minor(i) else {
        r.not_checked(
            "blue",
            "blue's version is not known",
            "Run discover against blue, or give the kops cluster document.",
        );
        return;
    };
    let green = i.cx.green_minor;
    if green > blue + 3 {
        let mut crossed = vec![];
        for (m, what) in [
            (22, "Ingress, CRD and webhook betas end"),
            (24, "no dockershim, no token Secrets made by themselves"),
            (25, "no PodSecurityPolicy, cgroup v2"),
            (27, "EBS by CSI only"),
            (34, "containerd 2"),
            (35, "no cgroup v1"),
            (36, "stricter validation of addresses at creation"),
        ] {
            if blue < m && m <= green {
                crossed.push(format!("1.{m}: {what}"));
            }
        }
        r.warning(
            "green.version",
            format!(
                "{} minor versions apart (1.{blue} to 1.{green}); {}",
                green - blue,
                crossed.join("; ")
            ),
            "Read each and confirm.",
        );
    }
    if green < blue {
        r.blocker(
            "green.version",
            format!("green (1.{green}) would be older than blue (1.{blue})"),
            "Choose a version that is not older.",
        );
    }
}
