//! The interface of a provider, in terms of words, bytes and places; nothing here is generic.
//!
//! `docs/contract/fabric.md`, *Providers* (V1 to V11), states the properties on which a [`Fabric`]
//! relies.
//!
//! # Places
//! If memory is [mapped](Place::mapped), short accesses are made directly, without calling the
//! provider; this is decided by a comparison with a word of the place. Accesses reach the provider
//! if they are long, or if their memory isn't mapped, is [hidden](Place::hidden) or has been
//! deregistered.
//!
//! # Arguments
//! * An operation is [`Posted`]: complete immediately, or in flight and identified by a [`Token`],
//!   which the caller passes to [`Provider::poll`].
//! * A wait is a [`WaitFor`] and a [`WaitState`], four words in which the provider keeps its state
//!   between two polls. The caller itself checks the awaited condition, so closures are never passed
//!   down.
//! * Memory is a [`Region`], whose `registration` deregisters it when it is dropped, and a
//!   [`Place`] in one.
//!
//! # Threads
//! A provider is `Send` and `Sync`, so that futures over any fabric are `Send`. Simulators, which
//! live on one thread, check that they are used there.
//!
//! # Example
//! A provider of a single rank, which reaches its own memory. Every operation completes when it is
//! posted. `fabric-conformance` tests a provider against the contract.
//!
//! ```
//! use rdma_fabric::{
//!     Amo, Caps, Fabric, FabricError, Notice, Rank, Region, RegionKey, RemoteAddr, Result, Time, join, provider::*,
//! };
//! use std::{
//!     collections::VecDeque,
//!     sync::{Arc, Mutex},
//!     task::{Context, Poll, Waker},
//!     time::Instant,
//! };
//!
//! const ME: Rank = Rank::new(0);
//!
//! /// The bytes of a region; `None` once it is deregistered. No other code can name this type, so a place
//! /// that keeps one was resolved by this provider.
//! #[derive(Debug)]
//! struct Memory(Mutex<Option<Vec<u8>>>);
//!
//! /// Deregisters a region when it is dropped.
//! #[derive(Debug)]
//! struct Registered(Arc<Memory>);
//!
//! impl Drop for Registered {
//!     fn drop(&mut self) {
//!         *self.0.0.lock().unwrap() = None;
//!     }
//! }
//!
//! #[derive(Debug)]
//! struct Loopback {
//!     regions: Mutex<Vec<Arc<Memory>>>,
//!     notices: Mutex<VecDeque<Notice>>,
//!     started: Instant,
//! }
//!
//! /// Calls `act` with the bytes of a place.
//! fn access<R>(place: &Place, act: impl FnOnce(&mut [u8]) -> R) -> Result<R> {
//!     let foreign = FabricError::Unsupported { feature: &"a place of another provider" };
//!     let (memory, addr) = (place.keep_alive::<Arc<Memory>>().ok_or(foreign)?, place.addr());
//!     let start = addr.offset as usize;
//!     match &mut *memory.0.lock().unwrap() {
//!         Some(bytes) => Ok(act(&mut bytes[start..start + place.len()])),
//!         None => Err(FabricError::StaleRegion { rank: ME, region: addr.region }),
//!     }
//! }
//!
//! fn posted(outcome: Result<u64>) -> Posted {
//!     outcome.map_or_else(Posted::failed, Posted::Complete)
//! }
//!
//! impl Provider for Loopback {
//!     fn alloc(&self, bytes: usize) -> Result<Region> {
//!         let memory = Arc::new(Memory(Mutex::new(Some(vec![0; bytes]))));
//!         let mut regions = self.regions.lock().unwrap();
//!         regions.push(memory.clone());
//!         let key = RegionKey { index: regions.len() as u32 - 1, generation: 0 };
//!         Ok(Region::new(key, bytes, None, Registered(memory)))
//!     }
//!     fn alloc_symmetric(&self, bytes: usize) -> Boxed<'_, Result<Region>> {
//!         Box::pin(async move { self.alloc(bytes) })
//!     }
//!     fn resolve(&self, addr: RemoteAddr, len: usize, align: usize, _: usize) -> Result<Place> {
//!         let RemoteAddr { rank, region, .. } = addr;
//!         if rank != ME {
//!             return Err(FabricError::NoSuchRank { rank, ranks: 1 });
//!         }
//!         let memory = self.regions.lock().unwrap().get(region.index as usize).cloned();
//!         let memory = memory.ok_or(FabricError::NoSuchRegion { rank, region })?;
//!         let bytes = memory.0.lock().unwrap().as_ref().map(Vec::len);
//!         addr.fits(len, align, bytes.ok_or(FabricError::StaleRegion { rank, region })? as u64)?;
//!         Ok(Place::remote(addr, len, KeepAlive::new(memory)))
//!     }
//!     fn read(&self, from: &Place, into: &mut [u8], _waiting: bool) -> Result<()> {
//!         access(from, |bytes| into.copy_from_slice(bytes))
//!     }
//!     fn write(&self, to: &Place, from: &[u8], _waited: bool) -> Result<()> {
//!         access(to, |bytes| bytes.copy_from_slice(from))
//!     }
//!     fn put(&self, to: &Place, from: Source<'_>, notice: Option<u64>) -> Posted {
//!         let copied = match from {
//!             Source::Bytes(bytes) => Ok(bytes.to_vec()),
//!             Source::Place(place) => access(place, |bytes| bytes.to_vec()),
//!         };
//!         let written = copied.and_then(|bytes| self.write(to, &bytes, false));
//!         if let (Ok(()), Some(data)) = (&written, notice) {
//!             let RemoteAddr { region, offset, .. } = to.addr();
//!             let notice = Notice { from: ME, data, region, end: offset + to.len() as u64 };
//!             self.notices.lock().unwrap().push_back(notice);
//!         }
//!         posted(written.map(|()| 0))
//!     }
//!     fn get(&self, from: &Place, to: Sink<'_>) -> Posted {
//!         let copied = access(from, |bytes| bytes.to_vec());
//!         posted(copied.and_then(|bytes| match to {
//!             Sink::Bytes(into) => Ok(into.copy_from_slice(&bytes)),
//!             Sink::Place(place) => self.write(place, &bytes, false),
//!         }.map(|()| 0)))
//!     }
//!     fn atomic(&self, word: &Place, amo: Amo<u64>) -> Posted {
//!         posted(access(word, |bytes| {
//!             let mut bits = [0; 8];
//!             bits[..bytes.len()].copy_from_slice(bytes);
//!             let before = u64::from_ne_bytes(bits);
//!             let after = amo.apply(before).to_ne_bytes();
//!             bytes.copy_from_slice(&after[..bytes.len()]);
//!             before
//!         }))
//!     }
//!     fn nop(&self) -> Posted {
//!         Posted::Complete(0)
//!     }
//!     // There are no operations in flight.
//!     fn poll(&self, _: &mut Token, _: Sink<'_>, _: &mut Context<'_>) -> Poll<Result<u64>> {
//!         unreachable!()
//!     }
//!     fn test(&self, _: &Token) -> bool {
//!         unreachable!()
//!     }
//!     fn forget(&self, _: Token) {}
//!     fn try_notice(&self, _waiting: bool) -> Result<Option<Notice>> {
//!         Ok(self.notices.lock().unwrap().pop_front())
//!     }
//!     fn poll_wait(&self, _: &mut WaitState, goal: WaitFor<'_>, cx: &mut Context<'_>) -> Poll<Result<()>> {
//!         match goal {
//!             WaitFor::Until(time) if self.now() < time => {}
//!             // Another task of this rank may write the word, or put with a notice.
//!             WaitFor::Word(..) | WaitFor::Notice(_) => {}
//!             _ => return Poll::Ready(Ok(())),
//!         }
//!         cx.waker().wake_by_ref();
//!         Poll::Pending
//!     }
//!     fn end_wait(&self, _: &mut WaitState, _: WaitFor<'_>, _: Ended) {}
//!     fn now(&self) -> Time {
//!         Time::from_picos(self.started.elapsed().as_nanos() as u64 * 1000)
//!     }
//!     fn detach(&self, deferred: Deferred<'_>) {
//!         let _ = deferred.poll_once(&mut Context::from_waker(Waker::noop()));
//!     }
//! }
//!
//! let facts = JobFacts { ranks: 1, nodes: Nodes::Blocks(1), caps: Caps::weakest() };
//! let loopback = Loopback { regions: Mutex::default(), notices: Mutex::default(), started: Instant::now() };
//! let fabric = Fabric::new(ME, Arc::new(facts), loopback);
//! let program = async {
//!     let region = fabric.alloc_symmetric(16).await?;
//!     let word = fabric.remote_word::<u64>(region.at(ME, 8))?;
//!     fabric.put_word(&word, 40).await?;
//!     assert_eq!(fabric.fetch_add(&word, 2).await?, 40);
//!     assert_eq!(fabric.load(&region.word::<u64>(&fabric, 8)?)?, 42);
//!     drop(region);
//!     assert!(matches!(fabric.get_word(&word).await, Err(FabricError::StaleRegion { .. })));
//!     Ok::<_, FabricError>(())
//! };
//! join::now(program).expect("nothing is in flight")?;
//! # Ok::<_, FabricError>(())
//! ```

