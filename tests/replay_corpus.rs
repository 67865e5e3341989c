//! The 25 corpus files on real servers: put on kube-apiserver 1.21 (those that it still serves), read by `crossfade discover`, planned,
//! replayed to 1.36 by `crossfade migrate`, compared there with what each file's header asks for, and taken back again.
//!
//! One bench for all of it: the promises about blue's audit log, about secrets and about the way back are proven on the same run.

mod replay;

use replay::look::{self, difference};
use replay::writer;
use replay::{Move, is_write};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use testkit::servers::Side;

/// Files that no 1.21 server serves any more: they come in as dumps. replay.md 65
const FROM_FILES: [&str; 3] = ["02", "03", "04"];
/// Begins every secret value that is planted: nothing that crossfade writes or says may hold it.
const CANARY: &str = "CANARY-b5-";

/// Findings that stand in the way by right, accepted here to see what the replay then makes of the rest.
const ACCEPTED: &str = "\
workloads:
  skip: [customresourcedefinition/certificates.cert-manager.io, customresourcedefinition/orders.acme.cert-manager.io]
waivers:
- {check: API-03, reason: corpus 07}
- {check: API-05, reason: corpus 24}
- {check: API-10, reason: corpus 13}
- {check: API-13, reason: corpus 10}
- {check: DNS-14, reason: corpus 20}
- {check: IAM-01, reason: corpus 11}
- {check: IAM-02, reason: corpus 11}
- {check: STO-01, reason: corpus 16}
- {check: STO-03, reason: corpus 16}
- {check: TLS-05, reason: corpus 15}
- {check: WL-04, reason: corpus 16}
";

fn file(number: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/objects");
    let mut files = std::fs::read_dir(&dir).unwrap().flatten();
    let found = files.find(|e| e.file_name().to_string_lossy().starts_with(number));
    found.unwrap_or_else(|| panic!("no file {number}")).path()
}

fn documents(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let name = path.display().to_string();
    let all = crossfade::yaml::manifests(&text, &name);
    all.into_iter().map(|r| r.unwrap().0).collect()
}

/// All files that 1.21 serves, as somebody would apply them: without what only a server may set, webhooks last.
fn for_blue() -> (Vec<Value>, Vec<Value>) {
    let mut objects = vec![];
    let mut status = vec![];
    for n in (1..=25).map(|n| format!("{n:02}")) {
        if FROM_FILES.contains(&n.as_str()) {
            continue;
        }
        for mut object in documents(&file(&n)) {
            let meta = object["metadata"].as_object_mut().unwrap();
            for key in ["uid", "resourceVersion"] {
                meta.remove(key);
            }
            if let Some(annotations) = meta.get_mut("annotations").and_then(Value::as_object_mut) {
                // The old account's uid: this server would delete the token at once, it gives the new one.
                annotations.remove("kubernetes.io/service-account.uid");
            }
            if let Some(s) = object.as_object_mut().unwrap().remove("status")
                && object["kind"] != "Namespace"
            {
                let mut with = object.clone();
                with["status"] = s;
                status.push(with);
            }
            // Without the claim of that uid this server calls the volume Released, which is another case: here it waits for its claim. What
            // becomes of the uid is asked of the file itself (rewrite::tests::corpus).
            if let Some(claim) = object
                .pointer_mut("/spec/claimRef")
                .and_then(Value::as_object_mut)
            {
                claim.remove("uid");
                claim.remove("resourceVersion");
            }
            objects.push(object);
        }
    }
    let namespaces: BTreeSet<String> = objects
        .iter()
        .filter_map(|o| o["metadata"]["namespace"].as_str().map(str::to_owned))
        .filter(|ns| ns != "kube-system" && ns != "payments-prod")
        .collect();
    let mut all: Vec<Value> = namespaces
        .iter()
        .map(|ns| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ns}}))
        .collect();
    all.extend(documents(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/replay/crds.yaml"),
    ));
    // A closed door for Ingresses: whoever comes after it is refused.
    objects.sort_by_key(|o| o["kind"] == "ValidatingWebhookConfiguration");
    all.extend(objects);
    all.extend(secrets());
    (all, status)
}

