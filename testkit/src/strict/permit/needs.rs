//! Which IAM actions on which resources a call needs, those that services ask for in the caller's name included.
//! From the service authorization reference; what is not certain there is marked [?].

use serde_json::Value;

use super::policy::Need;
use crate::strict::http::Req;
use crate::strict::{State, eks, lock};

/// What the call needs, the call's own action first. Empty: anybody may.
pub(super) async fn of(state: &State, req: &Req) -> Vec<Need> {
    match req.service.as_str() {
        "eks" => eks_needs(state, req),
        "iam" => iam_needs(state, req).await,
        "ec2" => ec2_needs(state, req),
        "s3" => s3_needs(req),
        "sts" if req.action == "GetCallerIdentity" => vec![],
        "sts" => vec![Need::new(
            format!("sts:{}", req.action),
            req.form("RoleArn").unwrap_or("*"),
        )],
        "route53" => route53_needs(req),
        "kms" => vec![Need::new(
            format!("kms:{}", req.action),
            kms_key(state, req),
        )],
        "logs" => logs_needs(state, req),
        service => vec![Need::new(
            format!("{}:{}", prefix(service), rest_action(req)),
            "*",
        )],
    }
}

/// IAM's name of a service where it is not the signing name.
fn prefix(service: &str) -> &str {
    match service {
        "tagging" => "tag",
        "monitoring" => "cloudwatch",
        other => other,
    }
}

/// REST services that the layer only passes on are logged as method and path.
fn rest_action(req: &Req) -> String {
    match req.action.as_str() {
        "GET /2015-02-01/file-systems" => "DescribeFileSystems".into(),
        "GET /2015-02-01/mount-targets" => "DescribeMountTargets".into(),
        other => other.to_owned(),
    }
}

/// Tags of a request as condition keys.
fn tagged(need: Need, tags: &[(String, String)]) -> Need {
    tags.iter().fold(need, |need, (key, value)| {
        need.with("aws:TagKeys", key.as_str())
            .with(&format!("aws:RequestTag/{key}"), value.as_str())
    })
}

fn text<'a>(body: &'a Value, key: &str) -> Option<&'a str> {
    body.get(key).and_then(Value::as_str)
}

// ---- EKS

fn eks_needs(state: &State, req: &Req) -> Vec<Need> {
    let params = eks::params_of(req);
    let body: Value = serde_json::from_slice(&req.body).unwrap_or_default();
    let (region, account) = (&state.config.region, &state.config.account);
    let arn = |rest: String| format!("arn:aws:eks:{region}:{account}:{rest}");
    let name = text(&params, "clusterName")
        .or_else(|| text(&body, "name"))
        .unwrap_or("*");
    let cluster = arn(format!("cluster/{name}"));
    let of = |key: &str| text(&params, key).unwrap_or("*").to_owned();
    let (kind, item) = match req.action.as_str() {
        a if a.ends_with("Nodegroup") || a.starts_with("UpdateNodegroup") => {
            ("nodegroup", of("nodegroupName"))
        }
        a if a.ends_with("Addon") => ("addon", of("addonName")),
        a if a.ends_with("AccessEntry") || a.contains("AccessPolic") => {
            ("access-entry", of("principalArn"))
        }
        a if a.contains("PodIdentityAssociation") => {
            ("podidentityassociation", of("associationId"))
        }
        _ => ("cluster", name.to_owned()),
    };
    let existing = || match kind {
        "cluster" => cluster.clone(),
        _ => eks::arn_of(&state.lock_eks(), name, kind, &item)
            .unwrap_or_else(|| arn(format!("{kind}/{name}/*"))),
    };
    let resource = match req.action.as_str() {
        "ListClusters"
        | "DescribeAddonVersions"
        | "DescribeAddonConfiguration"
        | "DescribeClusterVersions"
        | "ListAccessPolicies" => "*".to_owned(),
        "TagResource" | "UntagResource" | "ListTagsForResource" => of("resourceArn"),
        action if action.starts_with("Create") => cluster.clone(),
        "ListAssociatedAccessPolicies" => existing(),
        action if action.starts_with("List") => cluster.clone(),
        _ => existing(),
    };
    let tags: Vec<(String, String)> = body["tags"]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned())))
        .collect();
    let mut out = vec![tagged(
        Need::new(format!("eks:{}", req.action), resource),
        &tags,
    )];
    if req.action.starts_with("Create") && !tags.is_empty() {
        let made = match kind {
            "cluster" => cluster.clone(),
            "nodegroup" | "addon" => arn(format!("{kind}/{name}/{item}/*")),
            _ => arn(format!("{kind}/{name}/*")),
        };
        out.push(tagged(Need::new("eks:TagResource", made), &tags));
    }
    out.extend(behind_eks(state, req, &body));
    out
}

