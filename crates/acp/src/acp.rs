//! [`Acp`]: initialization, finalization, and collective calls; `reset` starts over.

mod reset;

use crate::{
    AcpError, GlobalAddress, Handle, Options, Result,
    address::{MAX_COLOURS, MAX_RANKS, Tag},
    channel::Channels,
    directory::Resolver,
    shared::Shared,
    starter::Layout,
    state::State,
};
use core::{
    convert::Infallible,
    fmt,
    future::Future,
    sync::atomic::{
        AtomicI64, AtomicU32,
        Ordering::{Acquire, Relaxed, Release},
    },
};
use fabric_offload::ControlQueue;
use rdma_fabric::{
    Fabric, Group, Pod, Rank, RemoteAddr,
    provider::{Boxed, Turn},
};
use std::sync::{Arc, Mutex, PoisonError};

/// One rank's access to the global memory of a job.
///
/// Every rank creates one by [`Acp::init`]; clones represent the same rank. Ranks are numbered as
/// in the fabric until a [reset](Acp::reset) renumbers them.
///
/// ```
/// use acp::{Acp, Order};
/// use rdma_fabric::{Amo, Fabric, ProgramResult, Rank};
///
/// /// All ranks count in one word of rank 0's starter memory.
/// async fn count(fabric: Fabric) -> ProgramResult<()> {
///     let acp = Acp::init(&fabric).await?;
///     let counter = acp.starter(Rank::new(0))?;
///     acp.fetch(counter, Amo::Add(1u64)).await?;
///     acp.sync().await?;
///     assert_eq!(acp.load::<u64>(counter).await?, acp.ranks() as u64);
///     Ok(acp.finalize().await?)
/// }
/// # checks::documented::run(3, &count);
/// ```
#[derive(Clone)]
pub struct Acp {
    inner: Arc<Inner>,
}

struct Inner {
    fabric: Fabric,
    options: Options,
    state: Shared<State>,
    /// The last operation such that it and all earlier ones are complete, and all failures among
    /// them have been reported. Written only while the turn of `state` is held.
    settled: AtomicI64,
    /// The last operation known to be complete together with all earlier ones, visible or not. Written as
    /// `settled` is.
    over: AtomicI64,
    channels: Shared<Channels>,
    /// The number of this rank, which a reset changes.
    me: AtomicU32,
    /// All ranks; `None` while a collective call is in progress.
    world: Mutex<Option<Group>>,
}

impl fmt::Debug for Acp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Acp({:?}, {:?})", self.inner.fabric, self.inner.options)
    }
}

impl Acp {
    /// Initializes with the [default options](Options::default). Collective: returns once all ranks
    /// have called it; every rank's starter memory is then zero.
    ///
    /// # Errors
    /// As [`Acp::init_with`].
    pub fn init(fabric: &Fabric) -> impl Future<Output = Result<Self>> {
        Self::init_with(fabric, Options::default())
    }

