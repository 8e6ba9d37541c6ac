//! The lock, and its guard.

use super::{
    Core, FLAGS, GATE, LIMIT, LINE, Shut,
    gate::{ARRIVE, DEPART, Gate},
};
use crate::{
    Fairness, Guard, Lock, LockError, Result, RmaLock,
    lock::{
        KeptExclusive,
        boxed::wrapped,
        detach::DetachOnDrop,
        nodes::own_node,
        posting::{Posting, Unfinished, atomic_now},
        queue::{LOCK_BYTES, Queue},
    },
};
use core::{fmt, future::Future, marker::PhantomData, mem, task::Context};
use rdma_fabric::{
    Fabric, GroupMemory, Rank, Time,
    fast_path::{FastPath, fast_path},
    provider::Boxed,
};
use std::sync::{Arc, OnceLock};

/// A lock for data that is rarely written. Readers count themselves at their own node, and none of
/// their operations leaves it, except to notify a waiting writer. A writer, which holds `L` to
/// exclude other writers, closes every node's gate and waits until the readers inside have left. (A
/// distributed reader indicator, like that of BRAVO or foMPI's local words.)
///
/// A reader executes 1 atomic at its node to enter and 1 to leave, and another get if a writer
/// waits. A writer executes 2 pipelined atomics for each node in addition to the cost of `L`, and a
/// put and a get for each node with readers inside.
///
/// # Waiting
/// Ranks wait on their own memory: readers on queue nodes, the writer on a flag for each node. A
/// release never waits for another rank's CPU.
///
/// # Fairness
/// [`Fairness::Alternating`].
///
/// # Memory
/// A word for each node at each rank.
#[derive(Clone)]
pub struct IndicatorLock<L> {
    core: Arc<Core>,
    /// Excludes writers from each other.
    lock: L,
}

impl<L: fmt::Debug> fmt::Debug for IndicatorLock<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IndicatorLock({:?}, {:?})", self.lock, self.core.queue)
    }
}

impl<L: KeptExclusive> Lock for IndicatorLock<L> {
    /// The options of the lock that excludes writers from each other.
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
            writers: Box::new(lock.clone()),
            gate: fabric.remote_word(memory.at(first, GATE)?)?,
            limit: fabric.remote_word(memory.at(first, LIMIT)?)?,
            node,
            memory,
            first: OnceLock::new(),
        };
        Ok(IndicatorLock { core: Arc::new(core), lock })
    }

    fn home(&self) -> Rank {
        self.lock.home()
    }

    fn fabric(&self) -> &Fabric {
        &self.core.queue.fabric
    }
}

/// Shared or exclusive access to an [`IndicatorLock`].
///
/// Dropping it releases the lock in the background, as [`Guard::release`] does, without reporting
/// errors.
#[must_use = "a guard that is dropped at once protects nothing"]
pub struct IndicatorGuard<'a, L: KeptExclusive> {
    lock: &'a IndicatorLock<L>,
    held: Held<'a>,
}

/// A hold. Dropping it ends it in the background.
struct Held<'a> {
    core: &'a Arc<Core>,
    what: What,
}

enum What {
    Shared,
    Exclusive(Box<Shut>),
    /// The hold has been released.
    Nothing,
}

impl<L: KeptExclusive> fmt::Debug for IndicatorGuard<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.held.what {
            What::Exclusive(shut) => write!(f, "exclusive, {shut:?}, {:?}", self.lock),
            What::Shared | What::Nothing => write!(f, "shared, {:?}", self.lock),
        }
    }
}

impl<'a, L: KeptExclusive> IndicatorGuard<'a, L> {
    #[inline(always)]
    fn shared(lock: &'a IndicatorLock<L>) -> Self {
        IndicatorGuard { lock, held: Held { core: &lock.core, what: What::Shared } }
    }

    /// Returns the lock that is held.
    pub fn lock(&self) -> &'a IndicatorLock<L> {
        self.lock
    }
}

impl<'a> Held<'a> {
    /// Ends the hold. If this is dropped before the flush completes, all of it is done in the
    /// background.
    fn release_from(mut self, posted: Unfinished) -> Boxed<'a, Result<()>> {
        Box::pin(async move {
            let core = self.core;
            let flushed = if posted.is_none() { core.queue.flush_data().await } else { Ok(()) };
            let what = mem::replace(&mut self.what, What::Nothing);
            let left = DetachOnDrop::new(core, |core, _| async move {
                core.queue.broken.answer(match what {
                    What::Shared => core.depart(posted).await,
                    What::Exclusive(shut) => core.open(*shut).await,
                    What::Nothing => Ok(()),
                })
            });
            left.await.and(flushed)
        })
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let what = mem::replace(&mut self.what, What::Nothing);
        if let What::Nothing = what {
            return;
        }
        let core = self.core.clone();
        self.core.queue.fabric.detach(async move {
            let _ = core.queue.flush_data().await;
            let _ = core.queue.broken.answer(match what {
                What::Shared => core.depart(None).await,
                What::Exclusive(shut) => core.open(*shut).await,
                What::Nothing => Ok(()),
            });
        });
    }
}

