//! Model of the ring under loom: every interleaving, within a bound on preemptions, of a few
//! producers and a consumer over two slots, so that each test laps the ring. This file contains the
//! tests of all rings, regardless of their entries; [`bare`] runs them, and more, with entries of
//! three words, and the receive queue's model runs them with its records. Loom explores the values
//! that relaxed loads may see, but it never lets a load see a value stored later. So it cannot
//! detect the absence of the acquire in `claim`, which prevents a payload from being overwritten
//! before it was read.

/// The tests of a ring, with the minimum number of executions for one producer and for two takers.
macro_rules! ring_tests {
    ($ring:ty, $laps:literal, $takers:literal) => {
        use crate::{notices::ring::model::{a_death, one_after_the_other, two_takers}, testing};

        #[test]
        fn a_producer_laps_the_ring() {
            assert!(one_after_the_other::<$ring>(Mutant::None) >= $laps);
        }

        #[test]
        fn two_threads_take_each_notice_once() {
            assert!(two_takers::<$ring>(Mutant::None) >= $takers);
        }

        #[test]
        fn a_claim_of_the_dead_blocks_nobody() {
            assert!(a_death::<$ring>(Mutant::None) >= 100);
        }

        testing::found! {
            publishing_must_release: "a torn notice", one_after_the_other::<$ring>(Mutant::RelaxedPublish);
            consuming_must_acquire: "a torn notice", one_after_the_other::<$ring>(Mutant::RelaxedConsume);
            who_takes_must_look_whether_the_head_moved: "not each notice once", two_takers::<$ring>(Mutant::BlindTake);
            who_claims_next_must_keep_the_name: "a claim of the dead blocks the ring", a_death::<$ring>(Mutant::Nameless);
        }
    };
}

pub(crate) use ring_tests;

mod bare;

use super::*;
use crate::testing;
use core::sync::atomic::Ordering::{self, Relaxed, Release};
use loom::{sync::atomic::AtomicU64 as LoomWord, thread};
use rdma_fabric::Rank;
use std::sync::{
    Arc as Shared,
    atomic::{AtomicBool, Ordering::SeqCst},
};

/// A mutant of the protocol.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Mutant {
    None,
    /// Publishing does not release.
    RelaxedPublish,
    /// Consuming does not acquire.
    RelaxedConsume,
    /// The rank that claimed the position before is not recorded.
    Nameless,
    /// A consumer advances the head without checking whether it has moved.
    BlindTake,
}

pub(crate) struct Cell {
    word: LoomWord,
    mutant: Mutant,
}

impl Cell {
    pub(crate) fn new(mutant: Mutant) -> Self {
        Cell { word: LoomWord::new(0), mutant }
    }
}

impl Word for Cell {
    fn load(&self, order: Ordering) -> u64 {
        self.word.load(if self.mutant == Mutant::RelaxedConsume { Relaxed } else { order })
    }
    fn store(&self, value: u64, order: Ordering) {
        self.word.store(value, if self.mutant == Mutant::RelaxedPublish { Relaxed } else { order });
    }
    fn replace(&self, current: u64, new: u64, success: Ordering, failure: Ordering) -> Result<(), u64> {
        // Keeping a name is the only relaxed exchange, and advancing the head the only one that
        // just releases.
        if self.mutant == Mutant::Nameless && success == Relaxed {
            return Ok(());
        }
        if self.mutant == Mutant::BlindTake && success == Release {
            self.word.store(new, Release);
            return Ok(());
        }
        self.word.compare_exchange(current, new, success, failure).map(drop)
    }
}

