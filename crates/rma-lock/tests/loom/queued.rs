//! The other locks with queues: what orders memory between ranks is another word there, so each hand-over is checked again.

use crate::rp::{
    Role::{self, Clock, Read, ReadBefore, TryRead, TryWrite, Write, WriteBefore},
    Seen, model_of,
};
use loom_fabric::{Config, Delivery, check};
use rma_lock::{
    RmaLock,
    locks::{FairLock, PackedLock, WritersFirstLock},
};
use std::sync::{Arc, atomic::Ordering::Relaxed};

/// Jobs, with the preemptions that each may have.
const JOBS: &[(&[Role], usize, Option<usize>)] = &[
    (&[Read, Write], 1, None),
    (&[Write, Write], 1, None),
    (&[Read, Read], 1, Some(4)),
    (&[Read, Write], 2, Some(3)),
    (&[Write, Write], 2, Some(3)),
    (&[Read, Write, Write], 1, Some(2)),
    (&[Read, Read, Write], 1, Some(2)),
    (&[TryWrite, Read], 1, Some(3)),
    (&[TryRead, Write], 1, Some(3)),
    (&[ReadBefore, Write, Clock], 1, Some(2)),
    (&[WriteBefore, Write, Clock], 1, Some(2)),
    (&[WriteBefore, Read, Clock], 1, Some(2)),
];

fn check_jobs<L: RmaLock>() {
    for (roles, rounds, bound) in JOBS {
        for delivery in [Delivery::AtPost, Delivery::AtFlush] {
            let seen = Arc::new(Seen::default());
            print!("{} {roles:?} x {rounds}, {delivery:?}: ", L::NAME);
            let config = Config::new(roles.len(), delivery);
            check(*bound, 10, model_of::<L>(config, roles.to_vec(), *rounds, seen.clone()));
            if **roles == [Read, Read] {
                assert_eq!(seen.most_readers.load(Relaxed), 2, "no execution had both readers inside");
            }
            assert!(seen.had.load(Relaxed) > 0, "nobody ever had the lock");
        }
    }
}

#[test]
fn packed() {
    check_jobs::<PackedLock>();
}

#[test]
fn writers_first() {
    check_jobs::<WritersFirstLock>();
}

#[test]
fn fair() {
    check_jobs::<FairLock>();
}
