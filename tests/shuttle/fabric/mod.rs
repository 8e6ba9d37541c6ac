//! The fabric contract under shuttle: as weak as the contract allows.
//!
//! Ranks are shuttle threads. An operation is under way until the network, another thread, has carried it; puts
//! are complete when they are posted and visible any time later; nothing is ordered but what the contract orders. Memory
//! is sequentially consistent, as everything is under shuttle: missing orderings are loom's and Miri's business.

pub(crate) mod detached;
mod handle;
mod job;
mod memory;

pub(crate) use job::{Job, Life, Mutation};

use handle::Handle;
use job::{LONGEST, State, Verb};
use memory::Place;
use rdma_fabric::{
    Amo, AtomicWord, Caps, Deps, Fabric, FabricError, GetSink, LocalSpan, LocalWord, Location, Node, Notice, Pod,
    PutOptions, PutSource, Rank, Refused, Region, RegionKey, RemoteAddr, RemoteSpan, RemoteWord, Result, Time,
    Triggers, bytemuck,
    op::{SinkView, SourceView},
};
use std::{
    fmt,
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

/// Bits of a notice.
const BITS: u32 = 16;

/// One rank of a job under shuttle.
#[derive(Clone)]
pub(crate) struct ShuttleFabric {
    job: Arc<Job>,
    me: usize,
    triggers: Arc<Triggers<Self>>,
}

impl fmt::Debug for ShuttleFabric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ShuttleFabric(rank {} of {})", self.me, self.job.ranks)
    }
}

/// Own memory, gone when dropped.
#[derive(Debug)]
pub(crate) struct OwnRegion {
    fabric: ShuttleFabric,
    key: RegionKey,
    len: usize,
}

impl Region for OwnRegion {
    fn key(&self) -> RegionKey {
        self.key
    }

    fn len(&self) -> usize {
        self.len
    }
}

impl Drop for OwnRegion {
    fn drop(&mut self) {
        self.fabric.job.drop_region(self.fabric.rank(), self.key);
    }
}

/// Poll, park, poll again, on the calling shuttle thread.
pub(crate) fn block_on<T>(job: &Job, me: usize, future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        // Asked before the poll: what happens from here on ends the wait.
        let seen = job.woken(me);
        if let Poll::Ready(out) = future.as_mut().poll(&mut cx) {
            return out;
        }
        job.park(me, seen);
    }
}

fn same_length(have: usize, want: usize) -> Result<()> {
    if have == want { Ok(()) } else { Err(FabricError::LengthMismatch { have, want }) }
}

impl ShuttleFabric {
    pub(crate) fn new(job: Arc<Job>, me: usize) -> Self {
        ShuttleFabric { job, me, triggers: Arc::default() }
    }

    fn change_own<T>(&self, place: &Place, change: impl FnOnce(&mut State) -> T) -> Result<T> {
        let mut state = self.job.lock();
        state.check(place)?;
        let out = change(&mut state);
        self.job.wake(&mut state, self.me);
        Ok(out)
    }

    /// Wait until `look` finds something.
    async fn until<T>(&self, mut look: impl FnMut(&mut State) -> Option<T>) -> T {
        poll_fn(|_| look(&mut self.job.lock()).map_or(Poll::Pending, Poll::Ready)).await
    }

    /// Post a put in parts. `None` if there is no room.
    fn post_put(&self, to: &Place, from: SourceView<'_, Place>, options: PutOptions) -> Result<Option<()>> {
        let mut state = self.job.lock();
        let bytes = match from {
            SourceView::Bytes(bytes) => bytes.to_vec(),
            SourceView::Registered(own) => {
                state.check(own)?;
                state.memory.bytes(own).to_vec()
            }
        };
        same_length(bytes.len(), to.len)?;
        if let Some(data) = options.notice.filter(|data| data >> BITS != 0) {
            return Err(FabricError::NoticeTooWide { data, bits: BITS });
        }
        state.check(to)?;
        let target = to.addr.rank.index();
        if !state.has_own_room(self.me) || options.notice.is_some() && !state.has_notice_room(target) {
            return Ok(None);
        }
        let group = state.number();
        let parts = bytes.len().div_ceil(LONGEST).max(1);
        for part in 0..parts {
            let (start, end) = (part * LONGEST, (part * LONGEST + LONGEST).min(bytes.len()));
            let place = to.part(start, end - start).unwrap_or_else(|| to.clone());
            let last = part + 1 == parts;
            let notice = options.notice.filter(|_| last).map(|data| Notice {
                from: self.rank(),
                data,
                region: to.addr.region,
                end: to.addr.offset + to.len as u64,
            });
            let verb = Verb::Put { bytes: bytes[start..end].to_vec(), notice };
            self.job.post(&mut state, self.me, place, verb, group, false);
        }
        Ok(Some(()))
    }

