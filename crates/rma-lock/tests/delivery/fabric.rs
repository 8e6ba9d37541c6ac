//! The fabric contract over a [`Net`].

use crate::{
    memory::{CELL, Place},
    net::{Cells, Net, Op, Slot},
};
use rdma_fabric::{
    Amo, AtomicWord, Caps, Deps, Fabric, FabricError, GetSink, LocalSpan, LocalWord, Node, Notice, OpHandle, Pod,
    PutOptions, PutSource, Rank, Refused, Region, RegionKey, RemoteAddr, RemoteSpan, RemoteWord, Result, Time,
    bytemuck,
    op::{SinkView, SourceView},
};
use std::{
    cell::RefCell,
    fmt,
    future::{Future, poll_fn},
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
    time::Duration,
};

/// One rank's handle of a job whose network is explored.
#[derive(Clone)]
pub(crate) struct NetFabric {
    net: Rc<RefCell<Net>>,
    me: Rank,
}

impl fmt::Debug for NetFabric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NetFabric({})", self.me)
    }
}

fn cells(place: &Place) -> Cells {
    Cells { rank: place.addr.rank, first: place.cell, count: place.len / CELL }
}

/// Own cells. They stay registered until the job ends: ranks end in any order here.
#[derive(Debug)]
pub(crate) struct NetRegion {
    key: RegionKey,
    len: usize,
}

impl Region for NetRegion {
    fn key(&self) -> RegionKey {
        self.key
    }
    fn len(&self) -> usize {
        self.len
    }
}

/// An operation, on its way or done.
pub(crate) struct NetHandle<T> {
    fabric: NetFabric,
    slot: Slot,
    finish: Option<Box<dyn FnOnce(Vec<u64>) -> T>>,
}

impl<T: Unpin> Future for NetHandle<T> {
    type Output = Result<T>;
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<T>> {
        let Some(words) = self.slot.borrow_mut().take() else { return Poll::Pending };
        for word in &words {
            self.fabric.net.borrow_mut().tell(self.fabric.me, *word);
        }
        let finish = self.finish.take().expect("a completed operation was polled again");
        Poll::Ready(Ok(finish(words)))
    }
}

impl<T: Unpin + 'static> OpHandle<T> for NetHandle<T> {
    fn test(&mut self) -> bool {
        let done = self.slot.borrow().is_some();
        self.fabric.net.borrow_mut().tell(self.fabric.me, u64::from(done));
        done
    }
    fn wait(mut self) -> Result<T> {
        let words = self.slot.borrow_mut().take();
        match (words, self.finish.take()) {
            (Some(words), Some(finish)) => Ok(finish(words)),
            _ => Err(FabricError::Unsupported { feature: "blocking wait" }),
        }
    }
}

impl NetFabric {
    pub(crate) fn new(net: Rc<RefCell<Net>>, me: Rank) -> Self {
        NetFabric { net, me }
    }

    /// The program learns `value` by other means than the fabric; it becomes part of the explored state.
    pub(crate) fn observe(&self, value: u64) {
        self.net.borrow_mut().tell(self.me, value);
    }

    fn handle<T>(&self, slot: Slot, finish: impl FnOnce(Vec<u64>) -> T + 'static) -> NetHandle<T> {
        NetHandle { fabric: self.clone(), slot, finish: Some(Box::new(finish)) }
    }

    fn done<T: 'static>(&self, value: T) -> NetHandle<T> {
        self.handle(Rc::new(RefCell::new(Some(Vec::new()))), |_| value)
    }

    fn same_length(have: usize, want: usize) -> Result<()> {
        if have == want { Ok(()) } else { Err(FabricError::LengthMismatch { have, want }) }
    }
}

impl Fabric for NetFabric {
    type Loc = Place;
    type Region = NetRegion;
    type Handle<T: Unpin + 'static> = NetHandle<T>;

    fn rank(&self) -> Rank {
        self.me
    }

