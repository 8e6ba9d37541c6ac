//! The receive queue's ring under loom, as [`crate::shm::notice_ring`]'s: few producers and a consumer over two records.

use super::*;
use core::sync::atomic::Ordering;
use loom::{sync::atomic::AtomicU64 as LoomWord, thread};
use std::sync::{
    Arc as Shared,
    atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
};

#[derive(Clone, Copy, PartialEq)]
enum Mutation {
    None,
    /// Publishing does not release.
    RelaxedPublish,
    /// Consuming does not acquire.
    RelaxedConsume,
    /// Nobody keeps the name of who claimed before.
    Nameless,
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
    fn replace(&self, current: u64, new: u64) -> Result<(), u64> {
        if self.mutation == Mutation::Nameless {
            return Ok(());
        }
        self.word.compare_exchange(current, new, Ordering::AcqRel, Acquire).map(drop)
    }
    fn add_and_fence(&self, _: u64) -> u64 {
        unreachable!("no counter here")
    }
    fn store_and_fence(&self, _: u64) {
        unreachable!("no barrier here")
    }
}

struct Tiny {
    ends: [Cell; 3],
    records: [Cell; 2 * RECORD],
    claims: [Cell; 2],
}

impl Tiny {
    fn new(mutation: Mutation) -> Shared<Self> {
        let others = if mutation == Mutation::Nameless { Mutation::None } else { mutation };
        let cell = |mutation| Cell { word: LoomWord::new(0), mutation };
        let (ends, records) = ([0; 3].map(|_| cell(others)), [0; 2 * RECORD].map(|_| cell(others)));
        Shared::new(Tiny { ends, records, claims: [0; 2].map(|_| cell(mutation)) })
    }

    fn ring(&self) -> Ring<'_, Cell> {
        let [tail, seen, head] = &self.ends;
        Ring { tail, seen, head, records: &self.records, claims: &self.claims }
    }

    fn send(&self, from: u32, number: u64) -> bool {
        let notice = MrqNotice {
            kind: MrqKind::RemotePut,
            peer: QueueId::new(Rank::new(from), 0, 0, 0),
            edata: number as u8,
            value: number,
            local: Stadd::from_bits(0),
            remote: Stadd::from_bits(number),
            status: Ok(()),
        };
        let claim = self.ring().claim(Rank::new(from)).unwrap();
        claim.map(|claim| self.ring().publish(claim, &notice)).is_some()
    }

    /// Sender and number of the next notice, which must be whole.
    fn take(&self, has_ended: impl Fn(u32) -> bool + Copy) -> Option<(u32, u64)> {
        let notice = self.ring().consume(|| has_ended(1), has_ended).expect("a torn notice or a damaged ring")?;
        assert_eq!((notice.remote.to_bits(), u64::from(notice.edata)), (notice.value, notice.value), "a torn notice");
        Some((notice.peer.rank().number(), notice.value))
    }
}

fn explore(test: impl Fn() + Sync + Send + 'static) -> usize {
    let executions = Shared::new(AtomicUsize::new(0));
    let count = executions.clone();
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.max_branches = 2_000;
    builder.check(move || {
        count.fetch_add(1, SeqCst);
        test();
    });
    let executions = executions.load(SeqCst);
    println!("{executions} executions");
    executions
}

fn one_after_the_other(mutation: Mutation) -> usize {
    explore(move || {
        let tiny = Tiny::new(mutation);
        let theirs = tiny.clone();
        let producer = thread::spawn(move || {
            for number in 1..=3 {
                while !theirs.send(1, number) {
                    thread::yield_now();
                }
            }
        });
        for number in 1..=3 {
            let got = loop {
                match tiny.take(|_| false) {
                    Some(got) => break got,
                    None => thread::yield_now(),
                }
            };
            assert_eq!(got, (1, number), "a torn notice");
        }
        producer.join().unwrap();
        assert!(tiny.ring().is_empty());
    })
}

#[test]
fn a_producer_laps_the_ring() {
    assert!(one_after_the_other(Mutation::None) >= 10);
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

/// Rank 1 dies with a claim; rank 2 sends behind it, or before.
fn a_death(mutation: Mutation) -> usize {
    explore(move || {
        let tiny = Tiny::new(mutation);
        let ended = Shared::new(AtomicBool::new(false));
        let theirs = tiny.clone();
        let dying = thread::spawn(move || theirs.ring().claim(Rank::new(1)).unwrap().is_some());
        let theirs = tiny.clone();
        let living = thread::spawn(move || {
            while !theirs.send(2, 5) {
                thread::yield_now();
            }
        });
        let mut dying = Some(dying);
        let got = loop {
            match tiny.take(|rank| rank == 1 && ended.load(SeqCst)) {
                Some(got) => break got,
                None => thread::yield_now(),
            }
            if let Some(dying) = dying.take() {
                dying.join().unwrap();
                ended.store(true, SeqCst);
            }
        };
        assert_eq!(got, (2, 5));
        living.join().unwrap();
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
#[should_panic(expected = "a damaged ring")]
fn who_claims_next_must_keep_the_name() {
    a_death(Mutation::Nameless);
}
