//! Tests with a bound of an hour, so that no safety net hides a lost wake-up.

use super::{doorbell::Doorbell, *};
use crate::memory::layout;
use core::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::{
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender},
    task::Wake,
};

const HOUR: Duration = Duration::from_secs(3600);
/// Ten times longer than anything here takes.
const GUARD: Duration = Duration::from_secs(10);

/// A task that sends its number when it is woken.
struct Task(u32, Sender<u32>);

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        let _ = self.1.send(self.0);
    }
}

/// A rank, and the numbers of its tasks that were woken.
struct Rank {
    segment: Arc<Mapping>,
    wakers: Wakers,
    tell: Sender<u32>,
    woken: Receiver<u32>,
}

impl Rank {
    fn new() -> Self {
        let segment = Mapping::in_process(layout::HEAP + layout::PAGE, layout::HEAP).unwrap();
        let wakers = Wakers::new("rank 0".into(), segment.clone());
        let (tell, woken) = mpsc::channel();
        Rank { segment, wakers, tell, woken }
    }

    fn task(&self, name: u32) -> Waker {
        Arc::new(Task(name, self.tell.clone())).into()
    }

    /// Registers the waker of task `name`.
    fn arm(&self, name: u32, until: Option<Instant>) -> Key {
        match self.wakers.arm(&self.task(name), Watch::Notice, HOUR, until) {
            Armed::Kept(key) => key,
            other => panic!("{other:?}"),
        }
    }

    /// Waits until the thread has seen all waiters and is about to park. Returns the time until
    /// which it parks unless the doorbell rings.
    fn parked(&self) -> Instant {
        let begun = Instant::now();
        loop {
            if let Thread::Parked(end) = self.wakers.0.lock().thread {
                return end;
            }
            assert!(begun.elapsed() < GUARD, "the thread does not park");
            thread::yield_now();
        }
    }

    fn next(&self) -> u32 {
        self.woken.recv_timeout(GUARD).expect("a task that sleeps")
    }

    /// Ends the rank. Returns all tasks that were woken since the last [`Rank::next`].
    fn leave(self) -> Vec<u32> {
        let Rank { wakers, tell, woken, .. } = self;
        let thread = Arc::downgrade(&wakers.0);
        drop((wakers, tell));
        let mut all = Vec::new();
        loop {
            match woken.recv_timeout(GUARD) {
                Ok(name) => all.push(name),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("a waker is kept for ever"),
            }
        }
        let begun = Instant::now();
        while thread.strong_count() > 0 {
            assert!(begun.elapsed() < GUARD, "the thread does not end");
            thread::yield_now();
        }
        all
    }
}

#[test]
fn a_ring_wakes_everybody_once() {
    let rank = Rank::new();
    let keys = [1, 2].map(|name| rank.arm(name, None));
    assert!(rank.parked() > Instant::now() + HOUR / 2);
    rank.segment.ring_for_notice();
    assert_eq!([rank.next(), rank.next()], [1, 2]);
    assert!(keys.iter().all(|&key| !rank.wakers.is_armed(key, Waker::noop())));
    rank.segment.ring_for_notice();
    // The thread is idle by now or soon, and starts again.
    rank.arm(3, None);
    rank.parked();
    rank.segment.ring();
    assert_eq!(rank.next(), 3);
    assert!(rank.leave().is_empty());
}

#[test]
fn the_latest_waker_is_called() {
    let rank = Rank::new();
    let key = rank.arm(1, None);
    rank.parked();
    assert!(rank.wakers.is_armed(key, &rank.task(2)));
    rank.segment.ring();
    assert_eq!(rank.next(), 2);
    assert!(rank.leave().is_empty());
}

#[test]
fn who_is_forgotten_is_not_woken() {
    let rank = Rank::new();
    let keys = [1, 2, 3].map(|name| rank.arm(name, None));
    rank.parked();
    rank.wakers.forget(keys[0]);
    rank.segment.ring();
    assert_eq!([rank.next(), rank.next()], [2, 3]);
    rank.wakers.forget(rank.arm(4, None));
    assert!(rank.leave().is_empty());
}

#[test]
fn leaving_wakes_everybody_and_ends_the_thread() {
    let rank = Rank::new();
    rank.arm(1, None);
    rank.parked();
    rank.arm(2, Some(Instant::now() + 2 * HOUR));
    assert_eq!(rank.leave(), [1, 2]);
    assert!(Rank::new().leave().is_empty(), "with nobody there, and no thread");
    let idle = Rank::new();
    idle.wakers.forget(idle.arm(1, None));
    assert!(idle.leave().is_empty());
}

#[test]
fn who_was_rung_for_before_it_was_kept_is_told() {
    let rank = Rank::new();
    let (wakers, task) = (&rank.wakers, rank.task(1));
    let lock = wakers.0.lock();
    let armed = thread::scope(|scope| {
        let arming = scope.spawn(|| wakers.arm(&task, Watch::Notice, HOUR, None));
        // W1 is done when the doorbell is odd.
        let begun = Instant::now();
        while rank.segment.doorbell().doorbell.load(Acquire).is_multiple_of(2) {
            assert!(begun.elapsed() < GUARD, "no W1");
            thread::yield_now();
        }
        rank.segment.ring();
        drop(lock);
        arming.join().unwrap()
    });
    assert_eq!(armed, Armed::Rung);
}

