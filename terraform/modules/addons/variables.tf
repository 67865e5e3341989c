variable "cluster" {
  description = "Name of the cluster."
  type        = string
  nullable    = false
}

variable "addons" {
  description = "Add-ons by name: version (EKS's default when absent), role of the service account, settings as JSON, and what becomes of objects that are there already (NONE, OVERWRITE, PRESERVE)."
  type = map(object({
    version       = optional(string)
    role_arn      = optional(string)
    configuration = optional(string)
    conflicts     = optional(string, "OVERWRITE")
  }))
  nullable = false
}
