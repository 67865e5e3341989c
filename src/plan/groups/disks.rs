//! Root volume and further volumes with the defaults of the kops release that wrote the documents (kops.md 1.4, 3).

use super::super::kops::number;
use super::super::model::Severity;
use super::Ig;
use super::types::Machine;
use crate::snapshot::kops::effective;
use crate::world::cloud::Disk;
use serde_json::Value;

/// Root volume of a kops worker when the group says nothing, GiB (kops.md 3). EKS itself would take 20.
const NODE_DISK: u32 = 128;
/// Size of the image of EKS's AMIs, GiB: no smaller root volume can be made of it.
const IMAGE: u32 = 20;
/// Least operations and MiB/s of gp3, and least operations of io1 and io2 in kops.
const GP3_IOPS: u32 = 3000;
const GP3_THROUGHPUT: u32 = 125;
const IO_IOPS: u32 = 100;

/// Types of EBS that a machine can start from (eks.md 1.7; sc1 and st1 cannot).
const ROOTS: &[&str] = &["gp2", "gp3", "io1", "io2", "standard"];
/// Largest volume of any type, GiB (64 TiB: gp3, io2).
const LARGEST: u32 = 65_536;

/// A root volume that cannot be made is never replaced by a default in silence.
fn nonsense(ig: &mut Ig) {
    let size = ["/spec/rootVolumeSize", "/spec/rootVolume/size"]
        .into_iter()
        .filter_map(|p| ig.field(p))
        // 0 is how Go spells "not said".
        .find(|v| v.as_u64().is_none_or(|n| n > u64::from(LARGEST)))
        .map(|v| format!("a root volume of {v} GiB cannot be made (1 to {LARGEST})"));
    let kind = ig
        .text("/spec/rootVolumeType")
        .or(ig.text("/spec/rootVolume/type"))
        .filter(|t| !ROOTS.contains(t))
        .map(|t| {
            format!(
                "no machine starts from a root volume of type {t} (one of {})",
                ROOTS.join(", ")
            )
        });
    for what in [size, kind].into_iter().flatten() {
        ig.find(
            "KOPS-ig-disk",
            Severity::Blocker,
            what,
            "Correct it on blue (`kops edit ig`), then discover again: what was meant is not guessed.",
        );
    }
}

/// Root first, then the others.
pub(super) fn disks(ig: &mut Ig, machine: &Machine) -> (Disk, Vec<Disk>) {
    // gp2, not encrypted up to kops 1.19; gp3, encrypted from 1.20 (kops.md 1.4).
    let old = effective(&ig.snapshot.kops).release.minor < 20;
    let default_kind = if old { "gp2" } else { "gp3" };
    nonsense(ig);
    let mut gib = number(ig.doc, "/spec/rootVolumeSize")
        .or(number(ig.doc, "/spec/rootVolume/size"))
        .filter(|n| (1..=LARGEST).contains(n))
        .unwrap_or_else(|| {
            ig.notes
                .push(format!("root volume of {NODE_DISK} GiB, kops's default"));
            NODE_DISK
        });
    if gib < IMAGE {
        ig.find(
            "KOPS-ig-disk",
            Severity::Info,
            format!("root volume of {gib} GiB: EKS's image needs {IMAGE}, so it gets {IMAGE}"),
            "Nothing to do.",
        );
        gib = IMAGE;
    }
    let kind = ig
        .text("/spec/rootVolumeType")
        .or(ig.text("/spec/rootVolume/type"))
        .filter(|t| ROOTS.contains(t))
        .map(String::from)
        .unwrap_or_else(|| {
            ig.notes.push(format!(
                "root volume {default_kind}, the default of kops {}",
                if old { "up to 1.19" } else { "from 1.20 on" }
            ));
            default_kind.into()
        });
    let flag = |ig: &Ig, a: &str, b: &str| ig.field(a).or(ig.field(b)).and_then(Value::as_bool);
    let said = flag(
        ig,
        "/spec/rootVolumeEncryption",
        "/spec/rootVolume/encryption",
    );
    let encrypted = said.unwrap_or(!old);
    let key = ig
        .text("/spec/rootVolumeEncryptionKey")
        .or(ig.text("/spec/rootVolume/encryptionKey"))
        .map(String::from);
    // kops uses the key only where encryption is said in so many words.
    let kms_key = match (key, said) {
        (Some(key), Some(true)) => Some(key),
        (Some(key), _) => {
            ig.find(
                "KOPS-ig-disk",
                Severity::Warning,
                format!("the key {key} for root volumes is not used by kops without rootVolumeEncryption: true, and not on green either"),
                "Say rootVolumeEncryption: true on blue if the key is meant.",
            );
            None
        }
        (None, _) => None,
    };
    if kms_key.is_some() {
        ig.find(
            "KOPS-ig-disk",
            Severity::Warning,
            "its root volumes are encrypted with a key of your own: the Auto Scaling role of the account must be allowed to use it, or no node starts",
            "Check the key's grants for AWSServiceRoleForAutoScaling before the run.",
        );
    }
    let (iops, throughput) = speed(
        &kind,
        number(ig.doc, "/spec/rootVolumeIops").or(number(ig.doc, "/spec/rootVolume/iops")),
        number(ig.doc, "/spec/rootVolumeThroughput")
            .or(number(ig.doc, "/spec/rootVolume/throughput")),
    );
    // Bottlerocket keeps images and pods on its second volume.
    let device = if machine.bottlerocket {
        ig.note("Bottlerocket: the size is that of its data volume, /dev/xvdb");
        "/dev/xvdb"
    } else {
        "/dev/xvda"
    };
    let root = Disk {
        device: device.into(),
        gib,
        kind,
        iops,
        throughput,
        encrypted,
        kms_key,
        delete_on_termination: true,
    };
    let mut more = further(ig, default_kind, !old);
    let mut root = root;
    if let Some(key) = &ig.spec.green.nodes.volume_key {
        for d in std::iter::once(&mut root).chain(&mut more) {
            if d.kms_key.is_none() {
                d.encrypted = true;
                d.kms_key = Some(key.clone());
            }
        }
    }
    (root, more)
}

