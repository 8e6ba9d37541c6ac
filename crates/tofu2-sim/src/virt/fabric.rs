//! The contract, in virtual time.

use super::{
    handle::Handle,
    memory::{Loc, SPARSE, is_zero},
    op::{Cargo, Op, Verb},
    rank_state::Status,
    region::Region,
    waits::{self, Room},
    world::World,
};
use bytemuck::{Pod, cast_slice, cast_slice_mut};
use rdma_fabric::{
    Amo, AtomicWord, Caps, Deps, Existing, Fabric, FabricError, GetSink, Keyring, LocalSpan, LocalWord, Location,
    LockedMemory, Node, Notice, OwnedMemory, Pact, PutOptions, PutOrder, PutSource, Rank, Refused, RegionKey,
    RemoteAddr, RemoteSpan, RemoteWord, Result, Time, Triggers, Uses,
    op::{SinkView, SourceView},
};
use std::{
    fmt,
    future::{Future, ready},
    rc::Rc,
    time::Duration,
};

/// One rank of a simulated job.
///
/// All of a rank's code runs in zero virtual time except where the model charges for it: posting an operation
/// keeps the rank's CPU busy for the platform's `post` time, [`Fabric::compute`] and [`Fabric::charge`] for what they are given.
/// A rank that posts without ever waiting runs ahead of the other ranks by that time, at most as long as
/// its transmit queue lasts; it sees memory as it was when it last waited.
#[derive(Clone)]
pub struct VirtFabric {
    pub(super) world: Rc<World>,
    pub(super) rank: u32,
    /// The regions without keys that this handle opens, if it is for such.
    pub(super) keyring: Option<Rc<Keyring<VirtFabric>>>,
}

impl fmt::Debug for VirtFabric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VirtFabric(rank {})", self.rank)
    }
}

impl VirtFabric {
    /// A handle without keys allocates symmetric memory only.
    fn only_with_keys(&self) -> Result<()> {
        match self.keyring {
            None => Ok(()),
            Some(_) => Err(FabricError::Unsupported { feature: "local memory without a key" }),
        }
    }

    fn opens(&self, key: RegionKey) -> bool {
        self.keyring.as_ref().is_some_and(|ring| ring.opens(key))
    }

    fn spend(&self, picos: u64) -> impl Future<Output = ()> + use<> {
        waits::busy(self.clone(), picos)
    }

    /// Whether an operation on `target` can be posted now.
    #[inline]
    fn admit(&self, core: &super::core::Core, target: &Loc) -> Result<Admission> {
        core.check(target)?;
        Ok(if core.is_full(self.rank) { Admission::Full } else { Admission::Granted })
    }
}

#[derive(PartialEq, Eq)]
enum Admission {
    Granted,
    Full,
}

impl Fabric for VirtFabric {
    type Loc = Loc;
    type Region = Region;
    type Handle<T: Unpin + 'static> = Handle<T>;

    fn triggers(&self) -> &Triggers<Self> {
        &self.world.triggers[self.rank as usize]
    }

    fn rank(&self) -> Rank {
        Rank::new(self.rank)
    }

    fn ranks(&self) -> usize {
        self.world.core().ranks.len()
    }

    fn node(&self, rank: Rank) -> Result<Node> {
        let core = self.world.core();
        if rank.index() < core.ranks.len() {
            Ok(Node::new(core.node_of(rank.number())))
        } else {
            Err(FabricError::NoSuchRank { rank, ranks: core.ranks.len() })
        }
    }

    fn nodes(&self) -> usize {
        let core = self.world.core();
        core.ranks.len().div_ceil(core.ranks_per_node as usize)
    }

    fn rank_on(&self, node: Node, number: usize) -> Option<Rank> {
        let core = self.world.core();
        let on_node = core.ranks_per_node as usize;
        let rank = node.index().checked_mul(on_node)?.checked_add(number)?;
        (number < on_node && rank < core.ranks.len()).then(|| Rank::new(rank as u32))
    }

    fn caps(&self) -> Caps {
        let core = self.world.core();
        let mut caps = Caps::weakest();
        caps.put_order = PutOrder::None;
        caps.coherent_atomics = true;
        caps.notice_bits = core.timing.notice_bits;
        caps.session_queues = core.timing.queues.session > 0;
        caps.strong_progress = true;
        caps.register_existing = Existing::Direct;
        caps.locked_memory = LockedMemory::Copies;
        caps.blocking_wait = false;
        caps.max_transfer = core.timing.max_transfer;
        caps
    }

    fn alloc(&self, bytes: usize) -> Result<Region> {
        self.only_with_keys()?;
        let key = {
            let mut core = self.world.core();
            core.reserve_memory(self.rank, bytes)?;
            core.memory.register(self.rank, bytes)
        };
        self.registered(key, bytes)
    }

