//! How the channels of a rank make progress.
//!
//! There is no background progress. A task that awaits one of the rank's channels, or one of its
//! collective calls, polls all channels and their waits for local words. If anything changes, it
//! wakes all waiting tasks.

use super::{channels::Channels, results::Results, table};
use crate::Result;
use core::task::{Context, Poll, Waker};
use rdma_fabric::{Fabric, LocalWord};

/// The context in which an end makes progress.
pub(super) struct Turn<'a, 'b> {
    pub(super) fabric: &'a Fabric,
    pub(super) cx: &'a mut Context<'b>,
    pub(super) results: &'a mut Results,
    /// The word that other ranks add to when they request a connection, and its value when this
    /// rank last took requests out of its table.
    pub(super) doorbell: &'a LocalWord<u64>,
    pub(super) rung: u64,
    /// Whether anything has changed that a task may be waiting for.
    pub(super) changed: bool,
}

impl Channels {
    /// Makes progress with all ends without waiting, on behalf of no task.
    pub(super) fn step(&mut self) -> Result<()> {
        self.progress(&mut Context::from_waker(Waker::noop()))?;
        // The waits now hold the no-op waker, so the waiting tasks have to poll again.
        self.wake();
        Ok(())
    }

    /// Makes progress on behalf of a task that awaits something else; with `None`, the task has
    /// stopped waiting, and the other tasks take over.
    pub(crate) fn advance(&mut self, cx: Option<&mut Context<'_>>) -> Result<()> {
        match cx {
            _ if self.ends.is_empty() => {}
            Some(cx) => {
                self.progress(cx)?;
                self.remember(cx);
            }
            None => self.wake(),
        }
        Ok(())
    }

    /// Makes progress with all ends without waiting.
    pub(super) fn progress(&mut self, cx: &mut Context<'_>) -> Result<()> {
        let finished = self.results.finished;
        let mut changed = false;
        loop {
            self.take_asks(cx)?;
            let Channels { fabric, results, doorbell, rung, ends, watch, taking, .. } = self;
            let (fabric, doorbell, rung) = (&*fabric, &*doorbell, *rung);
            let mut turn = Turn { fabric, cx, results, doorbell, rung, changed: false };
            let mut awaited = false;
            ends.retain_mut(|(_, ended)| {
                let over = ended.advance(&mut turn);
                awaited |= !over && ended.end.waits_to_be_asked();
                !over
            });
            if awaited
                && taking.is_none()
                // The waits of the ends name their peers; this wait is for requests of any rank.
                && let Poll::Ready(rings) = watch.poll(&mut turn, doorbell, fabric.rank(), rung)
            {
                rings?;
            }
            changed |= turn.changed;
            if taking.is_some() || fabric.load(doorbell)? == rung {
                break;
            }
        }
        if changed || self.results.finished != finished {
            // This includes the polling task, which may have polled other futures earlier.
            self.wake();
        }
        Ok(())
    }

    /// Takes pending connection requests out of the table.
    fn take_asks(&mut self, cx: &mut Context<'_>) -> Result<()> {
        loop {
            if let Some(taking) = &mut self.taking {
                let Poll::Ready(asks) = taking.as_mut().poll(cx) else { return Ok(()) };
                self.taking = None;
                for ask in asks? {
                    match self.expected.remove(&ask.asker) {
                        Some(end) => self.connect(end, ask),
                        None => {
                            self.unmatched.insert(ask.asker, ask);
                        }
                    }
                }
            }
            let rung = self.fabric.load(&self.doorbell)?;
            if rung == self.rung {
                return Ok(());
            }
            self.rung = rung;
            let entries = self.options.table_entries as u64;
            self.taking = Some(Box::pin(table::take(self.fabric.clone(), self.table, entries)));
        }
    }

    /// Registers the waker of a waiting task.
    pub(super) fn remember(&mut self, cx: &Context<'_>) {
        if !self.wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
            self.wakers.push(cx.waker().clone());
        }
    }

    /// Wakes all waiting tasks: the waits hold the waker of the last task that polled, which is
    /// gone.
    pub(super) fn wake(&mut self) {
        self.wakers.drain(..).for_each(Waker::wake);
    }
}
