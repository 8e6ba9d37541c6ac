//! The queue-based locks. In each of them a different word orders memory between ranks, so each
//! hand-over is checked with each lock.
//!
//! Each job runs with puts delivered when they are posted and with puts delivered as late as the
//! contract allows. Long jobs are ignored tests, which run weekly.

use super::{
    LoomRole::{self, Clock, Read, ReadBefore, TryRead, TryWrite, Write, WriteBefore},
    Seen, model_of,
};
use loom_fabric::{Config, Delivery, check};
use rma_lock::{
    RmaLock,
    locks::{BargingLock, FairLock, PackedLock, RpLock, WritersFirstLock},
};
use std::sync::{Arc, atomic::Ordering::Relaxed};

/// A job: the roles of the ranks, the number of rounds, the largest number of preemptions (`None`:
/// unbounded), and the smallest number of executions.
type LoomJob = (&'static [LoomRole], usize, Option<usize>, usize);

/// The jobs of the reader-preference lock.
const JOBS: &[LoomJob] = &[
    (&[Read, Write], 1, None, 48),
    (&[Write, Read], 1, None, 93),
    (&[Read, Read], 1, None, 45),
    (&[Write, Write], 1, None, 21),
    (&[Read, Write], 2, Some(3), 109),
    (&[Write, Write], 2, Some(3), 320),
    (&[Read, Write, Write], 1, Some(3), 833),
    (&[Read, Read, Write], 1, Some(3), 669),
    (&[Read, Read, Write, Write], 1, Some(1), 76),
    (&[TryRead, Write], 1, None, 23),
    (&[TryWrite, Write], 1, None, 48),
    (&[TryWrite, Read], 1, None, 99),
    (&[TryWrite, TryWrite], 1, None, 10),
    (&[TryWrite, Read, Write], 1, Some(2), 227),
    (&[TryRead, Write, Write], 1, Some(2), 138),
    (&[ReadBefore, Write, Clock], 1, Some(3), 71),
    (&[WriteBefore, Write, Clock], 1, Some(3), 160),
    (&[WriteBefore, Read, Clock], 1, Some(3), 168),
    (&[WriteBefore, Write, Read, Clock], 1, Some(1), 39),
    (&[ReadBefore, Read, Write, Clock], 1, Some(2), 404),
    (&[WriteBefore, WriteBefore, Read, Clock], 1, Some(1), 44),
    (&[ReadBefore, ReadBefore, Write, Clock], 1, Some(1), 39),
];

const LONG_JOBS: &[LoomJob] = &[
    (&[Read, Write, Write], 1, Some(4), 3_481),
    (&[Read, Read, Write], 1, Some(4), 2_840),
    (&[Read, Read, Write, Write], 1, Some(2), 2_281),
    (&[TryWrite, Read, Write], 1, Some(3), 1_368),
    (&[TryRead, Write, Write], 1, Some(3), 779),
    (&[WriteBefore, Write, Read, Clock], 1, Some(2), 702),
    (&[WriteBefore, WriteBefore, Read, Clock], 1, Some(2), 1_177),
    (&[ReadBefore, ReadBefore, Write, Clock], 1, Some(2), 488),
];

/// The jobs of the other locks.
const JOBS_OF_OTHERS: &[LoomJob] = &[
    (&[Read, Write], 1, None, 10),
    (&[Write, Write], 1, None, 10),
    (&[Read, Read], 1, Some(4), 10),
    (&[Read, Write], 2, Some(3), 10),
    (&[Write, Write], 2, Some(2), 10),
    (&[Read, Write, Write], 1, Some(2), 10),
    (&[Read, Read, Write], 1, Some(2), 10),
    (&[TryWrite, Read], 1, Some(3), 10),
    (&[TryRead, Write], 1, Some(3), 10),
    (&[ReadBefore, Write, Clock], 1, Some(2), 10),
    (&[WriteBefore, Write, Clock], 1, Some(2), 10),
    (&[WriteBefore, Read, Clock], 1, Some(2), 10),
];

const LONG_JOBS_OF_OTHERS: &[LoomJob] = &[(&[Write, Write], 2, Some(3), 10)];

fn check_jobs<L: RmaLock>(jobs: &[LoomJob]) {
    for (roles, rounds, bound, at_least) in jobs {
        let seen = Arc::new(Seen::default());
        for delivery in [Delivery::AtPost, Delivery::AtFlush] {
            print!("{} {roles:?} x {rounds}, {delivery:?}: ", L::NAME);
            let config = Config::new(roles.len(), delivery);
            check(*bound, *at_least, model_of::<L>(config, roles.to_vec(), *rounds, seen.clone()));
        }
        let readers = roles.iter().filter(|role| **role == Read).count();
        if !roles.iter().any(|role| matches!(role, TryWrite | TryRead | Clock))
            && readers == 2
            && bound.is_none_or(|bound| bound > 2)
        {
            assert_eq!(seen.most_readers.load(Relaxed), 2, "no execution had both readers inside");
        }
        // A rank that only moves the clock counts as having taken the lock.
        let clocks = if roles.contains(&Clock) { 1 } else { 0 };
        assert!(seen.had.load(Relaxed) > clocks, "nobody ever had the lock");
        let gives_up =
            roles.len() < 4 && roles.iter().any(|role| matches!(role, TryRead | TryWrite | ReadBefore | WriteBefore));
        assert!(!gives_up || *bound == Some(2) || seen.refused.load(Relaxed) > 0, "{roles:?}: {seen:?}");
    }
}

#[test]
fn reader_preference() {
    check_jobs::<RpLock>(JOBS);
}

#[test]
fn packed() {
    check_jobs::<PackedLock>(JOBS_OF_OTHERS);
}

#[test]
fn barging() {
    check_jobs::<BargingLock>(JOBS_OF_OTHERS);
}

#[test]
fn writers_first() {
    check_jobs::<WritersFirstLock>(JOBS_OF_OTHERS);
}

#[test]
fn fair() {
    check_jobs::<FairLock>(JOBS_OF_OTHERS);
}

#[test]
#[ignore = "long: weekly"]
fn long_jobs() {
    check_jobs::<RpLock>(LONG_JOBS);
    check_jobs::<PackedLock>(LONG_JOBS_OF_OTHERS);
    check_jobs::<BargingLock>(LONG_JOBS_OF_OTHERS);
    check_jobs::<WritersFirstLock>(LONG_JOBS_OF_OTHERS);
    check_jobs::<FairLock>(LONG_JOBS_OF_OTHERS);
}

#[test]
fn by_a_network_thread() {
    let config = Config::new(2, Delivery::Nic);
    check(Some(2), 1_762, model_of::<RpLock>(config, vec![Read, Write], 1, Arc::default()));
}
