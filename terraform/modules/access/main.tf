# Who gets into green, by IAM principal.

resource "aws_eks_access_entry" "entry" {
  for_each = var.entries

  cluster_name      = var.cluster
  principal_arn     = each.key
  kubernetes_groups = each.value.groups
}

resource "aws_eks_access_policy_association" "policy" {
  for_each = { for principal, entry in var.entries : principal => entry if entry.policy != null }

  cluster_name  = var.cluster
  principal_arn = each.key
  policy_arn    = "arn:${split(":", each.key)[1]}:eks::aws:cluster-access-policy/${each.value.policy}"

  access_scope {
    type       = length(each.value.namespaces) > 0 ? "namespace" : "cluster"
    namespaces = length(each.value.namespaces) > 0 ? each.value.namespaces : null
  }

  depends_on = [aws_eks_access_entry.entry]
}
