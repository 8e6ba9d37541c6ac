//! The contract's conformance suite over our own providers, and over what stands between a program and its fabric.
//!
//! A new provider is added as one line here, and as one in the [capability matrix](matrix) of `docs/fabric-contract.md`.

mod coverage;
#[cfg(target_os = "linux")]
mod death;
mod forgotten;
#[cfg(target_os = "linux")]
mod kill;
#[cfg(target_os = "linux")]
mod matrix;

#[cfg(target_os = "linux")]
use crate::beds::Processes;
use crate::beds::{
    Jittered, LayeredThreads, LayeredVirtual, ManyRanks, ObservedThreads, ObservedVirtual, Threads, Virtual,
};
use fabric_conformance::suite;

suite!(threads, Threads);
#[cfg(target_os = "linux")]
suite!(processes, Processes);
suite!(virt, Virtual);
suite!(virt_jittered, Jittered<0, 2>);
suite!(#[ignore = "more seeds, which CI runs"] virt_jittered_more, Jittered<2, 8>);
suite!(virt_many_ranks, ManyRanks<0, 1>);
suite!(#[ignore = "more seeds, which CI runs"] virt_many_ranks_more, ManyRanks<1, 2>);
suite!(observed_threads, ObservedThreads, wraps);
suite!(observed_virt, ObservedVirtual, wraps);
suite!(layered_threads, LayeredThreads, wraps);
suite!(layered_virt, LayeredVirtual, wraps);
