//! The ranks' tasks, side by side in one allocation: a task costs only its own bytes, no separate
//! allocation, and finding the next one to poll takes no look-up.
//!
//! A rank's output takes the place of its task.
//!
//! Code that depends on the program is compiled again for each program, so it is kept small: plain
//! loops, since each iterator adapter would add many functions.

#![allow(unsafe_code)]

use super::{huge_pages::in_huge_pages, prefetch::prefetch};
use rdma_fabric::{Fabric, ProgramResult};
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};
use tofu2_job::poll_apart;

/// Tasks of any program: code that uses this trait is compiled once, not again for each program.
pub(super) trait Table {
    fn len(&self) -> usize;

    fn is_running(&self, rank: u32) -> bool;

    /// Prefetches a task.
    fn prefetch(&self, rank: u32);

    /// Polls a task. Returns `None` if it has completed. If it is ready, [`Table::end`] must be
    /// called next.
    fn poll(&mut self, rank: u32, cx: &mut Context<'_>) -> Option<Poll<ProgramResult<()>>>;

    /// Ends a task. Panics if dropping it does; the task has ended nevertheless.
    fn end(&mut self, rank: u32);

    /// Drops all tasks, unless all have completed, in which case their outputs are kept.
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
    /// The rank's output, if it has succeeded.
    Complete(Option<T>),
}

/// Returns the bytes of the slot of a task that is created by this function.
pub(super) fn bytes<Fut: Future<Output = ProgramResult<T>>, T>(_: &impl Fn(Fabric) -> Fut) -> usize {
    size_of::<Task<Fut, T>>()
}

impl<Fut: Future<Output = ProgramResult<T>>, T> Tasks<Fut, T> {
    /// Makes a task for each rank below `ranks`.
    pub(super) fn new(ranks: u32, make: impl Fn(u32) -> Fut) -> Self {
        let mut slots = Vec::with_capacity(ranks as usize);
        in_huge_pages(&mut slots);
        for rank in 0..ranks {
            slots.push(Task::Running(make(rank)));
        }
        Tasks { slots, out: None }
    }

    /// Takes the outputs when all tasks have completed.
    pub(super) fn take_outs(&mut self) -> Vec<Option<T>> {
        let mut outs = Vec::with_capacity(self.slots.len());
        for task in &mut self.slots {
            outs.push(match task {
                Task::Running(_) => None,
                Task::Complete(out) => out.take(),
            });
        }
        outs
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
        // added to the vector after `new`, and no code here moves a task out or skips its drop.
        let task = unsafe { Pin::new_unchecked(task) };
        Some(poll_apart(task, cx).map_ok(|out| self.out = Some(out)))
    }

    fn end(&mut self, rank: u32) {
        self.slots[rank as usize] = Task::Complete(self.out.take());
    }

    fn clear(&mut self) {
        for rank in 0..self.slots.len() {
            if self.is_running(rank as u32) {
                return self.slots.clear();
            }
        }
    }
}
