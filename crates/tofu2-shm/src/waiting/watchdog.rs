//! The watchdog: detects deadlocked jobs, and reports what their ranks wait for.
//!
//! When [`crate::block_on`] is about to park a rank, the rank records in its segment that it
//! is parked and the event it waits for, and counts its unsuccessful checks. A check that succeeds
//! records nothing. The supervising thread ([`crate::Threads`], [`crate::Launcher`])
//! reads these words periodically. A job is stuck if, for a bounded time,
//!
//! * each rank that has started and not ended is parked, in the same wait, without a deadline; a
//!   rank that sleeps, computes, blocks in another way, or is polled by another executor is not
//!   parked;
//! * each has checked again, twice, since all were parked, and found nothing, so that no rank was
//!   merely late to be woken, or stopped by a debugger;
//! * nothing else can wake it: either the rank is a [`rdma_fabric::Program`], whose fabric only it
//!   and its helpers use, and only `block_on` holds their wakers, or its process has only one
//!   thread. A rank that has ended was a program, or its process has ended. Jobs with [progress
//!   threads](crate::Launcher::progress_thread) are not watched.
//!
//! A rank with helpers is parked when its program and all of them are ([`super::report`]).
//!
//! A program guarantees that no other code uses its fabric. A rank that passes its fabric to
//! another thread is started by [`run_rank_with`](crate::run_rank_with) or
//! [`Threads::run_with`](crate::Threads::run_with), whose ranks are not watched.
//!
//! Operations are complete when they are posted, so no operation is then in flight that could wake
//! a rank. The bound only determines how soon the deadlock is reported. All waits then end with
//! [`FabricError::Deadlock`](rdma_fabric::FabricError::Deadlock).

use super::doorbell::Watch;
use crate::{
    Awaited, JobError, Stuck, Whom,
    job::{Job, State},
    memory::{
        layout::{self, HEAP},
        regions,
    },
};
use core::{str::FromStr, sync::atomic::Ordering::SeqCst, time::Duration};
use rdma_fabric::{Deps, Rank, RemoteAddr, Time};
use std::time::Instant;

/// How long all ranks of a job must be parked before it counts as a deadlock, as given in options
/// and environment variables: seconds; `never` or 0 is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StuckAfter(pub Option<Duration>);

/// The error for a text that is not a [`StuckAfter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is neither a number of seconds nor `never`")]
pub struct NoBound;

impl FromStr for StuckAfter {
    type Err = NoBound;

    fn from_str(text: &str) -> Result<Self, NoBound> {
        if text == "never" {
            return Ok(StuckAfter(None));
        }
        let bound = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).ok_or(NoBound)?;
        Ok(StuckAfter((!bound.is_zero()).then_some(bound)))
    }
}

/// The event for which a rank waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitsFor {
    /// An event that requires no action of another rank: time, or an event bounded by time.
    Itself,
    /// A word at this offset in the segment.
    Word(usize),
    /// A notice.
    Notice,
    /// A change in one of the rank's control queues.
    Queue,
    /// A gate's word at this offset in the segment.
    Gate(usize),
    /// Room in the notice queue of this rank.
    Room(Rank),
    /// The other ranks, at an allocation.
    Allocation,
}

impl WaitsFor {
    /// Returns the doorbell watch that the awaited write hits.
    #[inline(always)]
    pub(crate) fn watch(self) -> Watch {
        match self {
            WaitsFor::Word(at) | WaitsFor::Gate(at) => Watch::Word(at),
            WaitsFor::Notice | WaitsFor::Queue => Watch::Notice,
            WaitsFor::Itself | WaitsFor::Room(_) | WaitsFor::Allocation => Watch::Nothing,
        }
    }

    pub(super) fn to_bits(self) -> u64 {
        let (kind, value) = match self {
            WaitsFor::Itself => (0, 0),
            WaitsFor::Word(at) => (1, at as u64),
            WaitsFor::Notice => (2, 0),
            WaitsFor::Queue => (3, 0),
            WaitsFor::Gate(_) => (4, 0),
            WaitsFor::Room(rank) => (5, rank.number().into()),
            WaitsFor::Allocation => (6, 0),
        };
        kind << 56 | value
    }
}

