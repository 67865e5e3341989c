//! Rules 37 to 44 of replay.md: identity, secrets and RBAC. A test of each is named `rule_NN_...`; that an immutable object is made again (40) stands beside the run.

use super::*;

fn object(api: &str, kind: &str, name: &str) -> Value {
    json!({"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": "shop"}})
}

fn token(account: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {"name": name, "namespace": "shop", "annotations": {"kubernetes.io/service-account.name": account, "kubernetes.io/service-account.uid": "blue-uid"}},
        "data": {"token": "QkxVRQ==", "ca.crt": "QkxVRQ==", "namespace": "c2hvcA==", "extra": "b3Vycw=="}})
}

fn step_of(p: &Plan, id: &str) -> usize {
    p.steps
        .iter()
        .position(|s| {
            s.params["objects"]
                .to_string()
                .contains(&format!("\"{id}\""))
        })
        .unwrap_or_else(|| panic!("{id} is in a step"))
}

#[test]
fn rule_37_an_account_loses_the_tokens_that_the_server_made_and_keeps_what_people_gave_it() {
    let mut account = object("v1", "ServiceAccount", "ci");
    account["secrets"] = json!([{"name": "ci-token-x7k2p"}, {"name": "ci-dockercfg-abcde"}, {"name": "ci-token-for-jenkins"}, {"name": "settings"}]);
    account["imagePullSecrets"] = json!([{"name": "registry"}]);
    let p = planned(vec![account]);
    let t = target(&p, "serviceaccount/shop/ci");
    assert_eq!(
        t["secrets"],
        json!([{"name": "ci-token-for-jenkins"}, {"name": "settings"}])
    );
    assert_eq!(t["imagePullSecrets"], json!([{"name": "registry"}]));
    assert_eq!(of(&p, "serviceaccount/shop/ci").rules, ["replay.md 37"]);
}

#[test]
fn rule_38_a_token_that_the_server_made_stays_and_one_made_by_hand_is_made_anew() {
    let long = "a".repeat(60);
    let p = planned(vec![
        object("v1", "ServiceAccount", "ci"),
        token("ci", "ci-token-x7k2p"),
        token("ci", "ci-token-for-jenkins"),
        token(&long, &format!("{}x7k2p", &format!("{long}-token-")[..58])),
    ]);
    let auto = "secret/shop/ci-token-x7k2p";
    assert_eq!(of(&p, auto).rules, ["replay.md 12", "replay.md 38"]);
    assert_eq!(of(&p, auto).verdict, Fate::Skipped);
    says(&p, "GIT-05", auto, Severity::Warning, "outside system");
    assert_eq!(
        of(&p, &format!("secret/shop/{}x7k2p", "a".repeat(58))).verdict,
        Fate::Skipped,
        "names are cut"
    );

    let by_hand = "secret/shop/ci-token-for-jenkins";
    let t = target(&p, by_hand);
    assert_eq!(
        t["metadata"]["annotations"],
        json!({"kubernetes.io/service-account.name": "ci"})
    );
    assert_eq!(
        t["data"].as_object().map(|d| d.keys().collect::<Vec<_>>()),
        Some(vec![&"extra".to_string()])
    );
    says(&p, "GIT-05", by_hand, Severity::Warning, "signs a new one");
    // The run takes values from blue, but none that the plan left out.
    let written = crate::rewrite::for_green(&token("ci", "ci-token-for-jenkins"), t);
    assert_eq!(written["data"], json!({"extra": "b3Vycw=="}));
}

