//! The lock, and its guards.

use super::gate::{ARRIVE, DEPART, Gate};
use crate::{
    Fairness, Guard, KeptExclusive, Lock, Result, RmaLock,
    nodes::own_node,
    owed::{Owed, Side},
    posting::{NotOver, Posting, poll_atomic},
    queue::{LOCK_BYTES, Queue},
    shortcut::{Now, Try, shortcut},
};
use core::{
    fmt,
    future::{self, Future},
    marker::PhantomData,
    mem,
    task::Context,
};
use rdma_fabric::{Fabric, FabricError, GroupMemory, Rank, RemoteWord, Time};
use std::sync::{Arc, OnceLock};

const LINE: usize = 64;
/// After the words of the queue.
const GATE: u64 = LOCK_BYTES as u64;
const LIMIT: u64 = GATE + 8;
const WAITING: u64 = GATE + 16;
const FLAGS: u64 = GATE + LINE as u64;

/// A lock for data that is hardly ever written: readers count at their own node, and no operation of theirs leaves it, but for a word to a writer that
/// waits; a writer, kept apart from others by `L`, closes every node's gate and waits until the readers inside have left. (A distributed reader
/// indicator, as of BRAVO or of foMPI's local words.)
///
/// A reader does 1 atomic at its node, and 1 to leave; 1 get more if a writer waits. A writer does 2 atomics for each node besides what `L` costs,
/// pipelined, and a put and a get for each node where readers are inside.
///
/// # Waiting
/// On own memory: readers on queue nodes, the writer on a flag for each node. No release waits for another rank's CPU.
///
/// # Fairness
/// [`Fairness::Alternating`].
///
/// # Memory
/// A word for each node at each rank.
pub struct IndicatorLock<L> {
    pub(super) core: Arc<Core<L>>,
}

/// A rank's side.
pub(super) struct Core<L> {
    pub(super) queue: Queue,
    /// Keeps writers apart.
    pub(super) lock: L,
    memory: GroupMemory,
    /// The words of this rank's node.
    pub(super) gate: RemoteWord<u64>,
    pub(super) limit: RemoteWord<u64>,
    /// The node's number among those of the lock's ranks.
    pub(super) node: usize,
    /// The first ranks of all nodes; known to those that write.
    first: OnceLock<Box<[Rank]>>,
}

impl<L> Clone for IndicatorLock<L> {
    fn clone(&self) -> Self {
        IndicatorLock { core: self.core.clone() }
    }
}

impl<L: fmt::Debug> fmt::Debug for IndicatorLock<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IndicatorLock({:?}, {:?})", self.core.lock, self.core.queue)
    }
}

impl<L: 'static> Side for Core<L> {
    fn fabric(&self) -> &Fabric {
        &self.queue.fabric
    }
}

impl<L: KeptExclusive> Core<L> {
    /// The first rank of each node, where its words are.
    pub(super) fn first_ranks(&self) -> Result<&[Rank]> {
        if let Some(first) = self.first.get() {
            return Ok(first);
        }
        let first = crate::nodes::first_ranks(&self.queue.fabric, &self.memory)?;
        Ok(self.first.get_or_init(|| first.into()))
    }

    pub(super) fn gate_at(&self, first: Rank) -> Result<RemoteWord<u64>, FabricError> {
        self.queue.fabric.remote_word(self.memory.at(first, GATE)?)
    }

    pub(super) fn limit_at(&self, first: Rank) -> Result<RemoteWord<u64>, FabricError> {
        self.queue.fabric.remote_word(self.memory.at(first, LIMIT)?)
    }

    pub(super) fn waiting_at(&self, first: Rank) -> Result<RemoteWord<u64>, FabricError> {
        self.queue.fabric.remote_word(self.memory.at(first, WAITING)?)
    }

    /// Which rank has this rank's node's words.
    pub(super) fn my_first(&self) -> Rank {
        self.gate.rank()
    }

    /// `writer`'s flag for a node.
    pub(super) fn flag_at(&self, writer: Rank, node: usize) -> Result<RemoteWord<u64>, FabricError> {
        self.queue.fabric.remote_word(self.memory.at(writer, FLAGS + 8 * node as u64)?)
    }

    /// This rank's own.
    pub(super) fn flag_addr(&self, node: usize) -> Result<rdma_fabric::RemoteAddr, FabricError> {
        self.memory.at(self.queue.me, FLAGS + 8 * node as u64)
    }

    pub(super) fn deps(&self) -> rdma_fabric::Deps<'_> {
        self.memory.deps()
    }
}

impl<L: KeptExclusive> Lock for IndicatorLock<L> {
    /// How the lock is made that keeps writers apart.
    type Options = L::Options;

