//! A kops document with the place of each of its leaves.

use super::leaves::leaves;
use super::{normal, to_v1alpha2, types};
use crate::error::{Error, Kind, Result};
use serde_json::Value;
use std::collections::BTreeMap;

/// Where the leaves of a document stand: what `yaml::places` gave, and the file or key that it was read from.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    /// File, as shown to people.
    pub file: String,
    /// The document with `line:column` at each leaf; null when not known.
    pub lines: Value,
}

impl Marks {
    /// The place of each leaf by its path in v1alpha2. A field that v1alpha3 names otherwise keeps its place: the marks go the
    /// same way as the values.
    fn by_path(&self, original: &Value) -> BTreeMap<String, String> {
        if !self.lines.is_object() {
            return BTreeMap::new();
        }
        let alpha3 = original["apiVersion"] == "kops.k8s.io/v1alpha3";
        let mut marks = self.lines.clone();
        let before = marks.clone();
        if alpha3 {
            // The kind decides which way a document goes.
            marks["kind"] = original["kind"].clone();
            marks = to_v1alpha2(marks);
            for field in ["kind", "apiVersion"] {
                marks[field] = before[field].clone();
            }
            // Two values are not moved but made out of others.
            if let Some(first) = leaves(&before["spec"]["cloudProvider"]).first()
                && marks["spec"].is_object()
            {
                marks["spec"]["cloudProvider"] = first.1.clone();
            }
            if before.pointer("/spec/externalDNS/provider").is_some()
                && original["spec"]["externalDNS"]["provider"] == "none"
                && marks
                    .pointer("/spec/externalDns")
                    .is_some_and(Value::is_object)
            {
                marks["spec"]["externalDns"]["disable"] =
                    before["spec"]["externalDNS"]["provider"].clone();
            }
        }
        leaves(&marks)
            .into_iter()
            .filter_map(|(path, at)| {
                // Where several values became one (claims of OIDC), the first says the place.
                let at = at.as_str()?.split(',').next()?.rsplit('=').next()?;
                Some((path, format!("{}:{at}", self.file)))
            })
            .collect()
    }
}

/// Checks a Cluster or InstanceGroup, gives it in the shape of v1alpha2, and the place of each leaf. `at` is the place of the
/// whole document.
pub fn read(doc: Value, at: &str, marks: &Marks) -> Result<(Value, BTreeMap<String, String>)> {
    let original = doc.clone();
    let doc = normal(doc, at)?;
    let all = marks.by_path(&original);
    if let Some(first) = types::wrong(&doc).first() {
        let place = place_of(&all, &first.path).unwrap_or_else(|| at.to_string());
        return Err(Error::new(
            Kind::BadInput,
            format!(
                "`{}` of the {} `{}` is {}, and should be {}",
                first.path,
                doc["kind"].as_str().unwrap_or_default(),
                super::name_of(&doc),
                first.found,
                first.wanted
            ),
        )
        .at(place)
        .remedy("correct the value; kops itself does not read it like this"));
    }
    let places = leaves(&doc)
        .into_iter()
        .filter_map(|(path, _)| {
            let place = all.get(&path)?.clone();
            Some((path, place))
        })
        .collect();
    Ok((doc, places))
}

