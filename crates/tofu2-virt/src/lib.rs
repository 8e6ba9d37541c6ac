//! The virtual-time provider: one thread simulates a whole machine, deterministically.
//!
//! # Model
//! * Ranks are tasks of one executor ([`Job`]). Nothing blocks, and time is a number of picoseconds
//!   that advances from event to event. The event path uses no floating point, no hash order and no
//!   wall-clock time: the same job and program give the same [`Stats::trace_hash`] everywhere.
//! * Each node has *engines* (TNIs) that send one command after another, receive engines, and one
//!   *atomic unit* that serves all remote atomics on the node's memory, including those of its own
//!   ranks.
//! * Each rank has a control queue: a transmit queue (TOQ) of limited depth,
//!   [refused](rdma_fabric::Refused::Full) when it is full, and a queue of notices (MRQ) whose
//!   slots are reserved when a put with notice is posted, so that no notice is lost.
//! * Ranks may open further control queues of the node, including in session mode
//!   ([`rdma_fabric::control_queue`]). Their commands go through the same engines.
//! * The network is either latency-only or made of routers with finite buffers ([`NetworkModel`]).
//!   Its nodes are on a plain [`Torus`], on Tofu's six axes ([`TofuShape`]) with Tofu's routes and
//!   a [`Folding`] that places the ranks, or in rows and columns of crossbars ([`Crossbar`]).
//! * The machine is a [`Platform`], a table of constants with their sources, which also determine
//!   the parts that a machine lacks.
//!
//! # Timing
//! On FX100 an 8-byte put to a neighbour is visible after 710 ns: 150 ns for posting (CPU), 150 in
//! the send engine, 260 on the wire, 150 in the receive engine. Its handle completes when the send
//! engine has read the source. A flush completes when the poster can know: after a further send
//! engine, wire, receive engine and polling time. An atomic is served between the two legs. An
//! operation longer than the machine's largest transfer occupies the send engine for several
//! commands; its data becomes visible as a whole, when the last byte has arrived.
//!
//! # Limits
//! The data of a put is copied when it is posted and written when its last packet arrives; partial
//! visibility is not modelled. Puts and atomics from one rank to one target keep their order as
//! long as there is no jitter and no fault, although [`rdma_fabric::Caps::put_order`] and (on most
//! machines) [`rdma_fabric::Caps::puts_in_order`] guarantee none. Collective allocation is out of
//! band and takes no time.
//!
//! Copies between two other ranks' memory are `Unsupported`, as on the real machines. If the
//! constant `third_party_copy` is 1, the poster's command goes to the source's interface, as a
//! get's does; that interface puts to the destination, and notifies the poster once the data has
//! left.
//!
//! If the constant `block_puts` is 1, several blocks are one operation of the CPU, and each block
//! is a message.
//!
//! Multicasts are also `Unsupported`, unless the constant `multicast` is not 0. They are executed
//! one after another, do not contend with other messages, and may be overtaken by puts that are
//! posted later.
//!
//! # Early ends of a run
//! A rank whose program returns an error or panics is lost, together with its operations in flight.
//! Waits that depend on it end with `PeerLost`. Waits whose dependencies have all finished, with
//! nothing left in flight, end with `PeersLeft`. When no event is pending and a rank is still
//! waiting, the job ends with [`JobError::Deadlock`]. A rank that computes past the end of virtual
//! time fails with [`EndOfTime`]; sleeping until then is sleeping forever.
//!
//! A job that needs more memory than this machine has ends with [`JobError::TooLittleMemory`]. Two
//! amounts are compared with the memory that the machine, the control group and the process's limits
//! leave available: the tables and tasks of all ranks, before the run, and each further MiB of
//! storage, when it is first written. Memory that programs use besides their regions is not counted,
//! nor is memory that other processes take later; the system may then kill the process.

// Lets docs.rs show which items need which feature.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod barrier;
mod chacha;
mod clock;
mod control_queue;
mod core;
mod executor;
mod faults;
#[cfg(all(any(fuzzing, all(test, not(miri))), feature = "timeline"))]
#[doc(hidden)]
pub mod fuzz;
pub mod goal;
mod helpers;
mod huge_pages;
mod job;
mod memory;
mod network;
mod nic;
mod operation;
mod platform;
mod prefetch;
pub mod program;
mod provider;
mod ranks;
mod region;
mod slots;
mod stats;
mod tasks;
mod timeline;
mod topology;
mod waits;
mod world;

pub use clock::QueueKind;
pub use faults::{BadFault, Fault, FaultKind, FaultReport, Faults, Odds};
pub use job::{Job, PartialRun, Run};
pub use network::{Arbiter, NetworkModel};
pub use platform::{Constant, Platform, Unit};
pub use stats::{CommandCounts, OpCounts, Stats};
pub use timeline::{Busy, Released, SeenCommand, Timeline, Work};
pub use tofu2_job::{Awaited, HelperFailed, JobError, Stuck, Whom};
pub use topology::{
    Axis, Coordinates, Crossbar, Fold, Folding, Link, MAX_AXES, Path, PathId, Paths, Placement, Port, Route, System,
    TofuShape, TopologyError, Torus,
};
pub use waits::EndOfTime;
