use super::*;
use crate::object::ObjectId;
use serde_json::json;
use std::path::Path;

fn key() -> Key {
    Key::from_bytes([9; 32])
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/kops")
}

fn read(paths: &[&Path]) -> Result<FromFiles> {
    let paths: Vec<PathBuf> = paths.iter().map(|p| p.to_path_buf()).collect();
    from_files(&paths, None, &key())
}

/// Writes files into a folder and reads the folder.
pub(super) fn folder(files: &[(&str, &str)]) -> Result<FromFiles> {
    let dir = tempfile::tempdir().expect("dir");
    for (name, text) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().expect("parent")).expect("made");
        std::fs::write(path, text).expect("written");
    }
    read(&[dir.path()])
}

const CLUSTER: &str = "apiVersion: kops.k8s.io/v1alpha2\nkind: Cluster\nmetadata: {name: shop.test}\nspec: {cloudProvider: aws, kubernetesVersion: 1.21.14}\n";
const NODES: &str = "apiVersion: kops.k8s.io/v1alpha2\nkind: InstanceGroup\nmetadata: {name: nodes, labels: {kops.k8s.io/cluster: shop.test}}\nspec: {role: Node}\n";

pub(super) fn gaps(f: &FromFiles) -> Vec<&str> {
    f.snapshot
        .not_checked
        .iter()
        .map(|n| n.what.as_str())
        .collect()
}

/// The corpus README: 45 AWS specs are read, five other clouds and v1alpha1 are refused.
#[test]
fn every_kops_spec_of_the_corpus_is_read_or_refused_as_its_readme_says() {
    let (mut read_ones, mut refused) = (0, 0);
    let mut files: Vec<_> = std::fs::read_dir(corpus())
        .expect("corpus")
        .map(|e| e.expect("entry").path())
        .collect();
    files.sort();
    for path in files
        .iter()
        .filter(|p| p.extension().is_some_and(|e| e == "yaml"))
    {
        let name = path
            .file_name()
            .expect("name")
            .to_string_lossy()
            .to_string();
        let result = read(&[path]);
        if name.contains("REFUSE") {
            refused += 1;
            let e = result.expect_err(&name);
            assert_eq!(e.kind, Kind::BadInput, "{name}");
            assert!(
                !e.remedy.is_empty() && e.at.starts_with(&name),
                "{name}: {e:?}"
            );
            let word = match name.as_str() {
                "v1alpha1-legacy-REFUSE.yaml" => "kops/v1alpha1",
                n if n.contains("gce") => "gce",
                n if n.contains("openstack") => "OpenStack",
                n if n.contains("azure") => "Azure",
                n if n.contains("hetzner") => "Hetzner",
                _ => "Scaleway",
            };
            assert!(e.message.contains(word), "{name}: {}", e.message);
            continue;
        }
        read_ones += 1;
        let found = result.unwrap_or_else(|e| panic!("{name}: {e:?}"));
        let s = &found.snapshot;
        let cluster = s.kops.cluster.as_ref().expect("a cluster");
        // Whatever was written, downstream sees one shape.
        assert!(
            cluster["spec"]["cloudProvider"].is_string()
                || cluster["spec"].get("cloudProvider").is_none(),
            "{name}"
        );
        assert!(cluster["spec"]["subnets"].is_array(), "{name}");
        assert!(
            s.blue.version.as_ref().is_some_and(|v| v.minor >= 6),
            "{name}: {:?}",
            s.blue.version
        );
        let without = name.contains("cluster-only") || name.contains("completed-spec");
        assert_eq!(s.kops.instance_groups.is_empty(), without, "{name}");
        assert_eq!(
            gaps(&found).contains(&"kops.instancegroups"),
            without,
            "{name}"
        );
        for group in &s.kops.instance_groups {
            assert!(
                ["Node", "Master", "Bastion", "APIServer"]
                    .contains(&group["spec"]["role"].as_str().unwrap_or_default()),
                "{name}"
            );
        }
        crate::spec::parse(
            &crate::yaml::to_string(&crate::spec::defaults_for(s)).expect("yaml"),
            &name,
        )
        .expect("defaults pass their own checks");
    }
    assert_eq!((read_ones, refused), (44, 6));
}

