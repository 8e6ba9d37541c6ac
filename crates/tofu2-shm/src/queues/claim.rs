//! The rank that executes a session queue's commands, and its progress.
//!
//! A CPU that makes commands of a queue executable, by advancing its session offset or by posting
//! into credit, executes them if no other CPU is doing so, and otherwise sets a flag for that CPU:
//!
//! ```text
//! advancer                                poster
//! A1  add to `scheduled`                  S1  write the descriptor, then `started`
//! A2  full barrier                        S2  full barrier
//! A3  take the claim, or set AGAIN        S3  if there is credit: as A3
//!
//! executor, having taken the claim
//! E1  read `started` and `scheduled`; execute what both allow
//! E2  release the claim if AGAIN is not set; else clear it and go to E1
//! ```
//! The claim word is changed only by read-modify-writes: if A3 finds the claim taken, then E2 comes
//! after it, finds AGAIN, and the next E1 sees A1. If A3 takes the claim, then E1 sees all that the
//! last executor saw, and A1. A poster that finds no credit leaves: the barriers ensure that either
//! its S3 sees A1 or the advancer's E1 sees S1. A poster that executes A3 in any case, because it
//! has seen credit, needs no barrier: the next holder of the claim sees S1 through the claim.
//!
//! `scheduled` is a count, so concurrent advances add up.
//!
//! # Death
//! The claim identifies the executor. If the executor has ended, the next rank takes over its
//! claim. The *stage* records its progress, in one word with the position of the next command and
//! its phase: *idle*; *data* (bytes that were not announced to any rank may have been written;
//! writing them again changes nothing); *past* (other ranks may have seen the effects, so they must
//! not be repeated).

use crate::{memory::word::Word, queues::format::ring};
use core::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
};

/// A word in which advances are counted or commands announced. The tests implement it for loom's
/// words.
pub(crate) trait Fencing: Word {
    /// Adds, makes a full barrier, and returns the sum.
    fn add_and_fence(&self, more: u64) -> u64;
    /// Stores, and makes a full barrier.
    fn store_and_fence(&self, value: u64);
}

/// Makes a full barrier after a sequentially consistent read-modify-write, which is itself a full
/// barrier on x86-64.
#[inline(always)]
fn fence_after_rmw() {
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    core::sync::atomic::fence(SeqCst);
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    core::sync::atomic::compiler_fence(SeqCst);
}

impl Fencing for AtomicU64 {
    #[inline(always)]
    fn add_and_fence(&self, more: u64) -> u64 {
        let sum = self.fetch_add(more, SeqCst).wrapping_add(more);
        fence_after_rmw();
        sum
    }
    #[inline(always)]
    fn store_and_fence(&self, value: u64) {
        self.swap(value, SeqCst);
        fence_after_rmw();
    }
}

/// The words that determine the executing rank and the commands to execute.
#[derive(Debug)]
pub(crate) struct ClaimWords<'a, W> {
    /// 0, or 1 + the rank that executes; and [`AGAIN`].
    pub(crate) claim: &'a W,
    /// The position and phase of the next command ([`pack`]); written by the executor.
    pub(crate) stage: &'a W,
    /// The poster has handed over slots before this position; written by the owner.
    pub(crate) started: &'a W,
    /// The initial offset and all advances.
    pub(crate) scheduled: &'a W,
    pub(crate) depth: u32,
}

/// In a claim: something has changed since the executor last checked.
const AGAIN: u64 = 1 << 32;

/// The progress of an executor with the next command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Idle = 0,
    Data = 1,
    Past = 2,
}

/// Returns the stage word. Positions are below 2⁶².
pub(crate) const fn pack(position: u64, phase: Phase) -> u64 {
    position << 2 | phase as u64
}

/// Unpacks a stage word.
pub(crate) const fn unpack(stage: u64) -> (u64, Phase) {
    let phase = match stage & 3 {
        0 => Phase::Idle,
        1 => Phase::Data,
        _ => Phase::Past,
    };
    (stage >> 2, phase)
}

/// A command that may be executed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DueCommand {
    pub(crate) position: u64,
    /// The number of slots that were posted from the command on.
    pub(crate) ready: u64,
    /// The number of slots that the session offset allows.
    pub(crate) credit: u64,
    /// The progress of a dead executor.
    pub(crate) phase: Phase,
}

/// Outcome of the attempt to execute a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// Executed; the command has this many slots.
    Took(u64),
    /// It needs more credit.
    Wait,
    /// Not executed, though it could be; left for a later turn.
    Rest,
    /// The queue has stopped.
    Stop,
}

/// Work left after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnEnd {
    /// Nothing to be executed.
    Nothing,
    /// Another CPU is executing, and will check again.
    Theirs,
    /// More commands can be executed, and no CPU is executing them.
    More,
}

