//! The virtual-time provider, seen from outside.

mod collectives;
mod determinism;
mod endings;
mod latency;
mod model;
mod notices;
mod queues;
mod router;
mod saturation;
mod start;
