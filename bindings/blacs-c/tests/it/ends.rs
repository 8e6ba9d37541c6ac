//! The ways in which jobs end.

use crate::tools::{Linked, alone, compiled, job};
use process_tests::child::Ended;

/// Runs three ranks that end as `way` names; `None` without a compiler.
fn ends(way: &str) -> Option<Ended> {
    let program = compiled(&["tests/own/ends.c"], Linked::Shared)?;
    let ended = job(3, &program, &[way]);
    assert!(!ended.out.contains("survived"), "{ended}");
    Some(ended)
}

pub(crate) fn a_lost_peer_is_named() {
    let Some(ended) = ends("killed") else { return };
    assert_eq!(ended.code(), Some(128 + 9), "the code is that of the first that failed: {ended}");
    assert!(ended.err.contains("BLACS ERROR 'rank 1 was lost'"), "{ended}");
    assert!(ended.err.contains("from {0,0}, pnum=0, Contxt=0, in routine 'igerv2d'."), "{ended}");
}

pub(crate) fn a_kept_message_system_starts_again() {
    let Some(ended) = ends("again") else { return };
    assert!(ended.code() == Some(0) && ended.out == "again: 0 3 9\n", "{ended}");
}

pub(crate) fn processes_may_end_without_exit_calls() {
    let Some(ended) = ends("left") else { return };
    assert!(ended.code() == Some(0) && ended.out == "left: 3\n" && ended.err.is_empty(), "{ended}");
}

pub(crate) fn calls_after_the_end_are_refused() {
    let Some(ended) = ends("used") else { return };
    assert_ne!(ended.code(), Some(0), "{ended}");
    assert!(ended.err.contains("BLACS ERROR 'blacs_exit(0) has ended the library in this process'"), "{ended}");
}

pub(crate) fn a_deadlock_is_reported() {
    let Some(ended) = ends("stuck") else { return };
    assert_ne!(ended.code(), Some(0), "{ended}");
    for rank in 0..3 {
        let peer = (rank + 1) % 3;
        let text = format!(
            "[rank {rank}] BLACS ERROR 'deadlock: 3 ranks wait and nothing can happen any more; this one waits for a \
             message from process {{0,{peer}}}, rank {peer}'"
        );
        assert!(ended.err.contains(&text), "{text}: {ended}");
        let of_launcher = format!("rank {rank} waits for rank {peer} (");
        assert!(
            ended.err.contains("error: deadlock at ") && ended.err.contains(&of_launcher),
            "{of_launcher}: {ended}"
        );
    }
}

/// Rank 1 has given up because of another rank's loss.
pub(crate) fn the_first_loss_is_named() {
    let Some(ended) = ends("chain") else { return };
    assert_eq!(ended.code(), Some(128 + 9), "{ended}");
    assert!(ended.err.contains("[rank 1] BLACS ERROR 'rank 0 was lost'"), "{ended}");
    let second =
        "[rank 2] BLACS ERROR 'rank 0 was lost, and rank 1, for which this one waits, has given up because of it'";
    assert!(ended.err.contains(second), "{ended}");
}

/// The shell receives the lowest eight bits of the code, as after `exit`.
pub(crate) fn an_abort_keeps_what_was_printed() {
    let Some(ended) = ends("printed") else { return };
    assert_eq!(ended.code(), Some(7), "{ended}");
    let mut lines: Vec<&str> = ended.out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["before", "before", "before", "process 0", "process 1", "process 2"], "{ended}");
}

pub(crate) fn too_many_contexts_are_an_error_that_names_gridexit() {
    let Some(program) = compiled(&["tests/own/ends.c"], Linked::Shared) else { return };
    let ended = alone(&program, &["grids"]);
    assert!(ended.code() == Some(1) && ended.out.is_empty(), "{ended}");
    let is_named = ended.err.contains("contexts are open, and blacs_gridexit gives back what one of them takes");
    assert!(is_named && ended.err.contains("in routine 'blacs_gridinit'"), "{ended}");
    let ended = alone(&program, &["regions"]);
    assert!(ended.code() == Some(1) && ended.out.is_empty(), "{ended}");
    let limit = "rank 0 has registered 7168 regions, the most this provider allows; ";
    let (_, rest) = ended.err.split_once(limit).unwrap_or_else(|| panic!("the limit is named: {ended}"));
    let open = rest.split_once(" contexts are open, and blacs_gridexit").and_then(|(open, _)| open.parse().ok());
    assert!(open.is_some_and(|open: usize| (7100..7168).contains(&open)), "{ended}");
}

/// Sends do not wait for their receivers; they fail when memory runs out.
pub(crate) fn lack_of_memory_is_reported() {
    let Some(program) = compiled(&["tests/own/ends.c"], Linked::Shared) else { return };
    let ended = alone(&program, &["full"]);
    assert!(ended.code() == Some(1) && ended.out.is_empty(), "{ended}");
    for text in ["cannot register 524288 bytes", "--segment-bytes", "ONESIDED_SEGMENT_BYTES"] {
        assert!(ended.err.contains(text), "{text}: {ended}");
    }
}
