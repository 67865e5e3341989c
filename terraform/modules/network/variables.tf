variable "subnets" {
  description = "Ids of the subnets that green's control plane reaches its nodes through: blue's."
  type        = list(string)
  nullable    = false
}
