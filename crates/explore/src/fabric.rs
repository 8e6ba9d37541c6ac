//! The fabric contract, told to a [`Session`].

use crate::{
    act::{Act, Answer, Op, Rmw, Told},
    cell::Agent,
    dropped::Holding,
    handle::ExploreHandle,
    look::Look,
    place::Place,
    probe::Probe,
    session::Session,
    transfer::{bits_of, bytes_of},
};
use rdma_fabric::{
    Amo, AtomicWord, Caps, Deps, Fabric, FabricError, GetSink, Keyring, LocalSpan, LocalWord, LockedMemory, Node,
    Notice, Pact, Pod, PutOptions, PutSource, Rank, Refused, Region, RegionKey, RemoteAddr, RemoteSpan, RemoteWord,
    Result, Time, Triggers, bytemuck,
    op::{SinkView, SourceView},
};
use std::{
    future::{Future, poll_fn},
    rc::Rc,
    task::Poll,
    time::Duration,
};

/// One rank's access to a job that is explored.
#[derive(Clone, Debug)]
pub struct ExploreFabric {
    pub(crate) session: Rc<Session>,
    caps: Caps,
    /// The regions without keys that this handle opens, if it is for such.
    keyring: Option<Rc<Keyring<ExploreFabric>>>,
    triggers: Rc<Triggers<ExploreFabric>>,
}

/// Registered memory of one rank, until the last clone is dropped. Who addresses it afterwards is told [`FabricError::StaleRegion`].
#[derive(Clone, Debug)]
pub struct ExploreRegion {
    registered: Rc<Registered>,
    len: usize,
}

#[derive(Debug)]
struct Registered {
    session: Rc<Session>,
    key: RegionKey,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.session.drop_region(self.key.index);
    }
}

impl Region for ExploreRegion {
    fn key(&self) -> RegionKey {
        self.registered.key
    }
    fn len(&self) -> usize {
        self.len
    }
}

/// What calls answer in a run that is over. Nobody hears it.
const OVER: FabricError = FabricError::Unsupported { feature: "a run that is over" };

impl ExploreFabric {
    pub(crate) fn new(session: Rc<Session>, caps: Caps) -> Self {
        ExploreFabric { session, caps, keyring: None, triggers: Rc::default() }
    }

    /// For what the explorer is to know of this rank besides its operations.
    pub fn probe(&self) -> Probe {
        Probe::new(self.session.clone())
    }

    fn me(&self) -> Rank {
        self.session.rank
    }

    fn region(&self, key: RegionKey, len: usize) -> ExploreRegion {
        ExploreRegion { registered: Rc::new(Registered { session: self.session.clone(), key }), len }
    }

    /// # Errors
    /// [`FabricError::PeerLost`], [`FabricError::StaleRegion`]: its memory can't be used any more.
    fn usable(&self, place: &Place) -> Result<()> {
        self.alive(place.addr.rank)?;
        self.registered(place.addr)
    }

    fn registered(&self, addr: RemoteAddr) -> Result<()> {
        let holding = Holding { rank: addr.rank, index: addr.region.index };
        if self.session.finds_dropped(holding) { Err(holding.stale()) } else { Ok(()) }
    }
}

fn same_length(have: usize, want: usize) -> Result<()> {
    if have == want { Ok(()) } else { Err(FabricError::LengthMismatch { have, want }) }
}

impl Fabric for ExploreFabric {
    type Loc = Place;
    type Region = ExploreRegion;
    type Handle<T: Unpin + 'static> = ExploreHandle<T>;

    fn triggers(&self) -> &Triggers<Self> {
        &self.triggers
    }

    fn rank(&self) -> Rank {
        self.me()
    }

    fn ranks(&self) -> usize {
        self.session.nodes.len()
    }

    fn node(&self, rank: Rank) -> Result<Node> {
        let nodes = &self.session.nodes;
        let node = nodes.get(rank.index()).ok_or(FabricError::NoSuchRank { rank, ranks: nodes.len() })?;
        Ok(Node::new(*node))
    }

