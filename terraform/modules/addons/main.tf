# Managed add-ons by name. The root uses this module twice: before the nodes (CNI, kube-proxy, identity agent), and after them.

resource "aws_eks_addon" "addon" {
  for_each = var.addons

  cluster_name                = var.cluster
  addon_name                  = each.key
  addon_version               = each.value.version
  service_account_role_arn    = each.value.role_arn
  configuration_values        = each.value.configuration
  resolve_conflicts_on_create = each.value.conflicts == "PRESERVE" ? "NONE" : each.value.conflicts
  resolve_conflicts_on_update = each.value.conflicts
}
