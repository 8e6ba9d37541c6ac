//! The fast paths of the locks match their tables: runs over thread ranks, where operations
//! complete when they are posted, are followed access by access.
//!
//! In the explorer no operation completes when it is posted, so in the runs that are followed there
//! (`traces`) each fast path continues in the table immediately. Here a fast path continues to
//! its end, unless another rank obstructs it.
//!
//! A recording fabric does not cover words that are put or got in place. So W3 of `RpLock` starts in
//! the table, because `put_word_now` returns `None`; `is_followed` does not check the tail; and no
//! rank checks for a short time before it waits. An uncontended run of `PackedLock`, of
//! `WritersFirstLock` and of `RpLock`'s release shows that fast paths have run, as the table would
//! make more accesses; one of `BargingLock` is the same either way. `FairLock` has its table only,
//! executed in place.

use super::{
    Same,
    mutants::{lets_more_happen, same, shown},
    recorded::{self, Recorded, record},
};
use rdma_fabric::Amo;
use std::{
    sync::LazyLock,
    time::{Duration, Instant},
};
use twin::{Access, Lock, Model, Mutant, Replay, Role, Role::*, Word};

/// The locks on a fabric whose operations complete when they are posted: [`Lock::Passing`] is
/// `BargingLock` there.
const LOCKS: [Lock; 5] = [Lock::Flat, Lock::Packed, Lock::Passing, Lock::WritersFirst, Lock::Fair];

const JOBS: [(&[Role], usize); 6] = [
    (&[Read, Write], 2),
    (&[Read, Read, Write], 2),
    (&[Write, Write, Write], 2),
    (&[Read, Read, Write, Write], 2),
    (&[Read, Read, Read, Write], 1),
    (&[Read, Write, Write, Write], 1),
];
/// The number of runs of each job, unless the machine is so busy that they take too long.
const RUNS: u64 = 50;
const BATCH: u64 = 25;
const LONG: Duration = Duration::from_millis(300);

/// A job, and its runs; a run's number is its seed.
type Followed = (Same, Vec<Vec<Recorded>>);

/// The runs of each job of each lock.
static FOLLOWED: LazyLock<Vec<Followed>> =
    LazyLock::new(|| jobs().map(|job| (job, recorded_runs(&job, RUNS))).collect());

fn jobs() -> impl Iterator<Item = Same> {
    LOCKS.into_iter().flat_map(|lock| JOBS.map(|(roles, rounds)| job(lock, roles, rounds)))
}

fn recorded_runs(job: &Same, most: u64) -> Vec<Vec<Recorded>> {
    let (start, mut runs) = (Instant::now(), Vec::new());
    while (runs.len() as u64) < most && start.elapsed() < LONG {
        let next = runs.len() as u64;
        runs.extend(record(job, next..next + BATCH));
    }
    runs
}

fn job(lock: Lock, roles: &'static [Role], rounds: usize) -> Same {
    Same { lock, roles, nodes: &[0; 4][..roles.len()], rounds }
}

/// Follows a whole run. Returns the largest number of states in which the model may have been, or a
/// description of the mismatch.
fn follow(mut replay: Replay<'_>, run: &[Recorded]) -> Result<usize, String> {
    let most = recorded::follow(&mut replay, run)?;
    replay.end().map(|()| most).map_err(|wrong| format!("after {} accesses: {wrong}", run.len()))
}

fn fits(model: &Model, run: &[Recorded]) -> bool {
    follow(Replay::at_once(model), run).is_ok()
}

#[test]
fn every_run_over_threads_fits() {
    FOLLOWED.iter().for_each(every_one_fits);
}

#[test]
#[ignore = "long: weekly"]
fn every_one_of_more_runs_over_threads_fits() {
    jobs().for_each(|job| every_one_fits(&(job, recorded_runs(&job, 4 * RUNS))));
}

fn every_one_fits((job, runs): &Followed) {
    let model = job.model();
    let (mut most, mut accesses) = (0, 0);
    for (seed, run) in runs.iter().enumerate() {
        let states = follow(Replay::at_once(&model), run);
        most = most.max(states.unwrap_or_else(|what| panic!("{job:?}, seed {seed}, {what}: {run:#?}")));
        accesses += run.len();
    }
    println!("{job:?}: {} runs, {accesses} accesses, at most {most} states", runs.len());
}

