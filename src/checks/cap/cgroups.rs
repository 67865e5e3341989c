//! CAP-11.

use crate::checks::words::{containers, count, some, templates};
use crate::checks::{Answered, Check, Input, Need, Report};
use crate::plan::model::Severity;
use serde_json::Value;

pub(super) const CHECK: Check = Check {
    id: "CAP-11",
    severity: Severity::Warning,
    question: "Do all runtimes know cgroup v2, which green's nodes have?",
    needs: &[Need::Blue],
    answered: Answered::Plan,
    remedy: "Upgrade the base image (Java 8u372, 11.0.16 or 15 and newer), or set -Xmx and the number of threads explicitly.",
    source: "checks.md CAP-11, eks.md 8.13",
    run,
};

fn run(i: &Input, r: &mut Report) {
    let (mut old, mut unknown) = (vec![], vec![]);
    for (object, template) in templates(i) {
        let mut worst = None;
        for c in containers(template) {
            let image = c["image"].as_str().unwrap_or("");
            match java(image) {
                Some(Java::New) => {}
                Some(Java::Old) if !heap_is_set(c) => {
                    worst = Some(format!("{object} ({image})"));
                    break;
                }
                Some(Java::Unknown) if !heap_is_set(c) => {
                    unknown.push(object);
                }
                None if runs_java(c) && !heap_is_set(c) => unknown.push(object),
                _ => {}
            }
        }
        old.extend(worst);
    }
    if !old.is_empty() {
        r.found(
            "images",
            format!(
                "{} of a Java that does not know cgroup v2 (green's nodes have nothing else): it sees the memory and cores of the whole node: {}",
                count(old.len(), "workload"),
                some(&old)
            ),
        );
    }
    unknown.dedup();
    if !unknown.is_empty() {
        r.not_checked(
            "images",
            &format!("the version of Java in {} cannot be told from the image's name ({})", count(unknown.len(), "workload"), some(&unknown)),
            "Run `java -version` in each; older than 8u372, 11.0.16 or 15 needs -Xmx or a newer base image. Waive this when they are seen.",
        );
    }
}

enum Java {
    New,
    Old,
    Unknown,
}

/// What the name of an official Java image tells.
fn java(image: &str) -> Option<Java> {
    let name = image.rsplit('/').next()?.split('@').next()?;
    let (base, tag) = name.split_once(':').unwrap_or((name, "latest"));
    if ![
        "openjdk",
        "java",
        "amazoncorretto",
        "eclipse-temurin",
        "adoptopenjdk",
        "zulu-openjdk",
        "ibmjava",
    ]
    .contains(&base)
    {
        return None;
    }
    // `8u292-jre`, `11.0.4-jre-slim`, `17`, `8-jdk`, `8.342.07`.
    let version = tag.split('-').next().unwrap_or("");
    let mut parts = version.split(['.', 'u', '_', '+']);
    let number = |s: Option<&str>| s.and_then(|s| s.parse::<u32>().ok());
    let Some(major) = number(parts.next()) else {
        return Some(Java::Unknown);
    };
    let second = number(parts.next());
    Some(match major {
        15.. => Java::New,
        12..=14 | 1..=7 | 9 | 10 => Java::Old,
        8 => match second {
            Some(u) if u >= 372 => Java::New,
            Some(_) => Java::Old,
            None => Java::Unknown,
        },
        11 => match (second, number(parts.next())) {
            (Some(0), Some(p)) if p >= 16 => Java::New,
            (Some(0), Some(_)) => Java::Old,
            _ => Java::Unknown,
        },
        _ => Java::Unknown,
    })
}

/// Words of a container in which options stand.
fn words(c: &Value) -> impl Iterator<Item = &str> {
    ["command", "args"]
        .into_iter()
        .filter_map(|k| c[k].as_array())
        .flatten()
        .filter_map(Value::as_str)
}

fn options(c: &Value) -> impl Iterator<Item = (&str, &str)> {
    c["env"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|e| Some((e["name"].as_str()?, e["value"].as_str().unwrap_or(""))))
}

fn runs_java(c: &Value) -> bool {
    words(c).any(|w| w == "java" || w.ends_with("/java") || w.ends_with(".jar"))
        || options(c).any(|(n, _)| {
            matches!(
                n,
                "JAVA_OPTS"
                    | "JAVA_TOOL_OPTIONS"
                    | "_JAVA_OPTIONS"
                    | "JDK_JAVA_OPTIONS"
                    | "CATALINA_OPTS"
            )
        })
}

fn heap_is_set(c: &Value) -> bool {
    words(c)
        .chain(options(c).map(|(_, v)| v))
        .any(|w| w.contains("-Xmx"))
}

#[cfg(test)]
mod tests {
    use crate::checks::tests::{deployment, of, says, snapshot, spec};
    use crate::plan::model::Severity;
    use crate::plan::plan;
    use serde_json::{Value, json};

    fn with(containers: Value) -> crate::snapshot::model::Snapshot {
        let mut s = snapshot();
        let mut d = deployment("api", 1, json!({}));
        d["spec"]["template"]["spec"]["containers"] = containers;
        s.blue.objects = vec![d];
        s
    }

    #[test]
    fn cap_11_a_java_that_does_not_know_cgroup_v2_is_named() {
        for image in [
            "openjdk:8u292-jre",
            "docker.io/library/openjdk:11.0.4-jre-slim",
            "adoptopenjdk:14",
            "amazoncorretto:8.302.08",
        ] {
            let p = plan(&spec(), &with(json!([{"name": "c", "image": image}])));
            says(&p, "CAP-11", Severity::Warning, image);
        }
    }

    #[test]
    fn cap_11_a_new_java_a_set_heap_and_other_programs_are_no_matter() {
        for containers in [
            json!([{"name": "c", "image": "eclipse-temurin:17-jre"}]),
            json!([{"name": "c", "image": "openjdk:8u382"}]),
            json!([{"name": "c", "image": "openjdk:11.0.20-jre"}]),
            json!([{"name": "c", "image": "openjdk:8u292", "args": ["java", "-Xmx512m", "-jar", "x.jar"]}]),
            json!([{"name": "c", "image": "nginx:1.19"}]),
            json!([{"name": "c", "image": "shop/javascript-app:1"}]),
        ] {
            assert!(
                of(&plan(&spec(), &with(containers.clone())), "CAP-11").is_empty(),
                "{containers}"
            );
        }
    }

    #[test]
    fn cap_11_a_java_of_unknown_age_is_a_question() {
        let p = plan(
            &spec(),
            &with(
                json!([{"name": "c", "image": "shop/api:7", "env": [{"name": "JAVA_OPTS", "value": "-Dx=1"}]}]),
            ),
        );
        says(&p, "CAP-11", Severity::NotChecked, "deployment/n/api");
        assert_eq!(of(&p, "CAP-11").len(), 1);
    }
}
