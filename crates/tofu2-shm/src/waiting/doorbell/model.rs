//! Model of the doorbell's protocol over loom's words. Loom has no process-wide barrier, which is
//! equivalent to a fence on both sides.

use super::{Doorbell, PARKED, Watch, leave, park, prepare, ring, wake_surely};
use crate::testing;
use core::time::Duration;
use loom::sync::{
    Arc, Condvar, Mutex,
    atomic::{
        AtomicU32, AtomicU64,
        Ordering::{Acquire, Relaxed, Release, SeqCst},
        fence,
    },
};

/// A mutant of the protocol.
#[derive(Clone, Copy, PartialEq)]
enum Mutant {
    None,
    /// Neither side has a barrier.
    NoBarriers,
    /// The waiter has no barrier.
    NoHeavyBarrier,
    /// The waiter's barrier does not reach the poster, as if its process had not registered.
    NoLightBarrier,
    /// The watch is set after the bit.
    LateWatch,
}

/// Offset of the memory waited on, as stored in the watch.
const WATCHED: u64 = 64;

struct Model {
    word: AtomicU32,
    watch: AtomicU64,
    lot: Mutex<()>,
    parked: Condvar,
    mutant: Mutant,
}

impl Model {
    fn new(mutant: Mutant, stale: u32) -> Self {
        // The watch is left from an earlier wait.
        let (word, watch) = (AtomicU32::new(stale), AtomicU64::new(8));
        Model { word, watch, lot: Mutex::new(()), parked: Condvar::new(), mutant }
    }
}

impl Doorbell for Model {
    fn set_watch(&self, bits: u64) {
        if self.mutant != Mutant::LateWatch {
            self.watch.store(bits, Relaxed);
        }
    }
    fn watch(&self) -> u64 {
        self.watch.load(Relaxed)
    }
    fn look(&self) -> u32 {
        self.word.load(Acquire)
    }
    fn set_parked(&self) -> u32 {
        self.word.fetch_or(PARKED, SeqCst) | PARKED
    }
    fn clear_parked(&self) {
        self.word.fetch_and(!PARKED, SeqCst);
    }
    fn outdate(&self) {
        self.word.fetch_add(2, SeqCst);
    }
    fn count_ring(&self, seen: u32) -> bool {
        self.word.compare_exchange(seen, seen.wrapping_add(1), SeqCst, Relaxed).is_ok()
    }
    fn light_barrier(&self) {
        if ![Mutant::NoBarriers, Mutant::NoLightBarrier].contains(&self.mutant) {
            fence(SeqCst);
        }
    }
    fn heavy_barrier(&self) {
        if ![Mutant::NoBarriers, Mutant::NoHeavyBarrier].contains(&self.mutant) {
            fence(SeqCst);
        }
        if self.mutant == Mutant::LateWatch {
            self.watch.store(WATCHED, Relaxed);
        }
    }
    /// Parks without a bound, so that a lost wake-up is a deadlock.
    fn park(&self, expected: u32, _: Duration) {
        let mut lot = self.lot.lock().unwrap();
        while self.word.load(SeqCst) == expected {
            lot = self.parked.wait(lot).unwrap();
        }
    }
    fn wake_all(&self) {
        let _lot = self.lot.lock().unwrap();
        self.parked.notify_all();
    }
}

