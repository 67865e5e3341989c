//! Trust policies: the statement by which a service account of green assumes a role, and whether it still fits (eks.md 3).

use super::policy;
use crate::rewrite::partition;
use crate::spec::model::{Identity, Spec};
use crate::world::cloud::Inventory;
use serde_json::{Value, json};

/// Characters of a trust policy where the account does not say otherwise (eks.md 3).
const DEFAULT_QUOTA: usize = 2048;

/// A trust policy for an AWS service.
pub fn service(name: &str) -> Value {
    json!({"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Principal": {"Service": name}, "Action": ["sts:AssumeRole"]}]})
}

/// The statement by which service accounts (`namespace/name`, with `*` in the namespace of kops's wildcards) of green assume a role.
pub fn statement(region: &str, sid: Option<&str>, accounts: &[&str]) -> Value {
    let subjects: Vec<String> = accounts
        .iter()
        .map(|a| format!("system:serviceaccount:{}", a.replacen('/', ":", 1)))
        .collect();
    let wild = subjects.iter().any(|s| s.contains('*'));
    let subjects = match subjects.as_slice() {
        [one] => json!(one),
        many => json!(many),
    };
    let audience = json!({"${cluster.issuer}:aud": "sts.amazonaws.com"});
    let condition = if wild {
        json!({"StringEquals": audience, "StringLike": {"${cluster.issuer}:sub": subjects}})
    } else {
        json!({"StringEquals": {"${cluster.issuer}:aud": "sts.amazonaws.com", "${cluster.issuer}:sub": subjects}})
    };
    let mut s = json!({
        "Effect": "Allow",
        "Principal": {"Federated": format!("arn:{}:iam::${{account}}:oidc-provider/${{cluster.issuer}}", partition(region))},
        "Action": "sts:AssumeRoleWithWebIdentity",
        "Condition": condition
    });
    if let Some(sid) = sid {
        s["Sid"] = json!(sid);
    }
    s
}

/// The statement by which pods of green come to a role by Pod Identity: EKS assumes it for them, and only for green's associations (eks.md 3).
pub fn pods(region: &str, green: &str, sid: Option<&str>) -> Value {
    let mut s = json!({
        "Effect": "Allow",
        "Principal": {"Service": "pods.eks.amazonaws.com"},
        "Action": ["sts:AssumeRole", "sts:TagSession"],
        "Condition": {
            "StringEquals": {"aws:SourceAccount": "${account}"},
            "ArnEquals": {"aws:SourceArn": format!("arn:{}:eks:{region}:${{account}}:cluster/{green}", partition(region))}
        }
    });
    if let Some(sid) = sid {
        s["Sid"] = json!(sid);
    }
    s
}

/// The statements that accounts of green need in a role that exists: one for those with IRSA, one for those with Pod Identity.
pub fn added(spec: &Spec, region: &str, role: &str, accounts: &[&str]) -> Vec<(String, Value)> {
    let green = &spec.green.name;
    let (pods_of, irsa): (Vec<&str>, Vec<&str>) = accounts
        .iter()
        .copied()
        .partition(|a| spec.green.identity.of(a, false) == Identity::PodIdentity);
    let mut out = vec![];
    if !irsa.is_empty() {
        let what = if irsa.len() == 1 { irsa[0] } else { role };
        let sid = sid(green, what);
        out.push((sid.clone(), statement(region, Some(&sid), &irsa)));
    }
    if !pods_of.is_empty() {
        let sid = sid(green, "pod identity");
        out.push((sid.clone(), pods(region, green, Some(&sid))));
    }
    out
}

/// A Sid: letters and digits only.
pub fn sid(green: &str, what: &str) -> String {
    let mut out = String::from("Crossfade");
    let mut upper = true;
    for c in format!("{green}/{what}").chars() {
        if c.is_ascii_alphanumeric() {
            out.push(if upper { c.to_ascii_uppercase() } else { c });
            upper = false;
        } else {
            upper = true;
        }
    }
    out
}

/// Characters of a trust policy with more statements, as IAM will count them once the issuer is known.
pub fn size_with(trust: &Value, added: &[Value], region: &str) -> usize {
    // One of ours that is there from a former run is written over, not beside.
    let ours = |s: &&Value| s["Sid"].is_string() && added.iter().any(|a| a["Sid"] == s["Sid"]);
    let mut all: Vec<Value> = policy::bodies(trust)
        .into_iter()
        .filter(|s| !ours(s))
        .cloned()
        .collect();
    all.extend(added.iter().cloned());
    let mut whole = if trust.is_object() {
        trust.clone()
    } else {
        json!({"Version": "2012-10-17"})
    };
    whole["Statement"] = json!(all);
    // `oidc.eks.REGION.amazonaws.com/id/` and 32 hex digits.
    let suffix = if region.starts_with("cn-") {
        "amazonaws.com.cn"
    } else {
        "amazonaws.com"
    };
    let issuer = format!("oidc.eks.{region}.{suffix}/id/{}", "0".repeat(32));
    let text = whole
        .to_string()
        .replace("${cluster.issuer}", &issuer)
        .replace("${account}", "000000000000");
    text.chars().filter(|c| !c.is_whitespace()).count()
}

