//! A private API server, reached through a proxy, an SSH bastion and an SSM session: a real kube-apiserver whose name only the far side resolves.

use crossfade::error::Kind;
use crossfade::spec::model::Spec;
use crossfade::world::{Class, World, live};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use testkit::TestCa;
use testkit::far::programs::{Programs, lives};
use testkit::far::{HttpProxy, Names, SocksProxy};
use testkit::servers::etcd::Etcd;
use testkit::servers::kube::{ControlPlane, Options, Side, User};
use testkit::servers::ports::Port;

/// In the server's certificate, and known to no resolver of this machine.
const NAME: &str = "kubernetes.default.svc";
const TARGET: &str = "kubernetes.default.svc:6443";

struct Private {
    dir: tempfile::TempDir,
    address: SocketAddr,
    kubeconfig: String,
    url: String,
    _plane: ControlPlane,
    _etcd: Etcd,
}

impl Private {
    async fn start() -> Private {
        let dir = tempfile::tempdir().unwrap();
        let etcd = Etcd::start(dir.path()).await.expect("etcd");
        let ca = TestCa::new().unwrap();
        let port = Port::reserve().expect("a port");
        let address = SocketAddr::from(([127, 0, 0, 1], port.number()));
        let plane = ControlPlane::start(Options {
            side: Side::Blue,
            dir: dir.path(),
            etcd: &etcd,
            port,
            ca,
            token_webhook: None,
        })
        .await
        .expect("an API server");
        Private {
            address,
            kubeconfig: std::fs::read_to_string(plane.kubeconfig(User::Bench)).unwrap(),
            url: plane.url().to_owned(),
            _plane: plane,
            _etcd: etcd,
            dir,
        }
    }

    fn names(&self) -> Names {
        Names::default()
            .with(TARGET, self.address)
            .with("blue.internal:6443", self.address)
    }

    /// The world of a spec with this way to blue, whose kubeconfig names the server as the far side does.
    fn world(
        &self,
        host: &str,
        way: Value,
        proxy_url: Option<&str>,
    ) -> crossfade::error::Result<World> {
        let line = proxy_url.map_or(String::new(), |p| format!("\n    proxy-url: {p}"));
        let text = self
            .kubeconfig
            .replace(&self.url, &format!("https://{host}:6443{line}"));
        let context = text
            .lines()
            .find_map(|l| l.strip_prefix("current-context: "))
            .unwrap()
            .to_owned();
        // Several worlds at once: each has a file of its own.
        let file = format!(
            "kubeconfig-{}",
            crossfade::object::sha256_hex(format!("{text}{way}"))
        );
        std::fs::write(self.dir.path().join(&file), text).unwrap();
        let mut spec = json!({
            "apiVersion": "crossfade.dev/v1alpha1", "kind": "Migration", "name": "shop",
            "blue": {"cluster": "shop.test", "kubeconfig": file, "context": context},
            "green": {"name": "shop-green"},
        });
        if !way.is_null() {
            spec["connections"] = json!({"blue": way});
        }
        let spec: Spec = serde_json::from_value(spec).unwrap();
        live::connect(&spec, self.dir.path())
    }
}

/// The program of the bench beside this test's own.
fn bench() -> PathBuf {
    let me = std::env::current_exe().unwrap();
    let path = me
        .parent()
        .and_then(Path::parent)
        .unwrap()
        .join("crossfade-bench");
    assert!(
        path.is_file(),
        "{} is not built: cargo build --workspace",
        path.display()
    );
    path
}

