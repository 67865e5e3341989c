//! EC2 launch templates, wholly our own: the emulator forgets keys, tenancy and credits, knows no client token and answers
//! "which template of this name" with an empty list where AWS refuses.
//! Rules: eks.md 1.6 (names, what EKS allows in a template), the EC2 API's error codes.

mod template;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value, json};

use super::State;
use super::http::{Refusal, Reply, Req, unique_id, xml_reply};
use super::route53::short_id;
use super::xml;

/// User data before it is encoded.
const USER_DATA: usize = 16 * 1024;
/// The longest page.
const PAGE: usize = 200;

/// All templates of the account.
#[derive(Debug, Default)]
pub(crate) struct Store {
    templates: Vec<Template>,
}

/// One template; only its first version is ever made.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    pub id: String,
    pub name: String,
    tags: Vec<(String, String)>,
    /// `LaunchTemplateData` as it was sent, as a tree.
    pub data: Value,
    created: String,
    token: Option<String>,
    request: Vec<(String, String)>,
}

impl Store {
    /// By id or name.
    pub fn find(&self, id: Option<&str>, name: Option<&str>) -> Option<&Template> {
        self.templates
            .iter()
            .find(|t| Some(t.id.as_str()) == id || Some(t.name.as_str()) == name)
    }
}

fn bad(code: &str, message: impl Into<String>) -> Refusal {
    Refusal::new(400, code, message)
}

fn unknown(id: Option<&str>, name: Option<&str>) -> Refusal {
    match (id, name) {
        (Some(id), _) => bad(
            "InvalidLaunchTemplateId.NotFound",
            format!("The specified launch template, with template ID {id}, does not exist."),
        ),
        (_, name) => bad(
            "InvalidLaunchTemplateName.NotFoundException",
            format!(
                "At least one of the launch templates specified in the request does not exist: {}",
                name.unwrap_or("")
            ),
        ),
    }
}

/// The operations that this module answers; `None` for all others.
pub(crate) fn handle(state: &State, req: &Req) -> Option<Reply> {
    let most = state.lock_controls().page_size.unwrap_or(PAGE);
    let mut store = state.lock_launch();
    let answer = match req.action.as_str() {
        "CreateLaunchTemplate" => create(&mut store, req),
        "DescribeLaunchTemplates" => describe(&store, req, most),
        "DescribeLaunchTemplateVersions" => describe_versions(&store, req, most),
        "DeleteLaunchTemplate" => delete(&mut store, req),
        "CreateLaunchTemplateVersion" | "ModifyLaunchTemplate" | "DeleteLaunchTemplateVersions" => {
            Err(bad(
                "UnsupportedOperation",
                format!(
                    "the strict layer's templates have one version: no {}",
                    req.action
                ),
            ))
        }
        _ => return None,
    };
    Some(match answer {
        Ok(body) => xml_reply(
            200,
            format!(
                "<{0}Response xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\"><requestId>{1}</requestId>{body}</{0}Response>",
                req.action,
                unique_id()
            ),
        ),
        Err(refusal) => refusal.reply("ec2"),
    })
}

/// Parameters below a prefix as a tree; numbered parts become lists.
fn tree(form: &[(String, String)], prefix: &str) -> Value {
    let mut root = Value::Null;
    for (key, value) in form {
        let Some(path) = key.strip_prefix(prefix).and_then(|k| k.strip_prefix('.')) else {
            continue;
        };
        let mut at = &mut root;
        for part in path.split('.') {
            at = match part.parse::<usize>() {
                Ok(n) => {
                    if !at.is_array() {
                        *at = json!([]);
                    }
                    let Value::Array(list) = at else {
                        return root;
                    };
                    while list.len() < n.clamp(1, 100) {
                        list.push(Value::Null);
                    }
                    &mut list[n.clamp(1, 100) - 1]
                }
                Err(_) => {
                    if !at.is_object() {
                        *at = Value::Object(Map::new());
                    }
                    &mut at[part]
                }
            };
        }
        *at = json!(value);
    }
    root
}

