//! The [`Fabric`] over shared memory.

use super::{Endpoint, notices::NoticeLook, short_path::check_lengths};
use crate::shm::{
    detached, detour, existing,
    immediate::Immediate,
    locked,
    notifying::Notifying,
    own::Region,
    place::Place,
    regions::{self, Kind, Resolved},
    stall::For,
    waiting::{self, Look},
};
use core::{
    future::{Future, ready},
    sync::atomic::{Ordering::SeqCst, fence},
    time::Duration,
};
use rdma_fabric::{
    Amo, AtomicWord, Caps, Completed, Deps, Fabric, FabricError, GetSink, Keyring, LocalSpan, LocalWord, LockedMemory,
    Mapped, Node, Notice, OwnedMemory, Pact, Pod, PutOptions, PutOrder, PutSource, Rank, Refused, RemoteAddr,
    RemoteSpan, RemoteWord, Result, Time, Triggers, Uses,
    op::{SinkView, SourceView},
};
use std::sync::Arc;

impl Fabric for Endpoint {
    type Loc = Place;
    type Region = Region;
    type Handle<T: Unpin + 'static> = Completed<T>;

    #[inline]
    fn triggers(&self) -> &Triggers<Self> {
        &self.0.triggers
    }

    #[inline]
    fn rank(&self) -> Rank {
        self.me()
    }

    #[inline]
    fn ranks(&self) -> usize {
        self.job().plan.ranks
    }

    fn node(&self, rank: Rank) -> Result<Node> {
        self.job().segment(rank)?;
        Ok(Node::new((rank.index() / self.job().plan.ranks_per_node) as u32))
    }

    fn nodes(&self) -> usize {
        let plan = &self.job().plan;
        plan.ranks.div_ceil(plan.ranks_per_node)
    }

    fn rank_on(&self, node: Node, number: usize) -> Option<Rank> {
        let plan = &self.job().plan;
        let rank = node.index().checked_mul(plan.ranks_per_node)?.checked_add(number)?;
        (number < plan.ranks_per_node && rank < plan.ranks).then(|| Rank::new(rank as u32))
    }

    fn caps(&self) -> Caps {
        let mut caps = Caps::weakest();
        // Puts are plain stores and atomics release: `access`, "Ordering".
        caps.put_order = PutOrder::AllTargets;
        caps.coherent_atomics = true;
        caps.notice_bits = 64;
        caps.strong_progress = true;
        caps.blocking_wait = true;
        caps.register_existing = self.job().existing();
        caps.locked_memory = LockedMemory::Mapped;
        caps.max_transfer = u64::MAX;
        caps
    }

    /// If only memory that was freed within the last 20 ms is left, this blocks until those are over.
    fn alloc(&self, bytes: usize) -> Result<Region> {
        self.only_with_keys()?;
        let taken = self.take_extent(bytes, Kind::Heap, |_, _| ())?;
        Ok(Region::local(self.clone(), bytes, taken))
    }

    fn adopt(&self, memory: OwnedMemory, uses: Uses) -> Result<Region, (FabricError, OwnedMemory)> {
        if let Err(error) = self.only_with_keys() {
            return Err((error, memory));
        }
        existing::adopt(self, memory, uses).map(|held| Region::existing(self.clone(), held))
    }

    async fn release(&self, mut region: Region) -> Result<OwnedMemory> {
        if !region.close() {
            return Err(FabricError::Unsupported { feature: "giving memory back that was allocated" });
        }
        let mut memory = None;
        waiting::until_ready(self, For::ItsEnd, || {
            memory = region.try_take();
            Ok(memory.is_some())
        })
        .await?;
        memory.ok_or(FabricError::Unsupported { feature: "taking memory twice" })
    }

    fn alloc_symmetric(&self, bytes: usize) -> impl Future<Output = Result<Region>> {
        locked::alloc_symmetric(self, bytes)
    }

