//! Coordinators that are killed or become silent, and their successors.

use crate::{
    job::{Part, Start, run_apart},
    part::LONG,
};
use bootstrap::Succession;
use rustix::process::Signal;
use std::time::{Duration, Instant};

const LEASE: Duration = Duration::from_millis(800);

const SILENT: Start<'_> =
    Start { lease: LEASE, nodes: &["a", "a", "b", "c"], hold: &[], succession: Succession::AfterSilence };

/// Returns the ranks whose loss a `resume` reports.
fn lost(resume: &str) -> Vec<u32> {
    let told = resume.rsplit_once("] [").map_or("", |(_, told)| told);
    told.split('(').skip(1).filter_map(|it| it.split_once(',')?.0.parse().ok()).collect()
}

fn all_resume(parts: &[&Part], losses: &[u32]) {
    for part in parts {
        let resume = part.line_of("resume");
        assert_eq!(lost(&resume), losses, "{resume}");
    }
}

fn stop(parts: &[&Part]) {
    parts.iter().for_each(|part| part.signal(Signal::STOP));
}

pub(crate) fn a_killed_coordinator_is_succeeded() {
    let start = Start { lease: LONG, nodes: &["a", "a", "b", "c"], hold: &[], succession: Succession::AfterAnyEnd };
    let (coordinator, mut parts) = run_apart(&start);
    coordinator.kill();
    // All ranks are present, so none waits for another.
    all_resume(&[&parts[0], &parts[1], &parts[2], &parts[3]], &[]);
    // Rank 0 has the coordinator now.
    parts.remove(2).kill();
    all_resume(&[&parts[0], &parts[1], &parts[2]], &[2]);
    // Its process ends with its connections, and connections to its address are refused.
    parts.remove(0).kill();
    all_resume(&[&parts[0], &parts[1]], &[0]);
    parts.remove(1).kill();
    all_resume(&[&parts[0]], &[3]);
}

pub(crate) fn nobody_succeeds_a_killed_launcher() {
    let (coordinator, parts) = run_apart(&Start { lease: LONG, ..SILENT });
    coordinator.kill();
    for part in &parts {
        assert_eq!(part.line(), "coordinator lost");
    }
}

pub(crate) fn a_silent_coordinator_is_succeeded() {
    let (coordinator, parts) = run_apart(&SILENT);
    coordinator.signal(Signal::STOP);
    let all: Vec<_> = parts.iter().collect();
    all_resume(&all, &[]);
    coordinator.signal(Signal::CONT);
    coordinator.kill();
    assert!(all.iter().all(|part| part.is_quiet_for(LEASE / 2)), "nobody needs it any more");
    parts[3].kill();
    all_resume(&all[..3], &[3]);
}

pub(crate) fn the_larger_part_goes_on() {
    let (coordinator, parts) = run_apart(&SILENT);
    let begun = Instant::now();
    stop(&[&coordinator, &parts[0], &parts[1]]);
    all_resume(&[&parts[2], &parts[3]], &[0, 1]);
    let after = begun.elapsed();
    println!("taken over after {:.2} leases", after.as_secs_f64() / LEASE.as_secs_f64());
    assert!(after < 10 * LEASE, "{after:?}");
    // Then they run again.
    [&coordinator, &parts[0], &parts[1]].iter().for_each(|part| part.signal(Signal::CONT));
    for part in &parts[..2] {
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
    assert!(parts[2].is_quiet_for(LEASE), "the others go on");
    parts[3].kill();
    all_resume(&[&parts[2]], &[3]);
}

pub(crate) fn the_smaller_part_ends_itself() {
    let (coordinator, parts) = run_apart(&SILENT);
    let begun = Instant::now();
    stop(&[&coordinator, &parts[0], &parts[1], &parts[2]]);
    let line = parts[3].line();
    assert_eq!(line, "cut off: 1 of 3 hosts have found each other, which must not go on alone");
    println!("ended after {:.2} leases", begun.elapsed().as_secs_f64() / LEASE.as_secs_f64());
    let (coordinator, parts) = run_apart(&SILENT);
    // One rank of a host is not a host.
    stop(&[&coordinator, &parts[0], &parts[3]]);
    for part in &parts[1..3] {
        let line = part.line();
        assert!(line.starts_with("cut off: "), "{line}");
    }
}

pub(crate) fn of_two_halves_that_of_rank_0_goes_on() {
    let start = Start { nodes: &["a", "b"], ..SILENT };
    let (coordinator, parts) = run_apart(&start);
    stop(&[&coordinator, &parts[1]]);
    all_resume(&[&parts[0]], &[1]);
    let (coordinator, parts) = run_apart(&start);
    stop(&[&coordinator, &parts[0]]);
    assert!(parts[1].line().starts_with("cut off: 1 of 2 hosts"));
}

pub(crate) fn the_job_is_cut_again() {
    let start = Start { nodes: &["a", "b", "c", "d", "e"], ..SILENT };
    let (coordinator, parts) = run_apart(&start);
    stop(&[&coordinator, &parts[0], &parts[1]]);
    all_resume(&[&parts[2], &parts[3], &parts[4]], &[0, 1]);
    // Rank 2 has the coordinator. Two of the three running hosts are more than half.
    stop(&[&parts[2]]);
    all_resume(&[&parts[3], &parts[4]], &[2]);
    // Rank 3 has it. Of two halves without rank 0's host, the coordinator's continues.
    stop(&[&parts[4]]);
    all_resume(&[&parts[3]], &[4]);
    parts[4].signal(Signal::CONT);
    assert!(parts[4].line_of("dismissed").contains("nothing was heard from it"));
}
