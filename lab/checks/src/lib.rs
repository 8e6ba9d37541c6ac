//! The programs that the checkers run over [`rdma_fabric::Fabric`], the cases in which they run,
//! and the mutants that a check must detect.
//!
//! The explorer, loom, the twin and `cargo xtask` share one program for each check. They depend on
//! this crate, so no program is compiled twice or included by a path into another crate's tests.

#![forbid(unsafe_code)]

pub mod acknowledged;
pub mod acp;
pub mod documented;
pub mod exchange;
pub mod exploration;
pub mod fmpl;
pub mod jobs;
#[cfg(target_os = "linux")]
pub mod killed;
pub mod lock;
mod loss;
mod pattern;

pub use fabric_conformance::watchdog;
pub use pattern::pattern;

use exploration::Exploration;

/// Returns all explorations.
pub fn explorations() -> Vec<Exploration> {
    let mut all = protocols();
    all.extend(acknowledged::mutants());
    all
}

/// Returns the explorations of all protocols and their mutants.
fn protocols() -> Vec<Exploration> {
    let locks = lock::explorations().into_iter().flat_map(|(_, explorations)| explorations);
    locks.chain(exchange::explorations()).chain(acp::explorations()).chain(fmpl::explorations()).collect()
}
