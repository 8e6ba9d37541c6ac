//! Puts in flight, and the writes that they release.

use crate::{
    Access, Delivery, Job,
    job::{Actor, DELIVERED},
};
use loom::{
    sync::atomic::{
        Ordering::{self, AcqRel, Acquire, Relaxed, Release},
        fence,
    },
    thread,
};
use rdma_fabric::{PutOrder, Rank};

/// A put to one cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posted {
    pub(crate) target: Rank,
    pub(crate) cell: usize,
    pub(crate) from: Content,
    /// Whether the put releases the poster's earlier operations.
    pub(crate) release: bool,
}

/// The content of a put.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Content {
    Bits(u64),
    /// The value that this cell holds at delivery.
    Cell(Rank, usize),
}

impl Job {
    /// Returns whether separate threads deliver the puts.
    pub(crate) fn has_nics(&self) -> bool {
        self.config.delivery == Delivery::Nic && self.cells.are_shared()
    }

    /// Posts a put. If it does not complete immediately, returns the number of puts that must have
    /// been delivered before it is complete.
    pub(crate) fn post(&self, me: Actor, put: Posted) -> Option<u64> {
        let to_data = self.cells.is_data(put.target, put.cell);
        if to_data {
            self.data_put(me);
        }
        let put = Posted { release: put.release && self.puts_release(me), ..put };
        if self.config.delivery == Delivery::AtPost || !self.cells.are_shared() {
            self.deliver(&put);
            return None;
        }
        let state = &mut self.states()[me.task];
        state.pending.push_back(put);
        state.posted += 1;
        if let Some(nic) = &state.nic {
            nic.unpark();
        }
        matches!(put.from, Content::Cell(..)).then_some(state.posted)
    }

    fn deliver(&self, put: &Posted) {
        let bits = match put.from {
            Content::Bits(bits) => bits,
            Content::Cell(rank, cell) => self.newest(rank, cell),
        };
        // Release: pairs with the acquire in `newest` and of atomics.
        self.cells.set(put.target, put.cell, bits, if put.release { Release } else { Relaxed });
        self.ring(put.target, put.cell);
    }

    /// Delivers the pending puts of `me`, to one target or to all, if its own thread has to deliver
    /// them ([`Delivery::AtFlush`]).
    pub(crate) fn drain(&self, me: Actor, target: Option<Rank>) {
        if self.config.delivery != Delivery::AtFlush {
            return;
        }
        loop {
            let next = {
                let pending = &mut self.states()[me.task].pending;
                let place = pending.iter().position(|put| target.is_none_or(|t| t == put.target));
                place.and_then(|place| pending.remove(place))
            };
            let Some(put) = next else { return };
            self.deliver(&put);
        }
    }

    /// Starts a flush. Returns the number of puts that must be delivered before the flush may call
    /// [`covered`](Job::covered).
    pub(crate) fn begin_flush(&self, me: Actor, target: Option<Rank>) -> u64 {
        self.drain(me, target);
        if self.config.delivery != Delivery::Nic {
            return 0;
        }
        let state = &self.states()[me.task];
        let last = state.pending.iter().rposition(|put| target.is_none_or(|t| t == put.target));
        last.map_or(0, |last| state.posted - (state.pending.len() - last - 1) as u64)
    }

    /// Completes a flush: every later operation of this task also releases the writes before the
    /// flush.
    pub(crate) fn covered(&self, me: Actor) {
        if !(self.config.relaxed)(Access::Flush) {
            fence(Release);
        }
        self.states()[me.task].data_in_flight = false;
    }

    /// Runs the network interface of a rank's program: the body of its thread.
    pub(crate) fn nic(&self, me: Actor) {
        loop {
            let next = {
                let state = &self.states()[me.task];
                match state.pending.front() {
                    Some(put) => Some(*put),
                    None if state.closing => return,
                    None => None,
                }
            };
            let Some(put) = next else {
                thread::park();
                continue;
            };
            self.deliver(&put);
            self.delivered[me.rank.index()].fetch_add(1, Release);
            self.states()[me.task].pending.pop_front();
            self.ring(me.rank, DELIVERED);
        }
    }

    /// Records a write of data: until the next flush, this task's operations release only the
    /// operations before the write.
    pub(crate) fn data_put(&self, me: Actor) {
        let state = &mut self.states()[me.task];
        state.data_puts += 1;
        if !state.data_in_flight {
            fence(Release);
            state.data_in_flight = true;
        }
    }

    /// Returns whether this task's puts and stores release all of its earlier operations, rather
    /// than only those that its last flush covered.
    pub(crate) fn puts_release(&self, me: Actor) -> bool {
        !self.states()[me.task].data_in_flight
    }

    /// Prepares an atomic of this rank on a word of `target`. Returns its memory order and, if
    /// unflushed data becomes visible with the atomic, the number of data writes that become
    /// visible before it.
    pub(crate) fn atomic(&self, me: Actor, target: Rank) -> (Ordering, Option<u64>) {
        let order = self.config.caps.put_order;
        if order > PutOrder::None {
            self.drain(me, Some(target).filter(|_| order == PutOrder::SameTarget));
        }
        // Release: pairs with the acquire of later atomics, gets and waits. Data in flight is
        // excluded.
        let state = &self.states()[me.task];
        let order = if order > PutOrder::None || !state.data_in_flight { AcqRel } else { Acquire };
        (order, (order == AcqRel && state.data_in_flight).then_some(state.data_puts))
    }

    /// Records that an atomic is complete before which `puts` writes of data become visible.
    pub(crate) fn atomic_complete(&self, me: Actor, puts: u64) {
        if self.states()[me.task].data_puts == puts {
            self.covered(me);
        }
    }
}
