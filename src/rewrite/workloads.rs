//! Rules 39, 47 to 49, 51: what runs, and how it is kept from running until its phase. Nodes, bare pods, daemons, autoscalers and security
//! contexts have rooms of their own.

use super::work::{Work, set, take, template_path, text};
use crate::object::annotation;
use crate::plan::model::Severity;
use serde_json::{Value, json};

/// Annotation by which an owner says that never two may run.
pub const SINGLETON: &str = "crossfade.dev/singleton";

/// Rewrites workloads.
pub(super) fn rewrite(w: &mut Work) {
    let kind = w.kind().to_string();
    if let Some(template) = template_path(&kind) {
        pod_template(w, template);
        if w.decided() {
            return;
        }
    }
    match kind.as_str() {
        "Deployment" => scaled(w),
        "StatefulSet" => {
            volume_claims(w);
            scaled(w);
        }
        "ReplicaSet" => {
            w.tidied(47);
            scaled(w);
        }
        "DaemonSet" => super::daemons::rewrite(w),
        "CronJob" => cron(w),
        "Job" => job(w),
        "Pod" => super::pods::rewrite(w),
        "HorizontalPodAutoscaler" => super::scalers::autoscaler(w),
        "ScaledObject" | "ScaledJob" if w.id.group() == "keda.sh" => super::scalers::keda(w),
        "PodDisruptionBudget" => budget(w),
        _ => {}
    }
}

/// Deployments and the like start with no replicas and wake at unpark, singletons at open.
fn scaled(w: &mut Work) {
    let replicas = w
        .original
        .pointer("/spec/replicas")
        .cloned()
        .filter(|v| !v.is_null())
        .unwrap_or(json!(1));
    let id = w.id.to_string();
    let declared =
        w.cx.singletons.contains(&id) || annotation(w.original, SINGLETON) == Some("true");
    let wakes = if declared { "open" } else { "unpark" };
    w.park(
        "/spec/replicas",
        json!(0),
        wakes,
        replicas.clone(),
        if declared { 3 } else { 47 },
    );
    if replicas == json!(0) {
        w.find(
            "WL-10",
            Severity::Warning,
            47,
            "held at 0 replicas on blue: it stays at 0 on green",
            "Nothing to do, unless that is an accident.",
        );
    }
}

/// Rule 49.
fn cron(w: &mut Work) {
    let suspend = w
        .original
        .pointer("/spec/suspend")
        .cloned()
        .filter(|v| !v.is_null())
        .unwrap_or(json!(false));
    w.park("/spec/suspend", json!(true), "open", suspend.clone(), 49);
    let schedule = text(w.original, "/spec/schedule").unwrap_or("").to_string();
    if let Some((zone, rest)) = schedule
        .strip_prefix("CRON_TZ=")
        .or(schedule.strip_prefix("TZ="))
        .and_then(|t| t.split_once(' '))
    {
        set(&mut w.object, "/spec/timeZone", json!(zone));
        set(&mut w.object, "/spec/schedule", json!(rest));
        w.changed(65);
        w.find(
            "API-09",
            Severity::Warning,
            65,
            format!("the time zone {zone} moves from the schedule into timeZone"),
            "Confirm the name of the zone.",
        );
    }
    if impossible_date(&schedule) {
        w.find(
            "SNG-06",
            Severity::Info,
            49,
            format!("the schedule `{schedule}` names a date that never comes: switched off by date on this cluster"),
            "Say which side is meant to be active.",
        );
    }
    if suspend == json!(false)
        && w.original
            .pointer("/spec/startingDeadlineSeconds")
            .is_none()
    {
        w.find(
            "SNG-05",
            Severity::Warning,
            49,
            "no startingDeadlineSeconds: resuming may start a missed run at once",
            "Give it a deadline.",
        );
    }
}

