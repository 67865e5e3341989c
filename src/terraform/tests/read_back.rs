//! A rendered root module, read with somebody else's HCL library and evaluated: it must mean exactly the resources of the plan.

use crate::world::cloud::Resource;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use testkit::hcl::expr::{Expression, ObjectKey, TraversalOperator};
use testkit::hcl::structure::Body;
use testkit::hcl::template::Element;

/// A whole file.
pub fn parse(name: &str, text: &str) -> Body {
    text.parse()
        .unwrap_or_else(|e| panic!("{name}: {e}\n{text}"))
}

/// What an expression is worth, of the kinds that a rendering uses.
fn evaluate(e: &Expression, vars: &Value) -> Value {
    let word = |v: Value| match v {
        Value::String(s) => s,
        other => other.to_string(),
    };
    match e {
        Expression::Null(_) => Value::Null,
        Expression::Bool(b) => json!(*b.value()),
        Expression::Number(n) => serde_json::from_str(&n.value().to_string()).expect("a number"),
        Expression::String(s) => json!(s.value()),
        Expression::Array(a) => a.iter().map(|e| evaluate(e, vars)).collect(),
        Expression::Object(o) => {
            let mut out = Map::new();
            for (k, v) in o.iter() {
                let key = match k {
                    ObjectKey::Ident(i) => i.value().to_string(),
                    ObjectKey::Expression(Expression::Variable(i)) => i.value().to_string(),
                    ObjectKey::Expression(e) => word(evaluate(e, vars)),
                };
                let twice = out.insert(key.clone(), evaluate(v.expr(), vars));
                assert!(twice.is_none(), "{key} stands twice");
            }
            Value::Object(out)
        }
        Expression::StringTemplate(t) => {
            let parts = t.iter().map(|e| match e {
                Element::Literal(s) => s.value().to_string(),
                Element::Interpolation(i) => word(evaluate(&i.expr, vars)),
                Element::Directive(_) => panic!("a directive was rendered"),
            });
            json!(parts.collect::<String>())
        }
        Expression::Parenthesis(p) => evaluate(p.inner(), vars),
        Expression::Variable(v) => vars
            .get(v.value().as_str())
            .unwrap_or_else(|| panic!("{} is nothing", v.value().as_str()))
            .clone(),
        Expression::FuncCall(f) => {
            let first = evaluate(f.args.get(0).expect("an argument"), vars);
            match f.name.name.value().as_str() {
                "jsonencode" => json!(first.to_string()),
                "file" => json!(format!("file:{}", word(first))),
                other => panic!("{other} is no function of a rendering"),
            }
        }
        Expression::Traversal(t) => {
            let mut at = evaluate(&t.expr, vars);
            for o in &t.operators {
                let key = match o.value() {
                    TraversalOperator::GetAttr(i) => i.value().to_string(),
                    TraversalOperator::Index(e) => word(evaluate(e, vars)),
                    other => panic!("{other:?}"),
                };
                at = at
                    .get(&key)
                    .unwrap_or_else(|| panic!("{key} is not in {at}"))
                    .clone();
            }
            at
        }
        other => panic!("{other:?}"),
    }
}

fn variables(files: &BTreeMap<String, String>, cluster: &str) -> Value {
    let mut subnets = Map::new();
    for part in files["main.tf"].split("var.subnets[\"").skip(1) {
        let name = part.split('"').next().unwrap_or("");
        subnets.insert(name.into(), json!(name));
    }
    json!({
        "var": {"account": "${account}", "caller": "${caller}", "subnets": subnets},
        "local": {
            "cluster": cluster, "issuer": "${cluster.issuer}",
            "cluster_security_group": "${cluster.security_group}",
        },
        "path": {"module": "."},
    })
}

/// Arguments of a module call that can be evaluated.
fn arguments(body: &Body, name: &str, vars: &Value) -> BTreeMap<String, Value> {
    let block = body
        .blocks()
        .find(|b| b.has_ident("module") && b.has_exact_labels(&[name]));
    let mut out = BTreeMap::new();
    for a in block.iter().flat_map(|b| b.body.attributes()) {
        if a.key.value().as_str() != "depends_on" {
            out.insert(a.key.value().to_string(), evaluate(&a.value, vars));
        }
    }
    out
}

fn entries(v: Option<&Value>) -> Vec<(String, Map<String, Value>)> {
    v.and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(k, v)| (k.clone(), v.as_object().cloned().unwrap_or_default()))
        .collect()
}

fn document(v: Option<&Value>) -> Value {
    v.and_then(Value::as_str).map_or(Value::Null, |t| {
        serde_json::from_str(t).unwrap_or_else(|e| panic!("{t}: {e}"))
    })
}

/// `snake_case` of the modules to `camelCase` of a resource, one level and below.
fn camel(v: &Value) -> Value {
    match v {
        Value::Array(a) => a.iter().map(camel).collect(),
        Value::Object(o) => o.iter().map(|(k, v)| (name(k), camel(v))).collect(),
        other => other.clone(),
    }
}

fn name(key: &str) -> String {
    let mut out = String::new();
    let mut up = false;
    for c in key.chars() {
        match c {
            '_' => up = true,
            c if up => {
                out.extend(c.to_uppercase());
                up = false;
            }
            c => out.push(c),
        }
    }
    out
}

