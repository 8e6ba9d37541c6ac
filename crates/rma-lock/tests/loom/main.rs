//! Exhaustive checks under loom, within the bounds each test states.
//!
//! The fabric is a separate type that implements the same trait; the protocols know nothing of it.

mod crowded;
mod dropping;
mod mcs;
#[path = "../mutant/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with tests that need more of it")]
mod mutant;
mod mutations;
mod nodes;
mod queued;
mod rp;
mod teeth;
