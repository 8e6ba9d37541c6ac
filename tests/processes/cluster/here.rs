//! Without a file of hosts.

use super::run::{MARK, end, job, job_on, processes, run, wait_gone, wait_none_marked};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    process::{self, Command},
    thread,
    time::{Duration, Instant},
};

/// The time that survivors may run on after a failure, as the launcher's grace is: ranks that know of it end much
/// sooner.
const GRACE: Duration = Duration::from_secs(9);

pub(crate) fn ranks_meet_on_one_machine() {
    let ended = run(job("meet", "--ranks 4 --bind core"), b"");
    let mut lines: Vec<&str> = ended.out.lines().collect();
    lines.sort_unstable();
    assert_eq!((ended.code, &lines[..]), (Some(0), &["0 of 4", "1 of 4", "2 of 4", "3 of 4"][..]), "{ended:?}");
}

/// A rank that took itself for the launcher would start processes without end.
pub(crate) fn a_cluster_of_one_rank_is_one_process() {
    let ended = run(job("meet", "--ranks 1"), b"");
    assert_eq!((ended.code, &*ended.out), (Some(0), "0 of 1\n"), "{ended:?}");
    let mut nested = job("meet", "--ranks 2");
    nested.env("ONESIDED_CLUSTER", "v1;rank=0;ranks=1");
    let ended = run(nested, b"");
    assert_ne!(ended.code, Some(0), "{ended:?}");
    assert!(ended.err.contains("ONESIDED_CLUSTER"), "{ended:?}");
}

pub(crate) fn input_goes_to_the_first() {
    let ended = run(job("echo", "--ranks 2"), b"one\ntwo\n");
    assert_eq!((ended.code, &*ended.out), (Some(0), "one\ntwo\n"), "{ended:?}");
}

pub(crate) fn who_waits_for_a_killed_rank_is_told() {
    let ended = run(job("killed", "--ranks 3"), b"");
    assert_eq!(ended.code, Some(137), "{ended:?}");
    for rank in [0, 2] {
        let lost = |line: &str| line.starts_with(&format!("[{rank}] error: ")) && line.contains("rank 1");
        assert!(ended.err.lines().any(lost), "rank {rank}: {ended:?}");
    }
    assert!(ended.err.contains("rank 1: killed by signal 9 (SIGKILL) (the first)\n"), "{ended:?}");
}

pub(crate) fn an_abort_ends_all() {
    let ended = run(job("abort", "--ranks 3"), b"");
    assert_eq!(ended.code, Some(42), "{ended:?}");
    assert!(ended.err.contains("error: rank 1 ended the job: enough\n"), "{ended:?}");
}

pub(crate) fn who_waits_for_each_other_is_told() {
    let ended = run(job("wait", "--ranks 3 --stuck-after 0.5"), b"");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    for rank in 0..3 {
        let told = format!("error: deadlock: 3 ranks wait for each other: rank {rank} waits for any rank (the word");
        assert!(ended.err.lines().any(|line| line.contains(&told)), "rank {rank}: {ended:?}");
    }
}

pub(crate) fn a_killed_launcher_leaves_nobody() {
    let mut child = job("wait", "--ranks 3").spawn().expect("the launcher starts");
    let ranks = processes(&mut child, 3);
    child.kill().expect("it runs");
    child.wait().expect("it is ours");
    wait_gone(&ranks);
}

/// The signals that end a job, including those of a closed terminal and the warnings of batch systems.
const ENDING: [(Signal, i32); 5] =
    [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129), (Signal::QUIT, 131), (Signal::USR1, 138)];

/// Returns the signals that this process does not ignore: under `nohup`, launchers ignore SIGHUP too.
fn ending() -> impl Iterator<Item = (Signal, i32)> {
    let status = std::fs::read_to_string("/proc/self/status").expect("own status");
    let bits = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("ignored signals");
    let ignored = u64::from_str_radix(bits.trim(), 16).expect("bits");
    ENDING.into_iter().filter(move |(signal, _)| ignored & 1 << (signal.as_raw() - 1) == 0)
}

