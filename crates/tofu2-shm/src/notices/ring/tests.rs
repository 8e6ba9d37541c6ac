//! Tests the ring of notices against a queue, under stress, and with producers that die or write
//! false names.

use super::{CLAIMED, NAMING, Said, pack_tail, protocol::keep_name, read, *};
use crate::{
    memory::{Mapping, layout},
    notices::{consume, publish},
};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use proptest::prelude::*;
use rdma_fabric::{FabricError, Notice, Rank, RegionKey};
use std::{collections::VecDeque, sync::Arc};

const ME: Rank = Rank::new(0);
const KEY: RegionKey = RegionKey { index: 7, generation: 3 };
const CAPACITY: u64 = layout::RING_CAPACITY as u64;
const POSITIONS: u64 = 1 << 39;

fn state(ring: &Mapping, position: u64) -> &AtomicU64 {
    ring.state((position % CAPACITY) as usize)
}

fn segment() -> Arc<Mapping> {
    Mapping::in_process(layout::HEAP, layout::HEAP).unwrap()
}

fn send(ring: &Mapping, from: u32, data: u64) -> bool {
    let from = Rank::new(from);
    let claim = claim_next(ring, from).or_else(|| claim(ring, from).unwrap());
    claim.map(|claim| publish(ring, claim, data, KEY, data + 8)).is_some()
}

fn take(ring: &Mapping) -> Option<Notice> {
    consume(ring, ME, 4, || false, |_| false).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 64 }))]

    #[test]
    fn behaves_like_a_bounded_queue(
        steps in prop::collection::vec((0u32..4, 1usize..3000, 0usize..3000), 1..12),
        lap in prop::sample::select(vec![0u64, 1, POSITIONS / CAPACITY - 1]),
    ) {
        let ring = segment();
        // Start in an arbitrary lap, up to the point where positions wrap around.
        if lap > 0 {
            for index in 0..CAPACITY {
                state(&ring, index).store(pack(&*ring, (lap - 1) * CAPACITY + index, 3, READY), Relaxed);
            }
            ring.word(layout::RING_HEAD).store(lap * CAPACITY, Relaxed);
            ring.word(layout::RING_SEEN).store(lap * CAPACITY, Relaxed);
            ring.word(layout::RING_TAIL).store(pack_tail(lap * CAPACITY, 3), Relaxed);
        }
        let (mut model, mut next) = (VecDeque::new(), 0);
        for (from, sends, takes) in steps {
            for _ in 0..sends {
                let room = model.len() < CAPACITY as usize;
                prop_assert_eq!(has_room(&*ring), room);
                prop_assert_eq!(send(&ring, from, next), room);
                if room {
                    model.push_back(Notice { from: Rank::new(from), data: next, region: KEY, end: next + 8 });
                }
                next += 1;
            }
            for _ in 0..takes {
                prop_assert_eq!(take(&ring), model.pop_front());
            }
        }
    }
}

#[test]
fn concurrent_producers_keep_their_order_and_lose_nothing() {
    const PRODUCERS: u32 = 3;
    const EACH: u64 = if cfg!(miri) { 20 } else { 30_000 };
    let ring = segment();
    std::thread::scope(|scope| {
        for from in 1..=PRODUCERS {
            let ring = &ring;
            scope.spawn(move || {
                for data in 0..EACH {
                    while !send(ring, from, data) {
                        std::thread::yield_now();
                    }
                }
            });
        }
        let mut next = [0; PRODUCERS as usize + 1];
        while next.iter().sum::<u64>() < EACH * u64::from(PRODUCERS) {
            match take(&ring) {
                Some(notice) => {
                    let from = notice.from.index();
                    assert_eq!((notice.data, notice.end), (next[from], next[from] + 8), "from {}", notice.from);
                    next[from] += 1;
                }
                None => std::thread::yield_now(),
            }
        }
    });
    assert_eq!(take(&ring), None);
}

#[test]
fn a_claim_of_an_ended_rank_is_skipped() {
    let dead = Rank::new(2);
    let dies = |ring: &Mapping| assert!(claim(ring, Rank::new(2)).unwrap().is_some());
    for behind in [1, 2] {
        let ring = segment();
        let consume =
            |ended: Option<Rank>| consume(&ring, ME, 4, || ended.is_some(), |rank| ended == Some(rank)).unwrap();
        assert!(send(&ring, 2, 10));
        dies(&ring);
        assert_eq!(consume(None).map(|notice| notice.data), Some(10));
        assert_eq!(consume(None), None, "the claim may still be published");
        assert_eq!(consume(Some(Rank::new(3))), None, "that is somebody else");
        // The next claim is the same rank's, from another thread, or another rank's.
        assert!(send(&ring, behind, 11));
        assert_eq!(consume(None), None);
        assert_eq!(consume(Some(dead)).map(|notice| notice.data), Some(11));
        // The last claim; no other follows it.
        dies(&ring);
        assert_eq!(consume(Some(dead)), None);
        assert!(send(&ring, 1, 12));
        assert_eq!(consume(None).map(|notice| notice.data), Some(12));
    }
}

