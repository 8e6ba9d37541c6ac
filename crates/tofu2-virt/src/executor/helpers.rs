//! Polling of helpers, and their end together with their rank.

use super::{Executor, exit::message_of};
use crate::{helpers::HelperFuture, memory::NoStorage};
use rdma_fabric::{ProgramResult, Rank};
use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    task::{Context, Poll},
};
use tofu2_job::{HelperEnd, HelperFailed};

impl Executor<'_, '_> {
    /// Polls the helper on a lane, and the futures it has detached.
    #[cold]
    pub(super) fn poll_helper(&mut self, lane: u32) {
        self.world.take_again();
        if let Some(mut task) = self.world.helpers.take(self.place(lane)) {
            self.polls += 1;
            let mut cx = Context::from_waker(self.world.waker());
            let polled = self.world.run_as(lane, || catch_unwind(AssertUnwindSafe(|| task.as_mut().poll(&mut cx))));
            match polled {
                Ok(Poll::Pending) => self.world.helpers.keep(self.place(lane), task),
                polled => {
                    let dropped = self.drop_helper(lane, task);
                    if let Some(end) = self.end_of_helper(lane, polled).or(dropped) {
                        self.fail_by_helper(lane, end);
                    }
                }
            }
        }
        self.poll_detached(lane);
        self.take_turn(lane);
    }

    /// The position of a lane's helper among all helpers.
    fn place(&self, lane: u32) -> u32 {
        lane - self.tasks.len() as u32
    }

    /// Returns how the helper on a lane has ended, unless it succeeded.
    fn end_of_helper(&self, lane: u32, polled: std::thread::Result<Poll<ProgramResult<()>>>) -> Option<HelperEnd> {
        let name = self.world.helpers.name(self.place(lane));
        match polled {
            Ok(Poll::Ready(Err(error))) => Some(HelperEnd::Failed(HelperFailed { name, error })),
            Ok(_) => None,
            // Not caused by the helper.
            Err(panic) if panic.is::<NoStorage>() => resume_unwind(panic),
            Err(panic) => Some(HelperEnd::Panicked { name, message: message_of(&*panic) }),
        }
    }

    /// Drops a helper's task. Returns how it has ended if that panics.
    fn drop_helper(&self, lane: u32, task: HelperFuture) -> Option<HelperEnd> {
        let dropped = self.world.run_as(lane, || catch_unwind(AssertUnwindSafe(|| drop(task))));
        let name = self.world.helpers.name(self.place(lane));
        dropped.err().map(|panic| HelperEnd::Panicked { name, message: message_of(&*panic) })
    }

    /// Records that a helper has failed: the waits of its rank end, and the rank is lost when its
    /// program has ended.
    fn fail_by_helper(&mut self, lane: u32, end: HelperEnd) {
        let mut core = self.world.core();
        let rank = core.ranks.rank_of(lane);
        core.ranks.helper_failed(rank);
        self.failure.get_or_insert(end.of(Rank::new(rank)));
    }

    /// Drops a rank's remaining helpers. Returns whether that succeeded.
    pub(super) fn end_helpers(&mut self, rank: u32) -> bool {
        let mut well = true;
        loop {
            let lanes = self.world.core().ranks.helpers_of(rank).to_vec();
            let left: Vec<_> =
                lanes.into_iter().filter_map(|lane| Some((lane, self.world.helpers.take(self.place(lane))?))).collect();
            if left.is_empty() {
                return well;
            }
            for (lane, task) in left {
                if let Some(end) = self.drop_helper(lane, task) {
                    self.failure.get_or_insert(end.of(Rank::new(rank)));
                    well = false;
                }
            }
        }
    }
}
