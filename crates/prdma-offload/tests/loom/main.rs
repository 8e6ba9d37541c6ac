//! Whole exchanges without control queues under loom: the engine's own code, and data of which loom sees every race.
//!
//! The explorer of delivery orders (`tests/delivery`) takes memory to be sequentially consistent. Here it is not: what orders data against READY and END are the
//! releases and acquires of the protocol's operations, and a load may be stale. Requests are made before the model begins; what is explored are starts, waits and what
//! leaves in them. Each test states its preemption bound.

#[path = "../delivery/cases.rs"]
#[allow(dead_code, reason = "shared with tests that need more of it")]
mod cases;
mod crossing;
mod exchange;
#[path = "../delivery/member.rs"]
#[allow(dead_code, reason = "shared with tests that need more of it")]
mod member;
mod mutations;
mod orders;
mod small;
#[path = "../delivery/wrong.rs"]
#[allow(dead_code, reason = "shared with tests that need more of it")]
mod wrong;