/// The place of a path, or of the first leaf below it.
fn place_of(all: &BTreeMap<String, String>, path: &str) -> Option<String> {
    let below = |p: &String| {
        p.strip_prefix(path)
            .is_some_and(|rest| rest.starts_with(['.', '[']))
    };
    let number = |place: &str| -> (u64, u64) {
        let mut parts = place.rsplit(':').map(|n| n.parse().unwrap_or(0));
        let column = parts.next().unwrap_or(0);
        (parts.next().unwrap_or(0), column)
    };
    all.get(path).cloned().or_else(|| {
        all.iter()
            .filter(|(p, _)| below(p))
            .map(|(_, place)| place)
            .min_by_key(|place| number(place))
            .cloned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Result<(Value, BTreeMap<String, String>)> {
        let (doc, line) = crate::yaml::manifests(text, "f.yaml").remove(0)?;
        let lines = crate::yaml::places(text).remove(0).0;
        let marks = Marks {
            file: "f.yaml".into(),
            lines,
        };
        read(doc, &format!("f.yaml:{line}"), &marks)
    }

    #[test]
    fn every_leaf_of_a_document_has_its_place_also_where_v1alpha3_has_another_name() {
        let text = include_str!("../../../tests/corpus/kops/v1alpha3-aws.yaml");
        let (doc, places) = one(text).expect("read");
        let line = |path: &str| -> &str {
            let place = places.get(path).unwrap_or_else(|| panic!("{path}"));
            let number: usize = place
                .split(':')
                .nth(1)
                .and_then(|n| n.parse().ok())
                .expect("line");
            text.lines().nth(number - 1).expect("line").trim()
        };
        for (path, original) in [
            (
                "spec.masterPublicName",
                "publicName: api.minimal.example.com",
            ),
            ("spec.networkID", "networkID: vpc-123456"),
            ("spec.subnets[0].cidr", "- cidr: 172.20.32.0/19"),
            ("spec.DisableSubnetTags", "tagSubnets: false"),
            ("spec.topology.dns.type", "dns: None"),
            ("spec.externalDns.disable", "provider: none"),
            (
                "spec.cloudConfig.awsEBSCSIDriver.volumeAttachLimit",
                "volumeAttachLimit: 65",
            ),
            ("spec.masterKubelet.cpuCFSQuota", "cpuCFSQuota: true"),
            ("spec.hooks[2].roles[0]", "- ControlPlane"),
            (
                "spec.configBase",
                "base: memfs://clusters.example.com/minimal.example.com",
            ),
            ("spec.cloudProvider", "disableSecurityGroupIngress: true"),
        ] {
            assert_eq!(line(path), original, "{path}");
        }
        for (path, _) in leaves(&doc) {
            assert!(places.contains_key(&path), "no place: {path}");
        }
    }

    #[test]
    fn a_wrong_type_is_an_error_at_its_line_and_column() {
        let head = "apiVersion: kops.k8s.io/v1alpha2\nkind: InstanceGroup\nmetadata:\n  name: nodes\nspec:\n";
        let e = one(&format!("{head}  role: Node\n  minSize: \"two\"\n")).expect_err("two");
        assert_eq!(e.at, "f.yaml:7:12");
        assert_eq!(
            e.message,
            "`spec.minSize` of the InstanceGroup `nodes` is a text, and should be a whole number from 0 to 2147483647"
        );
        let e = one(&format!("{head}  kubelet:\n  - maxPods: 3\n")).expect_err("list");
        assert_eq!(e.at, "f.yaml:7:14", "the first leaf below it");
    }

    /// kops.md 1.3: what kops itself can no longer read, or what had another shape under the same version, is refused by name.
    #[test]
    fn other_versions_shapes_and_clouds_are_refused_and_the_reason_names_them() {
        let cluster = |api: &str, spec: &str| {
            format!("{api}kind: Cluster\nmetadata: {{name: a}}\nspec: {spec}\n")
        };
        let v = |version: &str| format!("apiVersion: {version}\n");
        for (text, word) in [
            (cluster("", "{}"), "v1alpha0"),
            (cluster(&v("kops/v1alpha1"), "{}"), "kops/v1alpha1"),
            (cluster(&v("kops/v1alpha3"), "{}"), "kops/v1alpha3"),
            (
                cluster(&v("kops.k8s.io/v1alpha3"), "{subnets: []}"),
                "kops 1.23 to 1.25",
            ),
            (
                cluster(
                    &v("kops.k8s.io/v1alpha3"),
                    "{cloudProvider: {gce: {project: x}}}",
                ),
                "Google Cloud",
            ),
            (
                cluster(&v("kops.k8s.io/v1alpha2"), "{cloudProvider: digitalocean}"),
                "DigitalOcean",
            ),
            (
                cluster(&v("kops.k8s.io/v1alpha2"), "{cloudProvider: vsphere}"),
                "`vsphere`",
            ),
            (cluster(&v("kops.k8s.io/v1alpha2"), "[]"), "has no spec"),
        ] {
            let e = one(&text).expect_err(&text);
            assert_eq!(
                (e.kind, e.at.as_str()),
                (Kind::BadInput, "f.yaml:1"),
                "{text}"
            );
            assert!(e.message.contains(word) && !e.remedy.is_empty(), "{e:?}");
        }
    }

    #[test]
    fn oidc_of_v1alpha3_is_read_under_its_older_names() {
        let text = "apiVersion: kops.k8s.io/v1alpha3\nkind: Cluster\nmetadata: {name: a}\nspec:\n  cloudProvider: {aws: {}}\n  authentication:\n    oidc:\n      issuerURL: https://id.test\n      groupsClaims: [a, b]\n      requiredClaims: {aud: x}\n      neverHeardOf: 1\n";
        let (doc, places) = one(text).expect("read");
        assert_eq!(
            doc["spec"]["kubeAPIServer"],
            serde_json::json!({"oidcIssuerURL": "https://id.test", "oidcGroupsClaim": "a,b", "oidcRequiredClaim": ["aud=x"]})
        );
        assert_eq!(doc["spec"]["authentication"]["oidc"]["neverHeardOf"], 1);
        assert_eq!(places["spec.kubeAPIServer.oidcIssuerURL"], "f.yaml:8:18");
    }
}
