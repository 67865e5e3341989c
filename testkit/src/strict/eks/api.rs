//! Which operation a request is, and its answer.

use http::Method;
use serde_json::{Map, Value, json};

use super::{
    Answer, access, addon, bad, catalogue, cluster, nodegroup, nodegroup_update, pods, schemas,
    tags, update,
};
use crate::strict::State;
use crate::strict::http::{Refusal, Reply, Req, json_reply};

/// Operation of a method and path.
pub(crate) fn action_of(req: &Req) -> &'static str {
    let segments = req.segments();
    let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
    let (get, post, delete) = (
        req.method == Method::GET,
        req.method == Method::POST,
        req.method == Method::DELETE,
    );
    match parts.as_slice() {
        ["clusters"] if post => "CreateCluster",
        ["clusters"] if get => "ListClusters",
        ["clusters", _] if get => "DescribeCluster",
        ["clusters", _] if delete => "DeleteCluster",
        ["clusters", _, "update-config"] if post => "UpdateClusterConfig",
        ["clusters", _, "encryption-config", "associate"] if post => "AssociateEncryptionConfig",
        ["clusters", _, "updates"] if post => "UpdateClusterVersion",
        ["clusters", _, "updates"] if get => "ListUpdates",
        ["clusters", _, "updates", _] if get => "DescribeUpdate",
        ["clusters", _, "node-groups"] if post => "CreateNodegroup",
        ["clusters", _, "node-groups"] if get => "ListNodegroups",
        ["clusters", _, "node-groups", _] if get => "DescribeNodegroup",
        ["clusters", _, "node-groups", _] if delete => "DeleteNodegroup",
        ["clusters", _, "node-groups", _, "update-config"] if post => "UpdateNodegroupConfig",
        ["clusters", _, "node-groups", _, "update-version"] if post => "UpdateNodegroupVersion",
        ["clusters", _, "addons"] if post => "CreateAddon",
        ["clusters", _, "addons"] if get => "ListAddons",
        ["clusters", _, "addons", _] if get => "DescribeAddon",
        ["clusters", _, "addons", _] if delete => "DeleteAddon",
        ["clusters", _, "addons", _, "update"] if post => "UpdateAddon",
        ["clusters", _, "access-entries"] if post => "CreateAccessEntry",
        ["clusters", _, "access-entries"] if get => "ListAccessEntries",
        ["clusters", _, "access-entries", _] if get => "DescribeAccessEntry",
        ["clusters", _, "access-entries", _] if post => "UpdateAccessEntry",
        ["clusters", _, "access-entries", _] if delete => "DeleteAccessEntry",
        ["clusters", _, "access-entries", _, "access-policies"] if post => "AssociateAccessPolicy",
        ["clusters", _, "access-entries", _, "access-policies"] if get => {
            "ListAssociatedAccessPolicies"
        }
        ["clusters", _, "access-entries", _, "access-policies", _] if delete => {
            "DisassociateAccessPolicy"
        }
        ["access-policies"] if get => "ListAccessPolicies",
        ["clusters", _, "pod-identity-associations"] if post => "CreatePodIdentityAssociation",
        ["clusters", _, "pod-identity-associations"] if get => "ListPodIdentityAssociations",
        ["clusters", _, "pod-identity-associations", _] if get => "DescribePodIdentityAssociation",
        ["clusters", _, "pod-identity-associations", _] if post => "UpdatePodIdentityAssociation",
        ["clusters", _, "pod-identity-associations", _] if delete => "DeletePodIdentityAssociation",
        ["clusters", _, "fargate-profiles"] if get => "ListFargateProfiles",
        ["clusters", _, "identity-provider-configs"] if get => "ListIdentityProviderConfigs",
        ["clusters", _, "insights"] if post => "ListInsights",
        ["addons", "configuration-schemas"] if get => "DescribeAddonConfiguration",
        ["addons", "supported-versions"] if get => "DescribeAddonVersions",
        ["cluster-versions"] if get => "DescribeClusterVersions",
        ["tags", ..] if get => "ListTagsForResource",
        ["tags", ..] if post => "TagResource",
        ["tags", ..] if delete => "UntagResource",
        _ => "Unknown",
    }
}

/// What the call log keeps: names from the path, the query and the body.
pub(crate) fn params_of(req: &Req) -> Value {
    let segments = req.segments();
    let mut out = Map::new();
    let mut put = |key: &str, index: usize| {
        if let Some(value) = segments.get(index) {
            out.insert(key.to_owned(), json!(value));
        }
    };
    match segments.first().map(String::as_str) {
        Some("clusters") => {
            put("clusterName", 1);
            match segments.get(2).map(String::as_str) {
                Some("node-groups") => put("nodegroupName", 3),
                Some("addons") => put("addonName", 3),
                Some("access-entries") => {
                    put("principalArn", 3);
                    put("policyArn", 5);
                }
                Some("pod-identity-associations") => put("associationId", 3),
                Some("updates") => put("updateId", 3),
                _ => {}
            }
        }
        Some("tags") => put("resourceArn", 1),
        _ => {}
    }
    for (key, value) in &req.query {
        out.insert(key.clone(), json!(value));
    }
    if let Ok(Value::Object(body)) = serde_json::from_slice(&req.body) {
        out.extend(body);
    }
    Value::Object(out)
}

pub(crate) async fn handle(state: &State, req: &Req) -> Reply {
    super::pass_time(state, &req.who).await;
    match answer(state, req).await {
        Ok(value) => json_reply(200, &value),
        Err(refusal) => refusal.reply("eks"),
    }
}