#[test]
fn rule_39_a_role_of_kiam_moves_from_the_pod_to_its_account_with_its_whole_arn() {
    let mut web = object("apps/v1", "Deployment", "web");
    web["spec"] = json!({"selector": {"matchLabels": {"a": "b"}}, "template": {
        "metadata": {"labels": {"a": "b"}, "annotations": {"iam.amazonaws.com/role": "shop/web", "team": "shop"}},
        "spec": {"serviceAccountName": "web", "containers": []}}});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "annotations": {"iam.amazonaws.com/permitted": "shop/.*", "iam.amazonaws.com/allowed-roles": "[\"web\"]"}}});
    let p = planned(vec![
        web.clone(),
        object("v1", "ServiceAccount", "web"),
        namespace,
    ]);
    assert_eq!(
        target(&p, "serviceaccount/shop/web")["metadata"]["annotations"],
        json!({"eks.amazonaws.com/role-arn": "arn:aws:iam::123456789012:role/shop/web"})
    );
    assert_eq!(
        target(&p, "deployment/shop/web")["spec"]["template"]["metadata"]["annotations"],
        json!({"team": "shop"})
    );
    assert!(
        target(&p, "namespace/shop")["metadata"]
            .get("annotations")
            .is_none()
    );
    // Two roles on one account: somebody has to split it.
    let mut other = web.clone();
    other["metadata"]["name"] = json!("other");
    other["spec"]["template"]["metadata"]["annotations"]["iam.amazonaws.com/role"] =
        json!("shop/other");
    let p = planned(vec![web, other]);
    assert_eq!(of(&p, "deployment/shop/web").verdict, Fate::Refused);
    says(
        &p,
        "IAM-02",
        "deployment/shop/other",
        Severity::Blocker,
        "different AWS roles",
    );
}

#[test]
fn rule_41_aggregated_roles_are_filled_by_green_grants_come_first_and_strangers_are_named() {
    let rbac = "rbac.authorization.k8s.io/v1";
    let role = json!({"apiVersion": rbac, "kind": "ClusterRole", "metadata": {"name": "monitoring"},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"aggregate": "true"}}]}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]});
    let part = json!({"apiVersion": rbac, "kind": "ClusterRole", "metadata": {"name": "part", "labels": {"aggregate": "true"}}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]});
    let binding = json!({"apiVersion": rbac, "kind": "ClusterRoleBinding", "metadata": {"name": "people"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "monitoring"},
        "subjects": [{"kind": "Group", "name": "kops-admins"}, {"kind": "User", "name": "ann"}, {"kind": "Group", "name": "system:authenticated"}, {"kind": "ServiceAccount", "name": "x", "namespace": "shop"}]});
    let p = planned(vec![binding.clone(), part.clone(), role]);
    let t = target(&p, "clusterrole/monitoring");
    assert_eq!(t["rules"], json!([]));
    assert!(t["aggregationRule"]["clusterRoleSelectors"][0]["matchLabels"]["aggregate"] == "true");
    assert_eq!(target(&p, "clusterrole/part"), &part);
    assert_eq!(target(&p, "clusterrolebinding/people"), &binding);
    let all = found(&p, "IAM-07", "clusterrolebinding/people");
    assert!(
        all.iter()
            .any(|(_, m)| m.contains("kops-admins, ann") && !m.contains("system:")),
        "{all:?}"
    );
    assert!(before(&p, "clusterrole/part", "clusterrolebinding/people"));
}

