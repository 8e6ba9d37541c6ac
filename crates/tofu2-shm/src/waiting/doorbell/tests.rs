//! Tests for lost wake-ups under stress.

use super::*;
use std::{sync::Arc, time::Instant};

/// Far longer than any step here takes on a busy machine.
const HANG: Duration = Duration::from_secs(10);

#[test]
fn a_ring_wakes_who_is_parked_and_only_once() {
    let (doorbell, watch) = (AtomicU32::new(0), AtomicU64::new(0));
    let doorbell = DoorbellWords { doorbell: &doorbell, watch: &watch };
    ring(&doorbell, |_| true);
    assert_eq!(doorbell.look(), 0, "nobody parked, nothing to count");
    let ticket = prepare(&doorbell, Watch::Word(640));
    ring(&doorbell, |bits| Watch::covers(bits, 648, 1000));
    ring(&doorbell, |bits| Watch::covers(bits, 600, 640));
    assert_eq!(doorbell.look(), 1, "nobody waits for that");
    ring(&doorbell, |bits| Watch::covers(bits, 644, 648));
    assert_eq!(doorbell.look(), 2);
    let start = Instant::now();
    park(&doorbell, ticket, 3 * HANG);
    assert!(start.elapsed() < HANG, "rung before parking: no sleep");
}

#[test]
fn no_wake_up_is_lost() {
    const ROUNDS: u32 = if cfg!(miri) { 5 } else { 3000 };
    register_process();
    let shared = Arc::new((AtomicU32::new(0), AtomicU32::new(0), AtomicU64::new(0)));
    let theirs = shared.clone();
    let waiter = std::thread::spawn(move || {
        let (doorbell, memory, watch) = &*theirs;
        let doorbell = &DoorbellWords { doorbell, watch };
        for round in 1..=ROUNDS {
            while memory.load(Acquire) != round {
                let ticket = prepare(doorbell, Watch::Word(1000 + memory.load(Relaxed) as usize));
                if memory.load(Acquire) != round {
                    let parked = Instant::now();
                    park(doorbell, ticket, 3 * HANG);
                    assert!(parked.elapsed() < HANG, "a wake-up was lost in round {round}");
                }
            }
            memory.store(0, core::sync::atomic::Ordering::Release);
        }
    });
    let (doorbell, memory, watch) = &*shared;
    let doorbell = &DoorbellWords { doorbell, watch };
    for round in 1..=ROUNDS {
        while memory.load(Acquire) != 0 && !waiter.is_finished() {
            core::hint::spin_loop();
            std::thread::yield_now();
        }
        for _ in 0..round % 50 {
            core::hint::spin_loop();
        }
        // A plain put: the poster has no barrier.
        memory.store(round, core::sync::atomic::Ordering::Release);
        ring(doorbell, |bits| bits == 1000);
    }
    waiter.join().unwrap();
}

/// A poster is killed between counting its ring and waking.
#[test]
fn who_dies_while_ringing_leaves_nobody_asleep() {
    let shared = Arc::new((AtomicU32::new(0), AtomicU64::new(0)));
    let theirs = shared.clone();
    let waiter = std::thread::spawn(move || {
        let doorbell = &DoorbellWords { doorbell: &theirs.0, watch: &theirs.1 };
        let ticket = prepare(doorbell, Watch::Word(640));
        let start = Instant::now();
        park(doorbell, ticket, 3 * HANG);
        start.elapsed()
    });
    let doorbell = &DoorbellWords { doorbell: &shared.0, watch: &shared.1 };
    while doorbell.look() & PARKED == 0 {
        std::thread::yield_now();
    }
    // By then, the waiter is asleep or about to find the word changed.
    std::thread::sleep(Duration::from_millis(20));
    assert!(doorbell.count_ring(doorbell.look()));
    wake_surely(doorbell);
    assert!(waiter.join().unwrap() < HANG);
}
