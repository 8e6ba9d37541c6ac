//! Delegated operations, which other ranks execute: each takes several steps of this rank.

use super::{Engine, Stage};
use core::task::{Context, Poll};

impl Engine {
    /// Makes progress with the delegated operations behind the first pending one, so that different
    /// ranks execute them concurrently. Their number is limited by that of reply places.
    pub(super) fn poll_delegated(&mut self, cx: &mut Context<'_>) {
        let first = self.over() + 1;
        let mut delegated = core::mem::take(&mut self.delegated);
        delegated.retain(|&id| {
            // The first one has just been polled.
            let Ok(at @ 1..) = usize::try_from(id - first) else { return id == first };
            let done = match self.pending.get_mut(at) {
                Some(Stage::Flying(flight)) => match flight.as_mut().poll(cx) {
                    Poll::Pending => return true,
                    Poll::Ready(done) => done,
                },
                Some(Stage::Waiting(_)) => return true,
                Some(Stage::Complete) | None => return false,
            };
            self.pending[at] = Stage::Complete;
            if let Err(error) = done {
                self.fail(id, error);
            }
            false
        });
        self.delegated = delegated;
    }
}
