//! Ranks that are killed while the others wait or send.

use crate::tools::{compiled, job};
use process_tests::programs::Linkage;

pub(crate) fn a_loss_ends_polls() {
    let Some(program) = compiled("ends", Linkage::Shared) else { return };
    let ended = job(3, &program, &["1", "20000", "waits"]);
    assert_eq!(ended.code(), Some(128 + 9), "the code is that of the first that failed: {ended}");
    for rank in [0, 2] {
        let is_told = ended.err.lines().any(|line| line.contains(&format!("rank {rank}: -193, MRQ_PEER: ")));
        assert!(is_told, "{ended}");
    }
}

/// Whatever the others do: ranks that only look at memory are ended by the launcher.
pub(crate) fn kills_at_any_moment_leave_no_hang() {
    let Some(program) = compiled("ends", Linkage::Shared) else { return };
    for (killed, micros, how) in [
        ("0", "500", "sends"),
        ("1", "1700", "sends"),
        ("2", "5300", "sends"),
        ("1", "11000", "sends"),
        ("0", "900", "waits"),
        ("2", "3000", "memory"),
    ] {
        let ended = job(3, &program, &[killed, micros, how]);
        assert_eq!(ended.code(), Some(128 + 9), "{killed} {micros} {how}: {ended}");
        let crashed = ["SIGSEGV", "SIGBUS", "SIGABRT"].iter().any(|signal| ended.err.contains(signal));
        assert!(!crashed, "{ended}");
    }
}
