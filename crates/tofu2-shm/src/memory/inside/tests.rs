//! Deregistration racing with operations in progress, checked exhaustively with loom; and region
//! IDs.

#![allow(unsafe_code)]

use super::*;

#[test]
fn identities_differ_and_are_never_nothing() {
    let mut seen = std::collections::HashSet::from([0]);
    for rank in [0, 1, (1 << 24) - 1] {
        for index in [0, 1, 8191] {
            for generation in [1, 3, (1 << 26) - 1] {
                assert!(seen.insert(RegionId::new(Rank::new(rank), RegionKey { index, generation }).to_bits()));
            }
        }
    }
}

#[test]
fn a_word_is_free_again_and_waited_for_while_all_are_taken() {
    let words = [const { AtomicU64::new(0) }; 2];
    let taken = AtomicU32::new(0);
    // Garbage left by a peer.
    words[0].set(u64::MAX);
    let id = |index| RegionId::new(Rank::new(0), RegionKey { index, generation: 1 });
    let first = announce(&words, &taken, [id(1)], || panic!("there is room"));
    let second = announce(&words, &taken, [id(2)], || panic!("there is room"));
    assert!(names(&words, id(1)) && names(&words, id(2)) && !names(&words, id(3)));
    let mut first = Some(first);
    let third = announce(&words, &taken, [id(3)], || first = None);
    assert!(!names(&words, id(1)) && names(&words, id(3)));
    drop((second, third));
    assert!(!names(&words, id(2)) && !names(&words, id(3)));
}

#[test]
fn who_needs_two_words_takes_none_before_both_are_free() {
    let words = [const { AtomicU64::new(0) }; 3];
    let taken = AtomicU32::new(0);
    let id = |index| RegionId::new(Rank::new(0), RegionKey { index, generation: 1 });
    let pair = announce(&words, &taken, [id(1), id(2)], || panic!("there is room"));
    assert!(names(&words, id(1)) && names(&words, id(2)));
    let mut pair = Some(pair);
    let other = announce(&words, &taken, [id(3), id(4)], || {
        let third = announce(&words, &taken, [id(5)], || panic!("there is room"));
        assert!(names(&words, id(5)) && !names(&words, id(3)));
        drop(third);
        pair = None;
    });
    assert!(names(&words, id(3)) && names(&words, id(4)) && !names(&words, id(1)) && !names(&words, id(2)));
    drop(other);
    assert!(words.iter().all(|word| word.look() == 0) && taken.load(Relaxed) == 0);
}

#[test]
fn a_closed_gate_lets_nobody_in() {
    let gate = UseCount::<AtomicU64>::default();
    let (one, two) = (gate.enter(), gate.enter());
    assert!(one.is_some() && two.is_some());
    gate.close();
    assert!(gate.enter().is_none() && !gate.is_quiescent());
    drop(one);
    assert!(!gate.is_quiescent());
    drop(two);
    assert!(gate.is_quiescent() && gate.enter().is_none() && gate.is_quiescent());
}

/// Once quiescent, a count must stay so: a caller that checks twice before it takes the contents
/// must receive the same answer.
#[test]
fn a_deserted_gate_stays_so_while_somebody_finds_it_closed() {
    let gate = UseCount::<AtomicU64>::default();
    gate.close();
    assert!(gate.is_quiescent());
    // Between the two steps of `enter`.
    gate.0.add(1);
    assert!(gate.is_quiescent());
    gate.0.subtract(1);
    assert!(gate.is_quiescent() && gate.enter().is_none());
}

/// The same protocol over loom's words: an operation writes a cell, its owner takes the cell back.
mod model {
    use super::super::{AnnouncementWord, Inside, RegionId, UseCount, announce, names};
    use loom::{
        cell::UnsafeCell,
        sync::{
            Arc,
            atomic::{
                AtomicU64,
                Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
                fence,
            },
        },
        thread,
    };
    use rdma_fabric::{Rank, RegionKey};

