//! A scene: who does what to the lock, and when; and what each rank posts in each of its phases.
//!
//! In virtual time a phase lasts [`PHASE`], which is long enough for everything that it begins to come to an end or to a wait. Over threads
//! a phase ends when all have done their part; only scenes in which nobody waits for the lock are played there.

use crate::mutant::Subject;
use std::time::Duration;

/// What a rank does to the lock. Times are nanoseconds after the phase began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Read,
    Write,
    /// Must get it.
    TryRead,
    TryWrite,
    /// Must not get it.
    TryReadFails,
    TryWriteFails,
    /// Must be told that it has too many acquisitions waiting.
    ReadRefused,
    /// Must give up.
    ReadUntil(u64),
    WriteUntil(u64),
    /// Dropped at that time, and looked at until then.
    ReadDropped(u64),
    WriteDropped(u64),
    /// Looked at until the first time, dropped at the second.
    ReadForgotten(u64, u64),
    WriteForgotten(u64, u64),
    /// The hold that was taken last.
    Release,
    /// With a put to a rank that is not the home, which nobody has awaited.
    PutAndRelease,
    ReleaseDropped(u64),
    DropGuard,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Cue {
    pub(crate) phase: u32,
    pub(crate) rank: u32,
    /// When in its phase, in nanoseconds.
    pub(crate) after: u64,
    pub(crate) act: Act,
}

/// What one rank posts in one phase.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) phase: u32,
    pub(crate) rank: u32,
    /// What the rank does, for people; empty if another path's table tells it.
    pub(crate) what: &'static str,
    /// Its operations by the steps of the lock's documentation, in any order: [`Tally::of_steps`].
    pub(crate) steps: &'static str,
    /// Operations at the home and at peers in the algorithm as printed, if it has this path.
    pub(crate) printed: Option<(u64, u64)>,
    /// Why that is another number, if it is.
    pub(crate) because: &'static str,
}

#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) lock: Subject,
    pub(crate) name: &'static str,
    /// Nobody waits for the lock, and nothing depends on time.
    pub(crate) calm: bool,
    pub(crate) ranks: usize,
    pub(crate) cues: Vec<Cue>,
    /// Ranks and phases without a line post nothing.
    pub(crate) lines: Vec<Line>,
}

/// How long a phase is in virtual time.
pub(crate) const PHASE: Duration = Duration::from_micros(100);

impl Scene {
    pub(crate) fn phases(&self) -> u32 {
        self.cues.iter().map(|cue| cue.phase + 1).max().unwrap_or(0)
    }

    /// The line of a rank in a phase.
    pub(crate) fn line(&self, phase: u32, rank: u32) -> Option<&Line> {
        self.lines.iter().find(|line| (line.phase, line.rank) == (phase, rank))
    }
}
