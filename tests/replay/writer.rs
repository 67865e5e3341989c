//! Writes objects to an API server, so many at once: how the tests fill blue, and what the benchmark compares the product with.

use kube::Client;
use kube::core::GroupVersionKind;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A request that creates one object.
pub struct Post {
    pub what: String,
    pub path: String,
    pub body: Vec<u8>,
}

/// How it went.
#[derive(Debug, Default)]
pub struct Pace {
    pub objects: usize,
    pub took: Duration,
    pub p50: Duration,
    pub p99: Duration,
    /// Answers that said "slow down" (429).
    pub throttled: usize,
}

impl Pace {
    /// Objects a second.
    pub fn rate(&self) -> f64 {
        self.objects as f64 / self.took.as_secs_f64().max(1e-9)
    }
}

/// Kinds that others wait for.
fn is_first(object: &Value) -> bool {
    matches!(
        object["kind"].as_str(),
        Some("Namespace" | "CustomResourceDefinition")
    )
}

/// Who writes it. Node ports that no client's last applied configuration has were given by the server: no manager holds them as a wish.
fn manager(object: &Value) -> &'static str {
    let port = |p: &Value| !p["nodePort"].is_null();
    let ports = object["spec"]["ports"].as_array();
    let given = object["kind"] == "Service" && ports.into_iter().flatten().any(port);
    let wished =
        crossfade::object::annotation(object, "kubectl.kubernetes.io/last-applied-configuration")
            .is_some();
    if given && !wished {
        "kube-apiserver"
    } else {
        "bare"
    }
}

