//! The ranks' tasks, side by side in one piece of memory: a task costs its own bytes and no
//! allocation, and finding the next one to poll takes no look-up.
//!
//! A rank's output takes the place of its task.

#![allow(unsafe_code)]

use super::{huge_pages::in_huge_pages, prefetch::prefetch};
use rdma_fabric::ProgramResult;
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

/// All tasks. A task is never moved once it has been polled: the slots stay where they are, and
/// tasks are dropped in place.
pub(super) struct Tasks<Fut, T>(Vec<Task<Fut, T>>);

enum Task<Fut, T> {
    Running(Fut),
    /// The rank's output, if it has ended well.
    Over(Option<T>),
}

impl<Fut: Future<Output = ProgramResult<T>>, T> Tasks<Fut, T> {
    /// The size of one task's slot in bytes.
    pub(super) const BYTES: usize = size_of::<Task<Fut, T>>();

    pub(super) fn new(futures: impl ExactSizeIterator<Item = Fut>) -> Self {
        let mut tasks = Vec::with_capacity(futures.len());
        in_huge_pages(&mut tasks);
        tasks.extend(futures.map(Task::Running));
        Tasks(tasks)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_running(&self, rank: u32) -> bool {
        matches!(self.0[rank as usize], Task::Running(_))
    }

    /// Prefetches a task.
    #[inline]
    pub(super) fn prefetch(&self, rank: u32) {
        prefetch(&self.0[rank as usize]);
    }

    /// Polls a task. Returns `None` if it is over.
    #[inline]
    pub(super) fn poll(&mut self, rank: u32, cx: &mut Context<'_>) -> Option<Poll<ProgramResult<T>>> {
        match &mut self.0[rank as usize] {
            // SAFETY: the task is not moved from now until it ends, and it ends in place: nothing
            // is added to the vector after `new`, and nothing here gives a task away or skips its
            // drop.
            Task::Running(task) => Some(unsafe { Pin::new_unchecked(task) }.poll(cx)),
            Task::Over(_) => None,
        }
    }

    /// Ends a task. Panics if dropping it does; the task has ended nevertheless.
    pub(super) fn end(&mut self, rank: u32, out: Option<T>) {
        self.0[rank as usize] = Task::Over(out);
    }

    /// Takes the outputs when all tasks are over.
    pub(super) fn take_outs(&mut self) -> Vec<Option<T>> {
        let out = |task: &mut Task<Fut, T>| match task {
            Task::Running(_) => None,
            Task::Over(out) => out.take(),
        };
        self.0.iter_mut().map(out).collect()
    }

    /// Drops all tasks.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