/// A wait, in the form written for the watchdog.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Awaiting {
    pub(crate) what: WaitsFor,
    pub(super) whom: u64,
}

/// A bit in [`Awaiting::whom`]. Below it is the rank's number, or the number of ranks.
const ONE: u64 = 1 << 32;
const SEVERAL: u64 = 2 << 32;
/// The position of the number of other waits in the same word.
pub(super) const OTHERS: u32 = 40;

impl Awaiting {
    #[inline]
    pub(crate) fn new(what: WaitsFor, deps: &Deps<'_>) -> Self {
        let whom = match *deps {
            Deps::All => 0,
            Deps::One(rank) | Deps::Step { writer: rank, .. } => ONE | u64::from(rank.number()),
            Deps::Ranks(ranks) => SEVERAL | ranks.len() as u64,
        };
        Awaiting { what, whom }
    }

    /// Creates a wait that ends by itself.
    #[inline]
    pub(crate) fn by_itself() -> Self {
        Awaiting { what: WaitsFor::Itself, whom: 0 }
    }

    /// Returns this wait, if another rank must act first.
    pub(crate) fn of_others(self) -> Option<Self> {
        (self.what != WaitsFor::Itself).then_some(self)
    }
}

/// Looks for deadlocks, in the thread that supervises a job's ranks.
#[derive(Debug)]
pub(crate) struct Watchdog {
    bound: Duration,
    /// The number of times each rank has started or stopped being parked, if all have been parked
    /// or ended since `since`; empty if not.
    parkings: Vec<u64>,
    /// The number of checks of each rank at that time.
    looks: Vec<u64>,
    since: Instant,
}

/// Checks required of each rank since all were parked; two, because the first may have begun
/// before.
const REQUIRED_POLLS: u64 = 2;

impl Watchdog {
    /// Creates a watchdog that allows ranks to be parked for `bound`; `None` if there is no bound.
    pub(crate) fn new(bound: Option<Duration>) -> Option<Self> {
        bound.map(|bound| Watchdog { bound, parkings: Vec::new(), looks: Vec::new(), since: Instant::now() })
    }

    /// Returns the time between two checks.
    pub(crate) fn pause(&self) -> Duration {
        (self.bound / 8).clamp(Duration::from_millis(5), Duration::from_secs(1))
    }

    /// If the job is stuck, ends its waits and returns the error, which contains the wait of each
    /// rank; otherwise `None`. `is_alone` returns whether a rank's process, given by number, has
    /// only one thread.
    pub(crate) fn look(&mut self, job: &Job, is_alone: impl Fn(usize, u64) -> bool) -> Option<JobError> {
        if job.queues.progress_thread {
            return None;
        }
        let ranks = 0..job.plan.ranks;
        let parkings: Option<Vec<u64>> = ranks.clone().map(|rank| parked(job, rank)).collect();
        let Some(parkings) = parkings.filter(|parkings| parkings.iter().any(|parkings| *parkings != 0)) else {
            self.parkings.clear();
            return None;
        };
        // After all were seen to be parked. SeqCst: includes the acquire that pairs with the
        // release in `keeps_waiting`.
        let looks = ranks.map(|rank| word(job, rank, layout::PARKED_LOOKS)).collect::<Vec<_>>();
        if parkings != self.parkings {
            (self.parkings, self.looks, self.since) = (parkings, looks, Instant::now());
            return None;
        }
        let waiting: Vec<usize> = (0..parkings.len()).filter(|&rank| parkings[rank] != 0).collect();
        let has_looked = |&rank: &usize| looks[rank].wrapping_sub(self.looks[rank]) >= REQUIRED_POLLS;
        let is_closed = |&rank: &usize| {
            word(job, rank, layout::SEALED) != 0 && word(job, rank, layout::PARKED_OPEN) == 0
                || is_alone(rank, word(job, rank, layout::PARKED_PROCESS))
        };
        if self.since.elapsed() < self.bound || !waiting.iter().all(has_looked) || !waiting.iter().all(is_closed) {
            return None;
        }
        let stuck = waiting.iter().take(Stuck::TOLD).map(|&rank| stuck(job, rank)).collect();
        job.give_up(waiting.len());
        let at = Time::ZERO + job.start().elapsed();
        Some(JobError::Deadlock { at, waiting: waiting.len(), first: Rank::new(waiting[0] as u32), stuck })
    }
}

