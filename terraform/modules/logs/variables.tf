variable "log_groups" {
  description = "Log groups by name; days after which entries go, for ever when absent."
  type = map(object({
    retention_days = optional(number)
  }))
  nullable = false
}
