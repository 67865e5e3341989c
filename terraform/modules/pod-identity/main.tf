# Service accounts that have a role by EKS Pod Identity, by namespace/name.

resource "aws_eks_pod_identity_association" "account" {
  for_each = var.associations

  cluster_name    = var.cluster
  namespace       = each.value.namespace
  service_account = each.value.service_account
  role_arn        = each.value.role_arn
}
