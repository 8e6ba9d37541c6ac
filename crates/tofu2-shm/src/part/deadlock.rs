//! Reports whether this rank waits for other ranks, for deadlock detection.

use super::Part;
use crate::{Stuck, waiting::watchdog};
use rdma_fabric::FabricError;

/// A wait of a rank that only other ranks can end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The number of the wait, unique among the rank's waits.
    pub wait: u64,
    /// The number of unsuccessful polls.
    pub looks: u64,
}

impl Part {
    /// Returns the wait in which the rank is parked, if it has no deadline and only other ranks can
    /// end it. Always `None` for a rank that runs futures with its own executor
    /// ([`Part::run_with`]).
    pub fn waiting(&self) -> Option<Waiting> {
        let found = watchdog::waits_for_others(self.endpoint.job(), self.endpoint.me().index());
        found.map(|(wait, looks)| Waiting { wait, looks })
    }

    /// Returns a description of the rank's wait, for error messages.
    pub fn awaited(&self) -> Stuck {
        watchdog::stuck(self.endpoint.job(), self.endpoint.me().index())
    }

    /// Ends all waits of this node's ranks, since `waiting` ranks of the job wait for each other.
    pub fn deadlocked(&self, waiting: usize) {
        self.endpoint.job().give_up(waiting);
    }

    /// Returns the number of ranks that wait for each other, once a rank of this node has called
    /// [`Part::deadlocked`].
    pub fn deadlock(&self) -> Option<usize> {
        match self.endpoint.job().control.can_continue() {
            Err(FabricError::Deadlock { waiting }) => Some(waiting),
            _ => None,
        }
    }
}
