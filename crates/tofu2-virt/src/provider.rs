//! The provider: the virtual-time implementation below a rank's [`Fabric`].
//!
//! It checks, once per call, that it is used on the simulating thread.

use super::{
    core::Core,
    memory::Loc,
    operation::{Payload, posted},
    world::World,
};
use rdma_fabric::{
    AccessPolicy, Amo, Blocks, Caps, Existing, Fabric, FabricError, Keyring, LockedMemory, Multicasts, Notice,
    OwnedMemory, PutOrder, Rank, Region, RegionKey, RemoteAddr, Result, Time, Uses,
    provider::{
        BarrierUnit, BlockPuts, Boxed, Colours, Deferred, Ended, HelperTask, JobFacts, Lender, Multicast, Nodes,
        OneThread, Place, Posted, Protected, Provider, Queues, Sink, Source, Token, WaitFor, WaitState,
    },
};
use std::{
    fmt,
    future::ready,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll},
};

/// One rank of a simulated job, with its access to the machine.
///
/// A rank's code runs in zero virtual time, except where the model charges for it: posting an
/// operation keeps the rank's CPU busy for the platform's `post` time; computing and charging, for
/// the given time. A rank that posts without ever waiting runs ahead of the other ranks by that
/// time, until its transmit queue is full at the latest. It sees memory as it was when it last
/// waited.
#[derive(Clone)]
pub(super) struct Me {
    pub(super) world: Rc<World>,
    pub(super) rank: u32,
}

impl Me {
    /// Returns the CPU that runs now: the program's, or a helper's.
    #[inline]
    pub(super) fn lane(&self) -> u32 {
        self.world.lane_of(self.rank)
    }
}

impl Me {
    /// Converts a place to the core's form. Bounds and locks were checked when it was resolved.
    ///
    /// # Errors
    /// [`FabricError::Unsupported`] for a place of another provider or run.
    #[inline]
    pub(super) fn loc(&self, place: &Place) -> Result<Loc> {
        if !place.has_keep_alive(&self.world.keep_alive) {
            return Err(FabricError::Unsupported { feature: &"a place of another provider" });
        }
        let RemoteAddr { rank, region, offset } = place.addr();
        Ok(Loc::new(rank.number(), region, offset, place.len() as u64))
    }

    #[inline]
    fn payload<'a>(&self, from: Source<'a>) -> Result<Payload<'a>> {
        Ok(match from {
            Source::Bytes(bytes) => Payload::Bytes(bytes),
            Source::Place(place) => Payload::Registered(self.loc(place)?),
        })
    }

    fn put_from(&self, to: &Place, from: Source<'_>, notice: Option<u64>) -> Result<Posted> {
        Ok(self.put((self.loc(to)?, to.is_prepared()), self.payload(from)?, notice))
    }

    fn get_into(&self, from: &Place, to: &Sink<'_>) -> Result<Posted> {
        let sink = match to {
            Sink::Bytes(_) => None,
            Sink::Place(place) => Some(self.loc(place)?),
        };
        Ok(self.get((self.loc(from)?, from.is_prepared()), to.len(), sink))
    }
}

/// A rank's provider, with the keys of its handle.
pub(super) struct VirtRank<K = ()> {
    pub(super) me: OneThread<Me>,
    keys: K,
}

/// The protected regions that a handle opens, if it is a protected handle.
pub(super) trait Keys: fmt::Debug + Send + Sync + 'static {
    fn keyring(&self) -> Option<&Keyring>;
}

impl Keys for () {
    #[inline]
    fn keyring(&self) -> Option<&Keyring> {
        None
    }
}

impl Keys for Keyring {
    fn keyring(&self) -> Option<&Keyring> {
        Some(self)
    }
}

/// Makes the fabrics of all ranks of a job.
pub(super) fn fabrics(world: &Rc<World>) -> impl Fn(u32) -> Fabric + use<> {
    let (world, facts) = (Rc::clone(world), Arc::new(world.core().facts()));
    move |rank| fabric_of(OneThread::new(Me { world: Rc::clone(&world), rank }), &facts)
}