    fn ranks(&self) -> usize {
        self.net.borrow().ranks()
    }

    fn node(&self, rank: Rank) -> Result<Node> {
        let ranks = self.ranks();
        if rank.index() < ranks { Ok(Node::new(rank.number())) } else { Err(FabricError::NoSuchRank { rank, ranks }) }
    }

    fn caps(&self) -> Caps {
        Caps::weakest()
    }

    fn alloc(&self, bytes: usize) -> Result<NetRegion> {
        let key = self.net.borrow_mut().regions.alloc(self.me, bytes)?;
        Ok(NetRegion { key, len: bytes })
    }

    async fn alloc_symmetric(&self, bytes: usize) -> Result<NetRegion> {
        let key = self.net.borrow_mut().regions.alloc_symmetric(self.me, bytes)?;
        Ok(NetRegion { key, len: bytes })
    }

    fn locate(&self, addr: RemoteAddr, len: usize, align: usize, width: usize) -> Result<Place> {
        let cell = self.net.borrow().regions.locate(addr, len, align, width)?;
        Ok(Place { addr, cell, len })
    }

    fn load<W: AtomicWord>(&self, word: &LocalWord<Self, W>) -> Result<W> {
        let mut net = self.net.borrow_mut();
        let bits = net.read(self.me, word.loc().cell);
        net.tell(self.me, bits);
        Ok(W::from_bits(bits))
    }

    fn store<W: AtomicWord>(&self, word: &LocalWord<Self, W>, value: W) -> Result<()> {
        self.net.borrow_mut().write(self.me, word.loc().cell, value.to_bits());
        Ok(())
    }

    fn read<T: Pod>(&self, span: &LocalSpan<Self, T>, into: &mut [T]) -> Result<()> {
        Self::same_length(into.len(), span.len())?;
        let mut net = self.net.borrow_mut();
        for (i, chunk) in bytemuck::cast_slice_mut::<T, u8>(into).chunks_exact_mut(CELL).enumerate() {
            let bits = net.read(self.me, span.loc().cell + i);
            net.tell(self.me, bits);
            chunk.copy_from_slice(&bits.to_ne_bytes());
        }
        Ok(())
    }

    fn write<T: Pod>(&self, span: &LocalSpan<Self, T>, from: &[T]) -> Result<()> {
        Self::same_length(from.len(), span.len())?;
        for (i, chunk) in bytemuck::cast_slice::<T, u8>(from).chunks_exact(CELL).enumerate() {
            self.net.borrow_mut().write(self.me, span.loc().cell + i, bytemuck::pod_read_unaligned(chunk));
        }
        Ok(())
    }

    fn try_put<T: Pod, S: PutSource<Self, T>>(
        &self,
        to: &RemoteSpan<Self, T>,
        from: S,
        options: PutOptions,
    ) -> Result<NetHandle<S>, Refused<S>> {
        if options.notice.is_some() {
            return Err(Refused::Failed(FabricError::Unsupported { feature: "notices" }, from));
        }
        if let Err(error) = Self::same_length(from.elements(), to.len()) {
            return Err(Refused::Failed(error, from));
        }
        let Cells { rank, first, count } = cells(to.loc());
        for i in 0..count {
            let bits = match from.view() {
                SourceView::Bytes(bytes) => bytemuck::pod_read_unaligned(&bytes[i * CELL..][..CELL]),
                SourceView::Registered(place) => self.net.borrow().read(self.me, place.cell + i),
            };
            self.net.borrow_mut().put(self.me, rank, first + i, bits);
        }
        Ok(self.done(from))
    }

