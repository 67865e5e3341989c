//! Which kops release wrote a spec: its defaults are the ones that count, never those of today (kops.md 1.4).

use super::kubernetes_version;
use crate::snapshot::model::Kops;
use serde_json::Value;

/// A kops release, as `1.<minor>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// Minor, 22 for 1.22.
    pub minor: u32,
    /// Known from `kops-version.txt`; `false` when it is guessed.
    pub known: bool,
    /// Where it is known from, or what the guess rests on, for people.
    pub from: String,
}

impl std::fmt::Display for Release {
    /// `kops 1.22 (kops-version.txt)`, `kops 1.21 (a guess: ...)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let guess = if self.known { "" } else { "a guess: " };
        write!(f, "kops 1.{} ({guess}{})", self.minor, self.from)
    }
}

/// Minor of `1.22.6`, `v1.22.6`, `1.22.6 (git-...)`.
pub fn minor_of(version: &str) -> Option<u32> {
    let bare = version.trim().trim_start_matches('v');
    let mut parts = bare.split(['.', '-', '+', ' ']);
    (parts.next()? == "1").then_some(())?;
    parts.next()?.parse().ok().filter(|m| *m < 1000)
}

/// The release that last applied the cluster, or the best guess: the lowest release that everything found can come from.
/// Between the lowest and the highest possible release lie at most six, and a guess says what it rests on.
pub fn release(kops: &Kops) -> Release {
    if let Some(text) = &kops.kops_version
        && let Some(minor) = minor_of(text)
    {
        return Release {
            minor,
            known: true,
            from: "kops-version.txt".into(),
        };
    }
    let mut at_least: Vec<(u32, String)> = vec![];
    let mut at_most: Vec<(u32, String)> = vec![];
    if let Some(cluster) = &kops.cluster {
        if let Some(v) = kubernetes_version(cluster) {
            // A kops release runs Kubernetes up to its own minor (kops.md 6).
            at_least.push((v.minor, format!("it runs Kubernetes 1.{}", v.minor)));
        }
        shapes(cluster, kops, &mut at_least, &mut at_most);
    }
    at_least.sort_by(|a, b| (b.0, &a.1).cmp(&(a.0, &b.1)));
    at_most.sort();
    let low = at_least.first();
    let high = at_most.first();
    match (low, high) {
        (Some((l, why)), Some((h, _))) if l > h => Release {
            // An old spelling that was carried on: newer facts win.
            minor: *l,
            known: false,
            from: why.clone(),
        },
        (Some((l, why)), Some((_, other))) => Release {
            minor: *l,
            known: false,
            from: format!("{why}, and {other}"),
        },
        (Some((l, why)), None) => Release {
            minor: *l,
            known: false,
            from: why.clone(),
        },
        (None, Some((h, why))) => Release {
            minor: *h,
            known: false,
            from: why.clone(),
        },
        (None, None) => Release {
            minor: 21,
            known: false,
            from: "nothing tells its release; 1.21 is in the middle of those still found".into(),
        },
    }
}

/// What the form of the documents says (kops.md 1.1, 1.3, 5).
fn shapes(
    cluster: &Value,
    kops: &Kops,
    at_least: &mut Vec<(u32, String)>,
    at_most: &mut Vec<(u32, String)>,
) {
    if cluster["apiVersion"] == "kops/v1alpha2" {
        at_most.push((14, "its documents are of the group `kops`".into()));
    }
    let has = |pointer: &str| cluster.pointer(pointer).is_some_and(|v| !v.is_null());
    for (pointer, minor) in [
        ("/spec/serviceAccountIssuerDiscovery", 21),
        ("/spec/iam/serviceAccountExternalPermissions", 21),
    ] {
        if has(pointer) {
            let field = pointer.trim_start_matches('/').replace('/', ".");
            at_least.push((minor, format!("it has the field `{field}`")));
        }
    }
    // The store says more than the documents: names of keys changed.
    let completed = kops.sources.get("completed").map(String::as_str);
    let ends = |name: &str| completed.is_some_and(|c| key_of(c).ends_with(name));
    if ends("cluster-completed.spec") {
        at_least.push((22, "its store has `cluster-completed.spec`".into()));
    } else if ends("/cluster.spec") {
        at_most.push((21, "its store has `cluster.spec`".into()));
    }
}

/// A source without `:line`.
pub(super) fn key_of(source: &str) -> &str {
    let mut out = source;
    while let Some((head, tail)) = out.rsplit_once(':') {
        if tail.is_empty() || !tail.bytes().all(|b| b.is_ascii_digit()) {
            break;
        }
        out = head;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn kops(cluster: Value) -> Kops {
        Kops {
            cluster: Some(cluster),
            ..Kops::default()
        }
    }

    #[test]
    fn the_version_file_decides_and_everything_else_is_a_guess_that_says_why() {
        let mut k =
            kops(json!({"apiVersion": "kops/v1alpha2", "spec": {"kubernetesVersion": "v1.11.9"}}));
        let r = release(&k);
        assert_eq!((r.minor, r.known), (11, false));
        assert_eq!(
            r.to_string(),
            "kops 1.11 (a guess: it runs Kubernetes 1.11, and its documents are of the group `kops`)"
        );
        k.kops_version = Some("1.18.3\n".into());
        assert_eq!(release(&k).to_string(), "kops 1.18 (kops-version.txt)");
        // A file that holds no version decides nothing.
        k.kops_version = Some("none".into());
        assert_eq!(release(&k).minor, 11);
    }

    #[test]
    fn fields_and_keys_that_came_later_raise_the_guess() {
        let old = json!({"apiVersion": "kops.k8s.io/v1alpha2", "spec": {"kubernetesVersion": "1.18.0", "serviceAccountIssuerDiscovery": {}}});
        assert_eq!(release(&kops(old.clone())).minor, 21);
        let mut k = kops(old);
        k.sources.insert(
            "completed".into(),
            "s3://b/shop.test/cluster-completed.spec:1".into(),
        );
        assert_eq!(release(&k).minor, 22);
        // The group `kops` in a spec of Kubernetes 1.32 is an old spelling that was carried on.
        let k =
            kops(json!({"apiVersion": "kops/v1alpha2", "spec": {"kubernetesVersion": "1.32.0"}}));
        assert_eq!(release(&k).minor, 32);
        assert!(!release(&Kops::default()).known);
    }

    #[test]
    fn versions_are_read_in_the_spellings_that_occur() {
        for (text, minor) in [
            ("1.22.6", Some(22)),
            ("v1.9.0", Some(9)),
            ("1.30.0-beta.1\n", Some(30)),
            ("2.1.0", None),
            ("", None),
            ("1.99999999999999", None),
        ] {
            assert_eq!(minor_of(text), minor, "{text}");
        }
    }
}
