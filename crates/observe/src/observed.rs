//! The fabric that watches another.

use crate::{
    counts::WaitKind,
    event::{Event, Kind},
    handle::{Across, ObservedHandle},
    recorder::Recorder,
    waiting::Waiting,
};
use rdma_fabric::{
    Amo, AtomicWord, Caps, Deps, Fabric, FabricError, GetSink, LocalSpan, LocalWord, LockedMemory, Node, Notice,
    OwnedMemory, Pact, Pod, PutOptions, PutSource, Rank, Refused, RemoteAddr, RemoteSpan, RemoteWord, Result, Time,
    Triggers, Uses,
};
use std::{fmt, future::Future, sync::Arc, time::Duration};

/// `F`, with every operation and wait noted in a [`Recorder`].
///
/// Nothing else changes: results, errors, order and virtual time are those of `F`, but that there are no references to memory
/// without a key. An operation costs a lock that
/// nobody contends for and two looks at the clock more.
#[derive(Clone)]
pub struct Observed<F: Fabric> {
    pub(crate) inner: F,
    pub(crate) recorder: Recorder,
    triggers: Arc<Triggers<Self>>,
}

impl<F: Fabric> Observed<F> {
    /// Observe `fabric`.
    pub fn new(fabric: F, recorder: Recorder) -> Self {
        Observed { inner: fabric, recorder, triggers: Arc::default() }
    }

    fn now_ps(&self) -> u64 {
        self.inner.now().as_picos()
    }

    fn full<Op>(&self, refused: Refused<Op>, target: Option<Rank>) -> Refused<Op> {
        if matches!(refused, Refused::Full(_)) {
            self.recorder.lock().counts.with(target.map(Rank::number)).full += 1;
        }
        refused
    }

    /// A notice was taken.
    fn taken(&self, notice: &Notice) -> u64 {
        let mut record = self.recorder.lock();
        let taken = &mut record.counts.with(Some(notice.from.number())).notices_taken;
        *taken += 1;
        *taken - 1
    }
}

impl<F: Fabric> fmt::Debug for Observed<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, observed", self.inner)
    }
}

/// The one rank a wait depends on, if it is one.
pub(crate) fn only(deps: &Deps<'_>) -> Option<u32> {
    match *deps {
        Deps::One(rank) | Deps::Ranks(&[rank]) => Some(rank.number()),
        Deps::All | Deps::Ranks(_) => None,
    }
}

pub(crate) fn kind_of<W>(amo: &Amo<W>) -> Kind {
    match amo {
        Amo::Add(_) => Kind::Add,
        Amo::Swap(_) => Kind::Swap,
        Amo::CompareSwap { .. } => Kind::CompareSwap,
        Amo::Or(_) => Kind::Or,
        Amo::And(_) => Kind::And,
        Amo::Xor(_) => Kind::Xor,
    }
}

impl<F: Fabric> Fabric for Observed<F> {
    type Loc = F::Loc;
    type Region = F::Region;
    type Handle<T: Unpin + 'static> = ObservedHandle<F, T>;

    fn triggers(&self) -> &Triggers<Self> {
        &self.triggers
    }

    fn rank(&self) -> Rank {
        self.inner.rank()
    }

    fn ranks(&self) -> usize {
        self.inner.ranks()
    }

    fn node(&self, rank: Rank) -> Result<Node> {
        self.inner.node(rank)
    }

    fn nodes(&self) -> usize {
        self.inner.nodes()
    }

    fn rank_on(&self, node: Node, number: usize) -> Option<Rank> {
        self.inner.rank_on(node, number)
    }

    /// What passes by reference is not seen, so memory without a key is reached by copies only.
    fn caps(&self) -> Caps {
        let mut caps = self.inner.caps();
        caps.locked_memory = caps.locked_memory.min(LockedMemory::Copies);
        caps
    }

    fn alloc(&self, bytes: usize) -> Result<F::Region> {
        self.inner.alloc(bytes)
    }

    async fn alloc_symmetric(&self, bytes: usize) -> Result<F::Region> {
        let mut waiting = Waiting::begin(self, WaitKind::Registration, None);
        waiting.until(self.inner.alloc_symmetric(bytes)).await
    }