/// What EKS asks for in the caller's name.
fn behind_eks(state: &State, req: &Req, body: &Value) -> Vec<Need> {
    let pass = |role: Option<&str>, to: &[&str]| {
        role.map(|role| {
            to.iter().fold(Need::new("iam:PassRole", role), |need, to| {
                need.with("iam:PassedToService", *to)
            })
        })
    };
    let standing = |service: &str| lock(&state.permits).service_roles.contains(service);
    let linked = |service: &str, role: &str| {
        format!(
            "arn:aws:iam::{}:role/aws-service-role/{service}/{role}",
            state.config.account
        )
    };
    let mut out = vec![];
    match req.action.as_str() {
        "CreateCluster" => {
            out.extend(pass(text(body, "roleArn"), &["eks.amazonaws.com"]));
            if !standing("eks.amazonaws.com") {
                out.push(
                    Need::new(
                        "iam:CreateServiceLinkedRole",
                        linked("eks.amazonaws.com", "AWSServiceRoleForAmazonEKS"),
                    )
                    .with("iam:AWSServiceName", "eks.amazonaws.com"),
                );
            }
            for config in body["encryptionConfig"].as_array().into_iter().flatten() {
                let key = text(&config["provider"], "keyArn").unwrap_or("*");
                out.push(Need::new("kms:DescribeKey", key));
                out.push(Need::new("kms:CreateGrant", key));
            }
        }
        "CreateNodegroup" => {
            out.extend(pass(text(body, "nodeRole"), &["eks.amazonaws.com"]));
            let role = linked(
                "eks-nodegroup.amazonaws.com",
                "AWSServiceRoleForAmazonEKSNodegroup",
            );
            out.push(Need::new("iam:GetRole", role.clone()));
            if !standing("eks-nodegroup.amazonaws.com") {
                out.push(
                    Need::new("iam:CreateServiceLinkedRole", role)
                        .with("iam:AWSServiceName", "eks-nodegroup.amazonaws.com"),
                );
            }
            if body["launchTemplate"].is_object() {
                // Whose template it is stands in the request's context, as with every RunInstances from a template.
                let template = &body["launchTemplate"];
                let id = text(template, "id")
                    .or(text(template, "name"))
                    .unwrap_or("*");
                out.push(Need::new("ec2:RunInstances", "*").with(
                    "ec2:LaunchTemplate",
                    format!(
                        "arn:aws:ec2:{}:{}:launch-template/{id}",
                        state.config.region, state.config.account
                    ),
                ));
            }
        }
        "CreateAddon" | "UpdateAddon" => {
            out.extend(pass(
                text(body, "serviceAccountRoleArn"),
                &["eks.amazonaws.com"],
            ));
            for pair in body["podIdentityAssociations"]
                .as_array()
                .into_iter()
                .flatten()
            {
                out.extend(pass(text(pair, "roleArn"), PODS));
            }
        }
        "CreatePodIdentityAssociation" | "UpdatePodIdentityAssociation" => {
            out.extend(pass(text(body, "roleArn"), PODS));
        }
        _ => {}
    }
    out
}

/// Which of the two names IAM sees with pod identity is not documented [?]: a condition on either is met.
const PODS: &[&str] = &["pods.eks.amazonaws.com", "eks.amazonaws.com"];