/// Secrets of the kinds that people have, each value with the canary.
fn secrets() -> Vec<Value> {
    use base64::Engine;
    let b64 = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    let secret = |name: &str, kind: &str, key: &str, value: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": {"name": name, "namespace": "shop"},
            "data": {key: b64(value)}})
    };
    let registry =
        format!(r#"{{"auths":{{"registry.example.com":{{"password":"{CANARY}registry"}}}}}}"#);
    vec![
        secret(
            "database",
            "Opaque",
            "password",
            &format!("{CANARY}password"),
        ),
        secret(
            "registry",
            "kubernetes.io/dockerconfigjson",
            ".dockerconfigjson",
            &registry,
        ),
        secret(
            "login",
            "kubernetes.io/basic-auth",
            "password",
            &format!("{CANARY}basic"),
        ),
        secret("guarded", "Opaque", "password", &format!("{CANARY}guarded")),
    ]
}

/// A policy on green that refuses one Secret and, as badly written ones do, says its value. bench: an error text that holds a secret
fn talkative_policy() -> [Value; 2] {
    [
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "talkative"},
            "spec": {"matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["secrets"]}]},
                "validations": [{"expression": "object.metadata.name != 'guarded'",
                    "messageExpression": "'this value is not allowed: ' + string(object.data.password)"}]}}),
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "talkative"},
            "spec": {"policyName": "talkative", "validationActions": ["Deny"]}}),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn the_25_corpus_files_come_to_green_as_their_headers_ask_and_go_again() {
    let it = Move::open(env!("CARGO_BIN_EXE_crossfade"), ACCEPTED).await;
    let blue = it.client(Side::Blue).await;
    let (objects, status) = for_blue();
    writer::create_in_order(&blue, &objects).await;
    writer::set_status(&blue, &status).await;
    // As most clusters with a registry of their own: what each pod without an account pulls with.
    for ns in ["shop", "default"] {
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": ns},
            "imagePullSecrets": [{"name": "registry"}]});
        writer::merge(&blue, &account).await;
    }

    let trace = [("RUST_LOG", "trace"), ("RUST_BACKTRACE", "1")];
    // 25 cannot be waived: no owner id means "default", shared by every cluster that left it out. Its owner gives it one.
    it.run_in("work", &["discover"], &trace).await.expect(0);
    it.run_in("work", &["plan", "-o", "json"], &trace)
        .await
        .expect(3);
    assert_eq!(
        blocking(&it),
        ["DNS-01 deployment/kube-system/external-dns"]
    );
    let mut external_dns = documents(&file("25")).remove(0);
    let args = &mut external_dns["spec"]["template"]["spec"]["containers"][0]["args"];
    args.as_array_mut()
        .unwrap()
        .push("--txt-owner-id=blue".into());
    writer::merge(&blue, &external_dns).await;
    it.run_in("work", &["discover"], &trace).await.expect(0);
    it.run_in("work", &["plan", "-o", "json"], &trace)
        .await
        .expect(2);
    it.provision().await;

    // What a platform team puts on a new cluster before anything moves: cert-manager of today.
    let green = it.client(Side::Green).await;
    writer::create_in_order(&green, &todays_cert_manager()).await;
    writer::create_in_order(&green, &talkative_policy()).await;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let before = look::everything(&green).await;
    let audited = it.audit_of_product(Side::Blue).len();

    // The error path: a server that says a secret's value in its refusal.
    let refused = it
        .run_in("work", &["migrate", "--to", "replay"], &trace)
        .await;
    assert!(
        refused.code != Some(0) && refused.stderr.contains("secret/shop/guarded"),
        "{refused:?}"
    );
    writer::delete(&green, &talkative_policy()).await;
    // The server forgets a policy with a delay of its own.
    tokio::time::sleep(std::time::Duration::from_secs(4)).await;
    it.run_in("work", &["migrate", "--to", "replay", "-o", "json"], &trace)
        .await
        .expect(0);

    let there = look::everything(&green).await;
    let see = Green(&there);
    what_the_headers_ask(&see, &it.audit_of_product(Side::Green));
    // replay.md 24: of a namespace that came, and of one that green had (the way back is compared with the rest).
    for ns in ["shop", "default"] {
        let account = see.get(&format!("ServiceAccount./{ns}/default"));
        assert_eq!(account["imagePullSecrets"], json!([{"name": "registry"}]));
        assert!(
            account["metadata"].get("annotations").is_none(),
            "{account}"
        );
    }
    from_files(&it, &green).await;

    // replay.md: blue is only read. Its audit log has every request of the product.
    let audit = &it.audit_of_product(Side::Blue)[audited..];
    let verbs: BTreeSet<&str> = audit.iter().filter_map(|e| e["verb"].as_str()).collect();
    assert!(!audit.is_empty(), "the replay read blue's Secrets at least");
    let allowed = BTreeSet::from(["get", "list", "watch"]);
    assert!(verbs.is_subset(&allowed), "{verbs:?}");

    // Everything that a person may ask for afterwards.
    for args in [
        &["review"][..],
        &["review", "-o", "json"],
        &["status", "-o", "json"],
        &["checks", "-o", "json"],
    ] {
        it.run_in("work", args, &trace).await;
    }

    it.run_in("work", &["rollback", "--to", "provision"], &trace)
        .await
        .expect(0);
    let mut before = before;
    // What this test itself took away or brought meanwhile.
    before.retain(|name, _| !name.contains("/talkative"));
    let after = look::everything(&green).await;
    assert_eq!(difference(&before, &after), Vec::<String>::new());

    no_canary_below(it.dir.path());
}