    fn caps(&self) -> Caps {
        let mut caps = self.caps;
        caps.locked_memory = LockedMemory::Copies;
        caps
    }

    fn alloc(&self, bytes: usize) -> Result<ExploreRegion> {
        let ordinal = self.session.next_local_region();
        let key = self.session.cells.borrow_mut().alloc(self.me(), ordinal, bytes);
        Ok(self.region(key, bytes))
    }

    async fn alloc_symmetric(&self, bytes: usize) -> Result<ExploreRegion> {
        let ordinal = self.session.next_symmetric_region();
        let terms = self.keyring.as_ref().map_or([0; 3], |ring| ring.next_terms());
        let key = self.session.cells.borrow_mut().alloc_symmetric(self.me(), ordinal, bytes, terms)?;
        if let Some(ring) = &self.keyring {
            ring.add(key);
        }
        Ok(self.region(key, bytes))
    }

    fn keyless(&self, pact: Pact<Self>) -> Result<Self> {
        Ok(ExploreFabric { keyring: Some(Rc::new(Keyring::new(pact))), ..self.clone() })
    }

    fn locate(&self, addr: RemoteAddr, len: usize, align: usize, _width: usize) -> Result<Place> {
        self.alive(addr.rank)?;
        let cells = self.session.cells.borrow();
        if cells.is_locked(addr.region) && !self.keyring.as_ref().is_some_and(|ring| ring.opens(addr.region)) {
            return Err(FabricError::Locked { rank: addr.rank, region: addr.region });
        }
        cells.locate(self.ranks(), RemoteAddr { offset: 0, ..addr }, 0, 1)?;
        drop(cells);
        self.registered(addr)?;
        self.session.cells.borrow().locate(self.ranks(), addr, len, align)?;
        Ok(Place { addr, len })
    }

    fn load<W: AtomicWord>(&self, word: &LocalWord<Self, W>) -> Result<W> {
        self.registered(word.addr())?;
        let part = self.word::<W>(Agent::Cpu(self.me()), word.loc());
        let Some(Answer::Value(bits)) = self.session.ask(Act::Load(part)) else { return Err(OVER) };
        self.session.went_on();
        Ok(W::from_bits(part.get(bits)))
    }

    fn store<W: AtomicWord>(&self, word: &LocalWord<Self, W>, value: W) -> Result<()> {
        self.registered(word.addr())?;
        let part = self.word::<W>(Agent::Cpu(self.me()), word.loc());
        self.session.cells.borrow_mut().store(part.cell);
        self.session.ask(Act::Store(part, part.place(value.to_bits()))).ok_or(OVER)?;
        self.session.went_on();
        Ok(())
    }

    fn read<T: Pod>(&self, span: &LocalSpan<Self, T>, into: &mut [T]) -> Result<()> {
        same_length(into.len(), span.len())?;
        self.registered(span.loc().addr)?;
        let into = bytemuck::cast_slice_mut::<T, u8>(into);
        for (part, at) in self.pieces(Agent::Cpu(self.me()), span.loc()) {
            let Some(Answer::Value(bits)) = self.session.ask(Act::Load(part)) else { return Err(OVER) };
            self.session.went_on();
            bytes_of(part, bits, &mut into[at]);
        }
        Ok(())
    }

    fn write<T: Pod>(&self, span: &LocalSpan<Self, T>, from: &[T]) -> Result<()> {
        same_length(from.len(), span.len())?;
        self.registered(span.loc().addr)?;
        let from = bytemuck::cast_slice::<T, u8>(from);
        for (part, at) in self.pieces(Agent::Cpu(self.me()), span.loc()) {
            self.session.cells.borrow_mut().store(part.cell);
            self.session.ask(Act::Store(part, bits_of(part, &from[at]))).ok_or(OVER)?;
            self.session.went_on();
        }
        Ok(())
    }

