//! The only function that runs a program's code.

use core::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

/// Polls a program. All executors poll through this function, which is never inlined: so the code
/// of a program is compiled once, and not for each place where it may be polled.
#[inline(never)]
pub fn poll_apart<F: Future>(future: Pin<&mut F>, cx: &mut Context<'_>) -> Poll<F::Output> {
    future.poll(cx)
}
