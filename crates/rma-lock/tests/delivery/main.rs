//! Checks of the lock against a network that delivers in any order.
//!
//! What loom is to memory orders this is to delivery: puts stay on their way as long as the contract lets them and arrive
//! in any order, and each rank's CPU comes to its next step whenever the explorer likes. Memory is sequentially
//! consistent. Small cases are explored to the last state, larger ones at random.

#[path = "../loom/fabric/detached.rs"]
mod detached;
mod explore;
mod fabric;
#[allow(dead_code, reason = "regions are never given back here")]
#[path = "../loom/fabric/memory.rs"]
mod memory;
#[path = "../mutant/mod.rs"]
mod mutant;
mod net;
mod oracle;
mod rp;