    const NAME: &'static str = "reader indicator";
    const FAIRNESS: Fairness = Fairness::Alternating;
    const HOME_WORDS: usize = L::HOME_WORDS;

    fn bytes(options: &L::Options, members: usize) -> usize {
        FLAGS as usize + (8 * members).next_multiple_of(LINE) + L::bytes(options, members)
    }

    fn over(fabric: &Fabric, memory: GroupMemory, home: Rank, options: L::Options) -> Result<Self> {
        let (members, inner) = (memory.members(), L::bytes(&options, memory.members()));
        let own = Self::bytes(&options, members) - inner;
        let lock = L::over(fabric, memory.part(own, inner)?, home, options)?;
        let (node, first) = own_node(fabric, &memory)?;
        let core = Core {
            queue: Queue::over(fabric, memory.part(0, LOCK_BYTES)?, home, false)?,
            lock,
            gate: fabric.remote_word(memory.at(first, GATE)?)?,
            limit: fabric.remote_word(memory.at(first, LIMIT)?)?,
            node,
            memory,
            first: OnceLock::new(),
        };
        Ok(IndicatorLock { core: Arc::new(core) })
    }

    fn home(&self) -> Rank {
        self.core.lock.home()
    }

    fn fabric(&self) -> &Fabric {
        &self.core.queue.fabric
    }
}

/// Access by an [`IndicatorLock`], shared or exclusive.
///
/// Dropping it releases the lock in the background, as [`IndicatorGuard::release`] does, and tells nobody about errors.
#[must_use = "a guard that is dropped at once protects nothing"]
pub struct IndicatorGuard<'a, L: KeptExclusive> {
    lock: &'a IndicatorLock<L>,
    held: Held<L::Kept>,
}

/// What is held.
enum Held<K> {
    Shared,
    Exclusive(Box<Shut<K>>),
    /// It is released.
    Nothing,
}

/// All gates closed, by a writer.
#[derive(Debug)]
pub(super) struct Shut<K> {
    /// The hold of the lock that keeps writers apart.
    pub(super) kept: K,
    /// What the gates were before, by the nodes' numbers.
    pub(super) gates: Vec<Gate>,
}

impl<L: KeptExclusive> fmt::Debug for IndicatorGuard<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.held {
            Held::Exclusive(shut) => write!(f, "exclusive, {shut:?}, {:?}", self.lock),
            Held::Shared | Held::Nothing => write!(f, "shared, {:?}", self.lock),
        }
    }
}

impl<'a, L: KeptExclusive> IndicatorGuard<'a, L> {
    #[inline(always)]
    fn shared(lock: &'a IndicatorLock<L>) -> Self {
        IndicatorGuard { lock, held: Held::Shared }
    }

    /// The lock that is held.
    pub fn lock(&self) -> &'a IndicatorLock<L> {
        self.lock
    }

    /// Make every put of this rank visible, then let go of the lock. If the future is dropped half-way, the rest is done in the
    /// background.
    ///
    /// # Errors
    /// [`crate::LockError::Fabric`]: what a put met at its target, with the lock released all the same; or what the release itself
    /// met.
    #[inline]
    pub fn release(self) -> impl Future<Output = Result<()>> {
        shortcut(Leave(self), |(guard, posted)| Box::pin(guard.release_from(posted)))
    }

    /// Dropped before the flush is over, the guard does it all in the background.
    async fn release_from(mut self, posted: NotOver) -> Result<()> {
        let core = &self.lock.core;
        let flushed = if posted.is_none() { core.queue.flush_data().await } else { Ok(()) };
        let left = match mem::replace(&mut self.held, Held::Nothing) {
            Held::Shared => {
                Owed::new(core, |core, _| async move { core.queue.answer(core.depart(posted).await) }).await
            }
            Held::Exclusive(shut) => {
                Owed::new(core, |core, _| async move { core.queue.answer(core.open(*shut).await) }).await
            }
            Held::Nothing => Ok(()),
        };
        left.and(flushed)
    }
}

impl<L: KeptExclusive> Drop for IndicatorGuard<'_, L> {
    fn drop(&mut self) {
        let core = self.lock.core.clone();
        let held = mem::replace(&mut self.held, Held::Nothing);
        if let Held::Nothing = held {
            return;
        }
        self.lock.core.queue.fabric.detach(async move {
            let _ = core.queue.flush_data().await;
            let _ = core.queue.answer(match held {
                Held::Shared => core.depart(None).await,
                Held::Exclusive(shut) => core.open(*shut).await,
                Held::Nothing => Ok(()),
            });
        });
    }
}

