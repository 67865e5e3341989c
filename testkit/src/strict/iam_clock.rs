//! When IAM was changed: it tells the other services seconds later (eks.md 1.3, 3).

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::http::Req;

#[derive(Debug, Default)]
pub(crate) struct Clock {
    /// Role -> created, or its trust policy changed.
    roles: HashMap<String, Instant>,
    /// Role -> a policy attached or written.
    policies: HashMap<String, Instant>,
    profiles: HashMap<String, Instant>,
}

fn fresh(times: &HashMap<String, Instant>, name: &str, delay: Duration) -> bool {
    times.get(name).is_some_and(|at| at.elapsed() < delay)
}

impl Clock {
    /// Notes what a call that IAM accepted has changed.
    pub fn note(&mut self, req: &Req) {
        let now = Instant::now();
        let name = |key: &str| req.form(key).unwrap_or("").to_owned();
        match req.action.as_str() {
            "CreateRole" | "UpdateAssumeRolePolicy" => {
                self.roles.insert(name("RoleName"), now);
            }
            "AttachRolePolicy" | "PutRolePolicy" => {
                self.policies.insert(name("RoleName"), now);
            }
            "CreateInstanceProfile" | "AddRoleToInstanceProfile" => {
                self.profiles.insert(name("InstanceProfileName"), now);
            }
            "DeleteRole" => {
                self.roles.remove(&name("RoleName"));
                self.policies.remove(&name("RoleName"));
            }
            _ => {}
        }
    }

    /// The others do not know the role (as it is now) yet.
    pub fn role_is_fresh(&self, role: &str, delay: Duration) -> bool {
        fresh(&self.roles, role, delay)
    }

    /// The others do not know the role's policies yet.
    pub fn policies_are_fresh(&self, role: &str, delay: Duration) -> bool {
        fresh(&self.policies, role, delay)
    }

    pub fn profile_is_fresh(&self, profile: &str, delay: Duration) -> bool {
        fresh(&self.profiles, profile, delay)
    }
}