    fn try_get<T: Pod, D: GetSink<Self, T>>(
        &self,
        from: &RemoteSpan<Self, T>,
        mut to: D,
    ) -> Result<NetHandle<D>, Refused<D>> {
        if let Err(error) = Self::same_length(to.elements(), from.len()) {
            return Err(Refused::Failed(error, to));
        }
        let slot = self.net.borrow_mut().post(self.me, Op::Get, cells(from.loc()));
        let (net, me) = (self.net.clone(), self.me);
        Ok(self.handle(slot, move |words| {
            match to.view() {
                SinkView::Bytes(bytes) => {
                    for (chunk, word) in bytes.chunks_exact_mut(CELL).zip(words) {
                        chunk.copy_from_slice(&word.to_ne_bytes());
                    }
                }
                SinkView::Registered(place) => {
                    for (i, word) in words.into_iter().enumerate() {
                        net.borrow_mut().write(me, place.cell + i, word);
                    }
                }
            }
            to
        }))
    }

    fn try_atomic<W: AtomicWord>(&self, word: &RemoteWord<Self, W>, amo: Amo<W>) -> Result<NetHandle<W>, Refused<()>> {
        let amo = match amo {
            Amo::Add(v) => Amo::Add(v.to_bits()),
            Amo::Swap(v) => Amo::Swap(v.to_bits()),
            Amo::CompareSwap { expected, new } => Amo::CompareSwap { expected: expected.to_bits(), new: new.to_bits() },
            Amo::Or(v) => Amo::Or(v.to_bits()),
            Amo::And(v) => Amo::And(v.to_bits()),
            Amo::Xor(v) => Amo::Xor(v.to_bits()),
        };
        let slot = self.net.borrow_mut().post(self.me, Op::Atomic(amo), cells(word.loc()));
        Ok(self.handle(slot, |words| W::from_bits(words[0])))
    }

    fn try_nop(&self) -> Result<NetHandle<()>, Refused<()>> {
        Ok(self.done(()))
    }

    async fn room(&self, _target: Option<Rank>) -> Result<()> {
        Ok(())
    }

    async fn flush(&self, target: Rank) -> Result<()> {
        self.node(target)?;
        poll_fn(|_| if self.net.borrow().flushed(self.me, Some(target)) { Poll::Ready(()) } else { Poll::Pending })
            .await;
        self.observe(0);
        Ok(())
    }

    async fn flush_all(&self) -> Result<()> {
        poll_fn(|_| if self.net.borrow().flushed(self.me, None) { Poll::Ready(()) } else { Poll::Pending }).await;
        self.observe(0);
        Ok(())
    }

    async fn wait_until<W: AtomicWord>(
        &self,
        word: &LocalWord<Self, W>,
        _deps: Deps<'_>,
        mut until: impl FnMut(W) -> bool,
    ) -> Result<W> {
        let cell = word.loc().cell;
        poll_fn(|_| {
            let mut net = self.net.borrow_mut();
            let bits = net.read(self.me, cell);
            if until(W::from_bits(bits)) {
                net.tell(self.me, bits);
                Poll::Ready(Ok(W::from_bits(bits)))
            } else {
                net.wait_on(self.me, cell);
                Poll::Pending
            }
        })
        .await
    }

    fn try_notice(&self) -> Result<Option<Notice>> {
        Err(FabricError::Unsupported { feature: "notices" })
    }

    async fn next_notice(&self, _deps: Deps<'_>) -> Result<Notice> {
        Err(FabricError::Unsupported { feature: "notices" })
    }

    fn now(&self) -> Time {
        let now = self.net.borrow().now(self.me);
        self.observe(now);
        Time::from_picos(now)
    }

    async fn sleep_until(&self, at: Time) {
        poll_fn(|_| {
            let mut net = self.net.borrow_mut();
            if net.now(self.me) >= at.as_picos() {
                net.tell(self.me, 1);
                Poll::Ready(())
            } else {
                net.timer(self.me, at.as_picos());
                Poll::Pending
            }
        })
        .await;
    }

    async fn compute(&self, _duration: Duration) {}

    async fn charge(&self, _layer: &'static str) {}

    fn detach(&self, rest: impl Future<Output = ()> + 'static) {
        let detached = self.net.borrow().detached.clone();
        detached.add(self.me, rest);
        self.net.borrow_mut().wake(self.me);
    }
}