#[test]
fn rule_42_every_key_of_sealed_secrets_comes_before_its_controller_and_what_it_unseals_does_not() {
    let key = |name: &str, state: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
            "metadata": {"name": name, "namespace": "kube-system", "labels": {"sealedsecrets.bitnami.com/sealed-secrets-key": state}}, "data": {"tls.crt": "QQ==", "tls.key": "QQ=="}})
    };
    let controller = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "sealed-secrets-controller", "namespace": "kube-system"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"serviceAccountName": "sealed-secrets-controller", "containers": []}}}});
    let mut account = object("v1", "ServiceAccount", "sealed-secrets-controller");
    account["metadata"]["namespace"] = json!("kube-system");
    let mut sealed = object("bitnami.com/v1alpha1", "SealedSecret", "db");
    sealed["metadata"]["uid"] = json!("u1");
    sealed["spec"] = json!({"encryptedData": {"password": "AgB"}});
    let mut unsealed = object("v1", "Secret", "db");
    unsealed["metadata"]["ownerReferences"] = json!([{"apiVersion": "bitnami.com/v1alpha1", "kind": "SealedSecret", "name": "db", "uid": "u1", "controller": true}]);
    let p = planned(vec![
        key("sealed-secrets-keyaaaaa", "active"),
        key("sealed-secrets-keybbbbb", "compromised"),
        controller,
        account,
        sealed.clone(),
        unsealed,
    ]);
    let controller = step_of(&p, "deployment/kube-system/sealed-secrets-controller");
    for name in ["sealed-secrets-keyaaaaa", "sealed-secrets-keybbbbb"] {
        let id = format!("secret/kube-system/{name}");
        assert!(step_of(&p, &id) < controller);
        says(
            &p,
            "OBJ-sealed-secrets",
            &id,
            Severity::Info,
            "a key of sealed-secrets",
        );
    }
    // Asleep when it is made: the keys are there when it starts.
    assert!(
        of(&p, "deployment/kube-system/sealed-secrets-controller")
            .park
            .is_some()
    );
    assert!(
        of(&p, "serviceaccount/kube-system/sealed-secrets-controller")
            .target
            .is_some()
    );
    // Sealed for this name in this namespace: neither changes.
    let t = target(&p, "sealedsecret.bitnami.com/shop/db");
    assert_eq!(
        (&t["metadata"]["name"], &t["metadata"]["namespace"]),
        (&json!("db"), &json!("shop"))
    );
    assert_eq!(of(&p, "secret/shop/db").verdict, Fate::Skipped);
    assert_eq!(of(&p, "secret/shop/db").rules, ["replay.md 42"]);
    // Without a key it is of no use.
    says(
        &planned(vec![sealed]),
        "OBJ-sealed-secrets",
        "sealedsecret.bitnami.com/shop/db",
        Severity::Warning,
        "no key",
    );
}

#[test]
fn rule_43_external_secrets_6918_what_logs_in_by_blues_issuer_is_named_before_green_needs_it() {
    let store = |name: &str, provider: Value| {
        let mut o = object("external-secrets.io/v1beta1", "SecretStore", name);
        o["spec"] = json!({ "provider": provider });
        o
    };
    let mut auth = object("secrets.hashicorp.com/v1beta1", "VaultAuth", "default");
    auth["spec"] =
        json!({"method": "kubernetes", "mount": "kops-prod", "kubernetes": {"role": "shop"}});
    let mut web = object("apps/v1", "Deployment", "web");
    web["spec"] = json!({"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}, "annotations": {
        "vault.hashicorp.com/agent-inject": "true", "vault.hashicorp.com/auth-path": "auth/kops-blue", "vault.hashicorp.com/role": "shop"}}, "spec": {"containers": []}}});
    let p = planned(vec![
        store(
            "vault",
            json!({"vault": {"server": "https://vault", "auth": {"kubernetes": {"mountPath": "kops", "role": "shop"}}}}),
        ),
        store(
            "jwt",
            json!({"vault": {"server": "https://vault", "auth": {"jwt": {"path": "blue-jwt"}}}}),
        ),
        store(
            "aws",
            json!({"aws": {"service": "SecretsManager", "region": "eu-west-1"}}),
        ),
        store(
            "peer",
            json!({"kubernetes": {"server": {"url": "https://api.blue.example.com"}}}),
        ),
        object("external-secrets.io/v1alpha1", "PushSecret", "out"),
        auth,
        web,
    ]);
    for (id, tool, severity, part) in [
        (
            "secretstore.external-secrets.io/shop/vault",
            "OBJ-vault",
            Severity::Warning,
            "auth mount kops,",
        ),
        (
            "secretstore.external-secrets.io/shop/jwt",
            "OBJ-vault",
            Severity::Warning,
            "auth mount blue-jwt,",
        ),
        (
            "secretstore.external-secrets.io/shop/aws",
            "OBJ-external-secrets",
            Severity::Info,
            "reads from aws",
        ),
        (
            "secretstore.external-secrets.io/shop/peer",
            "OBJ-external-secrets",
            Severity::Warning,
            "blue's",
        ),
        (
            "pushsecret.external-secrets.io/shop/out",
            "OBJ-external-secrets",
            Severity::Warning,
            "overwrites",
        ),
        (
            "vaultauth.secrets.hashicorp.com/shop/default",
            "OBJ-vault",
            Severity::Warning,
            "auth mount kops-prod,",
        ),
        (
            "deployment/shop/web",
            "OBJ-vault",
            Severity::Warning,
            "auth mount kops-blue,",
        ),
    ] {
        says(&p, tool, id, severity, part);
        assert!(of(&p, id).target.is_some(), "{id} is copied");
        assert!(
            of(&p, id).rules.contains(&"replay.md 43".to_string()),
            "{id}"
        );
    }
}

