//! The trait that a provider implements.

use super::{
    BarrierUnit, BlockPuts, Boxed, Colours, Deferred, Ended, HelperTask, Lender, Multicast, Place, Posted, Protected,
    Queues, Sink, Source, Token, WaitFor, WaitState,
};
use crate::{Amo, Fabric, FabricError, Notice, OwnedMemory, Region, RemoteAddr, Result, Time, Uses};
use core::{
    any::Any,
    fmt,
    task::{Context, Poll},
};

/// A provider's state of a region; dropping it deregisters.
pub trait Registration: Any + fmt::Debug + Send + Sync {}

impl<T: Any + fmt::Debug + Send + Sync> Registration for T {}

/// One rank's access to a job: the operations of a network.
///
/// Each method fulfils the contract of the method of [`Fabric`] with the same name. Places are this
/// rank's own or other ranks', as specified by the method, and were resolved by this provider; a
/// place that another provider resolved is refused, or refers to no memory.
pub trait Provider: Any + fmt::Debug + Send + Sync {
    // ----- memory ----------------------------------------------------------------------------

    /// Registers zeroed bytes.
    fn alloc(&self, bytes: usize) -> Result<Region>;
    /// Registers zeroed bytes under the same key everywhere.
    fn alloc_symmetric(&self, bytes: usize) -> Boxed<'_, Result<Region>>;
    /// Registers existing memory.
    fn adopt(&self, memory: OwnedMemory, uses: Uses) -> Result<Region, (FabricError, OwnedMemory)> {
        let _ = uses;
        Err((FabricError::Unsupported { feature: &"registering memory that exists" }, memory))
    }
    /// Deregisters adopted memory, and returns it once no operation accesses it.
    fn release(&self, region: Region) -> Boxed<'_, Result<OwnedMemory>> {
        drop(region);
        Box::pin(async { Err(FabricError::Unsupported { feature: &"giving memory back that was allocated" }) })
    }
    /// Resolves `len` bytes that start at a multiple of `align`, for accesses of `width` bytes.
    fn resolve(&self, addr: RemoteAddr, len: usize, align: usize, width: usize) -> Result<Place>;
    /// Copies this rank's own memory out. 4 or 8 aligned bytes are one word (acquire). `waiting`
    /// means that the reader waits for that word: it calls [`Provider::poll_wait`] or
    /// [`Provider::end_wait`] next.
    fn read(&self, from: &Place, into: &mut [u8], waiting: bool) -> Result<()>;
    /// Copies into this rank's own memory; 4 or 8 aligned bytes are one word (release). `waited`
    /// means that a task of this rank may wait for it.
    fn write(&self, to: &Place, from: &[u8], waited: bool) -> Result<()>;
    /// Wakes the owner of a place that was written directly; the owner may be parked.
    fn wake(&self, place: &Place) {
        let _ = place;
    }

    // ----- operations ------------------------------------------------------------------------

    /// Posts a put, with a notice if there is data for one.
    fn put(&self, to: &Place, from: Source<'_>, notice: Option<u64>) -> Posted;
    /// Posts a get.
    fn get(&self, from: &Place, to: Sink<'_>) -> Posted;
    /// Posts a copy between two other ranks' memory: [`Fabric::copy`] where neither place is local.
    /// It counts among the puts to the destination's rank.
    fn copy(&self, to: &Place, from: &Place) -> Posted {
        let _ = (to, from);
        Posted::failed(FabricError::Unsupported { feature: &"third-party copy" })
    }
    /// Posts an atomic on a word, which is as long as the place.
    fn atomic(&self, word: &Place, amo: Amo<u64>) -> Posted;
    /// Posts an operation that does nothing.
    fn nop(&self) -> Posted;
    /// Polls an operation. A complete operation yields the word's previous value, or 0, and fills
    /// `into`; its token is then void. Until then the provider may change the token.
    ///
    /// A caller whose waker has no effect ([`Waker::noop`](core::task::Waker::noop)) takes a result
    /// without waiting: for it an operation is complete when [`Provider::test`] returns true.
    fn poll(&self, token: &mut Token, into: Sink<'_>, cx: &mut Context<'_>) -> Poll<Result<u64>>;
    /// Returns whether an operation is complete; its result stays available.
    fn test(&self, token: &Token) -> bool;
    /// Abandons the result of an operation; the operation itself continues.
    fn forget(&self, token: Token);
    /// Returns true if it is certain that all puts posted so far are visible and that none has an
    /// error that has not been reported: [`WaitFor::Flush`] would be reached immediately, unless a
    /// rank is lost. A provider that does not know returns false.
    fn is_flushed(&self) -> bool {
        false
    }

    // ----- waiting and time ------------------------------------------------------------------

    /// Takes the oldest notice. `waiting` has the same meaning as for [`Provider::read`].
    fn try_notice(&self, waiting: bool) -> Result<Option<Notice>>;
    /// Polls for a goal. For a word or a notice, ready means that the caller has to check again. If
    /// it is pending, `cx` will be woken.
    fn poll_wait(&self, wait_state: &mut WaitState, wait_for: WaitFor<'_>, cx: &mut Context<'_>) -> Poll<Result<()>>;
    /// Ends a wait. Called for every state that is not empty, and for every word that was read by a
    /// caller that was `waiting`.
    fn end_wait(&self, wait_state: &mut WaitState, wait_for: WaitFor<'_>, ended: Ended);
    /// Returns the current time.
    fn now(&self) -> Time;
    /// Runs the remaining work of a dropped future.
    fn detach(&self, deferred: Deferred<'_>);
    /// Ends the job: see [`Fabric::abort`]. `code` is not 0. Returns the error for the caller.
    fn abort(&self, text: &str, code: i32) -> FabricError {
        let _ = (text, code);
        FabricError::Unsupported { feature: &"ending a whole job" }
    }

    // ----- what not every network has --------------------------------------------------------

    /// Returns the interface for multicasts, if there are any.
    fn multicast(&self) -> Option<&dyn Multicast> {
        None
    }
    /// Returns the interface for puts of several blocks, if it is supported. Through a wrapper
    /// without it, each block is a separate put.
    fn block_puts(&self) -> Option<&dyn BlockPuts> {
        None
    }
    /// Returns the control queues, if there are any.
    fn queues(&self) -> Option<&dyn Queues> {
        None
    }
    /// Returns the barrier unit, if there is one.
    fn gates(&self) -> Option<&dyn BarrierUnit> {
        None
    }
    /// Returns the hardware barriers, if there are any.
    fn colours(&self) -> Option<&dyn Colours> {
        None
    }
    /// Returns the allocator of protected memory, if there is such memory.
    fn protected(&self) -> Option<&dyn Protected> {
        None
    }
    /// Returns the interface by which the rank borrows its own memory, if the provider stores it.
    fn lender(&self) -> Option<&dyn Lender> {
        None
    }
    /// Starts a helper called `name` of the rank of `like`.
    fn helper(&self, like: &Fabric, name: &'static str, task: HelperTask) -> Result<()> {
        let _ = (like, name, task);
        Err(FabricError::Unsupported { feature: &"helpers" })
    }
}
