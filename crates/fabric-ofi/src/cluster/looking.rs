//! How threads of the program look at the network: at once, or as a wait or a poll has it.

use super::{core::State, net::Net};
use core::task::{Context, Poll};
use rdma_fabric::Result;
use tofu2_sim::shm::part::gets_on;

impl Net {
    /// Works like [`Net::progress`], for a thread of the program.
    pub(super) fn look(&self) {
        self.attention.attend();
        self.progress();
    }

    /// Works a little, for a thread of the program that has something to do with what comes of it.
    pub(super) fn looking<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        self.attention.attend();
        self.with(|state| {
            state.progress();
            work(state)
        })
    }

    /// Works a little for a wait that memory of this rank ends, if it is time to.
    pub(super) fn look_while_waiting(&self) {
        if self.attention.waits() {
            self.progress();
        }
    }

    /// Returns what `look` finds in memory of this rank, if need be after some work.
    ///
    /// # Errors
    /// Those of `look`.
    pub(super) fn find<T>(&self, look: impl Fn() -> Result<Option<T>>) -> Result<Option<T>> {
        let mut found = look()?;
        if found.is_none() && self.attention.wants() && self.progress() > 0 {
            found = look()?;
        }
        if found.is_some() {
            self.attention.found();
        }
        Ok(found)
    }

    /// Polls something that the network brings, `first` if it was just posted. `work` sees what has
    /// come of it, and works a little before, if it is told to.
    pub(super) fn polling<T>(
        &self,
        cx: &mut Context<'_>,
        first: bool,
        work: impl FnOnce(&mut State, &mut Context<'_>, bool) -> Poll<T>,
    ) -> Poll<T> {
        if first {
            self.attention.found();
        }
        let looks = self.attention.wants();
        let stands = self.with(|state| work(state, cx, looks));
        if stands.is_ready() {
            self.attention.found();
        }
        gets_on(cx, first || stands.is_ready(), stands.is_pending() && looks);
        stands
    }
}
