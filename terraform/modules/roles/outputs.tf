output "arns" {
  description = "ARNs by role name; known only when the policies are attached, so that who uses a role finds it complete."
  value       = { for name, role in aws_iam_role.role : name => role.arn }
  depends_on = [
    aws_iam_role_policy_attachment.managed,
    aws_iam_role_policy.inline,
  ]
}
