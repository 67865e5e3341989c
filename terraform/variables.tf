variable "cluster" {
  description = "Target cluster of the plan: `.target.cluster` of plan.json."
  type = object({
    name    = string
    version = string
    subnets = list(string)
  })
}

variable "node_groups" {
  description = "Node groups by name: `.target.node_groups` of plan.json, keyed by `.name`. for_each by name, so an insertion renames nothing."
  type = map(object({
    instance_types = list(string)
    capacity_type  = string
    ami_type       = string
    min            = number
    max            = number
    desired        = number
    disk_gib       = number
    subnets        = list(string)
    labels         = map(string)
    taints = list(object({
      key    = string
      value  = string
      effect = string
    }))
  }))
}

variable "addons" {
  description = "Add-on names of the plan. Those in `before_compute` must exist before the first node joins."
  type        = set(string)
}

variable "service_account_roles" {
  description = "One role per service account: name of the role => namespace, service account and policies. Trust is for green's issuer."
  type = map(object({
    namespace        = string
    service_account  = string
    managed_policies = list(string)
    inline_policies  = map(string)
  }))
  default = {}
}

variable "access" {
  description = "Access entries: IAM principal ARN => access policy name and Kubernetes groups."
  type = map(object({
    policy = optional(string)
    groups = optional(list(string), [])
  }))
  default = {}
}

variable "public_endpoint" {
  description = "Whether the API endpoint is reachable from outside the VPC. The private endpoint is always on."
  type        = bool
  default     = true
}
