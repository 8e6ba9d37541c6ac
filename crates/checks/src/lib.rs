//! What the checkers run: programs over [`rdma_fabric::Fabric`], the cases they are run in, and the
//! mistakes that a check must find.
//!
//! One program serves the explorer, loom, the twin and `cargo xtask`; each of them depends on this
//! crate, so that no program is compiled twice and none is found by a path into another crate's
//! tests.

#![forbid(unsafe_code)]

pub mod exchange;
pub mod exploration;
pub mod lock;
