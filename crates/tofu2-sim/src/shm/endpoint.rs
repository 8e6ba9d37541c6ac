//! One rank's access to the job: the [`Fabric`] over shared memory.

use super::{
    control::State,
    control_queue::{Executor, OwnQueues, Progress},
    detached, detour,
    doorbell::Watch,
    executor::Wish,
    existing,
    gates::OwnGates,
    immediate::Immediate,
    inside::{self, Id, Inside},
    job::Job,
    locked,
    mapping::Mapping,
    notice_ring,
    notifying::Notifying,
    own::{Own, Pages, Region, Taken},
    place::Place,
    regions::{self, Kind, Resolved},
    waiting::{self, Look},
    wakers::Wakers,
};
use core::{
    fmt,
    future::{Future, ready},
    sync::atomic::{
        AtomicU32, AtomicU64,
        Ordering::{Relaxed, SeqCst},
        fence,
    },
    time::Duration,
};
use rdma_fabric::{
    Amo, AtomicWord, Caps, Completed, Deps, Fabric, FabricError, GetSink, Keyring, LocalSpan, LocalWord, Location,
    LockedMemory, Mapped, Node, Notice, OwnedMemory, Pact, Pod, PutOptions, PutOrder, PutSource, Rank, Refused,
    RemoteAddr, RemoteSpan, RemoteWord, Result, Time, Triggers, Uses,
    op::{SinkView, SourceView},
};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

/// One rank of a job over shared memory. Cloning counts a reference; clones may be used on any thread.
///
/// An operation is executed at once by the posting CPU in the target's memory, so it is finished when it is posted:
/// handles are [`Completed`], nothing is allocated and no waker is touched. Between posting an operation and being
/// visible there is no time either, except what the CPU's store buffer takes; [`Fabric::flush`] is a full barrier.
///
/// When the last clone and region of a rank are gone, the rank has left the job, unless its program's end was published
/// before.
#[derive(Clone)]
pub struct Endpoint(Arc<Inner>, Option<Arc<Keyring<Endpoint>>>);

struct Inner {
    rank: Rank,
    job: Arc<Job>,
    /// The rank's own segment.
    segment: Arc<Mapping>,
    own: Mutex<Own>,
    /// Which barrier gates the rank has.
    gates: Mutex<OwnGates>,
    /// Which of the segment's announcements are in use, a bit each.
    inside: Arc<AtomicU32>,
    queues: Arc<OwnQueues>,
    /// Changes of ranks' states when the rank last looked after its session queues.
    served: AtomicU64,
    /// The thread that looks after them, if the job has such.
    _progress: Option<Progress>,
    /// Tasks of foreign executors that wait.
    wakers: Wakers,
    triggers: Triggers<Endpoint>,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shm::Endpoint({} of {})", self.0.rank, self.0.job.plan.ranks)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let end = if std::thread::panicking() { State::Lost } else { State::Left };
        if self.job.control.state(self.rank.index()) <= State::Running {
            self.job.publish(self.rank, end);
        }
    }
}

impl Endpoint {
    /// Be `rank` of `job`; at most once per rank and job.
    pub(super) fn new(job: Arc<Job>, rank: Rank, pages: Pages) -> Result<Self> {
        let segment = job.segment(rank)?.clone();
        let own = Mutex::new(Own::new(segment.heap_len(), pages));
        job.publish(rank, State::Running);
        let wakers = Wakers::new(rank.to_string(), segment.clone());
        let (inside, queues) = (Arc::<AtomicU32>::default(), Arc::<OwnQueues>::default());
        let progress = job
            .queues
            .progress_thread
            .then(|| Progress::start(job.clone(), rank, segment.clone(), inside.clone(), queues.clone()));
        let inner = Inner {
            rank,
            job,
            segment,
            own,
            gates: Mutex::default(),
            inside,
            queues,
            served: AtomicU64::new(0),
            _progress: progress.transpose()?,
            wakers,
            triggers: Triggers::default(),
        };
        Ok(Endpoint(Arc::new(inner), None))
    }

    /// What this handle has beyond others of the rank: the regions without keys that it opens.
    pub(super) fn keyring(&self) -> Option<&Keyring<Endpoint>> {
        self.1.as_deref()
    }

