variable "cluster" {
  description = "Name of the cluster."
  type        = string
  nullable    = false
}

variable "launch_templates" {
  description = "Launch templates by name. User data is plain text. Never with a subnet, an instance profile or a behaviour at shutdown: EKS refuses those."
  type = map(object({
    root = object({
      device                = string
      gib                   = number
      kind                  = string
      iops                  = optional(number)
      throughput            = optional(number)
      encrypted             = bool
      kms_key               = optional(string)
      delete_on_termination = bool
    })
    volumes = optional(list(object({
      device                = string
      gib                   = number
      kind                  = string
      iops                  = optional(number)
      throughput            = optional(number)
      encrypted             = bool
      kms_key               = optional(string)
      delete_on_termination = bool
    })), [])
    http_tokens         = string
    hop_limit           = number
    security_groups     = optional(list(string), [])
    user_data           = optional(string)
    tags                = optional(map(string), {})
    monitoring          = bool
    tenancy             = optional(string)
    cpu_credits         = optional(string)
    associate_public_ip = optional(bool)
  }))
  default  = {}
  nullable = false
}

variable "node_groups" {
  description = "Node groups by name. `launch_template` names one of `launch_templates`, or one that exists. `max_unavailable` is a number of nodes, or a percentage as in 10%."
  type = map(object({
    role_arn        = string
    subnets         = list(string)
    instance_types  = list(string)
    ami_type        = string
    capacity_type   = string
    min             = number
    max             = number
    desired         = number
    disk_gib        = number
    labels          = optional(map(string), {})
    launch_template = optional(string)
    max_unavailable = optional(string, "1")
    repair          = optional(bool, false)
    taints = optional(list(object({
      key    = string
      value  = optional(string, "")
      effect = string
    })), [])
  }))
  default  = {}
  nullable = false
}