use crate::{
    AccessPolicy, Amo, Deps, Fabric, FabricError, Mapped, Notice, OwnedMemory, ProgramResult, Rank, Region, RegionKey,
    RemoteAddr, Result, Time, Uses,
};
use core::{
    any::Any,
    fmt,
    future::Future,
    num::NonZeroU64,
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};

pub mod barrier;
mod blocks;
pub mod control_queue;
mod forward;
mod in_flight;
mod multicast;
mod one_thread;
mod turn_cell;

pub use crate::{
    job::{JobFacts, Nodes},
    memory::{KeepAlive, Place, SHORT},
};
pub use barrier::{BarrierUnit, Colours};
pub use blocks::BlockPuts;
pub use control_queue::{Queue, QueueSide, Queues};
pub use in_flight::InFlightTable;
pub use multicast::Multicast;
pub use one_thread::OneThread;
pub use turn_cell::{Turn, TurnCell};

/// The code of a [helper](Fabric::helper): called once, by the helper's own task, with that task's
/// fabric.
pub type HelperTask = Box<dyn FnOnce(Fabric) -> Pin<Box<dyn Future<Output = ProgramResult<()>>>> + Send>;

/// A future behind a pointer: for rare calls.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// An operation that is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token(pub NonZeroU64);

/// The outcome of posting. Fits into two registers.
#[derive(Debug)]
pub enum Posted {
    /// Complete: the source may be reused, the sink is filled. Contains the word's value before an
    /// atomic, zero-extended.
    Complete(u64),
    /// In flight: to be polled by [`Provider::poll`], or abandoned by [`Provider::forget`].
    Pending(Token),
    /// Not posted: there is currently no room.
    Full,
    /// Not posted: it is impossible.
    Failed(FabricError),
}