    fn keyless(&self, pact: Pact<Self>) -> Result<Self> {
        let inner = self.inner.keyless(pact.without_references())?;
        Ok(Observed { inner, recorder: self.recorder.clone(), triggers: self.triggers.clone() })
    }

    fn adopt(&self, memory: OwnedMemory, uses: Uses) -> Result<F::Region, (FabricError, OwnedMemory)> {
        self.inner.adopt(memory, uses)
    }

    async fn release(&self, region: F::Region) -> Result<OwnedMemory> {
        let mut waiting = Waiting::begin(self, WaitKind::Registration, None);
        waiting.until(self.inner.release(region)).await
    }

    fn locate(&self, addr: RemoteAddr, len: usize, align: usize, width: usize) -> Result<F::Loc> {
        self.inner.locate(addr, len, align, width)
    }

    fn load<W: AtomicWord>(&self, word: &LocalWord<Self, W>) -> Result<W> {
        self.inner.load(&word.through())
    }

    fn store<W: AtomicWord>(&self, word: &LocalWord<Self, W>, value: W) -> Result<()> {
        self.inner.store(&word.through(), value)
    }

    fn read<T: Pod>(&self, span: &LocalSpan<Self, T>, into: &mut [T]) -> Result<()> {
        self.inner.read(&span.through(), into)
    }

    fn write<T: Pod>(&self, span: &LocalSpan<Self, T>, from: &[T]) -> Result<()> {
        self.inner.write(&span.through(), from)
    }

    fn try_put<T: Pod, S: PutSource<Self, T>>(
        &self,
        to: &RemoteSpan<Self, T>,
        from: S,
        options: PutOptions,
    ) -> Result<ObservedHandle<F, S>, Refused<S>> {
        let (target, bytes, begin_ps) = (to.rank(), to.len() * size_of::<T>(), self.now_ps());
        let handle = match self.inner.try_put(&to.through(), Across::<F, S>::new(from), options) {
            Ok(handle) => handle,
            Err(refused) => return Err(self.full(refused.map(|across| across.0), Some(target))),
        };
        let mut event = Event::new(Kind::Put, Some(target.number()), begin_ps).at(to.addr(), bytes);
        {
            let mut record = self.recorder.lock();
            let counts = record.counts.with(Some(target.number()));
            counts.puts += 1;
            counts.put_bytes += bytes as u64;
            if options.notice.is_some() {
                (event.kind, event.notice) = (Kind::PutNotify, Some(counts.notices_sent));
                counts.notices_sent += 1;
            }
        }
        Ok(ObservedHandle::of_buffer(self, event, handle))
    }

    fn try_get<T: Pod, D: GetSink<Self, T>>(
        &self,
        from: &RemoteSpan<Self, T>,
        to: D,
    ) -> Result<ObservedHandle<F, D>, Refused<D>> {
        let (target, bytes, begin_ps) = (from.rank(), from.len() * size_of::<T>(), self.now_ps());
        let handle = match self.inner.try_get(&from.through(), Across::<F, D>::new(to)) {
            Ok(handle) => handle,
            Err(refused) => return Err(self.full(refused.map(|across| across.0), Some(target))),
        };
        {
            let mut record = self.recorder.lock();
            let counts = record.counts.with(Some(target.number()));
            counts.gets += 1;
            counts.get_bytes += bytes as u64;
        }
        let event = Event::new(Kind::Get, Some(target.number()), begin_ps).at(from.addr(), bytes);
        Ok(ObservedHandle::of_buffer(self, event, handle))
    }

    fn try_atomic<W: AtomicWord>(
        &self,
        word: &RemoteWord<Self, W>,
        amo: Amo<W>,
    ) -> Result<ObservedHandle<F, W>, Refused<()>> {
        let (target, begin_ps) = (word.rank(), self.now_ps());
        let handle = match self.inner.try_atomic(&word.through(), amo) {
            Ok(handle) => handle,
            Err(refused) => return Err(self.full(refused, Some(target))),
        };
        *self.recorder.lock().counts.with(Some(target.number())).atomics.of(&amo) += 1;
        let event = Event::new(kind_of(&amo), Some(target.number()), begin_ps).at(word.addr(), W::BYTES);
        Ok(ObservedHandle::plain(self, event, handle))
    }

