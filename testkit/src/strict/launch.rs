//! EC2 launch templates, wholly our own: the emulator forgets keys, tenancy and credits, knows no client token and answers
//! "which template of this name" with an empty list where AWS refuses.
//! Rules: eks.md 1.6 (names, what EKS allows in a template), the EC2 API's error codes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value, json};

use super::State;
use super::http::{Refusal, Reply, Req, unique_id, xml_reply};
use super::route53::short_id;
use super::xml;

/// User data before it is encoded.
const USER_DATA: usize = 16 * 1024;

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
    let mut store = state.lock_launch();
    let answer = match req.action.as_str() {
        "CreateLaunchTemplate" => create(&mut store, req),
        "DescribeLaunchTemplates" => describe(&store, req),
        "DescribeLaunchTemplateVersions" => describe_versions(&store, req),
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
fn page(req: &Req, items: Vec<String>, list: &str) -> Result<String, Refusal> {
    let limit = match req.form("MaxResults") {
        None => 200,
        Some(text) => text
            .parse::<usize>()
            .ok()
            .filter(|n| (1..=200).contains(n))
            .ok_or_else(|| {
                bad(
                    "InvalidParameterValue",
                    format!("MaxResults {text}: 1 to 200"),
                )
            })?,
    };
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

fn describe(store: &Store, req: &Req) -> Result<String, Refusal> {
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
    page(req, items, "launchTemplates")
}

fn describe_versions(store: &Store, req: &Req) -> Result<String, Refusal> {
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

impl Template {
    fn head(&self) -> String {
        let mut out = String::new();
        xml::leaf(&mut out, "launchTemplateId", &self.id);
        xml::leaf(&mut out, "launchTemplateName", &self.name);
        xml::leaf(&mut out, "createTime", &self.created);
        xml::leaf(&mut out, "defaultVersionNumber", "1");
        xml::leaf(&mut out, "latestVersionNumber", "1");
        out.push_str("<tagSet>");
        for (key, value) in &self.tags {
            out.push_str("<item>");
            xml::leaf(&mut out, "key", key);
            xml::leaf(&mut out, "value", value);
            out.push_str("</item>");
        }
        out.push_str("</tagSet>");
        out
    }

    fn version(&self) -> String {
        let mut out = String::new();
        xml::leaf(&mut out, "launchTemplateId", &self.id);
        xml::leaf(&mut out, "launchTemplateName", &self.name);
        xml::leaf(&mut out, "versionNumber", "1");
        xml::leaf(&mut out, "defaultVersion", "true");
        xml::leaf(&mut out, "createTime", &self.created);
        out.push_str("<launchTemplateData>");
        render(&mut out, &self.data, "");
        out.push_str("</launchTemplateData>");
        out
    }

    /// Size of the first volume, GiB; what the image says when the template says nothing.
    pub fn disk_gib(&self) -> u64 {
        self.data["BlockDeviceMapping"][0]["Ebs"]["VolumeSize"]
            .as_str()
            .and_then(|n| n.parse().ok())
            .unwrap_or(20)
    }

    /// Security groups, wherever in the template they stand.
    pub fn security_groups(&self) -> Vec<String> {
        let interfaces = self.data["NetworkInterface"].as_array();
        let lists = interfaces
            .into_iter()
            .flatten()
            .map(|i| &i["SecurityGroupId"])
            .chain([&self.data["SecurityGroupId"]]);
        lists
            .filter_map(Value::as_array)
            .flatten()
            .filter_map(|g| g.as_str().map(str::to_owned))
            .collect()
    }

    /// Why EKS does not take this template for a managed node group (eks.md 1.6).
    pub fn unfit(&self, request: &Value) -> Option<String> {
        let data = &self.data;
        let interfaces = data["NetworkInterface"].as_array();
        if interfaces
            .into_iter()
            .flatten()
            .any(|i| !i["SubnetId"].is_null())
        {
            return Some(
                "Launch template should not specify a subnet: the subnets in your request are used"
                    .into(),
            );
        }
        if !data["IamInstanceProfile"].is_null() {
            return Some("Launch template should not specify an instance profile. The noderole in your request will be used to construct an instance profile.".into());
        }
        if !data["InstanceInitiatedShutdownBehavior"].is_null()
            || !data["HibernationOptions"].is_null()
        {
            return Some(
                "Launch template should not specify a shutdown or hibernate behaviour".into(),
            );
        }
        if !data["InstanceMarketOptions"].is_null() {
            return Some(
                "Launch template should not request spot instances: use capacityType".into(),
            );
        }
        let in_request = request["instanceTypes"]
            .as_array()
            .is_some_and(|t| !t.is_empty());
        if in_request && !data["InstanceType"].is_null() {
            return Some("You must specify instance types either in the launch template or in the request, not in both".into());
        }
        let image = !data["ImageId"].is_null();
        if image
            && ["amiType", "version", "releaseVersion"]
                .iter()
                .any(|k| !request[*k].is_null())
        {
            return Some("amiType, version and releaseVersion cannot be given with an image in the launch template".into());
        }
        None
    }
}

/// The tree in EC2's answers: names begin small, lists are sets of items.
fn render(out: &mut String, value: &Value, within: &str) {
    let Some(map) = value.as_object() else {
        return;
    };
    for (key, value) in map {
        let small = |key: &str| {
            let mut c = key.chars();
            c.next()
                .map(|f| f.to_ascii_lowercase().to_string() + c.as_str())
                .unwrap_or_default()
        };
        match value {
            Value::Array(list) => {
                let (name, item) = match (key.as_str(), within) {
                    ("SecurityGroupId", "NetworkInterface") => ("groupSet".to_owned(), "groupId"),
                    ("LicenseSpecification", _) => ("licenseSet".to_owned(), "item"),
                    _ => (format!("{}Set", small(key)), "item"),
                };
                xml::open(out, &name);
                for entry in list {
                    match entry.as_str() {
                        Some(text) => xml::leaf(out, item, text),
                        None => {
                            xml::open(out, item);
                            render(out, entry, key);
                            xml::close(out, item);
                        }
                    }
                }
                xml::close(out, &name);
            }
            Value::Object(_) => {
                xml::open(out, &small(key));
                render(out, value, key);
                xml::close(out, &small(key));
            }
            Value::String(text) => xml::leaf(out, &small(key), text),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
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
