//! The activities of a rank's CPU.

use super::{Activity, Timeline, Track};
use rdma_fabric::{Rank, Time};

/// A period in which a rank's CPU was busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy {
    /// The time at which it began.
    pub begin: Time,
    /// The time at which it ended.
    pub end: Time,
    /// The activity.
    pub with: Work,
}

/// The kinds of activity of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Work {
    /// The program's computing, or a layer of software.
    Computing,
    /// Posting a command of `bytes` bytes, including its descriptor if that is built now.
    Posting {
        /// The other rank.
        target: Rank,
        /// The command's length.
        bytes: u64,
    },
}

impl Timeline {
    /// Returns the busy times of a rank's CPU, not counting helpers' CPUs, with their activities,
    /// in order of time.
    pub fn cpu(&self, rank: Rank) -> Vec<Busy> {
        let time = Time::from_picos;
        let mine = self.slices.iter().filter(|slice| slice.track == Track::Cpu(rank.number()));
        let mut busy: Vec<Busy> = mine
            .filter_map(|slice| {
                let with = match slice.activity {
                    Activity::Compute => Work::Computing,
                    Activity::Command { bytes, target, .. } => Work::Posting { target: Rank::new(target), bytes },
                    Activity::Advance(_) | Activity::Fault(_) => return None,
                };
                Some(Busy { begin: time(slice.begin), end: time(slice.end), with })
            })
            .collect();
        busy.sort_by_key(|busy| (busy.begin, busy.end));
        busy
    }
}