/// Explores one waiter and `posters` posters. `stale` is the doorbell's word at the start: 1 is
/// left by another waiting thread of the rank.
fn explore(mutant: Mutant, posters: u32, stale: u32) -> usize {
    testing::explore(3, 1_000, move || {
        let doorbell = Arc::new(Model::new(mutant, stale));
        let memory = Arc::new(AtomicU32::new(0));
        let threads: Vec<_> = (0..posters)
            .map(|_| {
                let (doorbell, memory) = (doorbell.clone(), memory.clone());
                loom::thread::spawn(move || {
                    if posters == 1 {
                        memory.store(1, Release);
                    } else {
                        memory.fetch_add(1, Release);
                    }
                    ring(&*doorbell, |bits| bits == WATCHED);
                })
            })
            .collect();
        while memory.load(Acquire) != posters {
            let ticket = prepare(&*doorbell, Watch::Word(WATCHED as usize));
            if memory.load(Acquire) != posters {
                park(&*doorbell, ticket, Duration::MAX);
            }
            leave(&*doorbell);
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    })
}

/// A poster dies at each step of its ring; then `reap` is called for it.
fn die_ringing(reap: fn(&Model)) {
    for steps in 1..=2 {
        loom::model(move || {
            let doorbell = Arc::new(Model {
                word: AtomicU32::new(0),
                watch: AtomicU64::new(8),
                lot: Mutex::new(()),
                parked: Condvar::new(),
                mutant: Mutant::None,
            });
            let memory = Arc::new(AtomicU32::new(0));
            let (theirs, written) = (doorbell.clone(), memory.clone());
            let dies = loom::thread::spawn(move || {
                written.store(1, Release);
                theirs.light_barrier();
                let seen = theirs.look();
                if steps == 2 && seen & PARKED != 0 {
                    let _ = theirs.count_ring(seen);
                }
                // The poster is dead. The reaper acts afterwards.
                reap(&theirs);
            });
            while memory.load(Acquire) != 1 {
                let ticket = prepare(&*doorbell, Watch::Word(64));
                if memory.load(Acquire) != 1 {
                    park(&*doorbell, ticket, Duration::MAX);
                }
                leave(&*doorbell);
            }
            dies.join().unwrap();
        });
    }
}

#[test]
fn the_reaper_wakes_whom_a_dead_poster_did_not() {
    die_ringing(wake_surely);
}

#[test]
#[should_panic(expected = "deadlock")]
fn ringing_again_is_not_enough() {
    die_ringing(|doorbell| ring(doorbell, |_| true));
}

#[test]
fn one_poster_one_waiter() {
    let executions = explore(Mutant::None, 1, 0) + explore(Mutant::None, 1, 1);
    println!("{executions} executions");
    assert!(executions >= 10);
}

#[test]
fn two_posters_one_waiter() {
    let executions = explore(Mutant::None, 2, 1);
    println!("{executions} executions");
    assert!(executions >= 100);
}

macro_rules! loses_a_wake_up {
    ($($name:ident: $mutant:ident),*) => {$(
        #[test]
        #[should_panic(expected = "deadlock")]
        fn $name() {
            explore(Mutant::$mutant, 1, 0);
        }
    )*};
}
loses_a_wake_up!(
    without_barriers: NoBarriers,
    without_the_heavy_barrier: NoHeavyBarrier,
    without_the_light_barrier: NoLightBarrier,
    with_the_watch_set_late: LateWatch
);

/// One round of a waiter that may leave out W3, and that would sleep forever if the final word
/// equalled the one that it remembers.
fn one_round(second_look: bool) {
    loom::model(move || {
        let doorbell = Arc::new(Model::new(Mutant::None, 0));
        let memory = Arc::new(AtomicU32::new(0));
        let (theirs, written) = (doorbell.clone(), memory.clone());
        let waiter = loom::thread::spawn(move || {
            let ticket = prepare(&*theirs, Watch::Word(WATCHED as usize));
            (!second_look || written.load(Acquire) == 0).then_some(ticket.0)
        });
        let (theirs, written) = (doorbell.clone(), memory.clone());
        let poster = loom::thread::spawn(move || {
            written.store(1, Release);
            ring(&*theirs, |bits| bits == WATCHED);
        });
        let parked = waiter.join().unwrap();
        poster.join().unwrap();
        assert_ne!(parked, Some(doorbell.look()), "asleep for good");
    });
}

#[test]
fn the_second_look_is_needed_and_enough() {
    one_round(true);
}

#[test]
#[should_panic(expected = "asleep for good")]
fn without_a_second_look() {
    one_round(false);
}
