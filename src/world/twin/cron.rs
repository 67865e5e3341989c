//! CronJobs and Jobs.

use super::controllers::owned_by;
use super::pods::pod_of;
use super::state::{Ev, State};
use super::store::Key;
use crate::object::{Side, uid};
use serde_json::{Value, json};
use std::time::Duration;

/// Time from one minute to the next run, for the minute and hour fields that people use; other fields count as `*`.
pub(super) fn next_run(schedule: &str, now: jiff::Timestamp) -> Option<Duration> {
    let schedule = match schedule.trim() {
        "@hourly" => "0 * * * *",
        "@daily" | "@midnight" | "@weekly" | "@monthly" => "0 0 * * *",
        s => s,
    };
    let mut fields = schedule.split_whitespace();
    let (minute, hour) = (fields.next()?, fields.next()?);
    let second = now.as_second();
    let first = second / 60 + 1;
    (first..first + 24 * 60 + 1)
        .find(|m| matches(minute, (m % 60) as u32) && matches(hour, ((m / 60) % 24) as u32))
        .map(|m| Duration::from_secs((m * 60 - second) as u64))
}

fn matches(field: &str, value: u32) -> bool {
    field.split(',').any(|part| {
        let (range, step) = part
            .split_once('/')
            .map_or((part, 1), |(r, s)| (r, s.parse().unwrap_or(1)));
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (0, u32::MAX),
            Some((a, b)) => (a.parse().unwrap_or(u32::MAX), b.parse().unwrap_or(0)),
            None => {
                let v = range.parse().unwrap_or(u32::MAX);
                (v, v)
            }
        };
        value >= from && value <= to && (value - from).is_multiple_of(step)
    })
}

impl State {
    /// Asks for the next run of an unsuspended CronJob.
    pub fn plan_cron(&mut self, side: Side, key: &Key) {
        let Some(cron) = self.store(side).objects.get(key) else {
            return;
        };
        if cron["spec"]["suspend"] == json!(true) {
            return;
        }
        let now = self.timestamp();
        if let Some(after) = cron["spec"]["schedule"]
            .as_str()
            .and_then(|s| next_run(s, now))
            && self.invariants.cron_planned.insert((side, key.clone()))
        {
            self.at(after, Ev::Cron(side, key.clone()));
        }
    }

