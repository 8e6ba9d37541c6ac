//! One lock for each rank, without a lock above them.

use super::PerRank;
use crate::{Access, AccessLock, Fairness, Guard, Lock, Result, RmaLock};
use core::fmt;
use rdma_fabric::{Fabric, GroupMemory, Rank, Time, join::join_all};

/// One lock for each rank; to lock all ranks' memory, every lock is taken shared. This is the
/// approach of many libraries (Li and others; Open MPI's `osc/ucx`), and the baseline for a lock
/// for all ranks.
///
/// An access to all P ranks takes P shared locks and P releases. Accesses to different ranks do not
/// interfere.
///
/// The locks are acquired one after another in order of ranks, or all at once
/// ([`EachOptions::at_once`]). The latter is for locks whose readers never wait for a waiting
/// writer: with others, two accesses to all ranks that encounter writers in different orders would
/// deadlock, so the option is ignored for them.
///
/// Each rank has memory for all P locks.
#[derive(Clone, Debug)]
pub struct EachLock<L: Lock> {
    locks: PerRank<L>,
    home: Rank,
    at_once: bool,
}

/// The options of an [`EachLock`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EachOptions<O> {
    /// Whether an access to all ranks starts all acquisitions before the first has completed.
    pub at_once: bool,
    /// The options of each lock.
    pub lock: O,
}

/// Access through an [`EachLock`]. Dropping it releases the locks in the background.
#[must_use = "a guard that is dropped at once protects nothing"]
pub enum EachGuard<S, E> {
    /// Access to all ranks' memory, by every lock.
    All(Vec<S>),
    /// Shared access to one rank's memory.
    Shared(S),
    /// Exclusive access to one rank's memory.
    Exclusive(E),
}

impl<S: fmt::Debug, E: fmt::Debug> fmt::Debug for EachGuard<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EachGuard::All(guards) => write!(f, "{} times {:?}", guards.len(), guards.first()),
            EachGuard::Shared(guard) => guard.fmt(f),
            EachGuard::Exclusive(guard) => guard.fmt(f),
        }
    }
}

impl<S: Guard, E: Guard> Guard for EachGuard<S, E> {
    /// Releases all locks. If several releases fail, returns the first error.
    async fn release(self) -> Result<()> {
        match self {
            EachGuard::All(guards) => {
                let released = join_all(guards.into_iter().map(Guard::release)).await;
                released.into_iter().collect()
            }
            EachGuard::Shared(guard) => guard.release().await,
            EachGuard::Exclusive(guard) => guard.release().await,
        }
    }
}

impl<L: RmaLock> Lock for EachLock<L> {
    type Options = EachOptions<L::Options>;

    const NAME: &'static str = "one for each rank";
    const FAIRNESS: Fairness = L::FAIRNESS;
    const HOME_WORDS: usize = L::HOME_WORDS;

    fn bytes(options: &Self::Options, members: usize) -> usize {
        PerRank::<L>::bytes(&options.lock, members)
    }

    fn over(fabric: &Fabric, memory: GroupMemory, home: Rank, options: Self::Options) -> Result<Self> {
        let at_once = options.at_once && matches!(L::FAIRNESS, Fairness::ReadersFirst | Fairness::Barging);
        memory.at(home, 0)?;
        Ok(EachLock { locks: PerRank::over(fabric, memory, options.lock)?, home, at_once })
    }

    /// Returns the home with which the lock was created; the words are at all ranks.
    fn home(&self) -> Rank {
        self.home
    }

    fn fabric(&self) -> &Fabric {
        self.locks.fabric()
    }
}

impl<L: RmaLock> AccessLock for EachLock<L> {
    type Guard<'a> = EachGuard<L::Shared<'a>, L::Exclusive<'a>>;

    async fn lock_before(&self, access: Access, deadline: Time) -> Result<Self::Guard<'_>> {
        Ok(match access {
            Access::All if self.at_once => {
                let locks = self.locks.all().collect::<Result<Vec<_>>>()?;
                let taken = join_all(locks.into_iter().map(|lock| lock.read_before(deadline))).await;
                EachGuard::All(taken.into_iter().collect::<Result<_>>()?)
            }
            Access::All => {
                let mut guards = Vec::with_capacity(self.locks.len());
                for lock in self.locks.all() {
                    guards.push(lock?.read_before(deadline).await?);
                }
                EachGuard::All(guards)
            }
            Access::Shared(rank) => EachGuard::Shared(self.locks.of(rank)?.read_before(deadline).await?),
            Access::Exclusive(rank) => EachGuard::Exclusive(self.locks.of(rank)?.write_before(deadline).await?),
        })
    }

    async fn try_lock(&self, access: Access) -> Result<Option<Self::Guard<'_>>> {
        Ok(match access {
            Access::All => {
                let mut guards = Vec::with_capacity(self.locks.len());
                for lock in self.locks.all() {
                    match lock?.try_read().await? {
                        Some(guard) => guards.push(guard),
                        None => {
                            EachGuard::<_, L::Exclusive<'_>>::All(guards).release().await?;
                            return Ok(None);
                        }
                    }
                }
                Some(EachGuard::All(guards))
            }
            Access::Shared(rank) => self.locks.of(rank)?.try_read().await?.map(EachGuard::Shared),
            Access::Exclusive(rank) => self.locks.of(rank)?.try_write().await?.map(EachGuard::Exclusive),
        })
    }
}
