//! Readers-writer locks on remote atomics, and windows with the epochs of MPI-3 on top of them.
//!
//! The problem: many ranks want to enter a shared or exclusive section whose lock words are in one
//! rank's memory, without involving that rank's CPU. A reader should need one remote atomic to
//! enter and one to leave; a rank that has to wait must wait on *its own* memory or sleep, never
//! spin on the lock.
//!
//! Most programs need [`RwLock`]. Its [`Policy`] decides which rank enters first, whether the lock
//! takes nodes into account, and whether it survives the deaths of ranks. The locks on which it is
//! built, and others, are in [`locks`] under their names in the literature; [`RmaLock`] is their
//! common interface.
//!
//! ```
//! use rma_lock::RwLock;
//! use rdma_fabric::{Fabric, Group, ProgramResult, Rank};
//!
//! /// Every rank enters once.
//! async fn enter(fabric: Fabric) -> ProgramResult<()> {
//!     let lock = RwLock::symmetric(&fabric, Rank::new(0)).await?;
//!     let guard = lock.write().await?;
//!     // ... remote gets and puts, in exclusion of all other ranks ...
//!     guard.release().await?; // flushes first
//!     Group::world(&fabric).await?.barrier().await?; // the lock is freed with its home
//!     Ok(())
//! }
//! # checks::documented::run(4, &enter);
//! ```
//!
//! [`Locked`] is the memory of all ranks together with its lock: guards provide slices of it where
//! the fabric allows, and it is accessible only through guards.
//!
//! [`Window`] is memory of many ranks that is accessed in epochs: under one of these locks, between
//! fences, or between post and start (`docs/systems/windows.md`).
//!
//! # Guarantees of a lock
//! * Exclusion: a writer excludes all other holders. Readers share.
//! * Data: puts that a holder posted, to any target, are visible before the lock is passed on: a
//!   release flushes first, unless the provider itself orders puts before atomics.
//! * [`Lock::FAIRNESS`]. With reader preference, readers cannot starve; writers can, under a steady
//!   stream of readers.
//! * Any future may be dropped at any moment: an acquisition ends without holding the lock, a
//!   release ends having released it. A guard that is dropped is released in the background;
//!   [`Guard::release`] waits until that is done, and reports whether it succeeded.
//! * A lost home is [`rdma_fabric::FabricError::PeerLost`], as is the loss of any rank while a rank
//!   waits in a lock's queue. A lost holder of a lock that backs off cannot be distinguished from a
//!   slow one: only a deadline ends the wait for it.

mod access;
mod error;
mod lock;
mod locked;
mod window;

pub use access::{Access, AccessLock};
pub use error::{CorruptWord, LockError, Result};
#[doc(hidden)]
pub use lock::steps;
pub use lock::{Fairness, Guard, Lock, Policy, RmaLock, RwLock, RwLockReadGuard, RwLockWriteGuard, locks};
pub use locked::{
    AcquireError, Element, Entered, Excludes, Locked, LockedReadGuard, LockedWriteGuard, PartsMut, PoisonError,
};
pub use window::{
    AllEpoch, EpochKind, Exposure, FenceEpoch, LockEpoch, LockMode, Op, Request, StartEpoch, Target, Transfer, Window,
    WindowElement, WindowError, WindowOptions, WindowResult,
};
