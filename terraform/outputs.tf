output "cluster" {
  description = "Name, endpoint and issuer of green."
  value = {
    name     = aws_eks_cluster.green.name
    endpoint = aws_eks_cluster.green.endpoint
    issuer   = local.issuer
  }
}

output "service_account_roles" {
  description = "Role ARNs by role name."
  value       = { for name, role in aws_iam_role.service_account : name => role.arn }
}
