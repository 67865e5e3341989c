//! "You may not": which action, on what, and where the right for it is printed.

use crate::world::{Class, Error};

/// Words of AWS for a clock that is wrong, whatever the code.
const CLOCK: &[&str] = &[
    "RequestTimeTooSkewed",
    "RequestExpired",
    "Signature expired",
    "Signature not yet current",
    "is now earlier than",
    "is now later than",
];

/// Fills in a refusal what the caller has to know. `of` is the type of the SDK's error, which tells the operation.
pub(super) fn explained(mut error: Error, code: &str, of: &str) -> Error {
    if error.class != Class::Unauthorized {
        return error;
    }
    if CLOCK.iter().any(|c| error.message.contains(c)) {
        return error.remedy(
            "set this machine's clock: AWS refuses what is signed more than five minutes off",
        );
    }
    if !denied(code, &error.message) {
        return error.remedy(
            "renew the credentials, or check aws.profile in migration.yaml: AWS does not know who calls",
        );
    }
    let action = asked(&error.message).or_else(|| action_of(of));
    let Some(action) = action else {
        return error
            .remedy("`crossfade policy` prints the least policy that a run of this plan needs");
    };
    if !error.message.contains(&action) {
        error.message = format!("{} (by {action})", error.message);
    }
    let on = resource(&error.message).unwrap_or_else(|| error.at.clone());
    let why = if error.message.contains("explicit deny") {
        "a deny stands in the way (of the caller's own policies, a permissions boundary or the organisation), which no Allow lifts: have it taken away for"
    } else {
        "let the caller do"
    };
    error.remedy(format!(
        "{why} {action} on {on}; `crossfade policy` prints the least policy that a run of this plan needs. Then go on with the same command, or roll back"
    ))
}

/// Whether it is about what the caller may do, not about who it is.
fn denied(code: &str, message: &str) -> bool {
    // An answer to HEAD has no body, so a 403 has no code.
    code.is_empty()
        || code.starts_with("AccessDenied")
        || matches!(
            code,
            "UnauthorizedOperation" | "NotAuthorized" | "AllAccessDisabled"
        )
        || missing_permission(message)
}

/// EKS says some denials in the words of a bad request.
pub(super) fn missing_permission(message: &str) -> bool {
    message.contains("missing permissions for '")
        || message.contains("You are not authorized to launch instances")
}

/// The action that the message names.
fn asked(message: &str) -> Option<String> {
    if message.contains("not authorized to launch instances") {
        return Some("ec2:RunInstances".into());
    }
    let rest = message
        .split_once("not authorized to perform: ")
        .or_else(|| message.split_once("missing permissions for '"))?
        .1;
    let action: String = rest
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || matches!(c, ':' | '-'))
        .collect();
    action.contains(':').then_some(action)
}

/// The ARN that the message names.
fn resource(message: &str) -> Option<String> {
    let rest = message
        .split_once("on resource: ")?
        .1
        .trim_start_matches('"');
    let arn: String = rest
        .chars()
        .take_while(|c| !c.is_whitespace() && *c != '"')
        .collect();
    let arn = arn.trim_end_matches(['.', ',']);
    (!arn.is_empty()).then(|| arn.to_string())
}

/// `iam:CreateRole` of `aws_sdk_iam::operation::create_role::CreateRoleError`.
fn action_of(of: &str) -> Option<String> {
    let service = of.split("aws_sdk_").nth(1)?.split("::").next()?;
    let name = of.rsplit("::").next()?.strip_suffix("Error")?;
    let name = match (service, name) {
        ("s3", "ListObjectsV2") => "ListBucket",
        ("s3", "HeadBucket") => "ListBucket",
        ("s3", "HeadObject") => "GetObject",
        ("s3", "GetBucketEncryption") => "GetEncryptionConfiguration",
        ("s3", "PutBucketEncryption") => "PutEncryptionConfiguration",
        ("s3", "GetPublicAccessBlock") => "GetBucketPublicAccessBlock",
        ("s3", "PutPublicAccessBlock") => "PutBucketPublicAccessBlock",
        (_, name) => name,
    };
    // The SDK's spelling of acronyms is not IAM's.
    let name = name.replace("OpenIdConnect", "OpenIDConnect");
    Some(format!("{service}:{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(code: &str, message: &str, of: &str) -> Error {
        explained(
            Error::new(Class::Unauthorized, "role/x", format!("{code}: {message}")),
            code,
            of,
        )
    }

    #[test]
    fn a_denial_names_action_and_arn_and_where_the_policy_is_printed() {
        let e = said(
            "AccessDenied",
            "User: arn:aws:iam::1:user/me is not authorized to perform: iam:CreateRole on resource: arn:aws:iam::1:role/x because no identity-based policy allows the iam:CreateRole action",
            "aws_sdk_iam::operation::create_role::CreateRoleError",
        );
        assert!(
            e.remedy
                .contains("do iam:CreateRole on arn:aws:iam::1:role/x;"),
            "{}",
            e.remedy
        );
        assert!(e.remedy.contains("`crossfade policy`"));
    }

    #[test]
    fn an_explicit_deny_is_no_missing_right() {
        let e = said(
            "AccessDeniedException",
            "User: me is not authorized to perform: eks:CreateCluster on resource: arn:aws:eks:eu-west-1:1:cluster/g with an explicit deny in an identity-based policy",
            "x",
        );
        assert!(e.remedy.contains("no Allow lifts"), "{}", e.remedy);
    }

    #[test]
    fn a_message_without_the_action_gets_it_from_the_operation() {
        let e = said(
            "UnauthorizedOperation",
            "You are not authorized to perform this operation.",
            std::any::type_name::<aws_sdk_ec2::operation::create_tags::CreateTagsError>(),
        );
        assert!(e.message.ends_with("(by ec2:CreateTags)"), "{}", e.message);
        let of = std::any::type_name::<
            aws_sdk_iam::operation::create_open_id_connect_provider::CreateOpenIDConnectProviderError,
        >();
        assert_eq!(
            action_of(of).as_deref(),
            Some("iam:CreateOpenIDConnectProvider")
        );
    }

    #[test]
    fn what_eks_asks_for_in_the_callers_name_is_told_as_a_denial_too() {
        let e = said(
            "InvalidRequestException",
            "Failed to create service linked role: AWSServiceRoleForAmazonEKS due to missing permissions for 'iam:CreateServiceLinkedRole'",
            "x",
        );
        assert!(
            e.remedy.contains("iam:CreateServiceLinkedRole"),
            "{}",
            e.remedy
        );
        let e = said(
            "InvalidRequestException",
            "You are not authorized to launch instances with this launch template. Encoded authorization failure message: abc",
            "x",
        );
        assert!(e.remedy.contains("ec2:RunInstances"), "{}", e.remedy);
    }

    #[test]
    fn an_old_token_and_a_wrong_clock_are_not_missing_rights() {
        assert!(
            said(
                "ExpiredToken",
                "The security token included in the request is expired",
                "x"
            )
            .remedy
            .contains("renew")
        );
        let e = said(
            "SignatureDoesNotMatch",
            "Signature expired: 20261201T000000Z is now earlier than 20261201T001000Z",
            "x",
        );
        assert!(e.remedy.contains("clock"), "{}", e.remedy);
    }
}
