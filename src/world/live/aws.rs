//! What all AWS clients share: configuration from the spec, error classes, EKS tokens.

use super::kube_error::chain;
use super::kubeconfig::harden;
use crate::spec::model;
use crate::world::{Class, Error, Result};
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::provider::ProvideCredentials;
use aws_sdk_eks::error::{ProvideErrorMetadata, SdkError};
use aws_sigv4::http_request::{
    SignableBody, SignableRequest, SignatureLocation, SigningSettings, sign,
};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use base64::Engine;
use std::time::{Duration, SystemTime};
use tokio::sync::OnceCell;

/// A token is only good to be shown once; EKS itself accepts it for 15 minutes after signing.
const TOKEN_EXPIRES: Duration = Duration::from_secs(60);

/// The account as the spec declares it. Nothing is read before the first call.
pub(super) struct AwsBase {
    region: Option<String>,
    profile: Option<String>,
    config: OnceCell<SdkConfig>,
}

impl AwsBase {
    pub(super) fn new(aws: &model::Aws) -> Self {
        AwsBase {
            region: aws.region.clone(),
            profile: aws.profile.clone(),
            config: OnceCell::new(),
        }
    }

    /// The account that a ready configuration leads to.
    pub(super) fn given(config: SdkConfig) -> Self {
        AwsBase {
            region: None,
            profile: None,
            config: OnceCell::new_with(Some(config)),
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

    /// Connection to the EKS cluster: endpoint and CA from DescribeCluster, a fresh token. `NotReady` before it exists.
    pub(super) async fn eks_config(&self, name: &str) -> Result<kube::Config> {
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
        config.auth_info.token = Some(secrecy::SecretString::from(self.eks_token(name).await?));
        Ok(harden(config))
    }

    /// A token that `aws eks get-token` would print.
    async fn eks_token(&self, cluster: &str) -> Result<String> {
        let config = self.config().await;
        let unauthorized = |text: String| {
            Error::new(Class::Unauthorized, "aws credentials", text).remedy(
                "set aws.profile in migration.yaml, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
            )
        };
        let provider = config
            .credentials_provider()
            .ok_or_else(|| unauthorized("no AWS credentials".into()))?;
        let credentials = provider
            .provide_credentials()
            .await
            .map_err(|e| unauthorized(chain(&e)))?;
        let region = self.region().await?;
        token(
            &credentials,
            &region,
            &sts_endpoint(config.endpoint_url(), &region),
            cluster,
            SystemTime::now(),
        )
        .map_err(|e| Error::new(Class::Internal, "eks token", e))
    }
}

/// The STS endpoint whose host the token names: a declared one, or the region's own (never the global one: private
/// VPCs reach only the regional endpoint, and EKS refuses tokens of another partition).
fn sts_endpoint(declared: Option<&str>, region: &str) -> String {
    let own = std::env::var("AWS_ENDPOINT_URL_STS")
        .ok()
        .filter(|v| !v.is_empty());
    if let Some(url) = own.as_deref().or(declared) {
        return url.trim_end_matches('/').into();
    }
    let suffix = if region.starts_with("cn-") {
        "amazonaws.com.cn"
    } else {
        "amazonaws.com"
    };
    format!("https://sts.{region}.{suffix}")
}

/// `k8s-aws-v1.` and the pre-signed GetCallerIdentity URL, with the cluster's name as a signed header.
fn token(
    credentials: &aws_credential_types::Credentials,
    region: &str,
    endpoint: &str,
    cluster: &str,
    now: SystemTime,
) -> std::result::Result<String, String> {
    let identity = credentials.clone().into();
    let mut settings = SigningSettings::default();
    settings.signature_location = SignatureLocation::QueryParams;
    settings.expires_in = Some(TOKEN_EXPIRES);
    let params = aws_sigv4::sign::v4::SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name("sts")
        .time(now)
        .settings(settings)
        .build()
        .map_err(|e| e.to_string())?
        .into();
    let url = format!("{endpoint}/?Action=GetCallerIdentity&Version=2011-06-15");
    let request = SignableRequest::new(
        "GET",
        url.clone(),
        std::iter::once(("x-k8s-aws-id", cluster)),
        SignableBody::Bytes(&[]),
    )
    .map_err(|e| chain(&e))?;
    let (instructions, _) = sign(request, &params).map_err(|e| chain(&e))?.into_parts();
    let mut signed = http::Request::builder()
        .uri(&url)
        .body(())
        .map_err(|e| e.to_string())?;
    instructions.apply_to_request_http1x(&mut signed);
    Ok(format!(
        "k8s-aws-v1.{}",
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(signed.uri().to_string())
    ))
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
        "ResourceInUseException" if message.contains("lready exist") => Class::AlreadyExists,
        "ResourceInUseException"
        | "DeleteConflict"
        | "DependencyViolation"
        | "ConcurrentModification" => Class::NotReady,
        "InvalidChangeBatch" => Class::Conflict,
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
    let error = Error::new(class, at, text);
    if class == Class::Unauthorized {
        return error
            .remedy("check aws.profile, the credentials and the permissions of the caller");
    }
    error
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
            refusal(at, &code, &message, status)
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
    fn a_token_is_a_presigned_url_of_the_sts_endpoint_for_this_cluster() {
        let creds = aws_credential_types::Credentials::new(
            "AKIDEXAMPLE",
            "secret",
            Some("session".into()),
            None,
            "test",
        );
        let t = token(
            &creds,
            "eu-west-1",
            "http://127.0.0.1:4566",
            "shop-green",
            SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000),
        )
        .unwrap();
        let url = String::from_utf8(
            base64::engine::general_purpose::URL_SAFE_NO_PAD
                .decode(t.strip_prefix("k8s-aws-v1.").unwrap())
                .unwrap(),
        )
        .unwrap();
        assert!(
            url.starts_with("http://127.0.0.1:4566/?Action=GetCallerIdentity&Version=2011-06-15&"),
            "{url}"
        );
        for part in [
            "X-Amz-Expires=60",
            "X-Amz-SignedHeaders=host%3Bx-k8s-aws-id",
            "X-Amz-Credential=AKIDEXAMPLE%2F20231114%2Feu-west-1%2Fsts%2Faws4_request",
            "X-Amz-Security-Token=session",
            "X-Amz-Signature=",
        ] {
            assert!(url.contains(part), "{part} is not in {url}");
        }
        let other = token(
            &creds,
            "eu-west-1",
            "http://127.0.0.1:4566",
            "other",
            SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000),
        )
        .unwrap();
        assert_ne!(t, other, "the cluster's name is part of the signature");
    }

    #[test]
    fn the_regional_sts_endpoint_is_used_unless_one_is_declared() {
        assert_eq!(
            sts_endpoint(None, "eu-west-1"),
            "https://sts.eu-west-1.amazonaws.com"
        );
        assert_eq!(
            sts_endpoint(None, "cn-north-1"),
            "https://sts.cn-north-1.amazonaws.com.cn"
        );
        assert_eq!(
            sts_endpoint(Some("http://127.0.0.1:4566/"), "eu-west-1"),
            "http://127.0.0.1:4566"
        );
    }

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
