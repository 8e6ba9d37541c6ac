//! The contract.

use crate::{Access, Job, LoomHandle, Place, memory::CELL};
use loom::sync::atomic::Ordering::{self, Acquire, Relaxed};
use rdma_fabric::{
    Amo, AtomicWord, Caps, Deps, Fabric, FabricError, GetSink, LocalSpan, LocalWord, Node, Notice, Pod, PutOptions,
    PutSource, Rank, Refused, Region, RegionKey, RemoteAddr, RemoteSpan, RemoteWord, Result, SessionFabric, Time,
    Triggers, bytemuck, control_queue::NoQueue, op::SinkView,
};
use std::{fmt, future::Future, rc::Rc, time::Duration};

/// One rank's handle of a job under loom.
#[derive(Clone)]
pub struct LoomFabric {
    job: Rc<Job>,
    me: Rank,
    triggers: Rc<Triggers<Self>>,
}

impl fmt::Debug for LoomFabric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LoomFabric({})", self.me)
    }
}

/// Own cells, given back on drop.
#[derive(Debug)]
pub struct LoomRegion {
    fabric: LoomFabric,
    key: RegionKey,
    len: usize,
}

impl Region for LoomRegion {
    fn key(&self) -> RegionKey {
        self.key
    }
    fn len(&self) -> usize {
        self.len
    }
}

impl Drop for LoomRegion {
    fn drop(&mut self) {
        self.fabric.job.regions().free(self.fabric.me, self.key);
    }
}

impl LoomFabric {
    pub(crate) fn new(job: Rc<Job>, me: Rank) -> Self {
        LoomFabric { job, me, triggers: Rc::default() }
    }

    pub(crate) fn me(&self) -> Rank {
        self.me
    }

    /// The job, for what only a test may see.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// Local regions that `make` allocates are data, of which loom reports every race. They take part in no atomic, and nobody waits for them.
    pub fn watched<T>(&self, make: impl FnOnce() -> T) -> T {
        self.job.regions().watch(true);
        let made = make();
        self.job.regions().watch(false);
        made
    }

    /// The mutation "looks after its own only": the same rank, which does not carry out what was armed with another handle of it.
    #[must_use]
    pub fn apart(&self) -> Self {
        LoomFabric { triggers: Rc::default(), ..self.clone() }
    }

    fn handle<T>(&self, result: Result<T>) -> LoomHandle<T> {
        LoomHandle::new(self, None, result)
    }

    /// The order of an access, unless a mutation relaxes it.
    pub(crate) fn order(&self, access: Access, order: Ordering) -> Ordering {
        if (self.job.config.relaxed)(access) { Relaxed } else { order }
    }

    pub(crate) fn live(&self, place: &Place) -> Result<()> {
        self.job.regions().live(place.addr)
    }
}

impl Fabric for LoomFabric {
    type Loc = Place;
    type Region = LoomRegion;
    type Handle<T: Unpin + 'static> = LoomHandle<T>;

    fn triggers(&self) -> &Triggers<Self> {
        &self.triggers
    }

    fn rank(&self) -> Rank {
        self.me
    }

    fn ranks(&self) -> usize {
        self.job.config.ranks
    }

    fn node(&self, rank: Rank) -> Result<Node> {
        let ranks = self.ranks();
        if rank.index() >= ranks {
            return Err(FabricError::NoSuchRank { rank, ranks });
        }
        Ok(Node::new(if self.job.config.together { 0 } else { rank.number() }))
    }

    fn caps(&self) -> Caps {
        self.job.config.caps
    }

    fn alloc(&self, bytes: usize) -> Result<LoomRegion> {
        let key = self.job.regions().alloc(self.me, bytes)?;
        Ok(LoomRegion { fabric: self.clone(), key, len: bytes })
    }

    async fn alloc_symmetric(&self, bytes: usize) -> Result<LoomRegion> {
        let key = self.job.regions().alloc_symmetric(self.me, bytes)?;
        Ok(LoomRegion { fabric: self.clone(), key, len: bytes })
    }

    fn locate(&self, addr: RemoteAddr, len: usize, align: usize, width: usize) -> Result<Place> {
        let cell = self.job.regions().locate(addr, len, align, width)?;
        Ok(Place { addr, cell, len })
    }

    fn load<W: AtomicWord>(&self, word: &LocalWord<Self, W>) -> Result<W> {
        self.live(word.loc())?;
        // Acquire: pairs with the release of puts, atomics and own stores.
        let order = self.order(Access::Load(word.loc().addr), Acquire);
        Ok(W::from_bits(self.job.cells.load(self.me, word.loc().cell, order)))
    }

