//! The locks, and the parts of which they are built.
//!
//! [`interface`] defines what all locks have in common, [`rw_lock`] the lock for most programs, and
//! [`locks`] names the others. The crate's windows and locked memory use only these public items.
//!
//! | parts | modules |
//! |---|---|
//! | locks with queues | [`counted`], [`fair`]; their tables of [`steps`]; [`queue`], which drives a table |
//! | locks that sleep and try again | [`back_off`] |
//! | locks composed of locks | [`nodes`], [`indicator`], [`ranks`], [`recovery`] |
//! | limits | [`holder_limit`], [`classes`] |
//! | calls and their futures | [`boxed`], [`posting`], [`detach`], [`holds`] |

mod back_off;
mod boxed;
mod classes;
mod counted;
mod detach;
mod fair;
mod holder_limit;
mod holds;
mod indicator;
mod interface;
pub mod locks;
mod nodes;
mod posting;
mod queue;
mod ranks;
mod recovery;
mod rw_lock;
#[cfg(test)]
mod shared_holds;
#[doc(hidden)]
pub mod steps;

pub use holds::{AnonymousShared, KeptExclusive};
pub use interface::{Fairness, Guard, Lock, RmaLock};
pub use rw_lock::{Policy, RwLock, RwLockReadGuard, RwLockWriteGuard};

use holds::{OURS, OfThisCrate};
use interface::{Admitted, guard_by_itself, lock_by_itself};

/// The limits that tests of locked memory reach.
#[cfg(test)]
pub(crate) use {holder_limit::MAX_HOLDERS, queue::NODES};
