//! The small jobs among those that must be searched; `cargo xtask twin` searches all of them, also
//! without immediate moves.

use std::time::Instant;
use twin::{Case, Lock, Search, Verdict};

/// The number of states of each required job that is small.
const STATES: [(Lock, [Option<u64>; 4]); 7] = [
    (Lock::Flat, [Some(4_539), Some(247_248), Some(159_044), Some(35_567)]),
    (Lock::Packed, [Some(4_046), None, Some(193_558), Some(34_058)]),
    (Lock::Barging, [Some(3_944), None, None, Some(38_479)]),
    (Lock::Passing, [Some(3_532), None, None, Some(40_873)]),
    (Lock::WritersFirst, [Some(2_722), None, None, Some(125_211)]),
    (Lock::Fair, [Some(5_618), Some(359_142), Some(120_102), Some(28_065)]),
    (Lock::Aggregated, [Some(25_076), None, None, Some(192_431)]),
];

/// The number of states of the jobs that every test run searches.
const FEW: u64 = 50_000;

#[test]
fn required_jobs_are_exhausted() {
    exhaust(|states| states < FEW);
}

#[test]
#[ignore = "long: weekly"]
fn larger_required_jobs_are_exhausted() {
    exhaust(|states| states >= FEW);
}

fn exhaust(chosen: impl Fn(u64) -> bool) {
    let jobs = STATES.into_iter().flat_map(|(lock, states)| {
        Case::REQUIRED.into_iter().zip(states).map(move |(case, states)| (lock, case, states))
    });
    let mut other = Vec::new();
    for (lock, case, states) in jobs {
        let Some(states) = states.filter(|states| chosen(*states)) else { continue };
        let (job, start) = (case.of(lock), Instant::now());
        let report = Search::new(&job).run();
        println!("{lock:?} {}: {report}, {:.2} s", case.name, start.elapsed().as_secs_f64());
        assert_eq!(report.verdict, Verdict::Exhausted, "{lock:?} {}", case.name);
        if report.states != states {
            other.push(format!("{lock:?} {}: {} states, not {states}", case.name, report.states));
        }
        assert!(report.together, "{lock:?} {}: readers are never inside together", case.name);
    }
    assert!(other.is_empty(), "{other:#?}");
}

#[test]
fn looking_before_the_queue_breaks_nothing() {
    look(Case::REQUIRED[0], [(Lock::Passing, 3), (Lock::Barging, 2)]);
}

#[test]
#[ignore = "long: weekly"]
fn looking_before_the_queue_breaks_no_larger_job() {
    look(Case::REQUIRED[3], [(Lock::Passing, 1), (Lock::Barging, 1)]);
}

/// A rank that can access the home's memory directly checks the lock several times before it queues
/// up. The explorer's runs do not cover this, because no rank has such access there.
fn look(case: Case, locks: [(Lock, u8); 2]) {
    for (lock, looks) in locks {
        let (without, job) = (Search::new(&case.of(lock)).run(), case.of(lock).looking(looks));
        let report = Search::new(&job).run();
        println!("{lock:?} {}, {looks} looks: {report}", case.name);
        assert_eq!(report.verdict, Verdict::Exhausted, "{lock:?} {}, {looks} looks", case.name);
        assert!(report.states > without.states, "{lock:?} {}: nobody looked", case.name);
    }
}