    /// Post anything else. `None` if there is no room.
    fn post_op(&self, target: &Place, verb: Verb) -> Result<Option<u64>> {
        let mut state = self.job.lock();
        if !matches!(verb, Verb::Nop) {
            state.check(target)?;
        }
        if !state.has_own_room(self.me) {
            return Ok(None);
        }
        Ok(Some(self.job.post(&mut state, self.me, target.clone(), verb, 0, true)))
    }
}

/// A place in the own queue's line, left when dropped.
struct InLine<'a> {
    fabric: &'a ShuttleFabric,
    ticket: Option<u64>,
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            let mut state = self.fabric.job.lock();
            state.leave_line(self.fabric.me, ticket);
            self.fabric.job.wake(&mut state, self.fabric.me);
        }
    }
}

/// A time at which to be woken.
struct Alarm<'a> {
    fabric: &'a ShuttleFabric,
    set: Option<(u64, u64)>,
}

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if let Some((at, id)) = self.set {
            self.fabric.job.lock().drop_alarm(self.fabric.me, at, id);
        }
    }
}

impl Fabric for ShuttleFabric {
    type Loc = Place;
    type Region = OwnRegion;
    type Handle<T: Unpin + 'static> = Handle<T>;

    fn triggers(&self) -> &Triggers<Self> {
        &self.triggers
    }

    fn rank(&self) -> Rank {
        Rank::new(self.me as u32)
    }

    fn ranks(&self) -> usize {
        self.job.ranks
    }

    /// Two on each.
    fn node(&self, rank: Rank) -> Result<Node> {
        let ranks = self.ranks();
        if rank.index() < ranks {
            Ok(Node::new(rank.number() / 2))
        } else {
            Err(FabricError::NoSuchRank { rank, ranks })
        }
    }

    fn caps(&self) -> Caps {
        let mut caps = Caps::weakest();
        caps.coherent_atomics = true;
        caps.notice_bits = BITS;
        caps.strong_progress = true;
        caps.blocking_wait = true;
        caps.max_transfer = LONGEST as u64;
        caps
    }

    fn alloc(&self, bytes: usize) -> Result<OwnRegion> {
        let key = self.job.lock().memory.alloc(self.rank(), bytes)?;
        Ok(OwnRegion { fabric: self.clone(), key, len: bytes })
    }

    async fn alloc_symmetric(&self, bytes: usize) -> Result<OwnRegion> {
        let key = self.job.lock().memory.alloc_symmetric(self.rank(), bytes)?;
        Ok(OwnRegion { fabric: self.clone(), key, len: bytes })
    }

    fn locate(&self, addr: RemoteAddr, len: usize, align: usize, _width: usize) -> Result<Place> {
        self.node(addr.rank)?;
        let state = self.job.lock();
        if state.ranks[addr.rank.index()].life == Life::Lost {
            return Err(FabricError::PeerLost { rank: addr.rank });
        }
        state.memory.locate(addr, len, align)
    }

    fn load<W: AtomicWord>(&self, word: &LocalWord<Self, W>) -> Result<W> {
        let state = self.job.lock();
        state.check(word.loc())?;
        Ok(W::from_bits(state.memory.word(word.loc())))
    }

    fn store<W: AtomicWord>(&self, word: &LocalWord<Self, W>, value: W) -> Result<()> {
        self.change_own(word.loc(), |state| state.memory.set_word(word.loc(), value.to_bits()))
    }

    fn read<T: Pod>(&self, span: &LocalSpan<Self, T>, into: &mut [T]) -> Result<()> {
        same_length(into.len(), span.len())?;
        let state = self.job.lock();
        state.check(span.loc())?;
        bytemuck::cast_slice_mut(into).copy_from_slice(state.memory.bytes(span.loc()));
        Ok(())
    }

    fn write<T: Pod>(&self, span: &LocalSpan<Self, T>, from: &[T]) -> Result<()> {
        same_length(from.len(), span.len())?;
        let bytes: &[u8] = bytemuck::cast_slice(from);
        self.change_own(span.loc(), |state| state.memory.bytes_mut(span.loc()).copy_from_slice(bytes))
    }

    fn try_put<T: Pod, S: PutSource<Self, T>>(
        &self,
        to: &RemoteSpan<Self, T>,
        from: S,
        options: PutOptions,
    ) -> Result<Handle<S>, Refused<S>> {
        match self.post_put(to.loc(), from.view(), options) {
            Ok(Some(())) => Ok(Handle::over(self, from)),
            Ok(None) => Err(Refused::Full(from)),
            Err(error) => Err(Refused::Failed(error, from)),
        }
    }

    fn try_get<T: Pod, D: GetSink<Self, T>>(
        &self,
        from: &RemoteSpan<Self, T>,
        mut to: D,
    ) -> Result<Handle<D>, Refused<D>> {
        let (len, into) = match to.view() {
            SinkView::Bytes(bytes) => (bytes.len(), None),
            SinkView::Registered(own) => (own.len, Some(own.clone())),
        };
        let fit = same_length(len, from.loc().len).and_then(|()| match &into {
            Some(own) => self.job.lock().check(own),
            None => Ok(()),
        });
        let fill = |to: &mut D, bytes: &[u8]| {
            if let SinkView::Bytes(into) = to.view() {
                into.copy_from_slice(bytes);
            }
        };
        match fit.and_then(|()| self.post_op(from.loc(), Verb::Get { into })) {
            Ok(Some(id)) => Ok(Handle::under_way(self, id, to, fill)),
            Ok(None) => Err(Refused::Full(to)),
            Err(error) => Err(Refused::Failed(error, to)),
        }
    }