/// Where an object is created. A kind whose definition was just created is waited for.
pub async fn post_of(
    client: &Client,
    known: &mut BTreeMap<String, (String, bool)>,
    object: &Value,
) -> Post {
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    let (version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
    let key = format!("{version}/{kind}");
    if !known.contains_key(&key) {
        let (group, v) = version.rsplit_once('/').unwrap_or(("", &version));
        let gvk = GroupVersionKind::gvk(group, v, &kind);
        let start = Instant::now();
        let (resource, capabilities) = loop {
            match kube::discovery::pinned_kind(client, &gvk).await {
                Ok(found) => break found,
                Err(e) => assert!(
                    start.elapsed() < Duration::from_secs(20),
                    "{key} is not served: {e}"
                ),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        let base = if group.is_empty() {
            format!("/api/{v}")
        } else {
            format!("/apis/{version}")
        };
        let namespaced = capabilities.scope == kube::discovery::Scope::Namespaced;
        known.insert(
            key.clone(),
            (format!("{base}\n{}", resource.plural), namespaced),
        );
    }
    let (path, namespaced) = &known[&key];
    let (base, plural) = path.split_once('\n').unwrap_or_default();
    let namespace = object["metadata"]["namespace"]
        .as_str()
        .unwrap_or("default");
    let path = if *namespaced {
        format!("{base}/namespaces/{namespace}/{plural}")
    } else {
        format!("{base}/{plural}")
    };
    Post {
        what: format!(
            "{kind} {namespace}/{}",
            object["metadata"]["name"].as_str().unwrap_or_default()
        ),
        path: format!("{path}?fieldManager={}", manager(object)),
        body: object.to_string().into_bytes(),
    }
}

/// Creates all objects, `width` at once: namespaces and definitions first. `patient` repeats what a young cluster refuses.
pub async fn create_all(client: &Client, objects: &[Value], width: usize, patient: bool) -> Pace {
    let mut known = BTreeMap::new();
    let (first, rest): (Vec<&Value>, Vec<&Value>) = objects.iter().partition(|o| is_first(o));
    let start = Instant::now();
    let mut posts = vec![];
    for object in first {
        posts.push(post_of(client, &mut known, object).await);
    }
    let mut pace = send(client, &posts, width, patient).await;
    // What everybody needs is looked up once, in the time that counts: the product does so too.
    let mut posts = vec![];
    for object in rest {
        posts.push(post_of(client, &mut known, object).await);
    }
    let main = send(client, &posts, width, patient).await;
    pace.objects += main.objects;
    pace.took = start.elapsed();
    (pace.p50, pace.p99) = (main.p50, main.p99);
    pace.throttled += main.throttled;
    pace
}

async fn send(client: &Client, posts: &[Post], width: usize, patient: bool) -> Pace {
    let next = AtomicUsize::new(0);
    let throttled = AtomicUsize::new(0);
    let start = Instant::now();
    let workers = (0..width).map(|_| async {
        let mut times = vec![];
        while let Some(post) = posts.get(next.fetch_add(1, Ordering::Relaxed)) {
            let began = Instant::now();
            loop {
                let request = http::Request::post(&post.path)
                    .header("content-type", "application/json")
                    .header("accept", "application/json")
                    .body(kube::client::Body::from(post.body.clone()))
                    .expect("a request");
                let answer = client.send(request).await.expect("an answer");
                let status = answer.status().as_u16();
                let body = http_body_util::BodyExt::collect(answer.into_body())
                    .await
                    .expect("a whole answer")
                    .to_bytes();
                match status {
                    201 => break,
                    // A controller was quicker: it makes this one by itself.
                    409 if patient => break,
                    429 => {
                        throttled.fetch_add(1, Ordering::Relaxed);
                        tokio::time::sleep(Duration::from_secs(1)).await;
                    }
                    // A namespace's service account, a definition's store: there in a moment.
                    403 | 404 | 500 | 503
                        if patient && began.elapsed() < Duration::from_secs(15) =>
                    {
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                    // The definition is served, its store not yet.
                    404 if began.elapsed() < Duration::from_secs(5) => {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                    _ => panic!("{}: {status} {}", post.what, String::from_utf8_lossy(&body)),
                }
            }
            times.push(began.elapsed());
        }
        times
    });
    let mut times: Vec<Duration> = futures::future::join_all(workers)
        .await
        .into_iter()
        .flatten()
        .collect();
    times.sort_unstable();
    let at = |share: usize| {
        times
            .get((times.len() * share / 100).min(times.len().saturating_sub(1)))
            .copied()
            .unwrap_or_default()
    };
    Pace {
        objects: posts.len(),
        took: start.elapsed(),
        p50: at(50),
        p99: at(99),
        throttled: throttled.into_inner(),
    }
}

/// One object at a time, in this order, as somebody applies files.
pub async fn create_in_order(client: &Client, objects: &[Value]) {
    for object in objects {
        create_all(client, std::slice::from_ref(object), 1, true).await;
    }
}

/// One request with a JSON answer; statuses from 300 on are a panic but for those that are allowed.
async fn ask(
    client: &Client,
    method: http::Method,
    path: &str,
    content: &str,
    body: Vec<u8>,
    allowed: &[u16],
) -> Value {
    let request = http::Request::builder()
        .method(method.clone())
        .uri(path)
        .header("content-type", content)
        .header("accept", "application/json")
        .body(kube::client::Body::from(body))
        .expect("a request");
    let answer = client.send(request).await.expect("an answer");
    let status = answer.status().as_u16();
    let body = http_body_util::BodyExt::collect(answer.into_body())
        .await
        .expect("a whole answer")
        .to_bytes();
    assert!(
        status < 300 || allowed.contains(&status),
        "{method} {path}: {status} {}",
        String::from_utf8_lossy(&body)
    );
    serde_json::from_slice(&body).unwrap_or_default()
}

/// Creates objects and refuses to lose a field: what the server does not know is an error (`fieldValidation=Strict`).
pub async fn create_strictly(client: &Client, objects: &[Value]) -> Vec<Value> {
    let mut known = BTreeMap::new();
    let mut made = vec![];
    for object in objects {
        let post = post_of(client, &mut known, object).await;
        let path = format!("{}&fieldValidation=Strict", post.path);
        made.push(
            ask(
                client,
                http::Method::POST,
                &path,
                "application/json",
                post.body,
                &[],
            )
            .await,
        );
    }
    made
}

/// Writes the status of objects through its own door, where the kind has one.
pub async fn set_status(client: &Client, objects: &[Value]) {
    let mut known = BTreeMap::new();
    for object in objects {
        let post = post_of(client, &mut known, object).await;
        let base = post.path.split('?').next().unwrap_or_default();
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let path = format!("{base}/{name}/status");
        let body = serde_json::json!({"status": object["status"]}).to_string();
        let content = "application/merge-patch+json";
        ask(
            client,
            http::Method::PATCH,
            &path,
            content,
            body.into(),
            &[404],
        )
        .await;
    }
}

/// Deletes objects and waits until they are gone.
pub async fn delete(client: &Client, objects: &[Value]) {
    let mut known = BTreeMap::new();
    for object in objects {
        let post = post_of(client, &mut known, object).await;
        let base = post.path.split('?').next().unwrap_or_default();
        let path = format!(
            "{base}/{}",
            object["metadata"]["name"].as_str().unwrap_or_default()
        );
        let json = "application/json";
        ask(client, http::Method::DELETE, &path, json, vec![], &[404]).await;
        let start = Instant::now();
        loop {
            let left = ask(client, http::Method::GET, &path, json, vec![], &[404]).await;
            if left["kind"] == "Status" {
                break;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "{path} stays");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

/// Merges an object over the one of its name.
pub async fn merge(client: &Client, object: &Value) {
    let post = post_of(client, &mut BTreeMap::new(), object).await;
    let base = post.path.split('?').next().unwrap_or_default();
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let path = format!("{base}/{name}");
    let content = "application/merge-patch+json";
    ask(client, http::Method::PATCH, &path, content, post.body, &[]).await;
}