    fn try_put<T: Pod, S: PutSource<Self, T>>(
        &self,
        to: &RemoteSpan<Self, T>,
        from: S,
        options: PutOptions,
    ) -> Result<ExploreHandle<S>, Refused<S>> {
        if let Err(error) = same_length(from.elements(), to.len()) {
            return Err(Refused::Failed(error, from));
        }
        if let Some(data) = options.notice
            && self.caps.notice_bits < 64
            && data >> self.caps.notice_bits != 0
        {
            let error = FabricError::NoticeTooWide { data, bits: self.caps.notice_bits };
            return Err(Refused::Failed(error, from));
        }
        let place = to.loc();
        if let Err(error) = self.usable(place) {
            return Err(Refused::Failed(error, from));
        }
        if let SourceView::Registered(source) = from.view()
            && let Err(error) = self.registered(source.addr)
        {
            return Err(Refused::Failed(error, from));
        }
        let notice = options.notice.map(|data| Told {
            from: self.me().number(),
            data,
            region: place.addr.region.to_bits(),
            end: place.addr.offset + place.len as u64,
        });
        let target = Holding { rank: place.addr.rank, index: place.addr.region.index };
        match from.view() {
            SourceView::Bytes(bytes) => {
                let pieces = self.pieces(Agent::Network, place).into_iter();
                let pieces = pieces.map(|(part, at)| (part, bits_of(part, &bytes[at]))).collect();
                self.session.tell(Act::Post(Op::Put { target, pieces, notice }));
                Ok(ExploreHandle::complete(&self.session, from))
            }
            SourceView::Registered(_) if place.len == 0 => {
                self.session.tell(Act::Post(Op::Put { target, pieces: Box::new([]), notice }));
                Ok(ExploreHandle::complete(&self.session, from))
            }
            SourceView::Registered(source) => {
                let pieces = self.across(place, source);
                let slot = self.session.take_slot();
                self.session.tell(Act::Post(Op::PutFrom { slot, target, pieces, notice }));
                Ok(ExploreHandle::posted(&self.session, slot, move |_| from))
            }
        }
    }

    fn try_get<T: Pod, D: GetSink<Self, T>>(
        &self,
        from: &RemoteSpan<Self, T>,
        mut to: D,
    ) -> Result<ExploreHandle<D>, Refused<D>> {
        if let Err(error) = same_length(to.elements(), from.len()) {
            return Err(Refused::Failed(error, to));
        }
        let place = from.loc();
        if let Err(error) = self.usable(place) {
            return Err(Refused::Failed(error, to));
        }
        if let SinkView::Registered(sink) = to.view()
            && let Err(error) = self.registered(sink.addr)
        {
            return Err(Refused::Failed(error, to));
        }
        if place.len == 0 {
            return Ok(ExploreHandle::complete(&self.session, to));
        }
        let slot = self.session.take_slot();
        let target = Holding { rank: place.addr.rank, index: place.addr.region.index };
        if let SinkView::Registered(sink) = to.view() {
            let region = sink.addr.region.index;
            let pieces = self.across(place, sink).iter().map(|(part, own)| (*part, Some(*own))).collect();
            self.session.tell(Act::Post(Op::Get { slot, target, pieces, sink: region }));
            return Ok(ExploreHandle::posted(&self.session, slot, move |_| to));
        }
        let parts = self.pieces(Agent::Network, place);
        let pieces = parts.iter().map(|(part, _)| (*part, None)).collect();
        self.session.tell(Act::Post(Op::Get { slot, target, pieces, sink: 0 }));
        Ok(ExploreHandle::posted(&self.session, slot, move |words| {
            if let SinkView::Bytes(bytes) = to.view() {
                for ((part, at), bits) in parts.into_iter().zip(words) {
                    bytes_of(part, *bits, &mut bytes[at]);
                }
            }
            to
        }))
    }

