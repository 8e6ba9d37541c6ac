//! The sleeps between attempts to acquire a resource that another rank holds.

use core::time::Duration;
use rdma_fabric::{Fabric, Time};

/// Sleeps that double, from the duration of the first attempt up to 64 times that of the shortest
/// attempt. So an attempt that was delayed, because ranks share a processor, lengthens only one
/// sleep.
#[derive(Debug)]
pub(crate) struct Pace {
    /// When the attempt began.
    began: Time,
    shortest: Duration,
    last: Option<Duration>,
}

impl Pace {
    pub(crate) fn new(fabric: &Fabric) -> Self {
        Pace { began: fabric.now(), shortest: Duration::MAX, last: None }
    }

    /// Sleeps, after a failed attempt.
    pub(crate) async fn pause(&mut self, fabric: &Fabric) {
        let sleep = self.next(fabric.now() - self.began);
        fabric.sleep(sleep).await;
        self.began = fabric.now();
    }

    /// Returns the sleep after an attempt that took `took`.
    fn next(&mut self, took: Duration) -> Duration {
        let took = took.max(Duration::from_nanos(1));
        self.shortest = self.shortest.min(took);
        let sleep = self.last.map_or(took, |last| last.saturating_mul(2)).min(self.shortest.saturating_mul(64));
        self.last = Some(sleep);
        sleep
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeps(took: impl Iterator<Item = u64>) -> Vec<u64> {
        let mut pace = Pace { began: Time::ZERO, shortest: Duration::MAX, last: None };
        took.map(|took| pace.next(Duration::from_micros(took)).as_micros() as u64).collect()
    }

    #[test]
    fn sleeps_double_up_to_64_attempts() {
        assert_eq!(sleeps([3; 9].into_iter()), [3, 6, 12, 24, 48, 96, 192, 192, 192]);
    }

    #[test]
    fn an_attempt_that_was_held_up_lengthens_one_sleep() {
        assert_eq!(sleeps([10_000, 1, 1, 10_000].into_iter()), [10_000, 64, 64, 64]);
    }
}
