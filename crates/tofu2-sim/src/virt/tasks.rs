//! The ranks' tasks, one after the other in one piece of memory: a task costs its own bytes and no
//! allocation, and where the next one to be polled is takes no look.
//!
//! What a rank has produced stands where its task was.

#![allow(unsafe_code)]

use super::{huge_pages::in_huge_pages, prefetch::prefetch};
use rdma_fabric::ProgramResult;
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

/// Never moved once it has been polled: the slots stay where they are, and a task is dropped in its
/// own.
pub(super) struct Tasks<Fut, T>(Vec<Task<Fut, T>>);

enum Task<Fut, T> {
    Running(Fut),
    /// What it has produced, if it has ended well.
    Over(Option<T>),
}

impl<Fut: Future<Output = ProgramResult<T>>, T> Tasks<Fut, T> {
    /// Bytes of each.
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

    /// Asks for a task's memory.
    #[inline]
    pub(super) fn prefetch(&self, rank: u32) {
        prefetch(&self.0[rank as usize]);
    }

    /// Polls a task that is running.
    #[inline]
    pub(super) fn poll(&mut self, rank: u32, cx: &mut Context<'_>) -> Option<Poll<ProgramResult<T>>> {
        match &mut self.0[rank as usize] {
            // SAFETY: it is not moved from here to its end, which comes in its place: nothing is
            // added to the vector after `new`, and nothing here gives a task away or leaves out its
            // drop.
            Task::Running(task) => Some(unsafe { Pin::new_unchecked(task) }.poll(cx)),
            Task::Over(_) => None,
        }
    }

    /// Ends a task. Panics if its drop does, and it has ended nevertheless.
    pub(super) fn end(&mut self, rank: u32, out: Option<T>) {
        self.0[rank as usize] = Task::Over(out);
    }

    /// Takes what has been produced, when all are over.
    pub(super) fn take_outs(&mut self) -> Vec<Option<T>> {
        let out = |task: &mut Task<Fut, T>| match task {
            Task::Running(_) => None,
            Task::Over(out) => out.take(),
        };
        self.0.iter_mut().map(out).collect()
    }

    /// Ends all that are left.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
