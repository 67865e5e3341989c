//! The Pod Security Standards: what each level refuses (rule 53). Which level stands for a PodSecurityPolicy says `convert::psp`.

use super::convert::Level;
use super::work::{items, text};
use serde_json::{Value, json};

/// Capabilities that `baseline` lets a container add.
pub(super) const ADDABLE: &[&str] = &[
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];
/// Sysctls that `baseline` allows (of 1.36).
const SYSCTLS: &[&str] = &[
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
];
/// Types of volumes that `restricted` allows.
pub(super) const VOLUMES: &[&str] = &[
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "persistentVolumeClaim",
    "projected",
    "secret",
];
const SELINUX: &[&str] = &[
    "",
    "container_t",
    "container_init_t",
    "container_kvm_t",
    "container_engine_t",
];

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    [
        "/spec/initContainers",
        "/spec/containers",
        "/spec/ephemeralContainers",
    ]
    .into_iter()
    .flat_map(|l| items(pod, l))
}

/// What of a pod (or pod template: `metadata` and `spec`) a level refuses, in short words; nothing when it admits it.
pub(crate) fn refused(pod: &Value, level: Level) -> Vec<String> {
    let mut why = vec![];
    if level <= Level::Baseline {
        baseline(pod, &mut why);
    }
    if level <= Level::Restricted {
        restricted(pod, &mut why);
    }
    why.dedup();
    why
}

/// The strictest level that admits it.
#[cfg(test)]
pub(crate) fn needs(pod: &Value) -> Level {
    [Level::Restricted, Level::Baseline]
        .into_iter()
        .find(|l| refused(pod, *l).is_empty())
        .unwrap_or(Level::Privileged)
}

fn baseline(pod: &Value, why: &mut Vec<String>) {
    for field in ["hostNetwork", "hostPID", "hostIPC"] {
        if pod.pointer(&format!("/spec/{field}")) == Some(&json!(true)) {
            why.push(field.into());
        }
    }
    if items(pod, "/spec/volumes").any(|v| v.get("hostPath").is_some()) {
        why.push("hostPath".into());
    }
    for s in items(pod, "/spec/securityContext/sysctls").filter_map(|s| text(s, "/name")) {
        if !SYSCTLS.contains(&s) {
            why.push(format!("sysctl {s}"));
        }
    }
    let mut contexts: Vec<&Value> = pod.pointer("/spec/securityContext").into_iter().collect();
    for c in containers(pod) {
        if items(c, "/ports").any(|p| p["hostPort"].as_u64().is_some_and(|n| n > 0)) {
            why.push("hostPort".into());
        }
        let Some(context) = c.get("securityContext") else {
            continue;
        };
        contexts.push(context);
        if context["privileged"] == true {
            why.push("privileged".into());
        }
        for cap in items(context, "/capabilities/add").filter_map(Value::as_str) {
            if !ADDABLE.contains(&cap) {
                why.push(format!("capability {cap}"));
            }
        }
        if !matches!(text(context, "/procMount"), None | Some("Default")) {
            why.push("procMount".into());
        }
    }
    for context in contexts {
        let se = &context["seLinuxOptions"];
        if !SELINUX.contains(&se["type"].as_str().unwrap_or(""))
            || ["user", "role"]
                .iter()
                .any(|k| se[*k].as_str().is_some_and(|v| !v.is_empty()))
        {
            why.push("seLinuxOptions".into());
        }
        for field in ["seccompProfile", "appArmorProfile"] {
            if text(context, &format!("/{field}/type")) == Some("Unconfined") {
                why.push(format!("{field} Unconfined"));
            }
        }
        if context.pointer("/windowsOptions/hostProcess") == Some(&json!(true)) {
            why.push("hostProcess".into());
        }
    }
}

