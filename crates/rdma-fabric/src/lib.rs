//! One-sided communication: the contract between protocols and the networks on which they run.
//!
//! The problem: protocols over remote memory access (locks, halo exchanges, matching areas) are
//! written against one machine's interface, and can then be neither measured on other machines nor
//! checked. This crate is a small vocabulary in which they can be written *once*. A [`Fabric`] is
//! the same type over real shared memory, a simulated network in virtual time and model checkers,
//! all of which implement [`provider::Provider`]. So a protocol has no type parameter for its
//! fabric and is compiled once.
//!
//! # The words
//! * A [`Rank`] is a member of the job, a [`Node`] a machine, and a [`Group`] an ordered set of
//!   ranks with barrier, broadcast and allgather.
//! * Memory is [allocated](Fabric::alloc) from the fabric as a [`Region`]; peers address it by
//!   ([`Rank`], [`RegionKey`], offset) and *resolve* that once into a [`RemoteWord`] or
//!   [`RemoteSpan`]. Memory that a program already has is [registered](Fabric::register) by moving
//!   it into the fabric.
//! * An [operation](Operation) is *posted* and yields a [handle](Handle); when the handle is done,
//!   the operation is *complete*. A put is *visible* at its target after a [flush](Fabric::flush).
//! * A [multicast](MulticastSpan) is one put to several ranks, on networks that support it.
//! * A rank waits only for its own memory or queues: [`Fabric::wait_until`],
//!   [`Fabric::next_notice`].
//! * A [provider] implements a fabric on a network. A wrapper that counts, delays or breaks
//!   operations is a provider too: it is placed in between and [forwards](forward) everything that
//!   it does not change.
//! * A [`Program`] is the code that every rank runs. A provider's launcher starts it; this crate
//!   has none.
//! * A network interface can work without a CPU: a [control queue](control_queue) holds commands
//!   that peers' arrivals release, and a [barrier unit](barrier) combines signals. This crate has
//!   their interfaces for providers; `fabric-offload` has their form for programs, and triggered
//!   puts, which are a [hook](WaitHook) of the rank that waits.
//!
//! # Safety
//! Everything is safe to call, except for the functions that create or use an [`AccessPolicy`] that
//! allows references. Memory that others may write is never exposed as a slice: it is read and
//! written by copying. References exist only to [protected memory](Fabric::protected), under a
//! lock's guard. A peer that breaks the rules can only write wrong *values* into memory that was
//! registered for it.
//!
//! # Reading order
//! The core in an hour, about 3000 lines with their documentation:
//! 1. `rank.rs`, `word.rs`, `time.rs`, `op.rs` (550 lines): ranks, words and atomics, time,
//!    operations as values.
//! 2. `fabric/`: `mod.rs`, `memory.rs`, `operations.rs`, `waits.rs` (850): every method of
//!    [`Fabric`], with its contract.
//! 3. `handle.rs`, `fabric/direct.rs` (450): the execution of an operation in a few instructions,
//!    or its conversion to a handle.
//! 4. `provider/`: `mod.rs`, `operation.rs`, `wait.rs`, `interface.rs`, and `job.rs` (750): the
//!    interface and the guarantees of a provider.
//! 5. `memory/`: `region.rs`, `place.rs`, `place/direct.rs` (600): keys, addresses, and the one
//!    comparison that each access makes.
//! 6. `error/mod.rs` (300), for reference.
//!
//! Afterwards, as needed: `group/` (850; set-up collectives), `fabric/`: `operation_future.rs`,
//! `wait_future.rs` (400; the futures of 2.), the rest of `memory/` (750; typed pointers
//! and their parts, registered and locked memory), `access/` (1200; the assembly behind a place), and what the core
//! does not need: `provider/control_queue/` (900) and `provider/barrier/` (1250), the interfaces of
//! offloads.

pub mod access;
pub mod error;
mod fabric;
pub mod fast_path;
mod group;
mod handle;
mod job;
pub mod join;
mod memory;
pub mod op;
pub mod provider;
mod rank;
mod time;
mod word;

pub use bytemuck::{self, Pod, Zeroable};
pub use error::{FabricError, Result};
pub use fabric::{
    BlockProgress, BlockPut, Deps, Direct, Fabric, MulticastSpan, Prepared, Program, ProgramResult, WaitHook,
};
pub use group::{Group, GroupMemory, Members};
pub use handle::Handle;
pub use job::{Atomics, Caps, Existing, Multicasts, PutOrder};
pub use memory::{
    AccessPolicy, Keyring, LocalSpan, LocalWord, LockedMemory, Mapped, OwnedMemory, Part, Region, RegionKey,
    RegisterError, Registered, RemoteAddr, RemoteSpan, RemoteWord, Uses,
};
pub use op::{Blocks, GetSink, Notice, Operation, PutSource, Refused};
#[doc(no_inline)]
pub use provider::{barrier, control_queue};
pub use rank::{Node, Rank};
pub use time::Time;
pub use word::{Amo, AtomicWord};
