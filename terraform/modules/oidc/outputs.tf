output "arn" {
  description = "ARN of the provider."
  value       = aws_iam_openid_connect_provider.green.arn
}
