//! Running a call's future on the calling thread.

use core::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

/// Runs `future` to completion. A future that completes immediately takes one poll and no allocation.
#[inline]
pub(crate) fn drive<F: Future>(future: F) -> F::Output {
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