#[test]
fn v1alpha3_is_read_in_the_shape_of_v1alpha2_inverted_booleans_too() {
    let s = read(&[&corpus().join("v1alpha3-aws.yaml")])
        .expect("read")
        .snapshot;
    let spec = &s.kops.cluster.as_ref().expect("cluster")["spec"];
    assert_eq!(spec["cloudProvider"], "aws");
    assert_eq!(spec["DisableSubnetTags"], true);
    assert_eq!(spec["networking"], json!({"amazonvpc": {}}));
    assert_eq!(
        spec["hooks"][0],
        json!({"name": "hookDisabled", "disabled": true})
    );
    assert_eq!(spec["hooks"][2]["roles"], json!(["Master"]));
    assert_eq!(spec["externalDns"], json!({"disable": true}));
    assert_eq!(spec["topology"]["dns"]["type"], "None");
    assert_eq!(spec["masterPublicName"], "api.minimal.example.com");
    assert_eq!(
        spec["cloudConfig"]["awsEBSCSIDriver"]["volumeAttachLimit"],
        65
    );
    let nodes = s
        .kops
        .instance_groups
        .iter()
        .find(|g| g["metadata"]["name"] == "nodes")
        .expect("nodes");
    assert_eq!(nodes["spec"]["rootVolumeSize"], 33);
    assert_eq!(nodes["spec"]["associatePublicIp"], true);
}

#[test]
fn the_forms_in_which_people_export_a_cluster_give_the_same_snapshot() {
    let array = format!(
        "[{},\n{}]",
        serde_json::to_string(
            &crate::yaml::manifests(CLUSTER, "c")[0]
                .as_ref()
                .expect("ok")
                .0
        )
        .expect("json"),
        serde_json::to_string(
            &crate::yaml::manifests(NODES, "n")[0]
                .as_ref()
                .expect("ok")
                .0
        )
        .expect("json"),
    );
    let multi = format!("{CLUSTER}\n---\n\n{NODES}");
    let crlf = multi.replace('\n', "\r\n");
    let forms = [
        folder(&[("all.yaml", &multi)]).expect("multi"),
        folder(&[("all.yaml", &crlf)]).expect("crlf"),
        folder(&[("all.json", &array)]).expect("array"),
        folder(&[("c.yaml", CLUSTER), ("ig.yaml", NODES)]).expect("two files"),
        folder(&[("all.yaml", &multi), ("again.json", &array)]).expect("twice the same"),
        folder(&[
            ("shop.test/config", CLUSTER),
            ("shop.test/instancegroup/nodes", NODES),
            ("shop.test/pki/private/ca/keyset.yaml", "\u{1}: {{{"),
        ])
        .expect("store, whose keys are never read"),
    ];
    for f in &forms {
        assert_eq!(f.snapshot.kops.cluster, forms[0].snapshot.kops.cluster);
        assert_eq!(
            f.snapshot.kops.instance_groups,
            forms[0].snapshot.kops.instance_groups
        );
        assert_eq!(
            f.snapshot
                .blue
                .version
                .as_ref()
                .map(|v| v.git_version.as_str()),
            Some("v1.21.14")
        );
        assert!(
            gaps(f).contains(&"blue.objects")
                && gaps(f).contains(&"aws.inventory")
                && gaps(f).contains(&"dns.zones")
        );
    }
    assert_eq!(
        forms[0].snapshot.kops.sources["instancegroup/nodes"],
        "all.yaml:8"
    );
    let full = format!("//\n//   WARNING: Do not use\n//\n\n{CLUSTER}");
    let f = folder(&[("full.yaml", &full), ("all.yaml", &multi)]).expect("full beside plain");
    assert_eq!(f.snapshot.kops.sources["completed"], "full.yaml:5");
    assert_eq!(f.snapshot.kops.sources["cluster"], "all.yaml:1");
}

#[test]
fn two_clusters_need_a_choice_and_two_versions_of_one_document_are_refused() {
    let other = CLUSTER.replace("shop.test", "other.test");
    let e = folder(&[("a.yaml", CLUSTER), ("b.yaml", &other)]).expect_err("two");
    assert!(
        e.remedy.contains("--cluster") && e.at.contains("other.test (b.yaml:1)"),
        "{e:?}"
    );
    let e = folder(&[
        ("a.yaml", CLUSTER),
        ("b.yaml", &CLUSTER.replace("1.21.14", "1.22.0")),
    ])
    .expect_err("differ");
    assert_eq!(e.at, "a.yaml:1 and b.yaml:1");
    let e = folder(&[("a.txt", "hello")]).expect_err("nothing");
    assert!(e.message.contains("nothing in these files"), "{e:?}");
    assert_eq!(
        from_files(&[], None, &key()).expect_err("none").kind,
        Kind::Usage
    );
    assert_eq!(
        read(&[Path::new("/no/such/file")])
            .expect_err("absent")
            .kind,
        Kind::BadInput
    );
}

