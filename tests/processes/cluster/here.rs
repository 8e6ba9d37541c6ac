//! Without a file of hosts.

use super::run::{MARK, expect_none_marked, job, job_on, run_with_input, start_waiting};
use crate::{limited, run_command};
use process_tests::child::{Child, expect_gone};
use rustix::process::Signal;
use std::{
    process, thread,
    time::{Duration, Instant},
};

/// The time in which a job must end after a failure: the grace period of its launcher, though ranks that receive the
/// error end much sooner.
const GRACE: Duration = Duration::from_secs(9);

pub(crate) fn ranks_synchronise_on_one_machine() {
    let ended = run_command(job("barrier", "--ranks 4 --bind core"));
    let mut lines: Vec<&str> = ended.out.lines().collect();
    lines.sort_unstable();
    assert_eq!((ended.code(), &lines[..]), (Some(0), &["0 of 4", "1 of 4", "2 of 4", "3 of 4"][..]), "{ended:?}");
}

/// A rank that acted as the launcher would start processes without end.
pub(crate) fn a_cluster_of_one_rank_is_one_process() {
    let ended = run_command(job("barrier", "--ranks 1"));
    assert_eq!((ended.code(), &*ended.out), (Some(0), "0 of 1\n"), "{ended:?}");
    let mut nested = job("barrier", "--ranks 2");
    nested.env("ONESIDED_CLUSTER", "v1;rank=0;ranks=1");
    let ended = run_command(nested);
    assert_ne!(ended.code(), Some(0), "{ended:?}");
    assert!(ended.err.contains("ONESIDED_CLUSTER"), "{ended:?}");
}

pub(crate) fn input_goes_to_rank_0() {
    let ended = run_with_input(job("echo", "--ranks 2"), "one\ntwo\n");
    assert_eq!((ended.code(), &*ended.out), (Some(0), "one\ntwo\n"), "{ended:?}");
}

pub(crate) fn waiters_get_an_error_after_a_rank_is_killed() {
    let ended = run_command(job("killed", "--ranks 3"));
    assert_eq!(ended.code(), Some(137), "{ended:?}");
    for rank in [0, 2] {
        let lost = |line: &str| line.starts_with(&format!("[{rank}] error: ")) && line.contains("rank 1");
        assert!(ended.err.lines().any(lost), "rank {rank}: {ended:?}");
    }
    assert!(ended.err.contains("rank 1: killed by signal 9 (SIGKILL) (the first)\n"), "{ended:?}");
}

pub(crate) fn an_abort_ends_all_ranks() {
    let ended = run_command(job("abort", "--ranks 3"));
    assert_eq!(ended.code(), Some(42), "{ended:?}");
    assert!(ended.err.contains("error: rank 1 ended the job: enough\n"), "{ended:?}");
}

pub(crate) fn a_deadlock_is_reported_by_each_rank() {
    let ended = run_command(job("wait", "--ranks 3 --stuck-after 0.5"));
    assert_eq!(ended.code(), Some(1), "{ended:?}");
    for rank in 0..3 {
        let error = format!("error: deadlock: 3 ranks wait for each other: rank {rank} waits for any rank (the word");
        assert!(ended.err.lines().any(|line| line.contains(&error)), "rank {rank}: {ended:?}");
    }
}

pub(crate) fn a_killed_launcher_leaves_no_ranks() {
    let (mut launcher, ranks) = start_waiting(job("wait", "--ranks 3"), 3);
    assert!(launcher.is_running());
    // Kills it.
    drop(launcher);
    ranks.into_iter().for_each(expect_gone);
}

/// The signals that end a job, including those of a closed terminal and the warnings of batch systems.
const ENDING: [(Signal, i32); 5] =
    [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129), (Signal::QUIT, 131), (Signal::USR1, 138)];

/// Returns the signals that this process does not ignore, and the exit codes of a job that they end: under `nohup`,
/// launchers ignore SIGHUP too.
fn ending() -> impl Iterator<Item = (Signal, i32)> {
    let status = std::fs::read_to_string("/proc/self/status").expect("own status");
    let bits = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("ignored signals");
    let ignored = u64::from_str_radix(bits.trim(), 16).expect("bits");
    ENDING.into_iter().filter(move |(signal, _)| {
        let is_ignored = ignored & 1 << (signal.as_raw() - 1) != 0;
        if is_ignored {
            println!("SKIPPED: {signal:?} to the launcher (this process ignores it)");
        }
        !is_ignored
    })
}