    /// Initializes with these options. Collective.
    ///
    /// # Errors
    /// [`AcpError::Option`]; [`AcpError::Fabric`] if memory runs out, if options differ or if a
    /// rank is lost.
    pub fn init_with(fabric: &Fabric, options: Options) -> impl Future<Output = Result<Self>> {
        let fabric = fabric.clone();
        let started: Boxed<'static, Result<Self>> = Box::pin(async move {
            let options = options.checked()?;
            if fabric.ranks() > MAX_RANKS {
                return Err(AcpError::option("ranks", "at most 2097151", fabric.ranks()));
            }
            let mut world = Group::world(&fabric).await?;
            let layout = Layout::new(&fabric, &options);
            let memory = fabric.alloc_symmetric(layout.bytes()).await?;
            let resolver = Resolver::new(&fabric, layout, memory.key(), None);
            let table = channel_table(&resolver, fabric.rank())?;
            let channels = Channels::new(&fabric, fabric.rank(), table, options.channels)?;
            let channels = Shared::new(options.threads, channels);
            let state = State::new(memory, fabric.rank(), resolver, &options)?;
            if let Some(queue) = &state.queue {
                queue.running().await?;
            }
            let state = Shared::new(options.threads, state);
            let (settled, over) = (AtomicI64::new(0), AtomicI64::new(0));
            world.barrier().await?;
            let (me, world) = (AtomicU32::new(fabric.rank().number()), Mutex::new(Some(world)));
            Ok(Acp { inner: Arc::new(Inner { fabric, options, state, channels, settled, over, me, world }) })
        });
        started
    }

    /// Finalizes: completes all of this rank's operations, waits until all ranks have called this
    /// function, and frees every registration. Collective.
    ///
    /// # Errors
    /// An operation's failure that has not been reported yet, or the loss of a rank. All
    /// registrations are freed in either case.
    pub fn finalize(self) -> impl Future<Output = Result<()>> {
        let ended: Boxed<'static, Result<()>> = Box::pin(async move {
            let completed = self.complete_all().await;
            let met = self.sync().await;
            let is_last = Arc::strong_count(&self.inner) == 1;
            let ended = match self.with(|state| if is_last { state.queue.take() } else { None })? {
                Some(queue) => queue.end().await,
                None => Ok(()),
            };
            completed.and(met).and(ended)
        });
        ended
    }

    /// Aborts the whole job: prints `text`, with this rank's name, and ends it with exit code 1;
    /// all ranks have exited within a second. The program has to return the result of this call.
    ///
    /// # Errors
    /// Always: [`rdma_fabric::FabricError::Aborted`], or [`rdma_fabric::FabricError::Unsupported`]
    /// if a rank can't end its job.
    pub fn abort(&self, text: &str) -> Result<Infallible> {
        Ok(self.fabric().abort(text, 1)?)
    }

    /// Waits until all ranks have called this function. Does not complete operations: complete them
    /// first. Collective.
    ///
    /// # Errors
    /// [`AcpError::Overlapping`]; [`AcpError::Fabric`] if a rank is lost or has ended.
    pub fn sync(&self) -> impl Future<Output = Result<()>> {
        let met: Boxed<'_, Result<()>> = Box::pin(async move {
            let mut world = self.take_world("a sync")?;
            let met = self.while_serving(world.barrier()).await;
            self.give_world(world);
            met.map_err(|error| self.named(error))
        });
        met
    }

    /// Returns the values passed by all ranks, in the order of the fabric's ranks. Collective.
    pub(crate) async fn gather<T: Pod + Unpin>(&self, what: &'static str, value: T) -> Result<Vec<T>> {
        let mut world = self.take_world(what)?;
        let gathered = self.while_serving(world.allgather(value)).await;
        self.give_world(world);
        gathered.map_err(|error| self.named(error))
    }

    fn take_world(&self, what: &'static str) -> Result<Group> {
        let taken = self.inner.world.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.ok_or(AcpError::Overlapping { what })
    }

    fn give_world(&self, world: Group) {
        *self.inner.world.lock().unwrap_or_else(PoisonError::into_inner) = Some(world);
    }

    /// Returns this rank.
    #[inline]
    pub fn rank(&self) -> Rank {
        Rank::new(self.inner.me.load(Relaxed))
    }

    /// Returns the number of ranks.
    pub fn ranks(&self) -> usize {
        self.fabric().ranks()
    }

    /// Returns the number of colours: the network engines of a node, at least 1 and at most 4.
    pub fn colours(&self) -> usize {
        usize::from(ControlQueue::limits(self.fabric()).engines).clamp(1, MAX_COLOURS)
    }

    /// Returns the underlying fabric.
    #[inline]
    pub fn fabric(&self) -> &Fabric {
        &self.inner.fabric
    }

    /// Returns the options.
    pub fn options(&self) -> &Options {
        &self.inner.options
    }

    /// Returns the address of the first byte of a rank's starter memory, which follows from the
    /// rank alone.
    ///
    /// # Errors
    /// [`AcpError::NoSuchRank`].
    pub fn starter(&self, rank: Rank) -> Result<GlobalAddress> {
        self.reserved(rank, Tag::STARTER)
    }

    /// Returns the address of the first byte of a rank's part of a reserved region.
    pub(crate) fn reserved(&self, rank: Rank, tag: Tag) -> Result<GlobalAddress> {
        let ranks = self.ranks();
        if rank.index() >= ranks {
            return Err(AcpError::NoSuchRank { rank, ranks });
        }
        Ok(GlobalAddress::new(rank, 0, tag, 0))
    }

    /// Returns whether an operation and all earlier ones are known to be complete.
    #[inline(always)]
    pub(crate) fn is_settled(&self, handle: Handle) -> bool {
        // Acquire: pairs with the release in `settle`, so the completed operations happen before
        // the return.
        handle.0 <= self.inner.settled.load(Acquire)
    }

    /// Publishes that all operations up to this one are complete. The caller holds the turn of
    /// `state`.
    #[inline(always)]
    pub(crate) fn settle(&self, last: i64) {
        self.inner.settled.store(last, Release);
    }

    /// Returns whether an operation and all earlier ones are known to be over, visible or not.
    #[inline(always)]
    pub(crate) fn is_over(&self, handle: Handle) -> bool {
        handle.0 <= self.inner.over.load(Acquire)
    }

    /// Publishes that all operations up to this one are over. The caller holds the turn of `state`.
    #[inline(always)]
    pub(crate) fn passed(&self, last: i64) {
        self.inner.over.store(last, Release);
    }

    #[inline(always)]
    pub(crate) fn enter(&self) -> Result<Turn<'_, State>> {
        self.inner.state.enter()
    }

    /// Calls `used` with the channels of this rank.
    pub(crate) fn channels<Out>(&self, used: impl FnOnce(&mut Channels) -> Out) -> Result<Out> {
        self.inner.channels.with(used)
    }

    #[inline(always)]
    pub(crate) fn with<Out>(&self, used: impl FnOnce(&mut State) -> Out) -> Result<Out> {
        self.inner.state.with(used)
    }

    #[inline(always)]
    pub(crate) fn try_with<Out>(&self, used: impl FnOnce(&mut State) -> Result<Out>) -> Result<Out> {
        self.inner.state.with(used)?
    }
}

/// Returns the address of a rank's table of connection requests.
fn channel_table(memory: &Resolver, rank: Rank) -> Result<RemoteAddr> {
    let start = memory.layout().area(Tag::CHANNELS).map_or(0, |(start, _)| start);
    memory.world_at(rank, start)
}
