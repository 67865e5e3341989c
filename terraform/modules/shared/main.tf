# Parts of what others own, one resource each: a rule beside their rules, a tag beside their tags. Their whole object is never taken over.

resource "aws_security_group_rule" "ingress" {
  for_each = var.rules

  type                     = "ingress"
  security_group_id        = each.value.group
  protocol                 = each.value.protocol
  from_port                = each.value.from_port
  to_port                  = each.value.to_port
  source_security_group_id = each.value.source_group
  description              = each.value.description
}

resource "aws_ec2_tag" "tag" {
  for_each = var.tags

  resource_id = each.value.resource
  key         = each.value.key
  value       = each.value.value
}
