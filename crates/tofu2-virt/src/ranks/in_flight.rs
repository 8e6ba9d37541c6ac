//! The operations of ranks in flight, and the ends of ranks.

use super::{Ranks, Status};
use std::mem;

impl Ranks {
    /// Returns whether the rank's TOQ of `depth` slots is full. Commands of control queues are not
    /// counted.
    #[inline]
    pub(crate) fn is_full(&self, rank: u32, depth: u32) -> bool {
        let state = &self.states[rank as usize];
        let commands = || state.extra.as_deref().map_or(0, |extra| extra.commands);
        state.outstanding >= depth && state.outstanding - commands() >= depth
    }

    /// Counts one more operation of the rank, or of a helper, as in flight.
    #[inline]
    pub(crate) fn begin(&mut self, rank: u32) {
        self.at(rank).outstanding += 1;
        if rank >= self.ranks {
            self.begin_command(self.rank_of(rank));
        }
    }

    /// Counts one operation of the rank, or of a helper, as completed.
    #[inline]
    pub(crate) fn release(&mut self, rank: u32) {
        if rank >= self.ranks {
            return self.release_of_helper(rank);
        }
        let state = self.at(rank);
        state.outstanding -= 1;
        let (idle, watching, status) = (state.outstanding == 0, state.watching > 0, state.status);
        if state.existing().is_some_and(|extra| !extra.room_line.is_empty()) {
            self.wake(rank);
        }
        if idle && status != Status::Running {
            self.depart(rank);
        } else if idle && watching && self.departed > 0 {
            // Only now can the wait detect that no peer will end it.
            self.wake(rank);
        }
        if idle && self.departed > 0 {
            self.wake_helpers_of(rank);
        }
    }

    /// Counts a command of a control queue, or an operation of a helper, as in flight for the rank,
    /// no matter what happens to the queue.
    #[inline]
    pub(crate) fn begin_command(&mut self, rank: u32) {
        let state = self.at(rank);
        state.outstanding += 1;
        state.extra().commands += 1;
    }

    /// Counts a command of a control queue, or an operation of a helper, as completed for the rank.
    #[inline]
    pub(crate) fn release_command(&mut self, rank: u32) {
        if let Some(extra) = self.at(rank).existing() {
            extra.commands -= 1;
        }
        self.release(rank);
    }

    /// Returns the control queues that the rank has open.
    pub(crate) fn queues(&mut self, rank: u32) -> &mut Vec<u32> {
        &mut self.at(rank).extra().queues
    }

    pub(crate) fn forget_queue(&mut self, rank: u32, queue: u32) {
        if let Some(extra) = self.at(rank).existing() {
            extra.queues.retain(|other| *other != queue);
        }
    }

    pub(crate) fn take_queues(&mut self, rank: u32) -> Vec<u32> {
        self.at(rank).existing().map(|extra| mem::take(&mut extra.queues)).unwrap_or_default()
    }

    /// Ends a rank whose program has ended, with its memory deregistered and its queues closed.
    pub(crate) fn end(&mut self, rank: u32, well: bool) {
        let state = self.at(rank);
        state.status = if well { Status::Finished } else { Status::Lost };
        let (idle, status) = (state.outstanding == 0, state.status);
        let waiting: Vec<u32> = state.existing().map_or_else(Vec::new, |extra| extra.receive_queue.waiting().collect());
        if !well {
            self.first_lost = self.first_lost.or(Some(rank));
            self.loss_unknown = true;
        }
        self.end_helpers_of(rank, status);
        for other in waiting {
            self.wake(other);
        }
        if idle {
            self.depart(rank);
        }
    }

    /// Marks a rank as departed: none of its operations is in flight any more.
    fn depart(&mut self, rank: u32) {
        let state = self.at(rank);
        if mem::replace(&mut state.departed, true) {
            return;
        }
        let extra = state.extra.take();
        self.departed += 1;
        if let Some(extra) = extra {
            for other in extra.dependents {
                self.wake(other);
            }
        }
        if self.departed + 1 == self.ranks {
            // The last rank may be waiting for all the others.
            if let Some(last) = self.states[..self.ranks as usize].iter().position(|state| !state.departed) {
                self.wake(last as u32);
                self.wake_helpers_of(last as u32);
            }
        }
    }
}
