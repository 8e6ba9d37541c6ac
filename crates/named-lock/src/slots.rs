//! The slots of a lock's file: the process of each rank, and the ranks that are dead.

use crate::{
    doorbell,
    layout::{self, ALIVE, FIRST_GHOST, PROCESSES, RANKS},
    mapping::Mapping,
    process::{Process, Unknown},
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

/// The ranks that processes can occupy.
pub(crate) const MEMBERS: Range<usize> = 1..1 + PROCESSES;
/// The ranks that exist only to die.
pub(crate) const GHOSTS: Range<usize> = FIRST_GHOST..RANKS;

/// The first word of a slot: `kind:2 | turn:30 | number:32`. The turn counts the processes that
/// have occupied the rank, so that a comparison never confuses two of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The rank is free. The lock's words of this rank are untouched from this epoch on.
    Free { untouched_from: u32 },
    /// This process occupies the rank.
    Taken { number: u32 },
    /// The process that occupied the rank died while it held the lock or was about to: the rank is
    /// not used again.
    Dead { number: u32 },
}

const TURN: u32 = 32;
const KIND: u32 = 62;
const TURNS: u64 = (1 << (KIND - TURN)) - 1;

impl State {
    /// Returns the state, and the whole word for comparisons.
    pub(crate) fn of(map: &Mapping, rank: usize) -> (Self, u64) {
        // Acquire: pairs with the release of the process that wrote it, for `STARTED`.
        let bits = map.slot_word(rank, layout::STATE).load(SeqCst);
        let number = bits as u32;
        let state = match bits >> KIND {
            0 => State::Free { untouched_from: number },
            1 => State::Taken { number },
            // Slots of unknown kinds are not used, either.
            _ => State::Dead { number },
        };
        (state, bits)
    }

