//! The destination of a segmented buffer.

use super::Buffer;
use crate::{
    AcpError, Result,
    channel::{
        link::{Answer, CLOSED, LocalSide, Telling, Watch},
        progress::Turn,
        results::Done,
        table::Ask,
    },
};
use core::task::Poll;
use rdma_fabric::RemoteAddr;

/// The side that takes segments.
pub(in crate::channel) struct Destination {
    pub(in crate::channel) local: LocalSide,
    pub(in crate::channel) buffer: Buffer,
    /// The source's connection request, and whether the program has requested the connection.
    pub(in crate::channel) ask: Option<Ask>,
    connecting: bool,
    asked: Watch,
    telling: Option<Telling>,
    linked: bool,
    pub(in crate::channel) head: u64,
    pub(in crate::channel) tail: u64,
    closing: bool,
    closed: [bool; 2],
    pub(in crate::channel) freed: Option<u64>,
}

impl Destination {
    pub(in crate::channel) fn new(local: LocalSide, buffer: Buffer) -> Self {
        Destination {
            local,
            buffer,
            ask: None,
            connecting: false,
            asked: Watch::default(),
            telling: None,
            linked: false,
            head: 0,
            tail: 0,
            closing: false,
            closed: [false; 2],
            freed: None,
        }
    }

    pub(in crate::channel) fn connect(&mut self) {
        self.connecting = true;
    }

    pub(in crate::channel) fn is_connected(&self) -> bool {
        self.linked && self.closed == [false; 2] && !self.closing
    }

    pub(in crate::channel) fn was_connected(&self) -> bool {
        self.linked
    }

    pub(in crate::channel) fn is_closing(&self) -> bool {
        self.closing
    }

    pub(in crate::channel) fn is_complete(&self) -> bool {
        self.closed == [true; 2] || !self.connecting
    }

    /// Gives the oldest segment back.
    pub(in crate::channel) fn ready(&mut self) -> Result<()> {
        match () {
            () if !self.linked || self.closing => Err(AcpError::NotConnected { peer: self.local.peer }),
            () if self.head == self.tail => Err(AcpError::NoSegment { peer: self.local.peer }),
            () => {
                self.head += 1;
                Ok(())
            }
        }
    }

    pub(in crate::channel) fn disconnect(&mut self) {
        self.closing = true;
    }

    pub(in crate::channel) fn free(&mut self, request: u64) {
        (self.closing, self.freed) = (true, Some(request));
    }

    pub(in crate::channel) fn advance(&mut self, turn: &mut Turn<'_, '_>) -> Result<bool> {
        loop {
            if self.is_complete() {
                let Some(request) = self.freed else { return Ok(false) };
                turn.results.finish(request, Ok(Done::Freed));
                return Ok(true);
            }
            if self.telling.is_none() && !self.answer(turn)? {
                return Ok(false);
            }
            let word = self.local.load(turn.fabric)?;
            let tail = word & !CLOSED;
            if tail < self.tail || tail - self.head > self.buffer.segments {
                return Err(self.local.corrupt(&"the tail of a segmented buffer"));
            }
            (self.tail, self.closed[1]) = (tail, word & CLOSED != 0);
            let head = self.head + 1;
            if let Some(telling) = &mut self.telling {
                if self.closing {
                    self.closed[0] = telling.poll(turn, head | CLOSED)?;
                } else if !self.closing && telling.poll(turn, head)? && !self.linked {
                    // The source has received the answer, and makes the same check.
                    let (bytes, segments) = self.ask.map_or((0, 0), |ask| (ask.slot_bytes, ask.slots));
                    self.buffer.check(&self.local, bytes, segments)?;
                    self.linked = true;
                    turn.changed = true;
                }
            }
            if self.is_complete() {
                turn.changed = true;
                continue;
            }
            match self.local.poll_change(turn) {
                Poll::Pending => return Ok(false),
                Poll::Ready(changed) => changed?,
            }
        }
    }

    /// Answers the source's request, if there is one; returns whether it did.
    fn answer(&mut self, turn: &mut Turn<'_, '_>) -> Result<bool> {
        let Some(ask) = self.ask else {
            let (doorbell, rung) = (turn.doorbell, turn.rung);
            return match self.asked.poll(turn, doorbell, self.local.place, rung) {
                Poll::Pending => Ok(false),
                Poll::Ready(rung) => rung.map(|()| false),
            };
        };
        let (tail, data, data_at) = (self.local.region.key(), self.buffer.at.region, self.buffer.at.offset);
        let (slots, slot_bytes) = (self.buffer.segments, self.buffer.segment_bytes as u64);
        let answer = Answer { tail, data, data_at, slots, slot_bytes };
        let block = RemoteAddr { rank: self.local.place, region: ask.block, offset: 0 };
        // From the answer, the source detects segments that differ.
        self.telling = Some(Telling::new(turn.fabric, answer, block)?);
        turn.changed = true;
        Ok(true)
    }
}
