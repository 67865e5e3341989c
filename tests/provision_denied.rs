//! What a run may do, and what happens when it may not: the printed policy against everything that a provision and its undo need; an explicit
//! deny for each of these actions in turn; an exhausted quota; a name that somebody else took; another account.
//!
//! The AWS SDK takes its endpoint from the environment, so each lane is a process of its own in front of a strict layer of its own (all on one
//! emulator); it asks the outer process to deny and to allow.

mod denied;

use crossfade::engine::Outcome;
use crossfade::error::Kind;
use crossfade::policy::Verb;
use crossfade::world::observe;
use denied::Company;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;
use testkit::TestCa;
use testkit::servers::ministack::{ACCOUNT, MiniStack, REGION};
use testkit::strict::{Config, GreenEndpoint, Strict};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;

/// Names the folder of a lane.
const FOLDER: &str = "CROSSFADE_TEST_FOLDER";
/// Number of the lane.
const LANE: &str = "CROSSFADE_TEST_LANE";
/// Where the outer process listens.
const CONTROL: &str = "CROSSFADE_TEST_CONTROL";
/// Actions to deny, by commas.
const ACTIONS: &str = "CROSSFADE_TEST_ACTIONS";
/// Long enough to be seen as CREATING, short enough to wait for.
const DELAY: Duration = Duration::from_millis(100);
/// Lanes at once.
const LANES: usize = 8;

#[tokio::test(flavor = "multi_thread")]
async fn a_run_needs_what_crossfade_policy_prints_and_each_denial_is_told_and_taken_back() {
    let dir = tempfile::tempdir().unwrap();
    let emulator = MiniStack::start(dir.path())
        .await
        .expect("the emulator starts");
    let ca = TestCa::new().unwrap();
    // First: what is needed at all, that it is what is printed, and that exactly this is enough.
    let used = dir.path().join("0");
    lane(
        &emulator,
        &ca,
        used.clone(),
        0,
        "measured_against_the_table",
        String::new(),
    )
    .await;
    let read = |name: &str| -> Vec<String> {
        serde_json::from_str(&std::fs::read_to_string(used.join(name)).unwrap()).unwrap()
    };
    let (run, discover) = (read("run.json"), read("discover.json"));
    assert!(
        run.len() > 35,
        "a whole provision and undo need many actions: {run:?}"
    );
    // Then every one of them denied, each in its turn, and what is not a denial.
    let mut run = run;
    // Service-linked roles are made with the first cluster: whose right for it is denied must be the first in its account.
    run.sort_by_key(|a| a != "iam:CreateServiceLinkedRole");
    let mut lots: Vec<Vec<String>> = vec![vec![]; LANES];
    for (n, a) in run.iter().enumerate() {
        lots[n % LANES].push(a.clone());
    }
    let mut lanes: Vec<_> = lots
        .iter()
        .enumerate()
        .map(|(n, lot)| {
            let folder = dir.path().join(format!("{}", n + 1));
            lane(
                &emulator,
                &ca,
                folder,
                n + 1,
                "each_denied_in_turn",
                lot.join(","),
            )
        })
        .map(|f| Box::pin(f) as std::pin::Pin<Box<dyn Future<Output = ()>>>)
        .collect();
    let folder = dir.path().join("discover");
    lanes.push(Box::pin(lane(
        &emulator,
        &ca,
        folder,
        LANES + 1,
        "discover_denied_in_turn",
        discover.join(","),
    )));
    let folder = dir.path().join("others");
    lanes.push(Box::pin(lane(
        &emulator,
        &ca,
        folder,
        LANES + 2,
        "refused_for_other_reasons",
        String::new(),
    )));
    futures::future::join_all(lanes).await;
}

