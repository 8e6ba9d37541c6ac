//! The search's reductions lose nothing: in small jobs, the shared words hold the same values with
//! and without them.

use std::collections::BTreeSet;
use twin::{Lock, Model, Role, Role::*, Search, Verdict};

const JOBS: [(&[Role], &[u8], usize); 6] = [
    (&[Read, Write], &[0, 0], 2),
    (&[Write, Write], &[0, 0], 2),
    (&[Read, Read], &[0, 0], 2),
    (&[Read, Read, Write], &[0, 0, 1], 1),
    (&[Read, Write, Write], &[0, 0, 1], 1),
    (&[Read, Read, Write, Write], &[0, 0, 1, 1], 1),
];

/// Returns the jobs of a lock with fewer than four ranks, or those with four, which are small for some
/// locks only.
fn jobs(lock: Lock, with_four: bool) -> impl Iterator<Item = (&'static [Role], usize, Model)> {
    let small = move |ranks| match with_four {
        true => ranks == 4 && matches!(lock, Lock::Flat | Lock::Packed | Lock::Fair),
        false => ranks < 4,
    };
    let jobs = JOBS.into_iter().filter(move |(roles, ..)| small(roles.len()));
    jobs.map(move |(roles, nodes, rounds)| (roles, rounds, Model::new(lock, roles, rounds).nodes(nodes)))
}

/// Returns the values that the shared words held.
fn values(search: Search<'_>) -> (BTreeSet<[u64; 8]>, u64) {
    let mut words = BTreeSet::new();
    let report = search.look(|state| _ = words.insert(state.shared())).run();
    assert_eq!(report.verdict, Verdict::Exhausted);
    assert!(report.ends > 0);
    (words, report.states)
}

/// Making moves immediately does not hide any value of a shared word.
#[test]
fn at_once() {
    compare_at_once(false);
}

#[test]
#[ignore = "long: weekly"]
fn with_four_ranks() {
    compare_at_once(true);
    compare_taken_for_one(true);
}

fn compare_at_once(with_four: bool) {
    for lock in Lock::ALL {
        for (roles, rounds, job) in jobs(lock, with_four) {
            let ((words, fewer), (all, more)) =
                (values(Search::new(&job).whole()), values(Search::new(&job).whole().apart()));
            assert_eq!(words, all, "{lock:?} {roles:?} x{rounds}");
            assert!(fewer < more);
            println!("{lock:?} {roles:?} x{rounds}: {} combinations, {fewer} states instead of {more}", all.len());
        }
    }
}

/// A search that counts equivalent states as one reaches all of their classes, and no others: a
/// move that is possible from one state of a class is possible from all of them.
#[test]
fn taken_for_one() {
    compare_taken_for_one(false);
}

fn compare_taken_for_one(with_four: bool) {
    for lock in Lock::ALL {
        for (roles, rounds, job) in jobs(lock, with_four) {
            let known = |search: Search<'_>| {
                let mut known = BTreeSet::new();
                let report = search.look(|state| _ = known.insert(job.fingerprint(state))).run();
                (known, report.states)
            };
            let (fewer, more) = (known(Search::new(&job).apart()), known(Search::new(&job).apart().whole()));
            assert_eq!(fewer.0, more.0, "{lock:?} {roles:?} x{rounds}");
            assert_eq!(fewer.1, fewer.0.len() as u64);
            assert!(fewer.1 < more.1);
            println!("{lock:?} {roles:?} x{rounds}: {} states instead of {}", fewer.1, more.1);
        }
    }
}
