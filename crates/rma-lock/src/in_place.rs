//! Short paths: a call that completes immediately is not boxed, and its first poll is inlined into
//! its caller.
//!
//! [`in_place`] is like an `async` block that tries the short path, awaits the operation that it
//! has posted, and then the rest if that is not enough. It differs in two ways, because calling a
//! function and moving a large value cost more than a lock: the first poll is guaranteed to be
//! inlined into its caller, and the rest is created only when needed.
//!
//! [`atomic_now`] posts the atomics that such paths consist of.

use core::{
    future::Future,
    mem::ManuallyDrop,
    pin::Pin,
    task::{Context, Poll},
};
use rdma_fabric::{Amo, Fabric, FabricError, Handle, RemoteWord};

/// The short path, which is tried first.
pub(crate) trait FastPath {
    type Out;
    /// The input of the rest.
    type Stage;

    /// Tries it; must be marked `#[inline(always)]`, which closures cannot be.
    fn now(self, cx: &mut Context<'_>) -> Result<Self::Out, Self::Stage>;
}

pub(crate) struct InPlace<Fast, Slow, Rest> {
    /// `None` after the first poll.
    fast: ManuallyDrop<Option<Fast>>,
    /// `None` after the rest has been created from it.
    slow: Option<Slow>,
    /// The awaited future; `None` before the first poll, and after completion.
    rest: ManuallyDrop<Option<Rest>>,
}

// Nothing is ever pinned.
impl<Fast, Slow, Rest> Unpin for InPlace<Fast, Slow, Rest> {}

/// Tries `fast`, and awaits the future that `slow` creates from the stage that it has reached.
#[inline(always)]
pub(crate) fn in_place<Fast, Slow, Rest>(fast: Fast, slow: Slow) -> InPlace<Fast, Slow, Rest>
where
    Fast: FastPath,
    Slow: FnOnce(Fast::Stage) -> Rest,
    Rest: Future<Output = Fast::Out> + Unpin,
{
    InPlace { fast: ManuallyDrop::new(Some(fast)), slow: Some(slow), rest: ManuallyDrop::new(None) }
}

/// Drops a value. This is a call by value, so that the original need not be in memory.
#[cold]
#[inline(never)]
fn dropped<T>(value: T) {
    drop(value);
}

/// Dropping a completed future costs only comparisons.
impl<Fast, Slow, Rest> Drop for InPlace<Fast, Slow, Rest> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(fast) = self.fast.take() {
            dropped(fast);
        }
        if let Some(rest) = self.rest.take() {
            dropped(rest);
        }
    }
}

impl<Fast, Slow, Rest> Future for InPlace<Fast, Slow, Rest>
where
    Fast: FastPath,
    Slow: FnOnce(Fast::Stage) -> Rest,
    Rest: Future<Output = Fast::Out> + Unpin,
{
    type Output = Fast::Out;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Fast::Out> {
        let stage = match self.fast.take() {
            Some(fast) => match fast.now(cx) {
                Ok(out) => return Poll::Ready(out),
                Err(stage) => Some(stage),
            },
            None => None,
        };
        match self.go_on(stage, cx) {
            Some(out) => Poll::Ready(*out),
            None => Poll::Pending,
        }
    }
}

impl<Fast, Slow, Rest> InPlace<Fast, Slow, Rest>
where
    Fast: FastPath,
    Slow: FnOnce(Fast::Stage) -> Rest,
    Rest: Future<Output = Fast::Out> + Unpin,
{
    /// Polls the rest. The result is boxed, so that only this path stores it in memory.
    #[cold]
    #[inline(never)]
    fn go_on(&mut self, stage: Option<Fast::Stage>, cx: &mut Context<'_>) -> Option<Box<Fast::Out>> {
        if let Some(stage) = stage {
            let slow = self.slow.take().expect("only one rest");
            *self.rest = Some(slow(stage));
        }
        let rest = self.rest.as_mut().expect("polled after the end");
        let Poll::Ready(out) = Pin::new(rest).poll(cx) else { return None };
        *self.rest = None;
        Some(Box::new(out))
    }
}

/// An atomic that was posted.
#[derive(Debug)]
pub(crate) enum Posting {
    InFlight(Handle<u64>),
    Over(Result<u64, FabricError>),
}

impl Posting {
    pub(crate) async fn result(self) -> Result<u64, FabricError> {
        match self {
            Posting::InFlight(handle) => handle.await,
            Posting::Over(result) => result,
        }
    }
}

/// The state of an atomic without a result; `None` if it was not posted, and may be tried again.
/// Boxed, because moving such a large result costs more than taking a lock.
pub(crate) type NotOver = Option<Box<Posting>>;

#[cold]
#[inline(never)]
fn not_over(posting: Posting) -> NotOver {
    Some(Box::new(posting))
}

/// Executes an atomic that completes immediately.
///
/// The out-of-line call receives a copy of `amo`: if the original's address were passed, the
/// original would be kept in memory even on the short path.
#[inline(always)]
pub(crate) fn atomic_now(fabric: &Fabric, word: &RemoteWord<u64>, amo: Amo<u64>) -> Result<u64, NotOver> {
    match fabric.atomic_now(word, amo) {
        Some(old) => Ok(old),
        None => test_atomic(fabric, word, amo.to_bits()),
    }
}

#[inline(never)]
fn test_atomic(fabric: &Fabric, word: &RemoteWord<u64>, amo: Amo<u64>) -> Result<u64, NotOver> {
    match fabric.try_atomic(word, amo) {
        Ok(mut handle) => {
            if !handle.test() {
                return Err(not_over(Posting::InFlight(handle)));
            }
            match handle.wait() {
                Ok(old) => Ok(old),
                Err(error) => Err(not_over(Posting::Over(Err(error)))),
            }
        }
        Err(_) => Err(None),
    }
}