pub(crate) fn signals_to_the_launcher_end_all_ranks() {
    for (signal, code) in ending() {
        let (launcher, ranks) = start_waiting(job("wait", "--ranks 3"), 3);
        launcher.signal(signal);
        let ended = launcher.end();
        assert_eq!(ended.code(), Some(code), "{ended:?}");
        assert!(ended.err.contains("), so it ended the job\n"), "{ended:?}");
        ranks.into_iter().for_each(expect_gone);
    }
}

pub(crate) fn operations_are_counted() {
    let ended = run_command(job("barrier", "--ranks 3 --stats"));
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    assert!(ended.err.contains("barrier") || ended.err.contains("puts"), "{ended:?}");
}

/// At any moment of their start: before they receive the secret, while they seek the coordinator, or while they wait
/// for others.
pub(crate) fn a_launcher_killed_while_ranks_start_leaves_no_processes() {
    let mark = format!("start-{}", process::id());
    for delay in 0..30 {
        let mut command = job("wait", "--ranks 3 --lease 1");
        command.env(MARK, &mark);
        let launcher = Child::start(command);
        thread::sleep(Duration::from_millis(2 * delay));
        // Kills it.
        drop(launcher);
    }
    expect_none_marked(&mark);
}

/// Without memory for a thread, for the memory that ranks share, or for anything.
pub(crate) fn memory_limits_are_errors() {
    let mut succeeds = false;
    for mebibytes in (16..=256).step_by(8).chain([2048]) {
        let mut command = limited(&format!("-v {}", mebibytes << 10), &job("barrier", "--ranks 3"));
        command.env("ONESIDED_SEGMENT_BYTES", "1048576");
        // With a backtrace, the standard library waits for its own lock when memory ends while it prints one.
        command.env("RUST_BACKTRACE", "0");
        let begun = Instant::now();
        let ended = run_command(command);
        // The standard library panics in a new thread if there is no memory for its alternative stack.
        let panicked = ended.err.contains("panicked") && !ended.err.contains("failed to allocate an alternative stack");
        assert!(!panicked, "{mebibytes} MiB: {ended:?}");
        assert!(ended.code() == Some(0) || !ended.err.is_empty(), "{mebibytes} MiB: {ended:?}");
        assert!(begun.elapsed() < GRACE, "{mebibytes} MiB: {:?}: {ended:?}", begun.elapsed());
        succeeds |= ended.code() == Some(0);
    }
    assert!(succeeds, "no job succeeds, not even with 2 GiB");
}

/// One rank can't map the memory that all share: the first of its node, which creates it, or another.
pub(crate) fn a_rank_without_memory_ends_the_job() {
    for rank in [0, 1] {
        let begun = Instant::now();
        let ended = run_command(job(&format!("limited{rank}"), "--ranks 3"));
        assert!(ended.code().is_some_and(|code| code != 0), "{ended:?}");
        let failed = |line: &&str| line.starts_with(&format!("[{rank}] error: "));
        // The error of the call, or of the comparison that precedes it.
        let is_memory = |line: &str| line.contains("mmap") || line.contains("RLIMIT_AS");
        assert!(ended.err.lines().any(|line| failed(&line) && is_memory(line)), "{ended:?}");
        assert!(begun.elapsed() < GRACE, "{:?}: {ended:?}", begun.elapsed());
        assert!(!ended.err.contains("[]") && !ended.err.contains("(\""), "{ended:?}");
    }
}

/// Libraries that libfabric loads have handlers of these signals that exit with code 1.
pub(crate) fn signals_end_jobs_on_shared_memory() {
    for (signal, code) in ending() {
        let (launcher, ranks) = start_waiting(job_on("shm", "wait", "--ranks 2"), 2);
        launcher.signal(signal);
        let ended = launcher.end();
        assert_eq!(ended.code(), Some(code), "{ended:?}");
        ranks.into_iter().for_each(expect_gone);
    }
    for command in [job_on("shm", "fault", "--ranks 2"), job("fault", "--ranks 2")] {
        let ended = run_command(command);
        assert_eq!(ended.code(), Some(139), "{ended:?}");
        assert!(ended.err.contains("killed by signal 11 (SIGSEGV)"), "{ended:?}");
    }
}