fn fabric_of(me: OneThread<Me>, facts: &Arc<JobFacts>) -> Fabric {
    Fabric::new(Rank::new(me.rank), Arc::clone(facts), VirtRank { me, keys: () })
}

/// Size in bytes of each rank's fabric.
pub(super) const FABRIC_BYTES: usize = Fabric::bytes_over::<VirtRank>();

impl<K> fmt::Debug for VirtRank<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in virtual time", Rank::new(self.me.rank))
    }
}

impl<K: Keys> Provider for VirtRank<K> {
    fn alloc(&self, bytes: usize) -> Result<Region> {
        match self.keys.keyring() {
            None => self.me.alloc(bytes),
            Some(_) => Err(FabricError::Unsupported { feature: &"local protected memory" }),
        }
    }

    fn alloc_symmetric(&self, bytes: usize) -> Boxed<'_, Result<Region>> {
        Box::pin(async move { self.me.alloc_symmetric(bytes, self.keys.keyring()) })
    }

    fn adopt(&self, memory: OwnedMemory, _: Uses) -> Result<Region, (FabricError, OwnedMemory)> {
        match self.keys.keyring() {
            None => self.me.adopt(memory),
            Some(_) => Err((FabricError::Unsupported { feature: &"local protected memory" }, memory)),
        }
    }

    fn release(&self, region: Region) -> Boxed<'_, Result<OwnedMemory>> {
        Box::pin(ready(self.me.release(region)))
    }

    fn resolve(&self, addr: RemoteAddr, len: usize, align: usize, _: usize) -> Result<Place> {
        let opens = |key: RegionKey| self.keys.keyring().is_some_and(|keyring| keyring.opens(key));
        self.me.world.core().locate(addr, len, align, opens)?;
        Ok(Place::remote(addr, len, self.me.world.keep_alive.clone()))
    }

    #[inline]
    fn read(&self, from: &Place, into: &mut [u8], _: bool) -> Result<()> {
        self.me.read(&self.me.loc(from)?, into)
    }

    #[inline]
    fn write(&self, to: &Place, from: &[u8], _: bool) -> Result<()> {
        self.me.write(&self.me.loc(to)?, from)
    }

    fn put(&self, to: &Place, from: Source<'_>, notice: Option<u64>) -> Posted {
        posted(self.me.put_from(to, from, notice))
    }

    fn get(&self, from: &Place, to: Sink<'_>) -> Posted {
        posted(self.me.get_into(from, &to))
    }

    fn copy(&self, to: &Place, from: &Place) -> Posted {
        let copied = || Ok(self.me.copy(self.me.loc(to)?, self.me.loc(from)?));
        posted(copied())
    }

    #[inline]
    fn atomic(&self, word: &Place, amo: Amo<u64>) -> Posted {
        self.me.atomic(word, amo)
    }

    fn nop(&self) -> Posted {
        self.me.nop()
    }

    #[inline]
    fn poll(&self, token: &mut Token, into: Sink<'_>, cx: &mut Context<'_>) -> Poll<Result<u64>> {
        self.me.poll(token, into, cx)
    }

    fn test(&self, token: &Token) -> bool {
        self.me.test(token)
    }

    fn forget(&self, token: Token) {
        self.me.forget(token);
    }

    #[inline]
    fn is_flushed(&self) -> bool {
        let me = &*self.me;
        let lane = me.lane();
        let core = me.world.core();
        core.ranks.is_flushed(lane, core.clock.now())
    }

    fn try_notice(&self, _: bool) -> Result<Option<Notice>> {
        let me = &*self.me;
        if me.lane() != me.rank {
            return Err(FabricError::Unsupported { feature: &"notices of a helper" });
        }
        Ok({
            let core = &mut *me.world.core();
            core.ranks.take_notice(me.rank, core.machine.timing.receive_queue)
        })
    }

    #[inline]
    fn poll_wait(&self, wait_state: &mut WaitState, wait_for: WaitFor<'_>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.me.poll_wait(wait_state, wait_for, cx)
    }

    #[inline]
    fn end_wait(&self, wait_state: &mut WaitState, wait_for: WaitFor<'_>, _: Ended) {
        if !wait_state.is_empty() {
            self.me.end_wait(wait_state, wait_for);
        }
    }

    fn now(&self) -> Time {
        let me = &*self.me;
        let lane = me.lane();
        Time::from_picos(me.world.core().now_of(lane))
    }

    fn detach(&self, deferred: Deferred<'_>) {
        let me = &*self.me;
        me.world.detach(me.rank, deferred.boxed());
    }

    fn abort(&self, text: &str, code: i32) -> FabricError {
        let me = &*self.me;
        me.world.abort(Rank::new(me.rank), text, code)
    }

    fn multicast(&self) -> Option<&dyn Multicast> {
        (self.me.world.core().machine.timing.multicast > 0).then_some(self)
    }

    fn block_puts(&self) -> Option<&dyn BlockPuts> {
        self.me.world.core().machine.timing.block_puts.then_some(self)
    }

    fn queues(&self) -> Option<&dyn Queues> {
        let there = self.me.world.core().machine.timing.queues.engines > 0;
        there.then_some(self as &dyn Queues)
    }

    fn gates(&self) -> Option<&dyn BarrierUnit> {
        let there = self.me.world.core().machine.timing.barrier_gates > 0;
        there.then_some(self as &dyn BarrierUnit)
    }

    fn colours(&self) -> Option<&dyn Colours> {
        let there = self.me.world.core().machine.timing.barrier_colours > 0;
        there.then_some(self as &dyn Colours)
    }

    fn protected(&self) -> Option<&dyn Protected> {
        Some(self)
    }

    fn lender(&self) -> Option<&dyn Lender> {
        Some(self)
    }

    fn helper(&self, like: &Fabric, name: &'static str, task: HelperTask) -> Result<()> {
        let fabric = fabric_of(OneThread::new(self.me.clone()), like.facts());
        self.me.start_helper(name, Box::pin(async move { task(fabric).await }))
    }
}

