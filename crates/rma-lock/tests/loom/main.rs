//! Exhaustive checks under loom, within the bounds each test states.
//!
//! The fabric has a provider of its own, `loom-fabric`; the protocols know nothing of it, and are
//! the same compiled code as elsewhere.

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
