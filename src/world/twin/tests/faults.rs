//! Failing calls, and an engine that is killed.

use super::company::*;
use crate::world::Class;
use crate::world::twin::Fault;
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_lost_reply_had_its_effect_and_a_refused_call_had_none() {
    let (t, w) = company();
    let web = id("apps/v1", "Deployment", "storefront", "web");
    let body = json!({"spec":{"replicas":2}});
    for (fault, class, after) in [
        (Fault::Error, Class::Refused, 3),
        (Fault::Throttle, Class::Throttled, 3),
        (Fault::NoConnection, Class::Unreachable, 3),
        (Fault::LostReply, Class::Unreachable, 2),
    ] {
        t.fail_call(t.call_count(), fault);
        assert_eq!(w.blue.merge(&web, &body).await.unwrap_err().class, class);
        assert_eq!(
            w.blue.get(&web).await.unwrap().unwrap()["spec"]["replicas"],
            after,
            "{fault:?}"
        );
    }
    t.fail_matching("dns zones", 1, Fault::Throttle);
    assert_eq!(w.dns.zones().await.unwrap_err().class, Class::Throttled);
    assert_eq!(w.dns.zones().await.unwrap().len(), 1);
    assert!(
        t.calls()
            .iter()
            .any(|c| c.what == "blue merge deployment/storefront/web" && c.write)
    );
}

#[tokio::test(start_paused = true)]
async fn the_world_stays_when_the_engine_is_killed_before_or_after_its_request() {
    for (fault, replicas) in [(Fault::HangBefore, 3), (Fault::HangAfter, 2)] {
        let (t, w) = company();
        t.fail_call(0, fault);
        let engine = {
            let w = w.clone();
            tokio::spawn(async move { scale(w.blue.as_ref(), "storefront", "web", 2).await })
        };
        t.hung().await;
        engine.abort();
        assert!(engine.await.unwrap_err().is_cancelled());
        let web = w
            .blue
            .get(&id("apps/v1", "Deployment", "storefront", "web"))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(web["spec"]["replicas"], replicas, "{fault:?}");
    }
}

#[test]
fn a_second_runtime_goes_on_with_the_same_world_and_time_never_runs_back() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap()
    };
    let (t, w) = runtime().block_on(async {
        let (t, w) = company();
        pass(3600).await;
        w.cloud.create(&cluster(), "run-1").await.unwrap();
        (t, w)
    });
    let before = t.elapsed();
    runtime().block_on(async {
        pass(600).await;
        assert_eq!(
            w.cloud.find(&cluster()).await.unwrap().unwrap().status,
            crate::world::cloud::Status::Ready
        );
    });
    assert!(t.elapsed() >= before);
}

#[tokio::test(start_paused = true)]
async fn a_forked_world_goes_its_own_way() {
    let (t, w) = company();
    pass(60).await;
    let f = t.fork();
    let other = f.world();
    scale(other.blue.as_ref(), "storefront", "web", 1).await;
    pass(60).await;
    let at = id("apps/v1", "Deployment", "storefront", "web");
    assert_eq!(
        w.blue.get(&at).await.unwrap().unwrap()["status"]["readyReplicas"],
        3
    );
    assert_eq!(
        other.blue.get(&at).await.unwrap().unwrap()["status"]["readyReplicas"],
        1
    );
    assert_eq!(t.blue_writes().len(), 0);
    assert_eq!(f.blue_writes().len(), 1);
}