// ---- IAM

async fn iam_needs(state: &State, req: &Req) -> Vec<Need> {
    let account = &state.config.account;
    let form = |key: &str| req.form(key).unwrap_or("");
    let arn = |kind: &str, path: &str, name: &str| {
        let path = if path.is_empty() { "/" } else { path };
        format!("arn:aws:iam::{account}:{kind}{path}{name}")
    };
    let action = req.action.as_str();
    let resource = match action {
        "CreateRole" => arn("role", form("Path"), form("RoleName")),
        "CreatePolicy" => arn("policy", form("Path"), form("PolicyName")),
        "CreateInstanceProfile" => arn(
            "instance-profile",
            form("Path"),
            form("InstanceProfileName"),
        ),
        "CreateOpenIDConnectProvider" => {
            let url = form("Url").trim_start_matches("https://");
            arn("oidc-provider", "/", url.trim_end_matches('/'))
        }
        "CreateServiceLinkedRole" => format!(
            "arn:aws:iam::{account}:role/aws-service-role/{}/*",
            form("AWSServiceName")
        ),
        _ if !form("OpenIDConnectProviderArn").is_empty() => {
            form("OpenIDConnectProviderArn").to_owned()
        }
        _ if !form("InstanceProfileName").is_empty() => {
            arn_of(state, req, "InstanceProfileName", "GetInstanceProfile")
                .await
                .unwrap_or_else(|| arn("instance-profile", "/", form("InstanceProfileName")))
        }
        _ if !form("RoleName").is_empty() => arn_of(state, req, "RoleName", "GetRole")
            .await
            .unwrap_or_else(|| arn("role", "/", form("RoleName"))),
        _ if !form("PolicyArn").is_empty() => form("PolicyArn").to_owned(),
        _ if !form("PolicySourceArn").is_empty() => form("PolicySourceArn").to_owned(),
        _ if !form("UserName").is_empty() => arn("user", "/", form("UserName")),
        _ => "*".to_owned(),
    };
    let tags = pairs(req, "Tags.member.{n}.Key", "Tags.member.{n}.Value");
    let mut need = tagged(Need::new(format!("iam:{action}"), resource.clone()), &tags);
    if action.ends_with("RolePolicy") && !form("PolicyArn").is_empty() {
        need = need.with("iam:PolicyARN", form("PolicyArn"));
    }
    let boundary = match form("PermissionsBoundary") {
        "" => state.lock_boundaries().get(form("RoleName")).cloned(),
        given => Some(given.to_owned()),
    };
    if let Some(boundary) = boundary {
        need = need.with("iam:PermissionsBoundary", boundary);
    }
    if action == "CreateServiceLinkedRole" {
        need = need.with("iam:AWSServiceName", form("AWSServiceName"));
    }
    let mut out = vec![need];
    let tagging = match action {
        "CreateRole" => Some("iam:TagRole"),
        "CreatePolicy" => Some("iam:TagPolicy"),
        "CreateInstanceProfile" => Some("iam:TagInstanceProfile"),
        "CreateOpenIDConnectProvider" => Some("iam:TagOpenIDConnectProvider"),
        _ => None,
    };
    if let Some(tagging) = tagging.filter(|_| !tags.is_empty()) {
        out.push(tagged(Need::new(tagging, resource), &tags));
    }
    if action == "AddRoleToInstanceProfile"
        && let Some(role) = arn_of(state, req, "RoleName", "GetRole").await
    {
        out.push(Need::new("iam:PassRole", role).with("iam:PassedToService", "ec2.amazonaws.com"));
    }
    out
}

/// The ARN, with its path, of what a request names.
async fn arn_of(state: &State, req: &Req, key: &str, question: &str) -> Option<String> {
    let name = req.form(key)?;
    let (status, root) = state.ask("iam", &req.who, question, &[(key, name)]).await;
    root.find(question.trim_start_matches("Get"))
        .filter(|_| status == 200)
        .and_then(|found| found.text_of("Arn"))
        .map(str::to_owned)
}

