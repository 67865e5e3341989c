//! Objects as a company's services have them, any number, the same every time.

use serde_json::{Value, json};

/// Namespaces that the objects live in.
const NAMESPACES: usize = 20;

/// So many objects: of ten, three ConfigMaps, two Secrets, a Service, a Deployment, a Role, its RoleBinding and a custom resource.
/// Deployments run nothing on blue, so that blue's controllers are quiet while its objects are read.
pub fn objects(count: usize) -> Vec<Value> {
    let mut objects: Vec<Value> = (0..NAMESPACES)
        .map(|n| {
            json!({"apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": format!("team-{n:02}"), "labels": {"team": format!("team-{n:02}")}}})
        })
        .collect();
    objects.push(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "mailroutes.mail.example.com"},
        "spec": {"group": "mail.example.com", "scope": "Namespaced",
            "names": {"plural": "mailroutes", "singular": "mailroute", "kind": "MailRoute"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}]}
    }));
    let mut n = 0;
    while objects.len() < count {
        service(n, &mut objects);
        n += 1;
    }
    objects.truncate(count);
    objects
}

fn service(n: usize, objects: &mut Vec<Value>) {
    use base64::Engine;
    let secret = |text: String| base64::engine::general_purpose::STANDARD.encode(text);
    let ns = format!("team-{:02}", n % NAMESPACES);
    let app = format!("app-{n:05}");
    let meta = |suffix: &str| {
        json!({"name": format!("{app}{suffix}"), "namespace": ns,
            "labels": {"app": app, "team": ns, "app.kubernetes.io/part-of": "bench"},
            "annotations": {"owner": format!("{ns}@example.com")}})
    };
    let settings: String = (0..20)
        .map(|k| format!("setting.{k}=value of {app} number {k}\n"))
        .collect();
    for suffix in ["", "-features", "-templates"] {
        objects.push(
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta(suffix),
            "data": {"app.properties": settings, "level": "info"}}),
        );
    }
    for suffix in ["", "-keys"] {
        objects.push(json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": meta(suffix),
            "data": {"password": secret(format!("not a real password of {app}")), "token": secret(format!("{n:064}"))}}));
    }
    objects.push(json!({"apiVersion": "v1", "kind": "Service", "metadata": meta(""),
        "spec": {"selector": {"app": app}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]}}));
    objects.push(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta(""),
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": app}}, "template": {
            "metadata": {"labels": {"app": app}},
            "spec": {"containers": [{"name": "main", "image": format!("registry.example.com/{app}:v{}", n % 17),
                "ports": [{"containerPort": 8080}],
                "envFrom": [{"configMapRef": {"name": app}}],
                "env": [{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": app, "key": "password"}}}],
                "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
                "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}}}]}}}}));
    objects.push(json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": meta(""),
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [app], "verbs": ["get", "watch"]}]}));
    objects.push(json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": meta(""),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": app},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": ns}]}));
    objects.push(json!({"apiVersion": "mail.example.com/v1", "kind": "MailRoute", "metadata": meta(""),
        "spec": {"target": format!("{app}@example.com"), "limit": n, "retries": {"count": 3, "after": "30s"}}}));
}
