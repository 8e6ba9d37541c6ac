//! How the channels of a rank make progress.
//!
//! Nobody works in the background. Whoever awaits anything of a rank's channels, or one of its
//! collective calls, polls all of them, and their waits for own words; whatever that brings about
//! wakes the tasks that wait.

use super::{channels::Channels, results::Results, table};
use crate::Result;
use core::task::{Context, Poll, Waker};
use rdma_fabric::{Fabric, LocalWord};

/// What an end needs to make progress.
pub(super) struct Turn<'a, 'b> {
    pub(super) fabric: &'a Fabric,
    pub(super) cx: &'a mut Context<'b>,
    pub(super) results: &'a mut Results,
    /// The word that those have changed who have asked to connect, and what it was when this rank
    /// last took requests out of its table.
    pub(super) bell: &'a LocalWord<u64>,
    pub(super) rung: u64,
    /// Whether anything has happened that somebody may wait for.
    pub(super) changed: bool,
}

impl Channels {
    /// Does for all ends what can be done now, though nobody waits.
    pub(super) fn step(&mut self) -> Result<()> {
        self.progress(&mut Context::from_waker(Waker::noop()))?;
        // The waits have lost the waker of whoever does.
        self.wake();
        Ok(())
    }

    /// Goes on while a task of this rank awaits something else, or `None` if it no longer does.
    pub(crate) fn go_on(&mut self, cx: Option<&mut Context<'_>>) -> Result<()> {
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

    /// Does for all ends what can be done now.
    pub(super) fn progress(&mut self, cx: &mut Context<'_>) -> Result<()> {
        let finished = self.results.finished;
        let mut changed = false;
        loop {
            self.take_asks(cx)?;
            let Channels { fabric, results, bell, rung, ends, watch, taking, .. } = self;
            let (fabric, bell, rung) = (&*fabric, &*bell, *rung);
            let mut turn = Turn { fabric, cx, results, bell, rung, changed: false };
            let mut awaited = false;
            ends.retain(|_, ended| {
                let over = ended.advance(&mut turn);
                awaited |= !over && ended.end.waits_to_be_asked();
                !over
            });
            if awaited
                && taking.is_none()
                // The ends know which ranks they wait for; this wait is for requests of any.
                && let Poll::Ready(rings) = watch.poll(&mut turn, bell, fabric.rank(), rung)
            {
                rings?;
            }
            changed |= turn.changed;
            if taking.is_some() || fabric.load(bell)? == rung {
                break;
            }
        }
        if changed || self.results.finished != finished {
            // The task that polls, too: it may have several futures, and have polled others before.
            self.wake();
        }
        Ok(())
    }

    /// Takes requests to connect out of the table, if there are any.
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
            let rung = self.fabric.load(&self.bell)?;
            if rung == self.rung {
                return Ok(());
            }
            self.rung = rung;
            let entries = self.options.table_entries as u64;
            self.taking = Some(Box::pin(table::take(self.fabric.clone(), self.table, entries)));
        }
    }

    /// Keeps the waker of a task that waits.
    pub(super) fn remember(&mut self, cx: &Context<'_>) {
        if !self.wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
            self.wakers.push(cx.waker().clone());
        }
    }

    /// Wakes all tasks that wait: the one that polled last, whose waker the waits have, has gone.
    pub(super) fn wake(&mut self) {
        self.wakers.drain(..).for_each(Waker::wake);
    }
}
