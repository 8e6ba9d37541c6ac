//! What a provider implements: words, bytes and places; nothing here is generic.
//!
//! `docs/fabric-contract.md`, *Providers* (V1 to V10), says what a [`Fabric`] relies on.
//!
//! # Places
//! Where memory is [mapped](Place::mapped), short accesses are made directly and the provider is
//! not asked; a comparison with a word of the place decides. What comes here is what isn't mapped,
//! is [hidden](Place::hidden), is long, or has gone.
//!
//! # Shapes
//! * An operation is [`Posted`]: over at once, or under way by a [`Token`], which the provider is asked about by [`Provider::poll`].
//! * A wait is a [`Goal`] and a [`Slot`], four words in which the provider remembers what it likes between two polls. What is waited for
//!   is looked at by the caller, so no closure is ever handed down.
//! * Memory is a [`Region`], whose `kept` deregisters it when it is dropped, and a [`Place`] in one.
//!
//! # Threads
//! A provider is `Send` and `Sync`, so that futures over any fabric are `Send`. Simulators, which live on one thread, check that they are
//! used there.

use crate::{
    Amo, Caps, Deps, Fabric, FabricError, Mapped, Node, Notice, OwnedMemory, Pact, Rank, Refused, Region, RemoteAddr,
    Result, Time, Uses,
    barrier::{BarrierLimits, GateId, Progress, Values, Wiring},
    control_queue::{Completion, MrqNotice, Pointers, Posting, QueueId, QueueLimits, QueueSpec, Stadd},
};
use core::{
    any::Any,
    fmt,
    future::Future,
    num::NonZeroU64,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use std::sync::Arc;

mod leftover;
mod tokens;

pub use leftover::Leftover;
pub use tokens::Tokens;

pub use crate::{
    one_thread::OneThread,
    place::{Anchor, Place, SHORT},
};

/// A future behind a pointer: for what is rare.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a job looks like to all its ranks; it does not change.
#[derive(Clone, Debug)]
pub struct JobFacts {
    /// How many ranks it has.
    pub ranks: usize,
    /// Where they run.
    pub nodes: Nodes,
    /// What the provider guarantees.
    pub caps: Caps,
}

/// Which node each rank runs on.
#[derive(Clone, Debug)]
pub enum Nodes {
    /// So many ranks a node, in order; at least 1.
    Blocks(usize),
    /// That of each rank. Nodes are numbered from 0 without gaps.
    Table(Arc<[u32]>),
}

impl JobFacts {
    pub(crate) fn node(&self, rank: Rank) -> Result<Node> {
        if rank.index() >= self.ranks {
            return Err(FabricError::NoSuchRank { rank, ranks: self.ranks });
        }
        Ok(Node::new(match &self.nodes {
            Nodes::Blocks(ranks) => (rank.index() / ranks) as u32,
            Nodes::Table(nodes) => nodes.get(rank.index()).copied().unwrap_or(0),
        }))
    }

    pub(crate) fn nodes(&self) -> usize {
        match &self.nodes {
            Nodes::Blocks(ranks) => self.ranks.div_ceil(*ranks),
            Nodes::Table(nodes) => nodes.iter().max().map_or(0, |last| *last as usize + 1),
        }
    }

    pub(crate) fn rank_on(&self, node: Node, number: usize) -> Option<Rank> {
        match &self.nodes {
            Nodes::Blocks(ranks) => {
                let rank = node.index().checked_mul(*ranks)?.checked_add(number)?;
                (number < *ranks && rank < self.ranks).then(|| Rank::new(rank as u32))
            }
            Nodes::Table(nodes) => {
                let there = nodes.iter().enumerate().filter(|(_, at)| **at as usize == node.index());
                there.map(|(rank, _)| Rank::new(rank as u32)).nth(number)
            }
        }
    }
}

/// An operation that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token(pub NonZeroU64);

/// What came of posting. Fits into two registers.
#[derive(Debug)]
pub enum Posted {
    /// It is over: the source may be used again, the sink is filled. For an atomic the word before, zero-extended.
    Over(u64),
    /// It is under way: to be asked about by [`Provider::poll`], or given up by [`Provider::forget`].
    Pending(Token),
    /// There is no room now.
    Full,
    /// It is impossible.
    Failed(FabricError),
}

impl Posted {
    /// It is impossible for this reason.
    #[cold]
    pub fn failed(error: impl Into<FabricError>) -> Self {
        Posted::Failed(error.into())
    }
}

const _: () = assert!(size_of::<Posted>() <= 16);

/// What a put moves.
#[derive(Debug)]
pub enum Source<'a> {
    /// Taken, or copied, when the post returns.
    Bytes(&'a [u8]),
    /// Own registered memory.
    Place(&'a Place),
}

impl Source<'_> {
    /// How many bytes.
    #[inline]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        match self {
            Source::Bytes(bytes) => bytes.len(),
            Source::Place(place) => place.len(),
        }
    }
}

