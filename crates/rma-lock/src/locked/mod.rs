//! Memory of all ranks, protected by one lock.

mod enter;
mod error;
mod guard;
mod memory;
#[cfg(test)]
mod over_limit;
mod proof;

pub use enter::Entered;
pub use error::{AcquireError, PoisonError};
pub use guard::{LockedReadGuard, LockedWriteGuard};
pub use proof::{Excludes, PartsMut};

use crate::{LockError, Result, locks::RpLock};
use core::fmt;
use memory::Memory;
use proof::{Role, access_policy};
use rdma_fabric::{Fabric, FabricError, Mapped, Pod, Rank};
use std::sync::OnceLock;

/// The element type of memory under a lock.
pub trait Element: Pod + Send + Sync + Unpin {}

impl<T: Pod + Send + Sync + Unpin> Element for T {}

/// `len` elements in every rank's memory, and a readers-writer lock for all of them.
///
/// The memory has no key: it is accessible only through guards ([`Fabric::protected`]), and so are
/// the lock's words. If the provider has mapped all ranks' memory ([`Locked::maps`]: shared
/// memory), a guard provides any rank's part as a slice without copying; otherwise it can still get
/// and put. The memory is initially zeroed.
///
/// ```
/// use rma_lock::Locked;
/// use rdma_fabric::{Fabric, Group, ProgramResult, Rank};
///
/// /// Every rank counts once, in the last one's memory.
/// async fn count(fabric: Fabric) -> ProgramResult<u64> {
///     let mut world = Group::world(&fabric).await?;
///     let there = Rank::new(fabric.ranks() as u32 - 1);
///     let counters = Locked::<u64>::symmetric(&fabric, Rank::new(0), 8).await?;
///     let mut guard = counters.write().await?;
///     if counters.maps() {
///         guard.part_mut(there)?[3] += 1;
///     } else {
///         let count = guard.get(there, 3..4).await?;
///         guard.put(there, 3, [count[0] + 1]).await?;
///     }
///     guard.release().await?;
///     let guard = counters.read().await?;
///     let count = guard.get(there, 3..4).await?[0];
///     guard.release().await?;
///     world.barrier().await?; // the memory of a rank that ends goes with it
///     Ok(count)
/// }
/// let counts = tofu2_sim::shm::Threads::new(3).run(&count).unwrap();
/// assert_eq!(counts.into_iter().max(), Some(3));
/// ```
///
/// # Compile-time checks
/// A reference does not outlive its guard:
/// ```compile_fail,E0597
/// # use rma_lock::Locked; use rdma_fabric::{Fabric, Rank};
/// # async fn program(memory: &Locked<u64>) {
/// let part = {
///     let guard = memory.read().await.unwrap();
///     guard.part(Rank::new(0)).unwrap()
/// };
/// drop(part.len());
/// # }
/// ```
/// nor its guard's release:
/// ```compile_fail,E0505
/// # use rma_lock::Locked; use rdma_fabric::{Fabric, Rank};
/// # async fn program(memory: &Locked<u64>) {
/// let mut guard = memory.write().await.unwrap();
/// let part = guard.part_mut(Rank::new(0)).unwrap();
/// guard.release().await.unwrap();
/// part[0] = 1;
/// # }
/// ```
/// one rank's part is borrowed only once ([`LockedWriteGuard::parts_mut`] lends all ranks' parts at
/// the same time):
/// ```compile_fail,E0499
/// # use rma_lock::Locked; use rdma_fabric::{Fabric, Rank};
/// # async fn program(memory: &Locked<u64>) {
/// let mut guard = memory.write().await.unwrap();
/// let part = guard.part_mut(Rank::new(0)).unwrap();
/// let again = guard.part_mut(Rank::new(0)).unwrap();
/// part[0] = again[0];
/// # }
/// ```
/// nothing is put while a part is borrowed:
/// ```compile_fail,E0502
/// # use rma_lock::Locked; use rdma_fabric::{Fabric, Rank};
/// # async fn program(memory: &Locked<u64>) {
/// let mut guard = memory.write().await.unwrap();
/// let part = guard.part(Rank::new(0)).unwrap();
/// guard.put(Rank::new(0), 0, [1]).await.unwrap();
/// drop(part.len());
/// # }
/// ```
/// nor under shared access:
/// ```compile_fail,E0599
/// # use rma_lock::Locked; use rdma_fabric::{Fabric, Rank};
/// # async fn program(memory: &Locked<u64>) {
/// let mut guard = memory.read().await.unwrap();
/// guard.put(Rank::new(0), 0, [1]).await.unwrap();
/// # }
/// ```
/// and a released guard cannot be used:
/// ```compile_fail,E0382
/// # use rma_lock::Locked; use rdma_fabric::{Fabric, Rank};
/// # async fn program(memory: &Locked<u64>) {
/// let guard = memory.read().await.unwrap();
/// guard.release().await.unwrap();
/// guard.part(Rank::new(0)).unwrap();
/// # }
/// ```
/// A lock must declare that references may rely on it:
/// ```compile_fail,E0277
/// # use rma_lock::{Locked, RmaLock}; use rdma_fabric::{Fabric, Rank};
/// async fn program<L: RmaLock>(fabric: &Fabric) {
///     let memory = Locked::<u64, L>::symmetric(fabric, Rank::new(0), 1).await;
/// }
/// ```
///
/// # Exclusion
/// The lock determines which ranks are inside ([`crate::Lock::FAIRNESS`]). Everything that a holder
/// stored through a reference or put is visible to the next holder. Every access requires the lock
/// and is checked.
///
/// # Panics and deaths
/// A panic under a write guard poisons the memory, as it does a [`std::sync::Mutex`]: the mark is
/// in the memory itself, so every rank finds it ([`PoisonError`]). It is put before the lock is
/// passed on; the very next holder can miss it only if the rank's own queue is full at that moment.
///
/// A *lost* holder's lock is never passed on, because the holder may still run: waiting ranks
/// receive the error that the lock reports for it ([`FabricError::PeerLost`] with [`RpLock`]). Once
/// a call of this value has reported the loss of a rank, references are refused here with that
/// error; copies are refused only where the fabric refuses them. Existing references stay valid,
/// including those into the lost rank's memory: it stays mapped. A lock that may be taken from a
/// live holder never provides references: see [`Excludes`].
///
/// # Memory
/// Each rank's part takes 64 bytes more than its elements. Dropping the value frees this rank's
/// part; the bytes are reused when all ranks have dropped theirs.
pub struct Locked<T: Element, L: Excludes = RpLock> {
    /// The rank's ordinary fabric handle.
    fabric: Fabric,
    memory: Memory<T>,
    /// Created with a fabric handle for protected memory; no other code can access it.
    lock: L,
    /// The rank whose loss a call of this value has reported.
    lost: OnceLock<Rank>,
}