fn tags_for(form: &[(String, String)], kind: &str) -> Result<Vec<(String, String)>, Refusal> {
    let mut out = vec![];
    for spec in tree(form, "TagSpecification")
        .as_array()
        .into_iter()
        .flatten()
    {
        if spec["ResourceType"] != kind {
            return Err(bad(
                "InvalidParameterValue",
                format!(
                    "'{}' is not a valid taggable resource type for this operation.",
                    spec["ResourceType"].as_str().unwrap_or("")
                ),
            ));
        }
        out.extend(pairs(&spec["Tag"])?);
    }
    Ok(out)
}

fn pairs(list: &Value) -> Result<Vec<(String, String)>, Refusal> {
    let mut out = vec![];
    for tag in list.as_array().into_iter().flatten() {
        let get = |key: &str| tag[key].as_str().unwrap_or("").to_owned();
        let (key, value) = (get("Key"), get("Value"));
        if key.is_empty() || key.len() > 128 || value.len() > 256 {
            return Err(bad("InvalidParameterValue", format!("Invalid tag '{key}'")));
        }
        if key.to_lowercase().starts_with("aws:") {
            return Err(bad(
                "InvalidParameterValue",
                format!("Tag keys starting with 'aws:' are reserved for internal use: '{key}'"),
            ));
        }
        out.push((key, value));
    }
    Ok(out)
}

fn check_data(data: &Value) -> Result<(), Refusal> {
    if data.is_null() {
        return Err(bad(
            "MissingParameter",
            "The request must contain the parameter LaunchTemplateData",
        ));
    }
    if let Some(text) = data["UserData"].as_str() {
        let plain = BASE64.decode(text).map_err(|_| {
            bad(
                "InvalidUserData.Malformed",
                "Invalid BASE64 encoding of user data.",
            )
        })?;
        if plain.len() > USER_DATA {
            return Err(bad(
                "InvalidParameterValue",
                format!("User data is limited to {USER_DATA} bytes"),
            ));
        }
    }
    let metadata = &data["MetadataOptions"];
    if let Some(tokens) = metadata["HttpTokens"].as_str()
        && !["required", "optional"].contains(&tokens)
    {
        return Err(bad(
            "InvalidParameterValue",
            format!("Invalid value '{tokens}' for HttpTokens"),
        ));
    }
    if let Some(hops) = metadata["HttpPutResponseHopLimit"].as_str()
        && !hops.parse::<u32>().is_ok_and(|n| (1..=64).contains(&n))
    {
        return Err(bad(
            "InvalidParameterValue",
            format!("Invalid value '{hops}' for HttpPutResponseHopLimit: 1 to 64"),
        ));
    }
    for mapping in data["BlockDeviceMapping"].as_array().into_iter().flatten() {
        let kind = mapping["Ebs"]["VolumeType"].as_str().unwrap_or("gp2");
        if !["standard", "io1", "io2", "gp2", "gp3", "sc1", "st1"].contains(&kind) {
            return Err(bad(
                "InvalidParameterValue",
                format!("Invalid value '{kind}' for VolumeType"),
            ));
        }
    }
    for spec in data["TagSpecification"].as_array().into_iter().flatten() {
        pairs(&spec["Tag"])?;
    }
    Ok(())
}

