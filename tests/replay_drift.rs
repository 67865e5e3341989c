//! Drift on the real servers (blue 1.21, green 1.36): people change blue, and look around on green, between the replay and the freeze.

#[allow(
    dead_code,
    reason = "a part of the bench; the whole is used by bench_shop"
)]
mod bench;

use bench::Shop;
use serde_json::{Value, json};
use testkit::servers::Side;

/// What a person does with kubectl.
struct Person {
    client: kube::Client,
}

impl Person {
    async fn on(shop: &Shop, side: Side) -> Person {
        Person {
            client: shop.bench.control_plane(side).client().await.unwrap(),
        }
    }
    async fn send(&self, method: &str, path: &str, kind: &str, body: Option<&Value>) -> Value {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", kind)
            .body(body.map(|b| b.to_string().into_bytes()).unwrap_or_default())
            .unwrap();
        self.client.request::<Value>(request).await.unwrap()
    }
    async fn edit(&self, path: &str, body: Value) {
        let path = format!("{path}?fieldManager=kubectl-edit");
        let kind = "application/strategic-merge-patch+json";
        self.send("PATCH", &path, kind, Some(&body)).await;
    }
    async fn create(&self, path: &str, body: Value) {
        let path = format!("{path}?fieldManager=kubectl-create");
        self.send("POST", &path, "application/json", Some(&body))
            .await;
    }
    async fn delete(&self, path: &str) {
        self.send("DELETE", path, "application/json", None).await;
    }
    async fn get(&self, path: &str) -> Value {
        self.send("GET", path, "application/json", None).await
    }
    async fn has(&self, path: &str) -> bool {
        let request = http::Request::get(path).body(vec![]).unwrap();
        self.client.request::<Value>(request).await.is_ok()
    }
}

const WEB_CONFIG: &str = "/api/v1/namespaces/storefront/configmaps/web-config";
const ORDERS_CONFIG: &str = "/api/v1/namespaces/orders/configmaps/orders-config";
const ORDERS_DB: &str = "/api/v1/namespaces/orders/secrets/orders-db";
const CONSUMER_CONFIG: &str = "/api/v1/namespaces/platform/configmaps/consumer-config";
const NEW_CONFIG: &str = "/api/v1/namespaces/storefront/configmaps/new-config";
const API: &str = "/apis/apps/v1/namespaces/storefront/deployments/api";
/// `CANARY-rotated`
const ROTATED: &str = "Q0FOQVJZLXJvdGF0ZWQ=";