pub(crate) fn signals_to_the_launcher_end_all() {
    for (signal, code) in ending() {
        let mut child = job("wait", "--ranks 3").spawn().expect("the launcher starts");
        let ranks = processes(&mut child, 3);
        kill_process(Pid::from_child(&child), signal).expect("it runs");
        let ended = end(child);
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(ended.err.contains("), so it ended the job\n"), "{ended:?}");
        wait_gone(&ranks);
    }
}

pub(crate) fn what_ranks_did_is_counted() {
    let ended = run(job("meet", "--ranks 3 --stats"), b"");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.err.contains("barrier") || ended.err.contains("puts"), "{ended:?}");
}

/// At any moment of their start: before they receive the secret, while they seek the coordinator, or while they wait
/// for others.
pub(crate) fn a_launcher_killed_while_ranks_start_leaves_nobody() {
    let mark = format!("start-{}", process::id());
    for delay in 0..30 {
        let mut child = job("wait", "--ranks 3 --lease 1").env(MARK, &mark).spawn().expect("the launcher starts");
        thread::sleep(Duration::from_millis(2 * delay));
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
    }
    wait_none_marked(&mark);
}

/// Without memory for a thread, for the memory that ranks share, or for anything.
pub(crate) fn limits_of_memory_are_errors() {
    let mut ran = false;
    for mebibytes in (16..=256).step_by(8).chain([2048]) {
        let mut limited = Command::new("sh");
        limited.arg("-c").arg(format!("ulimit -v {}; exec \"$@\"", mebibytes << 10)).arg("sh");
        let inner = job("meet", "--ranks 3");
        limited.arg(inner.get_program()).args(inner.get_args()).env("ONESIDED_SEGMENT_BYTES", "1048576");
        limited.stdin(process::Stdio::piped()).stdout(process::Stdio::piped()).stderr(process::Stdio::piped());
        let begun = Instant::now();
        let ended = run(limited, b"");
        assert!(!ended.err.contains("panicked"), "{mebibytes} MiB: {ended:?}");
        assert!(ended.code == Some(0) || !ended.err.is_empty(), "{mebibytes} MiB: {ended:?}");
        assert!(begun.elapsed() < GRACE, "{mebibytes} MiB: {:?}: {ended:?}", begun.elapsed());
        ran |= ended.code == Some(0);
    }
    assert!(ran, "with 2 GiB it runs");
}

/// One rank can't map the memory that all share: the first of its node, which creates it, or another.
pub(crate) fn who_waits_for_memory_of_a_failed_rank_is_told() {
    for poor in ["poor0", "poor1"] {
        let begun = Instant::now();
        let ended = run(job(poor, "--ranks 3"), b"");
        assert!(ended.code.is_some_and(|code| code != 0), "{ended:?}");
        let failed = |line: &&str| line.starts_with(&format!("[{}] error: ", &poor[4..]));
        // The system's refusal, or the comparison that precedes the call.
        let is_memory = |line: &str| line.contains("mmap") || line.contains("RLIMIT_AS");
        assert!(ended.err.lines().any(|line| failed(&line) && is_memory(line)), "{ended:?}");
        assert!(begun.elapsed() < GRACE, "{:?}: {ended:?}", begun.elapsed());
        assert!(!ended.err.contains("[]") && !ended.err.contains("(\""), "{ended:?}");
    }
}

/// Libraries that libfabric brings along would answer these signals by the code 1.
pub(crate) fn signals_have_their_effect_on_shared_memory() {
    for (signal, code) in ending() {
        let mut child = job_on("shm", "wait", "--ranks 2").spawn().expect("the launcher starts");
        let ranks = processes(&mut child, 2);
        kill_process(Pid::from_child(&child), signal).expect("it runs");
        let ended = end(child);
        assert_eq!(ended.code, Some(code), "{ended:?}");
        wait_gone(&ranks);
    }
    for command in [job_on("shm", "fault", "--ranks 2"), job("fault", "--ranks 2")] {
        let ended = run(command, b"");
        assert_eq!(ended.code, Some(139), "{ended:?}");
        assert!(ended.err.contains("killed by signal 11 (SIGSEGV)"), "{ended:?}");
    }
}