/// The account's quota for a trust policy, in characters: Service Quotas' code, or the key of GetAccountSummary.
pub fn quota(aws: Option<&Inventory>) -> usize {
    number(
        aws,
        &["iam/L-C07B4B0D", "iam/AssumeRolePolicySizeQuota"],
        DEFAULT_QUOTA,
    )
}

/// A quota under any of its names, or what AWS gives by default.
pub(super) fn number(aws: Option<&Inventory>, keys: &[&str], default: usize) -> usize {
    let value = aws.and_then(|a| a.quotas.as_ref()).and_then(|q| {
        keys.iter()
            .find_map(|k| q.get(*k))
            .map(|q| q.value)
            .filter(|v| v.is_finite() && *v >= 1.0)
    });
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    value.map_or(default, |v| v as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_statement_has_about_443_characters_so_four_fit_and_five_do_not() {
        // eks.md 3: "One IRSA statement is ~443 chars, so 4 fit in 2,048".
        let one = statement(
            "eu-west-1",
            Some("CrossfadeShopGreenMailer"),
            &["platform/mailer"],
        );
        let empty = json!({"Version": "2012-10-17", "Statement": []});
        let frame = policy::size(&empty);
        let n = size_with(&empty, std::slice::from_ref(&one), "eu-west-1") - frame;
        assert!((400..=490).contains(&n), "{n}");
        let others = |n: usize| -> Value {
            let list: Vec<Value> = (0..n)
                .map(|i| {
                    statement(
                        "eu-west-1",
                        Some(&format!("CrossfadeOtherCluster{i}")),
                        &["platform/mailer"],
                    )
                })
                .collect();
            json!({"Version": "2012-10-17", "Statement": list})
        };
        assert!(size_with(&others(3), std::slice::from_ref(&one), "eu-west-1") <= DEFAULT_QUOTA);
        assert!(size_with(&others(4), std::slice::from_ref(&one), "eu-west-1") > DEFAULT_QUOTA);
        // A statement of a former run is the same statement, not one more.
        let again = json!({"Version": "2012-10-17", "Statement": [one]});
        assert_eq!(
            size_with(&again, std::slice::from_ref(&one), "eu-west-1"),
            frame + n
        );
    }

    #[test]
    fn thirty_accounts_share_one_statement_of_less_than_two_thousand_characters() {
        let accounts: Vec<String> = (0..30).map(|i| format!("payments/worker-{i:02}")).collect();
        let refs: Vec<&str> = accounts.iter().map(String::as_str).collect();
        let s = statement("eu-west-1", Some("X"), &refs);
        let n = size_with(
            &json!({"Statement": []}),
            std::slice::from_ref(&s),
            "eu-west-1",
        );
        assert!((1600..2048).contains(&n), "{n}");
    }

    #[test]
    fn one_statement_of_pod_identity_serves_any_number_of_accounts_and_green_alone() {
        // eks.md 3: "A Pod Identity statement is 112 chars (259 with SourceAccount/SourceArn), the same for every cluster."
        let s = pods("eu-west-1", "shop-green", None);
        let n = size_with(
            &json!({"Statement": []}),
            std::slice::from_ref(&s),
            "eu-west-1",
        ) - policy::size(&json!({"Statement": []}));
        assert!((240..=280).contains(&n), "{n}");
        assert_eq!(
            s["Condition"]["ArnEquals"]["aws:SourceArn"],
            "arn:aws:eks:eu-west-1:${account}:cluster/shop-green"
        );
        assert!(
            s["Action"]
                .as_array()
                .is_some_and(|a| a.contains(&json!("sts:TagSession"))),
            "without it EKS cannot assume the role"
        );
    }

    #[test]
    fn a_wildcard_namespace_is_matched_by_pattern_and_the_audience_exactly() {
        let s = statement("eu-west-1", None, &["test-*/robot"]);
        assert_eq!(
            s["Condition"]["StringLike"]["${cluster.issuer}:sub"],
            "system:serviceaccount:test-*:robot"
        );
        assert_eq!(
            s["Condition"]["StringEquals"],
            json!({"${cluster.issuer}:aud": "sts.amazonaws.com"})
        );
    }
}