#[tokio::test(flavor = "multi_thread")]
async fn what_changed_on_blue_is_brought_what_changed_on_green_stays_and_rollback_takes_all_of_it_back()
 {
    let shop = Shop::open().await;
    shop.run(&["discover", "plans/shop"]).await.expect(0);
    shop.run(&["plan", "plans/shop"]).await.expect(2);
    shop.run(&["review", "plans/shop", "--approve", "all"])
        .await
        .expect(0);
    shop.run(&["migrate", "plans/shop", "--to", "provision"])
        .await
        .expect(0);
    let (blue, green) = (
        Person::on(&shop, Side::Blue).await,
        Person::on(&shop, Side::Green).await,
    );

    // Green is there and empty: what can be asked is asked, the rest says why not.
    let asked = shop.run(&["plan", "plans/shop", "--server-dry-run"]).await;
    asked.expect(2);
    assert!(
        asked.text().contains("comes with the replay"),
        "{}",
        asked.text()
    );
    assert!(!green.has("/api/v1/namespaces/storefront").await);

    let early = shop.run(&["replay", "plans/shop"]).await;
    early.expect(4);
    shop.run(&["migrate", "plans/shop", "--to", "replay"])
        .await
        .expect(0);

    // Nobody changed anything: on real servers, with all that their controllers do meanwhile, that is seen as nothing.
    let quiet = shop.run(&["replay", "plans/shop"]).await;
    quiet.expect(0);
    assert!(
        quiet.text().contains("nothing changed on either side"),
        "{}",
        quiet.text()
    );
    let asked = shop.run(&["plan", "plans/shop", "--server-dry-run"]).await;
    asked.expect(2);

    blue.edit(
        WEB_CONFIG,
        json!({"data": {"BANNER": "winter is coming", "API_URL": "http://blue.example"}}),
    )
    .await;
    green
        .edit(
            WEB_CONFIG,
            json!({"data": {"API_URL": "http://green.example"}}),
        )
        .await;
    green
        .edit(ORDERS_CONFIG, json!({"data": {"DATABASE_NAME": "tried"}}))
        .await;
    blue.edit(ORDERS_DB, json!({"data": {"password": ROTATED}}))
        .await;
    let api = blue.get(API).await;
    let container = api["spec"]["template"]["spec"]["containers"][0]["name"].clone();
    blue.edit(API, json!({"spec": {"template": {"spec": {"containers": [{"name": container, "env": [{"name": "DRIFT", "value": "1"}]}]}}}})).await;
    blue.create("/api/v1/namespaces/storefront/configmaps", json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new-config"}, "data": {"a": "1"}})).await;
    blue.delete(CONSUMER_CONFIG).await;

    let seen = shop.run(&["replay", "plans/shop"]).await;
    seen.expect(3);
    for line in [
        "conflict  configmap/storefront/web-config",
        "data.API_URL: \"http://blue.example\" on blue, \"http://green.example\" on green by kubectl-edit",
        "on green  configmap/orders/orders-config",
        "bring     deployment/storefront/api",
        "spec.template.spec.containers[api].env: nothing -> [{\"name\":\"DRIFT\",\"value\":\"1\"}]",
        "bring     secret/orders/orders-db",
        "new       configmap/storefront/new-config",
        "gone      configmap/platform/consumer-config",
    ] {
        assert!(seen.text().contains(line), "{line}\n{}", seen.text());
    }
    assert!(!seen.text().contains(ROTATED) && !seen.text().contains("CANARY"));
    let json = shop.run(&["replay", "plans/shop", "-o", "json"]).await;
    assert!(!json.text().contains(ROTATED) && json.text().contains("\"change\":\"new\""));

    let on_blue = shop.audited_writes(Side::Blue).len();
    let before = green.get(API).await;
    shop.run(&["replay", "plans/shop", "--apply", "--prune"])
        .await
        .expect(3);
    let config = green.get(WEB_CONFIG).await;
    assert_eq!(config["data"]["BANNER"], "winter is coming");
    assert_eq!(config["data"]["API_URL"], "http://green.example");
    assert_eq!(
        green.get(ORDERS_CONFIG).await["data"]["DATABASE_NAME"],
        "tried"
    );
    assert_eq!(green.get(ORDERS_DB).await["data"]["password"], ROTATED);
    assert_eq!(green.get(NEW_CONFIG).await["data"]["a"], "1");
    assert!(!green.has(CONSUMER_CONFIG).await, "pruned");
    let after = green.get(API).await;
    let env = &after["spec"]["template"]["spec"]["containers"][0]["env"];
    assert!(
        env.as_array()
            .unwrap()
            .contains(&json!({"name": "DRIFT", "value": "1"})),
        "{env}"
    );
    assert_eq!(after["spec"]["replicas"], 0, "still parked");
    // Defaults of the server and what we hold beside the changed field are as they were.
    let without = |mut o: Value| {
        o["spec"]["template"]["spec"]["containers"][0]["env"] = Value::Null;
        o["spec"].clone()
    };
    assert_eq!(without(after.clone()), without(before));
    let managers: Vec<(&str, &str)> = after["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|m| m["manager"] == "crossfade")
        .map(|m| ("crossfade", m["operation"].as_str().unwrap()))
        .collect();
    assert_eq!(managers, [("crossfade", "Apply")], "one entry of ours");
    assert_eq!(
        shop.audited_writes(Side::Blue).len(),
        on_blue,
        "blue is only read"
    );

    // Again: nothing is written.
    let writes = shop.audited_writes(Side::Green).len();
    let again = shop
        .run(&["replay", "plans/shop", "--apply", "--prune"])
        .await;
    again.expect(3);
    assert!(
        again.text().contains("nothing was written"),
        "{}",
        again.text()
    );
    assert_eq!(shop.audited_writes(Side::Green).len(), writes);

    // Back: the person takes their own tries away first; everything else is ours.
    green.delete(WEB_CONFIG).await;
    green.delete(ORDERS_CONFIG).await;
    shop.run(&["rollback", "plans/shop", "--to", "provision"])
        .await
        .expect(0);
    for path in [NEW_CONFIG, ORDERS_DB, API, "/api/v1/namespaces/storefront"] {
        assert!(!green.has(path).await, "{path}");
    }
    assert_eq!(blue.get(ORDERS_DB).await["data"]["password"], ROTATED);
    shop.no_secret_on_disk();
}
