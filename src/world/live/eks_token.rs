//! EKS tokens, signed here: a pre-signed STS call that says who we are to one cluster. Also those of a role that the caller may assume.

use super::aws::{self, AwsBase};
use super::kube_error::chain;
use crate::world::{Class, Error, Result};
use aws_credential_types::Credentials;
use aws_credential_types::provider::ProvideCredentials;
use aws_sigv4::http_request::{
    SignableBody, SignableRequest, SignatureLocation, SigningSettings, sign,
};
use base64::Engine;
use std::time::{Duration, SystemTime};

/// What the URL says of itself; EKS accepts a token for 15 minutes after signing, whatever stands here.
const TOKEN_EXPIRES: Duration = Duration::from_secs(60);
/// Name of the session in which a role is only tried on.
const SESSION: &str = "crossfade-access-proof";
/// The shortest life that STS gives, seconds.
const SESSION_S: i32 = 900;

impl AwsBase {
    /// The caller's credentials.
    async fn credentials(&self) -> Result<Credentials> {
        let unauthorized = |text: String| {
            Error::new(Class::Unauthorized, "aws credentials", text).remedy(
                "set aws.profile in migration.yaml, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
            )
        };
        self.config()
            .await
            .credentials_provider()
            .ok_or_else(|| unauthorized("no AWS credentials".into()))?
            .provide_credentials()
            .await
            .map_err(|e| unauthorized(chain(&e)))
    }

    /// ARN of the caller.
    pub(super) async fn caller(&self) -> Result<String> {
        let me = aws_sdk_sts::Client::new(self.config().await)
            .get_caller_identity()
            .send()
            .await
            .map_err(|e| aws::error("sts:GetCallerIdentity", e))?;
        Ok(me.arn.unwrap_or_default())
    }

    /// Credentials of a role, for a quarter of an hour.
    pub(super) async fn assume(&self, role: &str) -> Result<Credentials> {
        let answer = aws_sdk_sts::Client::new(self.config().await)
            .assume_role()
            .role_arn(role)
            .role_session_name(SESSION)
            .duration_seconds(SESSION_S)
            .send()
            .await
            .map_err(|e| aws::error(role, e))?;
        let given = answer.credentials.ok_or_else(|| {
            Error::new(
                Class::Internal,
                role,
                "AssumeRole answered without credentials",
            )
        })?;
        Ok(Credentials::new(
            given.access_key_id,
            given.secret_access_key,
            Some(given.session_token),
            None,
            "crossfade",
        ))
    }

    /// A token that `aws eks get-token` would print.
    pub(super) async fn eks_token(
        &self,
        cluster: &str,
        who: Option<&Credentials>,
    ) -> Result<String> {
        let config = self.config().await;
        let credentials = match who {
            Some(other) => other.clone(),
            None => self.credentials().await?,
        };
        let region = self.region().await?;
        token(
            &credentials,
            &region,
            &sts_endpoint(config.endpoint_url(), &region),
            cluster,
            shifted(SystemTime::now(), self.skew()),
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

/// A time by the other's clock.
fn shifted(now: SystemTime, seconds: i64) -> SystemTime {
    let by = Duration::from_secs(seconds.unsigned_abs());
    if seconds < 0 {
        now.checked_sub(by).unwrap_or(now)
    } else {
        now.checked_add(by).unwrap_or(now)
    }
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
    fn a_token_is_signed_with_the_time_of_the_server_that_reads_it() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let at = |seconds| {
            shifted(now, seconds)
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap()
                .as_secs()
        };
        assert_eq!(at(1_200), 1_700_001_200);
        assert_eq!(at(-1_200), 1_699_998_800);
    }
}
