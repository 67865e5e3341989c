//! SNG-04: controllers on shared AWS resources. Objects that own things in AWS are named by the rewrite (src/rewrite/tools.yaml).

use crate::checks::image::Image;
use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;
use serde_json::Value;

pub(super) const CHECK: Check = Check {
    id: "SNG-04",
    severity: Severity::Blocker,
    question: "Would two copies of a controller fight over one thing in AWS?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Leave it to one side: list it under workloads.skip and install green's own.",
    source: "checks.md SNG-04",
    run,
};

/// Controllers whose second copy acts on the same things, by image name: (name, what it acts on, whether that cannot be told apart).
const SHARED: &[(&str, &str, bool)] = &[
    (
        "aws-node-termination-handler",
        "the same queue of instance events",
        false,
    ),
    ("karpenter", "instances by its cluster's tags", false),
    ("velero", "the same backup bucket", false),
    (
        "kube-static-egress-controller",
        "the same NAT gateways and routes",
        true,
    ),
    (
        "kube-ingress-aws-controller",
        "load balancers and target groups of the account",
        true,
    ),
    ("cluster-api-aws-controller", "whole clusters", true),
    (
        "route53-kubernetes",
        "the same records, without marks of ownership",
        true,
    ),
    ("kube-aws-iam-controller", "roles of the account", false),
    ("kube-janitor", "objects by age", false),
    ("cloud-nuke", "everything that it finds", true),
];

fn run(i: &Input, r: &mut Report) {
    let blue = &i.spec.blue.cluster;
    for o in i.moving(&[
        "Deployment",
        "StatefulSet",
        "DaemonSet",
        "ReplicaSet",
        "CronJob",
    ]) {
        if super::declared(i, o) {
            continue;
        }
        for c in o.containers(false) {
            let Some(name) = c
                .get("image")
                .and_then(Value::as_str)
                .map(|t| Image::parse(t).name())
            else {
                continue;
            };
            let args: Vec<&str> = ["command", "args"]
                .into_iter()
                .filter_map(|k| c.get(k)?.as_array())
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            let named = args.iter().find(|a| a.contains(blue.as_str()));
            match name {
                "aws-load-balancer-controller" | "aws-alb-ingress-controller" => {
                    if let Some(arg) = named {
                        r.found(&o.name, format!("runs with {arg}: on green it would take blue's load balancers and target groups for its own"));
                    }
                }
                "cluster-autoscaler" => {
                    let groups = args.iter().any(|a| a.starts_with("--nodes="));
                    if let Some(arg) = named {
                        r.found(
                            &o.name,
                            format!("runs with {arg}: on green it would scale blue's nodes"),
                        );
                    } else if groups {
                        r.found(
                            &o.name,
                            "names its node groups (--nodes): on green it would scale blue's",
                        );
                    }
                }
                name => {
                    if let Some((_, what, fight)) = SHARED.iter().find(|(n, _, _)| *n == name) {
                        let severity = if *fight {
                            Severity::Blocker
                        } else {
                            Severity::Warning
                        };
                        r.say(
                            severity,
                            &o.name,
                            format!("{name} on both sides acts on {what}"),
                            CHECK.remedy,
                        );
                    }
                }
            }
        }
    }
}
