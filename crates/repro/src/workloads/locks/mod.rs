//! Contention for one lock, by the names of the literature: LB, ECSB, SOB, WCSB, WARB, DHT.
//!
//! The names and the bodies are those of Schmid, Besta and Hoefler (High-Performance Distributed RMA Locks, HPDC 2016,
//! section 5); [`Workload`] says what each does. They are written once, over any fabric and any [`rma_lock::RmaLock`]:
//! [`contend`] is one rank's part, [`LockKind`] the table of locks.
//!
//! # What is drawn
//! Whether an acquisition is a reader's or a writer's, how long a random wait is, and which key is read: all of that
//! follows from the seed, the rank and the number of the acquisition alone ([`Draws`]), so that every lock meets the
//! same demand, and a simulated run can be repeated. A [`WriterShare`] is one of acquisitions and not of ranks: with
//! 16 ranks a fifth of a per cent of them would be none.
//!
//! # What is checked
//! A lock that lets two writers in loses increments of WCSB's counter and inserts into DHT's table; both are looked for when
//! a run is over ([`Unsound`]). The other bodies leave no trace; for them the tests watch the lock itself.

mod contend;
mod draws;
mod kind;
mod record;
mod section;
mod window;
mod work;
mod workload;

pub use contend::{Amount, Run, contend, contention};
pub use draws::{Drawn, Draws, WriterShare};
pub use kind::{LockKind, OverLock, UnknownLock, place};
pub use record::{EXCLUSIVE, Latencies, RankRecord, SHARED};
pub use section::Unsound;
pub use workload::{UnknownWorkload, Workload};
