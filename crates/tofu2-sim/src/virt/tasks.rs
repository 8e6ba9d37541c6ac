//! The ranks' tasks, side by side in one piece of memory: a task costs its own bytes and no
//! allocation, and finding the next one to poll takes no look-up.
//!
//! A rank's output takes the place of its task.

#![allow(unsafe_code)]

use super::{huge_pages::in_huge_pages, prefetch::prefetch};
use crate::poll_apart::poll_apart;
use rdma_fabric::{Fabric, ProgramResult};
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

/// Tasks of any program: what is written over it is compiled once, not for each program again.
pub(super) trait Table {
    fn len(&self) -> usize;

    fn is_running(&self, rank: u32) -> bool;

    /// Prefetches a task.
    fn prefetch(&self, rank: u32);

    /// Polls a task. Returns `None` if it is over. If it is ready, [`Table::end`] is next.
    fn poll(&mut self, rank: u32, cx: &mut Context<'_>) -> Option<Poll<ProgramResult<()>>>;

    /// Ends a task. Panics if dropping it does; the task has ended nevertheless.
    fn end(&mut self, rank: u32);

    /// Drops all tasks unless all are over, and so their outputs are wanted.
    fn clear(&mut self);
}

/// The tasks of a program.
pub(super) struct Tasks<Fut, T> {
    /// By rank. A task is never moved once it has been polled: the slots stay where they are, and
    /// tasks are dropped in place.
    slots: Vec<Task<Fut, T>>,
    /// The output of the task that was polled last, if that was ready and has not ended yet.
    out: Option<T>,
}

enum Task<Fut, T> {
    Running(Fut),
    /// The rank's output, if it has ended well.
    Over(Option<T>),
}

/// Returns the bytes of a task's slot if tasks are made like this.
pub(super) fn bytes<Fut: Future<Output = ProgramResult<T>>, T>(_: &impl Fn(Fabric) -> Fut) -> usize {
    size_of::<Task<Fut, T>>()
}

impl<Fut: Future<Output = ProgramResult<T>>, T> Tasks<Fut, T> {
    pub(super) fn new(futures: impl ExactSizeIterator<Item = Fut>) -> Self {
        let mut slots = Vec::with_capacity(futures.len());
        in_huge_pages(&mut slots);
        slots.extend(futures.map(Task::Running));
        Tasks { slots, out: None }
    }

    /// Takes the outputs when all tasks are over.
    pub(super) fn take_outs(&mut self) -> Vec<Option<T>> {
        let out = |task: &mut Task<Fut, T>| match task {
            Task::Running(_) => None,
            Task::Over(out) => out.take(),
        };
        self.slots.iter_mut().map(out).collect()
    }
}

impl<Fut: Future<Output = ProgramResult<T>>, T> Table for Tasks<Fut, T> {
    fn len(&self) -> usize {
        self.slots.len()
    }

    fn is_running(&self, rank: u32) -> bool {
        matches!(self.slots[rank as usize], Task::Running(_))
    }

    fn prefetch(&self, rank: u32) {
        prefetch(&self.slots[rank as usize]);
    }

    fn poll(&mut self, rank: u32, cx: &mut Context<'_>) -> Option<Poll<ProgramResult<()>>> {
        let Task::Running(task) = &mut self.slots[rank as usize] else { return None };
        // SAFETY: the task is not moved from now until it ends, and it ends in place: nothing is
        // added to the vector after `new`, and nothing here gives a task away or skips its drop.
        let task = unsafe { Pin::new_unchecked(task) };
        Some(poll_apart(task, cx).map_ok(|out| self.out = Some(out)))
    }

    fn end(&mut self, rank: u32) {
        self.slots[rank as usize] = Task::Over(self.out.take());
    }

    fn clear(&mut self) {
        if self.slots.iter().any(|task| matches!(task, Task::Running(_))) {
            self.slots.clear();
        }
    }
}
