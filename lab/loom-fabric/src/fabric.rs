//! One rank of a job under loom, and the provider of its fabric.

use crate::{Access, Delivery, Job, job::Actor, memory::CELL, operation::Operation};
use loom::sync::atomic::Ordering::{self, Acquire, Relaxed};
use rdma_fabric::{
    Amo, Atomics, Fabric, FabricError, Multicasts, Notice, Rank, Region, RegionKey, RemoteAddr, Result, Time, bytemuck,
    provider::{
        Boxed, Deferred, Ended, HelperTask, InFlightTable, JobFacts, Multicast, Nodes, OneThread, Place, Posted,
        Provider, Sink, Source, Token, WaitFor, WaitState,
    },
};
use std::{
    any::Any,
    fmt,
    ops::Deref,
    rc::Rc,
    slice,
    sync::Arc,
    task::{Context, Poll},
    thread,
};

/// One rank's access to a job under loom. All threads of the job are coroutines of one OS thread.
pub(crate) struct Modelled(OneThread<RankHandle>);

impl Modelled {
    /// Returns the fabric that is passed to the program of `me`.
    pub(crate) fn fabric(job: &Rc<Job>, me: Rank) -> Fabric {
        let ranks = job.config.ranks;
        let nodes = Nodes::Blocks(if job.config.together { ranks.max(1) } else { 1 });
        let mut caps = job.config.caps;
        (caps.puts_in_order, caps.third_party_copy) = (false, false);
        // With network-interface threads there are no threads left for helpers.
        caps.helpers &= job.config.delivery != Delivery::Nic;
        // The modelled network always has atomics.
        caps.atomics = caps.atomics.max(Atomics::Software);
        let facts = JobFacts { ranks, nodes, caps };
        Modelled::among(job, me, Arc::new(facts))
    }

    pub(crate) fn among(job: &Rc<Job>, me: Rank, facts: Arc<JobFacts>) -> Fabric {
        Fabric::new(me, facts, Modelled::handle(job, Actor::program(me)))
    }

    /// Returns the provider of a program or helper.
    pub(crate) fn handle(job: &Rc<Job>, me: Actor) -> Self {
        Modelled(OneThread::new(RankHandle::new(job.clone(), me)))
    }
}

impl Deref for Modelled {
    type Target = RankHandle;

    fn deref(&self) -> &RankHandle {
        &self.0
    }
}

impl fmt::Debug for Modelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Modelled({})", self.me())
    }
}

const NOTICES: FabricError = FabricError::Unsupported { feature: &"notices" };

impl Provider for Modelled {
    fn alloc(&self, bytes: usize) -> Result<Region> {
        let key = self.job().regions().alloc(self.me(), bytes)?;
        Ok(self.region(key, bytes))
    }

    fn alloc_symmetric(&self, bytes: usize) -> Boxed<'_, Result<Region>> {
        Box::pin(async move {
            let key = self.job().regions().alloc_symmetric(self.me(), bytes)?;
            Ok(self.region(key, bytes))
        })
    }

    fn resolve(&self, addr: RemoteAddr, len: usize, align: usize, width: usize) -> Result<Place> {
        self.job().regions().locate(addr, len, align, width)?;
        Ok(Place::remote(addr, len, self.job().keep_alive.clone()))
    }

    fn read(&self, from: &Place, into: &mut [u8], waiting: bool) -> Result<()> {
        if into.len() != CELL {
            return self.copy_out(from, into);
        }
        let (cell, addr) = (self.cell(from)?, from.addr());
        // Acquire: pairs with the release of puts, atomics and local stores.
        let bits = if waiting {
            self.job().cells.newest(self.me(), cell, self.order(Access::Wait(addr), Acquire))
        } else {
            self.job().cells.load(self.me(), cell, self.order(Access::Load(addr), Acquire))
        };
        into.copy_from_slice(&bits.to_ne_bytes());
        Ok(())
    }

    fn write(&self, to: &Place, from: &[u8], _waited: bool) -> Result<()> {
        // A guard of a failed model: loom has ended the execution, and a second panic would abort.
        if thread::panicking() {
            return Ok(());
        }
        let cell = self.cell(to)?;
        for (i, chunk) in from.chunks_exact(CELL).enumerate() {
            self.write_own(cell + i, bytemuck::pod_read_unaligned(chunk));
        }
        Ok(())
    }

    fn put(&self, to: &Place, from: Source<'_>, notice: Option<u64>) -> Posted {
        if notice.is_some() {
            return Posted::failed(NOTICES);
        }
        self.put_cells(slice::from_ref(to), from).unwrap_or_else(Posted::failed)
    }

    fn get(&self, from: &Place, to: Sink<'_>) -> Posted {
        self.get_cells(from, to).unwrap_or_else(Posted::failed)
    }

    fn atomic(&self, word: &Place, amo: Amo<u64>) -> Posted {
        self.change(word, amo).unwrap_or_else(Posted::failed)
    }

    fn nop(&self) -> Posted {
        self.posted(Default::default())
    }

    fn poll(&self, token: &mut Token, into: Sink<'_>, cx: &mut Context<'_>) -> Poll<Result<u64>> {
        self.result(*token, into, cx).map(Ok)
    }

    fn test(&self, token: &Token) -> bool {
        self.is_complete(*token)
    }

    fn forget(&self, token: Token) {
        drop(self.under_way.take(token));
    }

    fn try_notice(&self, _waiting: bool) -> Result<Option<Notice>> {
        Err(NOTICES)
    }

    fn poll_wait(&self, wait_state: &mut WaitState, wait_for: WaitFor<'_>, _: &mut Context<'_>) -> Poll<Result<()>> {
        match wait_for {
            WaitFor::Word(word, _) => {
                // Registration and the preceding check are one step: no write can occur in between.
                let cell = self.cell(word)?;
                self.job().wait_for_write(self.actor(), cell);
                Poll::Pending
            }
            WaitFor::Flush(target) => self.flush(wait_state, target),
            WaitFor::Until(at) => self.job().poll_clock(self.actor(), at.as_picos()).map(Ok),
            WaitFor::Notice(_) => Poll::Ready(Err(NOTICES)),
            WaitFor::Room(_) | WaitFor::Busy(_) | WaitFor::Charge(..) => Poll::Ready(Ok(())),
        }
    }

    /// Does nothing: waking a wait that has been dropped is harmless, and other waits leave no
    /// state behind.
    fn end_wait(&self, _: &mut WaitState, _: WaitFor<'_>, _: Ended) {}

    fn now(&self) -> Time {
        Time::from_picos(self.job().clock(self.me()))
    }

    fn detach(&self, deferred: Deferred<'_>) {
        self.job().detached.add(self.actor(), deferred.boxed());
    }

    fn multicast(&self) -> Option<&dyn Multicast> {
        (self.job.config.caps.multicasts > Multicasts::None).then_some(self)
    }

    fn helper(&self, like: &Fabric, name: &'static str, task: HelperTask) -> Result<()> {
        self.job.start_helper(like, self.me(), name, task)
    }
}

