//! Exhaustive checks under loom, within the bounds each test states.
//!
//! The fabric is a separate type that implements the same trait; the protocols know nothing of it.

mod check;
mod dropping;
mod fabric;
mod mcs;
#[path = "../mutant/mod.rs"]
mod mutant;
mod mutations;
mod nodes;
mod rp;
mod teeth;