/// Names are renewed in time; otherwise a name could be so old that it is mistaken for a new one.
#[test]
fn a_lone_producer_is_named_now_and_then() {
    for (lap, named) in [(5, false), (NAMING - 1, true), (NAMING, false), (2 * NAMING - 1, true)] {
        let ring = segment();
        let first = lap * CAPACITY;
        for at in [layout::RING_HEAD, layout::RING_SEEN] {
            ring.word(at).store(first, Relaxed);
        }
        ring.word(layout::RING_TAIL).store(pack_tail(first, 2), Relaxed);
        assert!(send(&ring, 2, 1) && send(&ring, 2, 2));
        let said = read(&*ring, ring.name(first as usize % layout::RING_CAPACITY).load(Relaxed), first);
        assert_eq!(said == Said::Now { rank: 2, stage: CLAIMED }, named, "lap {lap}");
    }
}

/// A producer falls asleep before it writes a name, and writes it laps later.
#[test]
fn an_old_name_does_not_hide_a_new_one() {
    let ring = segment();
    keep_name(&*ring, 3, 1);
    keep_name(&*ring, 3 + 2 * CAPACITY, 2);
    keep_name(&*ring, 3, 1);
    let said = |position| read(&*ring, ring.name(3).load(Relaxed), position);
    assert_eq!(said(3 + 2 * CAPACITY), Said::Now { rank: 2, stage: CLAIMED });
    assert_eq!((said(3), said(3 + CAPACITY)), (Said::Later, Said::Later));
}

#[test]
fn threads_of_one_rank_take_each_notice_once() {
    const EACH: u64 = if cfg!(miri) { 20 } else { 30_000 };
    let (ring, taken) = (segment(), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for data in 0..EACH {
                while !send(&ring, 1, data) {
                    std::thread::yield_now();
                }
            }
        });
        let takers = [(); 2].map(|()| {
            scope.spawn(|| {
                let mut all = Vec::new();
                while taken.load(Relaxed) < EACH {
                    match take(&ring) {
                        Some(notice) => {
                            assert_eq!(notice.end, notice.data + 8);
                            all.push(notice.data);
                            taken.fetch_add(1, Relaxed);
                        }
                        None => std::thread::yield_now(),
                    }
                }
                assert!(all.is_sorted());
                all
            })
        });
        let mut all = takers.map(|taker| taker.join().unwrap()).concat();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..EACH));
    });
}

#[test]
fn a_withdrawn_claim_is_no_notice() {
    let ring = segment();
    let claimed = claim(&*ring, Rank::new(2)).unwrap().unwrap();
    assert!(is_empty(&*ring));
    withdraw(&*ring, claimed);
    assert!(!is_empty(&*ring));
    assert_eq!(take(&ring), None);
    assert!(is_empty(&*ring));
    assert!(send(&ring, 3, 5));
    assert_eq!(take(&ring).map(|notice| notice.from), Some(Rank::new(3)));
}

#[test]
fn garbage_is_an_error() {
    let corrupt = Err(FabricError::Corrupt { rank: ME, what: &"the notice ring" });
    let ring = segment();
    for bad in [u64::MAX, pack_tail(CAPACITY + 1, 1), pack_tail(POSITIONS - 1, 3)] {
        ring.word(layout::RING_TAIL).store(bad, Relaxed);
        ring.word(layout::RING_SEEN).store(0, Relaxed);
        assert_eq!(claim(&*ring, Rank::new(1)).unwrap_err(), DamagedRing, "tail {bad:#x}");
        assert!(has_room(&*ring), "a claim will tell");
        assert_eq!(consume(&ring, ME, 4, || true, |_| true), corrupt, "tail {bad:#x}");
        assert_eq!(take(&ring), None);
    }
    ring.word(layout::RING_TAIL).store(0, Relaxed);
    for head in [1, CAPACITY + 1, POSITIONS / 2] {
        ring.word(layout::RING_HEAD).store(head, Relaxed);
        ring.word(layout::RING_SEEN).store(head, Relaxed);
        assert_eq!(claim(&*ring, Rank::new(1)).unwrap_err(), DamagedRing, "head {head}");
    }
    for bad in [pack(&*ring, 5, 4, READY), pack(&*ring, 5 + CAPACITY, 1, READY), pack(&*ring, 5, 1, READY) | 1 << 63] {
        ring.word(layout::RING_HEAD).store(5, Relaxed);
        state(&ring, 5).store(bad, Relaxed);
        assert_eq!(consume(&ring, ME, 4, || false, |_| false), corrupt, "{bad:#x}");
    }
}
