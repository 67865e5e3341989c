# Blue's network, only read: nothing here makes, changes or deletes a part of it.

data "aws_subnet" "reused" {
  for_each = toset(var.subnets)

  id = each.key
}

locals {
  zones = toset([for subnet in data.aws_subnet.reused : subnet.availability_zone])
  vpcs  = toset([for subnet in data.aws_subnet.reused : subnet.vpc_id])
}
