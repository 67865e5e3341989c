//! GIT-04: commits since the snapshot, which only the repositories show. What they changed in the cluster the run finds (ID-07).

use crate::checks::{Answered, Check, Input, Report};
use crate::object::{annotation, label};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "GIT-04",
    severity: Severity::Blocker,
    question: "Is the freeze of changes in force?",
    needs: &[],
    answered: Answered::Person,
    remedy: "Stop merges and pipelines before the freeze, and plan again after the last one.",
    source: "checks.md GIT-04",
    run,
};

fn run(i: &Input, r: &mut Report) {
    let applied = i
        .blue
        .iter()
        .filter(|o| o.moves() && !o.is_child())
        .filter(|o| {
            annotation(o.object, "kubectl.kubernetes.io/last-applied-configuration").is_some()
                || annotation(o.object, "meta.helm.sh/release-name").is_some()
                || annotation(o.object, "argocd.argoproj.io/tracking-id").is_some()
                || [
                    "argocd.argoproj.io/instance",
                    "kustomize.toolkit.fluxcd.io/name",
                    "helm.toolkit.fluxcd.io/name",
                ]
                .iter()
                .any(|l| label(o.object, l).is_some())
        })
        .count();
    if applied > 0 {
        r.ask(
            "freeze",
            format!("{applied} objects come from a pipeline or a repository: are merges and deployments stopped between the plan and open?"),
        );
    }
}