impl Posted {
    /// Creates a refusal with this error.
    #[cold]
    pub fn failed(error: impl Into<FabricError>) -> Self {
        Posted::Failed(error.into())
    }
}

const _: () = assert!(size_of::<Posted>() <= 16);

/// The source of a put.
///
/// Bytes are borrowed for the call only, so a provider in safe code can't keep them to read them
/// later:
///
/// ```compile_fail,E0521
/// # use rdma_fabric::provider::Source;
/// fn post_late(later: &mut Vec<&'static [u8]>, from: Source<'_>) {
///     if let Source::Bytes(bytes) = from {
///         later.push(bytes);
///     }
/// }
/// ```
///
/// A copy of them can be kept:
///
/// ```
/// # use rdma_fabric::provider::Source;
/// fn post_late(later: &mut Vec<Vec<u8>>, from: Source<'_>) {
///     if let Source::Bytes(bytes) = from {
///         later.push(bytes.to_vec());
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// Taken, or copied, when the post returns.
    Bytes(&'a [u8]),
    /// Local registered memory.
    Place(&'a Place),
}

impl Source<'_> {
    /// Returns the number of bytes.
    #[inline]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        match self {
            Source::Bytes(bytes) => bytes.len(),
            Source::Place(place) => place.len(),
        }
    }
}

