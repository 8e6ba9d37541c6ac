//! The fabric contract over loom's atomics: every interleaving, with no guarantee beyond the
//! contract.
//!
//! Ranks are loom threads. This is what is modelled, and how:
//!
//! * *Operations on each word happen in execution order.* An atomic is one read-modify-write of the
//!   target's cell when it is posted. A get or a wait reads the newest value (by a comparison that
//!   changes nothing). A `store` to own memory is a swap. Only a `load` of own memory may return a
//!   stale value, as loom allows.
//! * *Data* is plain memory: cells of a region that was [watched](Seat::watched) are not atomic.
//!   Loom reports any two accesses, one of them a write, that no chain of release and acquire
//!   orders, whether a put, the program or a network interface makes them.
//! * *A put is delivered when [`Delivery`] says*: at once, as late as the contract allows, or by a
//!   thread per rank at any time. Without a flush, a later atomic of the same poster overtakes it.
//!   When a thread delivers a put of data, it also reads the put's source then, and the put is
//!   complete only afterwards.
//! * *Edges.* An atomic or a word put releases everything its poster did, except writes of data
//!   ([`DataCell`], or puts to watched regions) that were not flushed since: loom's release fence,
//!   taken before the first of them and again by the flush, marks what is covered. To loom, a
//!   reader without an edge from the writer's flush is a data race. Where
//!   [`PutOrder`](rdma_fabric::PutOrder) says so, atomics, and only they, carry data that was not
//!   flushed. A flush of one target covers the data of all targets, and so do such atomics: in
//!   these two points the model is stronger than the contract. Words are delivered separately for
//!   each target.
//! * *Waiting* registers and looks in one step, so that no wake-up can be lost, and never spins.
//!   Loom reports a wait that nobody ends as a deadlock. Parking adds an edge of its own, so
//!   missing edges show on the paths that do not park.
//! * *Helpers* are threads, too, where [`Config::caps`] has them: those that a set-up starts begin
//!   with the model. Loom has five threads at most, so there are none beside network interfaces.
//! * *Time* stands still unless a test advances a rank's clock.
//! * *Set-up* may be left out of the model ([`run_after`]): collectives of many steps, whose
//!   outcome is the same in every order, run on one thread, in memory that loom does not see.
//!
//! A multicast, where [`Config::caps`] has them, is a put to each member, one after the other.
//!
//! Cells are 8 bytes; what is not whole cells fails with
//! [`FabricError::CellWidth`](rdma_fabric::FabricError::CellWidth). Notices, control queues, hardware
//! barriers and third-party copies are not offered, and no order of puts among themselves;
//! [`Fabric::abort`](rdma_fabric::Fabric::abort) is `Unsupported`.

#![forbid(unsafe_code)]

mod cells;
mod check;
mod config;
mod data;
mod delivery;
mod fabric;
mod helpers;
mod job;
mod memory;
mod operation;
#[cfg(test)]
mod refusals;
mod running;

pub use check::{check, check_fails};
pub use config::{Access, Config, Delivery};
pub use data::DataCell;
pub use fabric::Seat;
pub use job::Job;
pub use running::{run, run_after};
