//! The table of API versions and features that are gone, as data (`removed-apis.yaml`). A new Kubernetes release is rows there, not code:
//! what a row may say stands in its `fields`; conversions that are more than a rename are named and live in [`super::convert`].

use serde::Deserialize;
use serde_json::Value;
use std::sync::OnceLock;

/// One API version that a later server no longer serves.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Removal {
    /// Group, empty or `core` for the core group.
    #[serde(default)]
    pub group: String,
    /// Version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// First Kubernetes minor that does not serve it, as in `1.22`.
    #[serde(default)]
    pub removed: Option<String>,
    /// What took its place.
    #[serde(default)]
    pub replacement: Option<Replacement>,
    /// `mechanical`, `mechanical-with-defaults`, `needs-judgement` or `none`.
    #[serde(default)]
    pub conversion: String,
    /// Name of the conversion; see [`Removal::convert`].
    #[serde(default)]
    convert: Option<String>,
    /// Fields that have another place in the successor.
    #[serde(default)]
    pub moves: Vec<Move>,
    /// Fields that end with the old version.
    #[serde(default)]
    pub drop: Vec<String>,
    /// What the successor wants written out, without a change of meaning.
    #[serde(default)]
    pub fill: Vec<Fill>,
    /// Effective values of the old version that the successor would change.
    #[serde(default)]
    pub defaults: Vec<Fill>,
    /// What a person must confirm or do.
    #[serde(default)]
    pub ask: Option<String>,
    /// `false`: a request or subresource, nothing to copy.
    #[serde(default)]
    pub stored: Option<bool>,
}

/// The successor.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Replacement {
    /// As in `apps/v1 Deployment`.
    pub api: String,
}

/// A field that moves.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Move {
    /// JSON pointer in the old version.
    pub from: String,
    /// JSON pointer in the new one.
    pub to: String,
}

/// A field that is written where nothing is.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Fill {
    /// JSON pointer.
    pub at: String,
    /// The value, or
    #[serde(default)]
    pub value: Option<Value>,
    /// the JSON pointer that it is copied from.
    #[serde(default)]
    pub from: Option<String>,
    /// Only when this pointer exists.
    #[serde(default)]
    pub when: Option<String>,
    /// Not when this pointer exists (with the value of `is`, when that is given).
    #[serde(default)]
    pub unless: Option<String>,
    /// See `unless`.
    #[serde(default)]
    pub is: Option<Value>,
}

/// An API version of an operator that its later releases no longer serve. Nothing of Kubernetes' own versions says when.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ThirdParty {
    /// Group.
    pub group: String,
    /// Versions.
    pub versions: Vec<String>,
    /// Kinds.
    pub kinds: Vec<String>,
    /// What took their place, in words or as `group/version`.
    pub replacement: String,
    /// Name of the conversion; `keep`: written as it was read (replay.md 62).
    pub convert: String,
    /// What a person must confirm or do.
    #[serde(default)]
    pub ask: Option<String>,
}

/// Something else than an API version that later releases no longer honour.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Feature {
    /// Name.
    pub id: String,
    /// First minor without it, when there is one.
    #[serde(default)]
    pub removed: Option<String>,
    /// Who answers for it: id of a check, a rule (`replay.md 46`), `KOPS-field`, or `itself`.
    pub answered: String,
    /// Annotations without effect on later servers.
    #[serde(default)]
    pub dead: Option<Dead>,
    /// An annotation that becomes something else.
    #[serde(default)]
    pub rewrite: Option<Annotation>,
}

/// Annotations without effect, and what took their place.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Dead {
    /// Exact, or a beginning that ends in `/`.
    pub annotations: Vec<String>,
    /// The field, for people.
    pub field: String,
}

/// An annotation that becomes a field or another annotation.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Annotation {
    /// Kinds of the core group that carry it.
    pub kinds: Vec<String>,
    /// The annotation.
    pub annotation: String,
    /// JSON pointer that gets its value, unless something is there.
    pub to: String,
    /// The value becomes a list, cut at this.
    #[serde(default)]
    pub split: Option<String>,
}

