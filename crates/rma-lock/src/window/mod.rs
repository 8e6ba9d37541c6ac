//! MPI-3 windows in Rust: memory of many ranks, and the epochs in which it may be accessed.
//!
//! Operations are methods of an epoch, or of the [`Target`] that an epoch returns for a rank; there
//! are no operations outside epochs. `docs/systems/windows.md` specifies when effects become
//! visible, and lists the MPI call that corresponds to each method.
//!
//! # Tasks of one rank
//! Epochs belong to the rank, not to a task: an epoch of one task excludes those of another as it
//! excludes those of the same window ([`WindowError::EpochOpen`]). Tasks that use one window take
//! turns, for example by an asynchronous mutex, or have one window each.

mod attach;
mod core;
mod epochs;
mod error;
mod fence;
mod in_flight;
mod op;
mod passive;
mod post_start;
mod request;
mod set_up;
mod target;
mod update;

pub use epochs::EpochKind;
pub use error::{WindowError, WindowResult};
pub use fence::FenceEpoch;
pub use op::{Op, WindowElement};
pub use passive::{AllEpoch, LockEpoch, LockMode};
pub use post_start::{Exposure, StartEpoch};
pub use request::{Request, Transfer};
pub use set_up::WindowOptions;
pub use target::Target;

use self::core::{Core, range};
use crate::{
    AccessLock,
    locks::{OneLock, RpLock},
};
use ::core::{
    fmt,
    marker::PhantomData,
    ops::Range,
    sync::atomic::{Ordering, fence},
};
use rdma_fabric::{AtomicWord, Fabric, LocalSpan, LocalWord, Pod, Rank};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Elements of type `T` at each member of a group, which every member can access in epochs.
///
/// One value per rank refers to one window shared by all. Dropping it deregisters this rank's part:
/// a rank that accesses it afterwards receives [`rdma_fabric::FabricError::StaleRegion`], and a
/// wait for this rank ends when it leaves. [`Window::free`] waits for all members instead.
///
/// `L` is the lock of passive-target epochs: by default a single reader-preference lock for the
/// whole window, as on FX100.
///
/// ```
/// use rdma_fabric::{Fabric, Group, ProgramResult, Rank};
/// use rma_lock::{LockMode, Op, Window};
///
/// /// Every rank adds its number to an element of rank 0, and reads the sum.
/// async fn sum(fabric: Fabric) -> ProgramResult<f64> {
///     let mut world = Group::world(&fabric).await?;
///     let window = Window::<f64>::allocate(&fabric, 1).await?;
///
///     let epoch = window.lock(LockMode::Shared, Rank::new(0)).await?;
///     epoch.accumulate(0, Op::Sum, &[fabric.rank().number().into()]).await?;
///     epoch.unlock().await?;
///     world.barrier().await?;
///
///     let epoch = window.lock(LockMode::Shared, Rank::new(0)).await?;
///     let sum = epoch.get_one(0).await?;
///     epoch.unlock().await?;
///     assert_eq!(sum, 6.0);
///     window.free().await?;
///     Ok(sum)
/// }
/// # checks::documented::run(4, &sum);
/// ```
pub struct Window<T: Pod, L = OneLock<RpLock>> {
    core: Arc<Core>,
    lock: L,
    element: PhantomData<fn() -> T>,
}

impl<T: Pod, L: fmt::Debug> fmt::Debug for Window<T, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Window({} members, {:?})", self.core.words.memory().members(), self.lock)
    }
}

