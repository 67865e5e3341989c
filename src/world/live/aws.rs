//! What all AWS clients share: configuration from the spec, error classes, EKS tokens.

use super::kube_error::chain;
use super::kubeconfig::harden;
use crate::spec::model;
use crate::world::{Class, Error, Result};
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_sdk_eks::error::{ProvideErrorMetadata, SdkError};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use base64::Engine;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::sync::OnceCell;

/// The account as the spec declares it. Nothing is read before the first call.
pub(super) struct AwsBase {
    region: Option<String>,
    profile: Option<String>,
    config: OnceCell<SdkConfig>,
    /// Seconds that green's clock is ahead of this machine's, as far as known.
    skew: AtomicI64,
}

impl AwsBase {
    pub(super) fn new(aws: &model::Aws) -> Self {
        AwsBase {
            region: aws.region.clone(),
            profile: aws.profile.clone(),
            config: OnceCell::new(),
            skew: AtomicI64::new(0),
        }
    }

    /// The account that a ready configuration leads to.
    pub(super) fn given(config: SdkConfig) -> Self {
        AwsBase {
            region: None,
            profile: None,
            config: OnceCell::new_with(Some(config)),
            skew: AtomicI64::new(0),
        }
    }

    /// Configuration for every client: no retries, because the engine repeats a call itself and journals each attempt.
    pub(super) async fn config(&self) -> &SdkConfig {
        self.config
            .get_or_init(|| async {
                let mut loader = aws_config::defaults(BehaviorVersion::v2026_01_12())
                    .retry_config(RetryConfig::disabled())
                    .timeout_config(
                        TimeoutConfig::builder()
                            .connect_timeout(Duration::from_secs(10))
                            .read_timeout(Duration::from_secs(60))
                            .build(),
                    );
                if let Some(region) = &self.region {
                    loader = loader.region(Region::new(region.clone()));
                }
                if let Some(profile) = &self.profile {
                    loader = loader.profile_name(profile);
                }
                loader.load().await
            })
            .await
    }

    /// The same with the SDK's own retries: for long read-only sweeps, which nobody journals.
    pub(super) async fn reading(&self) -> SdkConfig {
        self.config()
            .await
            .clone()
            .into_builder()
            .retry_config(RetryConfig::standard().with_max_attempts(5))
            .build()
    }

    /// The region in use.
    pub(super) async fn region(&self) -> Result<String> {
        match self.config().await.region() {
            Some(r) => Ok(r.to_string()),
            None => Err(Error::new(Class::Refused, "aws", "no AWS region is set")
                .remedy("set aws.region in migration.yaml")),
        }
    }

    /// Seconds that green's clock is ahead of this machine's.
    pub(super) fn skew(&self) -> i64 {
        self.skew.load(Ordering::Relaxed)
    }

    /// Tokens are signed with green's time from now on.
    pub(super) fn set_skew(&self, seconds: i64) {
        self.skew.store(seconds, Ordering::Relaxed);
    }

    /// Connection to the EKS cluster: endpoint and CA from DescribeCluster, a fresh token (of `who`, or of the caller). `NotReady` before
    /// the cluster exists.
    pub(super) async fn eks_config(
        &self,
        name: &str,
        who: Option<&Credentials>,
    ) -> Result<kube::Config> {
        let at = format!("cluster/{name}");
        let client = aws_sdk_eks::Client::new(self.config().await);
        let cluster = match client.describe_cluster().name(name).send().await {
            Ok(answer) => answer.cluster,
            Err(e) => {
                let e = error(&at, e);
                return Err(match e.class {
                    Class::NotFound => {
                        Error::new(Class::NotReady, at, "the EKS cluster does not exist yet")
                    }
                    _ => e,
                });
            }
        }
        .ok_or_else(|| {
            Error::new(
                Class::Internal,
                &at,
                "DescribeCluster answered without a cluster",
            )
        })?;
        let (Some(endpoint), Some(ca)) = (
            cluster.endpoint(),
            cluster.certificate_authority().and_then(|c| c.data()),
        ) else {
            let status = cluster.status().map_or("without status", |s| s.as_str());
            return Err(Error::new(
                Class::NotReady,
                at,
                format!("the EKS cluster has no endpoint yet ({status})"),
            ));
        };
        let internal = |what: &str| {
            Error::new(
                Class::Internal,
                format!("cluster/{name}"),
                format!("DescribeCluster answered with {what}"),
            )
        };
        let uri: http::Uri = endpoint
            .parse()
            .map_err(|_| internal("an endpoint that is no URL"))?;
        let pem = base64::engine::general_purpose::STANDARD
            .decode(ca)
            .map_err(|_| internal("a CA that is no base64"))?;
        let ders = pem_to_der(&pem);
        if ders.is_empty() {
            return Err(internal("a CA that holds no certificate"));
        }
        let mut config = kube::Config::new(uri);
        config.root_cert = Some(ders);
        config.auth_info.token = Some(secrecy::SecretString::from(
            self.eks_token(name, who).await?,
        ));
        Ok(harden(config))
    }
}