/// The thread is parked for an hour when a waiter arrives that will not wait that long. `patience`
/// extends beyond its deadline.
fn an_impatient_waiter(patience: Duration, arm: impl Fn(&Rank, Instant)) {
    let rank = Rank::new();
    rank.arm(1, None);
    assert!(rank.parked() > Instant::now() + HOUR / 2);
    let deadline = Instant::now() + Duration::from_millis(30);
    while Instant::now() < deadline {
        arm(&rank, deadline);
        // The kick wakes both tasks. This one checks, and re-arms itself.
        let woken = || {
            let left = deadline.saturating_duration_since(Instant::now());
            rank.woken.recv_timeout(left + patience).expect("overslept")
        };
        while woken() != 2 {}
    }
    rank.leave();
}

#[test]
fn an_earlier_deadline_kicks_the_thread() {
    an_impatient_waiter(GUARD, |rank, deadline| _ = rank.arm(2, Some(deadline)));
}

#[test]
#[should_panic(expected = "overslept")]
fn without_the_kick_it_is_missed() {
    an_impatient_waiter(Duration::from_millis(300), |rank, until| {
        let parking = rank.segment.prepare_park(Watch::Nothing);
        let sleeper = Sleeper { waker: rank.task(2), parking, until };
        rank.wakers.0.lock().sleepers.push((Key::MAX, sleeper));
    });
}

/// As long as the bit is set, every write to the segment checks the watch.
#[test]
fn the_last_to_leave_clears_the_bit() {
    let rank = Rank::new();
    let bit = || rank.segment.doorbell().look() & 1;
    let [first, second] = [Watch::Word(640), Watch::Nothing].map(|watch| rank.segment.prepare_park(watch));
    drop(first);
    assert_eq!(bit(), 1, "the other one may be parked");
    rank.segment.ring();
    assert!(second.was_rung() && bit() == 0);
    drop(rank.segment.prepare_park(Watch::Notice));
    drop(second);
    assert_eq!(bit(), 0);
}

/// A waiter whose memory is written just before it registers its waker, and which either checks
/// again (W3) or does not.
fn written_before(looks_again: bool) {
    let (rank, memory) = (Rank::new(), AtomicU64::new(0));
    memory.store(1, Release);
    rank.segment.ring();
    let key = rank.arm(1, None);
    if looks_again && memory.load(Acquire) == 1 {
        return rank.wakers.forget(key);
    }
    let end = rank.parked();
    assert!(end < Instant::now() + HOUR / 2, "asleep for an hour");
}

#[test]
fn the_second_look_is_needed_and_enough() {
    written_before(true);
}

#[test]
#[should_panic(expected = "asleep for an hour")]
fn without_a_second_look() {
    written_before(false);
}

/// Two tasks of one rank, each with a separate word that the poster writes: no ring is lost between
/// them.
#[test]
fn no_wake_up_is_lost() {
    const ROUNDS: u64 = if cfg!(miri) { 3 } else { 3000 };
    const ENOUGH: Duration = Duration::from_secs(4);
    // Without a heavy barrier, the bound catches lost wake-ups.
    let longest = if doorbell::register_process() { HOUR } else { Duration::from_millis(1) };
    let Rank { segment, wakers, .. } = Rank::new();
    let pieces = [0, 640].map(|at| segment.piece(at, 8, layout::TABLE, 0).unwrap());
    let memory = [const { AtomicU64::new(0) }; 2];
    let wait = |index: usize, round: u64| {
        let (tell, woken) = mpsc::channel();
        let waker = Waker::from(Arc::new(Task(0, tell)));
        let ready = || memory[index].load(Acquire) == round;
        while !ready() {
            let Armed::Kept(key) = wakers.arm(&waker, Watch::Word(pieces[index].offset()), longest, None) else {
                continue;
            };
            if !ready() {
                woken.recv_timeout(GUARD).expect("a wake-up was lost");
            }
            wakers.forget(key);
        }
        memory[index].store(0, Release);
    };
    let (begun, last) = (Instant::now(), AtomicU64::new(ROUNDS));
    let rounds = thread::scope(|scope| {
        let waiters = [0, 1].map(|index| {
            let (wait, last) = (&wait, &last);
            scope.spawn(move || {
                (1..=ROUNDS).take_while(|round| *round <= last.load(Acquire)).for_each(|round| wait(index, round));
            })
        });
        for round in 1..=ROUNDS {
            if begun.elapsed() > ENOUGH {
                last.store(round, Release);
            }
            for (index, piece) in pieces.iter().enumerate() {
                while memory[index].load(Acquire) != 0 && !waiters[index].is_finished() {
                    thread::yield_now();
                }
                for _ in 0..round * 7 % 200 {
                    core::hint::spin_loop();
                }
                // A plain put: the poster has no barrier.
                memory[index].store(round, Release);
                piece.ring();
            }
            if last.load(Relaxed) == round {
                return round;
            }
        }
        ROUNDS
    });
    println!("{rounds} rounds in {:?}", begun.elapsed());
}