/// Each mutant of the [table](super::mutants) that can show: nodes are cleared when they are
/// released, so no rank can observe whether a model clears them too late. If none of the runs that
/// fit the correct model shows a mutant, it is searched for in more runs of its own job.
#[test]
fn runs_over_threads_do_not_fit_mutants() {
    const MORE: u64 = 1_000;
    let can_show = |mutant| !lets_more_happen(mutant) && mutant != Mutant::LateInitialisation;
    let mut count = 0;
    for shown in shown().filter(|shown| LOCKS.contains(&shown.0) && can_show(shown.1)) {
        let (lock, mutant, ..) = shown;
        let of_lock = FOLLOWED.iter().filter(|(job, _)| job.lock == lock);
        let refused = of_lock.filter(|(job, runs)| {
            let model = job.model().mutated(mutant);
            !runs.iter().all(|run| fits(&model, run))
        });
        let (refused, own) = (refused.count(), same(shown));
        let (right, model) = (own.model(), own.model().mutated(mutant));
        let shows = |batch: u64| {
            let runs = record(&own, batch * BATCH..(batch + 1) * BATCH);
            runs.iter().any(|run| fits(&right, run) && !fits(&model, run))
        };
        assert!(refused > 0 || (0..MORE).any(shows), "{} runs of the code fit {shown:?}", MORE * BATCH);
        println!("{shown:?}: refused in {refused} jobs");
        count += 1;
    }
    assert_eq!(count, 69);
}

/// An access without its operand: its kind, its word, and the value that it found or left.
type Brief = (Access, Word, u64);

const COUNT: Word = Word::Home(0);
const HEAD: Word = Word::Home(3);
/// The first node of rank 0.
const ME: u64 = 4;
const NEXT: Word = Word::Next(0, 0);
const INTERESTED: u64 = 1;
const ACTIVE: u64 = 2;
/// In a next word: the node's reader is inside.
const INSIDE: u64 = 1 << 33;

fn add(word: Word, amount: u64, found: u64) -> Brief {
    (Access::Atomic(Amo::Add(amount)), word, found)
}

fn subtract(word: Word, amount: u64, found: u64) -> Brief {
    add(word, amount.wrapping_neg(), found)
}

fn swap(word: Word, new: u64, found: u64) -> Brief {
    (Access::Atomic(Amo::Swap(new)), word, found)
}

/// A successful compare-and-swap.
fn compare(word: Word, expected: u64, new: u64) -> Brief {
    (Access::Atomic(Amo::CompareSwap { expected, new }), word, expected)
}

/// Returns all accesses of a rank that is alone, and that finds and leaves `version` of the data.
fn alone(lock: Lock, role: Role, version: u64) -> Vec<Brief> {
    let tail = Word::Home(if lock == Lock::Fair { 1 } else { 2 });
    let queued = if lock == Lock::Packed { ME << 32 | ACTIVE } else { ACTIVE };
    let (unfollowed, last) = ((Access::Load, NEXT, 0), compare(tail, ME, 0));
    let (before, after) = match (lock, role) {
        (Lock::Fair, Read) => (
            vec![swap(tail, ME, 0), add(COUNT, 1, 0), compare(NEXT, 0, INSIDE)],
            vec![(Access::Load, NEXT, INSIDE), last, (Access::Store, NEXT, 0), subtract(COUNT, 1, 1)],
        ),
        (Lock::Fair, Write) => (vec![swap(tail, ME, 0), (Access::Get, COUNT, 0)], vec![unfollowed, last]),
        (_, Read) => (vec![add(COUNT, 4, 0)], vec![subtract(COUNT, 4, 4)]),
        (Lock::Passing, Write) => (vec![compare(COUNT, 0, ACTIVE)], vec![compare(COUNT, ACTIVE, 0)]),
        (Lock::Flat, Write) => (
            vec![
                swap(tail, ME, 0),
                (Access::Put, HEAD, ME),
                add(COUNT, INTERESTED, 0),
                compare(COUNT, INTERESTED, ACTIVE),
            ],
            vec![subtract(COUNT, ACTIVE, ACTIVE), unfollowed, last],
        ),
        (_, Write) => (
            vec![swap(tail, ME, 0), compare(COUNT, 0, queued)],
            // X2 and X4 without a load between them, and without further steps.
            vec![unfollowed, subtract(COUNT, queued, queued), last],
        ),
    };
    let mut data = vec![(Access::Get, Word::Data, version)];
    if role == Write {
        data.push((Access::Put, Word::Data, version + 1));
    }
    [before, data, after].concat()
}