    #[allow(clippy::manual_async_fn)]
    fn alloc_symmetric(&self, bytes: usize) -> impl Future<Output = Result<Region>> {
        async move {
            let key = {
                let mut core = self.world.core();
                core.reserve_memory(self.rank, bytes)?;
                let state = &mut core.ranks[self.rank as usize];
                let number = state.symmetric;
                state.symmetric += 1;
                let terms = self.keyring.as_ref().map(|ring| ring.next_terms());
                core.memory.join_symmetric(self.rank, number, bytes, terms)
            };
            if let (Some(ring), Ok(key)) = (&self.keyring, &key) {
                ring.add(*key);
            }
            self.registered(key, bytes)
        }
    }

    /// Its memory is nobody's but the simulated network's: there are no references to it.
    fn keyless(&self, pact: Pact<Self>) -> Result<Self> {
        Ok(VirtFabric { keyring: Some(Rc::new(Keyring::new(pact))), ..self.clone() })
    }

    /// The network reaches it like any region. Nothing is charged for it.
    fn adopt(&self, memory: OwnedMemory, _: Uses) -> Result<Region, (FabricError, OwnedMemory)> {
        let region = match self.alloc(memory.len()) {
            Ok(region) => region,
            Err(error) => return Err((error, memory)),
        };
        let mut core = self.world.core();
        let whole = RemoteAddr { rank: self.rank(), region: rdma_fabric::Region::key(&region), offset: 0 };
        match core.memory.locate(whole, memory.len(), 1) {
            Ok(whole) => core.memory.copy_in(&whole, memory.bytes()),
            Err(error) => {
                drop(core);
                return Err((error, memory));
            }
        }
        drop(core);
        Ok(region.of_existing(memory))
    }

    /// Operations that arrive later find the region gone.
    fn release(&self, mut region: Region) -> impl Future<Output = Result<OwnedMemory>> {
        let whole = RemoteAddr { rank: self.rank(), region: rdma_fabric::Region::key(&region), offset: 0 };
        let taken =
            region.take_existing().ok_or(FabricError::Unsupported { feature: "giving memory back that was allocated" });
        let taken = taken.and_then(|mut memory| {
            let core = self.world.core();
            let whole = core.memory.locate(whole, memory.len(), 1)?;
            core.memory.copy_out(&whole, memory.bytes_mut());
            Ok(memory)
        });
        drop(region);
        ready(taken)
    }

    fn locate(&self, addr: RemoteAddr, len: usize, align: usize, _width: usize) -> Result<Loc> {
        let core = self.world.core();
        match core.status_of(addr.rank.number()) {
            None => Err(FabricError::NoSuchRank { rank: addr.rank, ranks: core.ranks.len() }),
            Some(Status::Lost) => Err(FabricError::PeerLost { rank: addr.rank }),
            Some(_) if core.memory.is_locked(addr.region) && !self.opens(addr.region) => {
                Err(FabricError::Locked { rank: addr.rank, region: addr.region })
            }
            Some(_) => core.memory.locate(addr, len, align),
        }
    }

    fn load<W: AtomicWord>(&self, word: &LocalWord<Self, W>) -> Result<W> {
        let core = self.world.core();
        core.check(word.loc())?;
        Ok(W::from_bits(core.memory.load(word.loc())))
    }

    fn store<W: AtomicWord>(&self, word: &LocalWord<Self, W>, value: W) -> Result<()> {
        let mut core = self.world.core();
        core.check(word.loc())?;
        core.memory.store(word.loc(), value.to_bits());
        core.touched(word.loc());
        Ok(())
    }

    fn read<T: Pod>(&self, span: &LocalSpan<Self, T>, into: &mut [T]) -> Result<()> {
        same_length(into.len(), span.len())?;
        let core = self.world.core();
        core.check(span.loc())?;
        core.memory.copy_out(span.loc(), cast_slice_mut(into));
        Ok(())
    }

    fn write<T: Pod>(&self, span: &LocalSpan<Self, T>, from: &[T]) -> Result<()> {
        same_length(from.len(), span.len())?;
        let mut core = self.world.core();
        core.check(span.loc())?;
        core.memory.copy_in(span.loc(), cast_slice(from));
        core.touched(span.loc());
        Ok(())
    }

    fn try_put<T: Pod, S: PutSource<Self, T>>(
        &self,
        to: &RemoteSpan<Self, T>,
        from: S,
        options: PutOptions,
    ) -> Result<Handle<S>, Refused<S>> {
        let target = *to.loc();
        let posted = match from.view() {
            SourceView::Bytes(bytes) => self.post_put(target, Payload::Bytes(bytes), options),
            SourceView::Registered(loc) => self.post_put(target, Payload::Registered(*loc), options),
        };
        match posted {
            Ok(Some(time)) => Ok(Handle::at(Rc::clone(&self.world), self.rank, time, from)),
            Ok(None) => Err(Refused::Full(from)),
            Err(error) => Err(Refused::Failed(error, from)),
        }
    }

