# IAM roles with their policies, each by name. Trust and inline policies come as JSON, so that what was reviewed is what is written.

locals {
  attachments = merge([
    for name, role in var.roles : {
      for arn in role.managed_policies : "${name}/${arn}" => { role = name, arn = arn }
    }
  ]...)
  inline = merge([
    for name, role in var.roles : {
      for policy, document in role.inline_policies : "${name}/${policy}" => { role = name, name = policy, document = document }
    }
  ]...)
}

resource "aws_iam_role" "role" {
  for_each = var.roles

  name                 = each.key
  path                 = each.value.path
  permissions_boundary = each.value.boundary
  assume_role_policy   = each.value.trust
}

resource "aws_iam_role_policy_attachment" "managed" {
  for_each = local.attachments

  role       = aws_iam_role.role[each.value.role].name
  policy_arn = each.value.arn
}

resource "aws_iam_role_policy" "inline" {
  for_each = local.inline

  name   = each.value.name
  role   = aws_iam_role.role[each.value.role].name
  policy = each.value.document
}
