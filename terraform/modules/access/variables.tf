variable "cluster" {
  description = "Name of the cluster."
  type        = string
  nullable    = false
}

variable "entries" {
  description = "Access entries by IAM principal (role or user): Kubernetes groups, an access policy by name, and the namespaces in which it holds (all when empty)."
  type = map(object({
    groups     = optional(list(string), [])
    policy     = optional(string)
    namespaces = optional(list(string), [])
  }))
  nullable = false
}
