variable "issuer" {
  description = "Issuer without https://."
  type        = string
  nullable    = false
}

variable "client_ids" {
  description = "Audiences."
  type        = list(string)
  default     = ["sts.amazonaws.com"]
  nullable    = false
}
