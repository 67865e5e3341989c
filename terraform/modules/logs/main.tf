# Log groups that must be there before who writes to them: otherwise EKS makes its own, which keeps everything for ever.

resource "aws_cloudwatch_log_group" "group" {
  for_each = var.log_groups

  name              = each.key
  retention_in_days = each.value.retention_days
}