/// What stands in the way of the plan.
fn blocking(it: &Move) -> Vec<String> {
    let plan = it.plan("work");
    let blocks = plan.findings.iter().filter(|f| f.blocks());
    blocks.map(|f| format!("{} {}", f.id, f.object)).collect()
}

/// Definitions that serve `cert-manager.io/v1`.
fn todays_cert_manager() -> Vec<Value> {
    let mut all = documents(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/replay/crds.yaml"));
    all.retain(|o| {
        o["metadata"]["name"]
            .as_str()
            .is_some_and(|n| n.ends_with("cert-manager.io"))
    });
    for crd in &mut all {
        crd["spec"]["versions"][0]["name"] = "v1".into();
    }
    all
}

/// Green as it stands.
struct Green<'a>(&'a BTreeMap<String, Value>);

impl Green<'_> {
    #[track_caller]
    fn get(&self, name: &str) -> &Value {
        self.0.get(name).unwrap_or_else(|| {
            let kind = name.split('/').next().unwrap_or_default();
            let alike: Vec<&String> = self.0.keys().filter(|k| k.starts_with(kind)).collect();
            panic!("{name} is not on green, only {alike:?}")
        })
    }
    #[track_caller]
    fn has_not(&self, name: &str) {
        if let Some(there) = self.0.get(name) {
            panic!("{name} is on green: {there}");
        }
    }
}