/// Day of month and month that never meet (`31 2`).
fn impossible_date(schedule: &str) -> bool {
    let f: Vec<&str> = schedule.split_whitespace().collect();
    if f.len() != 5 || f[4] != "*" {
        return false;
    }
    match (f[2].parse::<u32>(), f[3].parse::<u32>()) {
        (Ok(day), Ok(2)) => day > 29,
        (Ok(day), Ok(4 | 6 | 9 | 11)) => day > 30,
        (Ok(day), Ok(_)) => day > 31,
        _ => false,
    }
}

fn at_least_one(object: &Value, pointer: &str) -> bool {
    object
        .pointer(pointer)
        .and_then(Value::as_u64)
        .is_some_and(|n| n > 0)
}

/// Rule 48.
fn job(w: &mut Work) {
    if w.original.pointer("/spec/manualSelector") != Some(&json!(true)) {
        take(&mut w.object, "/spec/selector");
        for base in ["/metadata/labels", "/spec/template/metadata/labels"] {
            for key in [
                "controller-uid",
                "batch.kubernetes.io~1controller-uid",
                "job-name",
                "batch.kubernetes.io~1job-name",
            ] {
                take(&mut w.object, &format!("{base}/{key}"));
            }
            if w.object
                .pointer(base)
                .and_then(Value::as_object)
                .is_some_and(|l| l.is_empty())
            {
                take(&mut w.object, base);
            }
        }
        w.tidied(48);
    }
    // Between two tries no pod is active, and it runs all the same; a suspended Job loses its start time.
    let running = at_least_one(w.original, "/status/active")
        || text(w.original, "/status/startTime").is_some();
    if running {
        w.skip(48);
        w.find(
            "WL-01",
            Severity::Warning,
            48,
            "a Job that has begun is not copied: it would run twice",
            "Let it end before the freeze.",
        );
        return;
    }
    let suspend = w
        .original
        .pointer("/spec/suspend")
        .cloned()
        .filter(|v| !v.is_null())
        .unwrap_or(json!(false));
    w.park("/spec/suspend", json!(true), "open", suspend, 48);
}

/// Rule 51, the part about drains.
fn budget(w: &mut Work) {
    w.tidied(51);
    let allowed = w
        .original
        .pointer("/status/disruptionsAllowed")
        .and_then(Value::as_u64);
    let key = (
        w.namespace().to_string(),
        w.original
            .pointer("/spec/selector/matchLabels")
            .map(Value::to_string)
            .unwrap_or_default(),
    );
    let min = w
        .original
        .pointer("/spec/minAvailable")
        .and_then(Value::as_u64);
    let replicas = w.cx.replicas_by_labels.get(&key).copied();
    if allowed == Some(0) || min.is_some() && replicas.is_some_and(|r| min >= Some(r)) {
        w.find(
            "WL-10",
            Severity::Warning,
            51,
            "allows no disruption: draining a node of green will hang on it",
            "Run one replica more than minAvailable.",
        );
    }
}

/// Rule 47: the class of claim templates is immutable later.
fn volume_claims(w: &mut Work) {
    let mut moved = vec![];
    let mut any = false;
    for t in w
        .object
        .pointer_mut("/spec/volumeClaimTemplates")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        any = true;
        take(t, "/status");
        take(t, "/metadata/creationTimestamp");
        let old = take(
            t,
            "/metadata/annotations/volume.beta.kubernetes.io~1storage-class",
        )
        .and_then(|v| v.as_str().map(String::from))
        .or_else(|| text(t, "/spec/storageClassName").map(String::from));
        if t.pointer("/metadata/annotations")
            .and_then(Value::as_object)
            .is_some_and(|a| a.is_empty())
        {
            take(t, "/metadata/annotations");
        }
        if let Some(old) = old {
            let new = super::storage::green_class(&old);
            if text(t, "/spec/storageClassName") != Some(new.as_str()) {
                moved.push(format!("{old} -> {new}"));
            }
            set(t, "/spec/storageClassName", json!(new));
        }
    }
    if !moved.is_empty() {
        w.changed(47);
    }
    if any && !w.claims_are_shared() {
        w.find(
            "WL-04",
            Severity::Blocker,
            60,
            format!(
                "keeps data in volumes{}: green would start empty, and volumes are not moved yet",
                if moved.is_empty() { String::new() } else { format!(" (class {})", moved.join(", ")) }
            ),
            "Move the data first and list the workload under workloads.skip, or give it a data set.",
        );
    }
}

