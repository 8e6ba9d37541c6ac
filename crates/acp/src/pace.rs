//! How long a rank sleeps before it tries again for something that another one has.

use core::time::Duration;
use rdma_fabric::{Fabric, Time};

/// Sleeps that double, from the time that the first attempt took up to 64 times as long.
#[derive(Debug)]
pub(crate) struct Pace {
    began: Time,
    sleep: Option<Duration>,
    longest: Duration,
}

impl Pace {
    pub(crate) fn new(fabric: &Fabric) -> Self {
        Pace { began: fabric.now(), sleep: None, longest: Duration::ZERO }
    }

    /// Sleeps, after an attempt without success.
    pub(crate) async fn pause(&mut self, fabric: &Fabric) {
        let sleep = match self.sleep {
            Some(before) => (before * 2).min(self.longest),
            None => {
                let first = (fabric.now() - self.began).max(Duration::from_nanos(1));
                self.longest = first * 64;
                first
            }
        };
        self.sleep = Some(sleep);
        fabric.sleep(sleep).await;
    }
}
