//! Operations. They complete when they are posted or when the network interface has executed them;
//! the result may take one additional poll.

use crate::{
    Access,
    delivery::{self, Content},
    fabric::RankHandle,
    memory::CELL,
};
use loom::sync::atomic::Ordering::{Relaxed, Release};
use rdma_fabric::{
    Amo, RemoteAddr, Result, bytemuck,
    provider::{Place, Posted, Sink, Source, Token},
};
use std::{
    mem,
    task::{Context, Poll},
};

/// An operation whose result has not been taken.
#[derive(Debug, Default)]
pub(crate) struct Operation {
    /// Whether the result is delayed by one poll.
    late: bool,
    /// The number of puts that the network interface must have delivered before this operation is
    /// complete.
    delivered: Option<u64>,
    /// For an atomic that carries data: the number of data writes that it covers.
    covers: Option<u64>,
    word: u64,
    /// The bytes that a get has read.
    bytes: Vec<u8>,
}

impl Operation {
    /// Returns an operation that is complete when `delivered` puts have been delivered.
    pub(crate) fn after(delivered: Option<u64>) -> Self {
        Operation { delivered, ..Operation::default() }
    }
}

impl RankHandle {
    pub(crate) fn posted(&self, operation: Operation) -> Posted {
        let late = self.job().config.late_results;
        if !late && operation.delivered.is_none() && operation.covers.is_none() {
            return Posted::Complete(operation.word);
        }
        Posted::Pending(self.under_way.add(Operation { late, ..operation }))
    }

    pub(crate) fn change(&self, word: &Place, amo: Amo<u64>) -> Result<Posted> {
        let (target, cell) = (word.rank(), self.cell(word)?);
        let (order, covers) = self.job().atomic(self.actor(), target);
        let word = self.job().cells.change(target, cell, amo, order);
        self.job().ring(target, cell);
        Ok(self.posted(Operation { covers, word, ..Operation::default() }))
    }

    pub(crate) fn get_cells(&self, from: &Place, to: Sink<'_>) -> Result<Posted> {
        let mut bytes = vec![0; from.len()];
        match to {
            Sink::Bytes(to) => {
                self.copy_out(from, &mut bytes)?;
                let posted = self.posted(Operation { bytes: bytes.clone(), ..Operation::default() });
                if matches!(posted, Posted::Complete(_)) {
                    to.copy_from_slice(&bytes);
                }
                Ok(posted)
            }
            Sink::Place(own) => {
                let (there, here) = (self.cell(from)?, self.cell(own)?);
                // All cells are read before any is written: source and target may overlap.
                let bits: Vec<_> = (0..from.len() / CELL).map(|i| self.job().newest(from.rank(), there + i)).collect();
                bits.into_iter().enumerate().for_each(|(i, bits)| self.write_own(here + i, bits));
                Ok(self.posted(Operation::default()))
            }
        }
    }

    pub(crate) fn result(&self, token: Token, into: Sink<'_>, cx: &mut Context<'_>) -> Poll<u64> {
        let mut operation = self.under_way.take(token).expect("a completed operation was polled again");
        if mem::take(&mut operation.late) {
            cx.waker().wake_by_ref();
            self.under_way.put_back(token, operation);
            return Poll::Pending;
        }
        if let Some(puts) = operation.delivered
            && self.job().poll_delivered(self.actor(), puts).is_pending()
        {
            self.under_way.put_back(token, operation);
            return Poll::Pending;
        }
        if let Some(puts) = operation.covers {
            self.job().atomic_complete(self.actor(), puts);
        }
        if let (Sink::Bytes(into), false) = (into, operation.bytes.is_empty()) {
            into.copy_from_slice(&operation.bytes);
        }
        Poll::Ready(operation.word)
    }

    pub(crate) fn is_complete(&self, token: Token) -> bool {
        let Some(mut operation) = self.under_way.take(token) else { return true };
        operation.delivered = operation.delivered.filter(|puts| !self.job().has_delivered(self.actor(), *puts));
        let complete = !operation.late && operation.delivered.is_none();
        self.under_way.put_back(token, operation);
        complete
    }
}

impl RankHandle {
    /// Puts the same source to each of several places.
    pub(crate) fn put_cells(&self, to: &[Place], from: Source<'_>) -> Result<Posted> {
        let own = if let Source::Place(own) = from { self.cell(own)? } else { 0 };
        let cells = to.iter().map(|to| Ok((to, self.cell(to)?))).collect::<Result<Vec<_>>>()?;
        let mut delivered = None;
        for (i, (to, cell)) in (0..from.len() / CELL).flat_map(|i| cells.iter().map(move |to| (i, *to))) {
            let target = to.rank();
            let from = match &from {
                Source::Bytes(bytes) => Content::Bits(bytemuck::pod_read_unaligned(&bytes[i * CELL..][..CELL])),
                Source::Place(_) if self.job().has_nics() && self.job().cells.is_data(self.me(), own + i) => {
                    Content::Cell(self.me(), own + i)
                }
                Source::Place(_) => Content::Bits(self.job().newest(self.me(), own + i)),
            };
            let addr = RemoteAddr { offset: to.addr().offset + (i * CELL) as u64, ..to.addr() };
            let release = self.order(Access::Put(addr), Release) == Release;
            let put = delivery::Posted { target, cell: cell + i, from, release };
            delivered = self.job().post(self.actor(), put).or(delivered);
        }
        Ok(self.posted(Operation::after(delivered)))
    }

    /// Copies the newest values of a place.
    pub(crate) fn copy_out(&self, from: &Place, into: &mut [u8]) -> Result<()> {
        let cell = self.cell(from)?;
        for (i, chunk) in into.chunks_exact_mut(CELL).enumerate() {
            chunk.copy_from_slice(&self.job().newest(from.rank(), cell + i).to_ne_bytes());
        }
        Ok(())
    }

    pub(crate) fn write_own(&self, cell: usize, bits: u64) {
        // Release: pairs with the acquire of loads, waits and gets. Data in flight is excluded.
        let order = if self.job().puts_release(self.actor()) { Release } else { Relaxed };
        self.job().cells.set(self.me(), cell, bits, order);
        self.job().ring(self.me(), cell);
    }
}
