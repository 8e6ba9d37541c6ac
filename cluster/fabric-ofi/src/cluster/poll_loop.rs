//! How threads of the program poll the network: immediately, or at the times that
//! [`super::progress`] chooses for a wait or poll.

use super::{core::State, net::Net};
use core::task::{Context, Poll};
use rdma_fabric::Result;
use tofu2_shm::part::gets_on;

impl Net {
    /// Makes progress as [`Net::progress`] does, on behalf of a thread of the program.
    pub(super) fn look(&self) {
        self.progress.attend();
        self.progress();
    }

    /// Makes progress for a thread of the program, which processes the result in `work`.
    pub(super) fn after_polling<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        self.progress.attend();
        self.with(|state| {
            state.progress();
            work(state)
        })
    }

    /// Makes progress for a wait that ends when this rank's memory changes, if the network is due
    /// to be polled.
    pub(super) fn poll_while_waiting(&self) {
        if self.progress.waits() {
            self.progress();
        }
    }

    /// Returns the value that `look` finds in memory of this rank, after some progress if
    /// necessary.
    ///
    /// # Errors
    /// Those of `look`.
    pub(super) fn find<T>(&self, look: impl Fn() -> Result<Option<T>>) -> Result<Option<T>> {
        let mut found = look()?;
        if found.is_none() && self.progress.wants() && self.progress() > 0 {
            found = look()?;
        }
        if found.is_some() {
            self.progress.found();
        }
        Ok(found)
    }

    /// Polls for a result that the network brings; `first` if the operation was just posted. `work`
    /// checks for the result, after making progress if its last argument is set.
    pub(super) fn polling<T>(
        &self,
        cx: &mut Context<'_>,
        first: bool,
        work: impl FnOnce(&mut State, &mut Context<'_>, bool) -> Poll<T>,
    ) -> Poll<T> {
        if first {
            self.progress.found();
        }
        let looks = self.progress.wants();
        let stands = self.with(|state| work(state, cx, looks));
        if stands.is_ready() {
            self.progress.found();
        }
        gets_on(cx, first || stands.is_ready(), stands.is_pending() && looks);
        stands
    }
}