/// The whole table.
#[derive(Debug, Deserialize)]
pub(super) struct Table {
    pub api_removals: Vec<Removal>,
    pub third_party_apis: Vec<ThirdParty>,
    pub removed_features: Vec<Feature>,
}

impl Table {
    pub(super) fn parse(text: &str) -> Result<Table, String> {
        serde_saphyr::from_str(text).map_err(|e| e.to_string())
    }
    /// The removal that hits a kind in a version on a server of a minor, if any.
    pub(super) fn removal(
        &self,
        group: &str,
        version: &str,
        kind: &str,
        minor: u32,
    ) -> Option<&Removal> {
        self.api_removals.iter().find(|r| {
            r.group() == group
                && r.version == version
                && r.kind == kind
                && r.minor().is_some_and(|m| m <= minor)
        })
    }
    /// The row of an operator's API version, if any.
    pub(super) fn third_party(
        &self,
        group: &str,
        version: &str,
        kind: &str,
    ) -> Option<&ThirdParty> {
        self.third_party_apis.iter().find(|t| {
            t.group == group
                && t.versions.iter().any(|v| v == version)
                && t.kinds.iter().any(|k| k == kind)
        })
    }
    /// Kinds of which some version is never copied are not copied in any.
    pub(super) fn never(&self, group: &str, kind: &str) -> bool {
        self.api_removals
            .iter()
            .any(|r| r.kind == kind && r.group() == group && r.convert() == "never")
    }
}

impl Removal {
    /// The group as objects spell it.
    pub fn group(&self) -> &str {
        match self.group.as_str() {
            "core" => "",
            g => g,
        }
    }
    /// A row of an operator's as one of Kubernetes' own: no minor takes it away.
    pub(super) fn of_operator(t: &ThirdParty, version: &str, kind: &str) -> Removal {
        Removal {
            group: t.group.clone(),
            version: version.into(),
            kind: kind.into(),
            replacement: Some(Replacement {
                api: match t.replacement.split_once(char::is_whitespace) {
                    // Words for people stay words.
                    Some(_) => t.replacement.clone(),
                    None => format!("{} {kind}", t.replacement),
                },
            }),
            convert: Some(t.convert.clone()),
            ask: t.ask.clone(),
            ..Removal::default()
        }
    }
    /// The same row, which writes no defaults out.
    pub(super) fn without_defaults(&self) -> Removal {
        Removal {
            defaults: vec![],
            ..self.clone()
        }
    }
    /// Minor from which it is gone.
    pub fn minor(&self) -> Option<u32> {
        minor(self.removed.as_deref()?)
    }
    /// `group/version` of the successor, when it has the same kind.
    pub fn successor(&self) -> Option<&str> {
        let (api, kind) = self.replacement.as_ref()?.api.split_once(' ')?;
        (kind == self.kind && api.rsplit('/').next().is_some_and(|v| v.starts_with('v')))
            .then_some(api)
    }
    /// Name of the conversion: as written, else `rename` for a mechanical one with a successor of the same kind, else `refuse`.
    pub fn convert(&self) -> &str {
        match &self.convert {
            Some(name) => name,
            None if self.conversion.starts_with("mechanical") && self.successor().is_some() => {
                "rename"
            }
            None => "refuse",
        }
    }
}

impl Feature {
    /// Minor from which it is gone; `None` when the row gives none, or several.
    pub fn minor(&self) -> Option<u32> {
        minor(self.removed.as_deref()?)
    }
}

fn minor(version: &str) -> Option<u32> {
    version.strip_prefix("1.")?.parse().ok()
}

/// The embedded table.
pub(super) fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        Table::parse(include_str!("removed-apis.yaml"))
            .expect("the embedded table is read by a test")
    })
}

/// All removals.
pub fn removals() -> &'static [Removal] {
    &table().api_removals
}

/// All features.
pub fn features() -> &'static [Feature] {
    &table().removed_features
}

/// The removal that hits a kind in a version on a server of a minor, if any.
pub fn removal(group: &str, version: &str, kind: &str, minor: u32) -> Option<&'static Removal> {
    table().removal(group, version, kind, minor)
}
