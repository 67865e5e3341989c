//! Records as Helm writes them.

use super::*;
use crate::helm::manifest::Change;

/// A record of a release: (revision, status, manifest, hook manifest).
pub(crate) fn record(name: &str, revision: u32, status: &str, manifest: &str, hook: &str) -> Value {
    let release = json!({
        "name": name, "namespace": "shop", "version": revision,
        "info": {"status": status, "notes": "CANARY-notes"},
        "chart": {"metadata": {"name": "web", "version": "1.2.3"}, "templates": [], "values": {"password": "CANARY-default"}},
        "config": {"password": "CANARY-value", "size": 3, "share": 0.25},
        "manifest": manifest,
        "hooks": if hook.is_empty() { json!([]) } else { json!([{"name": "h", "manifest": hook}]) }
    });
    let text = pack(&release).expect("packed");
    json!({"apiVersion": "v1", "kind": "Secret", "type": SECRET_TYPE,
        "metadata": {"name": format!("sh.helm.release.v1.{name}.v{revision}"), "namespace": "shop",
            "labels": {"name": name, "owner": "helm", "status": status, "version": revision.to_string()}},
        "data": {"release": held_by("Secret", &text)}})
}

#[test]
fn a_record_is_read_twice_base64_and_gzip_and_only_names_are_kept_of_it() {
    let manifest = "---\n# Source: web/templates/a.yaml\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {p: CANARY-secret}}\n---\n# nothing\n";
    let hook = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: migrate, namespace: shop}\n";
    let secret = record("web", 3, "deployed", manifest, hook);
    let kept = release(&secret).expect("a record");
    let names: Vec<String> = kept.objects.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["deployment/web", "secret/s"]);
    assert_eq!(kept.hooks[0].to_string(), "job/shop/migrate");
    assert_eq!(
        (
            kept.chart.as_str(),
            kept.chart_version.as_str(),
            kept.name.as_str()
        ),
        ("web", "1.2.3", "web")
    );
    let text = serde_json::to_string(&kept).expect("JSON");
    assert!(!text.contains("CANARY"), "{text}");
    // ConfigMap storage has one base64 less.
    let mut map = secret.clone();
    map["kind"] = json!("ConfigMap");
    map["data"]["release"] = json!(text_of(&secret).expect("text"));
    assert_eq!(release(&map).map(|r| r.objects), Some(kept.objects));
}

#[test]
fn what_is_no_record_or_damaged_is_told_without_a_word_of_it() {
    let mut secret = record("web", 1, "deployed", "", "");
    for (held, why) in [
        ("CANARY!", "base64"),
        (
            STANDARD
                .encode(STANDARD.encode([0x1f, 0x8b, 0, 0]))
                .as_str(),
            "gzip",
        ),
        (STANDARD.encode(STANDARD.encode("CANARY")).as_str(), "JSON"),
    ] {
        secret["data"]["release"] = json!(held);
        let said = release(&secret)
            .and_then(|r| r.unreadable)
            .expect("unreadable");
        assert!(said.contains(why) && !said.contains("CANARY"), "{said}");
    }
    let broken = record("web", 1, "deployed", "a: [CANARY\n", "");
    let said = release(&broken)
        .and_then(|r| r.unreadable)
        .expect("unreadable");
    assert!(
        said.contains("no YAML") && !said.contains("CANARY"),
        "{said}"
    );
    assert_eq!(
        release(
            &json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "type": "Opaque"})
        ),
        None
    );
    let mut masked = record("web", 1, "deployed", "", "");
    masked["data"]["release"] = json!("hmac-sha256:00:8");
    assert_eq!(release(&masked), None, "a snapshot holds no value");
}

#[test]
fn a_bomb_of_a_record_is_not_unpacked() {
    let mut gz = flate2::write::GzEncoder::new(vec![], flate2::Compression::best());
    let zeros = vec![b' '; 1 << 20];
    for _ in 0..66 {
        gz.write_all(&zeros).expect("memory");
    }
    let bomb = STANDARD.encode(gz.finish().expect("memory"));
    assert!(bomb.len() < MAX_RECORD);
    assert!(unpack(&bomb).expect_err("too big").contains("more than"));
}

#[test]
fn documents_that_do_not_change_stay_byte_for_byte() {
    let manifest = "---\n# Source: a\napiVersion: old/v1   # why not\nkind: A\nmetadata: {name: a}\n--- \nkind: B\napiVersion: \"v1\"\nmetadata:\n  name: b\ndata:\n  pem: |\n    -----BEGIN CERTIFICATE-----\n    ---\n  mode: 0644\n---\n";
    let same = manifest::change(manifest, &mut |_| Change::Same);
    assert_eq!(same, Ok(None));
    let new = manifest::change(manifest, &mut |o| match o["kind"].as_str() {
        Some("A") => {
            let mut o = o.clone();
            o["apiVersion"] = json!("new/v1");
            Change::To(Box::new(o))
        }
        _ => Change::Same,
    })
    .expect("read")
    .expect("changed");
    assert_eq!(
        new,
        manifest.replace("apiVersion: old/v1   # why not", "apiVersion: new/v1")
    );
    let gone = manifest::change(manifest, &mut |o| match o["kind"].as_str() {
        Some("A") => Change::Gone,
        _ => Change::Same,
    })
    .expect("read")
    .expect("changed");
    assert_eq!(gone, &manifest[manifest.find("--- \n").expect("B")..]);
}
