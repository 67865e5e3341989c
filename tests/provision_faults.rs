//! Every call of a provision and of its undo, with every way in which a call can go wrong: throttled, HTTP 500, the answer lost after
//! it took effect, the process killed right after it took effect. Each ends complete after a resume, and clean after a rollback.
//!
//! The table is made from the call log of an undisturbed run on the strict AWS layer, so no call is left out. "Killed" is the
//! engine dropped at that call, with nothing written after it; the next process reads the journal anew.

mod lane;

use crossfade::engine::Outcome;
use crossfade::journal::Record;
use crossfade::world::cloud::left;
use lane::{Admin, BACK_AT_ONCE, Calls, Lane, Row, account, folder, in_its_own_process};
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use testkit::strict::{Fails, FaultKind};

/// Works on the table at the same time.
const LANES: usize = 6;

/// The ways in which a call goes wrong.
const WAYS: [(&str, FaultKind); 4] = [
    ("throttled", FaultKind::Throttle),
    ("500", FaultKind::Error500),
    ("reply lost", FaultKind::LostReply),
    ("killed after it", FaultKind::NoAnswer),
];

#[tokio::test]
async fn every_call_of_provision_and_undo_may_fail_in_every_way() {
    in_its_own_process("the_table").await;
}

#[tokio::test]
async fn what_chance_and_other_people_do_to_a_provision_is_waited_for_cured_or_named() {
    in_its_own_process("people_and_chance").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "run by the test above, in a process with an AWS configuration of its own"]
