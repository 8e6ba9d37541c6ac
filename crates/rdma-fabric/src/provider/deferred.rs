//! The remaining work of dropped futures.

use core::{
    fmt,
    future::Future,
    pin::{Pin, pin},
    task::{Context, Poll},
};

/// The remaining work of a dropped future, on the stack of the call that dropped it. It is polled
/// there, or boxed to be polled later.
pub struct Deferred<'a>(&'a mut dyn TakeFuture);

impl<'a> Deferred<'a> {
    /// Wraps a future; the option must hold one.
    pub fn new<F: Future<Output = ()> + 'static>(future: &'a mut Option<F>) -> Self {
        Deferred(future)
    }

    /// Polls the future once, and drops it if it is still pending.
    pub fn poll_once(self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.poll_once(cx)
    }

    /// Moves the future into a box, where it can stay.
    pub fn boxed(self) -> Pin<Box<dyn Future<Output = ()>>> {
        self.0.boxed()
    }
}

impl fmt::Debug for Deferred<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("deferred work of a dropped future")
    }
}

/// A future in an `Option`; each method takes it out.
trait TakeFuture {
    fn poll_once(&mut self, cx: &mut Context<'_>) -> Poll<()>;
    fn boxed(&mut self) -> Pin<Box<dyn Future<Output = ()>>>;
}

impl<F: Future<Output = ()> + 'static> TakeFuture for Option<F> {
    #[inline]
    fn poll_once(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self.take() {
            Some(deferred) => pin!(deferred).poll(cx),
            None => Poll::Ready(()),
        }
    }

    fn boxed(&mut self) -> Pin<Box<dyn Future<Output = ()>>> {
        match self.take() {
            Some(deferred) => Box::pin(deferred),
            None => Box::pin(core::future::ready(())),
        }
    }
}