/// Certificates of a PEM bundle as DER.
pub(super) fn pem_to_der(pem: &[u8]) -> Vec<Vec<u8>> {
    let text = String::from_utf8_lossy(pem);
    let mut out = vec![];
    let mut rest = text.as_ref();
    while let Some((_, after)) = rest.split_once("-----BEGIN CERTIFICATE-----") {
        let Some((body, tail)) = after.split_once("-----END CERTIFICATE-----") else {
            break;
        };
        let compact: String = body.split_whitespace().collect();
        if let Ok(der) = base64::engine::general_purpose::STANDARD.decode(compact) {
            out.push(der);
        }
        rest = tail;
    }
    out
}

/// A time as RFC 3339.
pub(super) fn when(at: Option<&aws_sdk_eks::primitives::DateTime>) -> Option<String> {
    at.and_then(|t| {
        t.fmt(aws_sdk_eks::primitives::DateTimeFormat::DateTime)
            .ok()
    })
}

/// Class of an AWS error code.
pub(super) fn class_of(code: &str, message: &str, status: u16) -> Class {
    match code {
        "" if status >= 500 => Class::Unreachable,
        "" if status == 403 => Class::Unauthorized,
        // No code at all: an answer of something that is not AWS. Never "not found".
        "" => Class::Internal,
        c if c.starts_with("Throttl") => Class::Throttled,
        "TooManyRequestsException"
        | "RequestLimitExceeded"
        | "PriorRequestNotComplete"
        | "SlowDown"
        | "RequestThrottled"
        | "BandwidthLimitExceeded" => Class::Throttled,
        c if c.starts_with("AccessDenied") || c.starts_with("ExpiredToken") => Class::Unauthorized,
        "UnauthorizedOperation"
        | "InvalidClientTokenId"
        | "SignatureDoesNotMatch"
        | "AuthFailure"
        | "UnrecognizedClientException"
        | "IncompleteSignature"
        | "MissingAuthenticationToken"
        | "OptInRequired"
        | "NotAuthorized"
        | "InvalidAccessKeyId"
        | "AllAccessDisabled" => Class::Unauthorized,
        "ResourceNotFoundException"
        | "NoSuchEntity"
        | "NoSuchHostedZone"
        | "NoSuchChange"
        | "NoSuchBucket"
        | "NoSuchKey"
        | "NotFound"
        | "NotFoundException" => Class::NotFound,
        c if c.ends_with(".NotFound") || c.ends_with("NotFound") => Class::NotFound,
        c if c.ends_with(".NotFoundException") => Class::NotFound,
        c if c.ends_with(".AlreadyExistsException") => Class::AlreadyExists,
        "InvalidPermission.Duplicate"
        | "EntityAlreadyExists"
        | "ResourceAlreadyExistsException"
        | "BucketAlreadyExists"
        | "BucketAlreadyOwnedByYou" => Class::AlreadyExists,
        // S3's words for "nothing of that kind is set".
        "ServerSideEncryptionConfigurationNotFoundError"
        | "NoSuchPublicAccessBlockConfiguration"
        | "NoSuchTagSet" => Class::NotFound,
        // EKS uses one code for "there is one" and for "busy with another update".
        // Of an access entry it says "The specified access entry resource is already in use on this cluster".
        "ResourceInUseException"
            if message.contains("lready exist") || message.contains("already in use") =>
        {
            Class::AlreadyExists
        }
        "ResourceInUseException"
        | "DeleteConflict"
        | "DependencyViolation"
        | "ConcurrentModification" => Class::NotReady,
        "InvalidChangeBatch" => Class::Conflict,
        "RequestTimeTooSkewed" | "RequestExpired" => Class::Unauthorized,
        "InvalidRequestException" if super::denied::missing_permission(message) => {
            Class::Unauthorized
        }
        "RequestTimeout"
        | "RequestTimeoutException"
        | "InternalFailure"
        | "InternalError"
        | "InternalServerError"
        | "ServerException"
        | "ServiceUnavailable"
        | "ServiceUnavailableException"
        | "ServiceFailure"
        | "Unavailable" => Class::Unreachable,
        _ if status >= 500 => Class::Unreachable,
        // A role or a provider that was made a second ago is not seen everywhere yet (eks.md 1.3: about a minute).
        "InvalidParameterException" | "MalformedPolicyDocument" | "InvalidRequestException"
            if eventually_consistent(message) =>
        {
            Class::NotReady
        }
        _ => Class::Refused,
    }
}

fn eventually_consistent(message: &str) -> bool {
    let m = message.to_lowercase();
    let words = [
        "not in active",
        "not active",
        "is not ready",
        "currently being",
        "being deleted",
        "in progress",
    ];
    iam_words(message) || words.iter().any(|s| m.contains(s))
}