async fn until(what: &str, done: impl Fn() -> bool) {
    for _ in 0..100 {
        if done() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_api_server_is_reached_through_whatever_leads_to_it() {
    let private = Private::start().await;
    through_an_http_proxy(&private).await;
    through_a_socks_proxy(&private).await;
    the_certificate_is_checked_against_the_real_name(&private).await;
    through_a_bastion(&private).await;
    through_an_ssm_session(&private).await;
    a_program_that_is_not_there_is_said_before_anything_is_asked(&private);
}

async fn through_an_http_proxy(private: &Private) {
    let proxy = HttpProxy::start(private.names(), None).await.unwrap();
    let world = private
        .world(NAME, json!({"proxy": proxy.url()}), None)
        .unwrap();
    assert_eq!(world.blue.version().await.unwrap().minor, 21);
    assert!(!world.blue.identity().await.unwrap().uid.is_empty());
    // The name went to the proxy as it is: nobody here resolved it.
    assert_eq!(proxy.asked().first().map(String::as_str), Some(TARGET));

    let nowhere = HttpProxy::start(Names::default(), None).await.unwrap();
    let world = private
        .world(NAME, json!({"proxy": nowhere.url()}), None)
        .unwrap();
    let e = world.blue.version().await.unwrap_err();
    assert_eq!(e.class, Class::Unreachable, "{e:?}");
    assert!(
        e.message.contains("502 Bad Gateway") && e.message.contains(TARGET),
        "{e:?}"
    );
    assert!(e.remedy.contains("resolves and reaches"), "{e:?}");

    // A password that the kubeconfig holds, right and wrong. It is in no message.
    let closed = HttpProxy::start(private.names(), Some("ops:hunter2"))
        .await
        .unwrap();
    let with = |word: &str| {
        closed
            .url()
            .replace("http://", &format!("http://ops:{word}@"))
    };
    let world = private
        .world(NAME, Value::Null, Some(&with("hunter2")))
        .unwrap();
    assert_eq!(world.blue.version().await.unwrap().minor, 21);
    let world = private
        .world(NAME, Value::Null, Some(&with("hunter3")))
        .unwrap();
    let e = world.blue.version().await.unwrap_err();
    assert_eq!(e.class, Class::Unauthorized, "{e:?}");
    assert!(
        e.message.contains("407") && !format!("{e:?}").contains("hunter"),
        "{e:?}"
    );

    let url = closed.url();
    drop(closed);
    let world = private.world(NAME, json!({"proxy": url}), None).unwrap();
    let e = world.blue.version().await.unwrap_err();
    assert_eq!(
        e.class,
        Class::Unreachable,
        "a proxy that is away may come back: {e:?}"
    );
    assert!(e.message.contains("cannot be reached"), "{e:?}");
}

async fn through_a_socks_proxy(private: &Private) {
    let proxy = SocksProxy::start(private.names(), None).await.unwrap();
    let world = private
        .world(NAME, json!({"proxy": proxy.url()}), None)
        .unwrap();
    assert_eq!(world.blue.version().await.unwrap().minor, 21);
    assert_eq!(proxy.asked().first().map(String::as_str), Some(TARGET));

    let nowhere = SocksProxy::start(Names::default(), None).await.unwrap();
    let world = private
        .world(NAME, json!({"proxy": nowhere.url()}), None)
        .unwrap();
    let e = world.blue.version().await.unwrap_err();
    assert_eq!(e.class, Class::Unreachable, "{e:?}");
    assert!(e.message.contains("a name that it does not know"), "{e:?}");

    let closed = SocksProxy::start(private.names(), Some("ops:hunter2"))
        .await
        .unwrap();
    let with = |word: &str| {
        closed
            .url()
            .replace("socks5://", &format!("socks5://ops:{word}@"))
    };
    let world = private
        .world(NAME, Value::Null, Some(&with("hunter2")))
        .unwrap();
    assert_eq!(world.blue.version().await.unwrap().minor, 21);
    let world = private
        .world(NAME, Value::Null, Some(&with("hunter3")))
        .unwrap();
    let e = world.blue.version().await.unwrap_err();
    assert_eq!(e.class, Class::Unauthorized, "{e:?}");
}

async fn the_certificate_is_checked_against_the_real_name(private: &Private) {
    let proxy = HttpProxy::start(private.names(), None).await.unwrap();
    // The same server by a name that its certificate does not carry.
    let world = private
        .world("blue.internal", json!({"proxy": proxy.url()}), None)
        .unwrap();
    let e = world.blue.version().await.unwrap_err();
    assert_eq!(e.class, Class::Unauthorized, "{e:?}");
    assert!(e.message.contains("certificate"), "{e:?}");
    let way = json!({"proxy": proxy.url(), "tlsServerName": NAME});
    let world = private.world("blue.internal", way, None).unwrap();
    assert_eq!(world.blue.version().await.unwrap().minor, 21);
}

async fn through_a_bastion(private: &Private) {
    let dir = private.dir.path().join("ssh programs");
    let mut programs = Programs::write(&dir, &bench(), private.names()).unwrap();
    let way = json!({"ssh": {"host": "ops@bastion.test", "program": programs.path("ssh"), "options": ["-J", "jump.test"]}});
    let world = private.world(NAME, way.clone(), None).unwrap();
    assert!(
        programs.starts().is_empty(),
        "nothing is started before it is needed"
    );
    assert_eq!(world.blue.version().await.unwrap().minor, 21);
    assert!(!world.blue.identity().await.unwrap().uid.is_empty());
    let starts = programs.starts();
    assert_eq!(starts.len(), 1, "{starts:?}");
    let words = &starts[0].1;
    assert!(
        words.contains(&format!(":{TARGET} -- ops@bastion.test")),
        "{words}"
    );
    assert!(words.contains("-J jump.test"), "{words}");

    // It dies in the middle of a run: that call may fail, as one whose line broke, and the next goes through a new one.
    let first = starts[0].0;
    kill(first);
    until("the program ends", || !lives(first)).await;
    let mut answered = false;
    for _ in 0..3 {
        match world.blue.version().await {
            Ok(_) => {
                answered = true;
                break;
            }
            Err(e) => assert_eq!(e.class, Class::Unreachable, "{e:?}"),
        }
    }
    assert!(answered, "it is started again");
    let starts = programs.starts();
    assert_eq!(starts.len(), 2, "{starts:?}");

    // A bastion that refuses the key: repeating does not help, its words and what to do are said.
    programs
        .refuse(Some("ops@bastion.test: Permission denied (publickey)."))
        .unwrap();
    let refused = private.world(NAME, way.clone(), None).unwrap();
    let e = refused.blue.version().await.unwrap_err();
    assert_eq!(e.class, Class::Unauthorized, "{e:?}");
    assert!(e.message.contains("Permission denied (publickey)"), "{e:?}");
    assert!(e.message.contains("ops@bastion.test"), "{e:?}");
    assert!(e.remedy.contains("ssh.identityFile"), "{e:?}");
    // One that does not answer may yet.
    programs
        .refuse(Some(
            "ssh: connect to host bastion.test port 22: Connection timed out",
        ))
        .unwrap();
    let away = private.world(NAME, way.clone(), None).unwrap();
    let e = away.blue.version().await.unwrap_err();
    assert_eq!(e.class, Class::Unreachable, "{e:?}");
    assert!(e.remedy.contains("ops@bastion.test true"), "{e:?}");
    programs.refuse(None).unwrap();

    // The far side does not know the server: only the program says so.
    let blind = private.world("unknown.internal", way, None).unwrap();
    let e = blind.blue.version().await.unwrap_err();
    assert_eq!(e.class, Class::Unreachable, "{e:?}");
    until("its words arrive", || true).await;
    let e = blind.blue.version().await.unwrap_err();
    assert!(e.message.contains("Name or service not known"), "{e:?}");

    let second = starts[1].0;
    assert!(lives(second));
    drop(world);
    until("the tunnel ends with its world", || !lives(second)).await;
}

async fn through_an_ssm_session(private: &Private) {
    let dir = private.dir.path().join("aws programs");
    let mut programs = Programs::write(&dir, &bench(), private.names()).unwrap();
    let way = json!({"ssm": {"target": "i-0123456789abcdef0", "program": programs.path("aws")}});
    let world = private.world(NAME, way.clone(), None).unwrap();
    assert_eq!(world.blue.version().await.unwrap().minor, 21);
    let starts = programs.starts();
    let pids: Vec<u32> = starts.iter().map(|s| s.0).collect();
    assert_eq!(pids.len(), 2, "the CLI and its plugin: {starts:?}");
    assert!(pids.iter().all(|p| lives(*p)));
    drop(world);
    for pid in pids {
        until("the CLI and its plugin end with their world", || {
            !lives(pid)
        })
        .await;
    }
    programs
        .refuse(Some("An error occurred (TargetNotConnected) when calling the StartSession operation: i-0123456789abcdef0 is not connected."))
        .unwrap();
    let world = private.world(NAME, way, None).unwrap();
    let e = world.blue.version().await.unwrap_err();
    assert_eq!(e.class, Class::Unreachable, "{e:?}");
    assert!(e.remedy.contains("SSM agent"), "{e:?}");
}

fn a_program_that_is_not_there_is_said_before_anything_is_asked(private: &Private) {
    let way = json!({"ssh": {"host": "bastion.test", "program": "crossfade-no-such-program"}});
    let e = private.world(NAME, way, None).err().expect("refused");
    assert_eq!(e.kind, Kind::BadInput);
    assert!(e.message.contains("crossfade-no-such-program"), "{e:?}");
    assert!(e.at.contains("connections.blue.ssh"), "{e:?}");
}

fn kill(pid: u32) {
    let done = std::process::Command::new("kill")
        .arg(pid.to_string())
        .status()
        .unwrap();
    assert!(done.success());
}
