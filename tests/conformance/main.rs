//! The contract's conformance suite: the same cases over every provider.
//!
//! `docs/fabric-contract.md` numbers its sentences; each case says which it covers ([`suite`]), and a sentence without a
//! case is a failure ([`coverage`]). A provider is accepted by passing all of them; a new one is added as one line at the
//! end of this file, and as one in the [capability matrix](matrix) of that page.

#[macro_use]
mod suite;

mod coverage;
#[cfg(target_os = "linux")]
mod death;
mod forgotten;
#[cfg(target_os = "linux")]
mod kill;
#[cfg(target_os = "linux")]
mod launched;
#[cfg(target_os = "linux")]
mod matrix;
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
mod page;
mod providers;

#[cfg(target_os = "linux")]
use launched::Processes;
use providers::{
    Crowded, Jittered, LayeredThreads, LayeredVirtual, ObservedThreads, ObservedVirtual, Threads, Virtual,
};

conformance!(threads, Threads);
#[cfg(target_os = "linux")]
conformance!(processes, Processes);
conformance!(virt, Virtual);
conformance!(virt_jittered, Jittered);
conformance!(virt_crowded, Crowded);
conformance!(observed_threads, ObservedThreads, wraps);
conformance!(observed_virt, ObservedVirtual, wraps);
conformance!(layered_threads, LayeredThreads, wraps);
conformance!(layered_virt, LayeredVirtual, wraps);
