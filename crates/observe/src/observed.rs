//! The layer that watches a fabric.

use crate::{
    counts::WaitKind,
    event::{Event, Kind},
    handle::ObservedHandle,
    queue::target_of,
    recorder::Recorder,
    spent::Spent,
    waiting::Waiting,
};
use rdma_fabric::{
    Amo, AtomicWord, ControlQueue, Deps, Fabric, GetSink, LocalWord, Notice, OwnedMemory, Pod, PutOptions, PutSource,
    Rank, Refused, RemoteSpan, RemoteWord, Result, SessionFabric, Time,
    barrier::{BarrierFabric, GateId, Values},
    control_queue::{Completion, MrqNotice, Posting},
    layer::{Layer, Layered},
};
use std::time::Duration;

/// `F`, with every operation and wait noted in a [`Recorder`].
///
/// Nothing else changes: results, errors, order and virtual time are those of `F`, but that there are no references to memory
/// without a key. An operation costs a lock that
/// nobody contends for and two looks at the clock more.
pub type Observed<F> = Layered<F, Recorder>;

impl Recorder {
    fn full<Op>(&self, refused: Refused<Op>, target: Option<Rank>) -> Refused<Op> {
        if matches!(refused, Refused::Full(_)) {
            self.lock().counts.with(target.map(Rank::number)).full += 1;
        }
        refused
    }

    /// A notice was taken.
    fn taken(&self, notice: &Notice) -> u64 {
        let mut record = self.lock();
        let taken = &mut record.counts.with(Some(notice.from.number())).notices_taken;
        *taken += 1;
        *taken - 1
    }
}

