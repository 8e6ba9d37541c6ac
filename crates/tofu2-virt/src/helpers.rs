//! Helpers of simulated ranks: separate tasks, each with its own CPU.
//!
//! The simulator distinguishes actions of a helper from those of its rank's program by the task
//! being polled: the *lane* that runs (`ranks::helpers`). So it does not matter which of the rank's
//! handles a task uses.

use super::{core::Core, memory::Loc, provider::Me};
use rdma_fabric::{FabricError, ProgramResult, Result};
use std::{cell::RefCell, future::Future, pin::Pin};

/// The future that a helper runs.
pub(super) type HelperFuture = Pin<Box<dyn Future<Output = ProgramResult<()>>>>;

/// The tasks of all helpers, by lane from the number of ranks on. None is borrowed while it runs or
/// is dropped.
#[derive(Default)]
pub(super) struct Helpers(RefCell<Vec<Helper>>);

struct Helper {
    name: &'static str,
    /// `None` while it runs, and when it has completed.
    task: Option<HelperFuture>,
}

impl Helpers {
    fn add(&self, name: &'static str, task: HelperFuture) {
        self.0.borrow_mut().push(Helper { name, task: Some(task) });
    }

    /// Takes the task of a helper by its position, if it has not completed: to poll it, or to drop
    /// it.
    pub(super) fn take(&self, place: u32) -> Option<HelperFuture> {
        self.0.borrow_mut().get_mut(place as usize)?.task.take()
    }

    /// Returns a task that has not completed.
    pub(super) fn keep(&self, place: u32, task: HelperFuture) {
        if let Some(helper) = self.0.borrow_mut().get_mut(place as usize) {
            helper.task = Some(task);
        }
    }

    /// Returns a helper's name.
    pub(super) fn name(&self, place: u32) -> &'static str {
        self.0.borrow().get(place as usize).map_or("", |helper| helper.name)
    }

    /// Drops all that are left.
    pub(super) fn clear(&self) {
        for place in 0.. {
            if place as usize >= self.0.borrow().len() {
                break;
            }
            // Taken out of the borrow first: dropping it may start another.
            let task = self.take(place);
            drop(task);
        }
    }
}

impl Me {
    /// Starts a helper, whose CPU is free when that of its starter is.
    pub(super) fn start_helper(&self, name: &'static str, task: HelperFuture) -> Result<()> {
        let starter = self.lane();
        {
            let mut core = self.world.core();
            if !core.ranks.is_running(self.rank) {
                return Err(FabricError::Unsupported { feature: &"a helper of a rank that has ended" });
            }
            let begin = core.now_of(starter);
            core.ranks.add_helper(self.rank, begin);
            if let Some(timeline) = &mut core.timeline {
                timeline.helper(self.rank, name);
            }
        }
        self.world.helpers.add(name, task);
        Ok(())
    }

    /// Records that this rank has written its own memory: wakes the program and the helpers that
    /// wait for it; lanes other than the writer when the writer's CPU has reached this time.
    #[cold]
    pub(super) fn wake_others(&self, core: &mut Core, written: &Loc) {
        let writer = self.lane();
        let now = core.now_of(writer);
        for lane in core.ranks.waiting_for(written) {
            if lane == writer || now <= core.clock.now() {
                core.ranks.wake(lane);
            } else {
                core.clock.wake_at(lane, now);
            }
        }
    }
}
