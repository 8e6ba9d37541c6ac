//! The virtual-time provider, seen from outside.

mod collectives;
mod contention;
mod determinism;
mod endings;
mod folding;
mod latency;
#[cfg(target_pointer_width = "64")]
mod long;
mod model;
mod notices;
mod queues;
mod router;
mod saturation;
mod start;
mod topology;
