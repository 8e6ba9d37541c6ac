//! The lock.

use super::{
    Stair,
    above::SharedOf,
    climb::Patience,
    guard::AggregatedGuard,
    level::{COUNT_ME, HELD},
    shape::Levels,
};
use crate::{
    AnonymousShared, Fairness, Lock, Result, RmaLock,
    posting::{NotOver, Posting, poll_atomic},
    shortcut::{Now, Try, shortcut},
};
use core::{
    fmt,
    future::{self, Future},
    marker::PhantomData,
    task::Context,
};
use rdma_fabric::{Fabric, GroupMemory, Rank, Time};
use std::sync::Arc;

/// A lock that the ranks of a node share: its first reader takes `L` for all of them, the last one lets go of it. In a tree
/// ([`Levels::Tree`]) the first nodes of a group do so for their group, and so on. (The future work of Hatanaka, Hori and Ishikawa.)
///
/// A wave of readers costs `L`'s home two operations for each node, or for each unit of the highest level, however many ranks it has. A reader that finds the
/// lock held by its node does 1 atomic there, and 1 to leave; the first and the last do `L`'s besides, and 1 more each (for each level that they
/// lead). Writers go to `L` itself.
///
/// # Waiting
/// Readers that come while the first of their node takes `L` wait on own memory, and are woken one after the other. No release waits for another rank: the
/// last one out only does operations. If the first one gives up (a deadline, a dropped future, an error), one of those that wait goes on in its place.
///
/// # Fairness
/// As long as readers of a node follow one another without a gap, the node keeps the lock, whoever waits: readers first, whatever `L` is. See
/// [`Lock::FAIRNESS`].
///
/// # Errors
/// Those of `L`. What fails between two steps at a node's words breaks the lock for this rank, as with [`crate::RpLock`].
pub struct Aggregated<F: Fabric, L> {
    pub(super) stair: Arc<Stair<F, SharedOf<L>>>,
}

/// How an [`Aggregated`] lock is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AggregatedOptions<O> {
    /// The levels; nodes only unless said.
    pub levels: Levels,
    /// How the lock above is made.
    pub lock: O,
}

impl<O: Default> Default for AggregatedOptions<O> {
    fn default() -> Self {
        AggregatedOptions { levels: Levels::Nodes, lock: O::default() }
    }
}

impl<F: Fabric, L> Clone for Aggregated<F, L> {
    fn clone(&self) -> Self {
        Aggregated { stair: self.stair.clone() }
    }
}

impl<F: Fabric, L: AnonymousShared<F>> fmt::Debug for Aggregated<F, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Aggregated({:?})", self.stair)
    }
}

impl<F: Fabric, L: AnonymousShared<F>> Aggregated<F, L> {
    /// The lock above all levels.
    pub fn inner(&self) -> &L {
        &self.stair.above.0
    }

    /// How many levels this rank passes on its way up: those where it may meet others.
    pub fn levels(&self) -> usize {
        self.stair.levels.len()
    }
}

impl<F: Fabric, L: AnonymousShared<F>> Lock<F> for Aggregated<F, L> {
    type Options = AggregatedOptions<L::Options>;

    const NAME: &'static str = "node-aggregated";
    const FAIRNESS: Fairness = match L::FAIRNESS {
        Fairness::Barging => Fairness::Barging,
        _ => Fairness::ReadersFirst,
    };
    const HOME_WORDS: usize = L::HOME_WORDS;

    fn bytes(options: &Self::Options, members: usize) -> usize {
        Stair::<F, SharedOf<L>>::bytes(options.levels, members) + L::bytes(&options.lock, members)
    }

    fn over(fabric: &F, memory: GroupMemory<F>, home: Rank, options: Self::Options) -> Result<Self> {
        let stair = Stair::<F, SharedOf<L>>::bytes(options.levels, memory.members());
        let inner = memory.part(stair, L::bytes(&options.lock, memory.members()))?;
        let lock = L::over(fabric, inner, home, options.lock)?;
        let stair = Stair::over(fabric, memory.part(0, stair)?, home, options.levels, SharedOf(lock))?;
        Ok(Aggregated { stair: Arc::new(stair) })
    }

    fn home(&self) -> Rank {
        self.inner().home()
    }

    fn fabric(&self) -> &F {
        &self.stair.queue.fabric
    }
}

/// N1, where it is over when it is posted.
struct Enter<'a, F: Fabric, L, Held>(&'a Aggregated<F, L>, PhantomData<fn() -> Held>);

impl<'a, F: Fabric, L: AnonymousShared<F>, Held: From<AggregatedGuard<'a, F, L>>> Try for Enter<'a, F, L, Held> {
    type Out = Result<Held>;
    type Posted = future::Pending<Result<Self::Out, Self::Stage>>;
    type Stage = NotOver<F>;

    #[inline(always)]
    fn now(self, cx: &mut Context<'_>) -> Now<Self> {
        let stair = &self.0.stair;
        let Some(level) = stair.levels.first() else { return Now::Stuck(None) };
        if !stair.queue.ordered_everywhere || !stair.queue.is_whole() {
            return Now::Stuck(None);
        }
        match poll_atomic(&stair.queue.fabric, &level.count, COUNT_ME, cx) {
            Ok(old) if old & HELD != 0 => Now::Over(Ok(AggregatedGuard::new(self.0).into())),
            Ok(old) => Now::Stuck(Some(Box::new(Posting::Over(Ok(old))))),
            Err(posting) => Now::Stuck(posting),
        }
    }
}

impl<F: Fabric, L: AnonymousShared<F>> RmaLock<F> for Aggregated<F, L> {
    type Shared<'a> = AggregatedGuard<'a, F, L>;
    type Exclusive<'a> = L::Exclusive<'a>;

    #[inline]
    fn read_before(&self, deadline: Time) -> impl Future<Output = Result<Self::Shared<'_>>> {
        shortcut(Enter(self, PhantomData), move |first| async move {
            self.stair.acquire(first, Patience::Before(deadline)).await?;
            Ok(AggregatedGuard::new(self))
        })
    }

    #[inline]
    fn try_read(&self) -> impl Future<Output = Result<Option<Self::Shared<'_>>>> {
        shortcut(Enter(self, PhantomData), move |first| async move {
            Ok(self.stair.acquire(first, Patience::None).await?.then(|| AggregatedGuard::new(self)))
        })
    }

    fn write_before(&self, deadline: Time) -> impl Future<Output = Result<Self::Exclusive<'_>>> {
        self.inner().write_before(deadline)
    }

    fn try_write(&self) -> impl Future<Output = Result<Option<Self::Exclusive<'_>>>> {
        self.inner().try_write()
    }
}