    fn keyless(&self, pact: Pact<Self>) -> Result<Self> {
        Ok(Endpoint(self.0.clone(), Some(Arc::new(Keyring::new(pact)))))
    }

    fn mapped(&self, region: &Region, rank: Rank) -> Result<Mapped<Self>> {
        locked::mapped(self, region, rank)
    }

    /// Any width: where memory is accessed in cells, other widths are put together from them.
    fn locate(&self, addr: RemoteAddr, len: usize, align: usize, _width: usize) -> Result<Place> {
        let target = self.job().segment(addr.rank)?;
        if self.job().is_lost(addr.rank) {
            return Err(FabricError::PeerLost { rank: addr.rank });
        }
        let outside =
            match regions::resolve(target, addr, len, align, |key| self.keyring().is_some_and(|ring| ring.opens(key)))?
            {
                Resolved::Heap(piece) => return Ok(Place::new(piece, addr)),
                Resolved::Staged(piece) => existing::Outside::Staged(piece),
                Resolved::Adopted { region_len } => {
                    existing::resolve(self.job(), self.me(), addr, len, align, region_len)?
                }
            };
        let stand_in = target.stand_in(regions::generation_at(addr.region.index as usize));
        Ok(Place::outside_of(stand_in, addr, outside))
    }

    #[inline(always)]
    fn load<W: AtomicWord>(&self, word: &LocalWord<Self, W>) -> Result<W> {
        self.load_word(word.loc())
    }

    #[inline(always)]
    fn store<W: AtomicWord>(&self, word: &LocalWord<Self, W>, value: W) -> Result<()> {
        self.store_word(word.loc(), value)
    }

    #[inline]
    fn read<T: Pod>(&self, span: &LocalSpan<Self, T>, into: &mut [T]) -> Result<()> {
        check_lengths(into.len(), span.len())?;
        let bytes = rdma_fabric::bytemuck::cast_slice_mut(into);
        if Self::get_shortly(span.loc(), SinkView::Bytes(bytes)) {
            return Ok(());
        }
        detour::get(self, span.loc(), SinkView::Bytes(bytes), align_of::<T>())
    }

    #[inline]
    fn write<T: Pod>(&self, span: &LocalSpan<Self, T>, from: &[T]) -> Result<()> {
        check_lengths(from.len(), span.len())?;
        let place = span.loc();
        let bytes = rdma_fabric::bytemuck::cast_slice(from);
        if Self::put_shortly(place, SourceView::Bytes(bytes)) {
            return Ok(());
        }
        detour::put(self, place, SourceView::Bytes(bytes), align_of::<T>())?;
        place.piece.ring();
        Ok(())
    }

    #[inline(always)]
    fn try_put<T: Pod, S: PutSource<Self, T>>(
        &self,
        to: &RemoteSpan<Self, T>,
        from: S,
        options: PutOptions,
    ) -> Result<Completed<S>, Refused<S>> {
        let place = to.loc();
        if let Some(data) = options.notice {
            if self.notify_shortly(place, from.view(), data) {
                return Ok(Completed::new(from));
            }
            return self.notify_slowly(place, from, data).map(Completed::new);
        }
        if Self::put_shortly(place, from.view()) {
            return Ok(Completed::new(from));
        }
        match self.put_slowly(place, from) {
            Ok(from) => Ok(Completed::new(from)),
            Err((error, from)) => Err(Refused::Failed(error, from)),
        }
    }

    #[inline(always)]
    fn try_get<T: Pod, D: GetSink<Self, T>>(
        &self,
        from: &RemoteSpan<Self, T>,
        mut to: D,
    ) -> Result<Completed<D>, Refused<D>> {
        if Self::get_shortly(from.loc(), to.view()) {
            return Ok(Completed::new(to));
        }
        match self.get_slowly(from.loc(), to) {
            Ok(to) => Ok(Completed::new(to)),
            Err((error, to)) => Err(Refused::Failed(error, to)),
        }
    }

