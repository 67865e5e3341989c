//! SNG-02: consumers of shared queues: from unpark on green's would take messages too, and write where nobody reads yet.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "SNG-02",
    severity: Severity::Blocker,
    question: "Would consumers of one queue run on both sides?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "List it under workloads.singletons, or annotate it `crossfade.dev/singleton: \"false\"` when two may consume.",
    source: "checks.md SNG-02",
    run,
};

/// Parts of values that name a queue: (part, whether its order is kept, so that two consumers break it).
const QUEUES: &[(&str, bool)] = &[
    (".fifo", true),
    ("sqs.", false),
    ("amqp://", false),
    ("amqps://", false),
    ("nats://", false),
    ("kinesis.", false),
    (".kafka.", false),
    (".mq.", false),
];
/// Names of variables that point at a broker.
const BROKERS: &[&str] = &[
    "KAFKA_BROKER",
    "KAFKA_BOOTSTRAP",
    "BOOTSTRAP_SERVERS",
    "SQS_QUEUE",
    "QUEUE_URL",
    "RABBITMQ_",
    "AMQP_",
    "CELERY_BROKER",
    "NATS_URL",
    "SIDEKIQ_",
    "RESQUE_",
];
/// Words of names and arguments of consumers.
const WORDS: &[&str] = &["consumer", "worker", "sidekiq", "celery", "subscriber"];

fn run(i: &Input, r: &mut Report) {
    for o in super::undeclared(i) {
        let mut ordered = None;
        let mut queue = None;
        for e in o
            .containers(false)
            .filter_map(|c| c.get("env")?.as_array())
            .flatten()
        {
            let name = e["name"].as_str().unwrap_or("");
            let value = e["value"].as_str().unwrap_or("");
            match QUEUES.iter().find(|(part, _)| value.contains(part)) {
                Some((_, true)) => ordered = ordered.or(Some(name)),
                Some(_) => queue = queue.or(Some(name)),
                None if BROKERS.iter().any(|b| name.to_uppercase().contains(b)) => {
                    queue = queue.or(Some(name));
                }
                None => {}
            }
        }
        let word = super::words(o)
            .into_iter()
            .find(|w| WORDS.iter().any(|k| w.contains(k)));
        match (ordered, queue, word) {
            (Some(env), _, _) => r.found(
                &o.name,
                format!("reads or writes a FIFO queue ({env}): two consumers would break its order"),
            ),
            (None, Some(env), Some(_)) => r.warning(
                &o.name,
                format!("consumes a queue by its name and {env}: from unpark on green takes messages too"),
                CHECK.remedy,
            ),
            (None, Some(env), None) => r.info(
                &o.name,
                format!("talks to a queue ({env}): fine if it only writes to it"),
                CHECK.remedy,
            ),
            (None, None, Some(_)) if o.replicas() == 1 && !super::recreated(o) => r.warning(
                &o.name,
                "looks as if it must be single (one replica, named like a consumer): from unpark on a second one runs on green",
                CHECK.remedy,
            ),
            _ => {}
        }
    }
}