    fn try_atomic<W: AtomicWord>(&self, word: &RemoteWord<Self, W>, amo: Amo<W>) -> Result<Handle<W>, Refused<()>> {
        let new = Box::new(move |bits| amo.apply(W::from_bits(bits)).to_bits());
        let fill = |value: &mut W, bytes: &[u8]| *value = W::from_bits(bytes.try_into().map_or(0, u64::from_ne_bytes));
        match self.post_op(word.loc(), Verb::Atomic { new }) {
            Ok(Some(id)) => Ok(Handle::under_way(self, id, W::from_bits(0), fill)),
            Ok(None) => Err(Refused::Full(())),
            Err(error) => Err(Refused::Failed(error, ())),
        }
    }

    fn try_nop(&self) -> Result<Handle<()>, Refused<()>> {
        let nowhere = RemoteAddr { rank: self.rank(), region: RegionKey::from_bits(0), offset: 0 };
        match self.post_op(&Place { addr: nowhere, len: 0 }, Verb::Nop) {
            Ok(Some(id)) => Ok(Handle::under_way(self, id, (), |(), _| ())),
            Ok(None) => Err(Refused::Full(())),
            Err(error) => Err(Refused::Failed(error, ())),
        }
    }

    async fn room(&self, target: Option<Rank>) -> Result<()> {
        if let Some(rank) = target {
            self.node(rank)?;
            self.until(|state| match state.ranks[rank.index()].life {
                Life::Lost => Some(Err(FabricError::PeerLost { rank })),
                _ => state.has_notice_room(rank.index()).then_some(Ok(())),
            })
            .await?;
        }
        let mut line = InLine { fabric: self, ticket: None };
        self.until(|state| state.may_post(self.me, &mut line.ticket).then_some(())).await;
        Ok(())
    }

    async fn flush(&self, target: Rank) -> Result<()> {
        self.node(target)?;
        self.until(|state| state.flushed(self.me, Some(target))).await
    }

    async fn flush_all(&self) -> Result<()> {
        self.until(|state| state.flushed(self.me, None)).await
    }

    async fn wait_until<W: AtomicWord>(
        &self,
        word: &LocalWord<Self, W>,
        deps: Deps<'_>,
        mut until: impl FnMut(W) -> bool,
    ) -> Result<W> {
        poll_fn(|_| {
            // The predicate is the program's: it is asked without the lock, as it may use the fabric.
            let value = self.load(word)?;
            if until(value) {
                return Poll::Ready(Ok(value));
            }
            let outlook = self.job.lock().outlook(self.me, &deps);
            match outlook {
                Ok(()) => Poll::Pending,
                Err(error) => {
                    // What came between the two looks counts.
                    let value = self.load(word)?;
                    Poll::Ready(if until(value) { Ok(value) } else { Err(error) })
                }
            }
        })
        .await
    }

    fn try_notice(&self) -> Result<Option<Notice>> {
        let mut state = self.job.lock();
        let notice = state.ranks[self.me].notices.pop_front();
        if notice.is_some() {
            // There is room again.
            self.job.wake_all(&mut state);
        }
        Ok(notice)
    }

    async fn next_notice(&self, deps: Deps<'_>) -> Result<Notice> {
        poll_fn(|_| {
            if let Some(notice) = self.try_notice()? {
                return Poll::Ready(Ok(notice));
            }
            let outlook = self.job.lock().outlook(self.me, &deps);
            match outlook {
                Ok(()) => Poll::Pending,
                Err(error) => Poll::Ready(self.try_notice()?.ok_or(error)),
            }
        })
        .await
    }

    fn now(&self) -> Time {
        Time::from_picos(self.job.lock().now)
    }

    async fn sleep_until(&self, at: Time) {
        let mut alarm = Alarm { fabric: self, set: None };
        self.until(|state| {
            let at = at.as_picos();
            if state.now >= at {
                return Some(());
            }
            if alarm.set.is_none() {
                alarm.set = Some((at, state.set_alarm(self.me, at)));
            }
            None
        })
        .await;
    }

    async fn compute(&self, duration: Duration) {
        self.sleep(duration).await;
    }

    async fn charge(&self, _: &'static str) {}

    fn detach(&self, rest: impl Future<Output = ()> + 'static) {
        detached::add(self.me, rest);
    }
}

impl rdma_fabric::SessionFabric for ShuttleFabric {
    type Queue = rdma_fabric::control_queue::NoQueue<Self>;
}

impl rdma_fabric::barrier::BarrierFabric for ShuttleFabric {}
