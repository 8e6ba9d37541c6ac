//! Wall-clock provider over shared memory.
//!
//! It runs one-sided programs on one machine at the speed of its memory, without a network and
//! without `unsafe` in their code. Ranks are threads of one process ([`Threads`]) or processes
//! ([`Launcher`], Linux). Each rank has a segment that all others map. The posting CPU executes an
//! operation immediately in the target's segment.
//!
//! # Waiting
//! A waiting rank spins, yields, then parks on its segment's doorbell; any rank that writes its
//! memory rings the doorbell. So an oversubscribed job makes progress, and an idle program uses
//! almost no CPU. [`block_on`] does this on the calling thread. Under another executor (tokio), one
//! thread per rank parks on the doorbell and wakes the waiting tasks.
//!
//! When all ranks wait and nothing can wake them, the job ends with [`JobError::Deadlock`], which
//! lists the waiting ranks and their waits. The time until then is an option
//! ([`Launcher::stuck_after`], [`Threads::stuck_after`]).
//!
//! # Failure
//! A rank that dies, panics or returns an error is published as *lost*: operations on its memory,
//! and waits that depend on it, end with [`PeerLost`](rdma_fabric::FabricError::PeerLost) within
//! milliseconds.
//!
//! # Trust
//! Neither safe code of any rank nor any rank's death can cause undefined behaviour. All data from
//! another rank's tables is copied once and validated, so garbage there results in errors and not
//! in wild accesses. A process of the same user that writes the mapping by other means is not
//! covered by this guarantee.

// Overview: a `job` is the mapped segments and the control block, an `endpoint` is one rank of it,
// and `provider` implements the provider trait for a fabric. Below them, the `mod.rs` of each
// folder gives the order in which to read it: `memory`, `notices`, `waiting`, the control `queues`
// and the barrier unit's `gates`. `helpers` run alongside a rank's program. `threads` and
// `processes` start the ranks, according to `options`, if `admission` finds room for them;
// `attached` are ranks whose `main` belongs to other code.
mod admission;
mod attached;
mod endpoint;
mod exit_report;
#[cfg(all(any(fuzzing, all(test, not(miri))), target_os = "linux"))]
#[doc(hidden)]
pub mod fuzz;
#[cfg(test)]
mod garbage;
mod gates;
mod helpers;
mod job;
mod memory;
#[cfg(target_os = "linux")]
pub mod nic;
mod notices;
mod options;
#[cfg(target_os = "linux")]
pub mod part;
mod processes;
mod provider;
mod queues;
#[cfg(test)]
mod testing;
mod threads;
mod waiting;

pub use attached::{SEGMENT_VARIABLE, attach_process};
pub use exit_report::ends_in_words;
pub use memory::existing::existing_of_processes;
pub use options::{DEFAULT_SEGMENT_BYTES, DEFAULT_STUCK_AFTER, NoSize, SegmentBytes};
pub use processes::launcher::{JOB_VARIABLE, Launcher, VIRTUAL_JOB, from_env};
pub use processes::placement::{Bind, Cache, Cpu, Placement, UnknownBind};
pub use queues::format::machine::QueueMachine;
pub use threads::{EachRank, Threads, run_rank, run_rank_with};
pub use tofu2_job::{Awaited, HelperFailed, JobError, Stuck, Whom};
pub use waiting::watchdog::{NoBound, StuckAfter};
pub use waiting::{
    block_on::{Parker, block_on, park_by, polls_with},
    block_on_short::block_on_short,
};