/// Keys and values of numbered parameters.
fn pairs(req: &Req, key: &str, value: &str) -> Vec<(String, String)> {
    (1..)
        .map_while(|n| {
            let n = n.to_string();
            let key = req.form(&key.replace("{n}", &n))?;
            let value = req.form(&value.replace("{n}", &n)).unwrap_or("");
            Some((key.to_owned(), value.to_owned()))
        })
        .collect()
}

// ---- EC2

/// `security-group/sg-1` of an id.
fn typed(id: &str) -> String {
    let kind = match id.split('-').next().unwrap_or("") {
        "sg" => "security-group",
        "sgr" => "security-group-rule",
        "subnet" => "subnet",
        "vpc" => "vpc",
        "lt" => "launch-template",
        "i" => "instance",
        "vol" => "volume",
        "snap" => "snapshot",
        "eni" => "network-interface",
        "rtb" => "route-table",
        "igw" => "internet-gateway",
        "nat" => "natgateway",
        "eipalloc" => "elastic-ip",
        "ami" => "image",
        _ => return "*".to_owned(),
    };
    format!("{kind}/{id}")
}

fn ec2_needs(state: &State, req: &Req) -> Vec<Need> {
    let action = req.action.as_str();
    let arn = |rest: &str| match rest {
        "*" => "*".to_owned(),
        rest => format!(
            "arn:aws:ec2:{}:{}:{rest}",
            state.config.region, state.config.account
        ),
    };
    let own = format!("ec2:{action}");
    if action.starts_with("Describe") {
        return vec![Need::new(own, "*")];
    }
    if action == "CreateTags" || action == "DeleteTags" {
        let tags = pairs(req, "Tag.{n}.Key", "Tag.{n}.Value");
        return pairs(req, "ResourceId.{n}", "")
            .iter()
            .map(|(id, _)| tagged(Need::new(own.clone(), arn(&typed(id))), &tags))
            .collect();
    }
    let mut ids: Vec<String> = vec![];
    if let Some(kind) = action.strip_prefix("Create").and_then(made_kind) {
        ids.push(format!("{kind}/*"));
    }
    if let Some(name) = req.form("LaunchTemplateName")
        && action != "CreateLaunchTemplate"
    {
        let found = state
            .lock_launch()
            .find(None, Some(name))
            .map(|t| t.id.clone());
        ids.push(found.map_or_else(|| "launch-template/*".to_owned(), |id| typed(&id)));
    }
    for key in [
        "GroupId",
        "VpcId",
        "SubnetId",
        "LaunchTemplateId",
        "VolumeId",
        "InstanceId",
        "NetworkInterfaceId",
        "RouteTableId",
    ] {
        ids.extend(req.form(key).map(typed));
    }
    if ids.is_empty() {
        ids.push("*".into());
    }
    let mut out: Vec<Need> = ids
        .iter()
        .map(|id| Need::new(own.clone(), arn(id)))
        .collect();
    for n in 1.. {
        let Some(kind) = req.form(&format!("TagSpecification.{n}.ResourceType")) else {
            break;
        };
        let tags = pairs(
            req,
            &format!("TagSpecification.{n}.Tag.{{n}}.Key"),
            &format!("TagSpecification.{n}.Tag.{{n}}.Value"),
        );
        for need in &mut out {
            *need = tagged(need.clone(), &tags);
        }
        out.push(tagged(
            Need::new("ec2:CreateTags", arn(&format!("{kind}/*"))).with("ec2:CreateAction", action),
            &tags,
        ));
    }
    out
}

fn made_kind(what: &str) -> Option<&'static str> {
    Some(match what {
        "SecurityGroup" => "security-group",
        "LaunchTemplate" => "launch-template",
        "Subnet" => "subnet",
        "Vpc" => "vpc",
        "Volume" => "volume",
        "Snapshot" => "snapshot",
        "NetworkInterface" => "network-interface",
        _ => return None,
    })
}

// ---- the others

