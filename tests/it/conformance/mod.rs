//! The contract's conformance suite over our own providers, and over the layers between a program
//! and its fabric.
//!
//! A new provider takes one line here, and one in the [capability matrix](matrix) of
//! `docs/evidence/capabilities.md`.

mod coverage;
#[cfg(target_os = "linux")]
mod death;
mod forgotten;
#[cfg(target_os = "linux")]
mod kill;
#[cfg(target_os = "linux")]
mod matrix;

use crate::harness::{Bare, Crossbars, Jittered, Layered, ManyRanks, Observed, Threads, Virtual, WhatIf};
#[cfg(target_os = "linux")]
use crate::harness::{Processes, Stepped};
use fabric_conformance::{CASES, Case, Harness, suite};

suite!(threads, Bare<Threads>);
#[cfg(target_os = "linux")]
suite!(processes, Processes);
#[cfg(target_os = "linux")]
suite!(
    #[ignore = "long: weekly"]
    stepped,
    Stepped
);
suite!(virt, Bare<Virtual>);
suite!(virt_crossbars, Bare<Crossbars>);
suite!(virt_jittered, Jittered<0, 2>);
suite!(#[ignore = "long: weekly"] virt_jittered_more, Jittered<2, 8>);
suite!(virt_many_ranks, ManyRanks<0, 1>);
suite!(#[ignore = "long: weekly"] virt_many_ranks_more, ManyRanks<1, 2>);
suite!(observed_threads, Observed<Threads>, wraps);
suite!(observed_virt, Observed<Virtual>, wraps);
suite!(
    #[ignore = "long: weekly"]
    layered_threads,
    Layered<Threads>,
    wraps
);
suite!(layered_virt, Layered<Virtual>, wraps);

/// The machine that supports these is a "what if": the real ones don't.
fn copies_and_multicasts() -> impl Iterator<Item = &'static Case> {
    CASES.iter().filter(|case| case.name.contains("copies") || case.name.contains("multicasts"))
}

#[test]
fn copies_and_multicasts_of_a_network() {
    for case in copies_and_multicasts() {
        Bare::<WhatIf<1, false>>::check_case(case, case.name);
        Bare::<WhatIf<2, true>>::check_case(case, case.name);
    }
}

#[test]
#[ignore = "long: weekly"]
fn copies_and_multicasts_of_more_networks() {
    for case in copies_and_multicasts() {
        Bare::<WhatIf<2, false>>::check_case(case, case.name);
        Observed::<WhatIf<1, false>>::check_case(case, case.name);
    }
}