/// Returns the jobs of one rank, each with its run.
fn uncontended() -> impl Iterator<Item = (Same, Vec<Recorded>)> {
    let roles: [&[Role]; 2] = [&[Read], &[Write]];
    let jobs = LOCKS.into_iter().flat_map(move |lock| roles.map(|roles| job(lock, roles, 2)));
    jobs.map(|job| (job, record(&job, 0..1).remove(0)))
}

#[test]
fn uncontended_runs_are_the_short_paths() {
    for (job, run) in uncontended() {
        let (lock, role) = (job.lock, job.roles[0]);
        let expected = [0, 1].map(|round| alone(lock, role, if role == Write { round } else { 0 })).concat();
        let brief: Vec<Brief> = run.iter().map(|did| (did.access, did.word, did.bits)).collect();
        assert_eq!(brief, expected, "{job:?}");
        assert!(fits(&job.model(), &run), "{job:?}: {run:#?}");
        // The table itself would start the node's next turn.
        let retires = role == Write && matches!(lock, Lock::Flat | Lock::Packed | Lock::WritersFirst);
        assert_eq!(follow(Replay::new(&job.model()), &run).is_err(), retires, "{job:?}: {run:#?}");
    }
}

/// Returns the access with a different effect or result.
fn others(did: Recorded) -> Vec<Recorded> {
    let mut others = vec![Recorded { bits: did.bits ^ 1, ..did }];
    let other = match did.access {
        Access::Atomic(Amo::Add(amount)) => Amo::Add(amount.wrapping_mul(2)),
        Access::Atomic(Amo::Swap(new)) => Amo::Swap(new + (1 << 28)),
        Access::Atomic(Amo::CompareSwap { expected, new }) => Amo::CompareSwap { expected, new: new ^ 1 },
        _ => return others,
    };
    others.push(Recorded { access: Access::Atomic(other), ..did });
    others
}

/// Two accesses exchanged, one omitted, one replaced.
#[test]
fn changed_runs_do_not_fit() {
    for (job, run) in uncontended() {
        let model = job.model();
        let refused = |changed: &[Recorded], what: &str| {
            assert!(!fits(&model, changed), "{job:?}, {what}: {changed:#?}");
        };
        for at in 0..run.len() {
            for with in at + 1..run.len() {
                let mut changed = run.clone();
                changed.swap(at, with);
                if changed != run {
                    refused(&changed, &format!("accesses {at} and {with} exchanged"));
                }
            }
            let mut changed = run.clone();
            let did = changed.remove(at);
            refused(&changed, &format!("without access {at}"));
            for other in others(did) {
                let mut changed = run.clone();
                changed[at] = other;
                refused(&changed, &format!("another access {at}"));
            }
        }
    }
}

/// An atomic, get or put cannot be omitted in contended runs, either.
#[test]
fn runs_without_an_operation_do_not_fit() {
    for (job, runs) in FOLLOWED.iter() {
        let model = job.model();
        for (seed, run) in runs.iter().enumerate().step_by(50) {
            for at in
                (0..run.len()).filter(|at| matches!(run[*at].access, Access::Atomic(_) | Access::Get | Access::Put))
            {
                let mut changed = run.clone();
                let did = changed.remove(at);
                assert!(!fits(&model, &changed), "{job:?}, seed {seed}, without {at}, {did:?}: {run:#?}");
            }
        }
    }
}