    #[inline(always)]
    fn try_atomic<W: AtomicWord>(&self, word: &RemoteWord<Self, W>, amo: Amo<W>) -> Result<Completed<W>, Refused<()>> {
        match self.modify(word.loc(), amo) {
            Ok(old) => Ok(Completed::new(old)),
            Err(error) => Err(Refused::Failed(error, ())),
        }
    }

    #[inline(always)]
    fn try_nop(&self) -> Result<Completed<()>, Refused<()>> {
        Ok(Completed::new(()))
    }

    /// Own queues are never full; the target's notice queue is looked at now and then, 200 µs apart at most. When it is
    /// full and the target has left, this is [`FabricError::PeersLeft`].
    fn room(&self, target: Option<Rank>) -> impl Future<Output = Result<()>> {
        let what = target.map_or(For::ItsEnd, For::Room);
        waiting::until_ready(self, what, move || target.map_or(Ok(true), |rank| self.has_room(rank)))
    }

    /// A full barrier: all puts of this CPU are visible after it.
    #[inline]
    fn flush(&self, target: Rank) -> impl Future<Output = Result<()>> {
        fence(SeqCst);
        ready(match self.job().segment(target) {
            Ok(_) if self.job().is_lost(target) => Err(FabricError::PeerLost { rank: target }),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        })
    }

    /// A full barrier. No put can fail after it was posted, so this never does either.
    #[inline]
    fn flush_all(&self) -> impl Future<Output = Result<()>> {
        fence(SeqCst);
        ready(Ok(()))
    }

    #[inline(always)]
    fn wait_until<W: AtomicWord>(
        &self,
        word: &LocalWord<Self, W>,
        deps: Deps<'_>,
        until: impl FnMut(W) -> bool,
    ) -> impl Future<Output = Result<W>> {
        let what = For::Word(word.loc().piece.offset());
        waiting::until_found(self, deps, what, WordLook { endpoint: self, word, until })
    }

    #[inline(always)]
    fn try_notice(&self) -> Result<Option<Notice>> {
        match self.take_shortly() {
            Some(notice) => Ok(Some(notice)),
            // Taken apart, so that what is taken at once stays in registers.
            None => match self.take_slowly() {
                Ok(notice) => Ok(notice),
                Err(error) => Err(error),
            },
        }
    }

    #[inline(always)]
    fn next_notice(&self, deps: Deps<'_>) -> impl Future<Output = Result<Notice>> {
        waiting::until_found(self, deps, For::Notice, NoticeLook(self))
    }

    fn now(&self) -> Time {
        Time::ZERO + self.job().start().elapsed()
    }

    fn sleep_until(&self, at: Time) -> impl Future<Output = ()> {
        waiting::until_time(self, self.instant(at))
    }

    #[inline]
    fn compute(&self, _: Duration) -> impl Future<Output = ()> {
        ready(())
    }

    #[inline]
    fn charge(&self, _: &'static str) -> impl Future<Output = ()> {
        ready(())
    }

    #[inline]
    fn detach(&self, rest: impl Future<Output = ()> + 'static) {
        detached::run(self.me(), rest);
    }

    /// Does not look at the doorbell.
    #[inline(always)]
    fn store_unwaited<W: AtomicWord>(&self, word: &LocalWord<Self, W>, value: W) -> Result<()> {
        match word.loc().piece.store_silently(W::BYTES, value.to_bits()) {
            Some(()) => Ok(()),
            None => detour::store(self, word.loc(), value),
        }
    }

    // The provided methods in a form that the compiler can see through: only a put with a notice can be refused for want
    // of room, so no other operation has anything to wait for.

    /// As the provided method.
    #[inline(always)]
    fn put<T: Pod, S: PutSource<Self, T>>(&self, to: &RemoteSpan<Self, T>, from: S) -> impl Future<Output = Result<S>> {
        Immediate::new(move || {
            check_lengths(from.elements(), to.len())?;
            if Self::put_shortly(to.loc(), from.view()) {
                return Ok(from);
            }
            self.put_slowly(to.loc(), from).map_err(|(error, _)| error)
        })
    }