/// Rules 12, 39, 46: pod templates of all kinds.
fn pod_template(w: &mut Work, template: &str) {
    let meta = format!("{template}/metadata");
    if take(&mut w.object, &format!("{meta}/creationTimestamp")).is_some() {
        w.tidied(6);
    }
    if w.object
        .pointer(&meta)
        .and_then(Value::as_object)
        .is_some_and(|m| m.is_empty())
    {
        take(&mut w.object, &meta);
    }
    roles(w, template);
    super::tokens::rewrite(w, template);
    super::security::rewrite(w, template);
    let spec = format!("{template}/spec");
    super::nodes::rewrite(w, &spec);
    replace_env(w, &spec);
}

/// Rule 39: the role moves from the pod to its service account.
fn roles(w: &mut Work, template: &str) {
    let path = format!("{template}/metadata/annotations");
    let role = w
        .object
        .pointer(&path)
        .and_then(|a| a.get("iam.amazonaws.com/role"))
        .and_then(Value::as_str)
        .map(String::from);
    let external = w
        .object
        .pointer(&path)
        .and_then(|a| a.get("iam.amazonaws.com/external-id"))
        .is_some();
    if external {
        w.find(
            "IAM-01",
            Severity::Blocker,
            39,
            "assumes its role with an external id, which service-account roles cannot give",
            "Change the role's trust policy, or let the application assume the role itself.",
        );
    }
    let Some(role) = role else { return };
    let sa = text(&w.object, &format!("{template}/spec/serviceAccountName"))
        .or(text(&w.object, &format!("{template}/spec/serviceAccount")))
        .unwrap_or("default")
        .to_string();
    let key = format!("{}/{sa}", w.namespace());
    if w.cx.sa_conflicts.contains(&key) {
        w.refuse(39);
        let all: Vec<String> =
            w.cx.pod_roles
                .get(&key)
                .into_iter()
                .flatten()
                .cloned()
                .collect();
        w.find(
            "IAM-02",
            Severity::Blocker,
            39,
            format!(
                "service account {key} is shared by pods that need different AWS roles: {}",
                all.join(", ")
            ),
            "Give each workload its own service account on blue.",
        );
        return;
    }
    if w.cx.sa_roles.contains_key(&key) {
        take(&mut w.object, &format!("{path}/iam.amazonaws.com~1role"));
        take(
            &mut w.object,
            &format!("{path}/iam.amazonaws.com~1external-id"),
        );
        if w.object
            .pointer(&path)
            .and_then(Value::as_object)
            .is_some_and(|a| a.is_empty())
        {
            take(&mut w.object, &path);
        }
        w.changed(39);
    } else {
        w.refuse(39);
        w.find(
            "IAM-01",
            Severity::Blocker,
            39,
            format!("needs AWS role {role}, whose ARN cannot be told: the account is not known"),
            "Give aws.account in migration.yaml, or discover with AWS.",
        );
    }
}

/// spec.workloads.replace in plain env values.
fn replace_env(w: &mut Work, spec: &str) {
    let mut hits = 0;
    for list in ["containers", "initContainers"] {
        for c in w
            .object
            .pointer_mut(&format!("{spec}/{list}"))
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            for e in c
                .get_mut("env")
                .and_then(Value::as_array_mut)
                .into_iter()
                .flatten()
            {
                if let Some(v) = e.get("value").and_then(Value::as_str)
                    && let Some(new) = w.cx.replace(v)
                {
                    e["value"] = json!(new);
                    hits += 1;
                }
            }
        }
    }
    if hits > 0 {
        w.changed_by("spec workloads.replace");
    }
}
