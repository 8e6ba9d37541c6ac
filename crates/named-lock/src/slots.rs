//! The slots of a lock's file: which process is which rank, and which ranks are dead.

use crate::{
    bell,
    layout::{self, ALIVE, FIRST_GHOST, PROCESSES, RANKS},
    mapping::Mapping,
    process::Process,
};
use core::{
    ops::Range,
    sync::atomic::{
        Ordering::{AcqRel, Acquire, Relaxed, SeqCst},
        fence,
    },
    time::Duration,
};
use rustix::time::{ClockId, clock_gettime};

/// The ranks that processes can be.
pub(crate) const MEMBERS: Range<usize> = 1..1 + PROCESSES;
/// The ranks that only die.
pub(crate) const GHOSTS: Range<usize> = FIRST_GHOST..RANKS;

/// What a slot's first word says: `kind:2 | turn:30 | number:32`. The turn counts the processes that
/// have been the rank, so that a comparison never takes one for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Nobody is the rank. The lock's words of this rank are untouched from this epoch on.
    Free { untouched_from: u32 },
    /// This process is the rank.
    Taken { number: u32 },
    /// The process that was the rank died while it held the lock or was about to: nobody becomes the
    /// rank any more.
    Dead { number: u32 },
}

const TURN: u32 = 32;
const KIND: u32 = 62;
const TURNS: u64 = (1 << (KIND - TURN)) - 1;

impl State {
    /// Returns the state, and the whole word for comparisons.
    pub(crate) fn of(map: &Mapping, rank: usize) -> (Self, u64) {
        // Acquire: pairs with the release of whoever wrote it, for `STARTED`.
        let bits = map.slot_word(rank, layout::STATE).load(SeqCst);
        let number = bits as u32;
        let state = match bits >> KIND {
            0 => State::Free { untouched_from: number },
            1 => State::Taken { number },
            // Unknown kinds are nobody's, too.
            _ => State::Dead { number },
        };
        (state, bits)
    }

    /// Returns the word for this state after `before`, another process's turn if it is taken.
    fn bits(self, before: u64) -> u64 {
        let turn = before >> TURN & TURNS;
        let (kind, turn, number) = match self {
            State::Free { untouched_from } => (0, turn, untouched_from),
            State::Taken { number } => (1, (turn + 1) & TURNS, number),
            State::Dead { number } => (2, turn, number),
        };
        kind << KIND | turn << TURN | u64::from(number)
    }
}

/// Writes the slots of a new file, in which nobody is.
pub(crate) fn lay_out(map: &Mapping) {
    for rank in 0..RANKS {
        map.slot_word(rank, layout::LIVE).store(ALIVE.into(), Relaxed);
    }
}

/// Makes `process` a rank that is free. Only one process takes ranks at a time: it has the file
/// locked. Returns the word that says so.
pub(crate) fn take(map: &Mapping, rank: usize, process: Process) -> u64 {
    let (_, before) = State::of(map, rank);
    for word in [layout::HOLDS, layout::WRITES] {
        map.slot_word(rank, word).store(0, Relaxed);
    }
    map.slot_word(rank, layout::STARTED).store(process.started, Relaxed);
    let taken = State::Taken { number: process.number }.bits(before);
    // Release: pairs with the acquire in `State::of`.
    map.slot_word(rank, layout::STATE).store(taken, SeqCst);
    taken
}

/// Gives a rank back whose process does not use the lock, if the slot is still as `taken` says.
pub(crate) fn leave(map: &Mapping, rank: usize, taken: u64, untouched_from: usize) {
    let free = State::Free { untouched_from: u32::try_from(untouched_from).unwrap_or(u32::MAX) }.bits(taken);
    // Release: what the process did comes before.
    let _ = map.slot_word(rank, layout::STATE).compare_exchange(taken, free, AcqRel, Relaxed);
}

/// Returns the process that is the rank, by what the slot says.
pub(crate) fn process(map: &Mapping, rank: usize) -> Option<(Process, u64)> {
    match State::of(map, rank) {
        (State::Taken { number }, bits) => {
            Some((Process { number, started: map.slot_word(rank, layout::STARTED).load(Relaxed) }, bits))
        }
        _ => None,
    }
}