fn restricted(pod: &Value, why: &mut Vec<String>) {
    for v in items(pod, "/spec/volumes") {
        let kind = v.as_object().and_then(|o| o.keys().find(|k| *k != "name"));
        if let Some(kind) = kind.filter(|k| !VOLUMES.contains(&k.as_str()) && *k != "hostPath") {
            why.push(format!("volume {kind}"));
        }
    }
    let own = pod.pointer("/spec/securityContext");
    let of_pod = |pointer: &str| own.and_then(|c| c.pointer(pointer));
    let mut said = |words: &str| {
        if !why.iter().any(|w| w == words) {
            why.push(words.into());
        }
    };
    if of_pod("/runAsUser") == Some(&json!(0)) {
        said("runs as root");
    }
    for c in containers(pod) {
        let get = |pointer: &str| c.pointer(&format!("/securityContext{pointer}"));
        if get("/allowPrivilegeEscalation") != Some(&json!(false)) {
            said("allowPrivilegeEscalation is not false");
        }
        if get("/runAsNonRoot").or(of_pod("/runAsNonRoot")) != Some(&json!(true)) {
            said("runAsNonRoot is not true");
        }
        if get("/runAsUser") == Some(&json!(0)) {
            said("runs as root");
        }
        let seccomp = get("/seccompProfile/type")
            .or(of_pod("/seccompProfile/type"))
            .and_then(Value::as_str);
        if !matches!(seccomp, Some("RuntimeDefault" | "Localhost")) {
            said("no seccompProfile");
        }
        let context = c.get("securityContext").unwrap_or(&Value::Null);
        if !items(context, "/capabilities/drop").any(|d| d == "ALL") {
            said("capabilities are not dropped");
        }
        if items(context, "/capabilities/add").any(|a| a != "NET_BIND_SERVICE") {
            said("adds capabilities");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(spec: Value) -> Value {
        json!({"metadata": {"name": "p"}, "spec": spec})
    }

    #[test]
    fn baseline_refuses_what_leads_out_of_the_container_and_nothing_else() {
        let plain = pod(
            json!({"containers": [{"name": "c", "securityContext": {"capabilities": {"add": ["CHOWN"]}}}]}),
        );
        assert_eq!(needs(&plain), Level::Baseline);
        for (spec, word) in [
            (json!({"hostNetwork": true}), "hostNetwork"),
            (
                json!({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}),
                "hostPath",
            ),
            (
                json!({"containers": [{"name": "c", "ports": [{"containerPort": 1, "hostPort": 1}]}]}),
                "hostPort",
            ),
            (
                json!({"containers": [{"name": "c", "securityContext": {"privileged": true}}]}),
                "privileged",
            ),
            (
                json!({"initContainers": [{"name": "c", "securityContext": {"capabilities": {"add": ["NET_ADMIN"]}}}]}),
                "capability NET_ADMIN",
            ),
            (
                json!({"securityContext": {"seccompProfile": {"type": "Unconfined"}}}),
                "seccompProfile Unconfined",
            ),
            (
                json!({"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}}),
                "sysctl kernel.msgmax",
            ),
        ] {
            let p = pod(spec);
            assert_eq!(refused(&p, Level::Baseline), [word]);
            assert!(refused(&p, Level::Privileged).is_empty());
            assert_eq!(needs(&p), Level::Privileged);
        }
    }

    #[test]
    fn restricted_admits_a_hardened_pod_and_names_each_lack_of_another() {
        let hardened = pod(
            json!({"securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
            "volumes": [{"name": "t", "emptyDir": {}}],
            "containers": [{"name": "c", "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}}}]}),
        );
        assert_eq!(needs(&hardened), Level::Restricted);
        let loose = pod(
            json!({"volumes": [{"name": "n", "nfs": {"server": "x", "path": "/"}}], "containers": [{"name": "c"}]}),
        );
        assert_eq!(
            refused(&loose, Level::Restricted),
            [
                "volume nfs",
                "allowPrivilegeEscalation is not false",
                "runAsNonRoot is not true",
                "no seccompProfile",
                "capabilities are not dropped"
            ]
        );
    }
}