fn what_the_headers_ask(green: &Green, audit: &[Value]) {
    // 01: v1, pathType ImplementationSpecific on both, the port's name stays a name, a missing path is "/", weight "0", own identifier.
    let ingress = green.get("Ingress.networking.k8s.io/accounts-preprod/accounts-old-url");
    let paths: Vec<&Value> = (0..2)
        .map(|n| &ingress["spec"]["rules"][n]["http"]["paths"][0])
        .collect();
    assert_eq!(
        paths[0],
        &json!({"path": "/(.*)", "pathType": "ImplementationSpecific", "backend": {"service": {"name": "accounts-web", "port": {"name": "http"}}}})
    );
    assert_eq!(
        paths[1],
        &json!({"path": "/", "pathType": "ImplementationSpecific", "backend": {"service": {"name": "accounts-web", "port": {"number": 8080}}}})
    );
    let annotations = &ingress["metadata"]["annotations"];
    assert_eq!(
        annotations["external-dns.alpha.kubernetes.io/aws-weight"],
        "0"
    );
    let identifier = annotations["external-dns.alpha.kubernetes.io/set-identifier"].as_str();
    assert!(
        identifier
            .is_some_and(|i| i != "accounts-old-url-accounts-preprod-blue" && i.contains("green")),
        "{identifier:?}"
    );
    assert!(
        annotations["kubernetes.io/ingress.class"] == "nginx"
            || ingress["spec"]["ingressClassName"] == "nginx",
        "{ingress}"
    );

    // 05: batch/v1, suspended until the cutover, 0755 is 493.
    let job = green.get("CronJob.batch/cert-push/push-cert-login");
    assert_eq!(job["apiVersion"], "batch/v1");
    assert_eq!(job["spec"]["suspend"], true);
    assert_eq!(
        job.pointer("/spec/jobTemplate/spec/template/spec/volumes/0/configMap/defaultMode"),
        Some(&json!(493))
    );
    // 06: kept as it is.
    let job = green.get("CronJob.batch/loader/case-loader");
    assert_eq!(job["spec"]["schedule"], "0 0 31 2 *");
    assert_eq!(job["metadata"]["labels"]["active-cluster"], "00");

    // 07: no policy, no grant of it.
    green.has_not("PodSecurityPolicy.policy//privileged-reports");
    green.has_not("ClusterRole.rbac.authorization.k8s.io//psp:privileged:reports");
    green.has_not("ClusterRoleBinding.rbac.authorization.k8s.io//psp:privileged:reports");

    // 08: v2, the target on apps/v1, blue's status not brought.
    let hpa = green.get("HorizontalPodAutoscaler.autoscaling/shop/search");
    assert_eq!(hpa["apiVersion"], "autoscaling/v2");
    assert_eq!(hpa["spec"]["scaleTargetRef"]["apiVersion"], "apps/v1");
    assert_eq!(hpa["spec"]["metrics"].as_array().map(Vec::len), Some(2));
    assert_ne!(hpa["status"]["currentReplicas"], 17);

    // 09: v1 with a schema that keeps unknown fields, jsonPath; the object unchanged, unknown nested keys included.
    let crd =
        green.get("CustomResourceDefinition.apiextensions.k8s.io//mailroutes.mail.example.com");
    let version = &crd["spec"]["versions"][0];
    assert_eq!(version["name"], "v1alpha1");
    let schema = &version["schema"]["openAPIV3Schema"];
    assert_eq!(
        (
            &schema["type"],
            &schema["x-kubernetes-preserve-unknown-fields"]
        ),
        (&json!("object"), &json!(true))
    );
    assert_eq!(
        version["additionalPrinterColumns"][0]["jsonPath"],
        ".spec.target"
    );
    let route = green.get("MailRoute.mail.example.com/mail/inbound");
    assert_eq!(
        route["spec"],
        json!({"target": "smtp.example.org", "x-legacy": {"weights": [3, 1], "note": "keep me"}})
    );

    // 10: not before its backend stands.
    green.has_not(
        "ValidatingWebhookConfiguration.admissionregistration.k8s.io//team-a-ingress-admission",
    );

    // 11: refused while both share one account.
    green.has_not("Deployment.apps/media/thumbs");
    green.has_not("CronJob.batch/media/billing-export");

    // 12: without kiam's permission; labels and the owner stay.
    let ns = green.get("Namespace.//payments-prod");
    assert_eq!(ns["metadata"]["labels"]["environment"], "production");
    assert_eq!(
        ns["metadata"]["annotations"]["owner"],
        "payments@example.com"
    );
    assert!(
        ns["metadata"]["annotations"]
            .get("iam.amazonaws.com/permitted")
            .is_none(),
        "{ns}"
    );

    // 13: headless stays headless and says what the annotation said; the other one gets an address of green's range.
    let headless = green.get("Service./coordination/zk-hs");
    assert_eq!(headless["spec"]["clusterIP"], "None");
    assert_eq!(headless["spec"]["publishNotReadyAddresses"], true);
    let of_green = |service: &Value| {
        let ip = service["spec"]["clusterIP"].as_str().unwrap_or_default();
        assert!(ip.starts_with("10.100."), "{service}");
    };
    of_green(green.get("Service./coordination/zk"));

    // 14: only the declared port is kept.
    let admin = green.get("Service./basket/basket-admin");
    assert_eq!(admin["spec"]["ports"][0]["nodePort"], 32555);
    let web = green.get("Service./basket/basket-web");
    assert_eq!(web["spec"]["type"], "NodePort");
    assert_ne!(web["spec"]["ports"][0]["nodePort"], 31877);
    let edge = green.get("Service./basket/basket-edge");
    assert_eq!(edge["spec"]["externalTrafficPolicy"], "Local");
    assert_ne!(edge["spec"]["healthCheckNodePort"], 30591);
    assert_ne!(edge["spec"]["ports"][0]["nodePort"], 30442);
    for service in [admin, web, edge] {
        of_green(service);
    }

    // 15: every attribute of the load balancer kept; address, node port and status are green's own.
    let docs = green.get("Service./docs-prod/web");
    let header = documents(&file("15"));
    for (key, value) in header[0]["metadata"]["annotations"].as_object().unwrap() {
        if key.starts_with("service.beta.kubernetes.io/") {
            assert_eq!(&docs["metadata"]["annotations"][key], value, "{key}");
        }
    }
    of_green(docs);
    assert_ne!(docs["spec"]["ports"][0]["nodePort"], 32001);
    assert!(!docs["status"].to_string().contains("ab12-987"), "{docs}");

    // 16: CSI with the bare volume id, the zone in today's words, no uid of blue's claim, kept whatever happens.
    let volume = green.get("PersistentVolume.//pvc-2131c99a-5c2a-472f-aee8-000000000001");
    assert_eq!(volume["spec"]["csi"]["driver"], "ebs.csi.aws.com");
    assert_eq!(
        volume["spec"]["csi"]["volumeHandle"],
        "vol-0abc12de34f567890"
    );
    assert_eq!(
        volume.pointer("/spec/nodeAffinity/required/nodeSelectorTerms/0/matchExpressions"),
        Some(
            &json!([{"key": "topology.ebs.csi.aws.com/zone", "operator": "In", "values": ["us-east-1c"]}])
        )
    );
    let claim = &volume["spec"]["claimRef"];
    assert_eq!(
        (&claim["namespace"], &claim["name"]),
        (&json!("grader"), &json!("backend-data"))
    );
    assert!(
        claim.get("uid").is_none() && claim.get("resourceVersion").is_none(),
        "{claim}"
    );
    assert_eq!(volume["spec"]["persistentVolumeReclaimPolicy"], "Retain");

    // 17: compared, not overwritten; one default class.
    green.has_not("StorageClass.storage.k8s.io//gp2");
    let defaults: Vec<&String> = green
        .0
        .iter()
        .filter(|(name, o)| {
            name.starts_with("StorageClass.")
                && o["metadata"]["annotations"]["storageclass.kubernetes.io/is-default-class"]
                    == "true"
        })
        .map(|(name, _)| name)
        .collect();
    assert_eq!(defaults.len(), 1, "{defaults:?}");

    // 18: hand-written endpoints are replayed, the server-made ones are green's own.
    let endpoints = green.get("Endpoints./shop/legacy-db");
    assert_eq!(
        endpoints["subsets"],
        json!([{"addresses": [{"ip": "198.51.100.21"}, {"ip": "198.51.100.22"}], "ports": [{"name": "mysql", "port": 3306, "protocol": "TCP"}]}])
    );
    assert!(
        !green
            .0
            .get("Endpoints./shop/web")
            .is_some_and(|e| e.to_string().contains("100.96.4.17"))
    );

    // 19: all three.
    for (name, points) in [
        ("api-classic", "api.classic.example.org"),
        ("files", "internal-files-1733.eu-west-1.elb.amazonaws.com"),
        ("auth", "auth.identity.svc.blue.example.com"),
    ] {
        let service = green.get(&format!("Service./gateway/{name}"));
        assert_eq!(service["spec"]["externalName"], points);
    }

    // 20: there, while nothing on green writes DNS: its ExternalDNS starts in the cutover.
    green.get("DNSEndpoint.externaldns.k8s.io/tenant-1/tenant-1");
    let writers = green
        .0
        .iter()
        .filter(|(name, o)| name.contains("external-dns") && o["kind"] == "Deployment");
    for (name, writer) in writers {
        assert_eq!(writer["spec"]["replicas"], 0, "{name} writes DNS already");
    }

    // 21: the account without its token, with its pull secret.
    let account = green.get("ServiceAccount./payments-prod/ci-deployer");
    assert!(account.get("secrets").is_none(), "{account}");
    assert_eq!(
        account["imagePullSecrets"],
        json!([{"name": "registry-login"}])
    );
    green.has_not("Secret./payments-prod/ci-deployer-token-x7k2p");

    // 22: the Secret as it was and before the Certificate, which is v1; no Order.
    let tls = green.get("Secret./callbox-qa/callbox-api-tls");
    assert_eq!(
        (&tls["type"], &tls["data"]["tls.key"]),
        (&json!("kubernetes.io/tls"), &json!("UExBQ0VIT0xERVI="))
    );
    let certificate = green.get("Certificate.cert-manager.io/callbox-qa/callbox-api-qa");
    assert_eq!(certificate["apiVersion"], "cert-manager.io/v1");
    assert_eq!(
        certificate["spec"]["privateKey"],
        json!({"algorithm": "RSA", "size": 2048})
    );
    assert!(
        certificate["spec"].get("keyAlgorithm").is_none()
            && certificate["spec"].get("keySize").is_none()
    );
    green.has_not("Order.acme.cert-manager.io/callbox-qa/callbox-api-qa-4171");
    let created = |resource: &str, name: &str| {
        let at = audit.iter().position(|e| {
            is_write(e) && e["objectRef"]["resource"] == resource && e["objectRef"]["name"] == name
        });
        at.unwrap_or_else(|| panic!("{resource} {name} was never created"))
    };
    assert!(created("secrets", "callbox-api-tls") < created("certificates", "callbox-api-qa"));
    // 09 again: the definition first.
    assert!(
        created("customresourcedefinitions", "mailroutes.mail.example.com")
            < created("mailroutes", "inbound")
    );
    // 18 again, velero#6280: the Service before its hand-written Endpoints.
    assert!(created("services", "legacy-db") < created("endpoints", "legacy-db"));

    // 23: replayed as they are.
    let header = documents(&file("23"));
    let imds = green.get("NetworkPolicy.networking.k8s.io/shop/block-metadata");
    assert_eq!(imds["spec"], header[0]["spec"]);
    let overlay = green.get("NetworkPolicy.networking.k8s.io/shop/allow-overlay");
    assert_eq!(
        overlay["spec"]["ingress"][0]["from"],
        header[1]["spec"]["ingress"][0]["from"]
    );

    // 24: never a budget that guards every pod: read as v1, blue says with a marker that it guards none (replay.md 51), and that is kept.
    if let Some(all) = green.0.get("PodDisruptionBudget.policy/shop/everything") {
        assert_eq!(
            all["spec"]["selector"],
            json!({"matchExpressions": [{"key": "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match", "operator": "Exists"}]})
        );
    }
    let budget = green.get("PodDisruptionBudget.policy/shop/cache");
    assert_eq!(budget["apiVersion"], "policy/v1");
    assert_eq!(
        budget["spec"]["selector"],
        json!({"matchLabels": {"app": "cache"}})
    );
    assert_eq!(
        green.get("Deployment.apps/shop/cache")["spec"]["replicas"],
        0
    );

    // 25: never the old one; green's own writes nothing of anybody's and does not run yet.
    let external: Vec<&Value> = green
        .0
        .iter()
        .filter(|(name, o)| {
            name.starts_with("Deployment.") && o.to_string().contains("external-dns")
        })
        .map(|(_, o)| o)
        .collect();
    assert_eq!(external.len(), 1, "{external:?}");
    let own = &external[0]["spec"];
    let args = own["template"]["spec"]["containers"][0]["args"].to_string();
    assert!(!args.contains("--policy=sync"), "{args}");
    for flag in [
        "--policy=upsert-only",
        "--txt-owner-id=",
        "--annotation-prefix=",
    ] {
        assert!(args.contains(flag), "{flag} in {args}");
    }
    assert_eq!(own["replicas"], 0);

    // The canaries came whole: from server to server, by nobody else's hand.
    for secret in secrets() {
        let name = secret["metadata"]["name"].as_str().unwrap();
        assert_eq!(
            green.get(&format!("Secret./shop/{name}"))["data"],
            secret["data"]
        );
    }
}

