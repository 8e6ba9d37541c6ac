//! The ring under loom: every interleaving, within a bound of preemptions, of few producers and a consumer over two
//! slots, so that each test laps the ring. Loom tries what relaxed loads may see; it has no loads of values stored later,
//! so that the acquire in `claim`, against a payload overwritten before it was read, is not among what it can miss.

use super::*;
use core::sync::atomic::Ordering::{Relaxed, Release};
use loom::{sync::atomic::AtomicU64 as LoomWord, thread};
use rdma_fabric::Rank;
use std::sync::{
    Arc as Shared,
    atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
};

/// What is done wrong on purpose.
#[derive(Clone, Copy, PartialEq)]
enum Mutation {
    None,
    /// Publishing does not release.
    RelaxedPublish,
    /// Consuming does not acquire.
    RelaxedConsume,
    /// Nobody keeps the name of who claimed before.
    Nameless,
    /// Who takes a notice moves the head on without looking whether it has moved.
    BlindTake,
}

struct Cell {
    word: LoomWord,
    mutation: Mutation,
}

impl Word for Cell {
    fn load(&self, order: Ordering) -> u64 {
        self.word.load(if self.mutation == Mutation::RelaxedConsume { Relaxed } else { order })
    }
    fn store(&self, value: u64, order: Ordering) {
        self.word.store(value, if self.mutation == Mutation::RelaxedPublish { Relaxed } else { order });
    }
    fn replace(&self, current: u64, new: u64, success: Ordering, failure: Ordering) -> Result<(), u64> {
        // Keeping a name is the only relaxed one, and moving the head on the only one that just releases.
        if self.mutation == Mutation::Nameless && success == Relaxed {
            return Ok(());
        }
        if self.mutation == Mutation::BlindTake && success == Release {
            self.word.store(new, Release);
            return Ok(());
        }
        self.word.compare_exchange(current, new, success, failure).map(drop)
    }
}

struct Tiny {
    ends: [Cell; 3],
    claims: [Cell; 2],
    slots: [[Cell; 4]; 2],
}

impl Tiny {
    fn new(mutation: Mutation) -> Self {
        let cell = |_| Cell { word: LoomWord::new(0), mutation };
        Tiny { ends: [0, 1, 2].map(cell), claims: [0, 1].map(cell), slots: [0, 1].map(|_| [0, 1, 2, 3].map(cell)) }
    }
}

impl Ring for Tiny {
    type Word = Cell;
    type Entry = [u64; 3];

    fn depth(&self) -> u64 {
        2
    }
    fn head(&self) -> &Cell {
        &self.ends[0]
    }
    fn tail(&self) -> &Cell {
        &self.ends[1]
    }
    fn seen(&self) -> &Cell {
        &self.ends[2]
    }
    fn name(&self, index: usize) -> &Cell {
        &self.claims[index]
    }
    fn state(&self, index: usize) -> &Cell {
        &self.slots[index][0]
    }
    fn fill(&self, index: usize, entry: [u64; 3]) {
        self.slots[index][1..].iter().zip(entry).for_each(|(word, value)| word.store(value, Relaxed));
    }
    fn copy(&self, index: usize) -> [u64; 3] {
        core::array::from_fn(|word| self.slots[index][word + 1].load(Relaxed))
    }
}

fn send(ring: &Tiny, from: u32, data: u64) -> bool {
    let from = Rank::new(from);
    let claim = claim_next(ring, from).or_else(|| claim(ring, from).unwrap());
    claim.map(|claim| publish(ring, claim, [data, 7, data + 8])).is_some()
}

/// Take the next notice, which must be whole.
fn take(ring: &Tiny, has_ended: impl Fn(Rank) -> bool + Copy) -> Option<(u32, u64)> {
    let has_ended = |rank| has_ended(Rank::new(rank));
    let (from, [data, seven, end]) = consume(ring, 4, || has_ended(1), has_ended).unwrap()?;
    assert_eq!((end, seven), (data + 8, 7), "a torn notice");
    Some((from, data))
}

/// How many executions there were. Loom explores its main thread badly, so that one only starts the consumer, and waits for it.
fn explore(test: impl Fn() + Copy + Sync + Send + 'static) -> usize {
    let executions = Shared::new(AtomicUsize::new(0));
    let count = executions.clone();
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.max_branches = 1_000;
    builder.check(move || {
        count.fetch_add(1, SeqCst);
        thread::spawn(test).join().unwrap();
    });
    let executions = executions.load(SeqCst);
    println!("{executions} executions");
    executions
}

/// A producer sends 1 to 3 through two slots; the consumer must see them in order and whole.
fn one_after_the_other(mutation: Mutation) -> usize {
    explore(move || {
        let ring = Shared::new(Tiny::new(mutation));
        let theirs = ring.clone();
        let producer = thread::spawn(move || {
            for data in 1..=3 {
                while !send(&theirs, 1, data) {
                    thread::yield_now();
                }
            }
        });
        for data in 1..=3 {
            let got = loop {
                match take(&ring, |_| false) {
                    Some(got) => break got,
                    None => thread::yield_now(),
                }
            };
            assert_eq!(got, (1, data), "a torn notice");
        }
        producer.join().unwrap();
        assert!(is_empty(&*ring) && has_room(&*ring));
    })
}

#[test]
fn a_producer_laps_the_ring() {
    assert!(one_after_the_other(Mutation::None) >= 100);
}