    fn try_nop(&self) -> Result<ObservedHandle<F, ()>, Refused<()>> {
        let begin_ps = self.now_ps();
        let handle = match self.inner.try_nop() {
            Ok(handle) => handle,
            Err(refused) => return Err(self.full(refused, None)),
        };
        self.recorder.lock().counts.nops += 1;
        Ok(ObservedHandle::plain(self, Event::new(Kind::Nop, None, begin_ps), handle))
    }

    async fn room(&self, target: Option<Rank>) -> Result<()> {
        let mut waiting = Waiting::begin(self, WaitKind::Room, target.map(Rank::number));
        waiting.until(self.inner.room(target)).await
    }

    async fn flush(&self, target: Rank) -> Result<()> {
        let mut waiting = Waiting::begin(self, WaitKind::Flush, Some(target.number()));
        self.recorder.lock().counts.with(Some(target.number())).flushes += 1;
        waiting.until(self.inner.flush(target)).await
    }

    async fn flush_all(&self) -> Result<()> {
        let mut waiting = Waiting::begin(self, WaitKind::Flush, None);
        self.recorder.lock().counts.with(None).flushes += 1;
        waiting.until(self.inner.flush_all()).await
    }

    async fn wait_until<W: AtomicWord>(
        &self,
        word: &LocalWord<Self, W>,
        deps: Deps<'_>,
        until: impl FnMut(W) -> bool,
    ) -> Result<W> {
        let mut waiting = Waiting::begin(self, WaitKind::Word, only(&deps));
        waiting.event = waiting.event.map(|event| event.at(word.addr(), W::BYTES));
        self.recorder.lock().counts.word_waits += 1;
        let word = word.through();
        waiting.until(self.inner.wait_until(&word, deps, until)).await
    }

    fn try_notice(&self) -> Result<Option<Notice>> {
        let begin_ps = self.now_ps();
        let notice = self.inner.try_notice()?;
        if let Some(notice) = &notice {
            let number = self.taken(notice);
            let event = arrived(Event::new(Kind::Notice, Some(notice.from.number()), begin_ps), notice, number);
            let end_ps = self.now_ps();
            self.recorder.lock().happened(Event { end_ps, ..event });
        }
        Ok(notice)
    }

    async fn next_notice(&self, deps: Deps<'_>) -> Result<Notice> {
        let mut waiting = Waiting::begin(self, WaitKind::Notice, only(&deps));
        let notice = waiting.until(self.inner.next_notice(deps)).await?;
        let number = self.taken(&notice);
        waiting.peer = Some(notice.from.number());
        waiting.event = waiting.event.map(|event| arrived(event, &notice, number));
        Ok(notice)
    }

    fn now(&self) -> Time {
        self.inner.now()
    }

    async fn sleep_until(&self, at: Time) {
        let _spent = Spent::begin(self, Kind::Sleep);
        self.inner.sleep_until(at).await;
    }

    async fn compute(&self, duration: Duration) {
        let _spent = Spent::begin(self, Kind::Compute);
        self.inner.compute(duration).await;
    }

    fn charge(&self, layer: &'static str) -> impl Future<Output = ()> {
        self.inner.charge(layer)
    }

    fn detach(&self, rest: impl Future<Output = ()> + 'static) {
        self.inner.detach(rest);
    }
}

/// `event` as the `number`th notice of its poster.
fn arrived(event: Event, notice: &Notice, number: u64) -> Event {
    let region = Some(notice.region.to_bits());
    Event { kind: Kind::Notice, region, offset: Some(notice.end), notice: Some(number), ..event }
}

/// Time that the program spent by itself: written into the trace when it is dropped, if there was any.
struct Spent<'a, F: Fabric> {
    fabric: &'a Observed<F>,
    event: Event,
}

impl<'a, F: Fabric> Spent<'a, F> {
    fn begin(fabric: &'a Observed<F>, kind: Kind) -> Self {
        Spent { fabric, event: Event::new(kind, None, fabric.now_ps()) }
    }
}

impl<F: Fabric> Drop for Spent<'_, F> {
    fn drop(&mut self) {
        let end_ps = self.fabric.now_ps();
        // On wall clock, computing takes its time elsewhere.
        if self.event.kind == Kind::Sleep || end_ps - self.event.begin_ps > 1_000_000 {
            self.fabric.recorder.lock().happened(Event { end_ps, ..self.event });
        }
    }
}
