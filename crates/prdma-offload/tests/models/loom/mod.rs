//! Whole exchanges without control queues under loom: the engine's own code, and data for which
//! loom detects every race.
//!
//! The explorer of delivery orders ([`crate::delivery`]) assumes sequentially consistent
//! memory. Here it is not: data are ordered against READY and END by the releases and acquires
//! of the protocol's operations, and a load may be stale. Requests are made before the model
//! starts; it explores starts, waits and the data that leave in them. Each test states its
//! preemption bound.

mod exchange;
mod right;
mod wrong;
