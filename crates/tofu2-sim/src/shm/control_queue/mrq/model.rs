//! The receive queue's ring under loom, as the notices': few producers and a consumer over two records.

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
        if self.mutation == Mutation::Nameless {
            return Ok(());
        }
        if self.mutation == Mutation::BlindTake {
            self.word.store(new, Ordering::Release);
            return Ok(());
        }
        self.word.compare_exchange(current, new, success, failure).map(drop)
    }
}

struct Tiny {
    ends: [Cell; 3],
    records: [[Cell; RECORD]; 2],
    claims: [Cell; 2],
}

impl Tiny {
    fn new(mutation: Mutation) -> Shared<Self> {
        let everywhere = match mutation {
            Mutation::Nameless | Mutation::BlindTake => Mutation::None,
            _ => mutation,
        };
        let cell = |mutation| Cell { word: LoomWord::new(0), mutation };
        let only = |which| cell(if mutation == which { mutation } else { everywhere });
        Shared::new(Tiny {
            ends: [cell(everywhere), cell(everywhere), only(Mutation::BlindTake)],
            records: [0; 2].map(|_| [0; RECORD].map(|_| cell(everywhere))),
            claims: [0; 2].map(|_| only(Mutation::Nameless)),
        })
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
        let (ring, from) = (self.ring(), Rank::new(from));
        let claim = ring.claim_next(from).or_else(|| ring.claim(from).unwrap());
        claim.map(|claim| self.ring().publish(claim, &notice)).is_some()
    }

    /// Sender and number of the next notice, which must be whole.
    fn take(&self, has_ended: impl Fn(u32) -> bool + Copy) -> Option<(u32, u64)> {
        let notice = self.ring().consume(|| has_ended(1), has_ended).expect("a torn notice or a damaged ring")?;
        assert_eq!((notice.remote.to_bits(), u64::from(notice.edata)), (notice.value, notice.value), "a torn notice");
        Some((notice.peer.rank().number(), notice.value))
    }
}

/// How many executions there were. Loom explores its main thread badly, so that one only starts the consumer, and waits for it.
fn explore(test: impl Fn() + Copy + Sync + Send + 'static) -> usize {
    let executions = Shared::new(AtomicUsize::new(0));
    let count = executions.clone();
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.max_branches = 2_000;
    builder.check(move || {
        count.fetch_add(1, SeqCst);
        thread::spawn(test).join().unwrap();
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

/// Two threads of the consumer's rank take two notices: each gets what nobody else got, in order.
fn two_takers(mutation: Mutation) -> usize {
    explore(move || {
        let tiny = Tiny::new(mutation);
        let theirs = tiny.clone();
        let producer = thread::spawn(move || (1..=2).for_each(|number| assert!(theirs.send(1, number))));
        let theirs = tiny.clone();
        let other = thread::spawn(move || [theirs.take(|_| false), theirs.take(|_| false)]);
        let mine = [tiny.take(|_| false), tiny.take(|_| false)];
        let others = other.join().unwrap();
        producer.join().unwrap();
        let rest = [tiny.take(|_| false), tiny.take(|_| false)];
        let [mine, others, rest] = [mine, others, rest].map(|got| got.into_iter().flatten().collect::<Vec<_>>());
        assert!([&mine, &others, &rest].iter().all(|got| got.is_sorted()));
        let mut all = [mine, others, rest].concat();
        all.sort_unstable();
        assert_eq!(all, [(1, 1), (1, 2)], "not each notice once");
    })
}

#[test]
fn two_threads_take_each_notice_once() {
    assert!(two_takers(Mutation::None) >= 500);
}

#[test]
#[should_panic(expected = "not each notice once")]
fn who_takes_must_look_whether_the_head_moved() {
    two_takers(Mutation::BlindTake);
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
        let (mut dying, mut living) = (Some(dying), Some(living));
        let got = loop {
            match tiny.take(|rank| rank == 1 && ended.load(SeqCst)) {
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
