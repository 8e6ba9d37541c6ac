//! What ranks have under way, and how they end.

use super::{Ranks, Status};
use std::mem;

impl Ranks {
    /// Returns whether the rank's TOQ of `depth` slots is full. Commands of control queues don't
    /// count.
    #[inline]
    pub(crate) fn is_full(&self, rank: u32, depth: u32) -> bool {
        let state = &self.states[rank as usize];
        let commands = || state.extra.as_deref().map_or(0, |extra| extra.commands);
        state.outstanding >= depth && state.outstanding - commands() >= depth
    }

    /// Counts one more operation of the rank as under way.
    #[inline]
    pub(crate) fn begin(&mut self, rank: u32) {
        self.at(rank).outstanding += 1;
    }

    /// Counts one operation of the rank as over.
    #[inline]
    pub(crate) fn release(&mut self, rank: u32) {
        let state = self.at(rank);
        state.outstanding -= 1;
        let (idle, watching, status) = (state.outstanding == 0, state.watching > 0, state.status);
        if state.existing().is_some_and(|extra| !extra.room_line.is_empty()) {
            self.wake(rank);
        }
        if idle && status != Status::Running {
            self.depart(rank);
        } else if idle && watching && self.departed > 0 {
            // Only now can the wait tell that no peer will end it.
            self.wake(rank);
        }
    }

    /// Counts a command of a control queue as under way for the rank, whatever becomes of the
    /// queue.
    #[inline]
    pub(crate) fn begin_command(&mut self, rank: u32) {
        let state = self.at(rank);
        state.outstanding += 1;
        state.extra().commands += 1;
    }

    /// Counts a command of a control queue as over for the rank.
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

    /// Ends a rank whose program is over, memory deregistered and queues closed.
    pub(crate) fn end(&mut self, rank: u32, well: bool) {
        let state = self.at(rank);
        state.status = if well { Status::Finished } else { Status::Lost };
        let idle = state.outstanding == 0;
        let waiting: Vec<u32> = state.existing().map_or_else(Vec::new, |extra| extra.receive_queue.waiting().collect());
        if !well {
            self.first_lost = self.first_lost.or(Some(rank));
            self.loss_unknown = true;
        }
        for other in waiting {
            self.wake(other);
        }
        if idle {
            self.depart(rank);
        }
    }

    /// Marks a rank as departed: nothing of it is under way any more.
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
        if self.departed as usize + 1 == self.states.len() {
            // The last rank may be waiting for all the others.
            if let Some(last) = self.states.iter().position(|state| !state.departed) {
                self.wake(last as u32);
            }
        }
    }
}
