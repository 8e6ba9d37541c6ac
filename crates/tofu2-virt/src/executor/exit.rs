//! The ends of ranks: their tasks and their detached futures.

use super::Executor;
use crate::JobError;
use rdma_fabric::{Rank, Time};
use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    task::{Context, Poll},
};

impl Executor<'_, '_> {
    /// Ends the ranks of nodes that have stopped.
    #[cold]
    pub(super) fn end_stopped(&mut self, nodes: &[u32]) {
        let per_node = self.world.core().machine.ranks_per_node;
        let ranks = self.tasks.len() as u32;
        for &node in nodes {
            for rank in node * per_node..(node * per_node).saturating_add(per_node).min(ranks) {
                let runs = self.tasks.is_running(rank);
                let ends = runs || self.ending.remove(&rank).is_some();
                if runs {
                    // The rank has no further effects, not even through its futures when they are
                    // dropped: futures that they detach are dropped too.
                    let _ = catch_unwind(AssertUnwindSafe(|| self.tasks.end(rank)));
                    self.end_helpers(rank);
                }
                let helpers = self.world.core().ranks.helpers_of(rank).to_vec();
                for lane in [rank].into_iter().chain(helpers) {
                    while self.world.detached.has(lane) {
                        drop(self.world.detached.take(lane));
                    }
                }
                if ends {
                    self.failure.get_or_insert_with(|| JobError::RankFailed {
                        rank: Rank::new(rank),
                        error: "its node stopped, as told".into(),
                    });
                    self.leave(rank, false);
                }
            }
        }
    }

    /// Polls the detached futures of a rank's program or a helper, and those that they detach in turn.
    #[cold]
    pub(super) fn poll_detached(&mut self, lane: u32) {
        let rank = self.world.core().ranks.rank_of(lane);
        let mut cx = Context::from_waker(self.world.waker());
        let (mut kept, mut panicked, mut had) = (Vec::new(), false, false);
        loop {
            let batch = self.world.detached.take(lane);
            if batch.is_empty() {
                break;
            }
            had = true;
            for mut rest in batch {
                let polled = self.world.run_as(lane, || {
                    catch_unwind(AssertUnwindSafe(|| match rest.as_mut().poll(&mut cx) {
                        Poll::Pending => Some(rest),
                        Poll::Ready(()) => None,
                    }))
                });
                match polled {
                    Ok(rest) => kept.extend(rest),
                    Err(panic) => {
                        let message = message_of(&*panic);
                        self.failure.get_or_insert(JobError::RankPanicked { rank: Rank::new(rank), message });
                        panicked = true;
                    }
                }
            }
        }
        if had && kept.is_empty() {
            // The task may have continued a wait only because of futures that have finished now.
            self.world.waker().wake_by_ref();
        }
        self.world.detached.keep(lane, kept);
        if panicked && self.tasks.is_running(rank) {
            return self.end(rank, false);
        }
        if !self.world.has_detached(rank)
            && let Some(well) = self.ending.remove(&rank)
        {
            self.leave(rank, well && !panicked);
        } else if panicked {
            self.ending.insert(rank, false);
        }
    }

    /// Ends a rank's task, successfully or not. The rank itself ends when its detached futures have
    /// finished as well.
    pub(super) fn end(&mut self, rank: u32, well: bool) {
        // Dropping the task deregisters its memory. A panic during that no longer has any effect.
        let dropped = catch_unwind(AssertUnwindSafe(|| self.tasks.end(rank)));
        if let Err(panic) = &dropped {
            let message = message_of(&**panic);
            self.failure.get_or_insert(JobError::RankPanicked { rank: Rank::new(rank), message });
        }
        let (has_helpers, failed) = {
            let core = self.world.core();
            (core.ranks.has_helpers(), core.ranks.has_helper_failed(rank))
        };
        let helpers_well = !has_helpers || self.end_helpers(rank) && !failed;
        let well = well && dropped.is_ok() && helpers_well;
        if self.world.has_detached(rank) {
            self.ending.insert(rank, well);
            let helpers = self.world.core().ranks.helpers_of(rank).to_vec();
            [rank].into_iter().chain(helpers).for_each(|lane| self.poll_detached(lane));
        } else {
            self.leave(rank, well);
        }
    }

    fn leave(&mut self, rank: u32, well: bool) {
        self.left -= 1;
        let mut core = self.world.core();
        self.finish_times[rank as usize] = Time::from_picos(core.now_of(rank));
        core.end_of(rank, well);
    }
}

pub(super) fn message_of(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "(no text)".to_owned(),
    }
}
