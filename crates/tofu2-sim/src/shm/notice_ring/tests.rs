//! The ring against a queue, under stress, and with dying and lying producers.

use super::*;
use proptest::prelude::*;
use std::{collections::VecDeque, sync::Arc};

const ME: Rank = Rank::new(0);
const KEY: RegionKey = RegionKey { index: 7, generation: 3 };

fn segment() -> Arc<Mapping> {
    Mapping::in_process(layout::HEAP, layout::HEAP).unwrap()
}

fn send(ring: &Mapping, from: u32, data: u64) -> bool {
    claim(ring, Rank::new(from)).is_some_and(|claim| publish(ring, claim, data, KEY, data + 8))
}

fn take(ring: &Mapping) -> Option<Notice> {
    consume(ring, ME, 4, |_| false).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 64 }))]

    #[test]
    fn behaves_like_a_bounded_queue(
        steps in prop::collection::vec((0u32..4, 1usize..3000, 0usize..3000), 1..12),
        lap in prop::sample::select(vec![0u64, 1, u64::from(u32::MAX) - 1]),
    ) {
        let ring = segment();
        // Start in some lap, up to where the packed lap wraps.
        for index in 0..CAPACITY {
            slot(&ring, index, 0).store(pack(lap * CAPACITY + index, 0, FREE), Relaxed);
        }
        ring.word(layout::RING_HEAD).store(lap * CAPACITY, Relaxed);
        ring.word(layout::RING_TAIL).store(lap * CAPACITY, Relaxed);
        let (mut model, mut next) = (VecDeque::new(), 0);
        for (from, sends, takes) in steps {
            for _ in 0..sends {
                let room = model.len() < CAPACITY as usize;
                prop_assert_eq!(has_room(&ring), room);
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
    let ring = segment();
    let dead = claim(&ring, Rank::new(2)).unwrap();
    assert!(send(&ring, 1, 11));
    assert_eq!(take(&ring), None, "the claim may still be published");
    let notice = consume(&ring, ME, 4, |rank| rank == Rank::new(2)).unwrap();
    assert_eq!(notice.map(|notice| notice.data), Some(11));
    assert!(!publish(&ring, dead, 22, KEY, 0), "too late");
    assert_eq!(take(&ring), None);
    assert!(send(&ring, 1, 12));
    assert_eq!(take(&ring).map(|notice| notice.data), Some(12));
}

#[test]
fn a_withdrawn_claim_is_no_notice() {
    let ring = segment();
    let claimed = claim(&ring, Rank::new(2)).unwrap();
    assert!(is_empty(&segment()) && !is_empty(&ring));
    withdraw(&ring, claimed);
    assert_eq!(take(&ring), None);
    assert!(is_empty(&ring));
    assert!(send(&ring, 3, 5));
    assert_eq!(take(&ring).map(|notice| notice.from), Some(Rank::new(3)));
}

#[test]
fn garbage_is_an_error_or_ignored() {
    let ring = segment();
    for tail in [5, CAPACITY + 1, u64::MAX, 1 << 63] {
        ring.word(layout::RING_TAIL).store(tail, Relaxed);
        let sent = send(&ring, 1, 1);
        assert!(sent, "tail {tail}");
        ring.word(layout::RING_TAIL).store(0, Relaxed);
        if tail == 5 {
            // A hint that skips slots leaves a hole, which is free: the consumer waits there.
            assert_eq!(take(&ring), None);
            slot(&ring, 5, 0).store(pack(5, 0, FREE), Relaxed);
        } else {
            assert_eq!(take(&ring).map(|notice| notice.data), Some(1));
        }
    }
    let head = ring.word(layout::RING_HEAD).load(Relaxed);
    for bad in [pack(head, 4, READY), pack(head + CAPACITY, 1, READY), pack(head, 1, FREE)] {
        slot(&ring, head, 0).store(bad, Relaxed);
        let corrupt = FabricError::Corrupt { rank: ME, what: "a slot of the notice ring" };
        assert_eq!(consume(&ring, ME, 4, |_| false), Err(corrupt), "{bad:#x}");
    }
}