    /// As the provided method, without its box for the wait.
    #[inline(always)]
    fn put_notify<T: Pod, S: PutSource<Self, T>>(
        &self,
        to: &RemoteSpan<Self, T>,
        from: S,
        data: u64,
    ) -> impl Future<Output = Result<S>> {
        Notifying::new(self, to, from, data)
    }

    /// As the provided method.
    #[inline(always)]
    fn get<T: Pod, D: GetSink<Self, T>>(
        &self,
        from: &RemoteSpan<Self, T>,
        mut to: D,
    ) -> impl Future<Output = Result<D>> {
        Immediate::new(move || {
            check_lengths(to.elements(), from.len())?;
            if Self::get_shortly(from.loc(), to.view()) {
                return Ok(to);
            }
            self.get_slowly(from.loc(), to).map_err(|(error, _)| error)
        })
    }

    /// As the provided method.
    #[inline(always)]
    fn atomic<W: AtomicWord>(&self, word: &RemoteWord<Self, W>, amo: Amo<W>) -> impl Future<Output = Result<W>> {
        Immediate::new(move || self.modify(word.loc(), amo))
    }

    // The kind of an atomic is known here; kept in a future it would have to be looked at again.

    /// As the provided method.
    #[inline(always)]
    fn fetch_add<W: AtomicWord>(&self, word: &RemoteWord<Self, W>, add: W) -> impl Future<Output = Result<W>> {
        Immediate::new(move || self.modify(word.loc(), Amo::Add(add)))
    }

    /// As the provided method.
    #[inline(always)]
    fn swap<W: AtomicWord>(&self, word: &RemoteWord<Self, W>, new: W) -> impl Future<Output = Result<W>> {
        Immediate::new(move || self.modify(word.loc(), Amo::Swap(new)))
    }

    /// As the provided method.
    #[inline(always)]
    fn compare_swap<W: AtomicWord>(
        &self,
        word: &RemoteWord<Self, W>,
        expected: W,
        new: W,
    ) -> impl Future<Output = Result<W>> {
        Immediate::new(move || self.modify(word.loc(), Amo::CompareSwap { expected, new }))
    }

    /// As the provided method.
    #[inline(always)]
    fn fetch_or<W: AtomicWord>(&self, word: &RemoteWord<Self, W>, bits: W) -> impl Future<Output = Result<W>> {
        Immediate::new(move || self.modify(word.loc(), Amo::Or(bits)))
    }

    /// As the provided method.
    #[inline(always)]
    fn fetch_and<W: AtomicWord>(&self, word: &RemoteWord<Self, W>, bits: W) -> impl Future<Output = Result<W>> {
        Immediate::new(move || self.modify(word.loc(), Amo::And(bits)))
    }

    /// As the provided method.
    #[inline(always)]
    fn put_word<W: AtomicWord>(&self, to: &RemoteWord<Self, W>, value: W) -> impl Future<Output = Result<()>> {
        Immediate::new(move || self.store_word(to.loc(), value))
    }

    /// As the provided method.
    #[inline(always)]
    fn get_word<W: AtomicWord>(&self, from: &RemoteWord<Self, W>) -> impl Future<Output = Result<W>> {
        Immediate::new(move || self.load_word(from.loc()))
    }
}

/// Looks for a word that satisfies a predicate.
struct WordLook<'a, 'w, W: AtomicWord, Until> {
    endpoint: &'a Endpoint,
    word: &'w LocalWord<Endpoint, W>,
    until: Until,
}

impl<W: AtomicWord, Until: FnMut(W) -> bool> Look for WordLook<'_, '_, W, Until> {
    type Found = W;

    #[inline(always)]
    fn look(&mut self) -> Result<Option<W>> {
        let value = self.endpoint.load(self.word)?;
        Ok((self.until)(value).then_some(value))
    }
}
