//! The ways in which jobs end.

use crate::{basic::program, tools::job};

pub(crate) fn a_loss_is_a_code_or_the_end() {
    let Some(program) = program("ends") else { return };
    let ended = job(3, &program, &["killed"]);
    assert_eq!(ended.code(), Some(128 + 9), "the code is that of the first that failed: {ended}");
    assert_eq!(ended.out.matches("survivor: -1").count(), 2, "{ended}");
    // Ranks that call nothing are ended by the launcher.
    let ended = job(3, &program, &["spin"]);
    assert_eq!(ended.code(), Some(128 + 9), "{ended}");
}

pub(crate) fn kills_at_random_moments_leave_no_hang() {
    let Some(program) = program("ends") else { return };
    for micros in ["0", "2000", "15000", "60000", "100000", "150000"] {
        let ended = job(3, &program, &["random", micros]);
        assert_eq!(ended.code(), Some(128 + 9), "{micros}: {ended}");
        let crashed = ["SIGSEGV", "SIGBUS", "SIGABRT", "defect"].iter().any(|signal| ended.err.contains(signal));
        assert!(!crashed, "{micros}: {ended}");
    }
}

pub(crate) fn an_abort_ends_all_processes() {
    let Some(program) = program("ends") else { return };
    let ended = job(3, &program, &["abort"]);
    assert!(ended.code() == Some(1) && ended.err.contains("the reason for the end"), "{ended}");
}

pub(crate) fn processes_may_end_without_acp_finalize() {
    let Some(program) = program("ends") else { return };
    let ended = job(3, &program, &["exit"]);
    assert!(ended.code() == Some(0) && ended.out.matches("leaves: ").count() == 3, "{ended}");
}
