//! What a rank knows of its side of a segmented buffer.
//!
//! The counters never go back, and `head <= sent <= tail <= head + segments`: the tail counts the
//! segments that the source has filled, *sent* those that are known to be visible at the destination, the head
//! those that the destination has given back.

use super::{
    channels::{Done, Turn},
    link::{Answer, CLOSED, Far, Near, Telling, Watch},
    table::Ask,
};
use crate::{AcpError, Result, SegmentsDiffer};
use core::task::Poll;
use core::ops::Range;
use rdma_fabric::{Fabric, LocalSpan, RemoteAddr, op::Put, provider::Boxed};

/// The memory of one side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffer {
    pub(super) at: RemoteAddr,
    pub(super) segment_bytes: usize,
    pub(super) segments: u64,
}

impl Buffer {
    pub(super) fn bytes(&self) -> usize {
        self.segment_bytes * self.segments as usize
    }

    /// Compares with the other side.
    fn check(&self, near: &Near, bytes: u64, segments: u64) -> Result<()> {
        let (here, there) = ((self.segment_bytes as u64, self.segments), (bytes, segments));
        if here == there {
            return Ok(());
        }
        Err(AcpError::SegmentsDiffer(Box::new(SegmentsDiffer { peer: near.peer, here, there })))
    }
}