    fn try_get<T: Pod, D: GetSink<Self, T>>(
        &self,
        from: &RemoteSpan<Self, T>,
        mut to: D,
    ) -> Result<Handle<D>, Refused<D>> {
        let target = *from.loc();
        let (len, sink) = match to.view() {
            SinkView::Bytes(bytes) => (bytes.len(), None),
            SinkView::Registered(loc) => (loc.len(), Some(*loc)),
        };
        let mut core = self.world.core();
        let admission = same_length(len, target.len())
            .and_then(|()| sink.map_or(Ok(()), |sink| core.check(&sink)))
            .and_then(|()| self.admit(&core, &target));
        match admission {
            Err(error) => return Err(Refused::Failed(error, to)),
            Ok(Admission::Full) => return Err(Refused::Full(to)),
            Ok(Admission::Granted) => {}
        }
        let mut op = Op::new(Verb::Get, self.rank, target);
        if sink.is_some() {
            op.cargo = Some(Box::new(Cargo { sink, ..Cargo::default() }));
        }
        let (slot, generation, _) = core.post(op);
        drop(core);
        Ok(Handle::of(Rc::clone(&self.world), self.rank, (slot, generation), to, fill::<T, D>))
    }

    #[inline]
    fn try_atomic<W: AtomicWord>(&self, word: &RemoteWord<Self, W>, amo: Amo<W>) -> Result<Handle<W>, Refused<()>> {
        let (verb, a, b) = Verb::of(amo);
        let mut core = self.world.core();
        match self.admit(&core, word.loc()) {
            Err(error) => return Err(Refused::Failed(error, ())),
            Ok(Admission::Full) => return Err(Refused::Full(())),
            Ok(Admission::Granted) => {}
        }
        let mut op = Op::new(verb, self.rank, *word.loc());
        (op.a, op.b) = (a.to_bits(), b.to_bits());
        let (slot, generation, _) = core.post(op);
        drop(core);
        let patch = |value: &mut W, bits: u64, _: &[u8]| *value = W::from_bits(bits);
        Ok(Handle::of(Rc::clone(&self.world), self.rank, (slot, generation), W::from_bits(0), patch))
    }

    fn try_nop(&self) -> Result<Handle<()>, Refused<()>> {
        let mut core = self.world.core();
        if core.is_full(self.rank) {
            return Err(Refused::Full(()));
        }
        // It never leaves the node.
        let mut place = Loc::nowhere();
        place.rank = self.rank;
        let (slot, generation, _) = core.post(Op::new(Verb::Nop, self.rank, place));
        drop(core);
        Ok(Handle::of(Rc::clone(&self.world), self.rank, (slot, generation), (), |_, _, _| ()))
    }

    fn room(&self, target: Option<Rank>) -> impl Future<Output = Result<()>> {
        Room::new(self.clone(), target)
    }

    fn flush(&self, target: Rank) -> impl Future<Output = Result<()>> {
        waits::flush(self.clone(), Some(target))
    }

    fn flush_all(&self) -> impl Future<Output = Result<()>> {
        waits::flush(self.clone(), None)
    }

    fn wait_until<W: AtomicWord>(
        &self,
        word: &LocalWord<Self, W>,
        deps: Deps<'_>,
        until: impl FnMut(W) -> bool,
    ) -> impl Future<Output = Result<W>> {
        waits::until(self, word.loc(), deps, until)
    }

    fn try_notice(&self) -> Result<Option<Notice>> {
        Ok(self.world.core().take_notice(self.rank))
    }

    fn next_notice(&self, deps: Deps<'_>) -> impl Future<Output = Result<Notice>> {
        waits::notice(self, deps)
    }

    fn now(&self) -> Time {
        Time::from_picos(self.world.core().now_of(self.rank))
    }

    fn sleep_until(&self, at: Time) -> impl Future<Output = ()> {
        waits::sleep(self.clone(), at.as_picos())
    }

    fn compute(&self, duration: Duration) -> impl Future<Output = ()> {
        self.spend(u64::try_from(duration.as_nanos().saturating_mul(1000)).unwrap_or(u64::MAX))
    }

    fn charge(&self, layer: &'static str) -> impl Future<Output = ()> {
        let picos = self.world.core().timing.software(layer);
        self.spend(picos)
    }

    fn detach(&self, rest: impl Future<Output = ()> + 'static) {
        let mut core = self.world.core();
        if core.status_of(self.rank) == Some(Status::Running) {
            core.wake(self.rank);
            drop(core);
            self.world.detached.add(self.rank, Box::pin(rest));
        }
    }
}

/// Where a put's bytes are.
enum Payload<'a> {
    Bytes(&'a [u8]),
    Registered(Loc),
}

