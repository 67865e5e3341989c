//! ExternalDNS instances in workloads: found by image or command, told by arguments, environment and labels (externaldns.md rule 1).

use super::config::{Config, Policy, Version};
use crate::error::Result;
use serde_json::Value;

impl Config {
    /// From a workload (Deployment, DaemonSet, CronJob, Pod, ...): the first container that runs an ExternalDNS. `None` when it has none.
    pub fn of_workload(object: &Value) -> Option<Result<Config>> {
        Config::all_of_workload(object).into_iter().next()
    }

    /// From a workload: every container that runs an ExternalDNS.
    pub fn all_of_workload(object: &Value) -> Vec<Result<Config>> {
        let pod = [
            "/spec/template/spec",
            "/spec/jobTemplate/spec/template/spec",
            "/spec",
        ]
        .iter()
        .filter_map(|p| object.pointer(p))
        .find(|s| s.get("containers").is_some());
        let containers = pod
            .and_then(|p| p.get("containers"))
            .and_then(Value::as_array);
        containers
            .into_iter()
            .flatten()
            .filter(|c| runs_external_dns(c))
            .map(|c| Config::of_container(object, c))
            .collect()
    }

    fn of_container(object: &Value, container: &Value) -> Result<Config> {
        let image = container.get("image").and_then(Value::as_str).unwrap_or("");
        let (mut args, unknown) = arguments(container);
        // Every flag has an environment twin (externaldns.md 6); several values are separated by line breaks. What is also an argument is not
        // read from there (kingpin).
        let given: Vec<String> = args
            .iter()
            .filter_map(|a| a.strip_prefix("--"))
            .map(|a| a.split('=').next().unwrap_or("").to_string())
            .collect();
        let mut unknown = unknown;
        for env in container
            .get("env")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let name = env.get("name").and_then(Value::as_str).unwrap_or("");
            let Some(flag) = name.strip_prefix("EXTERNAL_DNS_") else {
                continue;
            };
            let flag = flag.to_lowercase().replace('_', "-");
            if given.contains(&flag) {
                continue;
            }
            match env.get("value").and_then(Value::as_str) {
                Some(value) => args.extend(value.lines().map(|v| format!("--{flag}={v}"))),
                None => unknown.push(format!(
                    "--{flag} from {name}, whose value is not in the object"
                )),
            }
        }
        let version = Version::of_image(image).or_else(|| version_label(object));
        let mut config = match version {
            Some(version) => Config::of_version(image, version, &args),
            None => Config::from_args(image, &args),
        }?;
        config.unknown.extend(unknown);
        Ok(config)
    }

    /// What the inventory says of an instance, in one line (externaldns.md rule 1).
    pub fn describe(&self) -> String {
        let policy = match self.policy {
            Policy::Sync => "sync",
            Policy::UpsertOnly => "upsert-only",
            Policy::CreateOnly => "create-only",
        };
        let mut words = vec![
            format!("ExternalDNS {}", self.version),
            format!(
                "owner `{}`{}",
                self.owner,
                if self.owner_given { "" } else { " by default" }
            ),
            format!("policy {policy}"),
            format!("registry {}", self.registry),
            format!("sources {}", self.sources.join(", ")),
        ];
        for (what, value) in [
            ("TXT prefix", &self.prefix),
            ("TXT suffix", &self.suffix),
            ("wildcard replacement", &self.wildcard),
            ("zone type", &self.zone_type),
        ] {
            if !value.is_empty() {
                words.push(format!("{what} `{value}`"));
            }
        }
        for (what, values) in [
            ("domains", &self.domain_filter),
            ("without domains", &self.exclude_domains),
            ("zones", &self.zone_ids),
            ("ingress classes", &self.ingress_classes),
            ("service types", &self.service_types),
        ] {
            if !values.is_empty() {
                words.push(format!("{what} {}", values.join(", ")));
            }
        }
        for (what, value) in [
            ("namespace", &self.namespace),
            ("annotation filter", &self.annotation_filter),
            ("label filter", &self.label_filter),
            ("FQDN template", &self.fqdn_template),
            ("compatibility", &self.compatibility),
            ("takes over from owner", &self.migrate_from),
        ] {
            words.extend(value.iter().map(|v| format!("{what} {v}")));
        }
        words.join("; ")
    }
}

/// Whether a container runs an ExternalDNS: by its image (any registry, any mirror's name) or by its command.
fn runs_external_dns(container: &Value) -> bool {
    let image = container.get("image").and_then(Value::as_str).unwrap_or("");
    let path = image.split('@').next().unwrap_or("");
    let name = path
        .rsplit('/')
        .next()
        .unwrap_or("")
        .split(':')
        .next()
        .unwrap_or("");
    let command = container.get("command").and_then(Value::as_array);
    let program = command.and_then(|c| c.first()?.as_str()).unwrap_or("");
    // Its webhook providers are another program in the same pod.
    let of_name =
        name.contains("external-dns") && !name.contains("webhook") && !name.contains("provider");
    of_name || program.rsplit('/').next() == Some("external-dns")
}

/// Arguments of a container as the program sees them: `$(NAME)` expanded from plain environment values. And what cannot be known.
fn arguments(container: &Value) -> (Vec<String>, Vec<String>) {
    let env = |name: &str| -> Option<&str> {
        let all = container.get("env")?.as_array()?;
        all.iter()
            .find(|e| e["name"] == name)?
            .get("value")?
            .as_str()
    };
    let (mut out, mut unknown) = (vec![], vec![]);
    for key in ["command", "args"] {
        let list = container.get(key).and_then(Value::as_array);
        for arg in list.into_iter().flatten().filter_map(Value::as_str) {
            if key == "command" && !arg.starts_with("--") {
                continue;
            }
            let mut text = arg.to_string();
            while let Some(from) = text.find("$(") {
                let Some(to) = text[from..].find(')').map(|n| from + n) else {
                    break;
                };
                match env(&text[from + 2..to]) {
                    Some(value) => text = format!("{}{value}{}", &text[..from], &text[to + 1..]),
                    None => break,
                }
            }
            if text.contains("$(") {
                unknown.push(text);
            } else {
                out.push(text);
            }
        }
    }
    (out, unknown)
}

/// The version that the labels of a workload tell, where the image is given by digest or by a tag without numbers.
fn version_label(object: &Value) -> Option<Version> {
    let places = ["/spec/template/metadata/labels", "/metadata/labels"];
    let labels = places.iter().filter_map(|p| object.pointer(p));
    labels
        .flat_map(|l| ["app.kubernetes.io/version", "version"].map(|k| l.get(k)))
        .flatten()
        .find_map(|v| Version::of_text(v.as_str()?))
}