/// The one rank a wait depends on, if it is one.
pub(crate) fn only(deps: &Deps<'_>) -> Option<u32> {
    match *deps {
        Deps::One(rank) | Deps::Ranks(&[rank]) | Deps::Step { writer: rank, .. } => Some(rank.number()),
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

impl<F: Fabric> Layer<F> for Recorder {
    type Handle<T: Unpin + 'static> = ObservedHandle<F, T>;

    fn handle<T: Unpin + 'static>(&self, _: &F, handle: F::Handle<T>) -> ObservedHandle<F, T> {
        ObservedHandle::unseen(handle)
    }

    async fn alloc_symmetric(&self, below: &F, bytes: usize) -> Result<F::Region> {
        let mut waiting = Waiting::begin(self, below, WaitKind::Registration, None);
        waiting.until(below.alloc_symmetric(bytes)).await
    }

    async fn release(&self, below: &F, region: F::Region) -> Result<OwnedMemory> {
        let mut waiting = Waiting::begin(self, below, WaitKind::Registration, None);
        waiting.until(below.release(region)).await
    }

    fn try_put<T: Pod, S: PutSource<F, T>>(
        &self,
        below: &F,
        to: &RemoteSpan<F, T>,
        from: S,
        options: PutOptions,
    ) -> Result<ObservedHandle<F, S>, Refused<S>> {
        let (target, bytes, begin_ps) = (to.rank(), to.len() * size_of::<T>(), below.now().as_picos());
        let handle = match below.try_put(to, from, options) {
            Ok(handle) => handle,
            Err(refused) => return Err(self.full(refused, Some(target))),
        };
        let mut event = Event::new(Kind::Put, Some(target.number()), begin_ps).at(to.addr(), bytes);
        {
            let mut record = self.lock();
            let counts = record.counts.with(Some(target.number()));
            counts.puts += 1;
            counts.put_bytes += bytes as u64;
            if options.notice.is_some() {
                (event.kind, event.notice) = (Kind::PutNotify, Some(counts.notices_sent));
                counts.notices_sent += 1;
            }
        }
        Ok(ObservedHandle::new(self, below, event, handle))
    }

    fn try_get<T: Pod, D: GetSink<F, T>>(
        &self,
        below: &F,
        from: &RemoteSpan<F, T>,
        to: D,
    ) -> Result<ObservedHandle<F, D>, Refused<D>> {
        let (target, bytes, begin_ps) = (from.rank(), from.len() * size_of::<T>(), below.now().as_picos());
        let handle = match below.try_get(from, to) {
            Ok(handle) => handle,
            Err(refused) => return Err(self.full(refused, Some(target))),
        };
        {
            let mut record = self.lock();
            let counts = record.counts.with(Some(target.number()));
            counts.gets += 1;
            counts.get_bytes += bytes as u64;
        }
        let event = Event::new(Kind::Get, Some(target.number()), begin_ps).at(from.addr(), bytes);
        Ok(ObservedHandle::new(self, below, event, handle))
    }

    fn try_atomic<W: AtomicWord>(
        &self,
        below: &F,
        word: &RemoteWord<F, W>,
        amo: Amo<W>,
    ) -> Result<ObservedHandle<F, W>, Refused<()>> {
        let (target, begin_ps) = (word.rank(), below.now().as_picos());
        let handle = match below.try_atomic(word, amo) {
            Ok(handle) => handle,
            Err(refused) => return Err(self.full(refused, Some(target))),
        };
        *self.lock().counts.with(Some(target.number())).atomics.of(&amo) += 1;
        let event = Event::new(kind_of(&amo), Some(target.number()), begin_ps).at(word.addr(), W::BYTES);
        Ok(ObservedHandle::new(self, below, event, handle))
    }

    fn try_nop(&self, below: &F) -> Result<ObservedHandle<F, ()>, Refused<()>> {
        let begin_ps = below.now().as_picos();
        let handle = match below.try_nop() {
            Ok(handle) => handle,
            Err(refused) => return Err(self.full(refused, None)),
        };
        self.lock().counts.nops += 1;
        Ok(ObservedHandle::new(self, below, Event::new(Kind::Nop, None, begin_ps), handle))
    }

    async fn room(&self, below: &F, target: Option<Rank>) -> Result<()> {
        let mut waiting = Waiting::begin(self, below, WaitKind::Room, target.map(Rank::number));
        waiting.until(below.room(target)).await
    }

    async fn flush(&self, below: &F, target: Rank) -> Result<()> {
        let mut waiting = Waiting::begin(self, below, WaitKind::Flush, Some(target.number()));
        self.lock().counts.with(Some(target.number())).flushes += 1;
        waiting.until(below.flush(target)).await
    }

    async fn flush_all(&self, below: &F) -> Result<()> {
        let mut waiting = Waiting::begin(self, below, WaitKind::Flush, None);
        self.lock().counts.with(None).flushes += 1;
        waiting.until(below.flush_all()).await
    }

    async fn wait_until<W: AtomicWord>(
        &self,
        below: &F,
        word: &LocalWord<F, W>,
        deps: Deps<'_>,
        until: impl FnMut(W) -> bool,
    ) -> Result<W> {
        let mut waiting = Waiting::begin(self, below, WaitKind::Word, only(&deps));
        waiting.event = waiting.event.map(|event| event.at(word.addr(), W::BYTES));
        self.lock().counts.word_waits += 1;
        waiting.until(below.wait_until(word, deps, until)).await
    }

    fn try_notice(&self, below: &F) -> Result<Option<Notice>> {
        let begin_ps = below.now().as_picos();
        let notice = below.try_notice()?;
        if let Some(notice) = &notice {
            let number = self.taken(notice);
            let event = arrived(Event::new(Kind::Notice, Some(notice.from.number()), begin_ps), notice, number);
            let end_ps = below.now().as_picos();
            self.lock().happened(Event { end_ps, ..event });
        }
        Ok(notice)
    }

    async fn next_notice(&self, below: &F, deps: Deps<'_>) -> Result<Notice> {
        let mut waiting = Waiting::begin(self, below, WaitKind::Notice, only(&deps));
        let notice = waiting.until(below.next_notice(deps)).await?;
        let number = self.taken(&notice);
        waiting.peer = Some(notice.from.number());
        waiting.event = waiting.event.map(|event| arrived(event, &notice, number));
        Ok(notice)
    }

    async fn sleep_until(&self, below: &F, at: Time) {
        let _spent = Spent::begin(self, below, Kind::Sleep);
        below.sleep_until(at).await;
    }

    async fn compute(&self, below: &F, duration: Duration) {
        let _spent = Spent::begin(self, below, Kind::Compute);
        below.compute(duration).await;
    }

    fn try_command(&self, below: &F, queue: &F::Queue, posting: Posting) -> Result<(), Refused<()>>
    where
        F: SessionFabric,
    {
        queue.try_post(posting).map_err(|refused| self.full(refused, target_of(&posting)))?;
        self.commanded(below, &posting);
        Ok(())
    }

    async fn command(&self, below: &F, queue: &F::Queue, posting: Posting, deps: Deps<'_>) -> Result<()>
    where
        F: SessionFabric,
    {
        let mut waiting = Waiting::begin(self, below, WaitKind::Room, target_of(&posting).map(Rank::number));
        waiting.until(queue.post(posting, deps)).await?;
        self.commanded(below, &posting);
        Ok(())
    }

    async fn next_completion(&self, below: &F, queue: &F::Queue, deps: Deps<'_>) -> Result<Completion>
    where
        F: SessionFabric,
    {
        let mut waiting = Waiting::begin(self, below, WaitKind::Operation, only(&deps));
        waiting.until(queue.next_completion(deps)).await
    }

    async fn next_mrq_notice(&self, below: &F, queue: &F::Queue, deps: Deps<'_>) -> Result<MrqNotice>
    where
        F: SessionFabric,
    {
        let mut waiting = Waiting::begin(self, below, WaitKind::Notice, only(&deps));
        let notice = waiting.until(queue.next_notice(deps)).await?;
        waiting.peer = Some(notice.peer.rank().number());
        Ok(notice)
    }

    async fn await_gate(&self, below: &F, gate: GateId, deps: Deps<'_>) -> Result<Option<Values>>
    where
        F: BarrierFabric,
    {
        let mut waiting = Waiting::begin(self, below, WaitKind::Gate, only(&deps));
        waiting.until(below.await_gate(gate, deps)).await
    }
}

/// `event` as the `number`th notice of its poster.
fn arrived(event: Event, notice: &Notice, number: u64) -> Event {
    let region = Some(notice.region.to_bits());
    Event { kind: Kind::Notice, region, offset: Some(notice.end), notice: Some(number), ..event }
}
