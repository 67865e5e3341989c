# The EKS cluster. Its access is by access entries alone, and its add-ons are managed ones.

resource "aws_eks_cluster" "green" {
  name                          = var.name
  version                       = var.kubernetes_version
  role_arn                      = var.role_arn
  bootstrap_self_managed_addons = false
  deletion_protection           = var.deletion_protection
  enabled_cluster_log_types     = var.logging

  vpc_config {
    subnet_ids              = var.subnets
    security_group_ids      = var.security_groups
    endpoint_private_access = var.private_endpoint
    endpoint_public_access  = var.public_endpoint
    public_access_cidrs     = var.public_endpoint && length(var.endpoint_cidrs) > 0 ? var.endpoint_cidrs : null
  }

  dynamic "kubernetes_network_config" {
    for_each = var.service_cidr == null ? {} : { given = var.service_cidr }
    content {
      service_ipv4_cidr = kubernetes_network_config.value
    }
  }

  dynamic "encryption_config" {
    for_each = var.kms_key == null ? {} : { given = var.kms_key }
    content {
      resources = ["secrets"]

      provider {
        key_arn = encryption_config.value
      }
    }
  }

  access_config {
    authentication_mode                         = "API"
    bootstrap_cluster_creator_admin_permissions = false
  }

  upgrade_policy {
    support_type = var.support_type
  }

  lifecycle {
    # Both only matter at creation: a later difference would force a new cluster.
    ignore_changes = [access_config[0].bootstrap_cluster_creator_admin_permissions, bootstrap_self_managed_addons]
  }
}