impl<T: Element, L: Excludes> fmt::Debug for Locked<T, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Locked({:?}, {:?})", self.memory, self.lock)
    }
}

impl<T: Element, L: Excludes> Locked<T, L> {
    /// Makes `len` elements on every rank, under a lock homed at `home` with the default options.
    /// Collective over the job: all ranks call this with the same arguments, in the same order
    /// relative to other symmetric allocations.
    ///
    /// # Errors
    /// As [`Fabric::alloc_symmetric`], including [`FabricError::Mismatch`] if homes, lengths, sizes
    /// of elements or kinds of lock differ; [`FabricError::NoSuchRank`];
    /// [`FabricError::Unsupported`] if the provider has no protected memory.
    pub async fn symmetric(fabric: &Fabric, home: Rank, len: usize) -> Result<Self> {
        Self::symmetric_with(fabric, home, len, L::Options::default()).await
    }

    /// Makes memory and lock as [`Locked::symmetric`] does, with these options for the lock.
    ///
    /// # Errors
    /// As [`Locked::symmetric`].
    pub async fn symmetric_with(fabric: &Fabric, home: Rank, len: usize, options: L::Options) -> Result<Self> {
        fabric.node(home)?;
        let data = access_policy::<L>(home, Role::Data { element: size_of::<T>() });
        let memory = Memory::symmetric(fabric, home, len, data).await?;
        let words = fabric.protected(access_policy::<L>(home, Role::Words { data: memory.key() }))?;
        let lock = L::symmetric_with(&words, home, options).await?;
        Ok(Locked { fabric: fabric.clone(), memory, lock, lost: OnceLock::new() })
    }

    /// Returns the number of elements in each rank's part.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// Returns whether guards provide slices; otherwise they only copy.
    pub fn maps(&self) -> bool {
        self.memory.maps()
    }

    /// Returns the rank whose memory holds the lock words and the poison mark.
    pub fn home(&self) -> Rank {
        self.lock.home()
    }

    /// Returns the fabric of the memory.
    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// Returns the location of a rank's part, unless references are refused.
    #[inline]
    fn part(&self, rank: Rank) -> Result<&Mapped> {
        match (self.lost.get(), self.memory.parts().get(rank.index())) {
            (None, Some(part)) => Ok(part),
            (Some(&lost), _) => Err(FabricError::PeerLost { rank: lost }.into()),
            (None, None) => Err(self.memory.not_mapped(rank)),
        }
    }

    /// Returns the lock's outcome, and records the lost rank if it was a loss.
    #[inline]
    fn heeding<R>(&self, outcome: Result<R>) -> Result<R> {
        outcome.inspect_err(|error| self.heed(error))
    }

    /// Returns the fabric's outcome, and records the lost rank if it was a loss.
    #[inline]
    fn noting<R>(&self, outcome: rdma_fabric::Result<R>) -> Result<R> {
        outcome.map_err(|error| {
            let error = LockError::from(error);
            self.heed(&error);
            error
        })
    }

    #[cold]
    fn heed(&self, error: &LockError) {
        let mut cause = error;
        while let LockError::Broken(before) = cause {
            cause = before;
        }
        if let LockError::Fabric(FabricError::PeerLost { rank }) = cause {
            self.lost.get_or_init(|| *rank);
        }
    }
}
