//! The fabric contract over loom's atomics: every interleaving, no stronger than the contract.
//!
//! Ranks are loom threads. What is modelled, and how:
//!
//! * *Operations happen in execution order on each word.* An atomic is one read-modify-write of the
//!   target's cell when it is posted; a get or a wait reads the newest value (by a comparison that changes
//!   nothing); an own `store` is a swap. Only an own `load` may be stale, as loom lets it.
//! * *A put is delivered when [`Delivery`] says*: at once, as late as the contract allows, or by a thread per
//!   rank at any time. Without a flush a later atomic of the same poster does overtake it.
//! * *Edges.* An atomic or a word put releases everything its poster did, except writes of protected data
//!   ([`DataCell`]) that were not flushed since: loom's release fence, taken before the first of them and again by
//!   the flush, marks what is covered. A reader that has no edge from the writer's flush is a data race to loom.
//!   A flush of one target covers the data of all, the one point where this is stronger than the contract;
//!   delivery of words is told apart by target.
//! * *Waiting* registers and looks in one step, so that a wake-up can't be lost, and never spins. A wait
//!   that nobody ends is loom's deadlock. Parking adds an edge of its own, so missing ones show on the paths
//!   that do not park.
//! * *Time* stands still unless a test moves a rank's clock.
//!
//! Cells are 8 bytes; other widths are [`FabricError::CellWidth`]. Notices are not offered: the locks need none.

mod data;
mod detached;
mod handle;
mod job;
mod memory;

pub(crate) use data::DataCell;
pub(crate) use handle::LoomHandle;
pub(crate) use job::{Config, Delivery, Job, run};

use loom::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use memory::{CELL, Place};
use rdma_fabric::{
    Amo, AtomicWord, Caps, Deps, Fabric, FabricError, GetSink, LocalSpan, LocalWord, Node, Notice, Pod, PutOptions,
    PutSource, Rank, Refused, Region, RegionKey, RemoteAddr, RemoteSpan, RemoteWord, Result, Time, Triggers, bytemuck,
    op::{SinkView, SourceView},
};
use std::{fmt, future::Future, rc::Rc, time::Duration};

/// One rank's handle of a job under loom.
#[derive(Clone)]
pub(crate) struct LoomFabric {
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
pub(crate) struct LoomRegion {
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
    pub(crate) fn job(&self) -> &Job {
        &self.job
    }

    fn handle<T>(&self, result: Result<T>) -> LoomHandle<T> {
        LoomHandle::new(self, result)
    }

    fn live(&self, place: &Place) -> Result<()> {
        self.job.regions().live(place.addr)
    }

    fn put_cells(&self, to: &Place, from: SourceView<'_, Place>) -> Result<()> {
        self.live(to)?;
        let have = match &from {
            SourceView::Bytes(bytes) => bytes.len(),
            SourceView::Registered(place) => place.len,
        };
        if have != to.len {
            return Err(FabricError::LengthMismatch { have, want: to.len });
        }
        if let SourceView::Registered(place) = &from {
            self.live(place)?;
        }
        for i in 0..to.len / CELL {
            let bits = match &from {
                SourceView::Bytes(bytes) => bytemuck::pod_read_unaligned(&bytes[i * CELL..][..CELL]),
                SourceView::Registered(place) => self.job.newest(place.addr.rank, place.cell + i),
            };
            self.job.post(self.me, to.addr.rank, to.cell + i, bits);
        }
        Ok(())
    }

    fn get_cells(&self, from: &Place, to: SinkView<'_, Place>) -> Result<()> {
        self.live(from)?;
        let want = match &to {
            SinkView::Bytes(bytes) => bytes.len(),
            SinkView::Registered(place) => place.len,
        };
        if want != from.len {
            return Err(FabricError::LengthMismatch { have: from.len, want });
        }
        let value = |i| self.job.newest(from.addr.rank, from.cell + i);
        match to {
            SinkView::Bytes(bytes) => {
                for (i, chunk) in bytes.chunks_exact_mut(CELL).enumerate() {
                    chunk.copy_from_slice(&value(i).to_ne_bytes());
                }
            }
            SinkView::Registered(place) => {
                self.live(place)?;
                for i in 0..from.len / CELL {
                    self.write_own(place, i, value(i));
                }
            }
        }
        Ok(())
    }

    fn write_own(&self, place: &Place, i: usize, bits: u64) {
        self.job.cell(self.me, place.cell + i).swap(bits, Release);
        self.job.ring(self.me, place.cell + i);
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
        Ok(W::from_bits(self.job.cell(self.me, word.loc().cell).load(Acquire)))
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
            Ok(()) => Ok(self.handle(Ok(from))),
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
        let cell = self.job.cell(place.addr.rank, place.cell);
        // Release: pairs with the acquire of later atomics, gets and waits. Data in flight is left out.
        let order = if self.job.releases(self.me) { AcqRel } else { Acquire };
        let old = match amo {
            Amo::Add(v) => cell.fetch_add(v.to_bits(), order),
            Amo::Swap(v) => cell.swap(v.to_bits(), order),
            Amo::Or(v) => cell.fetch_or(v.to_bits(), order),
            Amo::And(v) => cell.fetch_and(v.to_bits(), order),
            Amo::Xor(v) => cell.fetch_xor(v.to_bits(), order),
            Amo::CompareSwap { expected, new } => {
                match cell.compare_exchange(expected.to_bits(), new.to_bits(), order, Acquire) {
                    Ok(old) | Err(old) => old,
                }
            }
        };
        self.job.ring(place.addr.rank, place.cell);
        Ok(self.handle(Ok(W::from_bits(old))))
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
        let bits = self.job.wait_cell(self.me, word.loc().cell, |bits| until(W::from_bits(bits))).await;
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
