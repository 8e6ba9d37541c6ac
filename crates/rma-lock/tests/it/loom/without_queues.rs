//! The locks that back off, those of windows, and the recoverable lock, between two ranks. A rank that
//! backs off sleeps until a clock moves, so these locks are tried only.

use super::{
    HOME,
    LoomRole::{self, Read, TryRead, TryWrite, Write},
    Seen, model_with,
};
use loom_fabric::{Config, Delivery, check};
use rdma_fabric::{Fabric, GroupMemory, Rank, Time};
use rma_lock::{
    Access, AccessLock, Fairness, Lock, LockError, RmaLock,
    locks::{BackOffLock, EachLock, PerRankLock, RecoverableLock, RpLock, WindowLock},
};
use std::{
    future::Future,
    sync::{Arc, atomic::Ordering::Relaxed},
};

const PAIRS: [[LoomRole; 2]; 6] =
    [[Read, Write], [Write, Read], [Write, Write], [Read, Read], [TryWrite, Read], [TryRead, Write]];
const TRIES: [[LoomRole; 2]; 3] = [[TryRead, TryWrite], [TryWrite, TryWrite], [TryRead, TryRead]];

/// A lock of a window, whose readers access all ranks' memory, and whose writers that of the home.
#[derive(Clone, Debug)]
struct OfWindow<L>(L);

impl<L: Lock> Lock for OfWindow<L> {
    type Options = L::Options;

    const NAME: &'static str = L::NAME;
    const FAIRNESS: Fairness = L::FAIRNESS;
    const HOME_WORDS: usize = L::HOME_WORDS;

    fn bytes(options: &L::Options, members: usize) -> usize {
        L::bytes(options, members)
    }

    fn over(fabric: &Fabric, memory: GroupMemory, home: Rank, options: L::Options) -> Result<Self, LockError> {
        L::over(fabric, memory, home, options).map(OfWindow)
    }

    fn home(&self) -> Rank {
        self.0.home()
    }

    fn fabric(&self) -> &Fabric {
        self.0.fabric()
    }
}

impl<L: AccessLock> RmaLock for OfWindow<L> {
    type Shared<'a> = L::Guard<'a>;
    type Exclusive<'a> = L::Guard<'a>;

    fn read_before(&self, deadline: Time) -> impl Future<Output = Result<Self::Shared<'_>, LockError>> {
        self.0.lock_before(Access::All, deadline)
    }

    fn try_read(&self) -> impl Future<Output = Result<Option<Self::Shared<'_>>, LockError>> {
        self.0.try_lock(Access::All)
    }

    fn write_before(&self, deadline: Time) -> impl Future<Output = Result<Self::Exclusive<'_>, LockError>> {
        self.0.lock_before(Access::Exclusive(HOME), deadline)
    }

    fn try_write(&self) -> impl Future<Output = Result<Option<Self::Exclusive<'_>>, LockError>> {
        self.0.try_lock(Access::Exclusive(HOME))
    }
}

/// Checks the pairs with `cells` words at each rank.
fn check_pairs<L: RmaLock>(bound: Option<usize>, pairs: &[[LoomRole; 2]], cells: usize) {
    for roles in pairs {
        for delivery in [Delivery::AtPost, Delivery::AtFlush] {
            print!("{} {roles:?}, {delivery:?}: ", L::NAME);
            let config = Config { cells_per_rank: cells, ..Config::new(roles.len(), delivery) };
            let seen = Arc::<Seen>::default();
            check(bound, 4, model_with::<L>(config, roles.to_vec(), 1, seen.clone(), |_| {}));
            assert!(seen.had.load(Relaxed) > 0, "the lock was never taken");
        }
    }
}

#[test]
fn back_off() {
    check_pairs::<BackOffLock>(None, &TRIES, 32);
}

#[test]
fn window() {
    check_pairs::<WindowLock>(None, &TRIES, 32);
}

#[test]
fn per_rank() {
    check_pairs::<OfWindow<PerRankLock<RpLock>>>(None, &PAIRS, 160);
}

#[test]
fn each() {
    check_pairs::<OfWindow<EachLock<RpLock>>>(None, &PAIRS, 160);
}

#[test]
fn recoverable() {
    check_pairs::<RecoverableLock>(None, &PAIRS, 1000);
}
