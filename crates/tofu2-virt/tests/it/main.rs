//! Tests of the virtual-time provider through its public interface.

mod atomics;
mod barrier;
mod blocks;
mod collectives;
mod contention;
mod control_queues;
mod copies;
mod crossbar;
mod determinism;
mod endings;
mod faults;
mod folding;
mod goal;
mod handles;
mod helpers;
mod latency;
mod layers;
#[cfg(target_pointer_width = "64")]
mod long;
mod model;
mod multicast;
mod notices;
mod prepared;
mod program;
mod queues;
mod router;
mod saturation;
mod sr8000;
pub(crate) mod start;
mod timeline;
mod topology;
