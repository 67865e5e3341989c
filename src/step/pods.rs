//! Pods of a workload: how many there are, how many are ready, and why the others are not.

use super::util::{at, kind_of};
use super::{StepResult, util};
use crate::world::Class;
use crate::world::kube::Kube;
use serde_json::Value;

/// All objects of a kind in one namespace, page by page; a list that expired is read again from the start (replay.md 2).
pub async fn list_in(
    kube: &dyn Kube,
    api_version: &str,
    kind: &str,
    namespace: &str,
) -> StepResult<Vec<Value>> {
    let kind = kind_of(kube, api_version, kind).await?;
    let mut items = vec![];
    let mut token: Option<String> = None;
    loop {
        let page = match kube
            .list_page(&kind, Some(namespace), token.as_deref())
            .await
        {
            Ok(page) => page,
            Err(e) if e.class == Class::Gone && token.is_some() => {
                items.clear();
                token = None;
                continue;
            }
            Err(e) => return Err(e.into()),
        };
        items.extend(page.items);
        token = page.continue_token;
        if token.is_none() {
            return Ok(items);
        }
    }
}

/// Pods that a workload's selector matches, those being ended included.
pub async fn pods_of(kube: &dyn Kube, workload: &Value) -> StepResult<Vec<Value>> {
    let namespace = at(workload, "/metadata/namespace").as_str().unwrap_or("");
    let labels = at(workload, "/spec/selector/matchLabels");
    Ok(list_in(kube, "v1", "Pod", namespace)
        .await?
        .into_iter()
        .filter(|pod| {
            !matches!(
                at(pod, "/status/phase").as_str(),
                Some("Succeeded" | "Failed")
            ) && labels.as_object().is_some_and(|l| {
                l.iter()
                    .all(|(k, v)| pod.pointer("/metadata/labels").and_then(|p| p.get(k)) == Some(v))
            })
        })
        .collect())
}

/// The size that a workload really has. Controllers write it into the status; while they have not seen the last change of the spec, or
/// replace pods and so have some too many, the spec tells the truth.
pub fn live_size(workload: &Value) -> u64 {
    let number = |p: &str| at(workload, p).as_u64();
    let spec = number("/spec/replicas").unwrap_or(1);
    let all = number("/status/replicas").unwrap_or(0);
    let seen = number("/status/observedGeneration") >= number("/metadata/generation");
    let rolling = match at(workload, "/kind").as_str() {
        Some("StatefulSet") => {
            at(workload, "/status/updateRevision") != at(workload, "/status/currentRevision")
        }
        Some("Deployment") => number("/status/updatedReplicas").unwrap_or(0) != all,
        _ => false,
    };
    // Pods that could not be made on blue (a quota) are no part of its size; none at all is an outage, not a size.
    if seen && !rolling && all > 0 {
        all.min(spec)
    } else {
        spec
    }
}

/// Ready pods of a workload, as its controller counts them, and how many it wants.
pub fn readiness(workload: &Value) -> (u64, u64) {
    let number = |p: &str| at(workload, p).as_u64();
    if at(workload, "/kind") == "DaemonSet" {
        (
            number("/status/numberReady").unwrap_or(0),
            number("/status/desiredNumberScheduled").unwrap_or(0),
        )
    } else {
        (
            number("/status/readyReplicas").unwrap_or(0),
            number("/spec/replicas").unwrap_or(1),
        )
    }
}

/// Whether a workload runs at the size its spec asks for; `Err(why)` says how far it is.
pub fn at_size(workload: &Value) -> Result<(), String> {
    as_ready_as(workload, u64::MAX)
}

/// The same, when fewer ready pods are enough.
pub fn as_ready_as(workload: &Value, enough: u64) -> Result<(), String> {
    let (ready, wanted) = readiness(workload);
    let total = at(workload, "/status/replicas").as_u64().unwrap_or(0);
    let seen = at(workload, "/status/observedGeneration").as_u64()
        >= at(workload, "/metadata/generation").as_u64();
    let surplus = at(workload, "/kind") != "DaemonSet" && total > wanted;
    if seen && ready >= wanted.min(enough) && !surplus {
        Ok(())
    } else {
        Err(format!("{ready} of {wanted} ready"))
    }
}

