//! The job's control block: which ranks run, have left or are lost, and the progress of symmetric
//! allocations.

use crate::{
    memory::{Mapping, layout},
    waiting::block_on,
};
use core::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
};
use rdma_fabric::FabricError;
use std::sync::Arc;

#[cfg(target_os = "linux")]
use crate::memory::mapping::MappedFile;

/// The state of a rank. It only moves downwards in this list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u64)]
pub(crate) enum State {
    /// Its process has not attached yet, or it ended successfully without attaching, in a job to
    /// which no rank has attached.
    Starting = 0,
    /// It runs its program.
    Running = 1,
    /// It finished its program.
    Left = 2,
    /// It died, panicked or returned an error.
    Lost = 3,
}

/// The control block: one per job, mapped by all ranks.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    memory: Arc<Mapping>,
    ranks: usize,
}

/// The numbers on which all ranks of a job agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) ranks: usize,
    pub(crate) ranks_per_node: usize,
    /// Length of each segment's heap, in bytes.
    pub(crate) heap_bytes: usize,
    /// Monotonic clock at the job's start, ns; 0 if ranks share a process.
    pub(crate) start_ns: u64,
}

/// The maximum number of ranks of a job, limited by the room in a notice's slot.
const MOST_RANKS: usize = 1 << 24;

#[deny(clippy::arithmetic_side_effects)]
impl Plan {
    /// Checks the numbers.
    ///
    /// # Errors
    /// [`FabricError::Setting`] for numbers that do not form a valid job.
    pub(crate) fn checked(self) -> Result<Self, FabricError> {
        let wrong = |name, problem: &str| Err(FabricError::setting(name, problem));
        if self.ranks == 0 || self.ranks > MOST_RANKS {
            return wrong("ranks", "must be 1 to 16,777,216");
        }
        if self.ranks_per_node == 0 {
            return wrong("ranks_per_node", "must not be 0");
        }
        let all = layout::segment_at(self.ranks, self.heap_bytes, self.ranks);
        if self.heap_bytes == 0 || all.is_none_or(|bytes| bytes > isize::MAX as usize / 2) {
            return wrong("segment_bytes", "must not be 0, nor so large that it can't be mapped");
        }
        Ok(self)
    }

    /// Returns the size of a segment in bytes, including its header. The plan must have been
    /// checked.
    pub(crate) fn segment_bytes(&self) -> usize {
        layout::segment_bytes(self.heap_bytes).unwrap_or(usize::MAX)
    }

    /// Returns the offset of a rank's segment in the job's file, or the end of the file for one
    /// rank past the last. The plan must have been checked.
    #[cfg(target_os = "linux")]
    pub(crate) fn segment_at(&self, rank: usize) -> usize {
        layout::segment_at(self.ranks, self.heap_bytes, rank).unwrap_or(usize::MAX)
    }

    /// Returns the length of the file of a node's part of the job with this number of segments.
    #[cfg(target_os = "linux")]
    pub(crate) fn part_bytes(&self, segments: usize) -> Option<usize> {
        let (control, all) = (layout::control_bytes(self.ranks)?, self.segment_bytes().checked_mul(segments)?);
        control.checked_add(all)
    }

    /// Returns all ranks' segments in the job's file, which has the plan's length.
    #[cfg(target_os = "linux")]
    pub(crate) fn segments_in(&self, whole: &Arc<MappedFile>) -> Box<[Arc<Mapping>]> {
        let segment = |rank| Mapping::of_file(whole, self.segment_at(rank), self.segment_bytes(), layout::HEAP);
        (0..self.ranks).map(segment).collect()
    }

    /// Returns the size of the control block in bytes. The plan must have been checked.
    pub(crate) fn control_bytes(&self) -> usize {
        layout::control_bytes(self.ranks).unwrap_or(usize::MAX)
    }
}

impl Control {
    /// Lays out a fresh block of zeros.
    pub(crate) fn create(memory: Arc<Mapping>, plan: &Plan) -> Self {
        let words = [
            (layout::RANKS, plan.ranks as u64),
            (layout::HEAP_BYTES, plan.heap_bytes as u64),
            (layout::RANKS_PER_NODE, plan.ranks_per_node as u64),
            (layout::START, plan.start_ns),
            (layout::OVERSUBSCRIBED, u64::from(plan.ranks > block_on::cpus())),
        ];
        for (at, value) in words {
            memory.word(at).store(value, Relaxed);
        }
        // Release: pairs with the acquire in `open`.
        memory.word(layout::MAGIC).store(layout::MAGIC_VALUE, Release);
        Control { memory, ranks: plan.ranks }
    }

    /// Adopts a block that another process laid out; it must agree with the environment variable.
    #[cfg(target_os = "linux")]
    pub(crate) fn open(memory: Arc<Mapping>, ranks: usize, heap_bytes: usize) -> Result<(Self, Plan), FabricError> {
        let corrupt = |what| FabricError::Corrupt { rank: rdma_fabric::Rank::new(0), what };
        // Acquire: pairs with the release in `create`.
        if memory.word(layout::MAGIC).load(Acquire) != layout::MAGIC_VALUE {
            return Err(corrupt(&"the control block's magic number or version"));
        }
        let read = |at| usize::try_from(memory.word(at).load(Relaxed)).unwrap_or(0);
        let plan = Plan {
            ranks: read(layout::RANKS),
            heap_bytes: read(layout::HEAP_BYTES),
            ranks_per_node: read(layout::RANKS_PER_NODE),
            start_ns: memory.word(layout::START).load(Relaxed),
        }
        .checked()?;
        if (plan.ranks, plan.heap_bytes) != (ranks, heap_bytes) {
            return Err(corrupt(&"the control block's number of ranks or segment size"));
        }
        Ok((Control { memory, ranks }, plan))
    }

