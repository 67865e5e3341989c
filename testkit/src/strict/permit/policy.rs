//! IAM policy documents: read as IAM reads them, and judged.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::error::{Error, Result};

/// One thing that a caller must be allowed to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Need {
    /// `iam:PassRole`
    pub action: String,
    /// ARN, or `*` where the action knows no resources.
    pub resource: String,
    /// Condition keys in small letters, with their values.
    pub context: BTreeMap<String, Vec<String>>,
}

impl Need {
    pub fn new(action: impl Into<String>, resource: impl Into<String>) -> Need {
        Need {
            action: action.into(),
            resource: resource.into(),
            context: BTreeMap::new(),
        }
    }

    pub fn with(mut self, key: &str, value: impl Into<String>) -> Need {
        self.context
            .entry(key.to_lowercase())
            .or_default()
            .push(value.into());
        self
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Allowed,
    /// No statement allows it.
    Implicit,
    /// A statement denies it.
    Explicit,
}

#[derive(Debug, Clone)]
pub(crate) struct Policy {
    statements: Vec<Statement>,
}

#[derive(Debug, Clone)]
struct Statement {
    allow: bool,
    actions: Vec<String>,
    /// NotAction
    all_but_actions: bool,
    resources: Vec<String>,
    all_but_resources: bool,
    conditions: Vec<Condition>,
}

#[derive(Debug, Clone)]
struct Condition {
    quantifier: Quantifier,
    test: Test,
    negated: bool,
    if_exists: bool,
    /// In small letters.
    key: String,
    values: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quantifier {
    One,
    Any,
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Test {
    Equals,
    EqualsIgnoreCase,
    Like,
    Null,
}

/// IAM's wildcards: `*` any text (slashes and colons too), `?` one character.
pub(crate) fn like(pattern: &str, text: &str, ignore_case: bool) -> bool {
    let fold = |t: &str| -> Vec<char> {
        if ignore_case {
            t.to_lowercase().chars().collect()
        } else {
            t.chars().collect()
        }
    };
    let (pattern, text) = (fold(pattern), fold(text));
    let (mut p, mut t) = (0, 0);
    // Where the last star stands and how much of the text it has taken so far.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if p < pattern.len() && pattern[p] == '*' {
            star = Some((p, t));
            p += 1;
        } else if p < pattern.len() && (pattern[p] == '?' || pattern[p] == text[t]) {
            p += 1;
            t += 1;
        } else if let Some((at, taken)) = star {
            star = Some((at, taken + 1));
            p = at + 1;
            t = taken + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

fn many(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().flat_map(many).collect(),
        Value::String(text) => vec![text.clone()],
        Value::Bool(flag) => vec![flag.to_string()],
        Value::Number(number) => vec![number.to_string()],
        _ => vec![],
    }
}

fn refused(why: impl std::fmt::Display) -> Error {
    Error::new(format!("MalformedPolicyDocument: {why}"))
}

impl Policy {
    /// Refuses what AWS refuses of an identity-based policy, and conditions that cannot be judged here.
    pub fn parse(document: &Value) -> Result<Policy> {
        let Some(top) = document.as_object() else {
            return Err(refused("a policy document is a JSON object"));
        };
        if let Some(other) = top
            .keys()
            .find(|k| !["Version", "Id", "Statement"].contains(&k.as_str()))
        {
            return Err(refused(format!("unknown member {other}")));
        }
        if document["Version"] != "2012-10-17" {
            return Err(refused("Version must be 2012-10-17"));
        }
        let statements = match &document["Statement"] {
            Value::Array(list) => list.clone(),
            Value::Object(_) => vec![document["Statement"].clone()],
            _ => vec![],
        };
        if statements.is_empty() {
            return Err(refused("there is no Statement"));
        }
        let size = document
            .to_string()
            .chars()
            .filter(|c| !c.is_whitespace())
            .count();
        // The most that a role's inline policies hold together (eks.md 3).
        if size > 10_240 {
            return Err(refused(format!(
                "the document has {size} characters; a role takes 10,240 inline and 6,144 in a managed policy"
            )));
        }
        Ok(Policy {
            statements: statements
                .iter()
                .map(Statement::parse)
                .collect::<Result<_>>()?,
        })
    }

    /// Whether judging needs the tags of what is asked for.
    pub fn asks_for_resource_tags(&self) -> bool {
        self.statements
            .iter()
            .flat_map(|s| &s.conditions)
            .any(|c| c.key.contains("resourcetag/"))
    }
}

/// The verdict of several policies together: a deny wins, then an allow.
pub(crate) fn verdict(policies: &[Policy], need: &Need) -> Verdict {
    let mut verdict = Verdict::Implicit;
    for statement in policies.iter().flat_map(|p| &p.statements) {
        if statement.meets(need) {
            if !statement.allow {
                return Verdict::Explicit;
            }
            verdict = Verdict::Allowed;
        }
    }
    verdict
}

impl Statement {
    fn parse(statement: &Value) -> Result<Statement> {
        const KNOWN: &[&str] = &[
            "Sid",
            "Effect",
            "Action",
            "NotAction",
            "Resource",
            "NotResource",
            "Condition",
        ];
        let Some(map) = statement.as_object() else {
            return Err(refused("a statement is a JSON object"));
        };
        if let Some(other) = map.keys().find(|k| !KNOWN.contains(&k.as_str())) {
            return Err(refused(format!(
                "an identity-based policy has no member {other}"
            )));
        }
        if statement["Sid"]
            .as_str()
            .is_some_and(|sid| !sid.chars().all(|c| c.is_ascii_alphanumeric()))
        {
            return Err(refused(format!(
                "statement IDs (SID) must be alpha-numeric: {}",
                statement["Sid"]
            )));
        }
        let allow = match statement["Effect"].as_str() {
            Some("Allow") => true,
            Some("Deny") => false,
            _ => return Err(refused("Effect must be Allow or Deny")),
        };
        let one_of = |yes: &str, no: &str| -> Result<(Vec<String>, bool)> {
            let (plain, negated) = (many(&statement[yes]), many(&statement[no]));
            match (plain.is_empty(), negated.is_empty()) {
                (false, true) => Ok((plain, false)),
                (true, false) => Ok((negated, true)),
                _ => Err(refused(format!("a statement has either {yes} or {no}"))),
            }
        };
        let (actions, all_but_actions) = one_of("Action", "NotAction")?;
        let (resources, all_but_resources) = one_of("Resource", "NotResource")?;
        if let Some(action) = actions.iter().find(|a| *a != "*" && !a.contains(':')) {
            return Err(refused(format!(
                "actions must be prefixed by a vendor: '{action}'"
            )));
        }
        if let Some(resource) = resources
            .iter()
            .find(|r| *r != "*" && (!r.starts_with("arn:") || r.split(':').count() < 6))
        {
            return Err(refused(format!(
                "resource '{resource}' must be in ARN format or \"*\""
            )));
        }
        let mut conditions = vec![];
        for (operator, tests) in statement["Condition"].as_object().into_iter().flatten() {
            for (key, values) in tests.as_object().into_iter().flatten() {
                conditions.push(Condition::parse(operator, key, many(values))?);
            }
        }
        Ok(Statement {
            allow,
            actions,
            all_but_actions,
            resources,
            all_but_resources,
            conditions,
        })
    }

    fn meets(&self, need: &Need) -> bool {
        let action = self.actions.iter().any(|a| like(a, &need.action, true));
        let resource = self
            .resources
            .iter()
            .any(|r| like(r, &need.resource, false));
        action != self.all_but_actions
            && resource != self.all_but_resources
            && self.conditions.iter().all(|c| c.holds(need))
    }
}

impl Condition {
    fn parse(operator: &str, key: &str, values: Vec<String>) -> Result<Condition> {
        let (quantifier, rest) = match operator.split_once(':') {
            Some(("ForAllValues", rest)) => (Quantifier::All, rest),
            Some(("ForAnyValue", rest)) => (Quantifier::Any, rest),
            Some((other, _)) => return Err(refused(format!("unknown set operator {other}"))),
            None => (Quantifier::One, operator),
        };
        let (rest, if_exists) = match rest.strip_suffix("IfExists") {
            Some(rest) => (rest, true),
            None => (rest, false),
        };
        let (test, negated) = match rest {
            "StringEquals" | "Bool" => (Test::Equals, false),
            "StringNotEquals" => (Test::Equals, true),
            "StringEqualsIgnoreCase" => (Test::EqualsIgnoreCase, false),
            "StringNotEqualsIgnoreCase" => (Test::EqualsIgnoreCase, true),
            "StringLike" | "ArnLike" | "ArnEquals" => (Test::Like, false),
            "StringNotLike" | "ArnNotLike" | "ArnNotEquals" => (Test::Like, true),
            "Null" => (Test::Null, false),
            other => {
                return Err(Error::new(format!(
                    "the strict layer cannot judge conditions with {other} ({key})"
                )));
            }
        };
        Ok(Condition {
            quantifier,
            test,
            negated,
            if_exists,
            key: key.to_lowercase(),
            values,
        })
    }

    fn holds(&self, need: &Need) -> bool {
        let given = need.context.get(&self.key).filter(|v| !v.is_empty());
        if self.test == Test::Null {
            return self.values.iter().any(|v| v == "true") == given.is_none();
        }
        let Some(given) = given else {
            return match self.quantifier {
                Quantifier::All => true,
                Quantifier::Any => false,
                Quantifier::One => self.if_exists || self.negated,
            };
        };
        let one = |value: &String| {
            let hit = self.values.iter().any(|wanted| match self.test {
                Test::Equals => wanted == value,
                Test::EqualsIgnoreCase => wanted.eq_ignore_ascii_case(value),
                _ => like(wanted, value, false),
            });
            hit != self.negated
        };
        match self.quantifier {
            Quantifier::All => given.iter().all(one),
            Quantifier::Any => given.iter().any(one),
            Quantifier::One if self.negated => given.iter().all(one),
            Quantifier::One => given.iter().any(one),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn policy(statements: Value) -> Policy {
        Policy::parse(&json!({"Version": "2012-10-17", "Statement": statements})).expect("policy")
    }

    fn judged(statements: Value, need: &Need) -> Verdict {
        verdict(&[policy(statements)], need)
    }

    #[test]
    fn wildcards_cross_slashes_and_a_question_mark_is_one_character() {
        for (pattern, text, fits) in [
            (
                "arn:aws:iam::1:role/green-*",
                "arn:aws:iam::1:role/green-node",
                true,
            ),
            (
                "arn:aws:iam::1:role/*node",
                "arn:aws:iam::1:role/path/to/node",
                true,
            ),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*a*b", "xxaxxbxxb", true),
            ("*a*b", "xxaxxbxx", false),
            ("", "", true),
            ("*", "", true),
        ] {
            assert_eq!(like(pattern, text, false), fits, "{pattern} {text}");
        }
        assert!(like("EKS:createcluster", "eks:CreateCluster", true));
    }

    #[test]
    fn a_deny_wins_over_an_allow_and_nothing_said_is_no() {
        let need = Need::new("eks:DeleteCluster", "arn:aws:eks:r:1:cluster/green");
        let allow = json!({"Effect": "Allow", "Action": "eks:*", "Resource": "*"});
        let deny = json!({"Effect": "Deny", "Action": "eks:Delete*", "Resource": "arn:aws:eks:r:1:cluster/green"});
        assert_eq!(judged(json!([allow]), &need), Verdict::Allowed);
        assert_eq!(judged(json!([allow, deny]), &need), Verdict::Explicit);
        let other = Need::new("eks:DeleteCluster", "arn:aws:eks:r:1:cluster/other");
        assert_eq!(judged(json!([allow, deny]), &other), Verdict::Allowed);
        assert_eq!(
            judged(json!([allow]), &Need::new("iam:GetRole", "*")),
            Verdict::Implicit
        );
        let not = json!({"Effect": "Allow", "NotAction": "iam:*", "NotResource": "arn:aws:eks:r:1:cluster/blue"});
        assert_eq!(judged(json!([not]), &need), Verdict::Allowed);
        assert_eq!(
            judged(json!([not]), &Need::new("iam:GetRole", "*")),
            Verdict::Implicit
        );
    }

    #[test]
    fn conditions_ask_for_tags_and_for_whom_a_role_is_passed_to() {
        let passed = |to: &str| {
            Need::new("iam:PassRole", "arn:aws:iam::1:role/x").with("iam:PassedToService", to)
        };
        let only_eks = json!([{"Effect": "Allow", "Action": "iam:PassRole", "Resource": "*",
            "Condition": {"StringEquals": {"iam:PassedToService": ["eks.amazonaws.com"]}}}]);
        assert_eq!(
            judged(only_eks.clone(), &passed("eks.amazonaws.com")),
            Verdict::Allowed
        );
        assert_eq!(
            judged(only_eks.clone(), &passed("ec2.amazonaws.com")),
            Verdict::Implicit
        );
        assert_eq!(
            judged(only_eks, &Need::new("iam:PassRole", "*")),
            Verdict::Implicit,
            "a key that is not there equals nothing"
        );
        let tagged = json!([{"Effect": "Allow", "Action": "ec2:*", "Resource": "*", "Condition": {
            "Null": {"aws:RequestTag/run": "false"},
            "ForAllValues:StringLike": {"aws:TagKeys": ["run", "team*"]},
        }}]);
        let create = |tags: &[&str]| {
            tags.iter().fold(Need::new("ec2:CreateTags", "*"), |n, t| {
                n.with("aws:TagKeys", *t)
                    .with(&format!("aws:RequestTag/{t}"), "x")
            })
        };
        assert_eq!(
            judged(tagged.clone(), &create(&["run", "team-web"])),
            Verdict::Allowed
        );
        assert_eq!(
            judged(tagged.clone(), &create(&["run", "other"])),
            Verdict::Implicit
        );
        assert_eq!(judged(tagged, &create(&["team-web"])), Verdict::Implicit);
        let not_blue = json!([{"Effect": "Allow", "Action": "*", "Resource": "*", "Condition": {
            "StringNotEquals": {"aws:ResourceTag/side": "blue"}}}]);
        let side = |s: &str| Need::new("iam:GetRole", "*").with("aws:ResourceTag/side", s);
        assert_eq!(judged(not_blue.clone(), &side("blue")), Verdict::Implicit);
        assert_eq!(
            judged(not_blue, &Need::new("iam:GetRole", "*")),
            Verdict::Allowed
        );
    }

    #[test]
    fn a_document_that_aws_would_refuse_is_refused() {
        for (wrong, statement) in [
            ("Effect", json!({"Action": "eks:*", "Resource": "*"})),
            (
                "vendor",
                json!({"Effect": "Allow", "Action": "CreateCluster", "Resource": "*"}),
            ),
            (
                "ARN",
                json!({"Effect": "Allow", "Action": "eks:*", "Resource": "green"}),
            ),
            ("Resource", json!({"Effect": "Allow", "Action": "eks:*"})),
            (
                "Principal",
                json!({"Effect": "Allow", "Action": "eks:*", "Resource": "*", "Principal": "*"}),
            ),
            (
                "alpha-numeric",
                json!({"Sid": "a-b", "Effect": "Allow", "Action": "eks:*", "Resource": "*"}),
            ),
            (
                "cannot judge",
                json!({"Effect": "Allow", "Action": "eks:*", "Resource": "*",
                "Condition": {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}}),
            ),
        ] {
            let document = json!({"Version": "2012-10-17", "Statement": [statement]});
            let error = Policy::parse(&document).expect_err(wrong).to_string();
            assert!(error.contains(wrong), "'{wrong}' is not in: {error}");
        }
    }
}