fn create(store: &mut Store, req: &Req) -> Result<String, Refusal> {
    let name = req.form("LaunchTemplateName").unwrap_or("");
    let plain = |c: char| c.is_ascii_alphanumeric() || "()./_-".contains(c);
    if !(3..=128).contains(&name.len()) || !name.chars().all(plain) {
        return Err(bad(
            "InvalidLaunchTemplateName.MalformedException",
            format!(
                "Launch template name '{name}' must be between 3 and 128 characters and may hold letters, numbers and the characters ( ) . / _ -"
            ),
        ));
    }
    let token = req.form("ClientToken").map(str::to_owned);
    let request: Vec<(String, String)> = req
        .form
        .iter()
        .filter(|(k, _)| !k.starts_with("X-Amz-"))
        .cloned()
        .collect();
    if let Some(old) = store
        .templates
        .iter()
        .find(|t| token.is_some() && t.token == token)
    {
        return if old.request == request {
            Ok(format!("<launchTemplate>{}</launchTemplate>", old.head()))
        } else {
            Err(bad(
                "IdempotentParameterMismatch",
                "The client token was used before with other parameters",
            ))
        };
    }
    if store.find(None, Some(name)).is_some() {
        return Err(bad(
            "InvalidLaunchTemplateName.AlreadyExistsException",
            format!("Launch template name already in use: {name}"),
        ));
    }
    let data = tree(&req.form, "LaunchTemplateData");
    check_data(&data)?;
    let template = Template {
        id: format!("lt-0{}", short_id(16).to_lowercase()),
        name: name.to_owned(),
        tags: tags_for(&req.form, "launch-template")?,
        data,
        created: jiff::Timestamp::now()
            .strftime("%Y-%m-%dT%H:%M:%S.000Z")
            .to_string(),
        token,
        request,
    };
    let out = format!("<launchTemplate>{}</launchTemplate>", template.head());
    store.templates.push(template);
    Ok(out)
}

fn listed(req: &Req, prefix: &str) -> Vec<String> {
    (1..)
        .map_while(|n| req.form(&format!("{prefix}.{n}")).map(str::to_owned))
        .collect()
}

/// `Filter.N.Name` with its values.
fn filters(req: &Req) -> Vec<(String, Vec<String>)> {
    (1..)
        .map_while(|n| {
            let name = req.form(&format!("Filter.{n}.Name"))?;
            Some((name.to_owned(), listed(req, &format!("Filter.{n}.Value"))))
        })
        .collect()
}

fn passes(t: &Template, filters: &[(String, Vec<String>)]) -> Result<bool, Refusal> {
    for (name, values) in filters {
        let hit = match name.strip_prefix("tag:") {
            Some(key) => t.tags.iter().any(|(k, v)| k == key && values.contains(v)),
            None if name == "tag-key" => t.tags.iter().any(|(k, _)| values.contains(k)),
            None if name == "launch-template-name" => values.contains(&t.name),
            None => {
                return Err(bad(
                    "InvalidParameterValue",
                    format!("The filter '{name}' is invalid"),
                ));
            }
        };
        if !hit {
            return Ok(false);
        }
    }
    Ok(true)
}

/// One page of the list; the token is the index of the next one.
fn page(req: &Req, items: Vec<String>, list: &str, most: usize) -> Result<String, Refusal> {
    let limit = match req.form("MaxResults") {
        None => PAGE,
        Some(text) => text
            .parse::<usize>()
            .ok()
            .filter(|n| (1..=PAGE).contains(n))
            .ok_or_else(|| {
                bad(
                    "InvalidParameterValue",
                    format!("MaxResults {text}: 1 to 200"),
                )
            })?,
    };
    let limit = limit.min(most);
    let start: usize = match req.form("NextToken") {
        None => 0,
        Some(token) => token
            .parse()
            .map_err(|_| bad("InvalidNextToken", "The token is not valid"))?,
    };
    let mut out = format!("<{list}>");
    for item in items.iter().skip(start).take(limit) {
        out.push_str(&format!("<item>{item}</item>"));
    }
    out.push_str(&format!("</{list}>"));
    if start + limit < items.len() {
        xml::leaf(&mut out, "nextToken", &(start + limit).to_string());
    }
    Ok(out)
}