/// Operations and throughput as kops fills them in: lower values are raised to what the type has at least.
fn speed(kind: &str, iops: Option<u32>, throughput: Option<u32>) -> (Option<u32>, Option<u32>) {
    match kind {
        "gp3" => (
            Some(iops.unwrap_or(0).max(GP3_IOPS)),
            Some(throughput.unwrap_or(0).max(GP3_THROUGHPUT)),
        ),
        "io1" | "io2" => (Some(iops.unwrap_or(0).max(IO_IOPS)), None),
        _ => (None, None),
    }
}

fn further(ig: &mut Ig, default_kind: &str, encrypted: bool) -> Vec<Disk> {
    let wanted: Vec<Value> = ig
        .field("/spec/volumes")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let mut out: Vec<Disk> = vec![];
    for v in wanted {
        let device = v["device"].as_str().unwrap_or("").to_string();
        let gib = number(&v, "/size").unwrap_or(0);
        let root = matches!(device.as_str(), "/dev/xvda" | "/dev/xvdb" | "/dev/sda1");
        if device.is_empty() || gib == 0 || root && device != "/dev/xvdb" {
            ig.find(
                "KOPS-ig-disk",
                Severity::Warning,
                format!("volume {device} of {gib} GiB is left out: it has no device or size, or it is the root volume"),
                "Correct spec.volumes on blue.",
            );
            continue;
        }
        if out.iter().any(|d| d.device == device) {
            ig.find(
                "KOPS-ig-disk",
                Severity::Warning,
                format!("volume {device} is named twice; the first counts"),
                "Correct spec.volumes on blue.",
            );
            continue;
        }
        let keep = v["deleteOnTermination"] == false;
        if keep {
            ig.find(
                "KOPS-ig-disk",
                Severity::Warning,
                format!("volume {device} stays behind when a node goes, on green as on blue: each replaced node leaves a volume that is paid for"),
                "Say deleteOnTermination: true on blue if nobody needs them.",
            );
        }
        let kind = v["type"]
            .as_str()
            .filter(|t| !t.is_empty())
            .unwrap_or(default_kind)
            .to_string();
        let (iops, throughput) = speed(&kind, number(&v, "/iops"), number(&v, "/throughput"));
        let kms_key = v["key"]
            .as_str()
            .filter(|k| !k.is_empty())
            .map(String::from);
        if let Some(key) = &kms_key {
            ig.find(
                "KOPS-ig-disk",
                Severity::Warning,
                format!("its volumes {device} are encrypted with {key}, a key of your own: the Auto Scaling role of the account must be allowed to use it, or no node starts"),
                "Check the key's grants for AWSServiceRoleForAutoScaling before the run.",
            );
        }
        out.push(Disk {
            device,
            gib,
            kind,
            iops,
            throughput,
            encrypted: v["encrypted"].as_bool().unwrap_or(encrypted),
            kms_key,
            delete_on_termination: !keep,
        });
    }
    if !out.is_empty() {
        ig.find(
            "KOPS-ig-volumes",
            Severity::Info,
            format!(
                "further volumes come along in the launch template: {}",
                out.iter()
                    .map(|d| {
                        let key = d.kms_key.as_ref().map(|k| format!(", encrypted with {k}"));
                        format!(
                            "{} {} GiB {}{}",
                            d.device,
                            d.gib,
                            d.kind,
                            key.unwrap_or_default()
                        )
                    })
                    .collect::<Vec<_>>()
                    .join("; ")
            ),
            "Who formats and mounts them is user data: see KOPS-ig-host.",
        );
    }
    out
}
