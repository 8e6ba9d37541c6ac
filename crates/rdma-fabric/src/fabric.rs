//! The contract: what a provider implements and what a program may rely on.
//!
//! `docs/fabric-contract.md` states it sentence by sentence; the conformance suite holds every provider to
//! it.

use crate::{
    Amo, AtomicWord, Caps, Deps, FabricError, GetSink, LocalSpan, LocalWord, Location, Mapped, Node, Notice, OpHandle,
    Operation, OwnedMemory, Pact, PutOptions, PutSource, Rank, Refused, Region, RegisterError, Registered, RemoteAddr,
    RemoteSpan, RemoteWord, Result, Time, Triggers, Uses,
    join::{Either, race},
    op::{self, Performing},
};
use bytemuck::Pod;
use core::{
    fmt,
    future::{Future, ready},
    time::Duration,
};

/// One rank's access to the job: identity, memory, operations, waiting, time.
///
/// Cloning is cheap and yields another handle of the same rank.
///
/// *Post* gives an operation to the network; it is *complete* when its handle says so (source
/// reusable, result here); a put is *visible* after [`Fabric::flush`]. Three things, three methods.
///
/// Operations of one rank to one target are executed in the order they are posted only as far as
/// [`Caps::put_order`] says; everything else needs a flush or an awaited handle in between.
///
/// Futures returned here carry no `Send` bound: those of a simulator are not, those of shared
/// memory are.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a fabric",
    label = "this is no rank's access to a job",
    note = "pass the fabric itself, not a reference to it: `fabric.clone()` is cheap, and the same rank"
)]
pub trait Fabric: Clone + fmt::Debug + 'static {
    /// A resolved place in registered memory.
    type Loc: Location;
    /// Memory registered by this rank.
    type Region: Region + 'static;
    /// The handle of a posted operation.
    type Handle<T: Unpin + 'static>: OpHandle<T>;

    // ----- identity --------------------------------------------------------------------------

    /// Who I am.
    fn rank(&self) -> Rank;

    /// How many ranks the job has.
    fn ranks(&self) -> usize;

    /// The machine a rank runs on.
    ///
    /// # Errors
    /// [`FabricError::NoSuchRank`].
    fn node(&self, rank: Rank) -> Result<Node>;

    /// How many nodes the job has: each has a rank, and is numbered below this.
    ///
    /// Provided by asking for each rank's node; providers know it.
    fn nodes(&self) -> usize {
        let nodes = (0..self.ranks()).filter_map(|rank| self.node(Rank::new(rank as u32)).ok());
        nodes.map(|node| node.index() + 1).max().unwrap_or(0)
    }

    /// The rank that has `number` on `node`, counted from 0 in order of ranks; `None` if the node has no so many, or does not exist.
    ///
    /// Provided by asking for each rank's node; providers know it.
    fn rank_on(&self, node: Node, number: usize) -> Option<Rank> {
        let ranks = (0..self.ranks()).map(|rank| Rank::new(rank as u32));
        ranks.filter(|rank| self.node(*rank) == Ok(node)).nth(number)
    }

    /// What this provider guarantees beyond the contract.
    fn caps(&self) -> Caps;

    /// What this rank has [armed](crate::triggered) and not carried out: the same for all handles of the rank. A wrapper of another fabric has its own.
    fn triggers(&self) -> &Triggers<Self>;

    // ----- memory ----------------------------------------------------------------------------

    /// Register `bytes` zeroed bytes of own memory. Local: peers learn the key by other means.
    ///
    /// # Errors
    /// [`FabricError::OutOfMemory`], [`FabricError::TooManyRegions`].
    fn alloc(&self, bytes: usize) -> Result<Self::Region>;

    /// Register `bytes` zeroed bytes on *every* rank under one key.
    ///
    /// Collective: all ranks call it, in the same order relative to other symmetric allocations and
    /// with the same size. When it returns, every rank's part can be reached. Dropping a symmetric region
    /// frees the rank's own part; its place is used again only for symmetric allocations and only after all parts
    /// are dropped in the same order everywhere.
    ///
    /// # Errors
    /// As [`Fabric::alloc`], and [`FabricError::Mismatch`] when sizes differ.
    fn alloc_symmetric(&self, bytes: usize) -> impl Future<Output = Result<Self::Region>>;

    /// Register memory that was allocated elsewhere: what a provider implements of [`Fabric::register`].
    ///
    /// # Errors
    /// As [`Fabric::register`], with the memory.
    fn adopt(&self, memory: OwnedMemory, uses: Uses) -> Result<Self::Region, (FabricError, OwnedMemory)> {
        let _ = uses;
        Err((FabricError::Unsupported { feature: "registering memory that exists" }, memory))
    }

    /// Deregister what [`Fabric::adopt`] registered, wait until no operation is inside, and give it back: what a
    /// provider implements of [`crate::Registered::take`].
    ///
    /// # Errors
    /// As [`crate::Registered::take`].
    fn release(&self, region: Self::Region) -> impl Future<Output = Result<OwnedMemory>> {
        drop(region);
        ready(Err(FabricError::Unsupported { feature: "giving memory back that was allocated" }))
    }

    /// Another handle of this rank, whose [symmetric allocations](Fabric::alloc_symmetric) are *locked regions*: they have no key
    /// for others. This handle and its clones resolve addresses in them; every other handle of any rank, control queues too, refuses with
    /// [`FabricError::Locked`]. All else it does as this one, but that it has no local allocations and registers nothing.
    ///
    /// Ranks allocate together that have made their handles with the same [`Pact`], and have allocated as often through them;
    /// otherwise it is a [`FabricError::Mismatch`]. [`Caps::locked_memory`] tells whether there is such memory.
    ///
    /// # Errors
    /// [`FabricError::Unsupported`].
    fn keyless(&self, pact: Pact<Self>) -> Result<Self> {
        let _ = pact;
        Err(FabricError::Unsupported { feature: "memory without a key" })
    }

    /// Where `rank`'s part of a region is in this process's memory, if the region was allocated through this handle, that was made
    /// with a pact that [allows references](Pact::references), and the provider maps it.
    ///
    /// # Errors
    /// [`FabricError::NotMapped`], [`FabricError::NoSuchRank`], [`FabricError::PeerLost`].
    fn mapped(&self, region: &Self::Region, rank: Rank) -> Result<Mapped<Self>> {
        Err(FabricError::NotMapped { rank, region: region.key() })
    }

    /// Resolve `len` bytes at `addr`, aligned to `align`, for accesses of `width` bytes.
    ///
    /// # Errors
    /// [`FabricError::NoSuchRank`], [`FabricError::NoSuchRegion`], [`FabricError::StaleRegion`], [`FabricError::Locked`],
    /// [`FabricError::OutOfBounds`], [`FabricError::Misaligned`], [`FabricError::CellWidth`], [`FabricError::PeerLost`].
    fn locate(&self, addr: RemoteAddr, len: usize, align: usize, width: usize) -> Result<Self::Loc>;

    /// Load a word of own memory: what peers' visible puts and atomics left there, and everything
    /// they made visible before (acquire).
    ///
    /// # Errors
    /// [`FabricError::StaleRegion`].
    fn load<W: AtomicWord>(&self, word: &LocalWord<Self, W>) -> Result<W>;

    /// Store a word of own memory, after everything stored before (release). Not atomic with peers'
    /// read-modify-writes unless [`Caps::coherent_atomics`].
    ///
    /// # Errors
    /// [`FabricError::StaleRegion`].
    fn store<W: AtomicWord>(&self, word: &LocalWord<Self, W>, value: W) -> Result<()>;

    /// Copy own registered memory out. If peers write it meanwhile, each byte is an old or a new one.
    ///
    /// # Errors
    /// [`FabricError::StaleRegion`], [`FabricError::LengthMismatch`].
    fn read<T: Pod>(&self, span: &LocalSpan<Self, T>, into: &mut [T]) -> Result<()>;

    /// Copy into own registered memory.
    ///
    /// # Errors
    /// [`FabricError::StaleRegion`], [`FabricError::LengthMismatch`].
    fn write<T: Pod>(&self, span: &LocalSpan<Self, T>, from: &[T]) -> Result<()>;

    // ----- operations: what a provider implements --------------------------------------------------

    /// Post a put. Callers have checked that the lengths agree; providers check again before they copy.
    ///
    /// # Errors
    /// [`Refused`], with the source.
    fn try_put<T: Pod, S: PutSource<Self, T>>(
        &self,
        to: &RemoteSpan<Self, T>,
        from: S,
        options: PutOptions,
    ) -> Result<Self::Handle<S>, Refused<S>>;

    /// Post a get.
    ///
    /// # Errors
    /// [`Refused`], with the sink.
    fn try_get<T: Pod, D: GetSink<Self, T>>(
        &self,
        from: &RemoteSpan<Self, T>,
        to: D,
    ) -> Result<Self::Handle<D>, Refused<D>>;

    /// Post an atomic. It is atomic against every other rank's atomics on the same word.
    ///
    /// # Errors
    /// [`Refused`].
    fn try_atomic<W: AtomicWord>(
        &self,
        word: &RemoteWord<Self, W>,
        amo: Amo<W>,
    ) -> Result<Self::Handle<W>, Refused<()>>;

    /// Post an operation that does nothing, in order with the others.
    ///
    /// # Errors
    /// [`Refused`].
    fn try_nop(&self) -> Result<Self::Handle<()>, Refused<()>>;

    /// Wait until posting is worth another try: own queue, and `target`'s notice queue if given. First
    /// come, first served in own queues; the caller posts at once after it. No order is promised among those
    /// that want room in a target's notice queue.
    ///
    /// # Errors
    /// [`FabricError::PeerLost`] of the target; [`FabricError::PeersLeft`] if it has left and its notice queue is full.
    fn room(&self, target: Option<Rank>) -> impl Future<Output = Result<()>>;

    /// Wait until every put posted to `target` before is visible there.
    ///
    /// # Errors
    /// [`FabricError::PeerLost`], [`FabricError::NoSuchRank`], or the first error that one of those puts
    /// met at its target since the last flush of it.
    fn flush(&self, target: Rank) -> impl Future<Output = Result<()>>;

    /// [`Fabric::flush`] for all targets.
    ///
    /// # Errors
    /// As [`Fabric::flush`].
    fn flush_all(&self) -> impl Future<Output = Result<()>>;

    // ----- waiting ---------------------------------------------------------------------------

    /// Wait until a word of own memory satisfies `until`, and return it.
    ///
    /// What was visible when the writer wrote that value is visible to the caller (acquire).
    ///
    /// # Errors
    /// [`FabricError::PeerLost`], [`FabricError::PeersLeft`], [`FabricError::Deadlock`], [`FabricError::StaleRegion`].
    fn wait_until<W: AtomicWord>(
        &self,
        word: &LocalWord<Self, W>,
        deps: Deps<'_>,
        until: impl FnMut(W) -> bool,
    ) -> impl Future<Output = Result<W>>;

    /// The next notice, if one is here.
    ///
    /// # Errors
    /// [`FabricError::Corrupt`].
    fn try_notice(&self) -> Result<Option<Notice>>;

    /// Wait for the next notice. Notices of one poster arrive in posting order.
    ///
    /// # Errors
    /// As [`Fabric::wait_until`].
    fn next_notice(&self, deps: Deps<'_>) -> impl Future<Output = Result<Notice>>;

    // ----- time ------------------------------------------------------------------------------

    /// The time now.
    fn now(&self) -> Time;

    /// Wait until `at`.
    fn sleep_until(&self, at: Time) -> impl Future<Output = ()>;

    /// Let this rank's CPU be busy for `duration`: virtual time passes, wall-clock time does not (real work
    /// takes its own).
    fn compute(&self, duration: Duration) -> impl Future<Output = ()>;

    /// Account for one pass through a named software layer. Virtual time charges what the platform's
    /// table says for it (nothing if it doesn't know the name); on wall clock it is free.
    fn charge(&self, layer: &'static str) -> impl Future<Output = ()>;

    // ----- dropped futures -------------------------------------------------------------------

    /// Run `rest` to its end as part of this rank, though nobody awaits it: what a future that is being dropped still
    /// owes others. The rank has not ended before `rest` has.
    ///
    /// `rest` may post operations, await their handles and flush. It must not wait for words, notices, room in a
    /// target's notice queue or time: what it awaits must come by itself. A provider whose operations are over when
    /// they are posted polls it once, here; one that is not over then is reported on standard error and dropped (and
    /// fails a debug assertion). Called for a rank that has ended already, it drops `rest`.
    fn detach(&self, rest: impl Future<Output = ()> + 'static);

    // ----- provided --------------------------------------------------------------------------

    /// [`Fabric::store`] to a word that no task of this rank waits for: one that does need not be woken by it.
    ///
    /// # Errors
    /// As [`Fabric::store`].
    #[inline(always)]
    fn store_unwaited<W: AtomicWord>(&self, word: &LocalWord<Self, W>, value: W) -> Result<()> {
        self.store(word, value)
    }

    /// Wait for `duration`.
    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> {
        self.sleep_until(self.now() + duration)
    }

    /// Run `future` until it is done or `at` has come; `None` drops it unfinished. What dropping means
    /// is part of every protocol's documentation.
    fn before<T: Future>(&self, at: Time, future: T) -> impl Future<Output = Option<T::Output>> {
        async move {
            match race(future, self.sleep_until(at)).await {
                Either::First(out) => Some(out),
                Either::Second(()) => None,
            }
        }
    }

    /// Register memory that this rank has: it is handed over, peers reach it by key like any region, and
    /// [`Registered::take`] gives it back. A boxed slice becomes a vector by `into_vec`, which moves no bytes.
    ///
    /// Local: peers learn the key by other means. [`Caps::register_existing`] tells how it is reached; where that is
    /// [`crate::Existing::CrossCopy`], atomics on it are refused.
    ///
    /// # Errors
    /// [`RegisterError`] with the memory: [`FabricError::Unsupported`], [`FabricError::OutOfMemory`],
    /// [`FabricError::TooManyRegions`], [`FabricError::System`].
    fn register<T: Pod + Send + Sync>(&self, memory: Vec<T>) -> Result<Registered<Self, T>, RegisterError<T>> {
        Registered::new(self, memory, Uses::Transfers)
    }

    /// [`Fabric::register`] for memory that peers use with atomics: staged where it can't have them itself.
    ///
    /// # Errors
    /// As [`Fabric::register`].
    fn register_for_atomics<T: Pod + Send + Sync>(
        &self,
        memory: Vec<T>,
    ) -> Result<Registered<Self, T>, RegisterError<T>> {
        Registered::new(self, memory, Uses::Atomics)
    }

    /// Resolve a word of some rank's memory.
    ///
    /// # Errors
    /// As [`Fabric::locate`].
    fn remote_word<W: AtomicWord>(&self, addr: RemoteAddr) -> Result<RemoteWord<Self, W>> {
        self.locate(addr, W::BYTES, W::BYTES, W::BYTES).map(RemoteWord::new)
    }

    /// Resolve `len` elements of some rank's memory.
    ///
    /// # Errors
    /// As [`Fabric::locate`].
    fn remote_span<T: Pod>(&self, addr: RemoteAddr, len: usize) -> Result<RemoteSpan<Self, T>> {
        self.locate(addr, bytes_of::<T>(addr, len)?, align_of::<T>(), size_of::<T>())
            .map(|loc| RemoteSpan::new(loc, len))
    }

    /// Resolve a word of own memory.
    ///
    /// # Errors
    /// As [`Fabric::locate`], and [`FabricError::Unsupported`] if `addr` is another rank's.
    fn local_word<W: AtomicWord>(&self, addr: RemoteAddr) -> Result<LocalWord<Self, W>> {
        own(self.rank(), addr)?;
        self.locate(addr, W::BYTES, W::BYTES, W::BYTES).map(LocalWord::new)
    }

    /// Resolve `len` elements of own memory.
    ///
    /// # Errors
    /// As [`Fabric::local_word`].
    fn local_span<T: Pod>(&self, addr: RemoteAddr, len: usize) -> Result<LocalSpan<Self, T>> {
        own(self.rank(), addr)?;
        self.locate(addr, bytes_of::<T>(addr, len)?, align_of::<T>(), size_of::<T>())
            .map(|loc| LocalSpan::new(loc, len))
    }

    /// Post `op`, or give it back. Never blocks.
    ///
    /// # Errors
    /// [`Refused`], with the operation.
    #[inline(always)]
    fn try_post<O: Operation<Self>>(&self, op: O) -> Result<Self::Handle<O::Output>, Refused<O>> {
        op.start(self)
    }

    /// Post `op`, waiting for room if need be.
    ///
    /// # Errors
    /// What makes the operation impossible. Its buffer is dropped then; use [`Fabric::try_post`] to keep it.
    #[inline(always)]
    fn post<O: Operation<Self>>(&self, op: O) -> impl Future<Output = Result<Self::Handle<O::Output>>> {
        op::starting!(self, op)
    }

    /// Put and wait until the source is reusable; it comes back.
    ///
    /// # Errors
    /// As [`Fabric::post`], [`FabricError::LengthMismatch`].
    #[inline(always)]
    fn put<T: Pod, S: PutSource<Self, T>>(&self, to: &RemoteSpan<Self, T>, from: S) -> impl Future<Output = Result<S>> {
        Performing::new(op::starting!(self, op::Put { to, from, options: PutOptions::default() }))
    }

    /// Put with a notice at the target, and wait until the source is reusable.
    ///
    /// # Errors
    /// As [`Fabric::put`], [`FabricError::NoticeTooWide`].
    #[inline(always)]
    fn put_notify<T: Pod, S: PutSource<Self, T>>(
        &self,
        to: &RemoteSpan<Self, T>,
        from: S,
        data: u64,
    ) -> impl Future<Output = Result<S>> {
        let options = PutOptions { notice: Some(data) };
        Performing::new(op::starting!(self, op::Put { to, from, options }))
    }

    /// Put one word and wait until it has left. Written whole, never torn.
    ///
    /// # Errors
    /// As [`Fabric::put`].
    #[inline]
    fn put_word<W: AtomicWord>(&self, to: &RemoteWord<Self, W>, value: W) -> impl Future<Output = Result<()>> {
        async move { self.put(&to.as_span(), [value]).await.map(drop) }
    }

    /// Get into `to` and give it back filled.
    ///
    /// # Errors
    /// As [`Fabric::post`], [`FabricError::LengthMismatch`].
    #[inline(always)]
    fn get<T: Pod, D: GetSink<Self, T>>(&self, from: &RemoteSpan<Self, T>, to: D) -> impl Future<Output = Result<D>> {
        Performing::new(op::starting!(self, op::Get { from, to }))
    }

    /// Get one word. Read whole, never torn.
    ///
    /// # Errors
    /// As [`Fabric::get`].
    #[inline]
    fn get_word<W: AtomicWord>(&self, from: &RemoteWord<Self, W>) -> impl Future<Output = Result<W>> {
        async move { self.get(&from.as_span(), [W::from_bits(0)]).await.map(|[word]| word) }
    }

    /// Any atomic; returns the value before.
    ///
    /// # Errors
    /// As [`Fabric::post`].
    #[inline(always)]
    fn atomic<W: AtomicWord>(&self, word: &RemoteWord<Self, W>, amo: Amo<W>) -> impl Future<Output = Result<W>> {
        Performing::new(op::starting!(self, op::Atomic { word, amo }))
    }

    /// Add, wrapping; returns the value before.
    ///
    /// # Errors
    /// As [`Fabric::post`].
    #[inline(always)]
    fn fetch_add<W: AtomicWord>(&self, word: &RemoteWord<Self, W>, add: W) -> impl Future<Output = Result<W>> {
        self.atomic(word, Amo::Add(add))
    }

    /// Store; returns the value before (fetch-and-store).
    ///
    /// # Errors
    /// As [`Fabric::post`].
    #[inline(always)]
    fn swap<W: AtomicWord>(&self, word: &RemoteWord<Self, W>, new: W) -> impl Future<Output = Result<W>> {
        self.atomic(word, Amo::Swap(new))
    }

    /// Store `new` if the word equals `expected`; returns the value before.
    ///
    /// # Errors
    /// As [`Fabric::post`].
    #[inline(always)]
    fn compare_swap<W: AtomicWord>(
        &self,
        word: &RemoteWord<Self, W>,
        expected: W,
        new: W,
    ) -> impl Future<Output = Result<W>> {
        self.atomic(word, Amo::CompareSwap { expected, new })
    }

    /// Or; returns the value before.
    ///
    /// # Errors
    /// As [`Fabric::post`].
    #[inline(always)]
    fn fetch_or<W: AtomicWord>(&self, word: &RemoteWord<Self, W>, bits: W) -> impl Future<Output = Result<W>> {
        self.atomic(word, Amo::Or(bits))
    }

    /// And; returns the value before.
    ///
    /// # Errors
    /// As [`Fabric::post`].
    #[inline(always)]
    fn fetch_and<W: AtomicWord>(&self, word: &RemoteWord<Self, W>, bits: W) -> impl Future<Output = Result<W>> {
        self.atomic(word, Amo::And(bits))
    }
}

fn own(me: Rank, addr: RemoteAddr) -> Result<()> {
    if addr.rank == me {
        Ok(())
    } else {
        Err(FabricError::Unsupported { feature: "local access to another rank's memory" })
    }
}

fn bytes_of<T>(addr: RemoteAddr, len: usize) -> Result<usize> {
    len.checked_mul(size_of::<T>()).ok_or(FabricError::OutOfBounds {
        rank: addr.rank,
        region: addr.region,
        offset: addr.offset,
        len: u64::MAX,
        region_len: 0,
    })
}
