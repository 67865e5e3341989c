//! The live world: kube, the AWS SDK, DNS queries, HTTP, PostgreSQL.
