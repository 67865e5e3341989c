data "aws_iam_policy_document" "cluster_trust" {
  statement {
    actions = ["sts:AssumeRole", "sts:TagSession"]
    principals {
      type        = "Service"
      identifiers = ["eks.amazonaws.com"]
    }
  }
}

data "aws_iam_policy_document" "node_trust" {
  statement {
    actions = ["sts:AssumeRole"]
    principals {
      type        = "Service"
      identifiers = ["ec2.amazonaws.com"]
    }
  }
}

resource "aws_iam_role" "cluster" {
  name               = "${var.cluster.name}-cluster"
  assume_role_policy = data.aws_iam_policy_document.cluster_trust.json
}

resource "aws_iam_role_policy_attachment" "cluster" {
  for_each   = toset(["AmazonEKSClusterPolicy"])
  role       = aws_iam_role.cluster.name
  policy_arn = "arn:aws:iam::aws:policy/${each.key}"
}

resource "aws_iam_role" "node" {
  name               = "${var.cluster.name}-node"
  assume_role_policy = data.aws_iam_policy_document.node_trust.json
}

resource "aws_iam_role_policy_attachment" "node" {
  for_each   = toset(["AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly"])
  role       = aws_iam_role.node.name
  policy_arn = "arn:aws:iam::aws:policy/${each.key}"
}

data "aws_iam_policy_document" "service_account_trust" {
  for_each = var.service_account_roles

  statement {
    actions = ["sts:AssumeRoleWithWebIdentity"]
    principals {
      type        = "Federated"
      identifiers = [aws_iam_openid_connect_provider.green.arn]
    }
    condition {
      test     = "StringEquals"
      variable = "${local.issuer}:aud"
      values   = ["sts.amazonaws.com"]
    }
    condition {
      test     = "StringEquals"
      variable = "${local.issuer}:sub"
      values   = ["system:serviceaccount:${each.value.namespace}:${each.value.service_account}"]
    }
  }
}

resource "aws_iam_role" "service_account" {
  for_each           = var.service_account_roles
  name               = each.key
  assume_role_policy = data.aws_iam_policy_document.service_account_trust[each.key].json
}

resource "aws_iam_role_policy_attachment" "service_account" {
  for_each = merge([
    for role, spec in var.service_account_roles : { for arn in spec.managed_policies : "${role}/${arn}" => { role = role, arn = arn } }
  ]...)
  role       = aws_iam_role.service_account[each.value.role].name
  policy_arn = each.value.arn
}

resource "aws_iam_role_policy" "service_account" {
  for_each = merge([
    for role, spec in var.service_account_roles : { for name, document in spec.inline_policies : "${role}/${name}" => { role = role, name = name, document = document } }
  ]...)
  name   = each.value.name
  role   = aws_iam_role.service_account[each.value.role].name
  policy = each.value.document
}
