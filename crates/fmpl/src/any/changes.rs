//! Waits for the completion of other receives of the rank.

use crate::{Communicator, FmplError, Result, state::State};
use core::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};

impl Communicator {
    /// Awaits a future, or until a receive has completed since the [`State::changes`] were
    /// `since`.
    pub(super) async fn or_changed(&self, since: u64, future: impl Future<Output = Result<()>>) -> Result<()> {
        let mut future = pin!(future);
        poll_fn(|cx| {
            let watch = |state: &mut State| {
                if !state.watching.iter().any(|waker| waker.will_wake(cx.waker())) {
                    state.watching.push(cx.waker().clone());
                }
                state.changes
            };
            match self.with(watch) {
                Ok(now) if now != since => Poll::Ready(Ok(())),
                Ok(_) => future.as_mut().poll(cx),
                Err(error) => Poll::Ready(Err::<(), FmplError>(error)),
            }
        })
        .await
    }
}
