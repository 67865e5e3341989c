//! Rule 39, the part of kops's own IRSA: a token for blue's issuer that somebody mounted by hand (kops.md 5). On green EKS injects its own.

use super::work::{Work, items, set, take, text};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Takes the token, its mounts and its environment off a pod template whose account has a role on green.
pub(super) fn rewrite(w: &mut Work, template: &str) {
    let spec = format!("{template}/spec");
    let account = text(&w.object, &format!("{spec}/serviceAccountName"))
        .or(text(&w.object, &format!("{spec}/serviceAccount")))
        .unwrap_or("default")
        .to_string();
    if !w
        .cx
        .sa_roles
        .contains_key(&format!("{}/{account}", w.namespace()))
    {
        return;
    }
    // Only the whole trio is kops's way; a variable alone may be anything.
    let lists = [
        format!("{spec}/containers"),
        format!("{spec}/initContainers"),
    ];
    let env = |c: &Value, name: &str| items(c, "/env").any(|e| e["name"] == name);
    let by_hand = lists
        .iter()
        .flat_map(|l| items(&w.object, l))
        .any(|c| env(c, "AWS_ROLE_ARN") && env(c, "AWS_WEB_IDENTITY_TOKEN_FILE"));
    if !by_hand {
        return;
    }
    let tokens: BTreeSet<String> = items(&w.object, &format!("{spec}/volumes"))
        .filter(|v| is_aws_token(v))
        .filter_map(|v| v["name"].as_str().map(String::from))
        .collect();
    if tokens.is_empty() {
        return;
    }
    without(w, &format!("{spec}/volumes"), |v| {
        v["name"].as_str().is_some_and(|n| tokens.contains(n))
    });
    for list in lists {
        for i in 0..items(&w.object, &list).count() {
            without(w, &format!("{list}/{i}/volumeMounts"), |m| {
                m["name"].as_str().is_some_and(|n| tokens.contains(n))
            });
            without(w, &format!("{list}/{i}/env"), |e| {
                matches!(
                    e["name"].as_str(),
                    Some("AWS_ROLE_ARN" | "AWS_WEB_IDENTITY_TOKEN_FILE")
                )
            });
        }
    }
    w.changed(39);
}

/// A projected volume that holds nothing but a token for AWS: kops's audience is `amazonaws.com`, that of EKS `sts.amazonaws.com`.
fn is_aws_token(volume: &Value) -> bool {
    let mut sources = items(volume, "/projected/sources").peekable();
    sources.peek().is_some()
        && sources.all(|s| {
            matches!(
                text(s, "/serviceAccountToken/audience"),
                Some("amazonaws.com" | "sts.amazonaws.com")
            )
        })
}

fn without(w: &mut Work, path: &str, gone: impl Fn(&Value) -> bool) {
    let Some(list) = w.object.pointer(path).and_then(Value::as_array) else {
        return;
    };
    let kept: Vec<Value> = list.iter().filter(|v| !gone(v)).cloned().collect();
    if kept.len() == list.len() {
        return;
    }
    if kept.is_empty() {
        take(&mut w.object, path);
    } else {
        set(&mut w.object, path, json!(kept));
    }
}

#[cfg(test)]
mod tests {
    use crate::rewrite::{Context, rewrite};
    use serde_json::{Value, json};

    fn mailer() -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "mailer", "namespace": "platform"},
        "spec": {"selector": {"matchLabels": {"app": "m"}}, "template": {"metadata": {"labels": {"app": "m"}}, "spec": {
            "serviceAccountName": "mailer",
            "containers": [{"name": "m", "image": "m:1",
                "env": [{"name": "AWS_ROLE_ARN", "value": "arn:aws:iam::000000000000:role/mailer.platform.sa.shop.test"}, {"name": "AWS_WEB_IDENTITY_TOKEN_FILE", "value": "/var/run/secrets/amazonaws.com/token"}, {"name": "MODE", "value": "x"}],
                "volumeMounts": [{"name": "token-amazonaws-com", "mountPath": "/var/run/secrets/amazonaws.com/", "readOnly": true}]}],
            "volumes": [{"name": "token-amazonaws-com", "projected": {"sources": [{"serviceAccountToken": {"audience": "amazonaws.com", "path": "token"}}]}}, {"name": "tmp", "emptyDir": {}}]
        }}}})
    }

    #[test]
    fn a_hand_mounted_token_of_blues_issuer_goes_and_the_rest_of_the_pod_stays() {
        let mut cx = Context::default();
        cx.sa_roles.insert(
            "platform/mailer".into(),
            "arn:aws:iam::000000000000:role/green".into(),
        );
        let target = rewrite(&mailer(), &cx).target.expect("it is created");
        let pod = &target["spec"]["template"]["spec"];
        assert_eq!(
            pod["containers"][0]["env"],
            json!([{"name": "MODE", "value": "x"}])
        );
        assert!(pod["containers"][0].get("volumeMounts").is_none());
        assert_eq!(pod["volumes"], json!([{"name": "tmp", "emptyDir": {}}]));
    }

    #[test]
    fn without_a_role_on_green_the_pod_is_left_as_it_is() {
        let target = rewrite(&mailer(), &Context::default())
            .target
            .expect("it is created");
        assert_eq!(
            target["spec"]["template"]["spec"]["volumes"]
                .as_array()
                .map(Vec::len),
            Some(2)
        );
    }
}
