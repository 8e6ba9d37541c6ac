//! An implementation of the fabric contract over loom's atomics. It explores every interleaving and
//! guarantees nothing beyond the contract.
//!
//! Ranks are loom threads. The model has these parts:
//!
//! * *Operations on each word occur in execution order.* An atomic is one read-modify-write of the
//!   target's cell, executed when it is posted. A get or a wait reads the newest value, by a
//!   compare-and-swap that changes nothing. A `store` to local memory is a swap. Only a `load` of
//!   local memory may return a stale value, as loom allows.
//! * *Data* is plain memory: cells of a [watched](RankHandle::watched) region are not atomic. Loom
//!   reports any two accesses, at least one of them a write, that are not ordered by release and
//!   acquire, regardless of whether the program, a put or a network interface makes them.
//! * *[`Delivery`] determines when a put is delivered*: when it is posted, as late as the contract
//!   allows, or at any time by an additional thread per rank. Without a flush, a later atomic of
//!   the same poster may overtake it. When a thread delivers a put of data, it also reads the put's
//!   source at that time, and the put completes only afterwards.
//! * *Happens-before edges.* An atomic or a word put releases all earlier operations of its poster
//!   except unflushed writes of data ([`DataCell`], or puts to watched regions). A release fence in
//!   loom, issued before the first of these writes and again by the flush, marks the covered
//!   operations. A reader without an edge from the writer's flush is a data race in loom. Where
//!   [`PutOrder`](rdma_fabric::PutOrder) guarantees it, atomics, and only atomics, carry unflushed
//!   data. A flush of one target covers the data of all targets, and so do such atomics: in these
//!   two points the model is stronger than the contract. Words are delivered separately for each
//!   target.
//! * *Waiting* registers the waiter and checks the condition in one step, so that no wake-up can be
//!   lost, and never spins. Loom reports a wait that is never woken as a deadlock. Parking adds a
//!   happens-before edge, so missing edges are found on the paths that do not park.
//! * *Helpers* are also threads, if [`Config::caps`] includes them; helpers that the set-up starts
//!   begin with the model, or continue with it if the set-up waits for them. Loom supports at most
//!   five threads, so helpers cannot be combined with network-interface threads, and those that take
//!   no part in a job are [idle](Config::idle).
//! * *Time* changes only when a test advances a rank's clock.
//! * *Set-up* may be excluded from the model ([`run_after`]): collectives of many steps, which have
//!   the same outcome in every order, run on one thread, in memory that loom does not track.
//!
//! A multicast, if [`Config::caps`] includes them, is one put to each member in turn.
//!
//! Cells are 8 bytes; an access that does not cover whole cells fails with
//! [`FabricError::CellWidth`](rdma_fabric::FabricError::CellWidth). Notices, control queues,
//! hardware barriers, third-party copies and ordered puts are not offered;
//! [`Fabric::abort`](rdma_fabric::Fabric::abort) returns `Unsupported`.

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
pub use fabric::RankHandle;
pub use job::Job;
pub use running::{run, run_after};