/// The resources that a root module means.
pub fn resources(
    files: &BTreeMap<String, String>,
    cluster: &str,
    partition: &str,
) -> Vec<Resource> {
    let body = parse("main.tf", &files["main.tf"]);
    let mut cx = variables(files, cluster);
    let network = arguments(&body, "network", &cx);
    let mut module: Map<String, Value> = Map::new();
    let subnets = network.get("subnets").cloned().unwrap_or(json!([]));
    module.insert("network".into(), json!({"subnets": subnets}));
    let mut out: Vec<Value> = vec![];
    for m in ["service_roles", "service_account_roles"] {
        let mut arns = Map::new();
        for (k, e) in entries(arguments(&body, m, &cx).get("roles")) {
            let path = e.get("path").and_then(Value::as_str).unwrap_or("/");
            arns.insert(
                k.clone(),
                json!(format!("arn:{partition}:iam::${{account}}:role{path}{k}")),
            );
            let inline: Map<String, Value> = e
                .get("inline_policies")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
                .map(|(k, v)| (k.clone(), document(Some(v))))
                .collect();
            out.push(json!({
                "type": "role", "name": k, "trust": document(e.get("trust")),
                "managedPolicies": e.get("managed_policies").cloned().unwrap_or(json!([])),
                "inlinePolicies": inline, "boundary": e.get("boundary"), "path": e.get("path"),
            }));
        }
        module.insert(m.into(), json!({"arns": arns}));
    }
    cx["module"] = Value::Object(module);
    for (k, e) in entries(arguments(&body, "logs", &cx).get("log_groups")) {
        out.push(json!({"type": "log-group", "name": k, "retentionDays": e.get("retention_days")}));
    }
    let given = arguments(&body, "cluster", &cx);
    if !given.is_empty() {
        let mut c = camel(&json!(given));
        c["type"] = json!("cluster");
        c["version"] = c["kubernetesVersion"].take();
        c.as_object_mut()
            .expect("one")
            .retain(|k, _| !matches!(k.as_str(), "source" | "kubernetesVersion"));
        out.push(c);
    }
    let given = arguments(&body, "oidc", &cx);
    if let Some(issuer) = given.get("issuer").and_then(Value::as_str) {
        out.push(json!({"type": "oidc-provider", "issuer": format!("https://{issuer}"), "clientIds": given["client_ids"]}));
    }
    for (k, e) in entries(arguments(&body, "access", &cx).get("entries")) {
        out.push(json!({
            "type": "access-entry", "cluster": cluster, "principal": k,
            "groups": e.get("groups").cloned().unwrap_or(json!([])), "policy": e.get("policy"),
            "namespaces": e.get("namespaces").cloned().unwrap_or(json!([])),
        }));
    }
    for m in ["addons_before_nodes", "addons"] {
        for (k, e) in entries(arguments(&body, m, &cx).get("addons")) {
            let mut a = json!({
                "type": "addon", "cluster": cluster, "name": k, "version": e.get("version"),
                "serviceAccountRole": e.get("role_arn"), "conflicts": e["conflicts"],
            });
            if e.contains_key("configuration") {
                a["configuration"] = document(e.get("configuration"));
            }
            out.push(a);
        }
    }
    for (k, e) in entries(arguments(&body, "pod_identity", &cx).get("associations")) {
        let mut a = camel(&Value::Object(e));
        assert_eq!(
            k,
            format!(
                "{}/{}",
                a["namespace"].as_str().unwrap_or(""),
                a["serviceAccount"].as_str().unwrap_or("")
            )
        );
        a["type"] = json!("pod-identity-association");
        a["cluster"] = json!(cluster);
        out.push(a);
    }
    let nodes = arguments(&body, "nodes", &cx);
    for (k, e) in entries(nodes.get("launch_templates")) {
        let tags = e.get("tags").cloned();
        let mut t = camel(&Value::Object(e));
        t["type"] = json!("launch-template");
        t["name"] = json!(k);
        if let Some(tags) = tags {
            t["tags"] = tags;
        }
        if let Some(path) = t["userData"]
            .as_str()
            .and_then(|p| p.strip_prefix("file:./"))
        {
            t["userData"] = json!(files[path]);
        }
        out.push(t);
    }
    for (k, e) in entries(nodes.get("node_groups")) {
        let labels = e.get("labels").cloned().unwrap_or(json!({}));
        let mut g = camel(&Value::Object(e));
        g["type"] = json!("node-group");
        g["name"] = json!(k);
        g["cluster"] = json!(cluster);
        g["labels"] = labels;
        if g["taints"].is_null() {
            g["taints"] = json!([]);
        }
        out.push(g);
    }
    let shared = arguments(&body, "shared", &cx);
    for (_, e) in entries(shared.get("rules")) {
        let mut r = camel(&Value::Object(e));
        r["type"] = json!("security-group-rule");
        out.push(r);
    }
    for (_, e) in entries(shared.get("tags")) {
        let mut t = camel(&Value::Object(e));
        t["type"] = json!("tag");
        out.push(t);
    }
    out.into_iter()
        .map(|mut v| {
            // `null` is how HCL says that a field is absent.
            if let Some(o) = v.as_object_mut() {
                o.retain(|_, v| !v.is_null());
            }
            serde_json::from_value(v.clone()).unwrap_or_else(|e| panic!("{e}: {v}"))
        })
        .collect()
}
