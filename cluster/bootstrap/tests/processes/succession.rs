//! Coordinators that are killed or become silent, and their successors.

use crate::job::{LONG_LEASE, Start, run_apart};
use bootstrap::Succession;
use process_tests::child::Child;
use rustix::process::Signal;
use std::time::{Duration, Instant};

const LEASE: Duration = Duration::from_millis(800);

const SILENT: Start<'_> =
    Start { lease: LEASE, nodes: &["a", "a", "b", "c"], hold: &[], succession: Succession::AfterSilence };

/// Returns the ranks whose loss a `resume` reports.
fn lost(resume: &str) -> Vec<u32> {
    let losses = resume.rsplit_once("] [").map_or("", |(_, losses)| losses);
    losses.split('(').skip(1).filter_map(|it| it.split_once(',')?.0.parse().ok()).collect()
}

fn all_resume(parts: &mut [Child], losses: &[u32]) {
    for part in parts {
        let resume = part.after("resume");
        assert_eq!(lost(&resume), losses, "{resume}");
    }
}

fn stop(parts: &[&Child]) {
    parts.iter().for_each(|part| part.signal(Signal::STOP));
}

pub(crate) fn a_killed_coordinator_is_succeeded() {
    let start = Start { lease: LONG_LEASE, succession: Succession::AfterAnyEnd, ..SILENT };
    let (coordinator, mut parts) = run_apart(&start);
    coordinator.kill();
    // All ranks are present, so none waits for another.
    all_resume(&mut parts, &[]);
    // Rank 0 has the coordinator now.
    parts.remove(2).kill();
    all_resume(&mut parts, &[2]);
    // Its process ends with its connections, and connections to its address are refused.
    parts.remove(0).kill();
    all_resume(&mut parts, &[0]);
    parts.remove(1).kill();
    all_resume(&mut parts, &[3]);
}

pub(crate) fn a_killed_launcher_is_not_succeeded() {
    let (coordinator, mut parts) = run_apart(&Start { lease: LONG_LEASE, ..SILENT });
    coordinator.kill();
    parts.iter_mut().for_each(|part| part.expect_line("coordinator lost"));
}

pub(crate) fn a_silent_coordinator_is_succeeded() {
    let (coordinator, mut parts) = run_apart(&SILENT);
    coordinator.signal(Signal::STOP);
    all_resume(&mut parts, &[]);
    coordinator.signal(Signal::CONT);
    coordinator.kill();
    assert!(parts.iter_mut().all(|part| part.is_quiet_for(LEASE / 2)), "it is not needed any more");
    parts[3].kill();
    all_resume(&mut parts[..3], &[3]);
}

pub(crate) fn the_larger_part_continues_without_the_coordinators_host() {
    let (coordinator, mut parts) = run_apart(&SILENT);
    let begun = Instant::now();
    stop(&[&coordinator, &parts[0], &parts[1]]);
    all_resume(&mut parts[2..], &[0, 1]);
    let after = begun.elapsed();
    println!("taken over after {:.2} leases", after.as_secs_f64() / LEASE.as_secs_f64());
    assert!(after < 10 * LEASE, "{after:?}");
    // Then they run again.
    [&coordinator, &parts[0], &parts[1]].iter().for_each(|part| part.signal(Signal::CONT));
    for part in &mut parts[..2] {
        // Either the coordinator finds that two hosts are silent, or the ranks find no other
        // coordinator, or they come too late to it.
        let line = loop {
            let line = part.line();
            if !line.starts_with("drain") {
                break line;
            }
        };
        let ways = ["cut off: ", "dismissed: ", "aborted 1 the job is cut"];
        assert!(ways.iter().any(|way| line.starts_with(way)), "{line}");
    }
    assert!(parts[2].is_quiet_for(LEASE), "the others continue");
    parts[3].kill();
    all_resume(&mut parts[2..3], &[3]);
}

pub(crate) fn the_smaller_part_ends_itself() {
    let (coordinator, mut parts) = run_apart(&SILENT);
    let begun = Instant::now();
    stop(&[&coordinator, &parts[0], &parts[1], &parts[2]]);
    parts[3].expect_line("cut off: 1 of 3 hosts have found each other, which must not go on alone");
    println!("ended after {:.2} leases", begun.elapsed().as_secs_f64() / LEASE.as_secs_f64());
    let (coordinator, mut parts) = run_apart(&SILENT);
    // One rank of a host is not a host.
    stop(&[&coordinator, &parts[0], &parts[3]]);
    for part in &mut parts[1..3] {
        let line = part.line();
        assert!(line.starts_with("cut off: "), "{line}");
    }
}

pub(crate) fn of_two_halves_that_of_rank_0_continues() {
    let start = Start { nodes: &["a", "b"], ..SILENT };
    let (coordinator, mut parts) = run_apart(&start);
    stop(&[&coordinator, &parts[1]]);
    all_resume(&mut parts[..1], &[1]);
    let (coordinator, mut parts) = run_apart(&start);
    stop(&[&coordinator, &parts[0]]);
    assert!(parts[1].line().starts_with("cut off: 1 of 2 hosts"));
}

pub(crate) fn a_job_is_cut_again_after_a_succession() {
    let start = Start { nodes: &["a", "b", "c", "d", "e"], ..SILENT };
    let (coordinator, mut parts) = run_apart(&start);
    stop(&[&coordinator, &parts[0], &parts[1]]);
    all_resume(&mut parts[2..], &[0, 1]);
    // Rank 2 has the coordinator. Two of the three running hosts are more than half.
    stop(&[&parts[2]]);
    all_resume(&mut parts[3..], &[2]);
    // Rank 3 has it. Of two halves without rank 0's host, the coordinator's continues.
    stop(&[&parts[4]]);
    all_resume(&mut parts[3..4], &[4]);
    parts[4].signal(Signal::CONT);
    assert!(parts[4].after("dismissed").contains("no message from it"));
}