/// The destination of a get.
#[derive(Debug)]
pub enum Sink<'a> {
    /// Filled when the post returns [`Posted::Complete`], otherwise by [`Provider::poll`], to which
    /// the caller passes it again.
    Bytes(&'a mut [u8]),
    /// Local registered memory, filled when the operation completes. [`Provider::poll`] may be
    /// passed [`Sink::none`] instead.
    Place(&'a Place),
}

impl Sink<'_> {
    /// Returns the number of bytes.
    #[inline]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        match self {
            Sink::Bytes(bytes) => bytes.len(),
            Sink::Place(place) => place.len(),
        }
    }

    /// Returns a sink of no bytes.
    pub fn none() -> Self {
        Sink::Bytes(&mut [])
    }
}

/// What a wait waits for.
#[derive(Clone, Copy, Debug)]
pub enum WaitFor<'a> {
    /// A write to a word of this rank's own memory. The caller has checked the word without
    /// success.
    Word(&'a Place, Deps<'a>),
    /// A notice. The caller has checked for one without success.
    Notice(Deps<'a>),
    /// Room in this rank's queue and, if given, in that rank's notice queue: see [`Fabric::room`].
    Room(Option<Rank>),
    /// Visibility of the puts to one rank, or to all.
    Flush(Option<Rank>),
    /// This time.
    Until(Time),
    /// The end of this much work of this rank's CPU.
    Busy(Duration),
    /// The end of one pass of this rank's CPU, with this number of bytes, through this software
    /// layer.
    Charge(&'static str, usize),
}

/// A provider's state of a wait between two polls. All zero initially, and whenever the provider
/// has no state.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct WaitState(pub [u64; 4]);

impl WaitState {
    /// Returns whether there is no state.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }
}

/// The end of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The awaited event has occurred.
    Reached,
    /// The wait was given up, or failed.
    GivenUp,
}

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
    /// Starts a helper called `name` of the rank of `like`.
    fn helper(&self, like: &Fabric, name: &'static str, task: HelperTask) -> Result<()> {
        let _ = (like, name, task);
        Err(FabricError::Unsupported { feature: &"helpers" })
    }
}

/// Protected memory that others could use: see [`Fabric::protected`].
pub trait Protected {
    /// Creates another handle of the rank of `like`, which allocates such memory.
    fn open(&self, like: &Fabric, policy: AccessPolicy) -> Result<Fabric>;
    /// Returns whether a region is memory that its rank allocated by itself through a handle whose
    /// access policy is that of this one.
    ///
    /// # Errors
    /// As [`Provider::resolve`].
    fn holds(&self, rank: Rank, region: RegionKey) -> Result<bool> {
        let _ = (rank, region);
        Ok(false)
    }
    /// Deregisters memory that this handle's rank allocated by itself; its bytes are never reused.
    fn abandon(&self, region: Region) {
        drop(region);
    }
    /// Returns the location at which `rank`'s part of a region of this handle is mapped.
    fn mapped(&self, region: &Region, rank: Rank) -> Result<Mapped> {
        Err(FabricError::NotMapped { rank, region: region.key() })
    }
}

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
