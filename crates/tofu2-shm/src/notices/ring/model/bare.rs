//! A ring with entries of three words, like that of notices.

use super::{super::*, Cell, Mutant, Tiny, explore};
use core::sync::atomic::Ordering::Relaxed;
use loom::thread;
use rdma_fabric::Rank;
use std::sync::Arc as Shared;

struct Bare {
    ends: [Cell; 3],
    claims: [Cell; 2],
    slots: [[Cell; 4]; 2],
}

impl Ring for Bare {
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

impl Tiny for Bare {
    const BRANCHES: usize = 1_000;

    fn new(mutant: Mutant) -> Self {
        let cell = |_| Cell::new(mutant);
        Bare { ends: [0, 1, 2].map(cell), claims: [0, 1].map(cell), slots: [0, 1].map(|_| [0, 1, 2, 3].map(cell)) }
    }
    fn send(&self, from: u32, data: u64) -> bool {
        let from = Rank::new(from);
        let claim = claim_next(self, from).or_else(|| claim(self, from).unwrap());
        claim.map(|claim| publish(self, claim, [data, 7, data + 8])).is_some()
    }
    fn take(&self, has_ended: impl Fn(u32) -> bool + Copy) -> Option<(u32, u64)> {
        let (from, [data, seven, end]) = consume(self, 4, || has_ended(1), has_ended).unwrap()?;
        assert_eq!((end, seven), (data + 8, 7), "a torn notice");
        Some((from, data))
    }
    fn claim(&self, me: Rank) -> Result<Option<Claim>, DamagedRing> {
        claim(self, me)
    }
    fn is_empty(&self) -> bool {
        is_empty(self)
    }
    fn has_room(&self) -> bool {
        has_room(self)
    }
}

/// Two producers, three notices, two slots: none lost, none twice, each producer's in order; a full
/// ring refuses.
#[test]
fn two_producers_share_the_ring() {
    let executions = explore::<Bare>(|| {
        let ring = Shared::new(Bare::new(Mutant::None));
        let producers: Vec<_> = [(1, vec![1, 2]), (2, vec![3])]
            .into_iter()
            .map(|(from, all)| {
                let ring = ring.clone();
                thread::spawn(move || {
                    for data in all {
                        while !ring.send(from, data) {
                            thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        let mut got = Vec::new();
        while got.len() < 3 {
            match ring.take(|_| false) {
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

/// Rank 1 is reported as ended but continues.
#[test]
#[should_panic(expected = "a notice of a living rank was lost")]
fn only_who_has_ended_may_be_skipped() {
    explore::<Bare>(|| {
        let ring = Shared::new(Bare::new(Mutant::None));
        let theirs = ring.clone();
        let living = thread::spawn(move || assert!(theirs.send(1, 1)));
        let early = ring.take(|_| true);
        living.join().unwrap();
        let got = early.or_else(|| ring.take(|_| true));
        assert_eq!(got, Some((1, 1)), "a notice of a living rank was lost");
    });
}

/// A withdrawn claim between two notices.
#[test]
fn a_withdrawn_claim_leaves_no_notice_and_no_hole() {
    let executions = explore::<Bare>(|| {
        let ring = Shared::new(Bare::new(Mutant::None));
        let theirs = ring.clone();
        let one = thread::spawn(move || {
            if let Some(claim) = claim(&*theirs, Rank::new(1)).unwrap() {
                withdraw(&*theirs, claim);
            }
        });
        let theirs = ring.clone();
        let other = thread::spawn(move || {
            for data in 1..=2 {
                while !theirs.send(2, data) {
                    thread::yield_now();
                }
            }
        });
        for data in 1..=2 {
            let got = loop {
                match ring.take(|_| false) {
                    Some(got) => break got,
                    None => thread::yield_now(),
                }
            };
            assert_eq!(got, (2, data));
        }
        one.join().unwrap();
        other.join().unwrap();
        assert_eq!(ring.take(|_| false), None);
        assert!(is_empty(&*ring));
    });
    assert!(executions >= 1000);
}

ring_tests!(Bare, 100, 1000);
