//! Rules 39, 45 to 52: what runs, and how it is kept from running until its phase.

use super::work::{Work, items, set, take, template_path, text};
use crate::object::annotation;
use crate::plan::model::Severity;
use serde_json::{Value, json};

/// Annotation by which an owner says that never two may run.
pub const SINGLETON: &str = "crossfade.dev/singleton";

/// Old node labels and their successors (rule 46).
const LABELS: &[(&str, &str)] = &[
    (
        "failure-domain.beta.kubernetes.io/zone",
        "topology.kubernetes.io/zone",
    ),
    (
        "failure-domain.beta.kubernetes.io/region",
        "topology.kubernetes.io/region",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
    ),
    ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
    ("beta.kubernetes.io/os", "kubernetes.io/os"),
];

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
        "DaemonSet" => daemon(w),
        "CronJob" => cron(w),
        "Job" => job(w),
        "Pod" => pod(w),
        "HorizontalPodAutoscaler" => {
            w.tidied(50);
            let live = w
                .original
                .pointer("/status/currentReplicas")
                .and_then(Value::as_u64);
            let min = w
                .original
                .pointer("/spec/minReplicas")
                .and_then(Value::as_u64)
                .unwrap_or(1);
            if let Some(live) = live.filter(|l| *l > min) {
                w.find(
                    "WL-10",
                    Severity::Info,
                    50,
                    format!("runs at {live}, its minimum is {min}: green starts at the live count"),
                    "Nothing to do.",
                );
            }
        }
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
        }
        w.tidied(48);
    }
    let running = w
        .original
        .pointer("/status/active")
        .and_then(Value::as_u64)
        .unwrap_or(0)
        > 0;
    if running {
        w.skip(48);
        w.find(
            "WL-01",
            Severity::Warning,
            48,
            "a running Job is not copied: it would run twice",
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

/// Rule 45.
fn pod(w: &mut Work) {
    if w.original.pointer("/spec/hostNetwork") == Some(&json!(true)) {
        return w.skip(45);
    }
    for key in [
        "nodeName",
        "priority",
        "serviceAccount",
        "preemptionPolicy",
        "enableServiceLinks",
    ] {
        take(&mut w.object, &format!("/spec/{key}"));
    }
    let injected = |name: &str| name.starts_with("kube-api-access-") || name.contains("-token-");
    let sa = text(&w.object, "/spec/serviceAccountName")
        .unwrap_or("default")
        .to_string();
    let token = move |name: &str| {
        injected(name)
            && (name.starts_with("kube-api-access-") || name.starts_with(&format!("{sa}-token-")))
    };
    if let Some(v) = w
        .object
        .pointer_mut("/spec/volumes")
        .and_then(Value::as_array_mut)
    {
        v.retain(|v| !token(v["name"].as_str().unwrap_or("")));
    }
    for list in ["/spec/containers", "/spec/initContainers"] {
        for c in w
            .object
            .pointer_mut(list)
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            if let Some(m) = c.get_mut("volumeMounts").and_then(Value::as_array_mut) {
                m.retain(|m| !token(m["name"].as_str().unwrap_or("")));
            }
        }
    }
    if let Some(t) = w
        .object
        .pointer_mut("/spec/tolerations")
        .and_then(Value::as_array_mut)
    {
        t.retain(|t| {
            !matches!(
                t["key"].as_str(),
                Some("node.kubernetes.io/not-ready" | "node.kubernetes.io/unreachable")
            )
        });
    }
    w.changed(45);
    w.skip(45);
    w.find(
        "WL-03",
        Severity::Warning,
        45,
        "a bare pod cannot be parked and nothing makes it again: it is not copied",
        "Wrap it in a Deployment on blue, or start it on green by hand after open.",
    );
}

/// Rule 52.
fn daemon(w: &mut Work) {
    w.tidied(52);
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
    if any {
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
    let spec = format!("{template}/spec");
    selectors(w, &spec);
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

/// Rule 46.
fn selectors(w: &mut Work, spec: &str) {
    let mut unmapped = vec![];
    let mut changed = false;
    let path = format!("{spec}/nodeSelector");
    if let Some(map) = w.object.pointer(&path).and_then(Value::as_object).cloned() {
        let mut out = serde_json::Map::new();
        for (k, v) in map {
            match map_label(&k, v.as_str().unwrap_or(""), w) {
                Mapped::Same => {
                    out.insert(k, v);
                }
                Mapped::To(k2, v2) => {
                    out.insert(k2, json!(v2));
                    changed = true;
                }
                Mapped::Gone => changed = true,
                Mapped::Missing(why) => {
                    unmapped.push(why);
                    out.insert(k, v);
                }
            }
        }
        if out.is_empty() {
            take(&mut w.object, &path);
        } else {
            set(&mut w.object, &path, Value::Object(out));
        }
    }
    let terms = [
        format!(
            "{spec}/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms"
        ),
        format!("{spec}/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution"),
    ];
    for path in terms {
        let Some(mut list) = w.object.pointer(&path).and_then(Value::as_array).cloned() else {
            continue;
        };
        for term in &mut list {
            let exprs = if term.get("preference").is_some() {
                "/preference/matchExpressions"
            } else {
                "/matchExpressions"
            };
            let required = !exprs.starts_with("/preference");
            for e in term
                .pointer_mut(exprs)
                .and_then(Value::as_array_mut)
                .into_iter()
                .flatten()
            {
                match map_expression(e, w) {
                    Expression::Same => {}
                    Expression::Changed => changed = true,
                    Expression::Missing(why) if required => unmapped.push(why),
                    Expression::Missing(_) => {}
                }
            }
        }
        set(&mut w.object, &path, Value::Array(list));
    }
    if text(&w.object, &format!("{spec}/nodeName")).is_some() && w.kind() != "Pod" {
        take(&mut w.object, &format!("{spec}/nodeName"));
        changed = true;
    }
    if changed {
        w.changed(46);
    }
    // Whether a node answers what is left is asked over all groups at once: CAP-01.
    if !unmapped.is_empty() {
        w.tidied(46);
    }
    let master = items(w.original, &format!("{spec}/tolerations")).any(|t| {
        t["key"].as_str().is_some_and(|k| {
            k.starts_with("node-role.kubernetes.io/master")
                || k.starts_with("node-role.kubernetes.io/control-plane")
        })
    });
    if master {
        w.find(
            "CAP-02",
            Severity::Info,
            46,
            "tolerates control-plane nodes: green shows none",
            "Nothing to do.",
        );
    }
}

enum Expression {
    Same,
    Changed,
    Missing(String),
}

/// One expression of a node affinity. What asks for the absence of a label that green does not have is true there, as it was meant.
fn map_expression(e: &mut Value, w: &Work) -> Expression {
    let key = e["key"].as_str().unwrap_or("").to_string();
    let operator = e["operator"].as_str().unwrap_or("").to_string();
    let absent = matches!(operator.as_str(), "DoesNotExist" | "NotIn");
    let values: Vec<String> = items(e, "/values")
        .filter_map(|v| v.as_str().map(String::from))
        .collect();
    // `In` lists alternatives: one that green knows is enough.
    let all: Vec<Mapped> = if values.is_empty() {
        vec![map_label(&key, "", w)]
    } else {
        values.iter().map(|v| map_label(&key, v, w)).collect()
    };
    if all.iter().any(|m| matches!(m, Mapped::Gone)) {
        // Every worker of blue has this label; every node of a managed group has that one.
        e["key"] = json!("eks.amazonaws.com/nodegroup");
        e["operator"] = json!(if absent { "DoesNotExist" } else { "Exists" });
        take(e, "/values");
        return Expression::Changed;
    }
    let new_key = all.iter().find_map(|m| match m {
        Mapped::To(k, _) => Some(k.clone()),
        _ => None,
    });
    let Some(new_key) = new_key else {
        let known = absent || all.iter().any(|m| matches!(m, Mapped::Same));
        return match all.into_iter().next() {
            Some(Mapped::Missing(why)) if !known => Expression::Missing(why),
            _ => Expression::Same,
        };
    };
    let mapped: Vec<Value> = all
        .iter()
        .zip(values.iter().map(Some).chain(std::iter::repeat(None)))
        .map(|(m, v)| match m {
            Mapped::To(_, v2) => json!(v2),
            _ => json!(v.map_or("", String::as_str)),
        })
        .collect();
    e["key"] = json!(new_key);
    if key == SPOT_WORKER {
        // Its presence meant spot; the label that EKS has is on every node.
        e["operator"] = json!(if absent { "NotIn" } else { "In" });
        e["values"] = json!(["SPOT"]);
    } else if !values.is_empty() {
        e["values"] = Value::Array(mapped);
    }
    Expression::Changed
}

/// What kops-controller puts on spot nodes (kops.md 3).
const SPOT_WORKER: &str = "node-role.kubernetes.io/spot-worker";

enum Mapped {
    Same,
    To(String, String),
    Gone,
    Missing(String),
}

fn map_label(key: &str, value: &str, w: &Work) -> Mapped {
    if let Some((_, new)) = LABELS.iter().find(|(old, _)| *old == key) {
        return Mapped::To((*new).into(), value.into());
    }
    if let Some(new) = w.cx.label_keys.get(key) {
        return Mapped::To(new.clone(), value.into());
    }
    match key {
        // An instance group may be several node groups: they share a label of ours.
        "kops.k8s.io/instancegroup" if value.is_empty() => {
            Mapped::To("crossfade.dev/instancegroup".into(), String::new())
        }
        "kops.k8s.io/instancegroup" => match w.cx.node_groups.get(value) {
            Some(stand_in) => Mapped::To("crossfade.dev/instancegroup".into(), stand_in.clone()),
            None => Mapped::Missing(format!("{key}={value}")),
        },
        "node-role.kubernetes.io/node" => Mapped::Gone,
        "kubernetes.io/role" if value == "node" => Mapped::Gone,
        SPOT_WORKER => Mapped::To("eks.amazonaws.com/capacityType".into(), "SPOT".into()),
        k if k.starts_with("node-role.kubernetes.io/") || k == "kubernetes.io/role" => {
            Mapped::Missing(format!("{key}={value}"))
        }
        k if k.starts_with("topology.kubernetes.io/")
            || k.starts_with("node.kubernetes.io/")
            || k.starts_with("kubernetes.io/")
            || k.starts_with("eks.amazonaws.com/") =>
        {
            Mapped::Same
        }
        _ if w.cx.node_labels.is_empty() => Mapped::Same,
        _ if w
            .cx
            .node_labels
            .contains(&(key.to_string(), value.to_string())) =>
        {
            Mapped::Same
        }
        _ if w.cx.node_labels.iter().any(|(k, _)| k == key) && value.is_empty() => Mapped::Same,
        _ => Mapped::Missing(format!("{key}={value}")),
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
