output "name" {
  description = "Name, once the cluster stands."
  value       = aws_eks_cluster.green.name
}

output "issuer" {
  description = "Issuer of its service account tokens, without https://."
  value       = trimprefix(aws_eks_cluster.green.identity[0].oidc[0].issuer, "https://")
}

output "security_group" {
  description = "The security group that EKS made for control plane and nodes."
  value       = aws_eks_cluster.green.vpc_config[0].cluster_security_group_id
}

output "endpoint" {
  description = "Address of its API server."
  value       = aws_eks_cluster.green.endpoint
}

output "ca_data" {
  description = "Certificate of its authority, base64."
  value       = aws_eks_cluster.green.certificate_authority[0].data
}