/// Locks `mutex`. No code panics while it holds a window's mutex.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T: Pod, L: AccessLock> Window<T, L> {
    /// Returns the fabric of the window.
    pub fn fabric(&self) -> &Fabric {
        &self.core.fabric
    }

    /// Returns the lock of passive-target epochs.
    pub fn lock_used(&self) -> &L {
        &self.lock
    }

    /// Returns the number of members.
    pub fn members(&self) -> usize {
        self.core.words.memory().members()
    }

    /// Returns the rank of a member.
    ///
    /// # Errors
    /// [`rdma_fabric::FabricError::NoSuchRank`] if there is no member with that number.
    pub fn member(&self, number: usize) -> WindowResult<Rank> {
        Ok(self.core.words.memory().member(number)?)
    }

    /// Returns the number of elements of a member.
    ///
    /// # Errors
    /// [`rdma_fabric::FabricError::NotInGroup`].
    pub fn elements(&self, rank: Rank) -> WindowResult<usize> {
        Ok(self.core.memory.part(rank)?.1)
    }

    /// Returns elements of this rank's memory, for use as source and sink of operations.
    ///
    /// # Errors
    /// [`rdma_fabric::FabricError::OutOfBounds`].
    pub fn own(&self, elements: Range<usize>) -> WindowResult<LocalSpan<T>> {
        let (fabric, memory) = (&self.core.fabric, &self.core.memory);
        let (addr, len) = memory.part(fabric.rank())?;
        memory.check(fabric.rank(), &elements)?;
        Ok(fabric.local_span::<T>(addr, len)?.slice(elements)?)
    }

    /// Copies elements of this rank's memory into `into`, starting at element `at`. If other ranks
    /// write an element at the same time, each of its bytes is either old or new.
    ///
    /// # Errors
    /// [`rdma_fabric::FabricError::OutOfBounds`].
    pub fn read(&self, at: usize, into: &mut [T]) -> WindowResult<()> {
        Ok(self.core.fabric.read(&self.own(range(at, into.len()))?, into)?)
    }

    /// Copies `from` into this rank's own memory, starting at element `at`.
    ///
    /// # Errors
    /// [`rdma_fabric::FabricError::OutOfBounds`].
    pub fn write(&self, at: usize, from: &[T]) -> WindowResult<()> {
        Ok(self.core.fabric.write(&self.own(range(at, from.len()))?, from)?)
    }

    /// Orders this rank's earlier accesses to its own memory before its later ones
    /// (`MPI_Win_sync`). Memory has no private copy here (MPI's *unified* model), so this is a
    /// processor fence; epochs and waits contain the fences that they need.
    pub fn sync(&self) {
        fence(Ordering::SeqCst);
    }

    /// Waits until every member has called this or a fence. Does not complete operations.
    /// Collective over the members.
    ///
    /// Data that members have flushed, or written to their own memory, before the call are visible
    /// to all members after it. If the future is dropped, the next barrier or fence continues it.
    ///
    /// # Errors
    /// [`WindowError::EpochOpen`] while another task of this rank is inside a barrier or fence;
    /// [`rdma_fabric::FabricError::PeerLost`], [`rdma_fabric::FabricError::PeersLeft`] for a
    /// member.
    pub async fn barrier(&self) -> WindowResult<()> {
        self.core.meet().await
    }
}

impl<T: WindowElement, L: AccessLock> Window<T, L> {
    fn word<W: AtomicWord>(&self, at: usize) -> WindowResult<LocalWord<W>> {
        Ok(self.core.fabric.local_word(self.own(range(at, 1))?.addr())?)
    }

    /// Loads one of this rank's own elements atomically (acquire: everything that was visible to
    /// its writer is visible afterwards).
    ///
    /// # Errors
    /// [`rdma_fabric::FabricError::OutOfBounds`].
    pub fn load(&self, at: usize) -> WindowResult<T> {
        let fabric = &self.core.fabric;
        let wide = size_of::<T>() == u64::BYTES;
        Ok(T::of_bits(if wide {
            fabric.load(&self.word::<u64>(at)?)?
        } else {
            fabric.load(&self.word::<u32>(at)?)?.into()
        }))
    }

    /// Stores one of this rank's own elements atomically (release: after all earlier stores).
    /// Atomic with respect to accumulates only if [`rdma_fabric::Caps::coherent_atomics`] is set.
    ///
    /// # Errors
    /// [`rdma_fabric::FabricError::OutOfBounds`].
    pub fn store(&self, at: usize, value: T) -> WindowResult<()> {
        let (fabric, bits) = (&self.core.fabric, value.bits());
        let wide = size_of::<T>() == u64::BYTES;
        if wide {
            fabric.store(&self.word(at)?, bits)?
        } else {
            fabric.store(&self.word(at)?, bits as u32)?
        }
        Ok(())
    }
}