    /// Returns the word for this state after `before`; a taken state starts the next turn.
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

/// Initialises the slots of a new file, all of which are free.
pub(crate) fn lay_out(map: &Mapping) {
    for rank in 0..RANKS {
        map.slot_word(rank, layout::LIVE).store(ALIVE.into(), Relaxed);
    }
}

/// Makes `process` a rank that is free. The caller has locked the file, so only one process takes
/// ranks at a time. Returns the slot's new state word.
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

/// Frees the rank of a process that does not use the lock, if the slot's state word is still
/// `taken`.
pub(crate) fn leave(map: &Mapping, rank: usize, taken: u64, untouched_from: usize) {
    let free = State::Free { untouched_from: u32::try_from(untouched_from).unwrap_or(u32::MAX) }.bits(taken);
    // Release: the earlier accesses of the process precede this.
    let _ = map.slot_word(rank, layout::STATE).compare_exchange(taken, free, AcqRel, Relaxed);
}

/// Returns the process that occupies the rank according to the slot, and the slot's state word.
pub(crate) fn process(map: &Mapping, rank: usize) -> Option<(Process, u64)> {
    match State::of(map, rank) {
        (State::Taken { number }, bits) => {
            Some((Process { number, started: map.slot_word(rank, layout::STARTED).load(Relaxed) }, bits))
        }
        _ => None,
    }
}

/// Returns whether a call of the rank's process holds the lock, or is about to.
pub(crate) fn is_in_use(map: &Mapping, rank: usize) -> bool {
    // SeqCst: see `Session::enter`.
    map.slot_word(rank, layout::HOLDS).load(SeqCst) != 0
}

/// Returns the number of ranks that hold the lock, or are about to.
pub(crate) fn in_use(map: &Mapping) -> usize {
    MEMBERS.filter(|&rank| is_in_use(map, rank)).count()
}

/// Returns whether the rank is dead.
#[inline]
pub(crate) fn is_dead(map: &Mapping, rank: usize) -> bool {
    matches!(State::of(map, rank).0, State::Dead { .. })
}

/// Returns the number of dead ranks that have been counted.
#[inline]
pub(crate) fn deaths(map: &Mapping) -> u64 {
    // Acquire: pairs with the release in `count_deaths`, for the states.
    map.word(layout::DEATHS).load(Acquire)
}

/// Publishes that a rank is dead, if its slot's state word is still `seen`: from now on accesses to
/// its memory are refused, and waits for it end.
pub(crate) fn bury(map: &Mapping, rank: usize, seen: u64) {
    let dead = State::Dead { number: seen as u32 }.bits(seen);
    if map.slot_word(rank, layout::STATE).compare_exchange(seen, dead, SeqCst, Relaxed).is_ok() {
        count_deaths(map);
    }
}

/// Counts the dead ranks, completes the remaining steps for each of them, and wakes all ranks if
/// the count has grown. The process that published a death may have died before it did so.
fn count_deaths(map: &Mapping) {
    let dead = MEMBERS.chain(GHOSTS).filter(|&rank| is_dead(map, rank));
    let dead = dead.inspect(|&rank| map.slot_word(rank, layout::LIVE).store(0, SeqCst)).count() as u64;
    // Release: pairs with the acquire in `deaths`.
    if map.word(layout::DEATHS).fetch_max(dead, SeqCst) < dead {
        fence(SeqCst);
        MEMBERS.for_each(|rank| doorbell::ring(map, rank));
    }
}

/// Checks whether the processes that hold the lock or are about to are alive, except for `me`, and
/// publishes the deaths of those that are not. Does nothing if a process has checked within
/// `pause`.
///
/// # Errors
/// [`Unknown`] for a process that cannot be probed; the other processes were checked.
pub(crate) fn look(map: &Mapping, me: usize, pause: Duration) -> Result<(), Unknown> {
    let now = clock_gettime(ClockId::Monotonic);
    let now = now.tv_sec.unsigned_abs().saturating_mul(1_000_000_000).saturating_add(now.tv_nsec.unsigned_abs());
    let last = map.word(layout::LOOKED).load(Relaxed);
    // A time in the future is garbage.
    let soon = last <= now && now - last < pause.as_nanos() as u64;
    if soon || map.word(layout::LOOKED).compare_exchange(last, now, Relaxed, Relaxed).is_err() {
        return Ok(());
    }
    let mut looked = Ok(());
    for rank in MEMBERS.filter(|&rank| rank != me && is_in_use(map, rank)) {
        if let Some((process, seen)) = process(map, rank) {
            match process.has_ended() {
                Ok(true) => bury(map, rank, seen),
                Ok(false) => {}
                Err(unknown) => looked = Err(unknown),
            }
        }
    }
    // A process that published a death may have died before it counted the death.
    count_deaths(map);
    looked
}

/// Returns the ranks whose processes have ended, each with its slot's state word.
pub(crate) fn ended(map: &Mapping) -> Result<Vec<(usize, u64)>, Unknown> {
    let mut ended = Vec::new();
    for rank in MEMBERS {
        if let Some((process, seen)) = process(map, rank)
            && process.has_ended()?
        {
            ended.push((rank, seen));
        }
    }
    Ok(ended)
}

/// Frees ranks whose processes have ended without holding the lock or waiting for it, and publishes
/// the deaths of the others. Only the caller takes ranks during this call. `epoch` is the last open
/// epoch, read at a time when all of these processes had ended.
pub(crate) fn reap(map: &Mapping, ended: &[(usize, u64)], epoch: usize) {
    for &(rank, seen) in ended {
        if is_in_use(map, rank) {
            bury(map, rank, seen);
        } else {
            leave(map, rank, seen, epoch + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{sync::Arc, thread, time::Instant};

    const THIS: usize = 3;
    const OTHER: usize = 5;

    /// Returns a file in which `OTHER` is a process that has ended while holding the lock.
    fn with_a_dead_holder() -> Arc<Mapping> {
        let map = Mapping::blank();
        lay_out(&map);
        // No process has this ID.
        take(&map, OTHER, Process { number: 1 << 30, started: 7 });
        map.slot_word(OTHER, layout::HOLDS).store(1, SeqCst);
        map
    }

    fn publish(map: &Mapping, rank: usize) {
        let (State::Taken { number }, before) = State::of(map, rank) else { panic!("nobody is {rank}") };
        map.slot_word(rank, layout::STATE).store(State::Dead { number }.bits(before), SeqCst);
    }

    fn is_counted(map: &Mapping) -> bool {
        deaths(map) == 1 && map.slot_word(OTHER, layout::LIVE).load(SeqCst) == 0 && is_dead(map, OTHER)
    }

    /// `bury` publishes a death, refuses the memory of the dead rank, counts, and wakes. A process
    /// that is killed before the first step, or after any of them, leaves the remaining steps to
    /// the next process that checks.
    #[test]
    fn a_death_is_counted_whatever_step_its_publisher_was_killed_after() {
        for done in 0..4 {
            let map = with_a_dead_holder();
            if done >= 1 {
                publish(&map, OTHER);
            }
            if done >= 2 {
                map.slot_word(OTHER, layout::LIVE).store(0, SeqCst);
            }
            if done >= 3 {
                map.word(layout::DEATHS).store(1, SeqCst);
            }
            assert_eq!(is_counted(&map), done == 3, "after {done} steps");
            look(&map, THIS, Duration::ZERO).expect("it can be probed");
            assert!(is_counted(&map), "after {done} steps");
        }
    }

    #[test]
    fn a_death_that_is_counted_wakes_those_that_wait() {
        let map = with_a_dead_holder();
        publish(&map, OTHER);
        let ticket = doorbell::prepare(&map, THIS);
        thread::scope(|scope| {
            let waits = scope.spawn(|| {
                let began = Instant::now();
                doorbell::park(&map, THIS, ticket, doorbell::LONGEST);
                began.elapsed()
            });
            look(&map, OTHER + 1, Duration::ZERO).expect("it can be probed");
            waits.join().expect("no panic");
        });
        // The word that it parks on has changed, so it does not park again.
        let began = Instant::now();
        doorbell::park(&map, THIS, ticket, doorbell::LONGEST);
        assert!(began.elapsed() < doorbell::LONGEST, "it parked on");
    }

    #[test]
    fn deaths_of_several_processes_are_counted_once() {
        let map = with_a_dead_holder();
        take(&map, 9, Process { number: (1 << 30) + 1, started: 7 });
        map.slot_word(9, layout::HOLDS).store(1, SeqCst);
        publish(&map, 9);
        for _ in 0..3 {
            look(&map, THIS, Duration::ZERO).expect("they can be probed");
            assert_eq!(deaths(&map), 2);
        }
    }

    #[test]
    fn what_was_seen_of_an_earlier_process_ends_no_later_one() {
        let map = with_a_dead_holder();
        let (_, seen) = State::of(&map, OTHER);
        leave(&map, OTHER, seen, 1);
        assert_eq!(State::of(&map, OTHER).0, State::Free { untouched_from: 1 });
        take(&map, OTHER, Process { number: 1 << 30, started: 7 });
        bury(&map, OTHER, seen);
        leave(&map, OTHER, seen, 2);
        assert_eq!(State::of(&map, OTHER).0, State::Taken { number: 1 << 30 }, "another turn");
        assert_eq!(deaths(&map), 0);
    }
}