    /// Whether both are handles of one rank of one job.
    pub(super) fn is_of(&self, other: &Endpoint) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// A handle without keys allocates symmetric memory only.
    fn only_with_keys(&self) -> Result<()> {
        match self.1 {
            None => Ok(()),
            Some(_) => Err(FabricError::Unsupported { feature: "local memory without a key" }),
        }
    }

    pub(super) fn me(&self) -> Rank {
        self.0.rank
    }

    pub(super) fn job(&self) -> &Job {
        &self.0.job
    }

    pub(super) fn segment(&self) -> &Mapping {
        &self.0.segment
    }

    pub(super) fn own(&self) -> MutexGuard<'_, Own> {
        // What the lock protects is consistent between statements; a panic elsewhere in the rank doesn't change that.
        self.0.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn gates(&self) -> MutexGuard<'_, OwnGates> {
        // As above.
        self.0.gates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wakers(&self) -> &Wakers {
        &self.0.wakers
    }

    pub(super) fn queues(&self) -> &OwnQueues {
        &self.0.queues
    }

    /// This rank as one that executes commands of control queues.
    #[inline]
    pub(super) fn executor(&self) -> Executor<'_> {
        let Inner { job, rank, segment, inside, queues, .. } = &*self.0;
        Executor { job, me: *rank, segment, taken: inside, queues }
    }

    /// Execute what was handed over to this rank, and what a rank that has died should have executed. Whether there may have been anything.
    pub(super) fn serve_queues(&self) -> bool {
        let changes = self.job().control.changes();
        let changed = self.0.served.load(Relaxed) != changes;
        if changed {
            self.0.served.store(changes, Relaxed);
        }
        self.queues().serve(&self.executor(), changed) || changed
    }

    /// How a wait of this rank wants to be polled again.
    pub(super) fn wish(&self, watch: Watch, first: bool) -> Wish<'_> {
        let job = self.job();
        Wish { segment: &self.0.segment, watch, first, crowded: job.crowded, longest: job.longest_park(), until: None }
    }

    /// Announce an operation of this rank inside of regions, until the answer is dropped.
    pub(super) fn announce<const N: usize>(&self, ids: [Id; N]) -> Inside<'_, AtomicU64, N> {
        inside::announce(self.0.segment.announcements(), &self.0.inside, ids, std::thread::yield_now)
    }

    /// Take an extent of the own segment, `fill` it given its offset, and register it. If all memory is taken that is not in
    /// limbo, this waits for the end of that.
    pub(super) fn take_extent(&self, bytes: usize, kind: Kind, fill: impl Fn(&Mapping, usize)) -> Result<Taken> {
        let attempt = || {
            let mut own = self.own();
            own.settle(self.job(), &self.0.segment);
            let taken = own.alloc(&self.0.segment, self.me(), bytes, kind, |offset| fill(&self.0.segment, offset));
            (taken, own.limbo_until())
        };
        loop {
            match attempt() {
                (Err(FabricError::OutOfMemory { .. }), Some(until)) => {
                    std::thread::sleep(until.saturating_duration_since(Instant::now()));
                }
                (taken, _) => return taken,
            }
        }
    }

    /// Copy a short source to its target and ring. Whether that was possible on the short path.
    ///
    /// What is not is done by a function of its own that is given everything by value: so the compiler keeps short operations
    /// in registers.
    #[inline(always)]
    fn put_shortly(to: &Place, from: SourceView<'_, Place>) -> bool {
        match from {
            SourceView::Bytes(bytes) if bytes.len() <= SHORT && to.piece.copy_in(bytes).is_some() => {
                to.piece.ring();
                true
            }
            SourceView::Registered(own) if own.len() <= SHORT && to.piece.copy_from(&own.piece).is_some() => {
                to.piece.ring();
                true
            }
            _ => false,
        }
    }

    /// Any put without a notice.
    #[cold]
    #[inline(never)]
    fn put_slowly<T: Pod, S: PutSource<Self, T>>(&self, to: &Place, from: S) -> Result<S, (FabricError, S)> {
        match detour::put(self, to, from.view(), align_of::<T>()) {
            Ok(()) => {
                to.piece.ring();
                Ok(from)
            }
            Err(error) => Err((error, from)),
        }
    }

    /// Copy from a target to a short sink. Whether that was possible on the short path.
    #[inline(always)]
    fn get_shortly(from: &Place, to: SinkView<'_, Place>) -> bool {
        match to {
            SinkView::Bytes(bytes) if bytes.len() <= SHORT => from.piece.copy_out(bytes).is_some(),
            _ => false,
        }
    }

    /// Any get.
    #[cold]
    #[inline(never)]
    fn get_slowly<T: Pod, D: GetSink<Self, T>>(&self, from: &Place, mut to: D) -> Result<D, (FabricError, D)> {
        match detour::get(self, from, to.view(), align_of::<T>()) {
            Ok(()) => {
                if let SinkView::Registered(own) = to.view() {
                    own.piece.ring();
                }
                Ok(to)
            }
            Err(error) => Err((error, to)),
        }
    }

    #[inline(always)]
    fn modify<W: AtomicWord>(&self, place: &Place, amo: Amo<W>) -> Result<W> {
        let old = if W::BYTES == 4 {
            place.piece.rmw4(bits(amo, |value| value.to_bits() as u32)).map(u64::from)
        } else {
            place.piece.rmw8(bits(amo, W::to_bits))
        };
        match old {
            Some(old) => Ok(W::from_bits(old)),
            None => detour::modify(self, place, amo),
        }
    }

    #[inline(always)]
    fn load_word<W: AtomicWord>(&self, place: &Place) -> Result<W> {
        match place.piece.load(W::BYTES) {
            Some(bits) => Ok(W::from_bits(bits)),
            None => detour::load(self, place),
        }
    }

    #[inline(always)]
    fn store_word<W: AtomicWord>(&self, place: &Place, value: W) -> Result<()> {
        match place.piece.store(W::BYTES, value.to_bits()) {
            Some(()) => Ok(()),
            None => detour::store(self, place, value),
        }
    }

    /// Put a short source with a notice if nothing stands in the way: room first, then the bytes, then the notice. Whether that
    /// was possible on the short path.
    #[inline(always)]
    pub(super) fn notify_shortly(&self, to: &Place, from: SourceView<'_, Place>, data: u64) -> bool {
        let SourceView::Bytes(bytes) = from else { return false };
        // Look first, so that an impossible operation takes no room.
        if bytes.len() > SHORT || !to.piece.admits(bytes.len()) {
            return false;
        }
        let target = to.piece.mapping();
        let Some(claim) = notice_ring::claim_next(target, self.me()) else { return false };
        if to.piece.copy_in(bytes).is_none() {
            give_up(target, claim);
            return false;
        }
        let RemoteAddr { region, offset, .. } = to.addr();
        notice_ring::publish(target, claim, data, region, offset + bytes.len() as u64);
        to.piece.ring_with_notice();
        true
    }

    /// Any put with a notice.
    #[inline(never)]
    pub(super) fn notify_slowly<T: Pod, S: PutSource<Self, T>>(
        &self,
        to: &Place,
        from: S,
        data: u64,
    ) -> Result<S, Refused<S>> {
        let target = to.piece.mapping();
        let align = align_of::<T>();
        // Look first, so that an impossible operation is not taken for one that needs room.
        if let Some(error) = objection(to, &from.view(), align) {
            return Err(Refused::Failed(error, from));
        }
        let claim = match notice_ring::claim(target, self.me()) {
            Ok(Some(claim)) => claim,
            Ok(None) => return Err(Refused::Full(from)),
            Err(damaged) => return Err(Refused::Failed(damaged.error(to.addr().rank), from)),
        };
        let copied = match from.view() {
            SourceView::Bytes(bytes) if bytes.len() <= SHORT && to.piece.copy_in(bytes).is_some() => Ok(()),
            view => detour::put(self, to, view, align),
        };
        if let Err(error) = copied {
            give_up(target, claim);
            return Err(Refused::Failed(error, from));
        }
        let RemoteAddr { region, offset, .. } = to.addr();
        notice_ring::publish(target, claim, data, region, offset + to.len() as u64);
        to.piece.ring_with_notice();
        Ok(from)
    }

    /// Whether a notice for `rank` may find room now.
    pub(super) fn has_room(&self, rank: Rank) -> Result<bool> {
        let segment = self.job().segment(rank)?;
        if self.job().is_lost(rank) {
            return Err(FabricError::PeerLost { rank });
        }
        if notice_ring::has_room(segment) {
            return Ok(true);
        }
        // Who has left takes no notices any more. (This rank is asked while it runs, so it may still.)
        let left = rank != self.me() && self.job().control.state(rank.index()) == State::Left;
        if left { Err(FabricError::PeersLeft) } else { Ok(false) }
    }

    /// The oldest notice if it is ready and nobody else takes it.
    #[inline(always)]
    fn take_shortly(&self) -> Option<Notice> {
        notice_ring::take(&self.0.segment, self.ranks())
    }

    /// The oldest notice if it is ready.
    #[inline(always)]
    fn take_slowly(&self) -> Result<Option<Notice>> {
        let control = &self.job().control;
        if notice_ring::is_empty(&self.0.segment) && !control.anybody_ended() {
            return Ok(None);
        }
        let has_ended = |rank: Rank| control.has_ended(rank.index());
        notice_ring::consume(&self.0.segment, self.me(), self.ranks(), || control.anybody_ended(), has_ended)
    }

    /// The moment as the system tells it; `None` if that is out of its range.
    fn instant(&self, at: Time) -> Option<Instant> {
        self.job().start().checked_add(Duration::from_nanos(at.as_picos().div_ceil(1000)))
    }
}

