//! Running a future that mostly completes at once on the calling thread.

use super::block_on::block_on;
use core::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

/// As [`block_on`], for futures that mostly complete when they are first polled: then it takes one poll
/// and no allocation. For libraries whose callers are not Rust, at each call.
///
/// # Panics
/// As [`block_on`].
#[inline]
pub fn block_on_short<F: Future>(future: F) -> F::Output {
    #[cold]
    #[inline(never)]
    fn wait<F: Future>(future: F) -> F::Output {
        block_on(future)
    }
    let mut future = pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(out) => out,
        Poll::Pending => wait(future),
    }
}

#[cfg(test)]
mod tests {
    use super::block_on_short;
    use core::{future::poll_fn, task::Poll};

    #[test]
    fn a_future_that_is_pending_at_first_is_awaited() {
        let mut polls = 0;
        let polled = block_on_short(poll_fn(|cx| {
            polls += 1;
            cx.waker().wake_by_ref();
            if polls < 3 { Poll::Pending } else { Poll::Ready(polls) }
        }));
        assert_eq!((polled, block_on_short(async { 1 })), (3, 1));
    }
}
