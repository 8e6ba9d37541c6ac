//! One-sided communication (RDMA) for Rust: safe to call, fast enough to replace hand-written code,
//! and honest enough to be a laboratory.
//!
//! The problem: a rank wants to read, write and lock another rank's memory without involving that
//! rank's CPU. Existing libraries for this are unsafe, slow between processes of one machine, or
//! tied to one network, and none can be run unchanged under a simulator or a model checker. Here a
//! protocol is written and compiled once, over [`Fabric`], and runs on
//!
//! * **shared memory** between real processes ([`sim::shm`]), each operation executed by the CPU
//!   that posts it;
//! * **virtual time** ([`sim::virt`]), up to a million ranks on a modelled Tofu2 network;
//! * a model checker, with the feature `explore`: every order of delivery that the contract allows,
//!   for small jobs.
//!
//! With the feature `observe`, a program reports what its ranks did: `--stats`, `--trace FILE`,
//! `--timeline FILE`.
//!
//! # Start
//! A program is an `async fn` over a fabric. [`launch`] starts its ranks. Here each of them locks a
//! word in rank 0's memory and adds one to it:
//!
//! ```no_run
//! use onesided::{lock::RwLock, prelude::*};
//!
//! async fn counter(fabric: Fabric) -> ProgramResult<()> {
//!     let home = Rank::new(0);
//!     let mut world = Group::world(&fabric).await?;
//!     let window = fabric.alloc_symmetric(8).await?;
//!     let total = window.word_of::<u64>(&fabric, home, 0)?;
//!     let lock = RwLock::symmetric(&fabric, home).await?;
//!
//!     let guard = lock.write().await?;
//!     let old = fabric.get_word(&total).await?;
//!     fabric.put_word(&total, old + 1).await?;
//!     guard.release().await?;
//!
//!     world.barrier().await?;
//!     println!("{} sees {}", fabric.rank(), fabric.get_word(&total).await?);
//!     Ok(world.barrier().await?)
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     onesided::launch(counter)
//! }
//! ```
//!
//! Run it with `--ranks 4`, and with `--fabric virt` for virtual time.
//!
//! # Features
//! Each system is a feature of its own name here, on by default: `lock`, `prdma`, `acp`, `fmpl`,
//! `blacs`, `xmp`. A program that uses one of them builds in less time without the others:
//! `cargo add onesided --no-default-features --features lock`.
//!
//! # Where to look next
//! [`Fabric`] is what programs hold, regardless of the provider below it. [`lock::RwLock`] is the
//! readers-writer lock, and [`lock::Window`] is memory with MPI-3's epochs.
//! [`prdma::Neighbourhood`] creates exchanges with fixed neighbours that the network executes by
//! itself. [`acp::Acp`] gives every byte of all ranks a 64-bit address, orders copies between any
//! two of them, and has channels and containers. [`fmpl::Fmpl`] sends messages whose cost does not
//! grow with the number of posted receives; over them, [`blacs::Blacs`] exchanges matrices on grids
//! of processes. [`xmp::NodeSet`] distributes arrays over ranks and keeps the shadows around each
//! rank's block up to date. [`offload`] is what network interfaces do without a CPU. [`Launch`] does
//! what `launch` does, step by step.

#![forbid(unsafe_code)]
// docs.rs shows which items need which feature.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod backend;
#[cfg(target_os = "linux")]
mod cluster;
mod launch;
mod launch_options;
#[cfg(feature = "observe")]
mod observing;
#[cfg(any(test, not(feature = "observe")))]
mod refusal;
mod report;
mod settings;
#[cfg(target_os = "linux")]
mod simulated;
#[cfg(not(feature = "observe"))]
mod unobserved;

/// The names that nearly every program needs: `use onesided::prelude::*`.
pub mod prelude {
    pub use rdma_fabric::{Deps, Fabric, FabricError, Group, ProgramResult, Rank, Region};
}

#[cfg(feature = "acp")]
#[doc(inline)]
pub use acp;
pub use backend::{AtomicsBy, Backend, OnNode, UnknownAtomicsBy, UnknownBackend, UnknownOnNode};
#[cfg(feature = "blacs")]
#[doc(inline)]
pub use blacs;
#[cfg(all(fuzzing, target_os = "linux"))]
#[doc(hidden)]
pub use cluster::fuzz;
/// A model checker for protocols over [`Fabric`], with the feature `explore`:
/// `docs/learn/own-protocol.md` is its recipe.
#[cfg(feature = "explore")]
#[doc(inline)]
pub use explore;
#[doc(inline)]
pub use fabric_offload::{self as offload, ControlQueue, barrier, control_queue, triggered};
#[cfg(feature = "fmpl")]
#[doc(inline)]
pub use fmpl;
pub use launch::{launch, launch_shared, launch_with};
pub use launch_options::Launch;
/// Counters and traces of operations and waits, with the feature `observe`.
#[cfg(feature = "observe")]
#[doc(inline)]
pub use observe;
#[cfg(feature = "prdma")]
#[doc(inline)]
pub use prdma_offload as prdma;
pub use rdma_fabric::{
    self as fabric, AccessPolicy, Amo, AtomicWord, Atomics, Caps, Deps, Existing, Fabric, FabricError, GetSink, Group,
    GroupMemory, Handle, Keyring, LocalSpan, LocalWord, LockedMemory, Mapped, Node, Notice, Operation, OwnedMemory,
    Pod, Prepared, Program, ProgramResult, PutOrder, PutSource, Rank, Refused, Region, RegionKey, RegisterError,
    Registered, RemoteAddr, RemoteSpan, RemoteWord, Result, Time, Uses, Zeroable, join, op,
};
// Not inlined: its page would include the pages of all of `core`.
#[doc(no_inline)]
pub use rdma_fabric::bytemuck;
#[cfg(feature = "lock")]
#[doc(inline)]
pub use rma_lock as lock;
#[doc(inline)]
pub use tofu2_sim as sim;
pub use tofu2_sim::shm::{block_on, block_on_short};
#[cfg(not(feature = "observe"))]
use unobserved as observing;
#[cfg(feature = "xmp")]
#[doc(inline)]
pub use xmp_reflect as xmp;

/// The programs in the README, in the first part of the book and on the pages of systems, compiled by
/// `cargo test --doc`.
#[cfg(doctest)]
mod book {
    #[doc = include_str!("../README.md")]
    mod readme {}
    #[doc = include_str!("../docs/learn/first-program.md")]
    mod first_program {}
    #[doc = include_str!("../docs/learn/memory.md")]
    mod memory {}
    #[doc = include_str!("../docs/learn/lock.md")]
    mod lock {}
    #[doc = include_str!("../docs/learn/window.md")]
    mod window {}
    #[doc = include_str!("../docs/learn/exchange.md")]
    mod exchange {}
    #[doc = include_str!("../docs/learn/messages.md")]
    mod messages {}
    #[doc = include_str!("../docs/systems/persistent.md")]
    mod persistent {}
    #[doc = include_str!("../docs/systems/acp.md")]
    mod acp {}
    #[doc = include_str!("../docs/systems/fmpl.md")]
    mod fmpl {}
    #[doc = include_str!("../docs/systems/blacs.md")]
    mod blacs {}
    #[doc = include_str!("../docs/systems/reflect.md")]
    mod reflect {}
}