/// Runs one inner test in front of a strict layer of its own.
async fn lane(
    emulator: &MiniStack,
    ca: &TestCa,
    folder: PathBuf,
    number: usize,
    test: &str,
    actions: String,
) {
    std::fs::create_dir_all(&folder).unwrap();
    let strict = Strict::start(Config {
        upstream: emulator.endpoint().to_owned(),
        account: ACCOUNT.to_owned(),
        region: REGION.to_owned(),
        insync_delay: DELAY,
        cluster_delay: DELAY,
        nodegroup_delay: DELAY,
        addon_delay: DELAY,
        green: GreenEndpoint {
            url: "https://127.0.0.1:1".into(),
            ca_pem: ca.pem().to_owned(),
        },
        ca: ca.clone(),
    })
    .await
    .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let control = listener.local_addr().unwrap();
    let server = tokio::spawn(obey(listener, strict.clone()));
    let outcome = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", test, "--nocapture"])
        .env(FOLDER, &folder)
        .env(LANE, number.to_string())
        .env(CONTROL, control.to_string())
        .env(ACTIONS, &actions)
        .env("AWS_ENDPOINT_URL", strict.endpoint())
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "test")
        .env("AWS_REGION", REGION)
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env_remove("AWS_PROFILE")
        .env_remove("AWS_SESSION_TOKEN")
        .env_remove("AWS_CA_BUNDLE")
        .env_remove("HTTP_PROXY")
        .env_remove("HTTPS_PROXY")
        .status()
        .await
        .unwrap();
    server.abort();
    assert!(
        outcome.success(),
        "lane {number} ({test}, {actions}) failed, see above"
    );
}