#[test]
fn rule_44_cert_manager_2318_secrets_first_then_issuers_then_certificates_and_never_their_orders() {
    let group = "cert-manager.io/v1";
    let mut issuer = object(group, "Issuer", "letsencrypt");
    issuer["spec"] = json!({"acme": {"privateKeySecretRef": {"name": "account-key"}}});
    let mut certificate = object(group, "Certificate", "web");
    certificate["metadata"]["uid"] = json!("u1");
    certificate["spec"] = json!({"secretName": "web-tls", "issuerRef": {"name": "letsencrypt"}, "dnsNames": ["web.example.com"]});
    let mut secret = object("v1", "Secret", "web-tls");
    secret["type"] = json!("kubernetes.io/tls");
    secret["metadata"]["ownerReferences"] = json!([{"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "name": "web", "uid": "u1", "controller": true, "blockOwnerDeletion": true}]);
    // The Ingress asked for this one by its annotation: cert-manager on green makes it again, with the Secret that is there.
    let mut ingress = json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "shop", "namespace": "shop", "uid": "u2"}, "spec": {"ingressClassName": "nginx", "rules": []}});
    ingress["metadata"]["annotations"]["cert-manager.io/issuer"] = json!("letsencrypt");
    let mut by_ingress = object(group, "Certificate", "shop-tls");
    by_ingress["metadata"]["ownerReferences"] = json!([{"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "shop", "uid": "u2", "controller": true}]);
    let p = planned(vec![
        object(group, "CertificateRequest", "web-1"),
        object("acme.cert-manager.io/v1", "Order", "web-1"),
        object("acme.cert-manager.io/v1", "Challenge", "web-1"),
        issuer,
        certificate,
        secret,
        object("v1", "Secret", "account-key"),
        object("v1", "Secret", "shop-tls"),
        ingress,
        by_ingress,
    ]);
    // With its owner named it could only be created after it, and cert-manager would order anew.
    assert_eq!(
        target(&p, "secret/shop/web-tls")["metadata"],
        json!({"name": "web-tls", "namespace": "shop"})
    );
    assert!(
        of(&p, "secret/shop/web-tls")
            .rules
            .contains(&"replay.md 44".to_string())
    );
    let order: Vec<usize> = [
        "secret/shop/account-key",
        "issuer.cert-manager.io/shop/letsencrypt",
        "certificate.cert-manager.io/shop/web",
    ]
    .iter()
    .map(|id| step_of(&p, id))
    .collect();
    assert!(order.is_sorted_by(|a, b| a < b), "{order:?}");
    assert_eq!(
        step_of(&p, "secret/shop/web-tls"),
        step_of(&p, "secret/shop/account-key")
    );
    assert_eq!(
        of(&p, "certificate.cert-manager.io/shop/shop-tls").verdict,
        Fate::Skipped
    );
    assert!(of(&p, "secret/shop/shop-tls").target.is_some());
    for id in [
        "certificaterequest.cert-manager.io/shop/web-1",
        "order.acme.cert-manager.io/shop/web-1",
        "challenge.acme.cert-manager.io/shop/web-1",
    ] {
        assert_eq!(of(&p, id).verdict, Fate::Skipped, "{id}");
    }
}
