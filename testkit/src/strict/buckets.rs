//! Throttling as AWS does it: a token bucket for an operation, a family of them or a whole service.

use std::time::Instant;

use super::permit::policy::like;

#[derive(Debug)]
struct Bucket {
    /// `iam`, `eks:CreateCluster`, `ec2:Describe*`
    what: String,
    per_second: f64,
    tokens: f64,
    filled: Instant,
}

impl Bucket {
    fn meets(&self, service: &str, action: &str) -> bool {
        match self.what.split_once(':') {
            Some((of, pattern)) => of == service && like(pattern, action, false),
            None => self.what == service,
        }
    }

    fn take(&mut self, now: Instant) -> bool {
        let passed = now.duration_since(self.filled).as_secs_f64();
        self.tokens = (self.tokens + passed * self.per_second).min(self.per_second);
        self.filled = now;
        if self.tokens < 1.0 {
            return false;
        }
        self.tokens -= 1.0;
        true
    }
}

#[derive(Debug, Default)]
pub(crate) struct Buckets(Vec<Bucket>);

impl Buckets {
    pub fn set(&mut self, what: &str, per_second: u32) {
        self.0.retain(|b| b.what != what);
        if per_second > 0 {
            self.0.push(Bucket {
                what: what.to_owned(),
                per_second: f64::from(per_second),
                tokens: f64::from(per_second),
                filled: Instant::now(),
            });
        }
    }

    /// Whether the call is throttled. Every bucket that it meets pays for it.
    pub fn refuse(&mut self, service: &str, action: &str, now: Instant) -> bool {
        let mut refused = false;
        for bucket in self.0.iter_mut().filter(|b| b.meets(service, action)) {
            refused |= !bucket.take(now);
        }
        refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_bucket_of_two_lets_two_pass_at_once_and_two_more_a_second() {
        let mut buckets = Buckets::default();
        buckets.set("ec2:Describe*", 2);
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let mut passes = |action: &str, ms: u64| !buckets.refuse("ec2", action, at(ms));
        assert!(passes("DescribeVpcs", 1) && passes("DescribeSubnets", 1));
        assert!(!passes("DescribeVpcs", 1), "one bucket for the family");
        assert!(passes("CreateTags", 1), "another operation");
        assert!(passes("DescribeVpcs", 510), "one token after half a second");
        assert!(!passes("DescribeVpcs", 510));
        // A pause fills the bucket up to its size only.
        assert!(passes("DescribeVpcs", 9_000) && passes("DescribeVpcs", 9_000));
        assert!(!passes("DescribeVpcs", 9_000));
    }

    #[test]
    fn zero_takes_a_bucket_away() {
        let mut buckets = Buckets::default();
        buckets.set("iam", 1);
        let now = Instant::now();
        assert!(!buckets.refuse("iam", "GetRole", now));
        assert!(buckets.refuse("iam", "GetRole", now));
        buckets.set("iam", 0);
        assert!(!buckets.refuse("iam", "GetRole", now));
    }
}