#[test]
fn kubectl_dumps_are_flattened_masked_and_each_object_is_kept_once() {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "n"}, "data": {"p": "Q0FOQVJZLXg="}},
        {"apiVersion": "extensions/v1beta1", "kind": "Ingress", "metadata": {"name": "i", "namespace": "n", "uid": "1"}},
        {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i", "namespace": "n", "uid": "1"}},
        {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "n"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "managedFields": []}},
        {"apiVersion": "shop.test/v1", "kind": "PriceList", "metadata": {"name": "p"}, "items": [1, 2]},
    ]});
    let typed = json!({"apiVersion": "apps/v1", "kind": "DeploymentList", "items": [{"metadata": {"name": "d", "namespace": "n"}}]});
    let f = folder(&[
        ("dump.json", &list.to_string()),
        ("d.yaml", &crate::yaml::to_string(&typed).expect("yaml")),
    ])
    .expect("read");
    let ids: Vec<String> = f
        .snapshot
        .blue
        .objects
        .iter()
        .filter_map(ObjectId::of)
        .map(|id| format!("{} {id}", id.api_version))
        .collect();
    assert_eq!(
        ids,
        [
            "apps/v1 deployment/n/d",
            "networking.k8s.io/v1 ingress/n/i",
            "shop.test/v1 pricelist.shop.test/p",
            "v1 configmap/default/c",
            "v1 secret/n/s",
        ]
    );
    let text = serde_json::to_string(&f.snapshot).expect("json");
    assert!(
        !text.contains("Q0FOQVJZ") && !text.contains("managedFields"),
        "{text}"
    );
    let page =
        json!({"apiVersion": "v1", "kind": "List", "metadata": {"continue": "abc"}, "items": []});
    assert!(
        folder(&[("p.json", &page.to_string())])
            .expect_err("page")
            .message
            .contains("one page")
    );
    let e = folder(&[("bad.yaml", "a: 1\na: 2\n")]).expect_err("duplicate key");
    assert!(e.at.ends_with("bad.yaml:2:1"), "{e:?}");
}

#[test]
fn zones_come_out_of_listings_that_do_not_say_whose_they_are() {
    let records = json!({"ResourceRecordSets": [
        {"Name": "shop.test.", "Type": "NS", "TTL": 172800, "ResourceRecords": [{"Value": "ns-1."}]},
        {"Name": "shop.test.", "Type": "SOA", "TTL": 900, "ResourceRecords": [{"Value": "ns-1. h. 1 7200 900 1209600 86400"}]},
        {"Name": "\\052.Shop.test.", "Type": "A", "SetIdentifier": "b", "Weight": 0, "AliasTarget": {"HostedZoneId": "Z32O12XQLNTSW2", "DNSName": "a-1.eu-west-1.elb.amazonaws.com.", "EvaluateTargetHealth": true}},
    ]});
    let zones = json!({"HostedZones": [{"Id": "/hostedzone/Z1", "Name": "shop.test.", "Config": {"PrivateZone": false}}, {"Id": "/hostedzone/Z9", "Name": "other.test."}]});
    let f = folder(&[
        ("records.json", &records.to_string()),
        ("zones.json", &zones.to_string()),
    ])
    .expect("read");
    let z = &f.snapshot.zones[0];
    assert_eq!(
        (z.zone.id.as_str(), z.zone.name.as_str(), z.records.len()),
        ("Z1", "shop.test.", 3)
    );
    let star = &z.records[2];
    assert_eq!(
        (star.name.as_str(), star.ttl, star.set_identifier.as_deref()),
        ("*.shop.test.", None, Some("b"))
    );
    assert_eq!(star.routing["Weight"], 0);
    assert!(
        star.alias
            .as_ref()
            .is_some_and(|a| a.evaluate_target_health)
    );
    assert!(gaps(&f).contains(&"zone/other.test.records"));

    let f = folder(&[("records.json", &records.to_string())]).expect("read");
    assert!(gaps(&f).contains(&"zone/shop.test.id"));

    // A private and a public zone of one name: only the file's name can tell.
    let twins = json!({"HostedZones": [{"Id": "Z1", "Name": "shop.test."}, {"Id": "Z2", "Name": "shop.test.", "Config": {"PrivateZone": true}}]});
    let e = folder(&[
        ("records.json", &records.to_string()),
        ("zones.json", &twins.to_string()),
    ])
    .expect_err("ambiguous");
    assert!(e.remedy.contains("zone id"), "{e:?}");
    let f = folder(&[
        ("Z2.json", &records.to_string()),
        ("zones.json", &twins.to_string()),
    ])
    .expect("told by name");
    assert!(f.snapshot.zones[0].zone.private);

    let mut cut = records.clone();
    cut["NextToken"] = json!("abc");
    let f = folder(&[("records.json", &cut.to_string())]).expect("read");
    assert!(
        gaps(&f).contains(&"zone/shop.test.records"),
        "a cut-off listing is not a checked one"
    );
}