/// Why the pods of a workload are not ready, in the words of its servers, and whether waiting longer is of no use.
pub async fn why_not_ready(kube: &dyn Kube, workload: &Value) -> StepResult<Option<String>> {
    let mut reasons: Vec<(u8, String)> = vec![];
    for pod in pods_of(kube, workload).await? {
        if let Some((rank, why)) = reason_of(&pod) {
            let name = at(&pod, "/metadata/name").as_str().unwrap_or("?");
            reasons.push((rank, format!("pod {name}: {why}")));
        }
    }
    // What fails tells more than what still waits.
    reasons.sort();
    if let Some((_, first)) = reasons.into_iter().next() {
        return Ok(Some(first));
    }
    // No pod at all: the server refused to make one (quota, Pod Security, a webhook).
    let refused = at(workload, "/status/conditions")
        .as_array()
        .into_iter()
        .flatten()
        .find(|c| c["type"] == "ReplicaFailure" && c["status"] == "True")
        .and_then(|c| c["message"].as_str());
    Ok(refused.map(|m| format!("no pod can be made: {}", util::shortened(m))))
}

/// Whether a Deployment's own deadline has passed without progress.
pub fn deadline_passed(workload: &Value) -> bool {
    at(workload, "/status/conditions")
        .as_array()
        .into_iter()
        .flatten()
        .any(|c| {
            c["type"] == "Progressing"
                && c["status"] == "False"
                && c["reason"] == "ProgressDeadlineExceeded"
        })
}

/// Why one pod is not ready: (0 fails, 1 has no node, 2 waits) and the reason; `None` when it is ready or nobody says anything.
pub fn reason_of(pod: &Value) -> Option<(u8, String)> {
    let condition = |kind: &str| {
        at(pod, "/status/conditions")
            .as_array()
            .into_iter()
            .flatten()
            .find(|c| c["type"] == kind)
    };
    if condition("Ready").is_some_and(|c| c["status"] == "True") {
        return None;
    }
    let said = |reason: &str, message: &Value| match message.as_str() {
        Some(m) if !m.is_empty() => format!("{reason}: {}", util::shortened(m)),
        _ => reason.to_string(),
    };
    let unscheduled = condition("PodScheduled").filter(|c| c["status"] == "False");
    if let Some(c) = unscheduled {
        let reason = c["reason"].as_str().unwrap_or("Unschedulable");
        return Some((1, said(reason, &c["message"])));
    }
    for list in ["/status/initContainerStatuses", "/status/containerStatuses"] {
        for c in at(pod, list).as_array().into_iter().flatten() {
            let name = c["name"].as_str().unwrap_or("?");
            let ended = &c["lastState"]["terminated"];
            if let Some(reason) = at(c, "/state/waiting/reason").as_str() {
                let started = matches!(reason, "ContainerCreating" | "PodInitializing");
                let mut why = said(reason, at(c, "/state/waiting/message"));
                if let Some(last) = ended["reason"].as_str() {
                    why = format!("{why} (last: {last}, exit code {})", ended["exitCode"]);
                }
                return Some((if started { 2 } else { 0 }, format!("{name} {why}")));
            }
            let now = at(c, "/state/terminated");
            if now["exitCode"].as_i64().is_some_and(|code| code != 0) {
                return Some((
                    0,
                    format!("{name} ended with exit code {}", now["exitCode"]),
                ));
            }
        }
    }
    let ready = condition("Ready")?;
    match ready["reason"].as_str() {
        Some(reason) if ready["message"].is_string() => Some((2, said(reason, &ready["message"]))),
        _ => None,
    }
}

/// What to do about a reason.
pub fn remedy_of(why: &str) -> &'static str {
    for (word, remedy) in [
        (
            "ImagePull",
            "see that the registry lets green's nodes in and that the pull secret came along; then resume",
        ),
        (
            "InvalidImageName",
            "correct the image on blue and plan again, or on green; then resume",
        ),
        (
            "Unschedulable",
            "give green a node group that takes it (more nodes, labels, taints, zones); then resume",
        ),
        (
            "CrashLoopBackOff",
            "read its log on green (kubectl logs --previous); blue's copy runs on; then resume",
        ),
        (
            "CreateContainerConfigError",
            "see which Secret or ConfigMap it misses on green; then resume",
        ),
        (
            "no pod can be made",
            "read what refuses it (quota, Pod Security, webhook); then resume",
        ),
    ] {
        if why.contains(word) {
            return remedy;
        }
    }
    "look at its pods on green; then resume, or roll back"
}

