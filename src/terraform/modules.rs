//! The maintained modules of `terraform/modules`, inside this program: a rendering takes them along.

macro_rules! files {
    ($($path:literal),* $(,)?) => {
        &[$((concat!("modules/", $path), include_str!(concat!("../../terraform/modules/", $path)))),*]
    };
}

/// Every file of every module, by its path in a rendering.
pub const FILES: &[(&str, &str)] = files![
    "access/main.tf",
    "access/variables.tf",
    "access/versions.tf",
    "addons/main.tf",
    "addons/variables.tf",
    "addons/versions.tf",
    "cluster/main.tf",
    "cluster/outputs.tf",
    "cluster/variables.tf",
    "cluster/versions.tf",
    "logs/main.tf",
    "logs/variables.tf",
    "logs/versions.tf",
    "network/main.tf",
    "network/outputs.tf",
    "network/variables.tf",
    "network/versions.tf",
    "nodes/main.tf",
    "nodes/variables.tf",
    "nodes/versions.tf",
    "oidc/main.tf",
    "oidc/outputs.tf",
    "oidc/variables.tf",
    "oidc/versions.tf",
    "pod-identity/main.tf",
    "pod-identity/variables.tf",
    "pod-identity/versions.tf",
    "roles/main.tf",
    "roles/outputs.tf",
    "roles/variables.tf",
    "roles/versions.tf",
    "shared/main.tf",
    "shared/variables.tf",
    "shared/versions.tf",
];