/// Does what a lane asks of its strict layer, a line each.
async fn obey(listener: TcpListener, strict: Strict) {
    while let Ok((stream, _)) = listener.accept().await {
        let mut lines = BufReader::new(stream).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
            let answer = match word {
                "deny" => {
                    strict.deny(rest);
                    Value::Null
                }
                "allow" => {
                    strict.allow_all();
                    Value::Null
                }
                "enforce" => match strict.enforce(serde_json::from_str(rest).unwrap()) {
                    Ok(()) => Value::Null,
                    Err(e) => json!(e.to_string()),
                },
                "forget" => {
                    strict.forget_permissions();
                    Value::Null
                }
                "used" => json!(strict.permissions_used()),
                "quota" => {
                    let (code, value) = rest.split_once(' ').unwrap();
                    strict.quota(code, value.parse().unwrap());
                    Value::Null
                }
                "key" => json!(strict.make_key().await.unwrap()),
                "writes" => json!(strict.calls().iter().filter(|c| c.changed).count()),
                other => panic!("{other}"),
            };
            let text = format!("{answer}\n");
            if lines.get_mut().write_all(text.as_bytes()).await.is_err() {
                break;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by the test above, in the layer's environment"]
async fn measured_against_the_table() {
    let company = Company::new().await;
    let layer = &company.layer;
    let before = company.inventory().await;
    layer.ask("forget").await;
    let (engine, _) = company.engine(&company.plan);
    match engine.forward(None).await {
        Ok(o) if o.name() == "migrated" => {}
        other => panic!("{other:#?}"),
    }
    let mut run = layer.used().await;
    // Discover asks most when there is something to ask about.
    layer.ask("forget").await;
    company.inventory().await;
    let discover = layer.used().await;
    layer.ask("forget").await;
    company.back(&engine, "without a denial").await;
    run.extend(layer.used().await);
    assert_eq!(
        observe::diff(&before, &company.inventory().await),
        Vec::<String>::new()
    );

    same_actions("discover", &company.documents(&[Verb::Discover]), &discover);
    same_actions(
        "run",
        &company.documents(&[Verb::Migrate, Verb::Rollback]),
        &run,
    );
    // Under exactly this, and nothing more, the same run passes, there and back.
    let documents = json!(company.documents(&Verb::ALL));
    assert_eq!(
        layer.ask(&format!("enforce {documents}")).await,
        Value::Null
    );
    company.inventory().await;
    let (engine, _) = company.engine(&company.plan);
    match engine.forward(None).await {
        Ok(o) if o.name() == "migrated" => {}
        other => panic!("under the printed policy: {other:#?}"),
    }
    company.back(&engine, "under the printed policy").await;
    // And it is a fence: what no step needs is refused.
    let e = company
        .cloud
        .delete(
            &serde_json::from_value(
                json!({"type": "role", "name": format!("{}-people", company.green), "trust": {},
            "managedPolicies": [], "inlinePolicies": {}}),
            )
            .unwrap(),
        )
        .await
        .expect_err("somebody else's role");
    assert!(
        e.message.contains("no identity-based policy allows"),
        "{e:?}"
    );
    layer.ask("allow").await;
    assert_eq!(
        observe::diff(&before, &company.inventory().await),
        Vec::<String>::new()
    );

    let folder = PathBuf::from(std::env::var(FOLDER).unwrap());
    let keep = |name: &str, used: &BTreeMap<String, BTreeSet<String>>| {
        let actions: Vec<&String> = used.keys().collect();
        std::fs::write(folder.join(name), serde_json::to_string(&actions).unwrap()).unwrap();
    };
    keep("run.json", &run);
    keep("discover.json", &discover);
}

/// The printed policy and what was needed name the same actions: none is missing, none is too many.
fn same_actions(what: &str, documents: &[Value], used: &BTreeMap<String, BTreeSet<String>>) {
    let printed: BTreeSet<&str> = documents
        .iter()
        .flat_map(|d| d["Statement"].as_array().unwrap())
        .flat_map(|s| match &s["Action"] {
            Value::String(a) => vec![a.as_str()],
            many => many
                .as_array()
                .unwrap()
                .iter()
                .filter_map(Value::as_str)
                .collect(),
        })
        .collect();
    let used: BTreeSet<&str> = used.keys().map(String::as_str).collect();
    let missing: Vec<&&str> = used.difference(&printed).collect();
    let unused: Vec<&&str> = printed
        .difference(&used)
        .filter(|a| {
            // Needs no right at all; zones are the twin's here, so Route 53 is not called.
            // Blue has no instances here whose types could be asked about.
            **a != "sts:GetCallerIdentity"
                && !a.starts_with("route53:")
                && **a != "ec2:DescribeInstanceTypes"
        })
        .collect();
    assert!(
        missing.is_empty() && unused.is_empty(),
        "{what}: needed and not in the table: {missing:?}; in the table and not needed: {unused:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by the test above, in the layer's environment"]
async fn each_denied_in_turn() {
    let company = Company::new().await;
    let before = company.inventory().await;
    for action in std::env::var(ACTIONS)
        .unwrap()
        .split(',')
        .filter(|a| !a.is_empty())
    {
        company.layer.ask(&format!("deny {action}")).await;
        let (engine, journal) = company.engine(&company.plan);
        let there = engine.forward(None).await;
        let mut told = match &there {
            Ok(Outcome::Migrated { .. }) => false,
            Ok(stopped @ Outcome::Stopped { .. }) => {
                says(action, stopped);
                true
            }
            Err(e) => {
                assert_eq!(e.kind, Kind::Unreachable, "{action}: {e:?}");
                assert!(e.message.contains(action), "{action}: {e:?}");
                assert!(e.remedy.contains("crossfade policy"), "{action}: {e:?}");
                true
            }
            other => panic!("{action}: {other:#?}"),
        };
        if !told {
            // Only the way back needs it.
            match engine.rollback(None).await {
                Ok(stopped @ Outcome::Stopped { .. }) => {
                    says(action, &stopped);
                    told = true;
                }
                Ok(o) if o.name() == "stuck" => {
                    let text = format!("{o:?}");
                    assert!(
                        text.contains(action) && text.contains("crossfade policy"),
                        "{action}: {text}"
                    );
                    told = true;
                }
                other => panic!("{action}: {other:#?}"),
            }
        }
        assert!(
            told,
            "{action}: there and back without it, yet it was needed before"
        );
        company.layer.ask("allow").await;
        // Nothing was made that the journal does not know: what it knows is taken back, and nothing is left.
        if journal.state().run.is_some() {
            company.back(&engine, action).await;
        }
        let left = observe::diff(&before, &company.inventory().await);
        assert!(left.is_empty(), "{action}: {left:#?}");
    }
}

/// What, where, why, what next, and the exit code of "a server refused who we are".
fn says(action: &str, outcome: &Outcome) {
    let Outcome::Stopped {
        object,
        why,
        remedy,
        kind,
        ..
    } = outcome
    else {
        panic!("{action}: {outcome:?}");
    };
    assert!(!object.is_empty(), "{action}: {outcome:?}");
    assert!(why.contains(action), "{action}: the action is named: {why}");
    assert!(
        why.contains("arn:aws:")
            || why.contains("resource: *")
            || remedy.contains("arn:aws:")
            || remedy.contains(" on *"),
        "{action}: on what: {why}"
    );
    assert!(remedy.contains("crossfade policy"), "{action}: {remedy}");
    assert_eq!(kind.exit_code(), 69, "{action}: {outcome:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by the test above, in the layer's environment"]
async fn discover_denied_in_turn() {
    let company = Company::new().await;
    for action in std::env::var(ACTIONS)
        .unwrap()
        .split(',')
        .filter(|a| !a.is_empty())
    {
        company.layer.ask(&format!("deny {action}")).await;
        // Either it cannot go on and says why, or it says what was not read: never "there is none".
        let text = match company.cloud.inventory(&company.cluster).await {
            Err(e) => {
                assert!(e.remedy.contains("crossfade policy"), "{action}: {e:?}");
                e.message
            }
            Ok(inventory) => format!("{:?}", inventory.not_read),
        };
        // Of a key whose policy only its administrators may read the plan says itself that it was not read.
        let may_stay_unread = ["kms:GetKeyPolicy", "kms:ListGrants"].contains(&action);
        assert!(text.contains(action) || may_stay_unread, "{action}: {text}");
        company.layer.ask("allow").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by the test above, in the layer's environment"]
async fn refused_for_other_reasons() {
    let company = Company::new().await;
    let before = company.inventory().await;

    // Another account: nothing is written, not even the first step.
    let writes = company.layer.ask("writes").await;
    let mut other = company.plan.clone();
    other.basis.account = Some("999999999999".into());
    other.digest = crossfade::plan::digest_of(&other);
    let e = company
        .engine(&other)
        .0
        .forward(None)
        .await
        .expect_err("the wrong account");
    assert_eq!((e.kind, e.kind.exit_code()), (Kind::StalePlan, 4), "{e:?}");
    assert!(
        e.message.contains("999999999999") && e.message.contains(ACCOUNT),
        "{e:?}"
    );
    assert!(e.remedy.contains("profile"), "{e:?}");
    assert_eq!(company.layer.ask("writes").await, writes);

    // A name that somebody else took since the plan.
    let taken = company
        .plan
        .steps
        .iter()
        .find_map(|s| s.id.strip_prefix("provision/role/"))
        .expect("a role")
        .to_owned();
    let trust = json!({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}]});
    company
        .iam
        .create_role()
        .role_name(&taken)
        .assume_role_policy_document(trust.to_string())
        .send()
        .await
        .unwrap();
    let (engine, _) = company.engine(&company.plan);
    match engine.forward(None).await {
        Ok(Outcome::Stopped {
            object,
            why,
            remedy,
            ..
        }) => {
            assert!(object.contains(&taken), "{object}");
            assert!(why.contains("crossfade did not make it"), "{why}");
            assert!(remedy.contains("green.adopt"), "{remedy}");
        }
        other => panic!("{other:#?}"),
    }
    company.back(&engine, "a name that is taken").await;
    // Theirs it stays.
    company
        .iam
        .get_role()
        .role_name(&taken)
        .send()
        .await
        .expect("still there");
    company
        .iam
        .delete_role()
        .role_name(&taken)
        .send()
        .await
        .unwrap();
    assert_eq!(
        observe::diff(&before, &company.inventory().await),
        Vec::<String>::new()
    );

    // No cluster more in this account (Service Quotas L-1194D53C).
    company.layer.ask("quota L-1194D53C 0").await;
    let (engine, _) = company.engine(&company.plan);
    match engine.forward(None).await {
        Ok(Outcome::Stopped {
            object,
            why,
            remedy,
            ..
        }) => {
            assert_eq!(object, format!("cluster/{}", company.green));
            assert!(why.contains("ResourceLimitExceeded"), "{why}");
            assert!(remedy.to_lowercase().contains("quota"), "{remedy}");
        }
        other => panic!("{other:#?}"),
    }
    company.layer.ask("quota L-1194D53C 100").await;
    company.back(&engine, "an exhausted quota").await;
    assert_eq!(
        observe::diff(&before, &company.inventory().await),
        Vec::<String>::new()
    );
}