/// A ring of two slots for numbers, with their senders.
pub(crate) trait Tiny: Send + Sync + Sized + 'static {
    /// The maximum number of branches of an execution.
    const BRANCHES: usize;

    fn new(mutant: Mutant) -> Self;
    /// Sends a number and returns whether there was room.
    fn send(&self, from: u32, data: u64) -> bool;
    /// Takes the next entry, which must be whole.
    fn take(&self, has_ended: impl Fn(u32) -> bool + Copy) -> Option<(u32, u64)>;
    fn claim(&self, me: Rank) -> Result<Option<Claim>, DamagedRing>;
    fn is_empty(&self) -> bool;
    fn has_room(&self) -> bool;
}

/// Explores a test and returns the number of executions. Loom explores its main thread poorly, so
/// that thread only starts the consumer and waits for it.
fn explore<T: Tiny>(test: impl Fn() + Copy + Sync + Send + 'static) -> usize {
    testing::explore(2, T::BRANCHES, move || thread::spawn(test).join().unwrap())
}

/// A producer sends 1 to 3 through two slots; the consumer must see them in order and whole.
pub(crate) fn one_after_the_other<T: Tiny>(mutant: Mutant) -> usize {
    explore::<T>(move || {
        let ring = Shared::new(T::new(mutant));
        let theirs = ring.clone();
        let producer = thread::spawn(move || {
            for data in 1..=3 {
                while !theirs.send(1, data) {
                    thread::yield_now();
                }
            }
        });
        for data in 1..=3 {
            let got = loop {
                match ring.take(|_| false) {
                    Some(got) => break got,
                    None => thread::yield_now(),
                }
            };
            assert_eq!(got, (1, data), "a torn notice");
        }
        producer.join().unwrap();
        assert!(ring.is_empty() && ring.has_room());
    })
}

/// Two threads of the consumer's rank take two notices: no notice is taken twice, and they arrive
/// in order.
pub(crate) fn two_takers<T: Tiny>(mutant: Mutant) -> usize {
    explore::<T>(move || {
        let ring = Shared::new(T::new(mutant));
        let theirs = ring.clone();
        let producer = thread::spawn(move || (1..=2).for_each(|data| assert!(theirs.send(1, data))));
        let theirs = ring.clone();
        let other = thread::spawn(move || [theirs.take(|_| false), theirs.take(|_| false)]);
        let mine = [ring.take(|_| false), ring.take(|_| false)];
        let others = other.join().unwrap();
        producer.join().unwrap();
        let rest = [ring.take(|_| false), ring.take(|_| false)];
        let [mine, others, rest] = [mine, others, rest].map(|got| got.into_iter().flatten().collect::<Vec<_>>());
        assert!([&mine, &others, &rest].iter().all(|got| got.is_sorted()));
        let mut all = [mine, others, rest].concat();
        all.sort_unstable();
        assert_eq!(all, [(1, 1), (1, 2)], "not each notice once");
    })
}

/// Rank 1 dies with a claim; rank 2 sends before or after it.
pub(crate) fn a_death<T: Tiny>(mutant: Mutant) -> usize {
    explore::<T>(move || {
        let ring = Shared::new(T::new(mutant));
        // Set with the join of the dying thread, which orders everything, as a reaped process does.
        let ended = Shared::new(AtomicBool::new(false));
        let theirs = ring.clone();
        let dying = thread::spawn(move || theirs.claim(Rank::new(1)).unwrap().is_some());
        let theirs = ring.clone();
        let living = thread::spawn(move || {
            while !theirs.send(2, 5) {
                thread::yield_now();
            }
        });
        let (mut dying, mut living) = (Some(dying), Some(living));
        let got = loop {
            match ring.take(|rank| rank == 1 && ended.load(SeqCst)) {
                Some(got) => break got,
                None => thread::yield_now(),
            }
            if let Some(dying) = dying.take() {
                dying.join().unwrap();
                ended.store(true, SeqCst);
            } else {
                living.take().expect("a claim of the dead blocks the ring").join().unwrap();
            }
        };
        assert_eq!(got, (2, 5));
        if let Some(living) = living {
            living.join().unwrap();
        }
        if let Some(dying) = dying {
            dying.join().unwrap();
        }
    })
}