/// 02, 03 and 04: planned from dumps, and what the plan wants taken by the real server to the last field.
async fn from_files(it: &Move, green: &kube::Client) {
    let files: Vec<String> = FROM_FILES.map(|n| file(n).display().to_string()).to_vec();
    let out = it.dir.path().join("dumped");
    let mut command = it.command(Path::new(env!("CARGO_BIN_EXE_crossfade")), "work");
    command
        .args(["discover", "--from-files"])
        .args(&files)
        .arg("--out")
        .arg(&out);
    it.spawn(command).end().await.expect(0);
    let plan = it.dir.path().join("dumped.json");
    let mut command = it.command(Path::new(env!("CARGO_BIN_EXE_crossfade")), "work");
    command
        .args(["plan", "--snapshot"])
        .arg(&out)
        .arg("--out")
        .arg(&plan);
    // Blocked, by right: docker's paths and data that nobody moved.
    it.spawn(command).end().await.expect(3);
    let plan = crossfade::plan::load(&plan).unwrap();
    let target = |name: &str| {
        let verdict = plan.verdicts.get(name).unwrap();
        verdict
            .and_then(|v| v.target.clone())
            .unwrap_or_else(|| panic!("no target of {name}"))
    };
    let mut objects = vec![
        target("deployment/edge/to-https"),
        target("daemonset/logging/logship"),
        target("statefulset/coordination/zk"),
    ];
    let namespaces: Vec<Value> = ["edge", "logging"]
        .map(|ns| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ns}}))
        .to_vec();
    writer::create_in_order(green, &namespaces).await;
    let [deployment, daemon_set, stateful_set] = writer::create_strictly(green, &objects)
        .await
        .try_into()
        .unwrap();

    // 02: a selector like the template's labels, the old defaults written out; parked.
    let spec = &Value::clone(&deployment)["spec"];
    assert_eq!(
        spec["selector"]["matchLabels"],
        json!({"app": "to-https", "tier": "edge"})
    );
    assert_eq!(
        spec["strategy"]["rollingUpdate"],
        json!({"maxSurge": 1, "maxUnavailable": 1})
    );
    assert_eq!(spec["progressDeadlineSeconds"], 2147483647);
    assert_eq!(spec["replicas"], 0);
    // 03
    let spec = &Value::clone(&daemon_set)["spec"];
    assert_eq!(spec["updateStrategy"]["type"], "OnDelete");
    assert_eq!(spec["selector"]["matchLabels"], json!({"app": "logship"}));
    // 04
    let spec = &Value::clone(&stateful_set)["spec"];
    assert_eq!(spec["updateStrategy"]["type"], "OnDelete");
    assert_eq!(
        spec["volumeClaimTemplates"][0]["spec"]["storageClassName"],
        "gp3"
    );
    assert_eq!(spec["podManagementPolicy"], "Parallel");
    assert_eq!(spec["replicas"], 0);

    objects.extend(namespaces);
    writer::delete(green, &objects).await;
}

