# IAM's trust in green's token issuer. AWS checks the certificate itself: a thumbprint is not needed.

resource "aws_iam_openid_connect_provider" "green" {
  url            = "https://${var.issuer}"
  client_id_list = var.client_ids
}