impl<L: KeptExclusive> Guard for IndicatorGuard<'_, L> {
    #[inline]
    fn release(self) -> impl Future<Output = Result<()>> {
        IndicatorGuard::release(self)
    }
}

/// I1, where it is over when it is posted.
struct Enter<'a, L, Held>(&'a IndicatorLock<L>, PhantomData<fn() -> Held>);

impl<'a, L: KeptExclusive, Held: From<IndicatorGuard<'a, L>>> Try for Enter<'a, L, Held> {
    type Out = Result<Held>;
    type Posted = future::Pending<Result<Self::Out, Self::Stage>>;
    type Stage = NotOver;

    #[inline(always)]
    fn now(self, cx: &mut Context<'_>) -> Now<Self> {
        let core = &self.0.core;
        if !core.queue.ordered_everywhere || !core.queue.is_whole() {
            return Now::Stuck(None);
        }
        match poll_atomic(&core.queue.fabric, &core.gate, ARRIVE, cx) {
            Ok(old) if Gate(old).admits() => Now::Over(Ok(IndicatorGuard::shared(self.0).into())),
            Ok(old) => Now::Stuck(Some(Box::new(Posting::Over(Ok(old))))),
            Err(posting) => Now::Stuck(posting),
        }
    }
}

/// I7 of a reader, where it is over when it is posted.
struct Leave<'a, L: KeptExclusive>(IndicatorGuard<'a, L>);

impl<'a, L: KeptExclusive> Try for Leave<'a, L> {
    type Out = Result<()>;
    type Posted = future::Pending<Result<Self::Out, Self::Stage>>;
    /// The guard would release again when it is dropped, though its atomic may have been posted.
    type Stage = (IndicatorGuard<'a, L>, NotOver);

    #[inline(always)]
    fn now(self, cx: &mut Context<'_>) -> Now<Self> {
        let Leave(mut guard) = self;
        let core = &guard.lock.core;
        if !core.queue.ordered_everywhere || !matches!(guard.held, Held::Shared) {
            return Now::Stuck((guard, None));
        }
        match poll_atomic(&core.queue.fabric, &core.gate, DEPART, cx) {
            Ok(old) if !Gate(old).is_closed() => {
                guard.held = Held::Nothing;
                Now::Over(Ok(()))
            }
            Ok(old) => Now::Stuck((guard, Some(Box::new(Posting::Over(Ok(old)))))),
            Err(posting) => Now::Stuck((guard, posting)),
        }
    }
}

impl<L: KeptExclusive> IndicatorLock<L> {
    /// I1–I6.
    async fn arrive(&self, first: NotOver, deadline: Option<Time>) -> Result<bool> {
        if first.is_none() {
            self.core.queue.check()?;
        }
        Owed::new(&self.core, |core, quit| async move { core.queue.answer(core.arrive(first, deadline, &quit).await) })
            .await
    }

    /// G1–G4.
    async fn shut(&self, deadline: Option<Time>) -> Result<Option<IndicatorGuard<'_, L>>> {
        self.core.queue.check()?;
        let shut =
            Owed::new(&self.core, |core, quit| async move { core.queue.answer(core.shut(deadline, &quit).await) });
        let held = shut.await?.map(|shut| Held::Exclusive(Box::new(shut)));
        Ok(held.map(|held| IndicatorGuard { lock: self, held }))
    }
}

impl<L: KeptExclusive> RmaLock for IndicatorLock<L> {
    type Shared<'a> = IndicatorGuard<'a, L>;
    type Exclusive<'a> = IndicatorGuard<'a, L>;

    #[inline]
    fn read_before(&self, deadline: Time) -> impl Future<Output = Result<Self::Shared<'_>>> {
        shortcut(Enter(self, PhantomData), move |first| {
            Box::pin(async move {
                self.arrive(first, Some(deadline)).await?;
                Ok(IndicatorGuard::shared(self))
            })
        })
    }

    #[inline]
    fn try_read(&self) -> impl Future<Output = Result<Option<Self::Shared<'_>>>> {
        shortcut(Enter(self, PhantomData), move |first| {
            Box::pin(async move { Ok(self.arrive(first, None).await?.then(|| IndicatorGuard::shared(self))) })
        })
    }

    async fn write_before(&self, deadline: Time) -> Result<Self::Exclusive<'_>> {
        match self.shut(Some(deadline)).await? {
            Some(guard) => Ok(guard),
            None => Err(crate::LockError::TimedOut),
        }
    }

    fn try_write(&self) -> impl Future<Output = Result<Option<Self::Exclusive<'_>>>> {
        self.shut(None)
    }
}