/// Returns whether some call of the rank's process holds the lock, or is about to.
pub(crate) fn is_in_use(map: &Mapping, rank: usize) -> bool {
    // SeqCst: see `Session::enter`.
    map.slot_word(rank, layout::HOLDS).load(SeqCst) != 0
}

/// Returns how many ranks hold the lock, or are about to.
pub(crate) fn in_use(map: &Mapping) -> usize {
    MEMBERS.filter(|&rank| is_in_use(map, rank)).count()
}

/// Returns whether the rank is dead.
#[inline]
pub(crate) fn is_dead(map: &Mapping, rank: usize) -> bool {
    matches!(State::of(map, rank).0, State::Dead { .. })
}

/// Returns the number of ranks that are dead, as far as it was counted.
#[inline]
pub(crate) fn deaths(map: &Mapping) -> u64 {
    // Acquire: pairs with the release in `count_deaths`, for the states.
    map.word(layout::DEATHS).load(Acquire)
}

/// Publishes that a rank is dead, if its slot is still as `seen` says: from now on its memory is
/// refused, and waits for it end.
pub(crate) fn bury(map: &Mapping, rank: usize, seen: u64) {
    let dead = State::Dead { number: seen as u32 }.bits(seen);
    if map.slot_word(rank, layout::STATE).compare_exchange(seen, dead, SeqCst, Relaxed).is_ok() {
        count_deaths(map);
    }
}

/// Counts the dead, does what remains to be done for each, and wakes everybody if there are more than
/// were known. Whoever has published a death may have died before doing so.
fn count_deaths(map: &Mapping) {
    let dead = MEMBERS.chain(GHOSTS).filter(|&rank| is_dead(map, rank));
    let dead = dead.inspect(|&rank| map.slot_word(rank, layout::LIVE).store(0, SeqCst)).count() as u64;
    // Release: pairs with the acquire in `deaths`.
    if map.word(layout::DEATHS).fetch_max(dead, SeqCst) < dead {
        fence(SeqCst);
        MEMBERS.for_each(|rank| bell::ring(map, rank));
    }
}

/// Looks whether the processes live that hold the lock or are about to, `me` excepted, and publishes
/// the deaths of those that don't: unless somebody has looked within `pause`.
pub(crate) fn look(map: &Mapping, me: usize, pause: Duration) {
    let now = clock_gettime(ClockId::Monotonic);
    let now = now.tv_sec.unsigned_abs().saturating_mul(1_000_000_000).saturating_add(now.tv_nsec.unsigned_abs());
    let last = map.word(layout::LOOKED).load(Relaxed);
    // A time in the future is garbage.
    let soon = last <= now && now - last < pause.as_nanos() as u64;
    if soon || map.word(layout::LOOKED).compare_exchange(last, now, Relaxed, Relaxed).is_err() {
        return;
    }
    for rank in MEMBERS.filter(|&rank| rank != me && is_in_use(map, rank)) {
        if let Some((process, seen)) = process(map, rank)
            && process.has_ended()
        {
            bury(map, rank, seen);
        }
    }
    count_deaths(map);
}

/// Returns the ranks whose processes have ended, each with what its slot says.
pub(crate) fn ended(map: &Mapping) -> Vec<(usize, u64)> {
    let ended = |rank| process(map, rank).filter(|(process, _)| process.has_ended()).map(|(_, seen)| (rank, seen));
    MEMBERS.filter_map(ended).collect()
}

/// Frees ranks whose processes have ended without holding the lock or waiting for it, and publishes
/// the deaths of the others. Nobody but the caller takes ranks meanwhile. `epoch` is the one that was
/// open last, at a time when all of them had ended.
pub(crate) fn reap(map: &Mapping, ended: &[(usize, u64)], epoch: usize) {
    for &(rank, seen) in ended {
        if is_in_use(map, rank) {
            bury(map, rank, seen);
        } else {
            leave(map, rank, seen, epoch + 1);
        }
    }
}
