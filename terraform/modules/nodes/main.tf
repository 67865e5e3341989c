# Managed node groups and what their nodes are started from, each by name: inserting one renames nothing.

locals {
  taint_effects = {
    NoSchedule       = "NO_SCHEDULE"
    NoExecute        = "NO_EXECUTE"
    PreferNoSchedule = "PREFER_NO_SCHEDULE"
  }
  # Templates that somebody else keeps are looked up, never changed.
  foreign_templates = toset([
    for group in var.node_groups : group.launch_template
    if group.launch_template != null && !contains(keys(var.launch_templates), coalesce(group.launch_template, "-"))
  ])
}

data "aws_launch_template" "foreign" {
  for_each = local.foreign_templates

  name = each.key
}

resource "aws_launch_template" "template" {
  for_each = var.launch_templates

  name                   = each.key
  update_default_version = true
  user_data              = each.value.user_data == null ? null : base64encode(each.value.user_data)
  # Groups stand either here or on the interface: EC2 refuses both.
  vpc_security_group_ids = each.value.associate_public_ip == null && length(each.value.security_groups) > 0 ? each.value.security_groups : null

  dynamic "block_device_mappings" {
    for_each = concat([each.value.root], each.value.volumes)
    content {
      device_name = block_device_mappings.value.device

      ebs {
        volume_size           = block_device_mappings.value.gib
        volume_type           = block_device_mappings.value.kind
        iops                  = block_device_mappings.value.iops
        throughput            = block_device_mappings.value.throughput
        encrypted             = block_device_mappings.value.encrypted
        kms_key_id            = block_device_mappings.value.kms_key
        delete_on_termination = block_device_mappings.value.delete_on_termination
      }
    }
  }

  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = each.value.http_tokens
    http_put_response_hop_limit = each.value.hop_limit
  }

  monitoring {
    enabled = each.value.monitoring
  }

  dynamic "network_interfaces" {
    for_each = each.value.associate_public_ip == null ? [] : [each.value.associate_public_ip]
    content {
      device_index                = 0
      associate_public_ip_address = network_interfaces.value
      security_groups             = length(each.value.security_groups) > 0 ? each.value.security_groups : null
    }
  }

  dynamic "placement" {
    for_each = each.value.tenancy == null ? [] : [each.value.tenancy]
    content {
      tenancy = placement.value
    }
  }

  dynamic "credit_specification" {
    for_each = each.value.cpu_credits == null ? [] : [each.value.cpu_credits]
    content {
      cpu_credits = credit_specification.value
    }
  }

  dynamic "tag_specifications" {
    for_each = length(each.value.tags) > 0 ? ["instance", "volume"] : []
    content {
      resource_type = tag_specifications.value
      tags          = each.value.tags
    }
  }
}

resource "aws_eks_node_group" "group" {
  for_each = var.node_groups

  cluster_name    = var.cluster
  node_group_name = each.key
  node_role_arn   = each.value.role_arn
  subnet_ids      = each.value.subnets
  instance_types  = each.value.instance_types
  capacity_type   = each.value.capacity_type
  ami_type        = each.value.ami_type
  disk_size       = each.value.launch_template == null ? each.value.disk_gib : null
  labels          = each.value.labels

  scaling_config {
    min_size     = each.value.min
    max_size     = each.value.max
    desired_size = each.value.desired
  }

  update_config {
    max_unavailable            = endswith(each.value.max_unavailable, "%") ? null : tonumber(each.value.max_unavailable)
    max_unavailable_percentage = endswith(each.value.max_unavailable, "%") ? tonumber(trimsuffix(each.value.max_unavailable, "%")) : null
  }

  dynamic "launch_template" {
    for_each = each.value.launch_template == null ? [] : [each.value.launch_template]
    content {
      name = launch_template.value
      version = (
        contains(keys(var.launch_templates), launch_template.value)
        ? aws_launch_template.template[launch_template.value].latest_version
        : data.aws_launch_template.foreign[launch_template.value].default_version
      )
    }
  }

  dynamic "node_repair_config" {
    for_each = each.value.repair ? [true] : []
    content {
      enabled = node_repair_config.value
    }
  }

  dynamic "taint" {
    for_each = each.value.taints
    content {
      key    = taint.value.key
      value  = taint.value.value == "" ? null : taint.value.value
      effect = local.taint_effects[taint.value.effect]
    }
  }

  lifecycle {
    # An autoscaler owns it from the first day on.
    ignore_changes = [scaling_config[0].desired_size]
  }
}
