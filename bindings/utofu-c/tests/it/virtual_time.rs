//! Programs whose network is simulated.

use crate::tools::{compiled, ended};
use process_tests::{
    child::Ended,
    jobs::{self, figures},
    programs::Linkage,
};
use std::path::Path;

/// Runs a program as `ranks` ranks in virtual time.
fn simulated(ranks: usize, program: &Path, args: &[&str]) -> Ended {
    ended(jobs::simulated(ranks, program, args))
}

pub(crate) fn equal_runs_take_equal_virtual_time() {
    let Some(program) = compiled("utofu_ring", Linkage::Shared) else { return };
    let runs = [(); 2].map(|()| simulated(8, &program, &[]));
    for ended in &runs {
        assert!(ended.code() == Some(0) && ended.out == "ring: 8 ranks, 320 blocks\n", "{ended}");
    }
    assert_eq!(figures(&runs[0]), figures(&runs[1]));
}

/// A put with a notice takes as long as on the FX100, about 0.71 us for 8 bytes between neighbours.
pub(crate) fn messages_take_the_time_of_the_machine() {
    let Some(program) = compiled("utofu_pingpong", Linkage::Shared) else { return };
    let ended = simulated(2, &program, &[]);
    assert!(ended.code() == Some(0) && ended.out == "pingpong: 1000 messages\n", "{ended}");
    let (nanoseconds, _) = figures(&ended);
    assert!((700_000..800_000).contains(&nanoseconds), "{ended}");
    let Some(program) = compiled("utofu_gates", Linkage::Shared) else { return };
    let ended = simulated(4, &program, &[]);
    assert!(ended.code() == Some(0) && ended.out == "gates: 4 ranks, 50 rounds\n", "{ended}");
}

/// A killed rank is lost to the others; ranks that poll forever are a deadlock.
pub(crate) fn virtual_time_ends_with_its_ranks() {
    let Some(program) = compiled("ends", Linkage::Shared) else { return };
    let ended = simulated(3, &program, &["1", "20000", "sends"]);
    assert_eq!(ended.code(), Some(128 + 9), "{ended}");
    let ended = simulated(2, &program, &["5", "0", "waits"]);
    assert!(ended.code() == Some(1) && ended.err.contains("deadlock"), "{ended}");
}
