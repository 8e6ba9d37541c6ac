//! Waits of the ranks of a measurement for each other: over bare memory, so that they do not
//! involve the fabric under test.

use super::{bare::Bare, lines};
use core::{
    fmt,
    sync::atomic::{
        AtomicBool, AtomicU32, AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
    time::Duration,
};
use rustix::thread::futex;

/// The error that another rank gave up the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abandoned;

impl fmt::Display for Abandoned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("another rank gave the measurement up")
    }
}

impl std::error::Error for Abandoned {}

/// The number of polls of a word between two checks whether to give up or to yield.
const SPIN_LIMIT: u32 = 1000;
/// The number of such checks before the first yield if every rank has its own core: about a
/// millisecond. A yield may hand the core to an unrelated process, and the awaited event is a
/// matter of microseconds.
const PATIENCE: u32 = 1000;
/// Set if ranks share a core, so that they yield immediately.
static SHARED_CORE: AtomicBool = AtomicBool::new(false);

/// Declares that the rank of this process shares its core with the one for which it waits.
pub fn share_core() {
    SHARED_CORE.store(true, Relaxed);
}

/// The time that a sleeper sleeps without checking whether another rank gave up.
const NAP: Duration = Duration::from_millis(100);

/// Spins until `word` is at least `value`.
#[inline(always)]
pub fn until(word: &AtomicU64, value: u64, abandoned: &AtomicU64) -> Result<(), Abandoned> {
    spin_until::<false>(word, value, abandoned)
}

/// Spins until `word` is at least `value`, with a pause between two polls if `PAUSE`.
#[inline(always)]
pub fn spin_until<const PAUSE: bool>(word: &AtomicU64, value: u64, abandoned: &AtomicU64) -> Result<(), Abandoned> {
    let (mut looks, mut thoughts) = (0, 0);
    // Acquire: pairs with the release of the rank that stores the value.
    while word.load(Acquire) < value {
        if PAUSE {
            core::hint::spin_loop();
        }
        looks += 1;
        if looks == SPIN_LIMIT {
            looks = 0;
            think(&mut thoughts, abandoned)?;
        }
    }
    Ok(())
}

/// Yields the core until `word` is at least `value`.
pub fn yield_until(word: &AtomicU64, value: u64, abandoned: &AtomicU64) -> Result<(), Abandoned> {
    // Acquire: pairs with the release of the rank that stores the value.
    while word.load(Acquire) < value {
        std::thread::yield_now();
        if abandoned.load(Acquire) != 0 {
            return Err(Abandoned);
        }
    }
    Ok(())
}

#[cold]
fn think(thoughts: &mut u32, abandoned: &AtomicU64) -> Result<(), Abandoned> {
    *thoughts += 1;
    if *thoughts > PATIENCE || SHARED_CORE.load(Relaxed) {
        std::thread::yield_now();
    }
    if abandoned.load(Acquire) == 0 { Ok(()) } else { Err(Abandoned) }
}

/// One rank's state in the meetings.
#[derive(Debug)]
pub struct Rendezvous<'a> {
    bare: &'a Bare,
    me: usize,
    ranks: usize,
    /// The number of spinning meetings so far.
    met: u64,
    /// The number of turns slept through, or during which the other rank slept.
    turns: u32,
}

impl<'a> Rendezvous<'a> {
    /// Creates the state of rank `me`, before the first meeting over that memory.
    pub fn new(bare: &'a Bare, me: usize, ranks: usize) -> Self {
        Rendezvous { bare, me, ranks, met: 0, turns: 0 }
    }

    /// Returns the word that is not 0 once a rank has given up.
    pub fn abandoned(&self) -> &'a AtomicU64 {
        self.bare.word(lines::ABANDONED)
    }

    /// Synchronises ranks 0 and 1, spinning.
    pub fn meet(&mut self) -> Result<(), Abandoned> {
        self.met += 1;
        let (mine, other) = (self.bare.word(lines::MET + self.me), self.bare.word(lines::MET + 1 - self.me));
        // Release: earlier writes of this rank are visible to the rank that leaves the meeting.
        mine.store(self.met, Release);
        until(other, self.met, self.abandoned())
    }

    /// Sleeps, on rank 1, until rank 0 has had its turn.
    pub fn sleep_a_turn(&mut self) -> Result<(), Abandoned> {
        self.turns += 1;
        let over = self.bare.half(lines::TURN);
        self.bare.word(lines::ASLEEP).store(self.turns.into(), Release);
        loop {
            // Acquire: pairs with the release in `end_turn`.
            let seen = over.load(Acquire);
            if seen >= self.turns {
                return Ok(());
            }
            sleep(over, seen, self.abandoned())?;
        }
    }

    /// Waits, on rank 0, until rank 1 goes to sleep.
    pub fn begin_turn(&mut self) -> Result<(), Abandoned> {
        self.turns += 1;
        until(self.bare.word(lines::ASLEEP), self.turns.into(), self.abandoned())
    }

    /// Wakes rank 1, on rank 0.
    pub fn end_turn(&mut self) {
        let over = self.bare.half(lines::TURN);
        over.store(self.turns, Release);
        wake_all(over);
    }

    /// Synchronises all ranks, sleeping; there may be any number of them.
    pub fn assemble(&mut self) -> Result<(), Abandoned> {
        let generation = self.bare.half(lines::ASSEMBLED);
        let seen = generation.load(Acquire);
        // Acquire and release: the last to arrive has seen the writes of all others, and passes
        // them on below.
        if self.bare.word(lines::COME).fetch_add(1, AcqRel) + 1 == self.ranks as u64 {
            self.bare.word(lines::COME).store(0, Release);
            generation.fetch_add(1, AcqRel);
            wake_all(generation);
            return Ok(());
        }
        while generation.load(Acquire) == seen {
            sleep(generation, seen, self.abandoned())?;
        }
        Ok(())
    }
}

fn sleep(word: &AtomicU32, seen: u32, abandoned: &AtomicU64) -> Result<(), Abandoned> {
    let nap = futex::Timespec { tv_sec: 0, tv_nsec: NAP.subsec_nanos().into() };
    // Woken, changed, interrupted or timed out: check again.
    let _ = futex::wait(word, futex::Flags::empty(), seen, Some(&nap));
    if abandoned.load(Acquire) == 0 { Ok(()) } else { Err(Abandoned) }
}

fn wake_all(word: &AtomicU32) {
    // Fails only for addresses that are not futexes.
    let _ = futex::wake(word, futex::Flags::empty(), i32::MAX as u32);
}