/// Nothing that the product wrote or said holds a planted value: plain, in base64 at its three alignments, or in hex.
fn no_canary_below(folder: &Path) {
    use base64::Engine;
    let mut forms = vec![CANARY.to_owned()];
    for lead in ["", "x", "xx"] {
        let encoded = base64::engine::general_purpose::STANDARD.encode(format!("{lead}{CANARY}"));
        // The first and the last group mix with what stands around.
        let start = if lead.is_empty() { 0 } else { 4 };
        forms.push(encoded.trim_end_matches('=')[start..encoded.len() - 4].to_owned());
    }
    forms.push(CANARY.bytes().map(|b| format!("{b:02x}")).collect());
    let mut todo = vec![folder.to_owned()];
    let mut files = 0;
    while let Some(folder) = todo.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            if entry.path().is_dir() {
                todo.push(entry.path());
                continue;
            }
            let text = std::fs::read(entry.path()).unwrap();
            let text = String::from_utf8_lossy(&text);
            for form in &forms {
                if let Some(at) = text.find(form.as_str()) {
                    let from = (0..=at.saturating_sub(200))
                        .rev()
                        .find(|i| text.is_char_boundary(*i));
                    panic!(
                        "{} holds {form}: ...{}",
                        entry.path().display(),
                        &text[from.unwrap_or(at)..at + form.len()]
                    );
                }
            }
            files += 1;
        }
    }
    assert!(files > 15, "{files} files looked at");
}
