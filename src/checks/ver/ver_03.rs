//! VER-03: versions of ingress controllers. Annotations that today's controllers ignore are named by the rewrite (replay.md 66).

use crate::checks::RUNNING;
use crate::checks::image::Image;
use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;
use serde_json::Value;

pub(super) const CHECK: Check = Check {
    id: "VER-03",
    severity: Severity::Warning,
    question: "Do the ingress controllers and firewalls of both sides judge requests alike?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Replay real requests against green before the cutover.",
    source: "checks.md VER-03",
    run,
};

/// Parts of image names of ingress controllers and firewalls in front of applications.
const CONTROLLERS: &[&str] = &[
    "ingress-nginx/controller",
    "nginx-ingress-controller",
    "nginx-ingress",
    "traefik",
    "haproxy-ingress",
    "kubernetes-ingress",
    "contour",
    "emissary",
    "ambassador",
    "kong",
    "modsecurity",
];

fn controllers<'v>(spec: impl Iterator<Item = &'v Value>) -> impl Iterator<Item = Image<'v>> {
    spec.filter_map(|c| Some(Image::parse(c.get("image")?.as_str()?)))
        .filter(|i| {
            CONTROLLERS
                .iter()
                .any(|n| i.repository == *n || i.repository.ends_with(&format!("/{n}")))
        })
}

fn run(i: &Input, r: &mut Report) {
    let on_green: Vec<Image> = i
        .snapshot
        .green
        .iter()
        .flat_map(|g| &g.objects)
        .filter_map(|o| o.pointer("/spec/template/spec/containers")?.as_array())
        .flat_map(|c| controllers(c.iter()))
        .collect();
    for o in i
        .blue
        .iter()
        .filter(|o| RUNNING.contains(&o.id.kind.as_str()) && !o.is_child())
    {
        for image in controllers(o.containers(false)) {
            let other = on_green
                .iter()
                .find(|g| g.name() == image.name() && g.tag != image.tag);
            if let Some(other) = other {
                r.found(
                    &o.name,
                    format!(
                        "{} is {} on blue and {} on green",
                        image.repository,
                        image.tag.unwrap_or("untagged"),
                        other.tag.unwrap_or("untagged")
                    ),
                );
            }
            if image.repository.ends_with("ingress-nginx/controller")
                || image.name() == "nginx-ingress-controller"
            {
                r.info(
                    &o.name,
                    "ingress-nginx was retired in March 2026: it carries over, and gets no fixes any more",
                    "Plan a successor for after the migration.",
                );
            }
        }
    }
}
