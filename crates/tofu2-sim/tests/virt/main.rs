//! The virtual-time provider, seen from outside.

mod barrier;
mod collectives;
mod determinism;
mod endings;
mod latency;
#[cfg(target_pointer_width = "64")]
mod long;
mod model;
mod notices;
mod queues;
mod router;
mod saturation;
mod start;
