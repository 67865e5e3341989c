//! One role for each service account: which it has on blue, by whatever way, and which it gets on green.

use super::node_role::{self, kops_name, last};
use super::policy::{self, Statement};
use super::workloads::{self, Workload};
use super::{Iam, Problem, text, trust};
use crate::plan::kops::role_name;
use crate::plan::model::{Grant, Severity, TargetRole};
use crate::rewrite::Context;
use crate::snapshot::model::Snapshot;
use crate::snapshot::roll::Found;
use crate::spec::model::{Identity, RoleWish, Spec};
use crate::world::cloud::Role;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Name of the inline policy that holds statements of blue's node role.
const FROM_NODE: &str = "from-node-role";
/// Name of the inline policy that holds a kops service account's own statements.
const FROM_KOPS: &str = "from-kops";

/// How an account of blue comes to a role that exists.
struct Way {
    arn: String,
    how: &'static str,
}

/// Fills `iam.roles` and the role ARNs that the rewrite writes on service accounts.
pub(super) fn roles(
    spec: &Spec,
    snapshot: &Found,
    cx: &mut Context,
    workloads: &[Workload],
    iam: &mut Iam,
) {
    let maker = Maker {
        spec,
        snapshot,
        region: cx.region.clone(),
        account: cx.account.clone(),
    };
    let mut ways: BTreeMap<String, Way> = BTreeMap::new();
    for (account, arn) in &cx.sa_roles {
        ways.insert(
            account.clone(),
            Way {
                arn: arn.clone(),
                how: "kube2iam or kiam on its pods",
            },
        );
    }
    let mut also =
        |account: &str, arn: &str, how: &'static str, cx: &Context, iam: &mut Iam| {
            if spec.green.roles.contains_key(account)
                || cx.sa_conflicts.contains(account)
                || cx
                    .replaced
                    .contains_key(&format!("serviceaccount/{account}"))
            {
                return;
            }
            match ways.get(account) {
            Some(w) if w.arn != arn => iam.problems.push(Problem::new(
                "IAM-02",
                Severity::Blocker,
                format!("serviceaccount/{account}"),
                format!(
                    "has role {} by {} and role {arn} by {how}: an account has one role on green",
                    w.arn, w.how
                ),
                "Split the account on blue, or name one role under green.roles.",
            )),
            Some(_) => {}
            None => {
                ways.insert(account.into(), Way { arn: arn.into(), how });
            }
        }
        };
    for (account, arn) in workloads::annotated(snapshot) {
        also(&account, &arn, "the annotation of the account", cx, iam);
    }
    for w in workloads.iter().filter(|w| !w.platform) {
        if let Some(arn) = w.token_role {
            also(&w.account, arn, "a token mounted by hand", cx, iam);
        }
    }
    let declared = declared(snapshot, &spec.blue.cluster, iam);
    for (account, wish) in &spec.green.roles {
        // A mistyped account would hand a role to whoever makes an account of that name.
        let (ns, name) = account.split_once('/').unwrap_or(("", account));
        if !snapshot.blue.objects.is_empty()
            && snapshot
                .blue
                .find("ServiceAccount", Some(ns), name)
                .is_none()
            && snapshot.blue.of_kind("ServiceAccount").next().is_some()
        {
            iam.problems.push(Problem::new(
                "IAM-01",
                Severity::Blocker,
                format!("green.roles.{account}"),
                "blue has no such service account: whoever makes one of this name on green would get the role".to_string(),
                "Correct NAMESPACE/ACCOUNT, or remove the entry from migration.yaml.",
            ));
        }
        if let Some(role) = &wish.role {
            if let Some(arn) = cx.role_arn(role, snapshot) {
                ways.insert(
                    account.clone(),
                    Way {
                        arn,
                        how: "green.roles",
                    },
                );
            } else {
                iam.problems.push(Problem::new(
                    "IAM-01",
                    Severity::Blocker,
                    format!("serviceaccount/{account}"),
                    format!("green.roles names role {role}, whose ARN cannot be told: the account is not known"),
                    "Give aws.account, or the role's ARN.",
                ));
            }
        } else {
            ways.remove(account);
            if let Some(role) = maker.of_node_rights(account, wish, iam) {
                maker.give(account, &role, cx);
                iam.roles.push(role);
            }
        }
    }
    // Roles that kops makes for service accounts end with blue (`kops delete cluster`): green gets its own with the same content.
    for d in &declared {
        if ways.contains_key(&d.account) || spec.green.roles.contains_key(&d.account) {
            continue;
        }
        let role = maker.of_kops_role(d, iam);
        if let Some((namespace, name)) = d.account.split_once('/')
            && namespace.contains('*')
        {
            for o in snapshot.blue.of_kind("ServiceAccount") {
                let ns = text(o, "/metadata/namespace").unwrap_or("");
                let key = format!("{ns}/{name}");
                if text(o, "/metadata/name") == Some(name)
                    && like(namespace, ns)
                    && !ways.contains_key(&key)
                    && !declared.iter().any(|x| x.account == key)
                {
                    maker.give(&key, &role, cx);
                }
            }
            iam.problems.push(Problem::new(
                "IAM-03",
                Severity::Warning,
                format!("kops/spec.iam.serviceAccountExternalPermissions[{}]", d.account),
                format!(
                    "blue's webhook gives this role to every account {name} of namespaces like {namespace}, whenever it is made; on green only accounts that are annotated have it, and those that are made later are not"
                ),
                "Let whatever makes such namespaces annotate the account with eks.amazonaws.com/role-arn.",
            ));
        } else {
            maker.give(&d.account, &role, cx);
        }
        iam.roles.push(role);
    }
    existing(&maker, ways, cx, iam);
    by_pod_identity(&maker, cx, iam);
    iam.roles.sort_by(|a, b| {
        (a.existing, &a.name, &a.service_account).cmp(&(b.existing, &b.name, &b.service_account))
    });
}

