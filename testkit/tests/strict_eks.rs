//! The EKS fake has the manners of EKS, and the account around it those of AWS (eks.md 1 to 3): through the SDK that the product uses.

mod strict_bench;

#[path = "strict_eks/access.rs"]
mod access;
#[path = "strict_eks/clusters.rs"]
mod clusters;
#[path = "strict_eks/health.rs"]
mod health;
#[path = "strict_eks/iam.rs"]
mod iam;
#[path = "strict_eks/interfaces.rs"]
mod interfaces;
#[path = "strict_eks/nodes.rs"]
mod nodes;
#[path = "strict_eks/permits.rs"]
mod permits;
#[path = "strict_eks/quotas.rs"]
mod quotas;
#[path = "strict_eks/updates.rs"]
mod updates;
#[path = "strict_eks/world.rs"]
mod world;
