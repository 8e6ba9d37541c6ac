//! Readers-writer locks on remote atomics.
//!
//! The problem: many ranks want to enter a shared or exclusive section whose lock words live in one rank's
//! memory, and that rank's CPU must not be involved. A reader should pay one remote atomic to enter and
//! one to leave; whoever has to wait must wait on *its own* memory, never by polling the lock.
//!
//! [`RpLock`] is the lock of Hatanaka, Hori and Ishikawa (MPI RMA lock synchronisation on FX100, section 4.2): the
//! reader-preference queue lock of Mellor-Crummey and Scott (PPoPP 1991) over remote atomics.
//! [`RpLock::read`] and [`RpLock::write`] are what most programs need.
//!
//! ```
//! use rma_lock::RpLock;
//! use rdma_fabric::Rank;
//!
//! rdma_fabric::program! {
//!     /// Every rank enters once.
//!     async fn enter<F>(fabric: F) -> () {
//!         let lock = RpLock::symmetric(&fabric, Rank::new(0)).await?;
//!         let guard = lock.write().await?;
//!         // ... remote gets and puts that nobody disturbs ...
//!         guard.release().await?; // flushes first
//!         Ok(())
//!     }
//! }
//! ```
//!
//! # What a lock promises
//! * Exclusion: no writer with anyone. Readers share.
//! * Data: puts that a holder posted, to any target, are visible before the lock passes on: a release
//!   flushes first, unless the provider orders puts before atomics by itself.
//! * Readers are preferred: they cannot starve; writers can, under a steady stream of readers.
//! * Any future may be dropped at any moment: an acquisition ends not holding the lock, a release ends having released it. A
//!   guard that is dropped is released in the background; [`ReadGuard::release`] and [`WriteGuard::release`] tell when that is done,
//!   and whether it could be.
//! * A rank that is lost ends everybody's wait with [`rdma_fabric::FabricError::PeerLost`].

#![forbid(unsafe_code)]

mod back_off;
mod error;
mod guard;
mod lock;
mod owed;
mod posting;
mod rp;
mod shortcut;

pub use back_off::{Access, BackOff, BackOffGuard, BackOffLock, Exclusive, Mode, Shared, WindowGuard, WindowLock};
pub use error::{CorruptWord, LockError, Result};
pub use guard::{ReadGuard, WriteGuard};
pub use lock::{Fairness, Guard, RmaLock};
pub use rp::RpLock;
