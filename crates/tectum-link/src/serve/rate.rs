//! A limit of messages per second.

/// Allows a number of messages per second on average, and as many at once.
#[derive(Debug, Clone)]
pub(crate) struct Rate {
    per_s: f64,
    /// Messages that are allowed now.
    allowed: f64,
    last_ns: u64,
}

impl Rate {
    pub fn new(per_s: u32) -> Self {
        Self {
            per_s: f64::from(per_s),
            allowed: f64::from(per_s),
            last_ns: 0,
        }
    }

    /// Counts a message; returns whether it is allowed.
    pub fn count(&mut self, now_ns: u64) -> bool {
        let elapsed_s = now_ns.saturating_sub(self.last_ns) as f64 / 1e9;
        self.last_ns = now_ns;
        self.allowed = (self.allowed + elapsed_s * self.per_s).min(self.per_s);
        let is_allowed = self.allowed >= 1.0;
        if is_allowed {
            self.allowed -= 1.0;
        }
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::Rate;

    #[test]
    fn as_many_messages_as_a_second_allows_and_then_one_at_a_time() {
        let mut rate = Rate::new(10);
        let allowed = (0..20).filter(|_| rate.count(0)).count();
        assert_eq!(allowed, 10);
        assert!(!rate.count(50_000_000));
        assert!(rate.count(100_000_000) && !rate.count(100_000_001));
        let allowed = (0..20).filter(|_| rate.count(60_000_000_000)).count();
        assert_eq!(allowed, 10);
    }
}