async fn answer(state: &State, req: &Req) -> Answer {
    let body: Value = if req.body.is_empty() {
        json!({})
    } else {
        serde_json::from_slice(&req.body).map_err(|error| {
            Refusal::new(
                400,
                "SerializationException",
                format!("the body is not JSON: {error}"),
            )
        })?
    };
    let segments = req.segments();
    let part = |index: usize| segments.get(index).cloned().unwrap_or_default();
    let (cluster, item) = (part(1), part(3));
    match req.action.as_str() {
        "CreateCluster" => cluster::create(state, req, body).await,
        "ListClusters" => {
            let names = state.lock_eks().clusters.keys().map(|n| json!(n)).collect();
            page(state, req, "clusters", names)
        }
        "DescribeCluster" => cluster::describe(state, &cluster),
        "DeleteCluster" => cluster::delete(state, &cluster),
        "UpdateClusterConfig" => update::update_config(state, req, &cluster, body).await,
        "AssociateEncryptionConfig" => {
            update::associate_encryption(state, req, &cluster, body).await
        }
        "UpdateClusterVersion" => update::update_version(state, &cluster, &body),
        "ListUpdates" => update::list_updates(state, req, &cluster),
        "DescribeUpdate" => update::describe_update(state, req, &cluster, &item),
        "DescribeClusterVersions" => catalogue::describe_cluster_versions(state, req),
        "CreateNodegroup" => nodegroup::create(state, req, &cluster, body).await,
        "ListNodegroups" => {
            let names = state
                .lock_eks()
                .cluster(&cluster)?
                .nodegroups
                .keys()
                .map(|n| json!(n))
                .collect();
            page(state, req, "nodegroups", names)
        }
        "DescribeNodegroup" => nodegroup::describe(state, &cluster, &item),
        "DeleteNodegroup" => nodegroup::delete(state, &cluster, &item),
        "UpdateNodegroupConfig" => nodegroup_update::update(state, &cluster, &item, &body),
        "UpdateNodegroupVersion" => nodegroup_update::update_version(state, &cluster, &item, &body),
        "CreateAddon" => addon::create(state, req, &cluster, body).await,
        "ListAddons" => {
            let names = state
                .lock_eks()
                .cluster(&cluster)?
                .addons
                .keys()
                .map(|n| json!(n))
                .collect();
            page(state, req, "addons", names)
        }
        "DescribeAddon" => addon::describe(state, &cluster, &item),
        "DeleteAddon" => addon::delete(state, &cluster, &item),
        "UpdateAddon" => addon::update(state, req, &cluster, &item, body).await,
        "DescribeAddonConfiguration" => schemas::describe(req),
        "DescribeAddonVersions" => catalogue::describe_addon_versions(state, req),
        "CreateAccessEntry" => access::create(state, req, &cluster, body).await,
        "ListAccessEntries" => access::list(state, req, &cluster),
        "DescribeAccessEntry" => access::describe(state, &cluster, &item),
        "UpdateAccessEntry" => access::update(state, &cluster, &item, &body),
        "DeleteAccessEntry" => access::delete(state, &cluster, &item),
        "AssociateAccessPolicy" => access::associate(state, &cluster, &item, &body),
        "DisassociateAccessPolicy" => access::disassociate(state, &cluster, &item, &part(5)),
        "ListAssociatedAccessPolicies" => access::list_policies(state, req, &cluster, &item),
        "ListAccessPolicies" => page(state, req, "accessPolicies", catalogue::access_policies()),
        "CreatePodIdentityAssociation" => pods::create(state, req, &cluster, body).await,
        "ListPodIdentityAssociations" => pods::list(state, req, &cluster),
        "DescribePodIdentityAssociation" => pods::describe(state, &cluster, &item),
        "UpdatePodIdentityAssociation" => pods::update(state, req, &cluster, &item, &body).await,
        "DeletePodIdentityAssociation" => pods::delete(state, &cluster, &item),
        "ListFargateProfiles" | "ListIdentityProviderConfigs" | "ListInsights" => {
            state.lock_eks().cluster(&cluster)?;
            let key = match req.action.as_str() {
                "ListFargateProfiles" => "fargateProfileNames",
                "ListInsights" => "insights",
                _ => "identityProviderConfigs",
            };
            Ok(json!({ key: [] }))
        }
        "TagResource" => tags::tag(state, &part(1), &body),
        "UntagResource" => tags::untag(state, req, &part(1)),
        "ListTagsForResource" => tags::list(state, &part(1)),
        _ => Err(Refusal::new(
            404,
            "UnknownOperationException",
            format!(
                "the strict layer knows no EKS call {} {}",
                req.method, req.path
            ),
        )),
    }
}

/// One page of a listing; the token is the index of the next item.
pub(crate) fn page(state: &State, req: &Req, key: &str, items: Vec<Value>) -> Answer {
    let limit = match req.query("maxResults") {
        None => 100,
        Some(text) => text
            .parse::<usize>()
            .ok()
            .filter(|n| (1..=100).contains(n))
            .ok_or_else(|| bad(format!("maxResults must be 1 to 100, not '{text}'")))?,
    };
    let limit = limit.min(state.lock_controls().page_size.unwrap_or(limit));
    let start = match req.query("nextToken") {
        None => 0,
        Some(token) => token
            .parse::<usize>()
            .map_err(|_| bad(format!("Invalid token: '{token}'")))?,
    };
    let more = start + limit < items.len();
    let slice: Vec<Value> = items.into_iter().skip(start).take(limit).collect();
    let mut out = json!({ key: slice });
    if more {
        out["nextToken"] = json!((start + limit).to_string());
    }
    Ok(out)
}