async fn the_table() {
    let folder = folder();
    let (_emulator, strict) = account(&folder, LANES).await;
    let admin = Admin::new().await;
    let mut lanes = vec![];
    for n in 0..LANES {
        lanes.push(Lane::new(&admin, &strict, &folder, n, true).await);
    }

    // As it is once all companies stand in it.
    for lane in &mut lanes {
        lane.account = lane.account_now(&admin, &folder).await;
    }

    // The undisturbed run says which calls there are; the steps of another lane are the same but for its number.
    let (there, back) = lanes[0].undisturbed().await;
    let all: Vec<&String> = there.values().flatten().collect();
    for changing in [
        "iam:CreateRole",
        "eks:CreateCluster",
        "eks:CreateNodegroup",
        "eks:CreateAddon",
        "eks:CreateAccessEntry",
        "iam:CreateOpenIDConnectProvider",
        "iam:UpdateAssumeRolePolicy",
        "ec2:CreateLaunchTemplate",
        "ec2:AuthorizeSecurityGroupIngress",
        "ec2:CreateTags",
    ] {
        assert!(
            all.iter().any(|a| *a == changing),
            "{changing} is not in the table: {all:?}"
        );
    }
    // One way there and back serves many rows: the n-th call of every step, there and back.
    let column = |calls: &Calls, nth: usize, (way, kind): (&'static str, FaultKind)| -> Vec<Row> {
        let of = calls.iter().filter_map(|(step, list)| {
            Some(Row {
                step: step.clone(),
                nth,
                action: list.get(nth - 1)?.clone(),
                way,
                kind,
            })
        });
        of.collect()
    };
    let longest = there
        .values()
        .chain(back.values())
        .map(Vec::len)
        .max()
        .unwrap_or(0);
    let mut queue: VecDeque<(Vec<Row>, Vec<Row>)> = VecDeque::new();
    for way in WAYS {
        for nth in 1..=longest {
            queue.push_back((column(&there, nth, way), column(&back, nth, way)));
        }
    }
    // Taken back at once: a process that was killed after a call that changed something.
    for (step, list) in &there {
        for (i, action) in list.iter().enumerate() {
            let reads = ["Get", "List", "Describe"]
                .iter()
                .any(|r| action.contains(&format!(":{r}")));
            if !reads {
                let row = Row {
                    step: step.clone(),
                    nth: i + 1,
                    action: action.clone(),
                    way: BACK_AT_ONCE,
                    kind: FaultKind::NoAnswer,
                };
                queue.push_back((vec![row], vec![]));
            }
        }
    }
    let size: usize = queue.iter().map(|(a, b)| a.len() + b.len()).sum();
    let calls = |c: &Calls| c.values().map(Vec::len).sum::<usize>();
    assert!(
        size >= WAYS.len() * (calls(&there) + calls(&back)),
        "a call was left out"
    );
    let cases = queue.len();
    println!(
        "{size} rows: {} calls of {} steps there, {} back, {} ways each, and {} kills that are taken back at once; {cases} runs",
        calls(&there),
        there.len(),
        calls(&back),
        WAYS.len(),
        size - WAYS.len() * (calls(&there) + calls(&back)),
    );
    let queue = Arc::new(Mutex::new(queue));
    let wrong = Arc::new(Mutex::new(Vec::<String>::new()));
    let started = Instant::now();
    let order: Arc<Vec<String>> =
        Arc::new(lanes[0].plan.steps.iter().map(|s| s.id.clone()).collect());
    let work = lanes.into_iter().map(|mut lane| {
        let (queue, wrong, order) = (queue.clone(), wrong.clone(), order.clone());
        async move {
            loop {
                let next = queue.lock().unwrap().pop_front();
                let Some((there, back)) = next else { break };
                let case = format!("{there:?} {back:?}");
                let own = |rows: Vec<Row>| -> Vec<Row> {
                    let mine = |mut r: Row| {
                        if let Some(at) = order.iter().position(|id| *id == r.step) {
                            r.step = lane.plan.steps[at].id.clone();
                        }
                        r
                    };
                    rows.into_iter().map(mine).collect()
                };
                let (there, back) = (own(there), own(back));
                let began = Instant::now();
                if let Err(why) = lane.case(there, back).await {
                    wrong
                        .lock()
                        .unwrap()
                        .push(format!("{}: {case}\n    {why}", lane.green));
                    // What is left of this case would fail the next ones.
                    break;
                }
                let took = began.elapsed();
                if took > Duration::from_secs(10) {
                    println!(
                        "{}: {took:?} for {}",
                        lane.green,
                        &case[..case.len().min(200)]
                    );
                }
            }
            lane
        }
    });
    let lanes = futures::future::join_all(work).await;
    let wrong = std::mem::take(&mut *wrong.lock().unwrap());
    println!("{cases} runs in {:.0} s", started.elapsed().as_secs_f32());
    assert!(
        wrong.is_empty(),
        "{} of {cases} runs went wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(queue.lock().unwrap().is_empty(), "rows were left out");
    for lane in &lanes {
        let now = lane.account_now(&admin, &folder).await;
        assert_eq!(
            left::diff(&lane.account, &now),
            Vec::<String>::new(),
            "{}",
            lane.green
        );
    }
}

/// What an outcome that is no success says: where and why.
fn told(outcome: Outcome) -> (String, String) {
    match outcome {
        Outcome::Stopped {
            object,
            why,
            remedy,
            ..
        } => (object, format!("{why} / {remedy}")),
        Outcome::Stuck { stuck, .. } => (
            stuck.object,
            format!("{} / {}", stuck.found, stuck.expected),
        ),
        other => panic!("{other:?}"),
    }
}

async fn forward(lane: &Lane) -> Outcome {
    lane.engine().forward(None).await.unwrap()
}

async fn back(lane: &Lane) -> Outcome {
    lane.engine().rollback(None).await.unwrap()
}

/// Progress records of a kind.
fn marks(lane: &Lane, kind: &str) -> Vec<Value> {
    let entries = lane.journal.entries();
    entries
        .into_iter()
        .filter_map(|e| match e.record {
            Record::Progress { data, .. } => data.get(kind).cloned(),
            _ => None,
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by the test above, in a process with an AWS configuration of its own"]
async fn people_and_chance() {
    let folder = folder();
    let (_emulator, strict) = account(&folder, 1).await;
    let admin = Admin::new().await;
    let mut lane = Lane::new(&admin, &strict, &folder, 0, false).await;

    // IAM spreads a new role slowly (eks.md 1.3): waited for, one line of the journal a try.
    lane.begin();
    strict.iam_delay(Duration::from_millis(1500));
    assert_eq!(forward(&lane).await.name(), "migrated");
    let entries = lane.journal.entries();
    let tries = entries
        .iter()
        .filter(|e| matches!(&e.record, Record::Attempt { .. }))
        .count();
    assert!(tries >= 8, "{tries} tries: more than any other call gets");
    strict.iam_delay(Duration::ZERO);
    assert_eq!(back(&lane).await.name(), "restored");
    lane.is_clean().await.unwrap();

    // What came out FAILED for a reason that may pass is made again, and only one of it is left.
    for (what, code) in [
        (Fails::Cluster, "InternalFailure"),
        (Fails::NodeGroup, "IamNodeRoleNotFound"),
        (Fails::Addon, "AccessDenied"),
    ] {
        lane.begin();
        strict.fail_next(what, "*", code, "as EKS says it");
        assert_eq!(forward(&lane).await.name(), "migrated", "{what:?}");
        let replaced = marks(&lane, "replaced");
        assert_eq!(replaced.len(), 1, "{what:?}: {replaced:?}");
        assert!(
            replaced[0]["why"]
                .as_str()
                .is_some_and(|w| w.contains(code)),
            "{replaced:?}"
        );
        lane.is_complete().await.unwrap();
        assert_eq!(back(&lane).await.name(), "restored", "{what:?}");
        lane.is_clean().await.unwrap();
    }

    // What no repeat heals is told, and made again once a person says go on.
    lane.begin();
    strict.fail_next(
        Fails::NodeGroup,
        "*",
        "InsufficientFreeAddresses",
        "no free addresses",
    );
    let (_, why) = told(forward(&lane).await);
    assert!(
        why.contains("a subnet has no free addresses left (InsufficientFreeAddresses)"),
        "{why}"
    );
    assert_eq!(forward(&lane).await.name(), "migrated");
    lane.is_complete().await.unwrap();
    assert_eq!(back(&lane).await.name(), "restored");

    // A quota that is used up is named.
    lane.begin();
    strict.quota("L-1194D53C", 0);
    let (object, why) = told(forward(&lane).await);
    assert_eq!(object, "cluster/lane-0");
    assert!(
        why.contains("the quota Clusters (eks/L-1194D53C) is used up"),
        "{why}"
    );
    assert!(why.contains("the plan needs 1 more"), "{why}");
    assert!(
        why.contains("--quota-code L-1194D53C --desired-value"),
        "{why}"
    );
    strict.quota("L-1194D53C", 100);
    assert_eq!(forward(&lane).await.name(), "migrated");

    // Others hang things on what the run made, and change what it added: each stops the undo and is named, and stays.
    let mut others = others(&admin, &lane).await;
    let mut named = vec![];
    let seen = loop {
        match back(&lane).await {
            o @ Outcome::Restored { .. } => break o,
            o => {
                let (object, found) = told(o);
                let at = others.iter().position(|t| found.contains(&t.words));
                let at = at.unwrap_or_else(|| panic!("nobody did this: {object}: {found}"));
                let theirs = others.remove(at);
                assert!(object.starts_with(&theirs.on), "{object}: {found}");
                theirs.undo(&admin).await;
                named.push(theirs.words);
            }
        }
    };
    assert_eq!(seen.name(), "restored");
    assert!(
        others.is_empty(),
        "never named: {:?}",
        others.iter().map(|o| &o.words).collect::<Vec<_>>()
    );
    assert_eq!(named.len(), 6, "{named:?}");
    lane.is_clean().await.unwrap();

    // Interfaces of EKS linger: the undo ends when they are gone.
    lane.begin();
    assert_eq!(forward(&lane).await.name(), "migrated");
    strict.eni_linger(Duration::from_secs(2));
    let began = Instant::now();
    assert_eq!(back(&lane).await.name(), "restored");
    assert!(
        began.elapsed() >= Duration::from_secs(2),
        "{:?}",
        began.elapsed()
    );
    let left_over = admin
        .ec2
        .describe_network_interfaces()
        .send()
        .await
        .unwrap();
    assert_eq!(left_over.network_interfaces().len(), 0);

    // Of the run nothing is left; the security group and the role of others are.
    let now = lane.account_now(&admin, &folder).await;
    let lines = left::diff(&lane.account, &now);
    let run = lane.engine().run_id();
    assert_eq!(
        left::of_run(&lines, &run, &lane.green),
        Vec::<&String>::new()
    );
    assert_eq!(lines.len(), 2, "{lines:?}");
}

/// Something that somebody did.
struct Theirs {
    /// The thing of ours that it is on.
    on: String,
    /// With which words the undo names it.
    words: String,
    what: What,
}

enum What {
    Policy {
        role: String,
    },
    Addon {
        cluster: String,
    },
    Rule {
        group: String,
        source: String,
    },
    Tag {
        subnet: String,
        key: String,
        value: String,
    },
    Statement {
        role: String,
        document: String,
    },
    Association {
        cluster: String,
        id: String,
    },
}

const FOREIGN_POLICY: &str = "arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess";

impl Theirs {
    /// Whoever did it takes it back.
    async fn undo(&self, admin: &Admin) {
        match &self.what {
            What::Policy { role } => {
                let detach = admin
                    .iam
                    .detach_role_policy()
                    .role_name(role)
                    .policy_arn(FOREIGN_POLICY);
                detach.send().await.unwrap();
            }
            What::Addon { cluster } => {
                let delete = admin
                    .eks
                    .delete_addon()
                    .cluster_name(cluster)
                    .addon_name("snapshot-controller");
                delete.send().await.unwrap();
            }
            What::Rule { group, source } => {
                let revoke = admin.ec2.revoke_security_group_ingress().group_id(group);
                revoke.ip_permissions(rule(source)).send().await.unwrap();
            }
            What::Tag { subnet, key, value } => {
                set_tag(admin, subnet, key, value).await;
            }
            What::Statement { role, document } => {
                let put = admin.iam.update_assume_role_policy().role_name(role);
                put.policy_document(document).send().await.unwrap();
            }
            What::Association { cluster, id } => {
                let delete = admin
                    .eks
                    .delete_pod_identity_association()
                    .cluster_name(cluster);
                delete.association_id(id).send().await.unwrap();
            }
        }
    }
}

fn rule(source: &str) -> aws_sdk_ec2::types::IpPermission {
    let pair = aws_sdk_ec2::types::UserIdGroupPair::builder()
        .group_id(source)
        .build();
    aws_sdk_ec2::types::IpPermission::builder()
        .ip_protocol("tcp")
        .from_port(6379)
        .to_port(6379)
        .user_id_group_pairs(pair)
        .build()
}

async fn set_tag(admin: &Admin, subnet: &str, key: &str, value: &str) {
    let tag = aws_sdk_ec2::types::Tag::builder()
        .key(key)
        .value(value)
        .build();
    admin
        .ec2
        .create_tags()
        .resources(subnet)
        .tags(tag)
        .send()
        .await
        .unwrap();
}

/// Six people do something each.
async fn others(admin: &Admin, lane: &Lane) -> Vec<Theirs> {
    let green = &lane.green;
    let mut out = vec![];
    let node = format!("{green}-node");
    let attach = admin
        .iam
        .attach_role_policy()
        .role_name(&node)
        .policy_arn(FOREIGN_POLICY);
    attach.send().await.unwrap();
    out.push(Theirs {
        on: format!("role/{node}"),
        words: format!("policy {FOREIGN_POLICY}"),
        what: What::Policy { role: node },
    });

    let addon = admin
        .eks
        .create_addon()
        .cluster_name(green)
        .addon_name("snapshot-controller");
    addon.send().await.unwrap();
    out.push(Theirs {
        on: format!("cluster/{green}"),
        words: "add-on snapshot-controller".into(),
        what: What::Addon {
            cluster: green.clone(),
        },
    });

    let described = admin
        .eks
        .describe_cluster()
        .name(green)
        .send()
        .await
        .unwrap();
    let cluster = described.cluster.unwrap();
    let source = cluster
        .resources_vpc_config
        .and_then(|v| v.cluster_security_group_id)
        .unwrap();
    let cache = admin
        .ec2
        .create_security_group()
        .group_name("cache")
        .description("of the company")
        .vpc_id(&lane.account.vpc.as_ref().unwrap().id)
        .send()
        .await
        .unwrap();
    let group = cache.group_id.unwrap();
    let allow = admin
        .ec2
        .authorize_security_group_ingress()
        .group_id(&group);
    allow.ip_permissions(rule(&source)).send().await.unwrap();
    out.push(Theirs {
        on: format!("cluster/{green}"),
        words: format!("rule of security group {group}"),
        what: What::Rule { group, source },
    });

    let (subnet, key) = (
        lane.subnets[0].clone(),
        format!("kubernetes.io/cluster/{green}"),
    );
    set_tag(admin, &subnet, &key, "owned").await;
    out.push(Theirs {
        on: format!("tag/{subnet}/{key}"),
        words: "another content: owned".into(),
        what: What::Tag {
            subnet,
            key,
            value: "shared".into(),
        },
    });

    let mailer = format!("{green}-mailer");
    let role = admin
        .iam
        .get_role()
        .role_name(&mailer)
        .send()
        .await
        .unwrap();
    let document = role.role.unwrap().assume_role_policy_document.unwrap();
    let document = percent_decoded(&document);
    let changed = document.replace("sts:AssumeRoleWithWebIdentity", "sts:*");
    assert_ne!(document, changed, "our statement is there");
    let put = admin.iam.update_assume_role_policy().role_name(&mailer);
    put.policy_document(changed).send().await.unwrap();
    out.push(Theirs {
        on: format!("trust-statement/{mailer}/"),
        words: "another content: {".into(),
        what: What::Statement {
            role: mailer.clone(),
            document,
        },
    });

    let theirs = "reports".to_string();
    let trust = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"pods.eks.amazonaws.com"},"Action":["sts:AssumeRole","sts:TagSession"]}]}"#;
    let made = admin
        .iam
        .create_role()
        .role_name(&theirs)
        .assume_role_policy_document(trust);
    let arn = made.send().await.unwrap().role.unwrap().arn;
    let association = admin
        .eks
        .create_pod_identity_association()
        .cluster_name(green)
        .namespace("batch")
        .service_account("reports")
        .role_arn(arn)
        .send()
        .await
        .unwrap();
    out.push(Theirs {
        on: format!("cluster/{green}"),
        words: "pod identity association batch/reports".into(),
        what: What::Association {
            cluster: green.clone(),
            id: association
                .association
                .and_then(|a| a.association_id)
                .unwrap(),
        },
    });
    out
}

/// IAM answers its documents percent-encoded.
fn percent_decoded(text: &str) -> String {
    let mut out = vec![];
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        match b {
            b'%' => {
                let hex: Vec<u8> = bytes.by_ref().take(2).collect();
                let hex = String::from_utf8(hex).unwrap();
                out.push(u8::from_str_radix(&hex, 16).unwrap());
            }
            b => out.push(b),
        }
    }
    String::from_utf8(out).unwrap()
}