    fn try_atomic<W: AtomicWord>(
        &self,
        word: &RemoteWord<Self, W>,
        amo: Amo<W>,
    ) -> Result<ExploreHandle<W>, Refused<()>> {
        if let Err(error) = self.usable(word.loc()) {
            return Err(Refused::Failed(error, ()));
        }
        let at = self.word::<W>(Agent::Network, word.loc());
        let slot = self.session.take_slot();
        let rmw = Rmw::new(amo.to_bits());
        let addr = word.loc().addr;
        let target = Holding { rank: addr.rank, index: addr.region.index };
        self.session.tell(Act::Post(Op::Atomic { slot, target, at, rmw }));
        Ok(ExploreHandle::posted(&self.session, slot, |words| W::from_bits(words[0])))
    }

    fn try_nop(&self) -> Result<ExploreHandle<()>, Refused<()>> {
        Ok(ExploreHandle::complete(&self.session, ()))
    }

    async fn room(&self, target: Option<Rank>) -> Result<()> {
        target.map_or(Ok(()), |target| self.alive(target))
    }

    async fn flush(&self, target: Rank) -> Result<()> {
        self.node(target)?;
        self.alive(target)?;
        self.flushed(Some(target)).await
    }

    async fn flush_all(&self) -> Result<()> {
        self.flushed(None).await
    }

    async fn wait_until<W: AtomicWord>(
        &self,
        word: &LocalWord<Self, W>,
        deps: Deps<'_>,
        mut until: impl FnMut(W) -> bool,
    ) -> Result<W> {
        let part = self.word::<W>(Agent::Cpu(self.me()), word.loc());
        let look = Look::new(&self.session);
        poll_fn(|_| {
            if let Err(stale) = self.registered(word.addr()) {
                return Poll::Ready(Err(stale));
            }
            let Some(Answer::Value(bits)) = self.session.ask(Act::Watch(part)) else { return Poll::Pending };
            let value = W::from_bits(part.get(bits));
            if until(value) {
                self.session.went_on();
                Poll::Ready(Ok(value))
            } else {
                look.not_ready();
                self.hopeful(&deps, &look).map_or_else(|lost| Poll::Ready(Err(lost)), |()| Poll::Pending)
            }
        })
        .await
    }

    fn try_notice(&self) -> Result<Option<Notice>> {
        let answer = self.session.ask(Act::TryNotice).ok_or(OVER)?;
        self.session.went_on();
        Ok(if let Answer::Notice(told) = answer { Some(told.notice()) } else { None })
    }

    async fn next_notice(&self, deps: Deps<'_>) -> Result<Notice> {
        let look = Look::new(&self.session);
        poll_fn(|_| {
            if let Some(Answer::Notice(told)) = self.session.ask(Act::NextNotice) {
                self.session.went_on();
                Poll::Ready(Ok(told.notice()))
            } else {
                look.not_ready();
                self.hopeful(&deps, &look).map_or_else(|lost| Poll::Ready(Err(lost)), |()| Poll::Pending)
            }
        })
        .await
    }

    fn now(&self) -> Time {
        let Some(Answer::Value(now)) = self.session.ask(Act::Now) else { return Time::ZERO };
        self.session.went_on();
        Time::from_picos(now)
    }

    async fn sleep_until(&self, at: Time) {
        let look = Look::new(&self.session);
        poll_fn(|_| {
            if self.session.ask(Act::Sleep(at.as_picos())) == Some(Answer::Done) {
                self.session.went_on();
                Poll::Ready(())
            } else {
                look.not_ready();
                Poll::Pending
            }
        })
        .await;
    }

    async fn compute(&self, _duration: Duration) {}

    async fn charge(&self, _layer: &'static str) {}

    fn detach(&self, rest: impl Future<Output = ()> + 'static) {
        self.session.detach(rest);
    }
}

impl ExploreFabric {
    fn flushed(&self, target: Option<Rank>) -> ExploreHandle<()> {
        let slot = self.session.take_slot();
        self.session.tell(Act::Post(Op::Flush { slot, target }));
        ExploreHandle::posted(&self.session, slot, |_| ())
    }
}

impl rdma_fabric::SessionFabric for ExploreFabric {
    type Queue = rdma_fabric::control_queue::NoQueue<Self>;
}

impl rdma_fabric::barrier::BarrierFabric for ExploreFabric {}
