//! One version per kind: API servers serve the same object under several names, and a snapshot holds each once.

use crate::world::kube::ApiKind;
use std::collections::{BTreeMap, BTreeSet};

/// Kinds that are never kept: noise that changes by itself. With their groups: somebody's own kind may be called Event.
const NOISE: &[(&str, &str)] = &[
    ("", "Event"),
    ("events.k8s.io", "Event"),
    ("coordination.k8s.io", "Lease"),
];

/// The group in which a kind lives today. Old servers serve these kinds in `extensions` as well (replay.md 1).
pub fn home_group<'a>(group: &'a str, kind: &str) -> &'a str {
    match (group, kind) {
        ("extensions", "Deployment" | "DaemonSet" | "ReplicaSet") => "apps",
        ("extensions", "Ingress" | "NetworkPolicy") => "networking.k8s.io",
        ("extensions", "PodSecurityPolicy") => "policy",
        _ => group,
    }
}

/// Rank of a version: stable before beta before alpha, then the higher number. `v2beta2` of autoscaling beats `v1`, which
/// cannot hold metrics other than CPU and hides them in an annotation.
pub fn rank(group: &str, kind: &str, version: &str) -> (u8, u32, u32) {
    let digits = |s: &str| -> u32 {
        s.chars()
            .take_while(char::is_ascii_digit)
            .collect::<String>()
            .parse()
            .unwrap_or(0)
    };
    let major = digits(version.trim_start_matches('v'));
    let (stage, minor) = if let Some((_, n)) = version.split_once("beta") {
        (1, digits(n))
    } else if let Some((_, n)) = version.split_once("alpha") {
        (0, digits(n))
    } else {
        (2, 0)
    };
    if group == "autoscaling" && kind == "HorizontalPodAutoscaler" && major >= 2 {
        return (3, stage.into(), minor);
    }
    (stage, major, minor)
}

/// Whether objects of a kind can be listed and created: what cannot is no object but a question (reviews, bindings) or a view (replay.md 1).
fn is_object(k: &ApiKind) -> bool {
    let can = |verb: &str| k.verbs.iter().any(|v| v == verb);
    can("list") && can("create") && !k.plural.contains('/')
}

/// The kinds to read: those that can be both listed and created, each once in its home group and its best version. Of somebody's own kinds the
/// best is the one that green serves too, since they are written in the version in which they were read (replay.md 62); of Kubernetes' own kinds
/// the newest that blue has, which the table of removals converts.
pub fn readable(kinds: &[ApiKind], green: &[ApiKind]) -> Vec<ApiKind> {
    let mut best: BTreeMap<(String, String), &ApiKind> = BTreeMap::new();
    for k in kinds {
        if !is_object(k) || is_noise(&k.group, &k.kind) {
            continue;
        }
        let home = home_group(&k.group, &k.kind);
        let at_home = |k: &ApiKind| home_group(&k.group, &k.kind) == k.group;
        let on_green = |k: &ApiKind| {
            k.group.contains('.')
                && !k.group.ends_with(".k8s.io")
                && green
                    .iter()
                    .any(|g| g.group == k.group && g.kind == k.kind && g.version == k.version)
        };
        let key = |k: &ApiKind| (on_green(k), at_home(k), rank(&k.group, &k.kind, &k.version));
        best.entry((home.to_string(), k.kind.clone()))
            .and_modify(|old| {
                if key(k) > key(old) {
                    *old = k;
                }
            })
            .or_insert(k);
    }
    best.into_values().cloned().collect()
}

/// Kinds that no version of which holds objects, as `componentstatuses` or `tokenreviews.authentication.k8s.io`: they are not read.
pub fn no_objects(kinds: &[ApiKind]) -> Vec<String> {
    let name = |k: &ApiKind| match k.group.as_str() {
        "" => k.plural.clone(),
        g => format!("{}.{g}", k.plural),
    };
    let real: BTreeSet<(&str, &str)> = kinds
        .iter()
        .filter(|k| is_object(k))
        .map(|k| (k.group.as_str(), k.kind.as_str()))
        .collect();
    let names: BTreeSet<String> = kinds
        .iter()
        .filter(|k| !k.plural.contains('/') && !real.contains(&(k.group.as_str(), k.kind.as_str())))
        .map(name)
        .collect();
    names.into_iter().collect()
}

