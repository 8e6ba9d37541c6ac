//! The fate of a job's ranks: its publication, the ranks that it wakes, and whether a wait can
//! still succeed.

use super::{Job, abort, control::State};
use crate::memory::{Mapping, layout, regions};
use core::sync::atomic::{
    Ordering::{Relaxed, SeqCst},
    fence,
};
use rdma_fabric::{Deps, FabricError, Rank, RegionKey};
use std::sync::Arc;

impl Job {
    /// Returns why an access to another process's own memory, in `region`, failed: the reason in
    /// `error`, unless the process has left.
    ///
    /// If the process is lost and no loss was recorded before, records that: this rank's failure
    /// and the end of its process are consequences.
    #[cold]
    pub(crate) fn unreached(&self, error: FabricError, region: RegionKey) -> FabricError {
        let FabricError::PeerLost { rank } = error else { return error };
        if rank.index() < self.plan.ranks {
            if self.may_have_left(rank) {
                return FabricError::StaleRegion { rank, region };
            }
            self.control.found_gone(rank.index());
        }
        error
    }

    /// Returns whether `rank`, whose process is gone, may have left. Only the launcher knows how an
    /// attached process that is gone has ended.
    fn may_have_left(&self, rank: Rank) -> bool {
        match self.control.state(rank.index()) {
            State::Left => true,
            #[cfg(target_os = "linux")]
            State::Running => self.control.is_attached_process(rank.index()),
            _ => false,
        }
    }

    /// Publishes the state of `rank`, and wakes every rank that waits for it.
    pub(crate) fn publish(&self, rank: Rank, state: State) {
        let Some(segment) = self.segments.get(rank.index()) else { return };
        if state == State::Lost {
            self.control.found_gone(rank.index());
            // Before the state: a rank that sees this one lost is also refused by its memory.
            if !segment.is_absent() {
                let _ = segment.word(layout::LOST).compare_exchange(0, abort::LOST, SeqCst, Relaxed);
                regions::condemn(segment);
            }
        }
        // No rank waits for another to start running.
        if self.control.advance(rank.index(), state) && state > State::Running {
            self.wake_all();
        }
    }

    /// Publishes that the command that was started as `rank` has ended, which makes the rank lost
    /// unless it had left. `well` is true if its exit code was 0, by which an attached process
    /// leaves. If the rank is a process that the command started and that may still be running,
    /// `gone` is false, and [`Job::gone`] follows later.
    ///
    /// A process that never attached and ended successfully may not use this library at all; it is
    /// lost only to ranks that did attach, before or after.
    #[cfg(target_os = "linux")]
    pub(crate) fn ended(&self, rank: Rank, well: bool, gone: bool) {
        let index = rank.index();
        // Must precede publishing that no code of the rank runs.
        self.control.close(index);
        if gone {
            self.control.set_ended(index);
        }
        match self.control.state(index) {
            State::Starting if well && !self.is_attached() => {}
            State::Running if well && self.control.is_attached_process(index) => self.publish(rank, State::Left),
            State::Left | State::Lost if well => {}
            _ => self.publish(rank, State::Lost),
        }
        self.wake_surely(index);
    }

    /// Publishes that no code of a rank runs any longer, some time after its command ended.
    #[cfg(target_os = "linux")]
    pub(crate) fn gone(&self, rank: Rank) {
        self.control.set_ended(rank.index());
        self.wake_surely(rank.index());
    }

    /// Wakes all ranks, even if nothing has changed: the rank `ended` may have ended between
    /// changing its state and counting the change, between writing and waking, or with a claim in
    /// some notice ring.
    #[cfg(target_os = "linux")]
    fn wake_surely(&self, ended: usize) {
        self.control.complete_advance(ended);
        fence(SeqCst);
        self.possibly_parked().for_each(|segment| segment.wake_surely());
    }

