//! KWOK: keeps the simulated nodes Ready and runs the pods that no process stands for. `bench.md` 3

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::kube::{ControlPlane, Side, User};
use super::paths;
use super::ports::Port;
use super::process::{Process, Stop};
use crate::error::{Context, Result};

/// A running KWOK.
pub struct Kwok {
    process: Process,
    _port: Port,
}

impl Kwok {
    /// Starts it for one control plane. Pods with an image of `process_images` are left to the process kubelet.
    pub async fn start(
        plane: &ControlPlane,
        dir: &Path,
        process_images: &[String],
    ) -> Result<Self> {
        let side = plane.side();
        let config = dir.join(side.name()).join("kwok.yaml");
        std::fs::write(&config, stages(process_images))
            .context(|| format!("could not write {}", config.display()))?;
        let port = Port::reserve()?;
        // Pods of the two sides must not share addresses, nor those of the process kubelet (10.x).
        let (cidr, node_ip) = match side {
            Side::Blue => ("100.96.0.0/16", Ipv4Addr::new(172, 20, 32, 1)),
            Side::Green => ("100.120.0.0/16", Ipv4Addr::new(172, 20, 96, 1)),
        };
        let kubeconfig: PathBuf = plane.kubeconfig(User::Kwok);
        let mut command = Command::new(paths::binary("kwok", "kwok")?);
        command
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .arg(format!("--config={}", config.display()))
            .args([
                "--manage-all-nodes=true",
                "--node-lease-duration-seconds=40",
            ])
            .arg(format!("--cidr={cidr}"))
            .arg(format!("--node-ip={node_ip}"))
            .arg(format!("--server-address=127.0.0.1:{}", port.number()));
        let process = Process::spawn(
            &format!("{}'s kwok", side.name()),
            command,
            &dir.join(side.name()).join("kwok.log"),
            Stop::Kill,
        )?;
        Ok(Kwok {
            process,
            _port: port,
        })
    }

    /// An error with the end of the log if it has ended.
    pub fn check_alive(&mut self) -> Result<()> {
        self.process.check_alive()
    }
}

/// What becomes of nodes and pods. Ours, since KWOK's own would also run the pods of the process kubelet.
fn stages(process_images: &[String]) -> String {
    let not_ours = if process_images.is_empty() {
        String::new()
    } else {
        let mut text = String::from(
            "    - key: '.spec.containers[].image'\n      operator: 'NotIn'\n      values:\n",
        );
        for image in process_images {
            text.push_str(&format!("      - {image:?}\n"));
        }
        text
    };
    STAGES.replace("    # NOT OURS\n", &not_ours)
}

const STAGES: &str = include_str!("kwok-stages.yaml");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_of_a_pod_leaves_the_process_kubelets_pods_alone() {
        let text = stages(&["registry.shop.test/web:1.4".into()]);
        let pods: Vec<&str> = text
            .split("\n---\n")
            .filter(|stage| stage.contains("kind: Pod\n"))
            .collect();
        assert_eq!(pods.len(), 3, "ready, complete, delete");
        for stage in pods {
            assert!(
                stage.contains("- \"registry.shop.test/web:1.4\""),
                "{stage}"
            );
        }
    }
}