/// Returns a word of the rank's segment; 0 if there is no such rank.
fn word(job: &Job, rank: usize, at: usize) -> u64 {
    job.segment(Rank::new(rank as u32)).map_or(0, |segment| segment.word(at).load(SeqCst))
}

/// Returns the number of times the rank has started or stopped being parked, if it is parked; 0 if
/// it has ended; `None` if it may still act.
fn parked(job: &Job, rank: usize) -> Option<u64> {
    match job.control.state(rank) {
        State::Starting => None,
        State::Running => Some(word(job, rank, layout::PARKINGS)).filter(|parkings| !parkings.is_multiple_of(2)),
        State::Left | State::Lost => (word(job, rank, layout::SEALED) != 0 || job.control.has_ended(rank)).then_some(0),
    }
}

/// Returns the number of times a rank has been parked and the number of checks since, if it is
/// parked in a wait that only other ranks can end, and nothing was handed over to it.
#[cfg(target_os = "linux")]
pub(crate) fn waits_for_others(job: &Job, rank: usize) -> Option<(u64, u64)> {
    let parkings = parked(job, rank).filter(|parkings| *parkings != 0)?;
    let is_zero = |at| word(job, rank, at) == 0;
    let is_closed = !is_zero(layout::SEALED) && is_zero(layout::PARKED_OPEN) && is_zero(layout::QUEUES_PENDING);
    let looks = word(job, rank, layout::PARKED_LOOKS);
    // Parked all the time.
    (is_closed && parked(job, rank) == Some(parkings)).then_some((parkings, looks))
}

/// Returns a parked rank's description of its wait. It may be garbage, and is only shown as text.
pub(crate) fn stuck(job: &Job, number: usize) -> Stuck {
    let rank = Rank::new(number as u32);
    let (what, whom) = (word(job, number, layout::PARKED_WHAT), word(job, number, layout::PARKED_WHOM));
    let value = what & ((1 << 56) - 1);
    let at = usize::try_from(value).ok().and_then(|at| at.checked_sub(HEAP));
    let region = job.segment(rank).ok().zip(at).and_then(|(segment, at)| regions::around(segment, at));
    let awaited = match (what >> 56, region) {
        (1, Some((region, offset))) => Awaited::Word(RemoteAddr { rank, region, offset }),
        (2, _) => Awaited::Notice,
        (3, _) => Awaited::Queue,
        (4, _) => Awaited::Gate,
        (5, _) => Awaited::Room(Rank::new(value as u32)),
        (6, _) => Awaited::Allocation,
        _ => Awaited::Other,
    };
    let whom_number = whom as u32;
    let kind = whom & (ONE | SEVERAL);
    let depends_on = match kind {
        0 => Whom::Everybody,
        ONE => Whom::One(Rank::new(whom_number)),
        _ => Whom::Several(whom_number as usize),
    };
    let others = (whom >> OTHERS) as usize;
    Stuck::new(rank, awaited, others, Some(depends_on))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_seconds_or_never() {
        let seconds = |seconds| Ok(StuckAfter(Some(Duration::from_secs_f64(seconds))));
        assert_eq!("10".parse(), seconds(10.0));
        assert_eq!("0.25".parse(), seconds(0.25));
        for text in ["never", "0", "0.0"] {
            assert_eq!(text.parse(), Ok(StuckAfter(None)), "{text}");
        }
        for text in ["", "-1", "soon", "1s", "nan", "inf"] {
            assert_eq!(text.parse::<StuckAfter>(), Err(NoBound), "{text}");
        }
    }
}