impl<K: Keys> Multicast for VirtRank<K> {
    fn reaches(&self, members: &[Rank]) -> Result<()> {
        self.me.world.core().machine.reaches(members)
    }

    fn multicast(&self, to: &[Place], from: Source<'_>) -> Posted {
        posted(self.me.payload(from).map(|payload| self.me.multicast(to, &payload)))
    }
}

impl<K: Keys> BlockPuts for VirtRank<K> {
    fn put_blocks(&self, to: &Place, from: &Place, len: usize, blocks: Blocks) -> Posted {
        let put = || Ok(self.me.put_blocks(self.me.loc(to)?, self.me.loc(from)?, len as u64, blocks));
        posted(put())
    }
}

/// The memory belongs to the simulated network alone: there are no references to it.
impl<K: Keys> Protected for VirtRank<K> {
    fn open(&self, like: &Fabric, policy: AccessPolicy) -> Result<Fabric> {
        if like.rank().number() != self.me.rank {
            return Err(FabricError::Unsupported { feature: &"a handle like that of another rank" });
        }
        Ok(like.sibling(VirtRank { me: OneThread::new(self.me.clone()), keys: Keyring::new(policy) }))
    }
}

impl Core {
    fn facts(&self) -> JobFacts {
        let mut caps = Caps::weakest();
        caps.put_order = PutOrder::None;
        // On Tofu, only strong order keeps the order of puts, and only control queues have it.
        caps.puts_in_order = self.machine.timing.ordered_puts;
        caps.third_party_copy = self.machine.timing.third_party_copy;
        caps.multicasts = if self.machine.timing.multicast > 0 { Multicasts::Hardware } else { Multicasts::None };
        caps.coherent_atomics = true;
        caps.atomics = self.machine.timing.atomics;
        caps.notice_bits = self.machine.timing.notice_bits;
        caps.session_queues = self.machine.timing.queues.session > 0;
        caps.hardware_gates = self.machine.timing.barrier_gates > 0;
        caps.strong_progress = true;
        caps.register_existing = Existing::Direct;
        caps.locked_memory = LockedMemory::Copies;
        caps.helpers = true;
        caps.blocking_wait = false;
        caps.max_transfer = self.machine.timing.max_transfer;
        JobFacts { ranks: self.ranks.len(), nodes: Nodes::Blocks(self.machine.ranks_per_node as usize), caps }
    }
}
