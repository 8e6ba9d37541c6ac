//! The rank that executes a session queue's commands, and its progress.
//!
//! A CPU that makes commands of a queue executable, by advancing its session offset or by posting
//! into credit, executes them if no other CPU is doing so, and otherwise leaves them to that CPU,
//! which looks again after it has released the claim:
//!
//! ```text
//! advancer                                poster
//! A1  add to `scheduled`                  S1  write the descriptor, then `started`
//! A2  full barrier                        S2  full barrier
//! A3  take the claim, unless it is        S3  as A3
//!     taken or no command is due
//!
//! executor, having taken the claim
//! E1  read `started` and `scheduled`; execute what both allow
//! E2  release the claim; full barrier
//! E3  if `started` or `scheduled` has changed since E1: take the claim, unless it is taken, and
//!     go to E1
//! ```
//! These are store-buffer races, with a barrier on both sides. Of an advancer and a poster, at least
//! one sees the other's word, so one of them finds the command due. If A3 finds the claim taken,
//! either it sees E2, or E3 sees A1. Trying to take the claim includes a barrier, so a poster that
//! has seen credit, and tries in any case, needs no other. A rank that waits at one of its queues
//! holds the claims of its session queues between its looks ([`super::queue`]): then commands are
//! executed by the CPU whose caches hold them.
//!
//! `scheduled` is a count, so concurrent advances add up.
//!
//! # Death
//! The claim identifies the executor. If the executor has ended, the next rank takes over its
//! claim. The *stage* records its progress, in one word with the position of the next command and
//! its phase: *idle*; *data* (bytes that were not announced to any rank may have been written;
//! writing them again changes nothing); *past* (other ranks may have seen the effects, so they must
//! not be repeated).

mod fencing;

use crate::queues::format::ring;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
pub(crate) use fencing::Fencing;

/// The words that determine the executing rank and the commands to execute.
#[derive(Debug)]
pub(crate) struct ClaimWords<'a, W> {
    /// 0, or 1 + the rank that executes.
    pub(crate) claim: &'a W,
    /// The position and phase of the next command ([`pack`]); written by the executor.
    pub(crate) stage: &'a W,
    /// The poster has handed over slots before this position; written by the owner.
    pub(crate) started: &'a W,
    /// The initial offset and all advances.
    pub(crate) scheduled: &'a W,
    pub(crate) depth: u32,
}

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

    /// Executes A3 and E1 to E3 as `me`, for at most `most` commands. Each is passed to `execute`,
    /// with the claim held.
    pub(crate) fn turn(
        &self,
        me: u32,
        has_ended: impl Fn(u32) -> bool,
        most: u32,
        mut execute: impl FnMut(DueCommand) -> Attempt,
    ) -> TurnEnd {
        let mut left = most;
        for _ in 0..=most {
            if !self.take(me, &has_ended) {
                return TurnEnd::Theirs;
            }
            let ended = self.execute_due(&mut left, &mut execute);
            self.release();
            match ended {
                Ended::More => return TurnEnd::More,
                Ended::Stopped => return TurnEnd::Nothing,
                // E3.
                Ended::AsOf(started, scheduled) => {
                    if (self.started.load(Relaxed), self.scheduled.load(Relaxed)) == (started, scheduled) {
                        return TurnEnd::Nothing;
                    }
                }
            }
        }
        // Others keep advancing and posting.
        TurnEnd::More
    }

    /// Executes E1 with the claim held, for at most `left` commands.
    #[inline]
    pub(crate) fn execute_due(&self, left: &mut u32, execute: &mut impl FnMut(DueCommand) -> Attempt) -> Ended {
        // Only the holder of the claim writes the stage.
        let (mut position, mut phase) = unpack(self.stage.load(Relaxed));
        loop {
            // Acquire: pairs with the release in `start` and `hand_over`, for the descriptor.
            let started = self.started.load(Acquire);
            // Acquire: pairs with the release in `advance`, for the writes before it.
            let scheduled = self.scheduled.load(Acquire);
            let (ready, credit) = (started.wrapping_sub(position), ring::credit(position, scheduled, self.depth));
            if ready == 0 || credit == 0 {
                return Ended::AsOf(started, scheduled);
            }
            if *left == 0 {
                return Ended::More;
            }
            match execute(DueCommand { position, ready, credit, phase }) {
                Attempt::Took(slots) => {
                    (position, phase) = (position.wrapping_add(slots), Phase::Idle);
                    // Release: pairs with the acquire in `read`.
                    self.stage.store(pack(position, phase), Release);
                    *left -= 1;
                }
                Attempt::Wait => return Ended::AsOf(started, scheduled),
                Attempt::Rest => return Ended::More,
                Attempt::Stop => return Ended::Stopped,
            }
        }
    }

    /// Takes the claim, if it is free or its holder has ended. Returns whether it did; if not, its
    /// holder looks again.
    #[inline]
    pub(crate) fn take(&self, me: u32, has_ended: impl Fn(u32) -> bool) -> bool {
        let mine = u64::from(me) + 1;
        self.claim.fence_at_rmw();
        let mut taken = self.claim.replace(0, mine, AcqRel, Acquire);
        while let Err(now) = taken {
            if !is_free(now, me, &has_ended) {
                return false;
            }
            taken = self.claim.replace(now, mine, AcqRel, Acquire);
        }
        true
    }

    /// Returns whether a rank that will look again holds the claim. To be called after a barrier.
    #[inline]
    pub(crate) fn is_taken(&self, me: u32, has_ended: impl Fn(u32) -> bool) -> bool {
        !is_free(self.claim.load(Relaxed), me, has_ended)
    }

    /// Releases the claim: E2. The caller continues with E3.
    #[inline]
    pub(crate) fn release(&self) {
        self.claim.store_and_fence(0);
    }
}

/// How an executor ended E1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// With these values of `started` and `scheduled`, no command can be executed.
    AsOf(u64, u64),
    /// More commands can be executed.
    More,
    /// The queue has stopped.
    Stopped,
}

/// Returns whether the claim with this value may be taken.
#[inline]
fn is_free(claim: u64, me: u32, has_ended: impl Fn(u32) -> bool) -> bool {
    // A damaged claim is of a rank that does not exist, and so has ended.
    let holder = claim as u32;
    holder.checked_sub(1).is_none_or(|rank| rank != me && has_ended(rank))
}

#[cfg(all(test, not(miri)))]
mod model;
