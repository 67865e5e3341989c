# Green as code: the EKS cluster, node groups, add-ons and roles of a crossfade plan. The network is blue's and is only read.

locals {
  # eks.md 0.4: these before the nodes, the rest after them (coredns without nodes is DEGRADED).
  before_compute = toset(["vpc-cni", "kube-proxy", "eks-pod-identity-agent"])
  issuer         = replace(aws_eks_cluster.green.identity[0].oidc[0].issuer, "https://", "")
  taint_effects = {
    NoSchedule       = "NO_SCHEDULE"
    NoExecute        = "NO_EXECUTE"
    PreferNoSchedule = "PREFER_NO_SCHEDULE"
  }
}

resource "aws_eks_cluster" "green" {
  name                          = var.cluster.name
  version                       = var.cluster.version
  role_arn                      = aws_iam_role.cluster.arn
  bootstrap_self_managed_addons = false

  vpc_config {
    subnet_ids              = var.cluster.subnets
    endpoint_private_access = true
    endpoint_public_access  = var.public_endpoint
  }

  access_config {
    authentication_mode                         = "API"
    bootstrap_cluster_creator_admin_permissions = false
  }

  upgrade_policy {
    support_type = "STANDARD"
  }

  lifecycle {
    # Both only matter at creation; a later difference would force a new cluster.
    ignore_changes = [access_config[0].bootstrap_cluster_creator_admin_permissions, bootstrap_self_managed_addons]
  }

  depends_on = [aws_iam_role_policy_attachment.cluster]
}

resource "aws_iam_openid_connect_provider" "green" {
  url            = aws_eks_cluster.green.identity[0].oidc[0].issuer
  client_id_list = ["sts.amazonaws.com"]
}

resource "aws_eks_access_entry" "access" {
  for_each          = var.access
  cluster_name      = aws_eks_cluster.green.name
  principal_arn     = each.key
  kubernetes_groups = each.value.groups
}

resource "aws_eks_access_policy_association" "access" {
  for_each      = { for arn, access in var.access : arn => access if access.policy != null }
  cluster_name  = aws_eks_cluster.green.name
  principal_arn = each.key
  policy_arn    = "arn:aws:eks::aws:cluster-access-policy/${each.value.policy}"

  access_scope {
    type = "cluster"
  }

  depends_on = [aws_eks_access_entry.access]
}

resource "aws_eks_addon" "before_compute" {
  for_each     = setintersection(var.addons, local.before_compute)
  cluster_name = aws_eks_cluster.green.name
  addon_name   = each.key
}

resource "aws_eks_node_group" "groups" {
  for_each        = var.node_groups
  cluster_name    = aws_eks_cluster.green.name
  node_group_name = each.key
  node_role_arn   = aws_iam_role.node.arn
  subnet_ids      = each.value.subnets
  instance_types  = each.value.instance_types
  capacity_type   = each.value.capacity_type
  ami_type        = each.value.ami_type
  disk_size       = each.value.disk_gib
  labels          = each.value.labels

  scaling_config {
    min_size     = each.value.min
    max_size     = each.value.max
    desired_size = each.value.desired
  }

  dynamic "taint" {
    for_each = each.value.taints
    content {
      key    = taint.value.key
      value  = taint.value.value
      effect = local.taint_effects[taint.value.effect]
    }
  }

  lifecycle {
    # An autoscaler owns it from the first day on.
    ignore_changes = [scaling_config[0].desired_size]
  }

  depends_on = [aws_eks_addon.before_compute, aws_iam_role_policy_attachment.node]
}

resource "aws_eks_addon" "after_compute" {
  for_each     = setsubtract(var.addons, local.before_compute)
  cluster_name = aws_eks_cluster.green.name
  addon_name   = each.key

  depends_on = [aws_eks_node_group.groups]
}
