output "subnets" {
  description = "The ids, once it is known that they are of one VPC and of at least two zones."
  value       = [for id in var.subnets : data.aws_subnet.reused[id].id]

  precondition {
    condition     = length(local.zones) >= 2
    error_message = "EKS wants subnets in at least two zones."
  }
  precondition {
    condition     = length(local.vpcs) == 1
    error_message = "All subnets must be of one VPC."
  }
}

output "vpc" {
  description = "Id of the VPC."
  value       = one(local.vpcs)
}
