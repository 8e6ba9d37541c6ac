//! Locks for the memory of many ranks: for one rank's memory, or for all ranks' memory together.

use crate::{Guard, Lock, Result, RmaLock};
use core::future::Future;
use rdma_fabric::{Fabric, GroupMemory, Rank, Time};

/// The accessed memory of a window, and the mode of access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// All ranks' memory, shared (MPI's `lock_all`).
    All,
    /// One rank's memory, shared.
    Shared(Rank),
    /// One rank's memory, exclusively.
    Exclusive(Rank),
}

/// Any lock that protects a window's memory. Two accesses exclude each other if one of them is
/// exclusive access to memory that the other also accesses; a lock may exclude more than that.
///
/// One value per rank refers to one lock shared by all; clones of it are the same value. The
/// guarantees in the crate's documentation hold.
pub trait AccessLock: Lock {
    /// Proof of access.
    type Guard<'a>: Guard;

    /// Takes the lock for `access`, or gives up at `deadline`. The puts of earlier holders are
    /// visible to gets posted afterwards. Dropping the future undoes its effects.
    ///
    /// # Errors
    /// [`crate::LockError::TimedOut`]; [`crate::LockError::Fabric`]; [`crate::LockError::Broken`]
    /// if an earlier call failed half-way; and any other error documented for the lock's own
    /// method.
    fn lock_before(&self, access: Access, deadline: Time) -> impl Future<Output = Result<Self::Guard<'_>>>;

    /// Takes the lock for `access`.
    ///
    /// # Errors
    /// As [`AccessLock::lock_before`], except for the deadline.
    fn lock(&self, access: Access) -> impl Future<Output = Result<Self::Guard<'_>>> {
        self.lock_before(access, Time::MAX)
    }

    /// Takes the lock for `access` if that does not require waiting.
    ///
    /// # Errors
    /// As [`AccessLock::lock`].
    fn try_lock(&self, access: Access) -> impl Future<Output = Result<Option<Self::Guard<'_>>>>;
}

/// One lock for a whole window, as on FX100 (Hatanaka, Hori and Ishikawa, section 4.2): every
/// shared access is a reader, every exclusive access a writer. So exclusive accesses to different
/// ranks exclude each other as well.
#[derive(Clone, Debug)]
pub struct OneLock<L> {
    lock: L,
}

/// Access through a [`OneLock`].
#[must_use = "a guard that is dropped at once protects nothing"]
#[derive(Debug)]
pub enum OneGuard<S, E> {
    /// As a reader.
    Shared(S),
    /// As a writer.
    Exclusive(E),
}

impl<S: Guard, E: Guard> Guard for OneGuard<S, E> {
    #[inline]
    async fn release(self) -> Result<()> {
        match self {
            OneGuard::Shared(guard) => guard.release().await,
            OneGuard::Exclusive(guard) => guard.release().await,
        }
    }
}

impl<L: RmaLock> Lock for OneLock<L> {
    type Options = L::Options;

    const NAME: &'static str = L::NAME;
    const FAIRNESS: crate::Fairness = L::FAIRNESS;
    const HOME_WORDS: usize = L::HOME_WORDS;

    fn bytes(options: &L::Options, members: usize) -> usize {
        L::bytes(options, members)
    }

    fn over(fabric: &Fabric, memory: GroupMemory, home: Rank, options: L::Options) -> Result<Self> {
        Ok(OneLock { lock: L::over(fabric, memory, home, options)? })
    }

    fn home(&self) -> Rank {
        self.lock.home()
    }

    fn fabric(&self) -> &Fabric {
        self.lock.fabric()
    }
}

impl<L: RmaLock> AccessLock for OneLock<L> {
    type Guard<'a> = OneGuard<L::Shared<'a>, L::Exclusive<'a>>;

    #[inline]
    async fn lock_before(&self, access: Access, deadline: Time) -> Result<Self::Guard<'_>> {
        Ok(match access {
            Access::All | Access::Shared(_) => OneGuard::Shared(self.lock.read_before(deadline).await?),
            Access::Exclusive(_) => OneGuard::Exclusive(self.lock.write_before(deadline).await?),
        })
    }

    #[inline]
    async fn try_lock(&self, access: Access) -> Result<Option<Self::Guard<'_>>> {
        Ok(match access {
            Access::All | Access::Shared(_) => self.lock.try_read().await?.map(OneGuard::Shared),
            Access::Exclusive(_) => self.lock.try_write().await?.map(OneGuard::Exclusive),
        })
    }
}