/// The longest copy that is not announced, in bytes: those take few instructions.
const SHORT: usize = 64;

/// Leave no notice after all.
#[cold]
fn give_up(target: &Mapping, claim: notice_ring::Claim) {
    notice_ring::withdraw(target, claim);
    // Notices of others may be ready behind it.
    target.ring_for_notice();
}

/// Why a put from `from` to `to` is impossible, as far as that can be told before.
fn objection(to: &Place, from: &SourceView<'_, Place>, align: usize) -> Option<FabricError> {
    let len = match from {
        SourceView::Bytes(bytes) => bytes.len(),
        SourceView::Registered(own) => own.len(),
    };
    match from {
        SourceView::Registered(own) if to.is_fit() && !own.is_fit() => Some(own.refusal(len, align)),
        _ => (!to.is_fit() || len != to.len()).then(|| to.refusal(len, align)),
    }
}

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
        waiting::until_ready(self, || {
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
        waiting::until_ready(self, move || target.map_or(Ok(true), |rank| self.has_room(rank)))
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
        let watch = Watch::Word(word.loc().piece.offset());
        waiting::until_found(self, deps, watch, WordLook { endpoint: self, word, until })
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
        waiting::until_found(self, deps, Watch::Notice, NoticeLook(self))
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

/// Looks for the next notice.
struct NoticeLook<'a>(&'a Endpoint);

impl Look for NoticeLook<'_> {
    type Found = Notice;

    #[inline(always)]
    fn glance(&mut self) -> Option<Notice> {
        self.0.take_shortly()
    }

    #[inline(always)]
    fn look(&mut self) -> Result<Option<Notice>> {
        self.0.take_slowly()
    }
}

pub(super) fn check_lengths(have: usize, want: usize) -> Result<()> {
    if have == want { Ok(()) } else { Err(FabricError::LengthMismatch { have, want }) }
}

/// The same operation on other bits.
#[inline(always)]
pub(super) fn bits<W, V>(amo: Amo<W>, f: impl Fn(W) -> V) -> Amo<V> {
    match amo {
        Amo::Add(v) => Amo::Add(f(v)),
        Amo::Swap(v) => Amo::Swap(f(v)),
        Amo::CompareSwap { expected, new } => Amo::CompareSwap { expected: f(expected), new: f(new) },
        Amo::Or(v) => Amo::Or(f(v)),
        Amo::And(v) => Amo::And(f(v)),
        Amo::Xor(v) => Amo::Xor(f(v)),
    }
}