/// Whether an object of a kind is noise.
pub fn is_noise(group: &str, kind: &str) -> bool {
    NOISE.contains(&(group, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(api: &str, kind: &str, verbs: &[&str]) -> ApiKind {
        let (group, version) = api.split_once('/').unwrap_or(("", api));
        ApiKind {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            plural: kind.to_lowercase() + "s",
            namespaced: true,
            verbs: verbs.iter().map(|v| v.to_string()).collect(),
        }
    }

    #[test]
    fn each_kind_is_read_once_in_the_best_version_that_blue_serves() {
        let rw = &["create", "list"];
        let served = [
            kind("extensions/v1beta1", "Ingress", rw),
            kind("networking.k8s.io/v1", "Ingress", rw),
            kind("networking.k8s.io/v1beta1", "Ingress", rw),
            kind("batch/v1beta1", "CronJob", rw),
            kind("batch/v1", "CronJob", rw),
            kind("autoscaling/v1", "HorizontalPodAutoscaler", rw),
            kind("autoscaling/v2beta1", "HorizontalPodAutoscaler", rw),
            kind("autoscaling/v2beta2", "HorizontalPodAutoscaler", rw),
            kind("v1", "Event", rw),
            kind("events.k8s.io/v1", "Event", rw),
            kind("coordination.k8s.io/v1", "Lease", rw),
            kind("v1", "ComponentStatus", &["list"]),
            kind(
                "authorization.k8s.io/v1",
                "SubjectAccessReview",
                &["create"],
            ),
            kind("v1", "Pod", rw),
            kind("shop.test/v1alpha1", "Promotion", rw),
            kind("shop.test/v1beta1", "Promotion", rw),
        ];
        let mut read: Vec<_> = readable(&served, &[])
            .iter()
            .map(|k| format!("{} {}", k.api_version(), k.kind))
            .collect();
        read.sort();
        assert_eq!(
            read,
            [
                "autoscaling/v2beta2 HorizontalPodAutoscaler",
                "batch/v1 CronJob",
                "networking.k8s.io/v1 Ingress",
                "shop.test/v1beta1 Promotion",
                "v1 Pod",
            ]
        );
    }

    #[test]
    fn a_very_old_server_that_knows_only_extensions_is_read_there() {
        let read = readable(
            &[kind("extensions/v1beta1", "Ingress", &["create", "list"])],
            &[],
        );
        assert_eq!(read[0].api_version(), "extensions/v1beta1");
    }

    #[test]
    fn rule_01_a_kind_of_somebodys_own_is_read_in_the_version_that_green_serves_too() {
        let rw = &["create", "list"];
        let blue = [
            kind("shop.test/v1", "Promotion", rw),
            kind("shop.test/v1beta1", "Promotion", rw),
            kind("autoscaling/v1", "HorizontalPodAutoscaler", rw),
            kind("autoscaling/v2beta2", "HorizontalPodAutoscaler", rw),
        ];
        // Green has an older operator, and of autoscalers no beta.
        let green = [
            kind("shop.test/v1beta1", "Promotion", rw),
            kind("autoscaling/v1", "HorizontalPodAutoscaler", rw),
            kind("autoscaling/v2", "HorizontalPodAutoscaler", rw),
        ];
        let versions: Vec<String> = readable(&blue, &green)
            .iter()
            .map(ApiKind::api_version)
            .collect();
        // v1 of an autoscaler hides metrics in an annotation: v2beta2 is converted instead (replay.md 50).
        assert_eq!(versions, ["autoscaling/v2beta2", "shop.test/v1beta1"]);
    }

    #[test]
    fn rule_01_cohabiting_groups_are_read_once_and_views_and_questions_are_named_not_read() {
        let rw = &["create", "list"];
        let served = [
            kind("extensions/v1beta1", "Ingress", rw),
            kind("networking.k8s.io/v1", "Ingress", rw),
            kind("extensions/v1beta1", "Deployment", rw),
            kind("apps/v1", "Deployment", rw),
            kind("v1", "Event", rw),
            kind("events.k8s.io/v1", "Event", rw),
            kind("argoproj.io/v1alpha1", "Event", rw),
            kind("v1", "ComponentStatus", &["list"]),
            kind("authentication.k8s.io/v1", "TokenReview", &["create"]),
            kind("metrics.k8s.io/v1beta1", "PodMetrics", &["list"]),
        ];
        let read: Vec<String> = readable(&served, &[])
            .iter()
            .map(|k| format!("{} {}", k.api_version(), k.kind))
            .collect();
        assert_eq!(
            read,
            [
                "apps/v1 Deployment",
                "argoproj.io/v1alpha1 Event",
                "networking.k8s.io/v1 Ingress"
            ]
        );
        assert_eq!(
            no_objects(&served),
            [
                "componentstatuss",
                "podmetricss.metrics.k8s.io",
                "tokenreviews.authentication.k8s.io"
            ]
        );
    }
}
