//! The times that a node spent on computing, and on starting and waiting for reflects.

use onesided::{Fabric, Group, Result};
use std::{fmt, future::Future, time::Duration};

/// The time of one phase.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Phase(Duration);

/// The times of all phases.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Phases {
    pub(crate) compute: Phase,
    pub(crate) start: Phase,
    pub(crate) wait: Phase,
}

impl Phase {
    /// Adds the time that `work` takes.
    pub(crate) async fn time<T>(&mut self, fabric: &Fabric, work: impl Future<Output = T>) -> T {
        let begin = fabric.now();
        let out = work.await;
        self.0 += fabric.now() - begin;
        out
    }
}

impl Phases {
    /// Returns the longest time of any node for each phase. Collective.
    pub(crate) async fn slowest(&self, group: &mut Group) -> Result<Phases> {
        let mut slowest = [Duration::ZERO; 3];
        for (slowest, Phase(mine)) in slowest.iter_mut().zip([self.compute, self.start, self.wait]) {
            *slowest = Duration::from_nanos(group.greatest(mine.as_nanos() as u64).await?);
        }
        let [compute, start, wait] = slowest.map(Phase);
        Ok(Phases { compute, start, wait })
    }

    /// Returns the times of one of `steps` steps.
    pub(crate) fn per_step(self, steps: u32) -> Phases {
        let [compute, start, wait] = [self.compute, self.start, self.wait].map(|Phase(all)| Phase(all / steps.max(1)));
        Phases { compute, start, wait }
    }
}

impl fmt::Display for Phases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Phases { compute, start, wait } = self;
        write!(f, "compute {:?}, start {:?}, wait {:?} (the slowest node's of each)", compute.0, start.0, wait.0)
    }
}
