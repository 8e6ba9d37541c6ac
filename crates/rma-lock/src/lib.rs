//! Readers-writer locks on remote atomics, and windows with the epochs of MPI-3 on top of them.
//!
//! The problem: many ranks want to enter a shared or exclusive section whose lock words live in one rank's
//! memory, and that rank's CPU must not be involved. A reader should pay one remote atomic to enter and
//! one to leave; whoever has to wait must wait on *its own* memory or sleep, never spin on the lock.
//!
//! [`RpLock`] is the lock of Hatanaka, Hori and Ishikawa (MPI RMA lock synchronisation on FX100, section 4.2): the
//! reader-preference queue lock of Mellor-Crummey and Scott (PPoPP 1991) over remote atomics.
//! [`RpLock::read`] and [`RpLock::write`] are what most programs need.
//!
//! [`PackedLock`] is the same with fewer operations for writers; [`FairLock`] lets everybody in in order of arrival, [`WritersFirstLock`] prefers writers.
//!
//! [`BackOffLock`] and [`WindowLock`], those of foMPI, have no queue: who finds them taken sleeps and comes back. They cost less where they are
//! free, and no rank has to run for another's sake. `docs/locks.md` tells which lock is for what; [`RmaLock`] is what all of them can do.
//!
//! [`Aggregated`], [`IndicatorLock`], [`PerRankLock`] and [`EachLock`] are composed of these and know which ranks share a node
//! (`docs/node-locks.md`); [`AnyLock`] is chosen at run time.
//!
//! ```
//! use rma_lock::RpLock;
//! use rdma_fabric::{Fabric, ProgramResult, Rank};
//!
//! /// Every rank enters once.
//! async fn enter(fabric: Fabric) -> ProgramResult<()> {
//!     let lock = RpLock::symmetric(&fabric, Rank::new(0)).await?;
//!     let guard = lock.write().await?;
//!     // ... remote gets and puts that nobody disturbs ...
//!     guard.release().await?; // flushes first
//!     Ok(())
//! }
//! ```
//!
//! [`Locked`] is memory of all ranks together with its lock: guards lend slices of it where the fabric allows, and it can't be reached otherwise.
//!
//! [`Window`] is memory of many ranks that is reached in epochs: under one of these locks, between fences, or between post and start
//! (`docs/windows.md`).
//!
//! # What a lock promises
//! * Exclusion: no writer with anyone. Readers share.
//! * Data: puts that a holder posted, to any target, are visible before the lock passes on: a release
//!   flushes first, unless the provider orders puts before atomics by itself.
//! * [`Lock::FAIRNESS`]. [`RpLock`] prefers readers: they cannot starve; writers can, under a steady stream of readers.
//! * Any future may be dropped at any moment: an acquisition ends not holding the lock, a release ends having released it. A
//!   guard that is dropped is released in the background; [`Guard::release`] tells when that is done, and whether it could be.
//! * A lost home is [`rdma_fabric::FabricError::PeerLost`], as is the loss of any rank while somebody waits in a lock's queue. A lost
//!   holder of a lock that backs off can't be told from a slow one: deadlines end the wait for it.

mod access;
mod any;
mod back_off;
mod classes;
mod counted;
mod crowd;
mod error;
mod fair;
mod guard;
#[cfg(test)]
mod handed_over;
mod indicator;
mod lock;
mod locked;
mod nodes;
mod owed;
mod posting;
mod queue;
mod ranks;
mod recovery;
mod shortcut;
mod window;

pub use access::{Access, AccessLock, OneGuard, OneLock};
pub use any::{AnyLock, AnyReadGuard, AnyWriteGuard, Choice, Hint, LockKind};
pub use back_off::{BackOff, BackOffGuard, BackOffLock, Exclusive, Mode, Shared, WindowGuard, WindowLock};
pub use counted::{CountedLock, Flat, Packed, PackedLock, RpLock, Scheme, WritersFirst, WritersFirstLock};
pub use error::{CorruptWord, LockError, Result};
pub use fair::{FairGuard, FairLock};
pub use guard::{ReadGuard, WriteGuard};
pub use indicator::{IndicatorGuard, IndicatorLock};
pub use lock::{AnonymousShared, Fairness, Guard, KeptExclusive, Lock, RmaLock};
pub use locked::{
    AcquireError, Element, Entered, Excludes, Locked, LockedReadGuard, LockedWriteGuard, PartsMut, PoisonError,
};
pub use nodes::{Aggregated, AggregatedGuard, AggregatedOptions, Levels};
pub use ranks::{EachGuard, EachLock, EachOptions, PerRankGuard, PerRankLock};
pub use recovery::{RecoverableLock, RecoverableReadGuard, RecoverableWriteGuard, Recovery, Torn};
pub use window::{
    AllEpoch, EpochKind, Exposure, FenceEpoch, LockEpoch, LockMode, Op, Request, StartEpoch, Target, Transfer, Window,
    WindowElement, WindowError, WindowOptions, WindowResult,
};