    /// A mutant of the protocol.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Mutant {
        None,
        /// The operation has no barrier between announcing and checking.
        NoBarrier,
        /// The operation checks before it announces.
        LookFirst,
        /// The operation withdraws before it copies.
        WithdrawFirst,
        /// The operation withdraws without release.
        RelaxedWithdrawal,
        /// The owner checks the announcements before it changes the generation.
        OwnerLooksFirst,
    }

    struct Announcement {
        word: AtomicU64,
        mutant: Mutant,
    }

    impl AnnouncementWord for Announcement {
        fn replace(&self, old: u64, new: u64) -> bool {
            let replaced = self.word.compare_exchange(old, new, AcqRel, Relaxed).is_ok();
            if self.mutant != Mutant::NoBarrier {
                fence(SeqCst);
            }
            replaced
        }
        fn look(&self) -> u64 {
            self.word.load(Acquire)
        }
        fn set(&self, new: u64) {
            self.word.store(new, if self.mutant == Mutant::RelaxedWithdrawal { Relaxed } else { Release });
        }
        fn add(&self, more: u64) -> u64 {
            self.word.fetch_add(more, AcqRel)
        }
        fn subtract(&self, less: u64) {
            self.word.fetch_sub(less, Release);
        }
    }

    /// Runs an operation inside `N` regions, the first of which is the owner's.
    fn check<const N: usize>(mutant: Mutant) {
        loom::model(move || {
            let ids: [_; N] = core::array::from_fn(|at| {
                RegionId::new(Rank::new(1), RegionKey { index: 9 + at as u32, generation: 1 })
            });
            let id = ids[0];
            let words: [_; N] = core::array::from_fn(|_| Announcement { word: AtomicU64::new(0), mutant });
            let shared = Arc::new((words, AtomicU64::new(1), UnsafeCell::new(0u64)));
            let theirs = shared.clone();
            let operation = thread::spawn(move || {
                let (words, generation, cell) = &*theirs;
                // Private to the rank, and to this thread here.
                let taken = core::sync::atomic::AtomicU32::new(0);
                let mut live = generation.load(Acquire) == 1;
                let mut inside: Option<Inside<'_, _, N>> = Some(announce(words, &taken, ids, thread::yield_now));
                if mutant != Mutant::LookFirst {
                    live = generation.load(Acquire) == 1;
                }
                if mutant == Mutant::WithdrawFirst {
                    inside = None;
                }
                if live {
                    // SAFETY: loom checks that no other thread accesses the cell.
                    cell.with_mut(|cell| unsafe { *cell = 7 });
                }
                drop(inside);
                live
            });
            let (words, generation, cell) = &*shared;
            let early = mutant == Mutant::OwnerLooksFirst && !names(words, id);
            generation.store(2, Release);
            fence(SeqCst);
            while !early && names(words, id) {
                thread::yield_now();
            }
            // SAFETY: as above.
            let taken = cell.with_mut(|cell| unsafe { *cell });
            let happened = operation.join().unwrap();
            assert_eq!(taken == 7, happened);
        });
    }

    #[test]
    fn nothing_lands_after_deregistration() {
        check::<1>(Mutant::None);
    }

    #[test]
    fn one_barrier_serves_two_regions() {
        check::<2>(Mutant::None);
    }

    #[test]
    #[should_panic]
    fn loom_finds_that_barrier_missing() {
        check::<2>(Mutant::NoBarrier);
    }

    macro_rules! found {
        ($($name:ident: $mutant:ident;)*) => {$(
            #[test]
            #[should_panic]
            fn $name() {
                check::<1>(Mutant::$mutant);
            }
        )*};
    }
    found! {
        loom_finds_the_missing_barrier: NoBarrier;
        loom_finds_the_early_look: LookFirst;
        loom_finds_the_early_withdrawal: WithdrawFirst;
        loom_finds_the_relaxed_withdrawal: RelaxedWithdrawal;
        loom_finds_the_owners_early_look: OwnerLooksFirst;
    }

    /// At most three preemptions: without a bound this takes more than ten seconds.
    fn check_gate(mutant: Mutant) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            let gate = UseCount::over(Announcement { word: AtomicU64::new(0), mutant });
            let shared = Arc::new((gate, UnsafeCell::new(0u64)));
            let operations: Vec<_> = [1u64, 2]
                .into_iter()
                .map(|by| {
                    let theirs = shared.clone();
                    thread::spawn(move || {
                        let (gate, cell) = &*theirs;
                        let Some(inside) = gate.enter() else { return 0 };
                        if mutant == Mutant::WithdrawFirst {
                            drop(inside);
                            // SAFETY: loom checks that no other thread writes the cell.
                            cell.with(|cell| unsafe { *cell });
                        } else {
                            // SAFETY: as above.
                            cell.with(|cell| unsafe { *cell });
                            drop(inside);
                        }
                        by
                    })
                })
                .collect();
            let (gate, cell) = &*shared;
            gate.close();
            while !gate.is_quiescent() {
                thread::yield_now();
            }
            // SAFETY: loom checks that no other thread accesses the cell.
            cell.with_mut(|cell| unsafe { *cell = 1 });
            assert!(operations.into_iter().map(|operation| operation.join().unwrap()).sum::<u64>() <= 3);
        });
    }

    #[test]
    fn nobody_is_inside_a_deserted_gate() {
        check_gate(Mutant::None);
    }

    #[test]
    #[should_panic]
    fn loom_finds_who_leaves_the_gate_too_early() {
        check_gate(Mutant::WithdrawFirst);
    }
}
