//! Programs whose network is simulated.

use crate::{
    basic::program,
    tools::{compiled, ended},
};
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

/// Copies that other ranks execute for rank 0, into memory of the program at which all of them look.
pub(crate) fn equal_runs_take_equal_virtual_time() {
    let Some(program) = compiled(&["../../examples/c/acp_broadcast.c"], Linkage::Shared) else { return };
    let runs = [(); 2].map(|()| simulated(6, &program, &[]));
    for ended in &runs {
        assert!(ended.code() == Some(0) && ended.out == "broadcast: 6 ranks have the block\n", "{ended}");
    }
    assert_eq!(figures(&runs[0]), figures(&runs[1]));
    let Some(program) = compiled(&["../../examples/c/acp_echo.c"], Linkage::Shared) else { return };
    let ended = simulated(2, &program, &[]);
    assert!(ended.code() == Some(0) && ended.out == "rank 1 has echoed 9 messages\n", "{ended}");
}

/// An atomic takes the software's and the network's time of the FX100: a fetch of another rank's word about 2.7 us, of
/// an own one, which the network interface executes too, about 2.2 us.
pub(crate) fn operations_take_the_time_of_the_machine() {
    let Some(program) = program("latency") else { return };
    let mut nanoseconds = [("local", 2_000..2_400), ("remote", 2_500..3_000)].map(|(target, range)| {
        let [few, many] = ["10", "30"].map(|times| {
            let ended = simulated(2, &program, &["add4", target, times]);
            assert!(ended.code() == Some(0), "{ended}");
            figures(&ended).0
        });
        (many.saturating_sub(few) / 20, range)
    });
    assert!(nanoseconds.iter_mut().all(|(each, range)| range.contains(each)), "{nanoseconds:?}");
}

/// A killed rank is lost to the others; an abort has its code.
pub(crate) fn virtual_time_ends_with_its_ranks() {
    let Some(program) = program("ends") else { return };
    let ended = simulated(3, &program, &["killed"]);
    assert!(ended.code() == Some(128 + 9) && ended.out.contains("survivor: -1"), "{ended}");
    // A rank with two threads.
    let ended = simulated(3, &program, &["random", "30000"]);
    assert_eq!(ended.code(), Some(128 + 9), "{ended}");
    let ended = simulated(3, &program, &["abort"]);
    assert!(ended.code() == Some(1) && ended.err.contains("the reason for the end"), "{ended}");
}