fn s3_needs(req: &Req) -> Vec<Need> {
    let params = crate::strict::upstream::s3_params(req);
    let bucket = text(&params, "bucket").unwrap_or("*");
    let resource = match text(&params, "key") {
        Some(key) => format!("arn:aws:s3:::{bucket}/{key}"),
        None => format!("arn:aws:s3:::{bucket}"),
    };
    let need = |action: &str| Need::new(format!("s3:{action}"), resource.clone());
    match req.action.as_str() {
        "ListBuckets" => vec![Need::new("s3:ListAllMyBuckets", "*")],
        "HeadObject" => vec![need("GetObject")],
        "HeadBucket" | "ListObjects" | "ListObjectsV2" => vec![need("ListBucket")],
        "ListObjectVersions" => vec![need("ListBucketVersions")],
        "CopyObject" => vec![need("PutObject")],
        "CreateBucket" => {
            let mut out = vec![need("CreateBucket")];
            if String::from_utf8_lossy(&req.body).contains("<Tag>") {
                out.push(need("TagResource"));
            }
            out
        }
        "DeleteObjects" => vec![Need::new("s3:DeleteObject", format!("{resource}/*"))],
        "GetBucket:encryption" => vec![need("GetEncryptionConfiguration")],
        "PutBucket:encryption" => vec![need("PutEncryptionConfiguration")],
        "GetBucket:publicAccessBlock" => vec![need("GetBucketPublicAccessBlock")],
        "PutBucket:publicAccessBlock" => vec![need("PutBucketPublicAccessBlock")],
        "GetBucket:lifecycle" => vec![need("GetLifecycleConfiguration")],
        "PutBucket:lifecycle" => vec![need("PutLifecycleConfiguration")],
        other => match other.split_once(':') {
            // `GetBucket:versioning` -> GetBucketVersioning
            Some((verb, sub)) => {
                let mut letters = sub.chars();
                let first = letters.next().map(|c| c.to_ascii_uppercase());
                let sub: String = first.into_iter().chain(letters).collect();
                vec![need(&format!("{verb}{sub}"))]
            }
            None => vec![need(other)],
        },
    }
}

fn route53_needs(req: &Req) -> Vec<Need> {
    let segments = req.segments();
    let after = |word: &str| {
        segments
            .iter()
            .position(|s| s == word)
            .and_then(|at| segments.get(at + 1))
            .cloned()
    };
    let resource = match (after("hostedzone"), after("change"), after("healthcheck")) {
        (Some(id), _, _) => format!("arn:aws:route53:::hostedzone/{id}"),
        (_, Some(id), _) => format!("arn:aws:route53:::change/{id}"),
        (_, _, Some(id)) => format!("arn:aws:route53:::healthcheck/{id}"),
        _ => "*".to_owned(),
    };
    vec![Need::new(format!("route53:{}", req.action), resource)]
}

fn kms_key(state: &State, req: &Req) -> String {
    let body: Value = serde_json::from_slice(&req.body).unwrap_or_default();
    match text(&body, "KeyId") {
        Some(arn) if arn.starts_with("arn:") => arn.to_owned(),
        // An alias is judged by the key behind it, which only the emulator knows.
        Some(_) => format!(
            "arn:aws:kms:{}:{}:key/*",
            state.config.region, state.config.account
        ),
        None => "*".to_owned(),
    }
}

fn logs_needs(state: &State, req: &Req) -> Vec<Need> {
    let body: Value = serde_json::from_slice(&req.body).unwrap_or_default();
    let head = format!(
        "arn:aws:logs:{}:{}:log-group:",
        state.config.region, state.config.account
    );
    let group = match (text(&body, "logGroupName"), text(&body, "resourceArn")) {
        (Some(name), _) => format!("{head}{name}"),
        (None, Some(arn)) => arn.to_owned(),
        (None, None) => format!("{head}*"),
    };
    let mut out = vec![Need::new(format!("logs:{}", req.action), group.clone())];
    if req.action == "CreateLogGroup" && body["tags"].is_object() {
        out.push(Need::new("logs:TagResource", group));
    }
    out
}
