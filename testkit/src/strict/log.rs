//! The call log (who did what, when, with which result) and injected faults.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

/// One call that reached the layer, in order of arrival of its answer.
#[derive(Debug, Clone, Serialize)]
pub struct Call {
    pub at: jiff::Timestamp,
    /// Access key id of the caller; "-" when the request was not signed.
    pub who: String,
    /// Signing name (`route53`, `eks`, `iam`, `ec2`, `sts`, `s3`).
    pub service: String,
    pub action: String,
    /// Query protocol: the parameters as sent. Route 53: `{zone, changes: [...]}` or path parts. EKS: path parts and body. S3: `{bucket, key}`.
    pub params: Value,
    /// The status the server answered with (also when the reply was lost on the way).
    pub status: u16,
    /// A changing operation that succeeded on the server.
    pub changed: bool,
}

/// Whether an operation's name says that it only reads.
pub fn reads_only(action: &str) -> bool {
    const READS: &[&str] = &[
        // Method and path of REST services that the layer does not know.
        "GET ",
        "HEAD ",
        "Get",
        "List",
        "Describe",
        "Head",
        "Simulate",
        "AssumeRole",
        "TestDNSAnswer",
        "Decode",
        "Lookup",
        "Search",
    ];
    READS.iter().any(|p| action.starts_with(p))
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// Refused with the service's own throttling error; nothing is done.
    Throttle,
    /// HTTP 500; nothing is done.
    Error500,
    /// The call is done, then the connection is cut before the answer.
    LostReply,
    /// The call is done, and no answer ever comes: the moment to end the caller, as a kill would ([`super::Strict::met`] tells it).
    NoAnswer,
    /// The call waits first, then is done.
    Delay(Duration),
}

/// An injected fault: calls `nth .. nth + times` of that service and action meet it.
#[derive(Debug, Clone)]
pub struct Fault {
    /// Signing name, or `*` for all.
    pub service: String,
    /// Operation name, or `*` for all of the service.
    pub action: String,
    /// Counted from 1 among the matching calls after injection.
    pub nth: usize,
    pub times: usize,
    pub kind: FaultKind,
    /// Access key id: only calls of this caller count. So many runs can share a layer, each with its own faults.
    pub who: Option<String>,
}

impl Fault {
    /// The next matching call meets the fault, once.
    pub fn new(service: &str, action: &str, kind: FaultKind) -> Fault {
        Fault {
            service: service.to_owned(),
            action: action.to_owned(),
            nth: 1,
            times: 1,
            kind,
            who: None,
        }
    }

    /// Only calls of this access key id count.
    pub fn of(mut self, who: &str) -> Fault {
        self.who = Some(who.to_owned());
        self
    }

    /// Lets the first `nth - 1` matching calls pass.
    pub fn nth(mut self, nth: usize) -> Fault {
        self.nth = nth;
        self
    }

    pub fn times(mut self, times: usize) -> Fault {
        self.times = times;
        self
    }
}

/// A fault that struck.
#[derive(Debug, Clone)]
pub struct Met {
    pub who: String,
    pub service: String,
    pub action: String,
    pub kind: FaultKind,
}

#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<(Fault, usize)>);

impl Faults {
    pub fn inject(&mut self, fault: Fault) {
        self.0.push((fault, 0));
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Forgets those of one caller.
    pub fn clear_of(&mut self, who: &str) {
        self.0.retain(|(f, _)| f.who.as_deref() != Some(who));
    }

    /// The fault this call meets, if any; every matching fault counts the call.
    pub fn meet(&mut self, who: &str, service: &str, action: &str) -> Option<FaultKind> {
        let mut met = None;
        for (fault, seen) in &mut self.0 {
            if (fault.service == "*" || fault.service == service)
                && (fault.action == "*" || fault.action == action)
                && fault.who.as_deref().is_none_or(|w| w == who)
            {
                *seen += 1;
                if *seen >= fault.nth && *seen < fault.nth + fault.times && met.is_none() {
                    met = Some(fault.kind);
                }
            }
        }
        met
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_second_and_third_matching_calls_meet_the_fault() {
        let mut faults = Faults::default();
        faults.inject(
            Fault::new("iam", "CreateRole", FaultKind::Throttle)
                .nth(2)
                .times(2),
        );
        let met: Vec<bool> = (0..5)
            .map(|_| faults.meet("KEY", "iam", "CreateRole").is_some())
            .collect();
        assert_eq!(met, [false, true, true, false, false]);
        assert!(faults.meet("KEY", "iam", "GetRole").is_none());
    }

    #[test]
    fn a_fault_for_one_caller_leaves_the_others_alone() {
        let mut faults = Faults::default();
        faults.inject(Fault::new("*", "*", FaultKind::Error500).of("A").nth(2));
        let met: Vec<bool> = ["B", "A", "B", "A"]
            .iter()
            .map(|who| faults.meet(who, "eks", "DescribeCluster").is_some())
            .collect();
        assert_eq!(met, [false, false, false, true]);
    }
}
