variable "cluster" {
  description = "Name of the cluster."
  type        = string
  nullable    = false
}

variable "associations" {
  description = "Associations by namespace/service account."
  type = map(object({
    namespace       = string
    service_account = string
    role_arn        = string
  }))
  nullable = false
}