    /// Makes a rank's control record show whether any thread is parked on the doorbell of the
    /// rank's `segment`.
    pub(crate) fn show_parked(&self, rank: usize, segment: &Mapping) {
        segment.show_parked_at(self.memory.clone(), self.control_record_at(rank, layout::RECORD_PARKED));
    }

    /// Returns the word `field` of a rank's control record.
    pub(crate) fn control_record(&self, rank: usize, field: usize) -> &AtomicU64 {
        self.memory.word(self.control_record_at(rank, field))
    }

    fn control_record_at(&self, rank: usize, field: usize) -> usize {
        assert!(rank < self.ranks && field < layout::CONTROL_RECORD);
        layout::CONTROL_RECORDS + rank * layout::CONTROL_RECORD + field
    }

    /// Returns a word of the block's job part.
    pub(crate) fn word(&self, at: usize) -> &AtomicU64 {
        self.memory.word(at)
    }

    /// Returns the state of `rank`. Unknown values count as lost.
    pub(crate) fn state(&self, rank: usize) -> State {
        // SeqCst: includes the acquire that pairs with the exchange in `advance`, so that the
        // rank's earlier writes are visible; see `Job::attached`.
        match self.control_record(rank, layout::RECORD_STATE).load(SeqCst) {
            0 => State::Starting,
            1 => State::Running,
            2 => State::Left,
            _ => State::Lost,
        }
    }

    /// Advances `rank` to `state`, and returns whether this was a change.
    pub(crate) fn advance(&self, rank: usize, state: State) -> bool {
        // Release: pairs with the acquire in `state`.
        let changed = self.control_record(rank, layout::RECORD_STATE).fetch_max(state as u64, SeqCst) < state as u64;
        if changed {
            if state == State::Lost {
                self.found_gone(rank);
            }
            // Release: pairs with the acquire in `changes`.
            self.word(layout::CHANGES).fetch_add(1, SeqCst);
        }
        changed
    }

    /// Returns whether no code of `rank` will ever run again.
    pub(crate) fn has_ended(&self, rank: usize) -> bool {
        // SeqCst: includes the acquire that pairs with the release in `set_ended`; see
        // `Job::attached`.
        self.control_record(rank, layout::RECORD_ENDED).load(SeqCst) != 0
    }

    /// Publishes that no code of `rank` will ever run again.
    #[cfg(target_os = "linux")]
    pub(crate) fn set_ended(&self, rank: usize) {
        // SeqCst: includes the release that pairs with the acquire in `has_ended`; see
        // `Job::attached`.
        self.control_record(rank, layout::RECORD_ENDED).store(1, SeqCst);
        // Release: pairs with the acquire in `anybody_ended`.
        self.word(layout::ENDED).store(1, SeqCst);
    }

    /// Returns whether [`Control::has_ended`] is true of any rank.
    #[inline]
    pub(crate) fn anybody_ended(&self) -> bool {
        // Acquire: pairs with the store in `set_ended`.
        self.word(layout::ENDED).load(Acquire) != 0
    }

    /// Completes the [`Control::advance`] that `rank` may have begun before it ended.
    #[cfg(target_os = "linux")]
    pub(crate) fn complete_advance(&self, rank: usize) {
        if self.state(rank) == State::Lost {
            self.found_gone(rank);
        }
        // Release: pairs with the acquire in `changes`.
        self.word(layout::CHANGES).fetch_add(1, SeqCst);
    }

    /// Returns a count that grows whenever any rank's state changes, and sometimes without a
    /// change.
    #[inline]
    pub(crate) fn changes(&self) -> u64 {
        // Acquire: pairs with the addition in `advance`.
        self.word(layout::CHANGES).load(Acquire)
    }

    /// Makes every wait check whether it must end.
    pub(crate) fn count_change(&self) {
        // Release: pairs with the acquire in `changes`.
        self.word(layout::CHANGES).fetch_add(1, SeqCst);
    }

    /// Publishes that the job is deadlocked, with `waiting` ranks waiting.
    pub(crate) fn set_stuck(&self, waiting: usize) {
        self.word(layout::STUCK).store(waiting as u64, SeqCst);
        // Release: pairs with the acquire in `changes`.
        self.word(layout::CHANGES).fetch_add(1, SeqCst);
    }

    /// Checks that the job was not aborted, and is not stuck.
    ///
    /// # Errors
    /// [`FabricError::Aborted`]; [`FabricError::Deadlock`] once [`Control::set_stuck`] was called.
    pub(crate) fn can_continue(&self) -> Result<(), FabricError> {
        self.not_aborted()?;
        match self.word(layout::STUCK).load(SeqCst) {
            0 => Ok(()),
            waiting => Err(FabricError::Deadlock { waiting: waiting as usize }),
        }
    }

    /// Records that `rank` is lost, or that a peer has found its process gone. This must precede
    /// failures of other ranks that follow from it, since they would otherwise look like the first.
    pub(crate) fn found_gone(&self, rank: usize) {
        let _ = self.word(layout::FIRST_LOST).compare_exchange(0, rank as u64 + 1, SeqCst, Relaxed);
    }

    /// Returns the rank that was lost first.
    pub(crate) fn first_lost(&self) -> Option<usize> {
        let number = self.word(layout::FIRST_LOST).load(SeqCst);
        usize::try_from(number).ok()?.checked_sub(1).filter(|&rank| rank < self.ranks)
    }

    /// Returns whether parked ranks may rely on the heavy barrier.
    pub(crate) fn heavy_barrier(&self) -> bool {
        self.word(layout::NO_HEAVY_BARRIER).load(Relaxed) == 0
    }
}