#[test]
#[should_panic(expected = "a torn notice")]
fn publishing_must_release() {
    one_after_the_other(Mutation::RelaxedPublish);
}

#[test]
#[should_panic(expected = "a torn notice")]
fn consuming_must_acquire() {
    one_after_the_other(Mutation::RelaxedConsume);
}

/// Two producers, three notices, two slots: none lost, none twice, each producer's in order; a full ring refuses.
#[test]
fn two_producers_share_the_ring() {
    let executions = explore(|| {
        let ring = Shared::new(Tiny::new(Mutation::None));
        let producers: Vec<_> = [(1, vec![1, 2]), (2, vec![3])]
            .into_iter()
            .map(|(from, all)| {
                let ring = ring.clone();
                thread::spawn(move || {
                    for data in all {
                        while !send(&ring, from, data) {
                            thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        let mut got = Vec::new();
        while got.len() < 3 {
            match take(&ring, |_| false) {
                Some(notice) => got.push(notice),
                None => thread::yield_now(),
            }
        }
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        assert!(is_empty(&*ring));
        let of = |rank| got.iter().filter(|(from, _)| *from == rank).map(|(_, data)| *data).collect::<Vec<_>>();
        assert_eq!((of(1), of(2)), (vec![1, 2], vec![3]));
    });
    assert!(executions >= 1000);
}

/// Two threads of the consumer's rank take two notices: each gets what nobody else got, in order.
fn two_takers(mutation: Mutation) -> usize {
    explore(move || {
        let ring = Shared::new(Tiny::new(mutation));
        let theirs = ring.clone();
        let producer = thread::spawn(move || (1..=2).for_each(|data| assert!(send(&theirs, 1, data))));
        let theirs = ring.clone();
        let other = thread::spawn(move || [take(&theirs, |_| false), take(&theirs, |_| false)]);
        let mine = [take(&ring, |_| false), take(&ring, |_| false)];
        let others = other.join().unwrap();
        producer.join().unwrap();
        let rest = [take(&ring, |_| false), take(&ring, |_| false)];
        let [mine, others, rest] = [mine, others, rest].map(|got| got.into_iter().flatten().collect::<Vec<_>>());
        assert!([&mine, &others, &rest].iter().all(|got| got.is_sorted()));
        let mut all = [mine, others, rest].concat();
        all.sort_unstable();
        assert_eq!(all, [(1, 1), (1, 2)], "not each notice once");
    })
}

#[test]
fn two_threads_take_each_notice_once() {
    assert!(two_takers(Mutation::None) >= 1000);
}

#[test]
#[should_panic(expected = "not each notice once")]
fn who_takes_must_look_whether_the_head_moved() {
    two_takers(Mutation::BlindTake);
}

/// Rank 1 dies with a claim; rank 2 sends behind it, or before.
fn a_death(mutation: Mutation) -> usize {
    explore(move || {
        let ring = Shared::new(Tiny::new(mutation));
        // Set with the join of the dying thread, which orders everything, as a reaped process does.
        let ended = Shared::new(AtomicBool::new(false));
        let theirs = ring.clone();
        let dying = thread::spawn(move || claim(&*theirs, Rank::new(1)).unwrap().is_some());
        let theirs = ring.clone();
        let living = thread::spawn(move || {
            while !send(&theirs, 2, 5) {
                thread::yield_now();
            }
        });
        let (mut dying, mut living) = (Some(dying), Some(living));
        let got = loop {
            match take(&ring, |rank| rank == Rank::new(1) && ended.load(SeqCst)) {
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

#[test]
fn a_claim_of_the_dead_blocks_nobody() {
    assert!(a_death(Mutation::None) >= 100);
}

#[test]
#[should_panic(expected = "a claim of the dead blocks the ring")]
fn who_claims_next_must_keep_the_name() {
    a_death(Mutation::Nameless);
}

/// Rank 1 is said to have ended, and goes on.
#[test]
#[should_panic(expected = "a notice of a living rank was lost")]
fn only_who_has_ended_may_be_skipped() {
    explore(|| {
        let ring = Shared::new(Tiny::new(Mutation::None));
        let theirs = ring.clone();
        let living = thread::spawn(move || assert!(send(&theirs, 1, 1)));
        let early = take(&ring, |_| true);
        living.join().unwrap();
        let got = early.or_else(|| take(&ring, |_| true));
        assert_eq!(got, Some((1, 1)), "a notice of a living rank was lost");
    });
}

/// A withdrawn claim between two notices.
#[test]
fn a_withdrawn_claim_leaves_no_notice_and_no_hole() {
    let executions = explore(|| {
        let ring = Shared::new(Tiny::new(Mutation::None));
        let theirs = ring.clone();
        let one = thread::spawn(move || {
            if let Some(claim) = claim(&*theirs, Rank::new(1)).unwrap() {
                withdraw(&*theirs, claim);
            }
        });
        let theirs = ring.clone();
        let other = thread::spawn(move || {
            for data in 1..=2 {
                while !send(&theirs, 2, data) {
                    thread::yield_now();
                }
            }
        });
        for data in 1..=2 {
            let got = loop {
                match take(&ring, |_| false) {
                    Some(got) => break got,
                    None => thread::yield_now(),
                }
            };
            assert_eq!(got, (2, data));
        }
        one.join().unwrap();
        other.join().unwrap();
        assert_eq!(take(&ring, |_| false), None);
        assert!(is_empty(&*ring));
    });
    assert!(executions >= 1000);
}
