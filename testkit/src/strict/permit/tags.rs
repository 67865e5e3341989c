//! The tags of what is asked for, as condition keys: only looked up when a policy asks for them.

use super::policy::Need;
use crate::strict::State;
use crate::strict::eks;
use crate::strict::http::Req;

/// Adds `aws:ResourceTag/KEY` (and the service's own spelling) for each tag of the need's resource.
pub(super) async fn add(state: &State, req: &Req, need: &mut Need) {
    let arn = need.resource.clone();
    let parts: Vec<&str> = arn.splitn(6, ':').collect();
    let [_, _, service, _, _, rest] = parts.as_slice() else {
        return;
    };
    let name = rest.rsplit('/').next().unwrap_or(rest);
    let found = match *service {
        "ec2" if name.starts_with("lt-") => state
            .lock_launch()
            .find(Some(name), None)
            .map(|t| t.tags().to_vec())
            .unwrap_or_default(),
        "ec2" => {
            let filter = [("Filter.1.Name", "resource-id"), ("Filter.1.Value.1", name)];
            let (_, root) = state.ask("ec2", &req.who, "DescribeTags", &filter).await;
            let mut items = vec![];
            root.find_all("item", &mut items);
            items
                .iter()
                .filter(|i| i.text_of("resourceId") == Some(name))
                .filter_map(|i| {
                    Some((i.text_of("key")?.to_owned(), i.text_of("value")?.to_owned()))
                })
                .collect()
        }
        "iam" => {
            let (question, key, value) = match rest.split('/').next() {
                Some("role") => ("ListRoleTags", "RoleName", name),
                Some("policy") => ("ListPolicyTags", "PolicyArn", arn.as_str()),
                Some("oidc-provider") => (
                    "GetOpenIDConnectProvider",
                    "OpenIDConnectProviderArn",
                    arn.as_str(),
                ),
                Some("instance-profile") => {
                    ("ListInstanceProfileTags", "InstanceProfileName", name)
                }
                _ => return,
            };
            let (_, root) = state.ask("iam", &req.who, question, &[(key, value)]).await;
            let mut members = vec![];
            if let Some(tags) = root.find("Tags") {
                tags.find_all("member", &mut members);
            }
            members
                .iter()
                .filter_map(|m| {
                    Some((m.text_of("Key")?.to_owned(), m.text_of("Value")?.to_owned()))
                })
                .collect()
        }
        "eks" => eks::tags_by_arn(&mut state.lock_eks(), &arn),
        _ => return,
    };
    for (key, value) in found {
        need.context
            .entry(format!("aws:resourcetag/{}", key.to_lowercase()))
            .or_default()
            .push(value.clone());
        need.context
            .entry(format!("{service}:resourcetag/{}", key.to_lowercase()))
            .or_default()
            .push(value);
    }
}
