//! Lost wake-ups: exhaustively with loom, and under stress with the real thing.

use super::*;
use std::{sync::Arc, time::Instant};

#[test]
fn a_ring_wakes_who_is_parked_and_only_once() {
    let (bell, watch) = (AtomicU32::new(0), AtomicU64::new(0));
    let bell = Words { bell: &bell, watch: &watch };
    ring(&bell, |_| true);
    assert_eq!(bell.look(), 0, "nobody parked, nothing to count");
    let ticket = prepare(&bell, Watch::Word(640));
    ring(&bell, |bits| Watch::covers(bits, 648, 1000));
    ring(&bell, |bits| Watch::covers(bits, 600, 640));
    assert_eq!(bell.look(), 1, "nobody waits for that");
    ring(&bell, |bits| Watch::covers(bits, 644, 648));
    assert_eq!(bell.look(), 2);
    let start = Instant::now();
    park(&bell, ticket, Duration::from_secs(5));
    assert!(start.elapsed() < Duration::from_secs(1), "rung before parking: no sleep");
}

#[test]
fn no_wake_up_is_lost() {
    const ROUNDS: u32 = if cfg!(miri) { 5 } else { 3000 };
    register_process();
    let shared = Arc::new((AtomicU32::new(0), AtomicU32::new(0), AtomicU64::new(0)));
    let (theirs, start) = (shared.clone(), Instant::now());
    let waiter = std::thread::spawn(move || {
        let (bell, memory, watch) = &*theirs;
        let bell = &Words { bell, watch };
        for round in 1..=ROUNDS {
            while memory.load(Acquire) != round {
                let ticket = prepare(bell, Watch::Word(1000 + memory.load(Relaxed) as usize));
                if memory.load(Acquire) != round {
                    // A lost wake-up would cost a second each.
                    park(bell, ticket, Duration::from_secs(1));
                }
            }
            memory.store(0, core::sync::atomic::Ordering::Release);
        }
    });
    let (bell, memory, watch) = &*shared;
    let bell = &Words { bell, watch };
    for round in 1..=ROUNDS {
        while memory.load(Acquire) != 0 {
            core::hint::spin_loop();
            std::thread::yield_now();
        }
        for _ in 0..round % 50 {
            core::hint::spin_loop();
        }
        // A plain put: no barrier of the poster's.
        memory.store(round, core::sync::atomic::Ordering::Release);
        ring(bell, |bits| bits == 1000);
    }
    waiter.join().unwrap();
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

/// The same protocol over loom's words. Loom has no process-wide barrier; a fence on both sides is what it amounts to.
mod model {
    use super::super::{Bell, PARKED, Watch, park, prepare, ring};
    use core::time::Duration;
    use loom::sync::{
        Arc, Condvar, Mutex,
        atomic::{
            AtomicU32, AtomicU64,
            Ordering::{Acquire, Relaxed, Release, SeqCst},
            fence,
        },
    };

    struct Model {
        word: AtomicU32,
        watch: AtomicU64,
        lot: Mutex<()>,
        parked: Condvar,
        /// Whether the barriers are real; without them loom must find the lost wake-up.
        barriers: bool,
    }

    impl Bell for Model {
        fn set_watch(&self, bits: u64) {
            self.watch.store(bits, Relaxed);
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
        fn count_ring(&self, seen: u32) -> bool {
            self.word.compare_exchange(seen, seen.wrapping_add(1), SeqCst, Relaxed).is_ok()
        }
        fn light_barrier(&self) {
            if self.barriers {
                fence(SeqCst);
            }
        }
        fn heavy_barrier(&self) {
            self.light_barrier();
        }
        /// Without a bound: a lost wake-up is a deadlock.
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

    /// `stale` is the bell's word at the start: 1 as an earlier wait leaves it.
    fn explore(barriers: bool, posters: u32, stale: u32) -> usize {
        let executions = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let count = executions.clone();
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(move || {
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let bell = Arc::new(Model {
                word: AtomicU32::new(stale),
                // Of an earlier wait.
                watch: AtomicU64::new(8),
                lot: Mutex::new(()),
                parked: Condvar::new(),
                barriers,
            });
            let memory = Arc::new(AtomicU32::new(0));
            let threads: Vec<_> = (0..posters)
                .map(|_| {
                    let (bell, memory) = (bell.clone(), memory.clone());
                    loom::thread::spawn(move || {
                        if posters == 1 {
                            memory.store(1, Release);
                        } else {
                            memory.fetch_add(1, Release);
                        }
                        ring(&*bell, |bits| bits == 64);
                    })
                })
                .collect();
            while memory.load(Acquire) != posters {
                let ticket = prepare(&*bell, Watch::Word(64));
                if memory.load(Acquire) != posters {
                    park(&*bell, ticket, Duration::MAX);
                }
            }
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
        executions.load(std::sync::atomic::Ordering::Relaxed)
    }

    #[test]
    fn one_poster_one_waiter() {
        let executions = explore(true, 1, 0) + explore(true, 1, 1);
        println!("{executions} executions");
        assert!(executions >= 10);
    }

    #[test]
    fn two_posters_one_waiter() {
        let executions = explore(true, 2, 1);
        println!("{executions} executions");
        assert!(executions >= 100);
    }

    #[test]
    #[should_panic(expected = "deadlock")]
    fn without_barriers_a_wake_up_is_lost() {
        explore(false, 1, 0);
    }
}
