variable "rules" {
  description = "Ingress rules by name: the group that gets one, and the group that may come in. Ports -1 with protocol -1: all."
  type = map(object({
    group        = string
    protocol     = string
    from_port    = number
    to_port      = number
    source_group = string
    description  = string
  }))
  default  = {}
  nullable = false
}

variable "tags" {
  description = "Tags by name: a resource's id, key and value."
  type = map(object({
    resource = string
    key      = string
    value    = string
  }))
  default  = {}
  nullable = false
}