impl VirtFabric {
    /// Posts a put, its bytes copied now. Returns when the source is reusable, or `None` if there is no room.
    fn post_put(&self, target: Loc, payload: Payload<'_>, options: PutOptions) -> Result<Option<u64>> {
        let len = match &payload {
            Payload::Bytes(bytes) => bytes.len(),
            Payload::Registered(loc) => loc.len(),
        };
        same_length(len, target.len())?;
        let mut core = self.world.core();
        if let Payload::Registered(loc) = &payload {
            core.check(loc)?;
        }
        if let Some(data) = options.notice
            && core.timing.notice_bits < 64
            && data >> core.timing.notice_bits != 0
        {
            return Err(FabricError::NoticeTooWide { data, bits: core.timing.notice_bits });
        }
        if self.admit(&core, &target)? == Admission::Full {
            return Ok(None);
        }
        if options.notice.is_some() && !core.reserve_notice(self.rank, target.rank) {
            return Ok(None);
        }
        let mut op = Op::new(Verb::Put, self.rank, target);
        let mut cargo = options.notice.map(|data| Cargo { notice: Some(data), ..Cargo::default() });
        if len <= 8 {
            let mut word = 0u64;
            let bytes = &mut bytemuck::bytes_of_mut(&mut word)[..len];
            match payload {
                Payload::Bytes(from) => bytes.copy_from_slice(from),
                Payload::Registered(loc) => core.memory.copy_out(&loc, bytes),
            }
            op.a = word;
        } else {
            let bytes = match payload {
                Payload::Bytes(from) if len > SPARSE && is_zero(from) => vec![0; len],
                Payload::Bytes(from) => owned(from)?,
                Payload::Registered(loc) => core.memory.copied(&loc),
            };
            cargo.get_or_insert_default().bytes = bytes;
        }
        op.cargo = cargo.map(Box::new);
        let now = core.now;
        core.ranks[self.rank as usize].extra().unflushed.posted(target.rank, now);
        let (_, _, reusable_at) = core.post(op);
        Ok(Some(reusable_at))
    }

    fn registered(&self, key: Result<RegionKey>, bytes: usize) -> Result<Region> {
        match key {
            Ok(key) => Ok(Region::new(Rc::clone(&self.world), self.rank, key, bytes)),
            Err(error) => {
                self.world.core().ranks[self.rank as usize].registered -= bytes as u64;
                Err(error)
            }
        }
    }
}

impl super::core::Core {
    /// Counts memory that a rank is about to register against its limit.
    fn reserve_memory(&mut self, rank: u32, bytes: usize) -> Result<()> {
        let limit = self.memory_limit;
        let registered = &mut self.ranks[rank as usize].registered;
        let free = limit.saturating_sub(*registered);
        if bytes as u64 > free {
            return Err(FabricError::OutOfMemory {
                rank: Rank::new(rank),
                requested: bytes,
                available: free as usize,
                segment: limit as usize,
            });
        }
        *registered += bytes as u64;
        Ok(())
    }

    /// Takes a place in the target's notice queue; false if there is none now.
    fn reserve_notice(&mut self, rank: u32, target: u32) -> bool {
        let depth = self.timing.receive_queue;
        let state = &mut self.ranks[target as usize];
        state.status != Status::Running || state.extra().receive_queue.reserve(rank, depth)
    }

    /// The oldest notice of a rank.
    pub(super) fn take_notice(&mut self, rank: u32) -> Option<Notice> {
        let depth = self.timing.receive_queue;
        let (notice, next) = self.ranks[rank as usize].existing()?.receive_queue.take(depth)?;
        if let Some(next) = next {
            self.wake(next);
        }
        Some(notice)
    }
}

/// A copy, if there is memory for it.
fn owned(bytes: &[u8]) -> Result<Vec<u8>> {
    const OUT_OF_MEMORY: i32 = 12;
    let mut copy = Vec::new();
    copy.try_reserve_exact(bytes.len()).map_err(|_| FabricError::System { call: "alloc", errno: OUT_OF_MEMORY })?;
    copy.extend_from_slice(bytes);
    Ok(copy)
}

/// Gives a get's sink its bytes.
fn fill<T: Pod, D: GetSink<VirtFabric, T>>(to: &mut D, word: u64, bytes: &[u8]) {
    if let SinkView::Bytes(into) = to.view() {
        let word = word.to_ne_bytes();
        let from = if bytes.is_empty() { &word[..] } else { bytes };
        // A sink that has changed its length since gets what fits.
        let len = into.len().min(from.len());
        into[..len].copy_from_slice(&from[..len]);
    }
}

fn same_length(have: usize, want: usize) -> Result<()> {
    if have == want { Ok(()) } else { Err(FabricError::LengthMismatch { have, want }) }
}