/// Roles that exist: one more trust statement where it fits and the role stays, else a role of green's own with the same policies.
fn existing(maker: &Maker, ways: BTreeMap<String, Way>, cx: &mut Context, iam: &mut Iam) {
    let mut by_role: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (account, way) in ways {
        by_role.entry(way.arn).or_default().push(account);
    }
    for (arn, accounts) in by_role {
        let name = last(&arn).to_string();
        let live = maker
            .snapshot
            .aws
            .iter()
            .flat_map(|a| &a.roles)
            .find(|r| r.name == name && (r.arn == arn || !maker.foreign(&arn)));
        let refs: Vec<&str> = accounts.iter().map(String::as_str).collect();
        let why = live.and_then(|r| maker.must_copy(r, &refs));
        let same: Vec<&String> = accounts.iter().collect();
        match (live, why) {
            (Some(r), Some(why)) => {
                for account in same {
                    let role = maker.copy(r, account);
                    maker.give(account, &role, cx);
                    iam.successors
                        .entry(r.arn.clone())
                        .or_default()
                        .push(role.name.clone());
                    iam.problems.push(Problem::new(
                        "IAM-03",
                        Severity::Warning,
                        format!("role/{}", r.name),
                        format!("{why}: {account} gets role {} with the same policies", role.name),
                        "Let policies of buckets, keys and queues that name the old role name the new one too (IAM-06).",
                    ));
                    iam.roles.push(role);
                }
            }
            _ => {
                if maker.foreign(&arn) {
                    iam.problems.push(Problem::new(
                        "IAM-03",
                        Severity::Blocker,
                        format!("role/{name}"),
                        format!("{} uses {arn} of another account: crossfade cannot add green's issuer to its trust policy there", accounts.join(", ")),
                        "Let that account register green's issuer and trust it, then waive this finding; or let the application assume the role from one of this account.",
                    ));
                }
                for account in same {
                    cx.sa_roles.insert(account.clone(), arn.clone());
                    iam.roles.push(TargetRole {
                        name: name.clone(),
                        service_account: Some(account.clone()),
                        existing: true,
                        ..TargetRole::default()
                    });
                }
            }
        }
    }
}

