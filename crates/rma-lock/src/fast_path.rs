//! Fast paths: a call that completes immediately is not boxed, and its first poll is inlined into
//! its caller.
//!
//! [`fast_path()`] is like an `async` block that tries the fast path, awaits the operation that it
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

/// The fast path, which is tried first.
pub(crate) trait FastPath {
    type Out;
    /// The input of the slow path.
    type Stage;

    /// Tries it; must be marked `#[inline(always)]`, which closures cannot be.
    fn fast(self, cx: &mut Context<'_>) -> Result<Self::Out, Self::Stage>;
}

pub(crate) struct FastPathFuture<Fast, Slow, SlowPath> {
    /// `None` after the first poll.
    fast: ManuallyDrop<Option<Fast>>,
    /// `None` after the slow path has been created from it.
    slow: Option<Slow>,
    /// The awaited future; `None` before the first poll, and after completion.
    slow_path: ManuallyDrop<Option<SlowPath>>,
}

// Nothing is ever pinned.
impl<Fast, Slow, SlowPath> Unpin for FastPathFuture<Fast, Slow, SlowPath> {}

/// Tries `fast`, and awaits the future that `slow` creates from the stage that it has reached.
#[inline(always)]
pub(crate) fn fast_path<Fast, Slow, SlowPath>(fast: Fast, slow: Slow) -> FastPathFuture<Fast, Slow, SlowPath>
where
    Fast: FastPath,
    Slow: FnOnce(Fast::Stage) -> SlowPath,
    SlowPath: Future<Output = Fast::Out> + Unpin,
{
    FastPathFuture { fast: ManuallyDrop::new(Some(fast)), slow: Some(slow), slow_path: ManuallyDrop::new(None) }
}

/// Drops a value. This is a call by value, so that the original need not be in memory.
#[cold]
#[inline(never)]
fn dropped<T>(value: T) {
    drop(value);
}

/// Dropping a completed future costs only comparisons.
impl<Fast, Slow, SlowPath> Drop for FastPathFuture<Fast, Slow, SlowPath> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(fast) = self.fast.take() {
            dropped(fast);
        }
        if let Some(slow_path) = self.slow_path.take() {
            dropped(slow_path);
        }
    }
}

impl<Fast, Slow, SlowPath> Future for FastPathFuture<Fast, Slow, SlowPath>
where
    Fast: FastPath,
    Slow: FnOnce(Fast::Stage) -> SlowPath,
    SlowPath: Future<Output = Fast::Out> + Unpin,
{
    type Output = Fast::Out;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Fast::Out> {
        let stage = match self.fast.take() {
            Some(fast) => match fast.fast(cx) {
                Ok(out) => return Poll::Ready(out),
                Err(stage) => Some(stage),
            },
            None => None,
        };
        match self.poll_slow(stage, cx) {
            Some(out) => Poll::Ready(*out),
            None => Poll::Pending,
        }
    }
}

impl<Fast, Slow, SlowPath> FastPathFuture<Fast, Slow, SlowPath>
where
    Fast: FastPath,
    Slow: FnOnce(Fast::Stage) -> SlowPath,
    SlowPath: Future<Output = Fast::Out> + Unpin,
{
    /// Polls the slow path. The result is boxed, so that only this path stores it in memory.
    #[cold]
    #[inline(never)]
    fn poll_slow(&mut self, stage: Option<Fast::Stage>, cx: &mut Context<'_>) -> Option<Box<Fast::Out>> {
        if let Some(stage) = stage {
            let slow = self.slow.take().expect("only one rest");
            *self.slow_path = Some(slow(stage));
        }
        let slow_path = self.slow_path.as_mut().expect("polled after the end");
        let Poll::Ready(out) = Pin::new(slow_path).poll(cx) else { return None };
        *self.slow_path = None;
        Some(Box::new(out))
    }
}

/// An atomic that was posted.
#[derive(Debug)]
pub(crate) enum Posting {
    InFlight(Handle<u64>),
    Complete(Result<u64, FabricError>),
}

impl Posting {
    pub(crate) async fn result(self) -> Result<u64, FabricError> {
        match self {
            Posting::InFlight(handle) => handle.await,
            Posting::Complete(result) => result,
        }
    }
}

/// The state of an atomic without a result; `None` if it was not posted, and may be tried again.
/// Boxed, because moving such a large result costs more than taking a lock.
pub(crate) type Unfinished = Option<Box<Posting>>;

#[cold]
#[inline(never)]
fn unfinished(posting: Posting) -> Unfinished {
    Some(Box::new(posting))
}

/// Executes an atomic that completes immediately.
///
/// The out-of-line call receives a copy of `amo`: if the original's address were passed, the
/// original would be kept in memory even on the fast path.
#[inline(always)]
pub(crate) fn atomic_now(fabric: &Fabric, word: &RemoteWord<u64>, amo: Amo<u64>) -> Result<u64, Unfinished> {
    match fabric.direct().atomic(word, amo) {
        Some(old) => Ok(old),
        None => test_atomic(fabric, word, amo.to_bits()),
    }
}

#[inline(never)]
fn test_atomic(fabric: &Fabric, word: &RemoteWord<u64>, amo: Amo<u64>) -> Result<u64, Unfinished> {
    match fabric.try_atomic(word, amo) {
        Ok(mut handle) => {
            if !handle.test() {
                return Err(unfinished(Posting::InFlight(handle)));
            }
            match handle.wait() {
                Ok(old) => Ok(old),
                Err(error) => Err(unfinished(Posting::Complete(Err(error)))),
            }
        }
        Err(_) => Err(None),
    }
}