    fn store<W: AtomicWord>(&self, word: &LocalWord<Self, W>, value: W) -> Result<()> {
        self.live(word.loc())?;
        self.write_own(word.loc(), 0, value.to_bits());
        Ok(())
    }

    fn read<T: Pod>(&self, span: &LocalSpan<Self, T>, into: &mut [T]) -> Result<()> {
        self.get_cells(span.loc(), SinkView::Bytes(bytemuck::cast_slice_mut(into)))
    }

    fn write<T: Pod>(&self, span: &LocalSpan<Self, T>, from: &[T]) -> Result<()> {
        self.live(span.loc())?;
        let bytes: &[u8] = bytemuck::cast_slice(from);
        if bytes.len() != span.loc().len {
            return Err(FabricError::LengthMismatch { have: from.len(), want: span.len() });
        }
        for (i, chunk) in bytes.chunks_exact(CELL).enumerate() {
            self.write_own(span.loc(), i, bytemuck::pod_read_unaligned(chunk));
        }
        Ok(())
    }

    fn try_put<T: Pod, S: PutSource<Self, T>>(
        &self,
        to: &RemoteSpan<Self, T>,
        from: S,
        options: PutOptions,
    ) -> Result<LoomHandle<S>, Refused<S>> {
        if options.notice.is_some() {
            return Err(Refused::Failed(FabricError::Unsupported { feature: "notices" }, from));
        }
        match self.put_cells(to.loc(), from.view()) {
            Ok(complete) => Ok(LoomHandle::new(self, complete, Ok(from))),
            Err(error) => Err(Refused::Failed(error, from)),
        }
    }

    fn try_get<T: Pod, D: GetSink<Self, T>>(
        &self,
        from: &RemoteSpan<Self, T>,
        mut to: D,
    ) -> Result<LoomHandle<D>, Refused<D>> {
        match self.get_cells(from.loc(), to.view()) {
            Ok(()) => Ok(self.handle(Ok(to))),
            Err(error) => Err(Refused::Failed(error, to)),
        }
    }

    fn try_atomic<W: AtomicWord>(&self, word: &RemoteWord<Self, W>, amo: Amo<W>) -> Result<LoomHandle<W>, Refused<()>> {
        let place = word.loc();
        self.live(place).map_err(|error| Refused::Failed(error, ()))?;
        let (order, covers) = self.job.atomic(self.me, place.addr.rank);
        let old = self.job.cells.change(place.addr.rank, place.cell, amo.to_bits(), order);
        self.job.ring(place.addr.rank, place.cell);
        Ok(self.handle(Ok(W::from_bits(old))).covering(covers))
    }

    fn try_nop(&self) -> Result<LoomHandle<()>, Refused<()>> {
        Ok(self.handle(Ok(())))
    }

    async fn room(&self, _target: Option<Rank>) -> Result<()> {
        Ok(())
    }

    async fn flush(&self, target: Rank) -> Result<()> {
        self.node(target)?;
        self.job.flush(self.me, Some(target)).await;
        Ok(())
    }

    async fn flush_all(&self) -> Result<()> {
        self.job.flush(self.me, None).await;
        Ok(())
    }

    async fn wait_until<W: AtomicWord>(
        &self,
        word: &LocalWord<Self, W>,
        _deps: Deps<'_>,
        mut until: impl FnMut(W) -> bool,
    ) -> Result<W> {
        self.live(word.loc())?;
        let order = self.order(Access::Wait(word.loc().addr), Acquire);
        let bits = self.job.wait_cell(self.me, word.loc().cell, order, |bits| until(W::from_bits(bits))).await;
        Ok(W::from_bits(bits))
    }

    fn try_notice(&self) -> Result<Option<Notice>> {
        Err(FabricError::Unsupported { feature: "notices" })
    }

    async fn next_notice(&self, _deps: Deps<'_>) -> Result<Notice> {
        Err(FabricError::Unsupported { feature: "notices" })
    }

    fn now(&self) -> Time {
        Time::from_picos(self.job.clock(self.me))
    }

    async fn sleep_until(&self, at: Time) {
        self.job.sleep(self.me, at.as_picos()).await;
    }

    async fn compute(&self, _duration: Duration) {}

    async fn charge(&self, _layer: &'static str) {}

    fn detach(&self, rest: impl Future<Output = ()> + 'static) {
        self.job.detached.add(self.me, rest);
    }
}

impl SessionFabric for LoomFabric {
    type Queue = NoQueue<Self>;
}
