variable "roles" {
  description = "Roles by name: trust policy and inline policies as JSON, managed policies by ARN, an optional boundary (ARN) and path."
  type = map(object({
    trust            = string
    managed_policies = optional(set(string), [])
    inline_policies  = optional(map(string), {})
    boundary         = optional(string)
    path             = optional(string, "/")
  }))
  nullable = false

  validation {
    condition     = alltrue([for name in keys(var.roles) : length(name) <= 64])
    error_message = "A role name has at most 64 characters."
  }
}
