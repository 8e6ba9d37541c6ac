//! Whether this rank waits for others, for those who look whether all do.

use super::Part;
use crate::{Stuck, shm::waiting::watchdog};
use rdma_fabric::FabricError;

/// A wait of a rank that only other ranks can end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Which wait it is: a number that no other wait of the rank has.
    pub wait: u64,
    /// How often the rank has looked without success.
    pub looks: u64,
}

impl Part {
    /// Returns the wait in which the rank is parked, without a deadline, if only other ranks can end
    /// it. None of a rank that runs futures its own way ([`Part::run_with`]).
    pub fn waiting(&self) -> Option<Waiting> {
        let found = watchdog::waits_for_others(self.endpoint.job(), self.endpoint.me().index());
        found.map(|(wait, looks)| Waiting { wait, looks })
    }

    /// Returns what the rank waits for, for people.
    pub fn awaited(&self) -> Stuck {
        watchdog::stuck(self.endpoint.job(), self.endpoint.me().index())
    }

    /// Ends all waits of this node's ranks, since `waiting` ranks of the job wait for each other.
    pub fn deadlocked(&self, waiting: usize) {
        self.endpoint.job().give_up(waiting);
    }

    /// Returns how many ranks wait for each other, once [`Part::deadlocked`] was called by any rank of
    /// this node.
    pub fn deadlock(&self) -> Option<usize> {
        match self.endpoint.job().control.can_go_on() {
            Err(FabricError::Deadlock { waiting }) => Some(waiting),
            _ => None,
        }
    }
}
