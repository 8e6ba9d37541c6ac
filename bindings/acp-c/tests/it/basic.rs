//! The basic layer: programs in `tests/own`, each of which describes itself in its head comment.

use crate::tools::{alone, compiled, job, sanitized};
use process_tests::{child::Ended, programs::Linkage};
use std::path::PathBuf;

pub(crate) fn program(name: &str) -> Option<PathBuf> {
    compiled(&[&format!("tests/own/{name}.c")], Linkage::Shared)
}

/// Checks that all ranks of a job report success.
#[track_caller]
pub(crate) fn is_well(name: &str, ranks: usize, ended: &Ended) {
    let count = ended.out.matches(&format!("{name}: well")).count();
    assert!(ended.code() == Some(0) && count == ranks && ended.err.is_empty(), "{ended}");
}

#[track_caller]
fn runs(name: &str, ranks: usize) {
    let Some(program) = program(name) else { return };
    is_well(name, ranks, &job(ranks, &program, &[]));
}

pub(crate) fn processes_copy_and_count() {
    let Some(program) = program("first") else { return };
    is_well("first", 2, &job(2, &program, &[]));
    is_well("first", 1, &alone(&program, &[]));
    let Some(program) = compiled(&["tests/own/first.c"], Linkage::Static) else { return };
    is_well("first", 2, &job(2, &program, &[]));
}

pub(crate) fn atomics_change_own_and_remote_words() {
    runs("atomics", 3);
}

pub(crate) fn copies_keep_their_orders() {
    runs("copies", 3);
}

pub(crate) fn whatever_is_wrong_is_a_code() {
    runs("errors", 2);
}

pub(crate) fn reasons_are_printed_on_request() {
    let Some(program) = program("errors") else { return };
    let mut command = process_tests::child::program(&program, [""; 0]);
    command.env("ONESIDED_VERBOSE", "1");
    let ended = crate::tools::ended(command);
    assert!(ended.code() == Some(0), "{ended}");
    for text in [
        "acp: acp_sync: acp_init has not been called, or has failed\n",
        "acp: rank 0: acp_copy: 0x0 is not a global address\n",
        "acp: rank 0: acp_register_memory: the address is a null pointer\n",
        "acp: rank 0: acp_sync: acp_finalize has been called\n",
    ] {
        assert!(ended.err.contains(text), "{text}: {ended}");
    }
}

pub(crate) fn ranks_are_permuted() {
    runs("reset", 3);
}

pub(crate) fn threads_call_at_the_same_time() {
    runs("threads", 2);
}

pub(crate) fn all_kinds_of_memory_are_registered() {
    runs("memory", 2);
}

/// The sanitizer sees the program's accesses to memory whose pages were replaced.
pub(crate) fn nothing_is_wrong_under_the_address_sanitizer() {
    let Some(program) = sanitized("tests/own/first.c") else { return };
    let mut command = process_tests::child::this_program(["launch", "2"]);
    // The programs end with memory in use; what gives addresses names is a process that the sanitizer forks.
    command.arg(program).env("ASAN_OPTIONS", "detect_leaks=0:symbolize=0");
    is_well("first", 2, &crate::tools::ended(command));
}

/// A process leaves its record when it finalizes.
pub(crate) fn operations_are_recorded_on_request() {
    let Some(program) = program("first") else { return };
    let records = observe::RecordDirectory::create(observe::Detail::Trace).expect("a folder for records");
    let mut command = process_tests::child::this_program(["launch", "2"]);
    command.arg(program).env(observe::RECORDS_VARIABLE, records.variable());
    is_well("first", 2, &crate::tools::ended(command));
    let observation = records.collect(2).expect("records");
    for record in observation.records() {
        let total = record.counts.total();
        assert!(total.gets > 0 && total.atomics.add > 0 && record.events.is_some(), "{total:?}");
    }
    assert_eq!(observation.records().len(), 2);
}

pub(crate) fn another_middle_layer_is_started_and_ended() {
    let Some(program) = program("layers") else { return };
    let words = ["-a", "--acp-size-smem-dl", "4096", "--acp-size-smem-cl", "2048", "b", "--acp-size-smem", "1024"];
    is_well("layers", 2, &job(2, &program, &words));
}

pub(crate) fn the_examples_run() {
    let Some(program) = compiled(&["../../examples/c/acp_broadcast.c"], Linkage::Shared) else { return };
    let ended = job(4, &program, &[]);
    assert!(ended.code() == Some(0) && ended.out == "broadcast: 4 ranks have the block\n", "{ended}");
}
