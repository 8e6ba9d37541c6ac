//! Without a file of hosts.

use super::run::{end, job, processes, run, wait_gone};
use rustix::process::{Pid, Signal, kill_process};

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
        let told = format!("error: deadlock: 3 ranks wait for each other: rank {rank} waits for the word");
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

pub(crate) fn signals_to_the_launcher_end_all() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut child = job("wait", "--ranks 3").spawn().expect("the launcher starts");
        let ranks = processes(&mut child, 3);
        kill_process(Pid::from_child(&child), signal).expect("it runs");
        let ended = end(child);
        assert_eq!(ended.code, Some(code), "{ended:?}");
        wait_gone(&ranks);
    }
}

pub(crate) fn what_ranks_did_is_counted() {
    let ended = run(job("meet", "--ranks 3 --stats"), b"");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.err.contains("barrier") || ended.err.contains("puts"), "{ended:?}");
}
