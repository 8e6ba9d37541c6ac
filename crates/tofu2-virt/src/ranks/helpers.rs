//! Helpers: further CPUs of a rank, each with a state like a rank's.
//!
//! A *lane* is an execution context: the number of a rank represents its program, the numbers above
//! those of all ranks represent helpers, in the order in which they were started. A lane has its
//! own CPU time, waits, transmit queue and flushes; memory, notices and control queues are the
//! rank's.

use super::{super::memory::Loc, QueueReport, RankState, Ranks, Status};
use std::collections::{HashMap, HashSet};

/// The helpers of all ranks. Nothing is allocated before the first is started.
#[derive(Debug, Default)]
pub(super) struct Helpers {
    /// The rank of each.
    ranks: Vec<u32>,
    /// By rank.
    lanes: HashMap<u32, Vec<u32>>,
    /// Lanes that wait for operations that another lane of their rank has posted, by slot.
    awaiting: HashMap<u32, u32>,
    /// Ranks of which a helper has failed.
    failed: HashSet<u32>,
}

impl Ranks {
    /// Whether any rank has ever had a helper.
    #[inline]
    pub(crate) fn has_helpers(&self) -> bool {
        !self.helpers.ranks.is_empty()
    }

    /// Returns the rank to which a lane belongs.
    #[inline]
    pub(crate) fn rank_of(&self, lane: u32) -> u32 {
        if lane < self.ranks { lane } else { self.helpers.ranks[(lane - self.ranks) as usize] }
    }

    /// Returns the lanes of a rank's helpers, in the order in which they were started.
    pub(crate) fn helpers_of(&self, rank: u32) -> &[u32] {
        self.helpers.lanes.get(&rank).map_or(&[], Vec::as_slice)
    }

    /// Adds a helper of a running rank. Its CPU is busy until `begin`, in picoseconds, and it is
    /// polled as soon as it is its turn. Returns its lane.
    pub(crate) fn add_helper(&mut self, rank: u32, begin: u64) -> u32 {
        let lane = self.states.len() as u32;
        self.states.push(RankState { cpu_until: begin, ..RankState::default() });
        self.helpers.ranks.push(rank);
        self.helpers.lanes.entry(rank).or_default().push(lane);
        self.wake(lane);
        lane
    }

    /// Records that a lane waits for the operation in a slot, which another lane has posted.
    #[cold]
    pub(crate) fn await_operation(&mut self, lane: u32, slot: u32) {
        self.helpers.awaiting.insert(slot, lane);
    }

    /// Returns the lane that may wait for the operation in a slot, which `poster` has posted and
    /// which has completed.
    #[inline]
    pub(crate) fn waiter_for(&mut self, poster: u32, slot: u32) -> u32 {
        if self.helpers.awaiting.is_empty() { poster } else { self.helpers.awaiting.remove(&slot).unwrap_or(poster) }
    }

    /// Records that a helper of a rank has failed: the rank's waits end.
    pub(crate) fn helper_failed(&mut self, rank: u32) {
        self.helpers.failed.insert(rank);
        self.wake_all_of(rank);
    }

    /// Returns whether a helper of the rank has failed.
    #[inline]
    pub(crate) fn has_helper_failed(&self, rank: u32) -> bool {
        self.has_helpers() && self.helpers.failed.contains(&rank)
    }

    /// Ends the helpers of a rank that has ended.
    pub(super) fn end_helpers_of(&mut self, rank: u32, status: Status) {
        if self.has_helpers() {
            for lane in self.helpers_of(rank).to_vec() {
                self.at(lane).status = status;
            }
        }
    }

    /// Polls a rank's waiting helpers, as soon as it is their turn.
    pub(crate) fn wake_helpers_of(&mut self, rank: u32) {
        if self.has_helpers() {
            for lane in self.helpers_of(rank).to_vec() {
                if self.at(lane).watching > 0 {
                    self.wake(lane);
                }
            }
        }
    }

    /// Counts a completed operation of a helper.
    #[cold]
    pub(super) fn release_of_helper(&mut self, lane: u32) {
        let state = self.at(lane);
        state.outstanding -= 1;
        if state.existing().is_some_and(|extra| !extra.room_line.is_empty()) {
            self.wake(lane);
        }
        self.release_command(self.rank_of(lane));
    }

    /// Returns the lanes that wait for these bytes of their rank, which have been written.
    pub(crate) fn waiting_for(&self, bytes: &Loc) -> Vec<u32> {
        let lanes = [bytes.rank].into_iter().chain(self.helpers_of(bytes.rank).iter().copied());
        lanes.filter(|lane| self.states[*lane as usize].waits_for(bytes)).collect()
    }

    /// Returns the lanes of a rank that wait for this report, or for any report, of the queue and
    /// have not been woken since their last check.
    #[inline]
    pub(crate) fn awaiting(
        &mut self,
        rank: u32,
        queue: u32,
        report: Option<QueueReport>,
    ) -> impl Iterator<Item = u32> + use<> {
        let own = self.awaits(rank, queue, report).then_some(rank);
        let helpers = if self.has_helpers() { self.helpers_awaiting(rank, queue, report) } else { Vec::new() };
        own.into_iter().chain(helpers)
    }

    #[cold]
    fn helpers_awaiting(&mut self, rank: u32, queue: u32, report: Option<QueueReport>) -> Vec<u32> {
        let mut lanes = self.helpers_of(rank).to_vec();
        lanes.retain(|lane| self.awaits(*lane, queue, report));
        lanes
    }

    /// Returns the number of registered waits of the rank's helpers.
    pub(super) fn waits_of_helpers(&self, rank: u32) -> usize {
        self.helpers_of(rank).iter().map(|lane| self.states[*lane as usize].watching as usize).sum()
    }

    /// Polls every lane of a rank as soon as it is its turn.
    pub(crate) fn wake_all_of(&mut self, rank: u32) {
        self.wake(rank);
        if self.has_helpers() {
            self.helpers_of(rank).to_vec().into_iter().for_each(|lane| self.wake(lane));
        }
    }
}
