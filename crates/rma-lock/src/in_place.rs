//! Short paths: a call that completes at once costs no box, and its first poll is inlined into its
//! caller.
//!
//! [`in_place`] is an `async` block that tries something, awaits the operation it posted, and then
//! the rest if that is not enough. It differs in two ways, because calling a function and moving a
//! large value cost more than a lock: the first poll is certain to be inlined into its caller, and
//! the rest is boxed and created only when needed. Where operations take time, a large job consists
//! of one future per rank: an uncontended acquisition or release keeps its operation in place.
//!
//! [`atomic_now`] and [`poll_atomic`] post the atomics that such paths consist of.

use core::{
    future::{Future, Pending},
    mem::{self, ManuallyDrop},
    pin::Pin,
    task::{Context, Poll},
};
use rdma_fabric::{Amo, Fabric, FabricError, Handle, RemoteWord};

/// The short path, which is tried first.
pub(crate) trait FastPath {
    type Out;
    /// The operation that was posted, and polled once; dropping it leaves nothing undone.
    type Posted: Future<Output = Result<Self::Out, Self::Stage>> + Unpin;
    /// What the rest needs to know.
    type Stage;

    /// Tries it; must be marked `#[inline(always)]`, which closures can't be.
    fn now(self, cx: &mut Context<'_>) -> Attempt<Self>;
}

/// The [`FastPath::Posted`] of paths that post several operations in sequence: none is awaited in
/// place.
pub(crate) type Never<Fast> = Pending<Result<<Fast as FastPath>::Out, <Fast as FastPath>::Stage>>;

/// The outcome of a first attempt.
pub(crate) enum Attempt<T: FastPath + ?Sized> {
    Done(T::Out),
    Posted(T::Posted),
    NotDone(T::Stage),
}

pub(crate) struct InPlace<Fast: FastPath, Slow, Rest> {
    /// `None` after the first poll.
    fast: Option<Fast>,
    /// `None` once the rest has been made from it.
    slow: Option<Slow>,
    then: ManuallyDrop<Then<Fast, Rest>>,
}

/// The stage that is being awaited.
enum Then<Fast: FastPath, Rest> {
    /// Before the first poll, and after the end.
    Nothing,
    Posted(Fast::Posted),
    Rest(Rest),
}

// Nothing is ever pinned.
impl<Fast: FastPath, Slow, Rest> Unpin for InPlace<Fast, Slow, Rest> {}

/// Tries `fast`; if it passes something on, awaits what `slow` makes of that, which is boxed.
#[inline(always)]
pub(crate) fn in_place<Fast, Slow, Rest>(fast: Fast, slow: Slow) -> InPlace<Fast, Slow, Rest>
where
    Fast: FastPath,
    Slow: FnOnce(Fast::Stage) -> Rest,
    Rest: Future<Output = Fast::Out> + Unpin,
{
    InPlace { fast: Some(fast), slow: Some(slow), then: ManuallyDrop::new(Then::Nothing) }
}

impl<Fast: FastPath, Slow, Rest> InPlace<Fast, Slow, Rest> {
    #[cold]
    #[inline(never)]
    fn take(&mut self) -> Then<Fast, Rest> {
        ManuallyDrop::into_inner(mem::replace(&mut self.then, ManuallyDrop::new(Then::Nothing)))
    }
}

/// Dropping a completed one costs only a comparison.
impl<Fast: FastPath, Slow, Rest> Drop for InPlace<Fast, Slow, Rest> {
    #[inline(always)]
    fn drop(&mut self) {
        if !matches!(*self.then, Then::Nothing) {
            drop(self.take());
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
        if let Some(fast) = self.fast.take() {
            match fast.now(cx) {
                Attempt::Done(out) => return Poll::Ready(out),
                Attempt::Posted(posted) => {
                    *self.then = Then::Posted(posted);
                    return Poll::Pending;
                }
                Attempt::NotDone(stage) => self.begin(stage),
            }
        }
        match self.go_on(cx) {
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
    #[cold]
    #[inline(never)]
    fn begin(&mut self, stage: Fast::Stage) {
        let slow = self.slow.take().expect("only one rest");
        *self.then = Then::Rest(slow(stage));
    }

    /// Polls the current stage. The result is boxed, so that only this path has it in memory.
    #[cold]
    #[inline(never)]
    fn go_on(&mut self, cx: &mut Context<'_>) -> Option<Box<Fast::Out>> {
        if let Then::Posted(posted) = &mut *self.then {
            let Poll::Ready(ended) = Pin::new(posted).poll(cx) else { return None };
            drop(self.take());
            match ended {
                Ok(out) => return Some(Box::new(out)),
                Err(stage) => self.begin(stage),
            }
        }
        let Then::Rest(rest) = &mut *self.then else { panic!("polled after the end") };
        let Poll::Ready(out) = Pin::new(rest).poll(cx) else { return None };
        drop(self.take());
        Some(Box::new(out))
    }
}

/// An atomic that was posted.
#[derive(Debug)]
pub enum Posting {
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

/// Why there is no result yet; `None` if the atomic was not posted, and may be tried again. Boxed,
/// because moving such a large result costs more than taking a lock.
pub(crate) type NotOver = Option<Box<Posting>>;

#[cold]
#[inline(never)]
fn not_over(posting: Posting) -> NotOver {
    Some(Box::new(posting))
}

/// Does an atomic that completes at once.
///
/// The out-of-line call gets a copy of `amo`: if the original's address were passed, it would be
/// kept in memory on the short path too.
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

/// Does [`atomic_now`] by polling: a few instructions fewer where the fabric's handles know that
/// they are complete.
#[inline(always)]
pub(crate) fn poll_atomic(
    fabric: &Fabric,
    word: &RemoteWord<u64>,
    amo: Amo<u64>,
    cx: &mut Context<'_>,
) -> Result<u64, NotOver> {
    match fabric.atomic_now(word, amo) {
        Some(old) => Ok(old),
        None => await_atomic(fabric, word, amo.to_bits(), cx),
    }
}

#[inline(never)]
fn await_atomic(fabric: &Fabric, word: &RemoteWord<u64>, amo: Amo<u64>, cx: &mut Context<'_>) -> Result<u64, NotOver> {
    match fabric.try_atomic(word, amo) {
        Ok(mut handle) => match Pin::new(&mut handle).poll(cx) {
            Poll::Ready(Ok(old)) => Ok(old),
            Poll::Ready(Err(error)) => Err(not_over(Posting::Over(Err(error)))),
            Poll::Pending => Err(not_over(Posting::InFlight(handle))),
        },
        Err(_) => Err(None),
    }
}