/// Where a get delivers.
#[derive(Debug)]
pub enum Sink<'a> {
    /// Filled when the post returns [`Posted::Over`], otherwise by [`Provider::poll`], which is given it again.
    Bytes(&'a mut [u8]),
    /// Own registered memory.
    Place(&'a Place),
}

impl Sink<'_> {
    /// How many bytes.
    #[inline]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        match self {
            Sink::Bytes(bytes) => bytes.len(),
            Sink::Place(place) => place.len(),
        }
    }

    /// Nothing.
    pub fn none() -> Self {
        Sink::Bytes(&mut [])
    }
}

/// What a wait waits for.
#[derive(Clone, Copy, Debug)]
pub enum Goal<'a> {
    /// A write to a word of own memory. The caller has looked at it in vain.
    Word(&'a Place, Deps<'a>),
    /// A notice. The caller has looked in vain.
    Notice(Deps<'a>),
    /// Room in the own queue and, if given, in that rank's notice queue: see [`crate::Fabric::room`].
    Room(Option<Rank>),
    /// Puts to one rank, or to all, are visible.
    Flush(Option<Rank>),
    /// The time has come.
    Until(Time),
    /// This rank's CPU was busy for so long.
    Busy(Duration),
    /// It was busy with one pass through this software layer.
    Charge(&'static str),
}

/// What a provider remembers of a wait between two polls. All zero at first, and when it remembers nothing.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Slot(pub [u64; 4]);

impl Slot {
    /// Whether nothing is remembered.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// What was waited for has come.
    Reached,
    /// It was given up, or failed.
    GivenUp,
}

/// What a provider keeps of a region; dropping it deregisters.
pub trait Kept: Any + fmt::Debug + Send + Sync {}

impl<T: Any + fmt::Debug + Send + Sync> Kept for T {}

/// One rank's access to a job: what a network has to offer.
///
/// Each method stands for the one of [`crate::Fabric`] that is named alike; what that promises is to be kept here. Places are
/// own ones or those of other ranks as the method says, and were resolved by this provider; one of another is refused, or leads nowhere.
#[allow(clippy::missing_errors_doc)]
pub trait Provider: Any + fmt::Debug + Send + Sync {
    // ----- memory ----------------------------------------------------------------------------

    /// Register zeroed bytes.
    fn alloc(&self, bytes: usize) -> Result<Region>;
    /// Register zeroed bytes under the same key everywhere.
    fn alloc_symmetric(&self, bytes: usize) -> Boxed<'_, Result<Region>>;
    /// Register memory that exists.
    fn adopt(&self, memory: OwnedMemory, uses: Uses) -> Result<Region, (FabricError, OwnedMemory)> {
        let _ = uses;
        Err((FabricError::Unsupported { feature: &"registering memory that exists" }, memory))
    }
    /// Deregister what was adopted, and give it back when no operation is inside.
    fn release(&self, region: Region) -> Boxed<'_, Result<OwnedMemory>> {
        drop(region);
        Box::pin(async { Err(FabricError::Unsupported { feature: &"giving memory back that was allocated" }) })
    }
    /// Where `len` bytes are that start at a multiple of `align`, for accesses of `width` bytes.
    fn resolve(&self, addr: RemoteAddr, len: usize, align: usize, width: usize) -> Result<Place>;
    /// Copy own memory out. 4 or 8 aligned bytes are one word (acquire). `waiting` says that the reader waits for that word: what comes next is
    /// [`Provider::poll_wait`], or [`Provider::end_wait`].
    fn read(&self, from: &Place, into: &mut [u8], waiting: bool) -> Result<()>;
    /// Copy into own memory; 4 or 8 aligned bytes are one word (release). `waited` says that a task of this rank may wait for it.
    fn write(&self, to: &Place, from: &[u8], waited: bool) -> Result<()>;
    /// A place was written directly, and its owner may be parked.
    fn ring(&self, place: &Place) {
        let _ = place;
    }

    // ----- operations ------------------------------------------------------------------------

    /// Post a put, with a notice if there is data for one.
    fn put(&self, to: &Place, from: Source<'_>, notice: Option<u64>) -> Posted;
    /// Post a get.
    fn get(&self, from: &Place, to: Sink<'_>) -> Posted;
    /// Post an atomic on a word, as long as the place.
    fn atomic(&self, word: &Place, amo: Amo<u64>) -> Posted;
    /// Post nothing.
    fn nop(&self) -> Posted;
    /// How an operation stands. One that is over gives the word before, or 0, fills `into`, and its token is void. Until then the token is the
    /// provider's to change.
    ///
    /// Who polls with a waker that wakes nobody ([`Waker::noop`](core::task::Waker::noop)) takes a
    /// result without a wait: to him is over what [`Provider::test`] says is over.
    fn poll(&self, token: &mut Token, into: Sink<'_>, cx: &mut Context<'_>) -> Poll<Result<u64>>;
    /// Whether an operation is over; its result stays.
    fn test(&self, token: &Token) -> bool;
    /// Nobody wants to know how an operation ends. It goes on all the same.
    fn forget(&self, token: Token);

    // ----- waiting and time ------------------------------------------------------------------

    /// Take the oldest notice. `waiting` is as of [`Provider::read`].
    fn try_notice(&self, waiting: bool) -> Result<Option<Notice>>;
    /// Whether a goal is reached; of a word or a notice, whether it is to be looked at again. If it is pending, `cx` will be woken.
    fn poll_wait(&self, slot: &mut Slot, goal: Goal<'_>, cx: &mut Context<'_>) -> Poll<Result<()>>;
    /// A wait has ended. Called for every slot that is not empty, and for every word that was read by somebody `waiting`.
    fn end_wait(&self, slot: &mut Slot, goal: Goal<'_>, ended: Ended);
    /// The time now.
    fn now(&self) -> Time;
    /// Run what a dropped future still owes.
    fn detach(&self, rest: Leftover<'_>);

    // ----- what not every network has --------------------------------------------------------

    /// Control queues.
    fn queues(&self) -> Option<&dyn Queues> {
        None
    }
    /// A barrier unit.
    fn gates(&self) -> Option<&dyn Gates> {
        None
    }
    /// Memory without a key.
    fn keyless(&self) -> Option<&dyn Keyless> {
        None
    }
}

/// Memory that has no key for others: see [`crate::Fabric::keyless`].
#[allow(clippy::missing_errors_doc)]
pub trait Keyless {
    /// Another handle of the rank of `like`, which allocates such memory.
    fn open(&self, like: &Fabric, pact: Pact) -> Result<Fabric>;
    /// Where `rank`'s part of a region of this handle is mapped.
    fn mapped(&self, region: &Region, rank: Rank) -> Result<Mapped> {
        Err(FabricError::NotMapped { rank, region: region.key() })
    }
}

/// The control queues of a rank: see [`Fabric::open_queue`].
#[allow(clippy::missing_errors_doc)]
pub trait Queues {
    /// What there is.
    fn limits(&self) -> QueueLimits;
    /// Open one.
    fn open(&self, spec: QueueSpec) -> Result<Box<dyn Queue>>;
}

/// What a wait at a queue waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// A completion. The caller has looked in vain.
    Completion,
    /// A notice. The caller has looked in vain.
    Notice,
}

/// An open control queue: see [`crate::ControlQueue`].
#[allow(clippy::missing_errors_doc)]
pub trait Queue: Any + fmt::Debug + Send + Sync {
    /// Its name.
    fn id(&self) -> QueueId;
    /// How it was opened.
    fn spec(&self) -> QueueSpec;
    /// Where it stands.
    fn pointers(&self) -> Pointers;
    /// Register a region, under the fixed tag if one is given.
    fn register(&self, region: &Region, fixed: Option<u8>) -> Result<Stadd>;
    /// Refuse writes of peers, or allow them.
    fn set_read_only(&self, at: Stadd, read_only: bool) -> Result<()>;
    /// End a registration.
    fn deregister(&self, at: Stadd) -> Result<()>;
    /// Post as many as find room, before those who wait for it; how many, and why not all.
    fn try_post(&self, postings: &[Posting]) -> (usize, Result<(), Refused<()>>);
    /// Post one in the order of those who wait for room.
    fn poll_post(&self, slot: &mut Slot, posting: &Posting, deps: Deps<'_>, cx: &mut Context<'_>) -> Poll<Result<()>>;
    /// The next completion.
    fn poll_tcq(&self) -> Result<Option<Completion>>;
    /// The next notice.
    fn poll_mrq(&self) -> Result<Option<MrqNotice>>;
    /// Whether to look again.
    fn poll_wait(&self, slot: &mut Slot, side: Side, deps: Deps<'_>, cx: &mut Context<'_>) -> Poll<Result<()>>;
    /// A wait has ended, at a `side` or, without one, for room. Called for every slot that is not empty. What was waited for was found by
    /// the poll of that side just before.
    fn end_wait(&self, slot: &mut Slot, side: Option<Side>, ended: Ended);
    /// Close it; how many commands never started.
    fn close(self: Box<Self>) -> Result<u64>;
}

/// The barrier unit of a rank: see [`Fabric::alloc_gates`].
#[allow(clippy::missing_errors_doc)]
pub trait Gates {
    /// What the unit has.
    fn limits(&self) -> BarrierLimits;
    /// Take a start/end gate and relay gates.
    fn take(&self, relays: usize) -> Result<Vec<GateId>>;
    /// Give gates back.
    fn free(&self, gates: &[GateId]);
    /// Set wires.
    fn set(&self, wirings: &[Wiring]) -> Result<()>;
    /// Start an operation.
    fn start(&self, gate: GateId, values: Values) -> Result<()>;
    /// How it stands.
    fn test(&self, gate: GateId, deps: Deps<'_>) -> Result<Progress>;
    /// Wait for it.
    fn poll(&self, slot: &mut Slot, gate: GateId, deps: Deps<'_>, cx: &mut Context<'_>)
    -> Poll<Result<Option<Values>>>;
    /// The wait has ended. Called for every slot that is not empty.
    fn end_wait(&self, slot: &mut Slot);
}