fn describe(store: &Store, req: &Req, most: usize) -> Result<String, Refusal> {
    let (ids, names) = (
        listed(req, "LaunchTemplateId"),
        listed(req, "LaunchTemplateName"),
    );
    // AWS refuses the whole question when one of the things it names is not there.
    for id in &ids {
        store
            .find(Some(id), None)
            .ok_or_else(|| unknown(Some(id), None))?;
    }
    for name in &names {
        store
            .find(None, Some(name))
            .ok_or_else(|| unknown(None, Some(name)))?;
    }
    let filters = filters(req);
    let mut items = vec![];
    for t in &store.templates {
        let named =
            ids.is_empty() && names.is_empty() || ids.contains(&t.id) || names.contains(&t.name);
        if named && passes(t, &filters)? {
            items.push(t.head());
        }
    }
    page(req, items, "launchTemplates", most)
}

fn describe_versions(store: &Store, req: &Req, most: usize) -> Result<String, Refusal> {
    let (id, name) = (req.form("LaunchTemplateId"), req.form("LaunchTemplateName"));
    let versions = listed(req, "LaunchTemplateVersion");
    let word = |v: &String| v == "$Default" || v == "$Latest";
    let of: Vec<&Template> = match (id, name) {
        (Some(_), Some(_)) => {
            return Err(bad(
                "InvalidParameterCombination",
                "Give the ID or the name of the launch template, not both",
            ));
        }
        (None, None) if versions.is_empty() || !versions.iter().all(word) => {
            return Err(bad(
                "MissingParameter",
                "The request must contain the ID or name of a launch template, or only $Latest and $Default as versions",
            ));
        }
        (None, None) => store.templates.iter().collect(),
        _ => vec![store.find(id, name).ok_or_else(|| unknown(id, name))?],
    };
    for v in &versions {
        if !word(v) && v != "1" {
            return Err(bad(
                "InvalidLaunchTemplateId.VersionNotFound",
                format!("Could not find launch template version {v}"),
            ));
        }
    }
    page(
        req,
        of.iter().map(|t| t.version()).collect(),
        "launchTemplateVersionSet",
        most,
    )
}

fn delete(store: &mut Store, req: &Req) -> Result<String, Refusal> {
    let (id, name) = (req.form("LaunchTemplateId"), req.form("LaunchTemplateName"));
    let gone = store
        .find(id, name)
        .cloned()
        .ok_or_else(|| unknown(id, name))?;
    store.templates.retain(|t| t.id != gone.id);
    Ok(format!("<launchTemplate>{}</launchTemplate>", gone.head()))
}

#[cfg(test)]
mod tests {
    use super::template::render;
    use super::*;

    #[test]
    fn numbered_parameters_become_lists_and_come_back_as_sets() {
        let form = [
            ("LaunchTemplateData.Monitoring.Enabled", "true"),
            (
                "LaunchTemplateData.BlockDeviceMapping.1.DeviceName",
                "/dev/xvda",
            ),
            (
                "LaunchTemplateData.BlockDeviceMapping.1.Ebs.KmsKeyId",
                "key-1",
            ),
            (
                "LaunchTemplateData.NetworkInterface.1.SecurityGroupId.1",
                "sg-1",
            ),
            ("LaunchTemplateName", "x"),
        ]
        .map(|(k, v)| (k.to_owned(), v.to_owned()));
        let data = tree(&form, "LaunchTemplateData");
        let mut out = String::new();
        render(&mut out, &data, "");
        for part in [
            "<monitoring><enabled>true</enabled></monitoring>",
            "<blockDeviceMappingSet><item><deviceName>/dev/xvda</deviceName><ebs><kmsKeyId>key-1</kmsKeyId></ebs></item></blockDeviceMappingSet>",
            "<networkInterfaceSet><item><groupSet><groupId>sg-1</groupId></groupSet></item></networkInterfaceSet>",
        ] {
            assert!(out.contains(part), "{part} in {out}");
        }
    }
}