impl<L: KeptExclusive> Guard for IndicatorGuard<'_, L> {
    #[inline]
    fn release(self) -> impl Future<Output = Result<()>> {
        fast_path(Leave(self.held), |(held, posted)| held.release_from(posted))
    }
}

/// I1, if it completes when it is posted.
struct Enter<'a, L, Held>(&'a IndicatorLock<L>, PhantomData<fn() -> Held>);

impl<'a, L: KeptExclusive, Held: From<IndicatorGuard<'a, L>>> FastPath for Enter<'a, L, Held> {
    type Out = Result<Held>;
    type Stage = Unfinished;

    #[inline(always)]
    fn fast(self, _: &mut Context<'_>) -> Result<Result<Held>, Self::Stage> {
        let core = &self.0.core;
        if !core.queue.ordered_everywhere || !core.queue.broken.is_whole() {
            return Err(None);
        }
        match atomic_now(&core.queue.fabric, &core.gate, ARRIVE) {
            Ok(old) if Gate(old).admits() => Ok(Ok(IndicatorGuard::shared(self.0).into())),
            Ok(old) => Err(Some(Box::new(Posting::Complete(Ok(old))))),
            Err(posting) => Err(posting),
        }
    }
}

/// I7 of a reader, if it completes when it is posted.
struct Leave<'a>(Held<'a>);

impl<'a> FastPath for Leave<'a> {
    type Out = Result<()>;
    /// Dropping the hold would end it again, although its atomic may have been posted.
    type Stage = (Held<'a>, Unfinished);

    #[inline(always)]
    fn fast(self, _: &mut Context<'_>) -> Result<Result<()>, Self::Stage> {
        let Leave(mut held) = self;
        let queue = &held.core.queue;
        if !queue.ordered_everywhere || !matches!(held.what, What::Shared) {
            return Err((held, None));
        }
        match atomic_now(&queue.fabric, &held.core.gate, DEPART) {
            Ok(old) if !Gate(old).is_closed() => {
                held.what = What::Nothing;
                Ok(Ok(()))
            }
            Ok(old) => Err((held, Some(Box::new(Posting::Complete(Ok(old)))))),
            Err(posting) => Err((held, posting)),
        }
    }
}

/// I1–I6.
fn arrive(core: &Arc<Core>, first: Unfinished, deadline: Option<Time>) -> Boxed<'_, Result<bool>> {
    Box::pin(async move {
        if first.is_none() {
            core.queue.broken.check()?;
        }
        DetachOnDrop::new(core, |core, cancelled| async move {
            core.queue.broken.answer(core.arrive(first, deadline, &cancelled).await)
        })
        .await
    })
}

/// G1–G4.
fn shut(core: &Arc<Core>, deadline: Time) -> Boxed<'_, Result<Held<'_>>> {
    Box::pin(async move { try_shut(core, Some(deadline)).await?.ok_or(LockError::TimedOut) })
}

/// G1–G4; without a deadline, does not wait.
fn try_shut(core: &Arc<Core>, deadline: Option<Time>) -> Boxed<'_, Result<Option<Held<'_>>>> {
    Box::pin(async move {
        core.queue.broken.check()?;
        let shut = DetachOnDrop::new(core, |core, cancelled| async move {
            core.queue.broken.answer(core.shut(deadline, &cancelled).await)
        });
        Ok(shut.await?.map(|shut| Held { core, what: What::Exclusive(Box::new(shut)) }))
    })
}

impl<L: KeptExclusive> RmaLock for IndicatorLock<L> {
    type Shared<'a> = IndicatorGuard<'a, L>;
    type Exclusive<'a> = IndicatorGuard<'a, L>;

    #[inline]
    fn read_before(&self, deadline: Time) -> impl Future<Output = Result<Self::Shared<'_>>> {
        fast_path(Enter(self, PhantomData), move |first| {
            wrapped(arrive(&self.core, first, Some(deadline)), |_| IndicatorGuard::shared(self))
        })
    }

    #[inline]
    fn try_read(&self) -> impl Future<Output = Result<Option<Self::Shared<'_>>>> {
        fast_path(Enter(self, PhantomData), move |first| {
            wrapped(arrive(&self.core, first, None), |inside| inside.then(|| IndicatorGuard::shared(self)))
        })
    }

    fn write_before(&self, deadline: Time) -> impl Future<Output = Result<Self::Exclusive<'_>>> {
        wrapped(shut(&self.core, deadline), |held| IndicatorGuard { lock: self, held })
    }

    fn try_write(&self) -> impl Future<Output = Result<Option<Self::Exclusive<'_>>>> {
        wrapped(try_shut(&self.core, None), |held| held.map(|held| IndicatorGuard { lock: self, held }))
    }
}
