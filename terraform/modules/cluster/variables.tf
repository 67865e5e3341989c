variable "name" {
  description = "Name, 1 to 100 letters, digits, `-` and `_`."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[0-9A-Za-z][A-Za-z0-9_-]{0,99}$", var.name))
    error_message = "An EKS cluster's name has 1 to 100 letters, digits, `-` and `_`, and begins with a letter or digit."
  }
}

variable "kubernetes_version" {
  description = "Kubernetes version, as in `1.35`."
  type        = string
  nullable    = false
}

variable "role_arn" {
  description = "ARN of the cluster role."
  type        = string
  nullable    = false
}

variable "subnets" {
  description = "Subnet ids, at least two in two zones."
  type        = list(string)
  nullable    = false
}

variable "security_groups" {
  description = "Security groups of the control plane's interfaces besides the one that EKS makes; at most 4."
  type        = list(string)
  default     = null
}

variable "service_cidr" {
  description = "Range of the services; EKS chooses when absent. Never changes."
  type        = string
  default     = null
}

variable "private_endpoint" {
  description = "Whether the API endpoint is reachable inside the VPC."
  type        = bool
  default     = true
}

variable "public_endpoint" {
  description = "Whether the API endpoint is reachable from outside the VPC."
  type        = bool
  default     = true
}

variable "endpoint_cidrs" {
  description = "Ranges that the public endpoint answers; all of them when empty. At most 40."
  type        = list(string)
  default     = []
  nullable    = false
}

variable "logging" {
  description = "Logs of the control plane: any of api, audit, authenticator, controllerManager, scheduler."
  type        = list(string)
  default     = null
}

variable "kms_key" {
  description = "ARN of a KMS key that wraps Secrets; AWS's own when absent. Can never be taken off again."
  type        = string
  default     = null
}

variable "deletion_protection" {
  description = "EKS refuses to delete the cluster."
  type        = bool
  default     = false
}

variable "support_type" {
  description = "What happens at the end of standard support: STANDARD (upgraded) or EXTENDED (paid)."
  type        = string
  default     = "STANDARD"
}