/// Who comes to its role by Pod Identity, as migration.yaml says.
fn by_pod_identity(maker: &Maker, cx: &mut Context, iam: &mut Iam) {
    let wish = &maker.spec.green.identity;
    for role in &mut iam.roles {
        let Some(account) = role.service_account.as_deref() else {
            continue;
        };
        if wish.of(account, false) != Identity::PodIdentity {
            continue;
        }
        let arn = cx.sa_roles.get(account);
        if role.existing && arn.is_some_and(|a| maker.foreign(a)) {
            iam.problems.push(Problem::new(
                "IAM-03",
                Severity::Blocker,
                format!("serviceaccount/{account}"),
                format!("green.identity gives it Pod Identity, and {} is a role of another account: an association takes roles of its own account", role.name),
                "Leave this account to IRSA (green.identity.accounts), or let it assume that role from one of this account.",
            ));
            continue;
        }
        role.pod_identity = true;
        cx.pod_identity.insert(account.to_string());
    }
    for account in wish.accounts.keys() {
        let known = iam
            .roles
            .iter()
            .any(|r| r.service_account.as_deref() == Some(account));
        let own = PLATFORM.contains(&account.as_str())
            || account.ends_with(&format!("/{}", crate::plan::generated::EXTERNAL_DNS));
        if !known && !own {
            iam.problems.push(Problem::new(
                "IAM-01",
                Severity::Warning,
                format!("green.identity.accounts.{account}"),
                "it has no role on green, so there is nothing that it could come to by either way",
                "Correct NAMESPACE/ACCOUNT, give it a role under green.roles, or remove the line.",
            ));
        }
    }
}

/// Accounts of green's own platform: their roles are decided elsewhere (`resources`).
const PLATFORM: &[&str] = &[
    "kube-system/aws-load-balancer-controller",
    "kube-system/aws-node",
    "kube-system/cluster-autoscaler",
    "kube-system/ebs-csi-controller-sa",
    "kube-system/efs-csi-controller-sa",
];

/// A service account with rights in the kops spec.
struct Declared {
    account: String,
    managed: Vec<String>,
    inline: Vec<Value>,
    /// Role that kops made for it.
    role: String,
}

/// `iam.serviceAccountExternalPermissions`.
fn declared(snapshot: &Snapshot, cluster: &str, iam: &mut Iam) -> Vec<Declared> {
    let list = snapshot
        .kops
        .cluster
        .as_ref()
        .and_then(|c| c.pointer("/spec/iam/serviceAccountExternalPermissions"))
        .and_then(Value::as_array);
    let mut seen = BTreeSet::new();
    let mut out = vec![];
    for p in list.into_iter().flatten() {
        let (Some(name), Some(namespace)) = (p["name"].as_str(), p["namespace"].as_str()) else {
            continue;
        };
        let account = format!("{namespace}/{name}");
        let object = format!("kops/spec.iam.serviceAccountExternalPermissions[{account}]");
        if !seen.insert(account.clone()) {
            iam.problems.push(Problem::new(
                "IAM-02",
                Severity::Blocker,
                object,
                "the account is declared twice: an account has one role on green",
                "Put both entries together on blue.",
            ));
            continue;
        }
        let inline = match p.pointer("/aws/inlinePolicy").and_then(Value::as_str) {
            None => vec![],
            Some(json) => node_role::statements_of(json).unwrap_or_else(|why| {
                iam.problems.push(Problem::new(
                    "IAM-04",
                    Severity::Blocker,
                    object.clone(),
                    format!("inlinePolicy is no JSON list of IAM statements ({why}): what the account may do cannot be told"),
                    "Correct the text, or discover with AWS: the live role then counts.",
                ));
                vec![]
            }),
        };
        let managed = p
            .pointer("/aws/policyARNs")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|a| a.as_str().map(String::from))
            .collect();
        let place = if namespace.contains('*') {
            "wildcard"
        } else {
            namespace
        };
        out.push(Declared {
            role: kops_name(&format!("{name}.{place}.sa.{cluster}")),
            account,
            managed,
            inline,
        });
    }
    out
}

