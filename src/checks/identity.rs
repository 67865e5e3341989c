//! IAM: roles that green may assume.

use super::{Input, Report};
use serde_json::Value;

/// IAM-03.
pub(super) fn roles_exist_and_fit(i: &Input, r: &mut Report) {
    for role in i.target.roles.iter().filter(|x| x.existing) {
        let object = format!("role/{}", role.name);
        let Some(aws) = &i.snapshot.aws else {
            r.not_checked(
                object,
                "the account's roles were not read",
                "Run discover with AWS credentials.",
            );
            continue;
        };
        match aws.roles.iter().find(|x| x.name == role.name) {
            None => r.blocker(
                object,
                format!(
                    "service account {} needs this role, and the account does not have it",
                    role.service_account.as_deref().unwrap_or("?")
                ),
                "Create the role, or correct the annotation on blue.",
            ),
            Some(found) => {
                // One statement for green's issuer has about 443 characters (eks.md 3); the quota counts no white space.
                let size = text_size(&found.trust) + 443;
                if size > 2048 {
                    r.warning(object, format!("its trust policy would have {size} characters, the default quota is 2048"), "Raise the quota, or thin the policy out.");
                }
            }
        }
    }
}

fn text_size(v: &Value) -> usize {
    v.to_string().chars().filter(|c| !c.is_whitespace()).count()
}
