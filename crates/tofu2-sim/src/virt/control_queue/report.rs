//! What a queue reports, and who is told that it has.

use super::super::{core::Core, watch::What};
use super::state::Trouble;
use rdma_fabric::control_queue::{Completion, MrqNotice, QueueError};

/// What of a queue somebody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Want {
    /// Room in the TOQ.
    Room,
    /// A completion.
    Completion,
    /// A notice.
    Notice,
}

impl Core {
    /// A completion that will be in the TCQ at this time.
    pub(super) fn completed(&mut self, queue: u32, at: u64, completion: Completion) {
        let at = at.saturating_add(self.completion_late(queue));
        let state = self.queues.get_mut(queue);
        // Never before the one before it.
        let at = state.tcq.back().map_or(at, |(last, _)| at.max(*last));
        state.tcq.push_back((at, completion));
        let rank = state.rank;
        if self.awaits(rank, queue, Some(Want::Completion)) {
            self.wake_at(rank, at);
        }
    }

    /// A notice for the MRQ. One too many stops the queue.
    pub(super) fn notify(&mut self, queue: u32, notice: MrqNotice) {
        let overflows = self.overflows(queue);
        let state = self.queues.get_mut(queue);
        if overflows || state.mrq.len() >= state.mrq_depth as usize {
            let error = QueueError::MrqOverflow { queue: state.id, depth: state.mrq_depth };
            return self.stop(queue, error);
        }
        state.mrq.push_back(notice);
        let rank = state.rank;
        if self.awaits(rank, queue, Some(Want::Notice)) {
            self.wake(rank);
        }
    }

    /// A command that asked for no report has failed: the first such error is kept for the next call.
    pub(super) fn unasked(&mut self, queue: u32, error: QueueError) {
        let state = self.queues.get_mut(queue);
        if state.trouble == Trouble::None {
            state.trouble = Trouble::Command(error);
            let rank = state.rank;
            if self.awaits(rank, queue, None) {
                self.wake(rank);
            }
        }
    }

    /// Nothing of the queue is executed from now on.
    pub(super) fn stop(&mut self, queue: u32, error: QueueError) {
        let state = self.queues.get_mut(queue);
        if !state.has_stopped() {
            state.trouble = Trouble::Stopping(error);
            let rank = state.rank;
            if self.awaits(rank, queue, None) {
                self.wake(rank);
            }
        }
    }

    /// Whether the rank waits for this, or for anything, of the queue and was not told since it looked last: once is enough, and a
    /// busy rank is told when it isn't any more.
    #[inline]
    pub(super) fn awaits(&mut self, rank: u32, queue: u32, want: Option<Want>) -> bool {
        let state = &mut self.ranks[rank as usize];
        state.watching > 0
            && state.existing().is_some_and(|extra| {
                let mut tell = false;
                for watch in &mut extra.watches {
                    if let What::Queue(other, what) = watch.what
                        && other == queue
                        && want.is_none_or(|want| want == what)
                    {
                        tell |= !std::mem::replace(&mut watch.told, true);
                    }
                }
                tell
            })
    }

    // ----- what the owner sees; what came before the queue stopped can be taken first ----------

    /// The next completion, if it is there now.
    pub(super) fn poll_tcq(&mut self, queue: u32) -> Result<Option<Completion>, QueueError> {
        let now = self.now_of(self.queues.get(queue).rank);
        let state = self.queues.get_mut(queue);
        if let Some(error) = state.take_command_error() {
            return Err(error);
        }
        match state.tcq.front() {
            Some(&(at, completion)) if at <= now => {
                state.tcq.pop_front();
                Ok(Some(completion))
            }
            Some(_) => Ok(None),
            None => state.end().map_or(Ok(None), Err),
        }
    }

    /// When the next completion is there, if that is known.
    pub(super) fn completion_at(&self, queue: u32) -> Option<u64> {
        self.queues.get(queue).tcq.front().map(|(at, _)| *at)
    }

    /// The next notice.
    pub(super) fn poll_mrq(&mut self, queue: u32) -> Result<Option<MrqNotice>, QueueError> {
        let state = self.queues.get_mut(queue);
        if let Some(error) = state.take_command_error() {
            return Err(error);
        }
        match state.mrq.pop_front() {
            None => state.end().map_or(Ok(None), Err),
            notice => Ok(notice),
        }
    }
}