/// kops's pattern of namespaces: `*` stands for anything.
fn like(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let tail: Vec<&str> = parts.collect();
    let Some((end, middle)) = tail.split_last() else {
        return rest.is_empty();
    };
    for m in middle {
        match rest.split_once(m) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(end)
}

struct Maker<'a> {
    spec: &'a Spec,
    snapshot: &'a Snapshot,
    region: String,
    account: Option<String>,
}

impl Maker<'_> {
    /// `<green>-<namespace>.<account>`: a namespace has no dot, so two accounts never meet in one name.
    fn name(&self, account: &str) -> String {
        let (namespace, name) = account.split_once('/').unwrap_or(("", account));
        // IAM knows no `*` in names.
        let namespace = if namespace.contains('*') {
            let hash = &crate::object::sha256_hex(namespace)[..6];
            format!("wildcard-{hash}")
        } else {
            namespace.to_string()
        };
        role_name(&self.spec.green.name, &format!("{namespace}.{name}"))
    }

    fn foreign(&self, arn: &str) -> bool {
        self.account.as_deref().is_some_and(|a| {
            arn.split(':')
                .nth(4)
                .is_some_and(|x| !x.is_empty() && x != a)
        })
    }

    /// Tells the rewrite which role an account has on green.
    fn give(&self, account: &str, role: &TargetRole, cx: &mut Context) {
        if let Some(id) = &self.account {
            let path = role.path.as_deref().unwrap_or("/");
            cx.sa_roles.insert(
                account.into(),
                format!(
                    "arn:{}:iam::{id}:role{path}{}",
                    crate::rewrite::partition(&self.region),
                    role.name
                ),
            );
        }
    }

    /// Why an existing role cannot simply trust green too.
    fn must_copy(&self, role: &Role, accounts: &[&str]) -> Option<String> {
        let cluster = &self.spec.blue.cluster;
        let by_kops = role.tags.get("KubernetesCluster") == Some(cluster)
            || role
                .tags
                .get(&format!("kubernetes.io/cluster/{cluster}"))
                .is_some_and(|v| v == "owned")
            || role.name.ends_with(&format!(".sa.{cluster}"));
        if by_kops {
            return Some("`kops delete cluster` deletes this role with blue".into());
        }
        let quota = trust::quota(self.snapshot.aws.as_ref());
        let added: Vec<Value> = trust::added(self.spec, &self.region, &role.name, accounts)
            .into_iter()
            .map(|(_, statement)| statement)
            .collect();
        let size = trust::size_with(&role.trust, &added, &self.region);
        (size > quota).then(|| {
            format!("its trust policy would have {size} characters with both issuers, the quota is {quota}")
        })
    }

    fn made(&self, account: &str, boundary: Option<String>, iam: Option<&Iam>) -> TargetRole {
        TargetRole {
            name: self.name(account),
            service_account: Some(account.into()),
            boundary,
            path: iam.and_then(|i| i.house.path.clone()),
            ..TargetRole::default()
        }
    }

    /// A role with the policies of another, to the letter.
    fn copy(&self, from: &Role, account: &str) -> TargetRole {
        let mut role = self.made(account, from.boundary.clone(), None);
        role.path = from
            .arn
            .split_once(":role/")
            .and_then(|(_, tail)| tail.rsplit_once('/'))
            .map(|(path, _)| format!("/{path}/"));
        role.from = Some(from.name.clone());
        for arn in &from.managed_policies {
            role.grants.push(Grant {
                policy: arn.clone(),
                statement: "*".into(),
                from: format!("role/{} {arn}", from.name),
            });
        }
        role.policies = from.managed_policies.clone();
        for (policy, document) in &from.inline_policies {
            for (i, s) in policy::statements(policy, document).into_iter().enumerate() {
                role.grants.push(Grant {
                    policy: policy.clone(),
                    statement: i.to_string(),
                    from: format!("role/{} {}", from.name, s.name),
                });
            }
            role.policies.push(policy.clone());
            role.inline_policies
                .insert(policy.clone(), document.clone());
        }
        role
    }

    /// For an account of the kops spec: as the live role is, else as the spec says.
    fn of_kops_role(&self, d: &Declared, iam: &mut Iam) -> TargetRole {
        let live = self
            .snapshot
            .aws
            .iter()
            .flat_map(|a| &a.roles)
            .find(|r| r.name == d.role);
        if let Some(r) = live {
            let role = self.copy(r, &d.account);
            iam.successors
                .entry(r.arn.clone())
                .or_default()
                .push(role.name.clone());
            return role;
        }
        let mut role = self.made(&d.account, iam.house.boundary.clone(), Some(iam));
        role.from = Some(d.role.clone());
        let source = format!(
            "kops/spec.iam.serviceAccountExternalPermissions[{}]",
            d.account
        );
        for arn in &d.managed {
            role.policies.push(arn.clone());
            role.grants.push(Grant {
                policy: arn.clone(),
                statement: "*".into(),
                from: format!("{source} {arn}"),
            });
        }
        if !d.inline.is_empty() {
            for (i, s) in policy::named("inlinePolicy", &d.inline)
                .into_iter()
                .enumerate()
            {
                role.grants.push(Grant {
                    policy: FROM_KOPS.into(),
                    statement: i.to_string(),
                    from: format!("{source} {}", s.name),
                });
            }
            role.policies.push(FROM_KOPS.into());
            role.inline_policies
                .insert(FROM_KOPS.into(), policy::document(d.inline.clone()));
        }
        role
    }

    /// A part of what blue's workers may do, as declared under `green.roles`.
    fn of_node_rights(&self, account: &str, wish: &RoleWish, iam: &mut Iam) -> Option<TargetRole> {
        let workers: Vec<_> = iam
            .node_roles
            .iter()
            .filter(|r| !r.masters)
            .cloned()
            .collect();
        let object = format!("green.roles.{account}");
        let known: Vec<String> = workers
            .iter()
            .flat_map(|r| r.grants.iter().map(|s| s.name.clone()))
            .collect();
        let mut taken: Vec<(&str, &Statement)> = vec![];
        let mut sources: BTreeSet<&str> = BTreeSet::new();
        for wanted in &wish.from_node_role {
            let hit = workers.iter().find_map(|r| {
                let s = r.grants.iter().find(|s| s.name == *wanted)?;
                Some((r.name.as_str(), s))
            });
            match hit {
                Some((role, s)) if policy::allows(&s.body) => {
                    sources.insert(role);
                    taken.push((role, s));
                }
                Some(_) => {}
                None => iam.problems.push(Problem::new(
                    "IAM-04",
                    Severity::Blocker,
                    object.clone(),
                    format!(
                        "blue's node role has no statement {wanted} beyond what kops put there{}",
                        if known.is_empty() {
                            String::new()
                        } else {
                            format!("; it has {}", known.join(", "))
                        }
                    ),
                    "Name one of them; what blue's nodes cannot do, green's pods do not get.",
                )),
            }
        }
        let mut attached: Vec<(String, String)> = vec![];
        for arn in &wish.policies {
            match workers.iter().find(|r| r.attached.contains_key(arn)) {
                Some(r) => {
                    sources.insert(&r.name);
                    attached.push((r.name.clone(), arn.clone()));
                }
                None => iam.problems.push(Problem::new(
                    "IAM-04",
                    Severity::Blocker,
                    object.clone(),
                    format!("policy {arn} is not attached to blue's node role: green's pods would get more than blue's have"),
                    "Attach it on blue first, or leave it out.",
                )),
            }
        }
        if taken.is_empty() && attached.is_empty() {
            return None;
        }
        // What denies on a role that a statement was taken from denies for its part too.
        let denied: Vec<(&str, &Statement)> = workers
            .iter()
            .filter(|r| sources.contains(r.name.as_str()))
            .flat_map(|r| {
                r.grants
                    .iter()
                    .filter(|s| policy::denies(&s.body))
                    .map(|s| (r.name.as_str(), s))
            })
            .collect();
        let boundary = workers
            .iter()
            .filter(|r| sources.contains(r.name.as_str()))
            .find_map(|r| r.boundary.clone())
            .or_else(|| iam.house.boundary.clone());
        for r in workers.iter().filter(|r| sources.contains(r.name.as_str())) {
            for (arn, _) in r
                .attached
                .iter()
                .filter(|(arn, read)| !**read && !arn.contains(":iam::aws:"))
            {
                if !attached.iter().any(|(_, a)| a == arn) {
                    iam.problems.push(Problem::new(
                        "IAM-04",
                        Severity::Warning,
                        object.clone(),
                        format!("the document of {arn}, attached to role/{}, was not read: if it denies something, the new role would not", r.name),
                        "Discover with AWS (iam:GetAccountAuthorizationDetails), or name the policy too.",
                    ));
                }
            }
        }
        let mut role = self.made(account, boundary, Some(iam));
        role.from = sources.iter().next().map(|s| s.to_string());
        for (from, arn) in attached {
            role.grants.push(Grant {
                policy: arn.clone(),
                statement: "*".into(),
                from: format!("role/{from} {arn}"),
            });
            role.policies.push(arn);
        }
        taken.extend(denied);
        let mut bodies = vec![];
        for (i, (from, s)) in taken.iter().enumerate() {
            self.told(&object, s, iam);
            role.grants.push(Grant {
                policy: FROM_NODE.into(),
                statement: i.to_string(),
                from: format!("role/{from} {}", s.name),
            });
            bodies.push(s.body.clone());
        }
        if !bodies.is_empty() {
            role.policies.push(FROM_NODE.into());
            role.inline_policies
                .insert(FROM_NODE.into(), policy::document(bodies));
        }
        Some(role)
    }

    /// Conditions about the instance are never true, or never false, for a session of a service account.
    fn told(&self, object: &str, s: &Statement, iam: &mut Iam) {
        const INSTANCE: &[&str] = &[
            "aws:ec2instancesourceprivateipv4",
            "aws:ec2instancesourcevpc",
            "aws:principalarn",
            "aws:sourceip",
            "aws:userid",
            "ec2:instanceprofile",
            "ec2:roledelivery",
            "ec2:sourceinstancearn",
        ];
        let keys: Vec<String> = policy::condition_keys(&s.body)
            .into_iter()
            .filter(|k| INSTANCE.contains(&k.as_str()) || k.starts_with("aws:principaltag/"))
            .collect();
        if !keys.is_empty() {
            iam.problems.push(Problem::new(
                "IAM-04",
                if policy::denies(&s.body) {
                    Severity::Blocker
                } else {
                    Severity::Warning
                },
                object,
                format!(
                    "{} has a condition on {}, which is another thing for a service account than for an instance",
                    s.name,
                    keys.join(", ")
                ),
                "Read the condition, and write the statement for the new role by hand if it must differ (green.roles.NAMESPACE/ACCOUNT.role).",
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::like;

    #[test]
    fn a_star_stands_for_any_part_of_a_namespace() {
        assert!(like("test-*", "test-1") && like("*", "x") && like("a*c*e", "abcde"));
        assert!(!like("test-*", "prod") && !like("test", "test-1") && !like("a*c", "abcd"));
        assert!(like("test", "test"));
    }
}