/// Any set of ranks is reachable; the members are served one after another.
impl Multicast for Modelled {
    fn reaches(&self, _: &[Rank]) -> Result<()> {
        Ok(())
    }

    fn multicast(&self, to: &[Place], from: Source<'_>) -> Posted {
        self.put_cells(to, from).unwrap_or_else(Posted::failed)
    }
}

/// A rank's handle in a job: inspection and control that tests need besides the fabric.
#[derive(Debug)]
pub struct RankHandle {
    job: Rc<Job>,
    me: Actor,
    pub(crate) under_way: InFlightTable<Operation>,
}

/// The owner's registration of a region. Dropping it frees the region.
#[derive(Debug)]
struct Registered {
    job: Rc<Job>,
    me: Rank,
    key: RegionKey,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.job.regions().free(self.me, self.key);
    }
}

impl RankHandle {
    pub(crate) fn new(job: Rc<Job>, me: Actor) -> Self {
        RankHandle { job, me, under_way: InFlightTable::default() }
    }

    /// Returns the handle of the rank to which `fabric` belongs.
    ///
    /// # Panics
    /// If `fabric` was not passed to a program by a job under loom.
    pub fn of(fabric: &Fabric) -> &RankHandle {
        let provider: &dyn Any = fabric.provider();
        let Some(modelled) = provider.downcast_ref::<Modelled>() else { panic!("{fabric:?} is not one under loom") };
        modelled
    }

    /// Returns the mutant "looks after its own only": a second handle of the rank of `fabric`,
    /// which does not execute operations that were armed with the first.
    #[must_use]
    pub fn apart(fabric: &Fabric) -> Fabric {
        let handle = RankHandle::of(fabric);
        Modelled::among(&handle.job, handle.me(), fabric.facts().clone())
    }

    pub(crate) fn me(&self) -> Rank {
        self.me.rank
    }

    pub(crate) fn actor(&self) -> Actor {
        self.me
    }

    /// Returns the job, for tests to inspect.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// Treats the local regions that `make` allocates as plain data, in which loom reports every
    /// race. Atomics and waits must not use them.
    pub fn watched<T>(&self, make: impl FnOnce() -> T) -> T {
        self.job.regions().watch(true);
        let made = make();
        self.job.regions().watch(false);
        made
    }

    /// Returns the memory order of an access: `order`, unless the mutant relaxes it.
    pub(crate) fn order(&self, access: Access, order: Ordering) -> Ordering {
        if (self.job.config.relaxed)(access) { Relaxed } else { order }
    }

    pub(crate) fn region(&self, key: RegionKey, len: usize) -> Region {
        let registered = Registered { job: self.job.clone(), me: self.me(), key };
        Region::new(key, len, None, OneThread::new(registered))
    }

    /// Returns the first cell of a place if its region still exists.
    ///
    /// # Errors
    /// [`FabricError::StaleRegion`]; [`FabricError::CellWidth`] for a part of a cell;
    /// [`FabricError::Unsupported`] for a place of another job.
    pub(crate) fn cell(&self, place: &Place) -> Result<usize> {
        if !place.has_keep_alive(&self.job().keep_alive) {
            return Err(FabricError::Unsupported { feature: &"a place of another provider" });
        }
        self.job.regions().cell(place.addr(), place.len())
    }

    /// Polls a flush. The wait state records that the flush has started and, if it waits for puts,
    /// the number of the last one.
    pub(crate) fn flush(&self, wait_state: &mut WaitState, target: Option<Rank>) -> Poll<Result<()>> {
        if wait_state.is_empty() {
            let ranks = self.job.config.ranks;
            if let Some(rank) = target.filter(|rank| rank.index() >= ranks) {
                return Poll::Ready(Err(FabricError::NoSuchRank { rank, ranks }));
            }
            wait_state.0 = [1, self.job.begin_flush(self.me, target), 0, 0];
        }
        if wait_state.0[1] > 0 && self.job.poll_delivered(self.me, wait_state.0[1]).is_pending() {
            return Poll::Pending;
        }
        *wait_state = WaitState::default();
        self.job.covered(self.me);
        Poll::Ready(Ok(()))
    }
}
