//! The node-aggregated lock.

use super::{Above, Inside, Levels, Stair};
use crate::{
    Fairness, Guard, Lock, Result, RmaLock,
    lock::{AnonymousShared, OURS, boxed::wrapped},
};
use core::{fmt, future::Future};
use rdma_fabric::{Fabric, GroupMemory, Rank, Time, provider::Boxed};
use std::sync::Arc;

/// A lock that the ranks of a node share: the node's first reader takes `L` for all of them, and
/// the last one releases it. In a tree ([`Levels::Tree`]) the first node of a group does so for its
/// group, and so on. (The future work of Hatanaka, Hori and Ishikawa.)
///
/// A wave of readers costs `L`'s home two operations for each node, or for each unit of the highest
/// level, regardless of its number of ranks. A reader that finds the lock held by its node executes
/// 1 atomic there to enter and 1 to leave; the first and the last also execute `L`'s operations,
/// and 1 more each (for each level that they lead). Writers take `L` itself.
///
/// # Waiting
/// Readers that arrive while the first of their node takes `L` wait on their own memory, and are
/// woken one after the other. A release never waits for another rank: the last reader to leave
/// waits only for its own operations. If the first one gives up (a deadline, a dropped future, an
/// error), one of the waiting readers takes its place.
///
/// # Fairness
/// As long as readers of a node follow one another without a gap, the node keeps the lock, even if
/// others wait: readers come first, regardless of `L` ([`Lock::FAIRNESS`]).
///
/// # Errors
/// Those of `L`. A failure between two steps at a node's words breaks the lock for this rank, as
/// with [`crate::locks::RpLock`].
#[derive(Clone)]
pub struct Aggregated<L> {
    stair: Arc<Stair>,
    lock: L,
}

/// A lock above the levels, held shared.
struct Held<L>(L);

impl<L: fmt::Debug> fmt::Debug for Held<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<L: AnonymousShared> Above for Held<L> {
    fn enter(&self, deadline: Time) -> Boxed<'_, Result<()>> {
        self.0.hold(deadline, OURS)
    }

    fn try_enter(&self) -> Boxed<'_, Result<bool>> {
        self.0.try_hold(OURS)
    }

    fn leave(&self) -> Boxed<'_, Result<()>> {
        self.0.end_hold(OURS)
    }
}

/// The options of an [`Aggregated`] lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AggregatedOptions<O> {
    /// The levels; only nodes by default.
    pub levels: Levels,
    /// The options of the lock above the levels.
    pub lock: O,
}

impl<O: Default> Default for AggregatedOptions<O> {
    fn default() -> Self {
        AggregatedOptions { levels: Levels::Nodes, lock: O::default() }
    }
}

impl<L: AnonymousShared> fmt::Debug for Aggregated<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Aggregated({:?})", self.stair)
    }
}

impl<L: AnonymousShared> Aggregated<L> {
    /// Returns the lock above all levels.
    pub fn inner(&self) -> &L {
        &self.lock
    }

    /// Returns the number of levels that this rank passes when it acquires: those that it shares
    /// with other ranks.
    pub fn levels(&self) -> usize {
        self.stair.levels.len()
    }
}

impl<L: AnonymousShared> Lock for Aggregated<L> {
    type Options = AggregatedOptions<L::Options>;

    const NAME: &'static str = "node-aggregated";
    const FAIRNESS: Fairness = match L::FAIRNESS {
        Fairness::Barging => Fairness::Barging,
        _ => Fairness::ReadersFirst,
    };
    const HOME_WORDS: usize = L::HOME_WORDS;

    fn bytes(options: &Self::Options, members: usize) -> usize {
        Stair::bytes(options.levels, members) + L::bytes(&options.lock, members)
    }

    fn over(fabric: &Fabric, memory: GroupMemory, home: Rank, options: Self::Options) -> Result<Self> {
        let stair = Stair::bytes(options.levels, memory.members());
        let inner = memory.part(stair, L::bytes(&options.lock, memory.members()))?;
        let lock = L::over(fabric, inner, home, options.lock)?;
        let stair = Stair::over(fabric, memory.part(0, stair)?, home, options.levels, Held(lock.clone()))?;
        Ok(Aggregated { stair: Arc::new(stair), lock })
    }

    fn home(&self) -> Rank {
        self.inner().home()
    }

    fn fabric(&self) -> &Fabric {
        &self.stair.queue.fabric
    }
}

/// Shared access through an [`Aggregated`] lock.
///
/// Dropping it releases the lock in the background, as [`Guard::release`] does, without reporting
/// errors.
#[must_use = "a guard that is dropped at once protects nothing"]
pub struct AggregatedGuard<'a, L: AnonymousShared> {
    lock: &'a Aggregated<L>,
    inside: Inside<'a>,
}

impl<L: AnonymousShared> fmt::Debug for AggregatedGuard<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shared, {:?}", self.lock)
    }
}

impl<'a, L: AnonymousShared> AggregatedGuard<'a, L> {
    /// Returns the lock that is held.
    pub fn lock(&self) -> &'a Aggregated<L> {
        self.lock
    }
}

/// The last rank of a node that leaves releases the lock.
impl<L: AnonymousShared> Guard for AggregatedGuard<'_, L> {
    #[inline]
    fn release(self) -> impl Future<Output = Result<()>> {
        self.inside.release()
    }
}

impl<L: AnonymousShared> RmaLock for Aggregated<L> {
    type Shared<'a> = AggregatedGuard<'a, L>;
    type Exclusive<'a> = L::Exclusive<'a>;

    #[inline]
    fn read_before(&self, deadline: Time) -> impl Future<Output = Result<Self::Shared<'_>>> {
        wrapped(Stair::enter_before(&self.stair, deadline), |inside| AggregatedGuard { lock: self, inside })
    }

    #[inline]
    fn try_read(&self) -> impl Future<Output = Result<Option<Self::Shared<'_>>>> {
        wrapped(Stair::try_enter(&self.stair), |inside| inside.map(|inside| AggregatedGuard { lock: self, inside }))
    }

    fn write_before(&self, deadline: Time) -> impl Future<Output = Result<Self::Exclusive<'_>>> {
        self.inner().write_before(deadline)
    }

    fn try_write(&self) -> impl Future<Output = Result<Option<Self::Exclusive<'_>>>> {
        self.inner().try_write()
    }
}
