//! VER-02: controllers whose images are too old for green. Metrics adapters that autoscalers need are named by the rewrite (replay.md 50).

use crate::checks::RUNNING;
use crate::checks::image::Image;
use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;
use serde_json::Value;

pub(super) const CHECK: Check = Check {
    id: "VER-02",
    severity: Severity::Blocker,
    question: "Does each controller that is copied support green's version?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Bring it to a version on blue that supports both sides, then plan again.",
    source: "checks.md VER-02",
    run,
};

/// A controller that does not work from some minor on below some version.
struct Limit {
    /// Last parts of image names.
    images: &'static [&'static str],
    /// First version that works.
    works: (u32, u32, u32),
    /// First minor of Kubernetes on which older ones do not.
    from: u32,
    /// Whether it stops working there (`true`), or is only out of its table.
    breaks: bool,
    /// Why, and who says so.
    why: &'static str,
}

const fn limit(
    images: &'static [&'static str],
    works: (u32, u32, u32),
    from: u32,
    breaks: bool,
    why: &'static str,
) -> Limit {
    Limit {
        images,
        works,
        from,
        breaks,
        why,
    }
}

const LIMITS: &[Limit] = &[
    limit(
        &["ingress-nginx/controller", "nginx-ingress-controller"],
        (1, 0, 0),
        22,
        true,
        "it reads Ingress v1beta1 (release notes of controller-v1.0.0)",
    ),
    limit(
        &["cert-manager-controller"],
        (1, 5, 0),
        22,
        true,
        "1.5 is the first release for Kubernetes 1.22 (its release notes)",
    ),
    limit(
        &["aws-alb-ingress-controller", "aws-load-balancer-controller"],
        (2, 4, 0),
        22,
        true,
        "it reads Ingress v1beta1 (its installation guide: 2.2 and 2.3 end at Kubernetes 1.21)",
    ),
    limit(
        &["cluster-autoscaler"],
        (1, 25, 0),
        25,
        true,
        "it lists PodDisruptionBudgets as v1beta1 (kubernetes/autoscaler#4990)",
    ),
    limit(
        &["keda", "keda-operator"],
        (2, 9, 0),
        26,
        true,
        "it writes HorizontalPodAutoscalers as v2beta2 (release notes of 2.9.0)",
    ),
    limit(
        &["velero"],
        (1, 6, 3),
        22,
        true,
        "its table of compatibility ends at Kubernetes 1.21",
    ),
    limit(
        &["prometheus-operator"],
        (0, 39, 0),
        22,
        true,
        "it makes CRDs as v1beta1 and crashes (prometheus-operator/prometheus-operator#4992)",
    ),
    limit(
        &["traefik"],
        (2, 5, 0),
        22,
        false,
        "its Ingress provider reads v1beta1 (IngressRoutes are not concerned)",
    ),
    limit(
        &["metrics-server", "metrics-server-amd64"],
        (0, 4, 0),
        22,
        false,
        "its table of compatibility ends at Kubernetes 1.21",
    ),
];

/// Last minor of Kubernetes that each minor of Istio 1 supports (istio.io, supported releases).
const ISTIO: &[(u32, u32)] = &[
    (7, 18),
    (8, 19),
    (9, 20),
    (10, 21),
    (11, 22),
    (12, 22),
    (13, 23),
    (14, 24),
    (15, 25),
    (16, 25),
    (17, 26),
    (18, 27),
    (19, 28),
    (20, 29),
    (21, 29),
    (22, 30),
    (23, 30),
    (24, 31),
    (25, 32),
    (26, 33),
    (27, 33),
    (28, 34),
    (29, 35),
];

fn run(i: &Input, r: &mut Report) {
    let green = i.cx.green_minor;
    for o in i.moving(RUNNING) {
        for c in o.containers(true) {
            let Some(text) = c.get("image").and_then(Value::as_str) else {
                continue;
            };
            let image = Image::parse(text);
            let Some(version) = image.version() else {
                continue;
            };
            let is = |names: &[&str]| {
                names.iter().any(|n| {
                    image.repository == *n
                        || image.name() == *n
                        || image.repository.ends_with(&format!("/{n}"))
                })
            };
            let hit = LIMITS
                .iter()
                .find(|l| is(l.images) && version < l.works && green >= l.from);
            if let Some(l) = hit {
                let (a, b, p) = l.works;
                let what = format!(
                    "{text} is too old for 1.{green}: {}; {a}.{b}.{p} or later works",
                    l.why
                );
                if l.breaks {
                    r.found(&o.name, what);
                } else {
                    r.warning(&o.name, what, CHECK.remedy);
                }
            } else if is(&["cluster-autoscaler"]) && version.1 != green {
                r.warning(
                    &o.name,
                    format!(
                        "{text} on 1.{green}: the autoscaler is tested with its own minor only"
                    ),
                    "Take the autoscaler of green's minor on green.",
                );
            } else if is(&["istio/pilot", "pilot"]) && version.0 == 1 {
                let last = ISTIO.iter().find(|(v, _)| *v == version.1).map(|(_, k)| *k);
                if last.is_some_and(|k| k < green) || version.1 < 7 {
                    r.warning(
                        &o.name,
                        format!(
                            "{text}: Istio 1.{} supports Kubernetes up to 1.{}, green is 1.{green}",
                            version.1,
                            last.map_or("17".into(), |k| k.to_string())
                        ),
                        "Bring Istio to a release that supports both sides, or install green's own.",
                    );
                }
            }
        }
    }
}