    /// Returns the segments of ranks that may have a parked thread. A thread that parks later sees
    /// the writes before the fence that precedes this call.
    fn possibly_parked(&self) -> impl Iterator<Item = &Arc<Mapping>> {
        let may = |&(rank, _): &(usize, _)| {
            self.control.control_record(rank, layout::RECORD_PARKED).load(SeqCst) != 0 && !self.control.has_ended(rank)
        };
        self.segments.iter().enumerate().filter(may).map(|(_, segment)| segment)
    }

    /// Publishes as lost all ranks that ended before they attached. A rank calls this when it has
    /// just started running.
    ///
    /// The rank has published that it runs, and checks which ranks have ended; the launcher
    /// publishes which ranks have ended, and checks which run. All four accesses are SeqCst, so one
    /// of them sees the other.
    #[cfg(target_os = "linux")]
    pub(crate) fn attached(&self) {
        let ended = |&rank: &usize| self.control.has_ended(rank) && self.control.state(rank) == State::Starting;
        (0..self.plan.ranks).filter(ended).for_each(|rank| self.publish(Rank::new(rank as u32), State::Lost));
    }

    /// Returns whether any rank has ever attached.
    #[cfg(target_os = "linux")]
    fn is_attached(&self) -> bool {
        // Lost ranks do not count: one that was killed before it attached does not concern ranks
        // that never attached either.
        (0..self.plan.ranks).any(|rank| matches!(self.control.state(rank), State::Running | State::Left))
    }

    /// Rings the doorbell of every rank that may be parked, after all earlier writes.
    pub(crate) fn wake_all(&self) {
        // Rare enough for a separate barrier, so that no wake-up is lost even without a heavy
        // barrier.
        fence(SeqCst);
        self.possibly_parked().for_each(|segment| segment.ring());
    }

    /// Ends the waits of all ranks, `waiting` of which are deadlocked.
    pub(crate) fn give_up(&self, waiting: usize) {
        self.control.set_stuck(waiting);
        self.wake_all();
    }

    /// Returns whether `rank` is lost.
    pub(crate) fn is_lost(&self, rank: Rank) -> bool {
        self.segments.get(rank.index()).is_none_or(|segment| {
            // Ranks of other nodes do not have separate words.
            let said = || segment.is_absent() && self.control.state(rank.index()) == State::Lost;
            segment.word(layout::LOST).load(Relaxed) != 0 || said()
        })
    }

    /// Checks that a wait of `me` for `deps` can still succeed.
    ///
    /// # Errors
    /// [`FabricError::NoSuchRank`], [`FabricError::PeerLost`], [`FabricError::PeersLeft`],
    /// [`FabricError::Deadlock`], [`FabricError::Aborted`].
    pub(crate) fn outlook(&self, me: Rank, deps: &Deps<'_>) -> Result<(), FabricError> {
        self.control.can_continue()?;
        let (mut lost, mut all_left) = (None, true);
        let mut look = |rank: Rank| {
            match self.control.state(rank.index()) {
                State::Lost => lost = lost.or(Some(rank)),
                State::Starting | State::Running => all_left = false,
                State::Left => {}
            };
        };
        match *deps {
            Deps::All => (0..self.plan.ranks as u32).map(Rank::new).filter(|&rank| rank != me).for_each(&mut look),
            Deps::One(rank) => {
                self.segment(rank)?;
                look(rank);
            }
            Deps::Ranks(ranks) => {
                for &rank in ranks {
                    self.segment(rank)?;
                    look(rank);
                }
            }
            Deps::Step { writer, group } => {
                self.segment(writer)?;
                self.outlook(me, &group.map_or(Deps::All, Deps::Ranks)).or_else(|error| match error {
                    FabricError::PeersLeft => Ok(()),
                    error => Err(error),
                })?;
                look(writer);
            }
        }
        match lost {
            Some(rank) => Err(FabricError::PeerLost { rank }),
            None if all_left => Err(FabricError::PeersLeft),
            None => Ok(()),
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
