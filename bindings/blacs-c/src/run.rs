//! Running a call's future on the calling thread.

use core::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

/// Runs `future` to completion. A future that completes immediately takes one poll and no allocation.
#[inline]
pub(crate) fn run<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(out) => out,
        Poll::Pending => wait(future),
    }
}

#[cold]
#[inline(never)]
fn wait<F: Future>(future: F) -> F::Output {
    onesided::block_on(future)
}

#[cfg(test)]
mod tests {
    use super::run;
    use core::{future::poll_fn, task::Poll};

    #[test]
    fn what_is_not_over_at_once_is_waited_for() {
        let mut polls = 0;
        let polled = run(poll_fn(|cx| {
            polls += 1;
            cx.waker().wake_by_ref();
            if polls < 3 { Poll::Pending } else { Poll::Ready(polls) }
        }));
        assert_eq!((polled, run(async { 1 })), (3, 1));
    }
}
