//! One launch template: its answers in EC2's form, and what EKS thinks of it (eks.md 1.6).

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;

use super::Template;
use crate::strict::xml;

impl Template {
    pub(super) fn head(&self) -> String {
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

    pub(super) fn version(&self) -> String {
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

    pub fn tags(&self) -> &[(String, String)] {
        &self.tags
    }

    /// Keys that its volumes are encrypted with.
    pub fn kms_keys(&self) -> Vec<String> {
        let mappings = self.data["BlockDeviceMapping"].as_array();
        mappings
            .into_iter()
            .flatten()
            .filter_map(|m| m["Ebs"]["KmsKeyId"].as_str().map(str::to_owned))
            .collect()
    }

    /// As the instance gets it; empty without any.
    pub fn user_data(&self) -> String {
        let encoded = self.data["UserData"].as_str().unwrap_or("");
        let plain = BASE64.decode(encoded).unwrap_or_default();
        String::from_utf8_lossy(&plain).into_owned()
    }

    pub fn has_image(&self) -> bool {
        !self.data["ImageId"].is_null()
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
        // EKS adds a part of its own to the user data of its images (eks.md 1.7).
        let ami = request["amiType"].as_str().unwrap_or("");
        let merged =
            !self.has_image() && !ami.starts_with("BOTTLEROCKET") && !ami.starts_with("WINDOWS");
        let user_data = self.user_data();
        if merged && !user_data.is_empty() && !user_data.contains("Content-Type: multipart/") {
            return Some("User data was not in the MIME multipart format.".into());
        }
        if self.has_image()
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
pub(super) fn render(out: &mut String, value: &Value, within: &str) {
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