impl<W: Fencing> ClaimWords<'_, W> {
    /// Returns the position of the next command.
    #[inline]
    pub(crate) fn read(&self) -> u64 {
        // Acquire: pairs with the release in `turn`: a poster that sees a slot executed may
        // overwrite it.
        self.stage.load(Acquire) >> 2
    }

    /// Executes A1 and A2, and returns the sum of all advances.
    #[inline]
    pub(crate) fn advance(&self, slots: u64) -> u64 {
        self.scheduled.add_and_fence(slots)
    }

    /// Does the end of S1, and S2.
    #[inline]
    pub(crate) fn start(&self, position: u64) {
        self.started.store_and_fence(position);
    }

    /// Executes the end of S1 for a poster that takes a turn in any case and so needs no barrier.
    #[inline]
    pub(crate) fn hand_over(&self, position: u64) {
        // Release: pairs with the acquire in `due`.
        self.started.store(position, Release);
    }

    /// Returns whether there seems to be credit, without a barrier.
    #[inline]
    pub(crate) fn has_credit(&self) -> bool {
        self.scheduled.load(Relaxed) != self.stage.load(Relaxed) >> 2
    }

    /// Returns whether a turn is worth trying: S3. A whole ring of credit may in fact be none, or
    /// less, if the read pointer has moved in the meantime; the holder of the claim sees the exact
    /// value.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        let read = self.read();
        self.scheduled.load(Acquire) != read && self.started.load(Acquire) != read
    }

    /// Returns whether everything that was handed over was executed.
    pub(crate) fn is_unstarted(&self) -> bool {
        self.started.load(Acquire) == self.read()
    }

    /// Returns the read pointer, and the session offset as a position; the credit between them is
    /// limited to the values of a ring index.
    pub(crate) fn standing(&self) -> (u64, u64) {
        let read = self.read();
        (read, read.wrapping_add(ring::credit(read, self.scheduled.load(Acquire), self.depth)))
    }

    /// Executes A3, E1 and E2 as `me`, for at most `most` commands. Each is passed to `execute`,
    /// with the claim held.
    pub(crate) fn turn(
        &self,
        me: u32,
        has_ended: impl Fn(u32) -> bool,
        most: u32,
        mut execute: impl FnMut(DueCommand) -> Attempt,
    ) -> TurnEnd {
        if !take(self.claim, me, has_ended) {
            return TurnEnd::Theirs;
        }
        let mut done = 0;
        for _ in 0..=most {
            let mut stopped = false;
            while let Some(due) = self.due() {
                if done == most {
                    give_back(self.claim, me);
                    return TurnEnd::More;
                }
                match execute(due) {
                    // Release: pairs with the acquire in `read`.
                    Attempt::Took(slots) => {
                        self.stage.store(pack(due.position.wrapping_add(slots), Phase::Idle), Release);
                        done += 1;
                    }
                    Attempt::Wait => break,
                    Attempt::Rest => {
                        give_back(self.claim, me);
                        return TurnEnd::More;
                    }
                    Attempt::Stop => {
                        stopped = true;
                        break;
                    }
                }
            }
            if stopped {
                give_back(self.claim, me);
                return TurnEnd::Nothing;
            }
            if give_back_unless_again(self.claim, me) {
                return TurnEnd::Nothing;
            }
        }
        // Others keep setting AGAIN.
        give_back(self.claim, me);
        TurnEnd::More
    }

    /// Returns the next command that may be executed: E1.
    fn due(&self) -> Option<DueCommand> {
        let (position, phase) = unpack(self.stage.load(Relaxed));
        // Acquire: pairs with the release in `start`, for the descriptor.
        let ready = self.started.load(Acquire).wrapping_sub(position);
        // Acquire: pairs with the release in `advance`, for the writes before it.
        let credit = ring::credit(position, self.scheduled.load(Acquire), self.depth);
        (ready != 0 && credit != 0).then_some(DueCommand { position, ready, credit, phase })
    }

    /// Takes the claim permanently, if it is free or its holder has ended. Returns whether it did.
    pub(crate) fn seize(&self, me: u32, has_ended: impl Fn(u32) -> bool) -> bool {
        take(self.claim, me, has_ended)
    }
}

/// Executes A3, and returns whether `me` now has the claim; otherwise its holder will check again.
#[inline]
fn take<W: Word>(claim: &W, me: u32, has_ended: impl Fn(u32) -> bool) -> bool {
    let mine = u64::from(me) + 1;
    let Err(mut now) = claim.replace(0, mine, AcqRel, Acquire) else { return true };
    loop {
        let holder = now as u32;
        let free = holder.checked_sub(1).is_none_or(|rank| rank != me && has_ended(rank));
        // Even if AGAIN is already set: the executor must see the earlier writes.
        match claim.replace(now, if free { mine } else { now | AGAIN }, AcqRel, Acquire) {
            Ok(()) => return free,
            Err(other) => now = other,
        }
    }
}

/// Executes E2, and returns whether the claim was released.
#[inline]
fn give_back_unless_again<W: Word>(claim: &W, me: u32) -> bool {
    let mine = u64::from(me) + 1;
    match claim.replace(mine, 0, AcqRel, Acquire) {
        Ok(()) => true,
        // If the word is damaged, there is nothing to release.
        Err(now) => claim.replace(mine | AGAIN, mine, AcqRel, Acquire).is_err() && now as u32 != me + 1,
    }
}

/// Releases the claim, even if there is work left; the caller handles that.
fn give_back<W: Word>(claim: &W, me: u32) {
    let mine = u64::from(me) + 1;
    if claim.replace(mine, 0, AcqRel, Acquire).is_err() {
        let _ = claim.replace(mine | AGAIN, 0, AcqRel, Acquire);
    }
}

#[cfg(all(test, not(miri)))]
mod model;