/// Words by which services say that they do not see a role, its profile or its rights: not yet, or not at all.
pub(super) fn iam_words(message: &str) -> bool {
    let m = message.to_lowercase();
    [
        "not authorized to perform",
        "cannot be assumed",
        "could not be assumed",
        "unable to assume",
        "role with arn",
        "invalid principal",
        "invalid instance profile",
        "invalid iam instance profile",
        "instance profile could not be found",
        "the trusted entity is not correct",
        "doesn't have the amazon eks managed policies",
        "role's policy must include",
        "were not found in the trust relationships",
        "the role with name",
        "role provided in the request does not exist",
        "trust policy of the role provided is invalid",
    ]
    .iter()
    .any(|s| m.contains(s))
}

/// What a service said, in our classes.
pub(super) fn refusal(at: &str, code: &str, message: &str, status: u16) -> Error {
    let class = class_of(code, message, status);
    let text = match (code.is_empty(), message.is_empty()) {
        (true, _) => {
            format!("HTTP {status} without an AWS error code: the endpoint does not know this call")
        }
        (false, true) => code.to_string(),
        (false, false) => format!("{code}: {message}"),
    };
    super::denied::explained(Error::new(class, at, text), code, "")
}

/// From an SDK error to ours. `at` is the resource.
pub(super) fn error<E>(at: &str, e: SdkError<E, HttpResponse>) -> Error
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
{
    let status = e.raw_response().map_or(0, |r| r.status().as_u16());
    match &e {
        SdkError::ServiceError(s) => {
            let code = s.err().code().unwrap_or_default().to_string();
            let message = s.err().message().unwrap_or_default().to_string();
            super::denied::explained(
                refusal(at, &code, &message, status),
                &code,
                std::any::type_name::<E>(),
            )
        }
        SdkError::ConstructionFailure(_) => Error::new(Class::Internal, at, chain(&e)),
        _ => {
            let text = chain(&e);
            if text.to_lowercase().contains("credential") {
                return Error::new(Class::Unauthorized, at, text)
                    .remedy("set aws.profile in migration.yaml, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
            }
            Error::new(Class::Unreachable, at, text)
        }
    }
}

/// Undoes the percent-encoding in which IAM answers its documents (the Rust SDK does not, eks.md 3).
pub(super) fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let hex = |b: u8| (b as char).to_digit(16).map(|d| d as u8);
        match bytes[i] {
            b'%' if i + 2 < bytes.len() => match (hex(bytes[i + 1]), hex(bytes[i + 2])) {
                (Some(h), Some(l)) => {
                    out.push(h * 16 + l);
                    i += 3;
                    continue;
                }
                _ => out.push(b'%'),
            },
            b => out.push(b),
        }
        i += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_a_code_is_never_not_found() {
        assert_eq!(class_of("", "", 404), Class::Internal);
        assert_eq!(class_of("", "", 502), Class::Unreachable);
    }

    #[test]
    fn one_eks_code_means_two_things() {
        assert_eq!(
            class_of(
                "ResourceInUseException",
                "Cluster already exists with name: x",
                409
            ),
            Class::AlreadyExists
        );
        assert_eq!(
            class_of(
                "ResourceInUseException",
                "Cluster has nodegroups attached",
                409
            ),
            Class::NotReady
        );
    }

    #[test]
    fn a_role_made_a_second_ago_is_not_refused_but_not_ready() {
        assert_eq!(
            class_of(
                "InvalidParameterException",
                "Role with arn: arn:aws:iam::1:role/x, could not be assumed because it does not exist",
                400
            ),
            Class::NotReady
        );
        for text in [
            "The role arn:aws:iam::1:role/x cannot be assumed by principal 'eks.amazonaws.com'",
            "Invalid instance profile: arn:aws:iam::1:instance-profile/x",
            "User: arn:aws:sts::1:assumed-role/x is not authorized to perform: sts:AssumeRole",
            "Role could not be assumed because the trusted entity is not correct",
            "The provided role doesn't have the Amazon EKS Managed Policies associated with it. Please ensure the following policy is attached: x",
            "IAM role's policy must include the `ec2:DescribeSubnets` action",
            "Following required service principals [ec2.amazonaws.com] were not found in the trust relationships of nodeRole x",
            "The role with name x cannot be found.",
            "Role provided in the request does not exist",
            "Trust policy of the role provided is invalid",
        ] {
            let class = class_of("InvalidParameterException", text, 400);
            assert_eq!(class, Class::NotReady, "{text}");
            assert!(iam_words(text));
        }
        assert!(
            !iam_words("cluster is not active"),
            "that is no word of IAM"
        );
        assert_eq!(
            class_of(
                "InvalidParameterException",
                "unsupported Kubernetes version",
                400
            ),
            Class::Refused
        );
        assert_eq!(
            class_of("Throttling", "Rate exceeded", 400),
            Class::Throttled
        );
        assert_eq!(class_of("ThrottlingException", "", 429), Class::Throttled);
        assert_eq!(class_of("InvalidGroup.NotFound", "", 400), Class::NotFound);
    }

    #[test]
    fn iam_documents_come_percent_encoded() {
        assert_eq!(
            percent_decode("%7B%22a%22%3A%20%22%C3%A9%22%7D"),
            "{\"a\": \"é\"}"
        );
        assert_eq!(percent_decode("100%"), "100%");
    }
}
