//! When no event is pending and ranks wait for their queues: those waits end, and the ranks go on.

use super::super::{core::Core, watch::What};
use rdma_fabric::FabricError;

impl Core {
    /// Ends all waits for control queues with [`FabricError::Deadlock`], which says that `waiting` ranks wait. False if there
    /// is none.
    pub(in super::super) fn end_queue_waits(&mut self, waiting: usize) -> bool {
        let waiting = u32::try_from(waiting).unwrap_or(u32::MAX);
        let mut any = false;
        for rank in 0..self.ranks.len() as u32 {
            let state = &mut self.ranks[rank as usize];
            if state.watching == 0 {
                continue;
            }
            let mut hit = false;
            for watch in state.existing().into_iter().flat_map(|extra| &mut extra.watches) {
                if matches!(watch.what, What::Queue(..)) {
                    watch.deadlock = Some(waiting);
                    hit = true;
                }
            }
            if hit {
                self.wake(rank);
                any = true;
            }
        }
        any
    }

    /// A wait for a queue has looked and will wait on, unless it was ended so: the error then.
    pub(in super::super) fn look_again(&mut self, rank: u32, id: u32) -> Option<FabricError> {
        let watches = &mut self.ranks[rank as usize].existing()?.watches;
        let watch = watches.iter_mut().find(|watch| watch.id == id)?;
        watch.told = false;
        watch.deadlock.map(|waiting| FabricError::Deadlock { waiting: waiting as usize })
    }
}
