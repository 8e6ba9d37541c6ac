use core::{
    fmt,
    future::Future,
    pin::{Pin, pin},
    task::{Context, Poll},
};

/// What a dropped future still owes, on the stack of the call that dropped it: polled there, or put in a box to be
/// polled later.
pub struct Leftover<'a>(&'a mut dyn Rest);

impl<'a> Leftover<'a> {
    /// Of a future, which is there.
    pub fn new<F: Future<Output = ()> + 'static>(rest: &'a mut Option<F>) -> Self {
        Leftover(rest)
    }

    /// Polls it once; what is not over then is dropped.
    pub fn poll_once(self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.poll_once(cx)
    }

    /// Puts it where it can stay.
    pub fn boxed(self) -> Pin<Box<dyn Future<Output = ()>>> {
        self.0.boxed()
    }
}

impl fmt::Debug for Leftover<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("what a dropped future owes")
    }
}

/// Called once, while there is a future.
trait Rest {
    fn poll_once(&mut self, cx: &mut Context<'_>) -> Poll<()>;
    fn boxed(&mut self) -> Pin<Box<dyn Future<Output = ()>>>;
}

impl<F: Future<Output = ()> + 'static> Rest for Option<F> {
    #[inline]
    fn poll_once(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self.take() {
            Some(rest) => pin!(rest).poll(cx),
            None => Poll::Ready(()),
        }
    }

    fn boxed(&mut self) -> Pin<Box<dyn Future<Output = ()>>> {
        match self.take() {
            Some(rest) => Box::pin(rest),
            None => Box::pin(core::future::ready(())),
        }
    }
}
