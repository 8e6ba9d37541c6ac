//! The fabric contract over loom's atomics: every interleaving, no stronger than the contract.
//!
//! Ranks are loom threads. What is modelled, and how:
//!
//! * *Operations happen in execution order on each word.* An atomic is one read-modify-write of the
//!   target's cell when it is posted; a get or a wait reads the newest value (by a comparison that
//!   changes nothing); an own `store` is a swap. Only an own `load` may be stale, as loom lets it.
//! * *Data* is plain memory: cells of a region that was [watched](Seat::watched) are not atomic,
//!   and loom reports two accesses, one of them a write, that no chain of release and acquire
//!   orders, whoever makes them: a put, the program, a network interface.
//! * *A put is delivered when [`Delivery`] says*: at once, as late as the contract allows, or by a
//!   thread per rank at any time. Without a flush a later atomic of the same poster does overtake
//!   it. By a thread of its own, a put of data reads its source then, too, and is complete only
//!   afterwards.
//! * *Edges.* An atomic or a word put releases everything its poster did, except writes of data
//!   ([`DataCell`], or puts to watched regions) that were not flushed since: loom's release fence,
//!   taken before the first of them and again by the flush, marks what is covered. A reader that
//!   has no edge from the writer's flush is a data race to loom. Where
//!   [`PutOrder`](rdma_fabric::PutOrder) says so, atomics, and they only, carry data that was not
//!   flushed. A flush of one target covers the data of all, and so do such atomics: the points
//!   where this is stronger than the contract; delivery of words is told apart by target.
//! * *Waiting* registers and looks in one step, so that a wake-up can't be lost, and never spins. A
//!   wait that nobody ends is loom's deadlock. Parking adds an edge of its own, so missing ones
//!   show on the paths that do not park.
//! * *Time* stands still unless a test moves a rank's clock.
//! * *Set-up* may be left out of the model ([`run_after`]): collectives of many steps, each way
//!   through which is the same, are carried out on one thread, in memory that loom does not see.
//!
//! Cells are 8 bytes; other widths are
//! [`FabricError::CellWidth`](rdma_fabric::FabricError::CellWidth). Notices and control queues are
//! not offered; [`Fabric::abort`](rdma_fabric::Fabric::abort) is `Unsupported`.

#![forbid(unsafe_code)]

mod cells;
mod check;
mod config;
mod data;
mod delivery;
mod fabric;
mod job;
mod memory;
mod operation;
mod running;

pub use check::{check, check_fails};
pub use config::{Access, Config, Delivery};
pub use data::DataCell;
pub use fabric::Seat;
pub use job::Job;
pub use running::{run, run_after};