/// How many runs of a CronJob (or Jobs of another owner) are not over.
pub async fn active_jobs(kube: &dyn Kube, owner: &Value) -> StepResult<usize> {
    let namespace = at(owner, "/metadata/namespace").as_str().unwrap_or("");
    let owned = |job: &Value| {
        at(job, "/metadata/ownerReferences")
            .as_array()
            .into_iter()
            .flatten()
            .any(|o| o["uid"] == owner["metadata"]["uid"])
    };
    Ok(list_in(kube, "batch/v1", "Job", namespace)
        .await?
        .iter()
        .filter(|job| owned(job) && at(job, "/status/active").as_u64().unwrap_or(0) > 0)
        .count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_live_size_is_what_runs_and_not_what_somebody_wished_for() {
        let deployment = |spec: u64, status: Value, generation: u64| json!({"kind": "Deployment", "metadata": {"generation": generation}, "spec": {"replicas": spec}, "status": status});
        let seen = |all: u64, updated: u64| json!({"observedGeneration": 2, "replicas": all, "updatedReplicas": updated});
        assert_eq!(live_size(&deployment(17, seen(17, 17), 2)), 17);
        // A quota lets only three of five be made.
        assert_eq!(live_size(&deployment(5, seen(3, 3), 2)), 3);
        // In the middle of a rollout there is one too many.
        assert_eq!(live_size(&deployment(5, seen(6, 2), 2)), 5);
        // The autoscaler wrote 9 a moment ago, nobody acted on it yet.
        assert_eq!(live_size(&deployment(9, seen(5, 5), 3)), 9);
        // All pods gone is an outage.
        assert_eq!(live_size(&deployment(2, seen(0, 0), 2)), 2);
        assert_eq!(live_size(&deployment(0, seen(0, 0), 2)), 0);
        let set = json!({"kind": "StatefulSet", "metadata": {"generation": 1}, "spec": {"replicas": 3},
            "status": {"observedGeneration": 1, "replicas": 3, "currentRevision": "a", "updateRevision": "b"}});
        assert_eq!(live_size(&set), 3);
    }

    #[test]
    fn a_pod_says_why_it_is_not_ready_in_the_words_of_its_servers() {
        let pod = |status: Value| json!({"metadata": {"name": "web-1"}, "status": status});
        let ready = pod(json!({"conditions": [{"type": "Ready", "status": "True"}]}));
        assert_eq!(reason_of(&ready), None);
        let unscheduled = pod(
            json!({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": "0/3 nodes are available: 3 Insufficient cpu."}]}),
        );
        assert_eq!(
            reason_of(&unscheduled),
            Some((
                1,
                "Unschedulable: 0/3 nodes are available: 3 Insufficient cpu.".into()
            ))
        );
        let image = pod(
            json!({"containerStatuses": [{"name": "web", "state": {"waiting": {"reason": "ImagePullBackOff",
            "message": "Back-off pulling image \"web:9\""}}}]}),
        );
        let (rank, why) = reason_of(&image).expect("a reason");
        assert_eq!(
            (rank, why.as_str()),
            (0, "web ImagePullBackOff: Back-off pulling image \"web:9\"")
        );
        assert!(remedy_of(&why).contains("registry"));
        let crash = pod(
            json!({"containerStatuses": [{"name": "web", "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}]}),
        );
        assert_eq!(
            reason_of(&crash),
            Some((
                0,
                "web CrashLoopBackOff (last: OOMKilled, exit code 137)".into()
            ))
        );
        let creating = pod(
            json!({"containerStatuses": [{"name": "web", "state": {"waiting": {"reason": "ContainerCreating"}}}]}),
        );
        assert_eq!(reason_of(&creating).map(|r| r.0), Some(2));
    }
}