enum Link {
    /// Not asked for by the program.
    Idle(Boxed<'static, Result<()>>),
    Asking(Boxed<'static, Result<()>>),
    Asked,
    Linked(Far),
}

/// The side that fills segments.
pub(super) struct Source {
    pub(super) near: Near,
    link: Link,
    pub(super) buffer: Buffer,
    data: LocalSpan<u8>,
    pub(super) head: u64,
    pub(super) tail: u64,
    pub(super) sent: u64,
    /// What puts segments, and how many will have been sent then.
    flight: Option<(Boxed<'static, Result<()>>, u64)>,
    closing: bool,
    /// Whether each side has told the other that it changes nothing there any more.
    closed: [bool; 2],
    pub(super) freed: Option<u64>,
}

impl Source {
    pub(super) fn new(near: Near, asking: Boxed<'static, Result<()>>, buffer: Buffer, data: LocalSpan<u8>) -> Self {
        let link = Link::Idle(asking);
        let (flight, closing, closed, freed) = (None, false, [false; 2], None);
        Source { near, link, buffer, data, head: 0, tail: 0, sent: 0, flight, closing, closed, freed }
    }

    pub(super) fn connect(&mut self) {
        self.link = match core::mem::replace(&mut self.link, Link::Asked) {
            Link::Idle(asking) => Link::Asking(asking),
            link => link,
        };
    }

    pub(super) fn is_connected(&self) -> bool {
        matches!(self.link, Link::Linked(_)) && self.closed == [false; 2] && !self.closing
    }

    pub(super) fn is_over(&self) -> bool {
        self.closed == [true; 2] || matches!(self.link, Link::Idle(_))
    }

    /// Hands the next segment over.
    pub(super) fn ack(&mut self) -> Result<()> {
        match () {
            () if !self.is_connected() => Err(AcpError::NotConnected { peer: self.near.peer }),
            () if self.tail - self.head == self.buffer.segments => Err(AcpError::NoSegment { peer: self.near.peer }),
            () => {
                self.tail += 1;
                Ok(())
            }
        }
    }

    pub(super) fn disconnect(&mut self) {
        self.closing = true;
    }

    pub(super) fn free(&mut self, request: u64) {
        (self.closing, self.freed) = (true, Some(request));
    }

    pub(super) fn advance(&mut self, turn: &mut Turn<'_, '_>) -> Result<bool> {
        if let Link::Asking(asking) = &mut self.link {
            match asking.as_mut().poll(turn.cx) {
                Poll::Pending => return Ok(false),
                Poll::Ready(asked) => asked?,
            }
            self.link = Link::Asked;
        }
        loop {
            self.look(turn)?;
            if let Some((flight, sent)) = &mut self.flight {
                let Poll::Ready(done) = flight.as_mut().poll(turn.cx) else { return Ok(false) };
                self.sent = *sent & !CLOSED;
                self.closed[0] = sent != &self.sent;
                self.flight = None;
                turn.changed = true;
                done?;
                continue;
            }
            if self.is_over() {
                let Some(request) = self.freed else { return Ok(false) };
                turn.results.finish(request, Ok(Done::Freed));
                return Ok(true);
            }
            if let Link::Linked(far) = &self.link
                && !self.closed[0]
                && (self.sent < self.tail || self.closing)
            {
                let closed = if self.closing { CLOSED } else { 0 };
                let stretch = self.sent..self.tail;
                let work = put_segments(turn.fabric.clone(), far.clone(), self.data.clone(), stretch, closed);
                self.flight = Some((Box::pin(work), self.tail | closed));
                continue;
            }
            match self.near.poll_change(turn) {
                Poll::Pending => return Ok(false),
                Poll::Ready(changed) => changed?,
            }
        }
    }

    /// Looks at what the destination has written.
    fn look(&mut self, turn: &mut Turn<'_, '_>) -> Result<()> {
        let word = self.near.load(turn.fabric)?;
        if word == 0 {
            return Ok(());
        }
        if matches!(self.link, Link::Asked) {
            let answer = Answer::read(turn.fabric, &self.near.region)?;
            self.buffer.check(&self.near, answer.slot_bytes, answer.slots)?;
            self.link = Link::Linked(answer.resolve(turn.fabric, &self.near, |bytes| bytes)?);
            turn.changed = true;
        }
        let head = (word & !CLOSED).wrapping_sub(1);
        if !(self.head..=self.tail).contains(&head) {
            return Err(self.near.corrupt(&"the head of a segmented buffer"));
        }
        (self.head, self.closed[1]) = (head, word & CLOSED != 0);
        // Whoever gives a segment back has it.
        self.sent = self.sent.max(head);
        Ok(())
    }
}

/// Puts the segments of a stretch, and adds them to the tail.
async fn put_segments(
    fabric: Fabric,
    far: Far,
    data: LocalSpan<u8>,
    stretch: Range<u64>,
    closed: u64,
) -> Result<()> {
    let (mut puts, more) = (Vec::new(), stretch.end - stretch.start);
    for segment in stretch {
        let start = (segment % far.slots) as usize * far.slot_bytes;
        let range = start..start + far.slot_bytes;
        let put = Put { to: &far.data.slice(range.clone())?, from: data.slice(range)?, notice: None };
        puts.push(fabric.post(put).await?);
    }
    // Where order allows it, all is posted in one step, and nobody need come back to it.
    far.add(&fabric, more | closed).await?;
    for put in puts {
        put.await?;
    }
    Ok(())
}

/// The side that takes segments.
pub(super) struct Destination {
    pub(super) near: Near,
    pub(super) buffer: Buffer,
    /// The source's request to connect, and whether the program has asked for it.
    pub(super) ask: Option<Ask>,
    connecting: bool,
    asked: Watch,
    telling: Option<Telling>,
    linked: bool,
    pub(super) head: u64,
    pub(super) tail: u64,
    closing: bool,
    closed: [bool; 2],
    pub(super) freed: Option<u64>,
}

impl Destination {
    pub(super) fn new(near: Near, buffer: Buffer) -> Self {
        Destination {
            near,
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

    pub(super) fn connect(&mut self) {
        self.connecting = true;
    }

    pub(super) fn is_connected(&self) -> bool {
        self.linked && self.closed == [false; 2] && !self.closing
    }

    pub(super) fn is_over(&self) -> bool {
        self.closed == [true; 2] || !self.connecting
    }

    /// Gives the oldest segment back.
    pub(super) fn ready(&mut self) -> Result<()> {
        match () {
            () if !self.linked || self.closing => Err(AcpError::NotConnected { peer: self.near.peer }),
            () if self.head == self.tail => Err(AcpError::NoSegment { peer: self.near.peer }),
            () => {
                self.head += 1;
                Ok(())
            }
        }
    }

    pub(super) fn disconnect(&mut self) {
        self.closing = true;
    }

    pub(super) fn free(&mut self, request: u64) {
        (self.closing, self.freed) = (true, Some(request));
    }

    pub(super) fn advance(&mut self, turn: &mut Turn<'_, '_>) -> Result<bool> {
        loop {
            if self.is_over() {
                let Some(request) = self.freed else { return Ok(false) };
                turn.results.finish(request, Ok(Done::Freed));
                return Ok(true);
            }
            if self.telling.is_none() && !self.answer(turn)? {
                return Ok(false);
            }
            let word = self.near.load(turn.fabric)?;
            let tail = word & !CLOSED;
            if tail < self.tail || tail - self.head > self.buffer.segments {
                return Err(self.near.corrupt(&"the tail of a segmented buffer"));
            }
            (self.tail, self.closed[1]) = (tail, word & CLOSED != 0);
            let head = self.head + 1;
            if let Some(telling) = &mut self.telling {
                if self.closing {
                    self.closed[0] = telling.poll(turn, head | CLOSED)?;
                } else if !self.closing && telling.poll(turn, head)? && !self.linked {
                    // The source has been told, and so finds the same.
                    let (bytes, segments) = self.ask.map_or((0, 0), |ask| (ask.slot_bytes, ask.slots));
                    self.buffer.check(&self.near, bytes, segments)?;
                    self.linked = true;
                    turn.changed = true;
                }
            }
            if self.is_over() {
                turn.changed = true;
                continue;
            }
            match self.near.poll_change(turn) {
                Poll::Pending => return Ok(false),
                Poll::Ready(changed) => changed?,
            }
        }
    }

    /// Answers the source's request, if there is one; returns whether it has.
    fn answer(&mut self, turn: &mut Turn<'_, '_>) -> Result<bool> {
        let Some(ask) = self.ask else {
            let (bell, rung) = (turn.bell, turn.rung);
            return match self.asked.poll(turn, bell, self.near.place, rung) {
                Poll::Pending => Ok(false),
                Poll::Ready(rung) => rung.map(|()| false),
            };
        };
        let (tail, data, data_at) = (self.near.region.key(), self.buffer.at.region, self.buffer.at.offset);
        let (slots, slot_bytes) = (self.buffer.segments, self.buffer.segment_bytes as u64);
        let answer = Answer { tail, data, data_at, slots, slot_bytes };
        let block = RemoteAddr { rank: self.near.place, region: ask.block, offset: 0 };
        // The source learns of segments that differ from the answer.
        self.telling = Some(Telling::new(turn.fabric, answer, block)?);
        turn.changed = true;
        Ok(true)
    }
}