    /// A CronJob is due.
    pub fn cron_due(&mut self, side: Side, key: &Key) {
        self.invariants.cron_planned.remove(&(side, key.clone()));
        let Some(cron) = self.store(side).objects.get(key).cloned() else {
            return;
        };
        if cron["spec"]["suspend"] == json!(true)
            || cron.pointer("/metadata/deletionTimestamp").is_some()
        {
            return;
        }
        let owner = uid(&cron).unwrap_or("").to_owned();
        let jobs = self.jobs_of(side, &key.2, &owner);
        let active = jobs.iter().any(|k| !finished(&self.store(side).objects[k]));
        if !(active && cron["spec"]["concurrencyPolicy"] == json!("Forbid")) {
            let minute = self.timestamp().as_second() / 60;
            let template = &cron["spec"]["jobTemplate"];
            let mut spec = template["spec"].clone();
            let name = format!("{}-{minute}", key.3);
            spec["selector"] = json!({"matchLabels": {"job-name": name}});
            let mut labels = template["metadata"]["labels"].clone();
            if !labels.is_object() {
                labels = json!({});
            }
            let job = json!({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":name,"namespace":key.2,"labels":labels,
                "ownerReferences":[{"apiVersion":cron["apiVersion"],"kind":"CronJob","name":key.3,"uid":owner,"controller":true}]},
                "spec":spec,"status":{}});
            let stamp = self.stamp();
            let (job_key, _) = self.store_mut(side).insert(job, &stamp);
            self.store_mut(side)
                .update(key, |c| c["status"]["lastScheduleTime"] = json!(stamp));
            self.at(Duration::from_secs(1), Ev::Reconcile(side, job_key));
        }
        self.cron_status(side, key);
        // The oldest finished jobs go.
        let keep = cron["spec"]["successfulJobsHistoryLimit"]
            .as_u64()
            .unwrap_or(3) as usize;
        let done: Vec<Key> = self
            .jobs_of(side, &key.2, &owner)
            .into_iter()
            .filter(|k| finished(&self.store(side).objects[k]))
            .collect();
        for old in done.iter().take(done.len().saturating_sub(keep)) {
            self.remove_object(side, old);
        }
        self.plan_cron(side, key);
    }

    fn jobs_of(&self, side: Side, ns: &str, owner: &str) -> Vec<Key> {
        self.store(side)
            .in_namespace("batch", "Job", ns)
            .filter(|(_, j)| owned_by(j, owner))
            .map(|(k, _)| k.clone())
            .collect()
    }

    fn cron_status(&mut self, side: Side, key: &Key) {
        let Some(owner) = self
            .store(side)
            .objects
            .get(key)
            .and_then(uid)
            .map(String::from)
        else {
            return;
        };
        let active: Vec<Value> = self
            .jobs_of(side, &key.2, &owner)
            .iter()
            .map(|k| &self.store(side).objects[k])
            .filter(|j| !finished(j))
            .map(|j| json!({"kind":"Job","namespace":j["metadata"]["namespace"],"name":j["metadata"]["name"],"uid":j["metadata"]["uid"]}))
            .collect();
        self.store_mut(side).update(key, |c| {
            if active.is_empty() {
                c.get_mut("status")
                    .and_then(Value::as_object_mut)
                    .map(|s| s.shift_remove("active"));
            } else {
                c["status"]["active"] = json!(active);
            }
        });
    }

    /// The job controller makes the pod of a Job.
    pub fn job_start(&mut self, side: Side, key: &Key) {
        let Some(job) = self.store(side).objects.get(key).cloned() else {
            return;
        };
        let owner = uid(&job).unwrap_or("").to_owned();
        if finished(&job)
            || job["spec"]["suspend"] == json!(true)
            || !self.pods_of(side, &key.2, &owner).is_empty()
        {
            return;
        }
        let id = self.store_mut(side).uid();
        let mut pod = pod_of(&job, &format!("{}-{}", key.3, &id[..5]), "job");
        pod["metadata"]["labels"]["job-name"] = json!(key.3);
        let stamp = self.stamp();
        let (pod_key, _) = self.store_mut(side).insert(pod, &stamp);
        self.store_mut(side).update(key, |j| {
            j["status"] = json!({"active": 1, "startTime": stamp})
        });
        let after = self.secs(3);
        self.at(after, Ev::PodStart(side, pod_key));
        self.cron_of(side, &job);
    }

    /// A Job's pod has run to its end.
    pub fn job_done(&mut self, side: Side, key: &Key) {
        let Some(job) = self.store(side).objects.get(key).cloned() else {
            return;
        };
        let owner = uid(&job).unwrap_or("").to_owned();
        let mut ran = false;
        for pod in self.pods_of(side, &key.2, &owner) {
            ran |= self.store_mut(side).update(&pod, |p| {
                if p["status"]["phase"] == json!("Running") {
                    p["status"] = json!({"phase":"Succeeded"});
                }
            });
        }
        if !ran || finished(&job) {
            return;
        }
        let stamp = self.stamp();
        self.store_mut(side).update(key, |j| {
            j["status"] = json!({"succeeded":1,"startTime":j["status"]["startTime"],"completionTime":stamp,
                "conditions":[{"type":"Complete","status":"True"}]});
        });
        self.cron_of(side, &job);
    }

    fn cron_of(&mut self, side: Side, job: &Value) {
        let owner = job.pointer("/metadata/ownerReferences/0");
        if let Some(name) = owner
            .filter(|o| o["kind"] == json!("CronJob"))
            .and_then(|o| o["name"].as_str())
        {
            let ns = job["metadata"]["namespace"].as_str().unwrap_or("");
            self.cron_status(side, &super::store::key_of("batch", "CronJob", ns, name));
        }
    }
}

fn finished(job: &Value) -> bool {
    job["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|c| {
            matches!(c["type"].as_str(), Some("Complete" | "Failed"))
                && c["status"] == json!("True")
        })
}
